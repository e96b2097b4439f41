/* tape_fixture.h: a context, a tape, float64 arrays of known values, small kernels from formulas.
 * */
#ifndef TILE_TESTS_TAPE_FIXTURE_H
#define TILE_TESTS_TAPE_FIXTURE_H

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/array.h"
#include "core/context.h"
#include "core/dtype.h"
#include "core/move.h"
#include "tape/tiletape.h"

typedef std::vector<double> Reals;
typedef std::vector<float> Floats32;

class TapeTest : public testing::Test {
  protected:
    enum { BLOCK = 4 }; /* elements a block of the small kernels */

    explicit TapeTest(int threads = 1, bool check = false) {
        const tile_context_options options = {threads, 0, check};
        EXPECT_EQ(TILE_OK, tile_context_create(&options, &ctx)) << tile_last_error();
        record = new_tape();
    }
    ~TapeTest() override {
        for (tape *t : tapes_) tape_destroy(t);
        for (tile_array *a : arrays_) tile_array_destroy(a);
        for (tile_kernel *k : kernels_) tile_kernel_destroy(k);
        tile_context_destroy(ctx);
    }

    tape *new_tape(tape_overwrite overwrite = TAPE_OVERWRITE_KEEP) {
        const tape_options options = {overwrite};
        tape *t = nullptr;
        EXPECT_EQ(TILE_OK, tape_create(ctx, &options, &t)) << tile_last_error();
        tapes_.push_back(t);
        return t;
    }

    tile_array *own(tile_array *a) {
        arrays_.push_back(a);
        return a;
    }
    tile_array *array(tile_dtype dtype, tile_shape shape) {
        tile_array *a = nullptr;
        EXPECT_EQ(TILE_OK, tile_array_create(ctx, dtype, shape, &a)) << tile_last_error();
        return own(a);
    }
    tile_array *reals(tile_shape shape, const Reals &values) {
        tile_array *a = array(TILE_F64, shape);
        write(a, values);
        return a;
    }
    tile_array *reals(const Reals &values) {
        return reals(TILE_SHAPE(values.size()), values);
    }
    /* Over memory whose address the program has: the test's, or the device's. */
    tile_array *exposed(Reals *memory) {
        tile_array *a = nullptr;
        const tile_shape shape = TILE_SHAPE(memory->size());
        if (!tile_is_remote(ctx)) {
            EXPECT_EQ(TILE_OK, tile_array_wrap(ctx, TILE_F64, shape, nullptr, memory->data(), &a));
            return own(a);
        }
        uint64_t address;
        a = reals(*memory);
        EXPECT_EQ(TILE_OK, tile_cuda_array_data(a, &address)) << tile_last_error();
        return a;
    }
    /* With a gradient. */
    tile_array *active(tile_shape shape, const Reals &values) {
        tile_array *a = reals(shape, values);
        EXPECT_EQ(TILE_OK, tile_array_request_grad(a)) << tile_last_error();
        return a;
    }
    tile_array *active(const Reals &values) {
        return active(TILE_SHAPE(values.size()), values);
    }
    tile_array *zeros(size_t n) {
        return reals(Reals(n));
    }
    tile_array *floats(const Floats32 &values, bool grad = false) {
        tile_array *a = array(TILE_F32, TILE_SHAPE(values.size()));
        EXPECT_EQ(TILE_OK, tile_array_write(a, values.data(), values.size() * 4));
        EXPECT_EQ(TILE_OK, grad ? tile_array_request_grad(a) : TILE_OK);
        return a;
    }
    tile_array *integers(const std::vector<int32_t> &values) {
        tile_array *a = array(TILE_I32, TILE_SHAPE(values.size()));
        EXPECT_EQ(TILE_OK, tile_array_write(a, values.data(), values.size() * 4));
        return a;
    }
    tile_array *slice(tile_array *base, std::vector<int64_t> start, tile_shape shape,
                      std::vector<int64_t> step = {}) {
        tile_array *v = nullptr;
        EXPECT_EQ(TILE_OK, tile_array_slice(base, start.data(), shape,
                                            step.empty() ? nullptr : step.data(), &v))
            << tile_last_error();
        return own(v);
    }
    tile_array *strided(tile_array *base, int64_t offset, tile_shape shape,
                        std::vector<int64_t> stride) {
        tile_array *v = nullptr;
        EXPECT_EQ(TILE_OK, tile_array_strided(base, offset, shape, stride.data(), &v))
            << tile_last_error();
        return own(v);
    }
    /* Of any dtype, values rounded to it. */
    tile_array *typed(tile_dtype dtype, const Reals &values, bool grad = false) {
        tile_array *a = array(dtype, TILE_SHAPE(values.size()));
        write(a, values);
        EXPECT_EQ(TILE_OK, grad ? tile_array_request_grad(a) : TILE_OK) << tile_last_error();
        return a;
    }
    static void write(tile_array *a, const Reals &values) {
        const tile_dtype dtype = tile_array_dtype(a);
        const size_t size = tile_dtype_size(dtype);
        std::vector<unsigned char> bytes(values.size() * size);
        for (size_t i = 0; i < values.size(); i++)
            tile_dtype_put(dtype, values[i], bytes.data() + i * size);
        EXPECT_EQ(TILE_OK, tile_array_write(a, bytes.data(), bytes.size())) << tile_last_error();
    }
    static Reals read(tile_array *a) {
        Reals x(static_cast<size_t>(a ? tile_array_count(a) : 0), NAN);
        EXPECT_NE(nullptr, a);
        if (!a) return x;
        const tile_dtype dtype = tile_array_dtype(a);
        const size_t size = tile_dtype_size(dtype);
        std::vector<unsigned char> bytes(x.size() * size);
        EXPECT_EQ(TILE_OK, tile_array_read(a, bytes.data(), bytes.size())) << tile_last_error();
        for (size_t i = 0; i < x.size(); i++) x[i] = tile_dtype_get(dtype, &bytes[i * size]);
        return x;
    }
    static Reals grad(tile_array *a) {
        return read(tile_array_grad(a));
    }

    typedef std::function<void(tile_builder *)> Build;

    tile_kernel *kernel(const char *name, const Build &build) {
        tile_builder *b = tile_kernel_begin(ctx, name);
        build(b);
        tile_kernel *k = nullptr;
        EXPECT_EQ(TILE_OK, tile_kernel_end(b, &k)) << tile_last_error();
        if (k) kernels_.push_back(k);
        return k;
    }
    /* y = f(x), element by element. */
    tile_kernel *map(const char *name, const std::function<tile(tile)> &f,
                     tile_dtype dtype = TILE_F64) {
        return kernel(name, [&](tile_builder *b) {
            const tile_param x = tile_array_param(b, "x", dtype, 1);
            const tile_param y = tile_array_param(b, "y", dtype, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            tile_store(y, f(tile_load(x, TILE_SHAPE(BLOCK), at)), at);
        });
    }
    /* x = f(x), element by element. */
    tile_kernel *update(const char *name, const std::function<tile(tile)> &f,
                        tile_dtype dtype = TILE_F64) {
        return kernel(name, [&](tile_builder *b) {
            const tile_param x = tile_array_param(b, "x", dtype, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            tile_store(x, f(tile_load(x, TILE_SHAPE(BLOCK), at)), at);
        });
    }
    /* z = f(x, y), element by element. */
    tile_kernel *combine(const char *name, const std::function<tile(tile, tile)> &f) {
        return kernel(name, [&](tile_builder *b) {
            const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
            const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
            const tile_param z = tile_array_param(b, "z", TILE_F64, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            const tile tx = tile_load(x, TILE_SHAPE(BLOCK), at);
            const tile ty = tile_load(y, TILE_SHAPE(BLOCK), at);
            tile_store(z, f(tx, ty), at);
        });
    }
    tile_kernel *square() {
        return map("square", [](tile x) { return tile_mul(x, x); });
    }
    tile_kernel *square_in_place() {
        return update("square_in_place", [](tile x) { return tile_mul(x, x); });
    }
    tile_kernel *multiply() {
        return combine("multiply", [](tile x, tile y) { return tile_mul(x, y); });
    }

    /* Blocks for the small kernels. */
    static tile_grid grid_for(tile_array *a) {
        return TILE_GRID((tile_array_count(a) + BLOCK - 1) / BLOCK);
    }
    template <typename... A> tile_status launch(tile_kernel *k, tile_array *first, A... more) {
        return tile_launch(record, k, grid_for(first), TILE_ARGS(first, more...));
    }
    /* The sum of an array's elements on the tape, as a new array. */
    tile_array *sum(tile_array *x) {
        tile_array *s = array(tile_array_dtype(x), TILE_SHAPE(1));
        EXPECT_EQ(TILE_OK, tape_sum(record, x, s)) << tile_last_error();
        return s;
    }
    void backward(tile_array *loss) {
        EXPECT_EQ(TILE_OK, tape_backward(record, loss)) << tile_last_error();
    }

    /* A failure's status and that its sentence has a part. */
    static void expect_error(tile_status wanted, const char *part, tile_status status) {
        EXPECT_EQ(wanted, status) << tile_last_error();
        EXPECT_NE(std::string::npos, std::string(tile_last_error()).find(part))
            << tile_last_error();
        EXPECT_EQ(nullptr, strchr(tile_last_error(), '\n')) << tile_last_error();
    }

    tile_context *ctx = nullptr;
    tape *record = nullptr;

  private:
    std::vector<tape *> tapes_;
    std::vector<tile_array *> arrays_;
    std::vector<tile_kernel *> kernels_;
};

#endif
