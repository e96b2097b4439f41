/* random_field.h: memory with guards, runs of a kernel on it, random programs in field form. */
#ifndef TILE_TESTS_RANDOM_FIELD_H
#define TILE_TESTS_RANDOM_FIELD_H

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "tape/tiletape.h"
extern "C" {
#include "core/builder.h"
#include "core/dtype.h"
#include "core/exec_internal.h"
#include "core/kernel.h"
}

namespace field_test {

typedef std::vector<int64_t> Ints;
typedef std::vector<unsigned char> Bytes;

const unsigned char GUARD = 0xA5;

/* Memory of an array with guard bytes around it and, when strided, in its gaps. */
struct Memory {
    tile_dtype dtype;
    Ints extent, stride;
    Bytes bytes;
    size_t margin = 512;

    Memory(tile_dtype type, const Ints &extents, const Ints &gaps = {})
        : dtype(type), extent(extents), stride(extents.size()) {
        int64_t n = 1;
        for (size_t d = extents.size(); d-- > 0;) {
            stride[d] = n * (gaps.empty() ? 1 : gaps[d]);
            n = stride[d] * (extents[d] ? extents[d] : 1);
        }
        bytes.assign(static_cast<size_t>(n) * size() + 2 * margin, GUARD);
    }
    size_t size() const {
        return tile_dtype_size(dtype);
    }
    int64_t count() const {
        int64_t n = 1;
        for (int64_t e : extent) n *= e;
        return n;
    }
    unsigned char *at(int64_t i) {
        int64_t place = 0;
        for (size_t d = extent.size(); d-- > 0;) {
            place += i % extent[d] * stride[d];
            i /= extent[d];
        }
        return bytes.data() + margin + static_cast<size_t>(place) * size();
    }
    void set(int64_t i, double value) {
        if (dtype == TILE_F32) {
            const float x = static_cast<float>(value);
            memcpy(at(i), &x, sizeof x);
        } else if (dtype == TILE_F64) {
            memcpy(at(i), &value, sizeof value);
        } else {
            const int64_t x = static_cast<int64_t>(value);
            memcpy(at(i), &x, size());
        }
    }
    double get(int64_t i) {
        if (dtype == TILE_F32) {
            float x;
            memcpy(&x, at(i), sizeof x);
            return static_cast<double>(x);
        }
        if (dtype == TILE_F64) {
            double x;
            memcpy(&x, at(i), sizeof x);
            return x;
        }
        int64_t x = 0;
        memcpy(&x, at(i), size());
        return static_cast<double>(x);
    }
    void fill(const std::function<double(int64_t)> &f) {
        for (int64_t i = 0; i < count(); i++) set(i, f(i));
    }
    /* Whether nothing but elements was touched. */
    bool guarded() {
        Bytes copy = bytes;
        for (int64_t i = 0; i < count(); i++)
            memset(copy.data() + (at(i) - bytes.data()), GUARD, size());
        for (unsigned char b : copy)
            if (b != GUARD) return false;
        return true;
    }
    tile_memory memory() {
        tile_memory m = {};
        m.read = m.write = bytes.data() + margin;
        m.rank = static_cast<int32_t>(extent.size());
        for (size_t d = 0; d < extent.size(); d++) {
            m.extent[d] = extent[d];
            m.stride[d] = stride[d];
        }
        return m;
    }
};

/* A context, a kernel, and runs of it. */
class Runner {
  public:
    explicit Runner(int threads, tile_executor executor = TILE_EXECUTOR_AUTO) {
        tile_context_options options = {};
        options.threads = threads;
        options.executor = executor;
        EXPECT_EQ(TILE_OK, tile_context_create(&options, &ctx));
    }
    ~Runner() {
        tile_kernel_destroy(kernel);
        tile_context_destroy(ctx);
    }
    void build(const std::function<void(tile_builder *)> &body) {
        tile_builder *b = tile_kernel_begin(ctx, "test");
        body(b);
        ASSERT_EQ(TILE_OK, tile_kernel_end(b, &kernel)) << tile_last_error();
    }
    void run(const tile_bound &bound, bool by_blocks = false) {
        tile_execute_by_blocks(kernel->forward, by_blocks);
        ASSERT_EQ(TILE_OK, tile_executable_reserve(kernel->forward, &bound)) << tile_last_error();
        ASSERT_EQ(TILE_OK, tile_execute(kernel->forward, &bound)) << tile_last_error();
    }
    bool rows() const {
        return kernel->forward->runs_by_rows > 0;
    }

    tile_context *ctx = nullptr;
    tile_kernel *kernel = nullptr;
};

inline tile_bound bound_of(const Ints &grid, const std::vector<Memory *> &arrays) {
    tile_bound bound = {};
    for (size_t g = 0; g < 3; g++) bound.grid[g] = bound.domain[g] = g < grid.size() ? grid[g] : 1;
    for (size_t k = 0; k < arrays.size(); k++) bound.array[k] = arrays[k]->memory();
    return bound;
}

inline tile_shape shape_of(const Ints &extents) {
    tile_shape s = {};
    for (int64_t e : extents) s.extent[s.rank++] = e;
    return s;
}

const int THREADS[] = {1, 2, 3, 8};

/* Random fields */

/* A random program on windows at block * tile + constant, on random arrays. */
struct RandomField {
    explicit RandomField(unsigned seed, bool maths = false) : functions(maths), random(seed) {
        rank = static_cast<size_t>(pick(1, 3));
        const bool wide = pick(0, 3) == 0;
        for (size_t d = 0; d < rank; d++) {
            const bool last = d + 1 == rank;
            core.push_back(pick(0, 4) ? pick(1, last ? 40 : 6) : 1);
            extent.push_back(last && wide ? pick(1200, 4000) : pick(1, last ? 150 : 20));
            if (last && wide) core[d] = pick(100, 300);
            halo.push_back(pick(0, 3));
            grid.push_back((extent[d] + core[d] - 1) / core[d] + pick(0, 1));
        }
        dtype = pick(0, 4) ? TILE_F32 : TILE_F64;
        for (int k = 0; k < 4; k++) inputs.push_back(array(extent));
        Ints line(1, extent[rank - 1]), one(rank, 1);
        inputs.push_back(array(line));
        inputs.push_back(array(one));
        for (int k = 0; k < 2; k++) outputs.push_back(array(extent));
        choices = random();
    }
    int64_t pick(int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    }
    std::unique_ptr<Memory> array(const Ints &shape) {
        Ints gaps;
        for (size_t d = 0; d < shape.size(); d++) gaps.push_back(pick(0, 5) ? 1 : pick(1, 3));
        std::unique_ptr<Memory> m(new Memory(dtype, shape, gaps));
        m->fill([this](int64_t) { return static_cast<double>(pick(-8, 8)) / 4; });
        return m;
    }

    bool functions; /* maths functions and comparisons too */
    std::mt19937 random;
    std::mt19937::result_type choices;
    size_t rank;
    tile_dtype dtype;
    Ints core, extent, halo, grid;
    std::vector<std::unique_ptr<Memory>> inputs, outputs;
};

/* The same choices build the same program again. */
class FieldBuilder {
  public:
    FieldBuilder(const RandomField &f, tile_builder *b)
        : field(f), builder(b), random(static_cast<unsigned>(f.choices)) {}

    void build() {
        const char *names[] = {"a", "b", "c", "d", "line", "one", "y", "z"};
        for (size_t k = 0; k < 8; k++) {
            const int rank = k == 4 ? 1 : static_cast<int>(field.rank);
            params.push_back(tile_array_param(builder, names[k], field.dtype, rank));
        }
        scale = tile_real_param(builder, "scale", field.dtype);
        moved = tile_int_param(builder, "moved");
        const int64_t n = pick(2, 9);
        for (int64_t k = 0; k < 4; k++) values.push_back(leaf(field.core));
        for (int64_t k = 0; k < n; k++) values.push_back(combine());
        tile_store(params[6], values.back(), at(pick(-2, 2)));
        const tile other =
            values[static_cast<size_t>(pick(0, static_cast<int64_t>(values.size()) - 1))];
        if (pick(0, 1)) {
            tile_atomic_add(params[7], other, at(0));
        } else {
            const tile before = tile_load(params[7], shape_of(field.core), at(0));
            tile_store(params[7], tile_add(before, other), at(0));
            if (pick(0, 1)) values.push_back(before);
        }
    }

  private:
    int64_t pick(int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(random);
    }
    tile pick_value() {
        return values[static_cast<size_t>(pick(0, static_cast<int64_t>(values.size()) - 1))];
    }
    /* Block * core, moved by a constant along the last dimension, sometimes by a parameter. */
    tile_offset at(int64_t shift, bool by_parameter = false) {
        tile_offset o = {};
        o.rank = static_cast<int>(field.rank);
        for (size_t d = 0; d < field.rank; d++)
            o.at[d] = tile_block_start(builder, static_cast<int>(d), field.core[d]);
        if (by_parameter) o.at[0] = tile_add(o.at[0], moved);
        o.shift[field.rank - 1] = shift;
        return o;
    }
    tile load(const Ints &shape) {
        const size_t k = static_cast<size_t>(pick(0, 3));
        tile_offset o = at(0, pick(0, 4) == 0);
        for (size_t d = 0; d < field.rank; d++) o.shift[d] = pick(-4, 3);
        if (pick(0, 3)) return tile_load_padded(params[k], shape_of(shape), o, pick(0, 1) * 0.5);
        /* bounded */
        tile bounds[2 * TILE_RANK_MAX];
        for (size_t d = 0; d < field.rank; d++) {
            bounds[2 * d] = tile_int(builder, pick(-1, 3));
            bounds[2 * d + 1] = tile_add(moved, tile_int(builder, pick(0, field.extent[d])));
        }
        tile_emission e = {};
        e.op = tile_op_find("load");
        e.array = params[k];
        e.at = o;
        e.bounds = bounds;
        e.has_shape = true;
        e.shape = shape_of(shape);
        return tile_emit(builder, &e);
    }
    tile leaf(const Ints &shape) {
        const int64_t kind = pick(0, 9);
        if (kind == 0) {
            tile_offset o = {};
            o.rank = 1;
            o.at[0] = tile_block_start(builder, static_cast<int>(field.rank) - 1,
                                       field.core[field.rank - 1]);
            o.shift[0] = pick(-2, 2);
            return tile_broadcast(tile_load(params[4], TILE_SHAPE(shape[field.rank - 1]), o),
                                  shape_of(shape));
        }
        if (kind == 1)
            return tile_broadcast(tile_load(params[5], shape_of(Ints(field.rank, 1)), TILE_AT_ZERO),
                                  shape_of(shape));
        if (kind == 2) {
            const int axis = static_cast<int>(pick(0, static_cast<int64_t>(field.rank) - 1));
            const size_t d = static_cast<size_t>(axis);
            const tile start = tile_block_start(builder, axis, field.core[d]);
            if (shape[d] == 1 && field.core[d] != 1) return load(shape);
            return tile_cast(tile_iota(builder, TILE_I64, shape_of(shape), axis, start),
                             field.dtype);
        }
        if (kind == 3) return column(shape);
        return load(shape);
    }
    /* One element per row, or per column, repeated. */
    tile column(const Ints &shape) {
        const size_t flat = static_cast<size_t>(pick(0, static_cast<int64_t>(field.rank) - 1));
        Ints thin = shape;
        thin[flat] = 1;
        tile_offset o = at(0);
        o.at[flat] = tile_int(builder, pick(-1, 3));
        tile t = tile_load(params[static_cast<size_t>(pick(0, 3))], shape_of(thin), o);
        if (pick(0, 1)) t = tile_mul(t, t);
        return tile_broadcast(t, shape_of(shape));
    }
    tile maths(tile x, tile y) {
        const tile k = scale;
        switch (pick(0, field.functions ? 9 : 6)) {
        case 0: return tile_add(x, y);
        case 1: return tile_sub(x, y);
        case 2: return tile_mul(x, tile_expr("y * k", y, k));
        case 3: return tile_max(x, y);
        case 4: return tile_expr("x > y ? x : 2 * y", x, y);
        case 5: return tile_expr("x + k * y - x * y", x, k, y);
        case 6: return tile_expr("0.5 * (x - k)", x, k);
        case 7: return tile_expr("sin(x) + y", x, y);
        case 8: return tile_expr("exp(-(x * x)) * tanh(y)", x, y);
        default: return tile_expr("x < y && y != k ? x / y : min(x, k)", x, y, k);
        }
    }
    /* A value on a core with a halo, read through moved sub-tiles; sometimes in two steps. */
    tile stencil() {
        Ints whole = field.core, some = field.core;
        for (size_t d = 0; d < field.rank; d++) {
            whole[d] += 2 * field.halo[d];
            some[d] += field.halo[d];
        }
        tile w = maths(leaf(whole), leaf(whole));
        if (pick(0, 1)) w = maths(part(w, some, whole), part(w, some, whole)), whole = some;
        tile sum = part(w, field.core, whole);
        const int64_t n = pick(1, 4);
        for (int64_t k = 0; k < n; k++) sum = maths(sum, part(w, field.core, whole));
        return sum;
    }
    tile part(tile t, const Ints &shape, const Ints &whole) {
        tile_offset o = {};
        o.rank = static_cast<int>(field.rank);
        for (size_t d = 0; d < field.rank; d++) {
            o.at[d] = tile_int(builder, 0);
            o.shift[d] = pick(0, whole[d] - shape[d]);
        }
        tile_emission e = {};
        e.op = tile_op_find("view");
        e.n_in = 1;
        e.in[0] = t;
        e.has_shape = true;
        e.shape = shape_of(shape);
        for (size_t d = 0; d < field.rank; d++) e.attrs.shift[d] = o.shift[d];
        return tile_emit(builder, &e);
    }
    tile combine() {
        const int64_t kind = pick(0, 3);
        if (kind == 0) return leaf(field.core);
        if (kind == 1) return maths(pick_value(), stencil());
        return maths(pick_value(), pick_value());
    }

    const RandomField &field;
    tile_builder *builder;
    std::mt19937 random;
    std::vector<tile_param> params;
    std::vector<tile> values;
    tile scale = {}, moved = {};
};

} // namespace field_test

#endif
