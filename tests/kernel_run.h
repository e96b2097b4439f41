/* kernel_run.h: a kernel run forward and its adjoint plan run backward, without a tape. */
#ifndef TILE_TESTS_KERNEL_RUN_H
#define TILE_TESTS_KERNEL_RUN_H

#include <functional>
#include <map>

#include "tape/tiletape.h"
#include "tests/lane_call.h"
extern "C" {
#include "core/builder.h"
#include "core/kernel.h"
#include "core/move.h"
}

/* An array of float64 with a gradient, or of int64 without. */
struct Field {
    Ints shape;
    std::vector<double> value, grad;
    Ints integer;
    bool real = true;

    Field(const Ints &extents, const std::vector<double> &values) : shape(extents), value(values) {
        grad.resize(value.size());
    }
    static Field zeros(const Ints &extents) {
        return Field(extents, std::vector<double>(static_cast<size_t>(count_of(extents))));
    }
    static Field of_integers(const Ints &extents, const Ints &values) {
        Field f = zeros(extents);
        f.integer = values;
        f.real = false;
        return f;
    }
    tile_memory memory(void *data) const {
        tile_memory m = {};
        m.read = m.write = data;
        m.rank = static_cast<int32_t>(shape.size());
        const Ints stride = strides_of(shape);
        for (size_t d = 0; d < shape.size(); d++) {
            m.extent[d] = shape[d];
            m.stride[d] = stride[d];
        }
        return m;
    }
    void *data() {
        return real ? static_cast<void *>(value.data()) : integer.data();
    }
};

typedef std::function<void(tile_builder *, const std::vector<tile_param> &)> Build;

/* The test's memory where a device sees it, and back again. On the CPU: the same. */
class Mirror {
  public:
    explicit Mirror(tile_context *ctx) : ctx_(ctx) {}
    ~Mirror() {
        for (const auto &[host, buffer] : there_) {
            const tile_shape bytes = {1, {static_cast<int64_t>(buffer->bytes)}};
            EXPECT_EQ(TILE_OK, tile_move_out(ctx_, TILE_U8, bytes, host, buffer->data, nullptr));
            tile_buffer_release(buffer);
        }
    }
    void *of(void *host, size_t bytes) {
        if (!tile_is_remote(ctx_) || !host) return host;
        tile_buffer *&buffer = there_[host];
        if (buffer) return buffer->data;
        const tile_shape shape = {1, {static_cast<int64_t>(bytes)}};
        EXPECT_EQ(TILE_OK, tile_buffer_create(ctx_, bytes, &buffer)) << tile_last_error();
        EXPECT_EQ(TILE_OK, tile_move_in(ctx_, TILE_U8, shape, buffer->data, nullptr, host, nullptr))
            << tile_last_error();
        return buffer->data;
    }

  private:
    tile_context *ctx_;
    std::map<void *, tile_buffer *> there_;
};

/* One kernel over some fields. */
class KernelRun {
  public:
    KernelRun(const std::vector<Field *> &fields, const Build &build) : fields_(fields) {
        EXPECT_EQ(TILE_OK, tile_context_create(nullptr, &ctx_));
        tile_builder *b = tile_kernel_begin(ctx_, "test");
        std::vector<tile_param> params;
        for (size_t k = 0; k < fields.size(); k++) {
            const std::string name(1, static_cast<char>('p' + k));
            params.push_back(tile_array_param(b, name.c_str(),
                                              fields[k]->real ? TILE_F64 : TILE_I64,
                                              static_cast<int>(fields[k]->shape.size())));
        }
        build(b, params);
        status = tile_kernel_end(b, &kernel_);
        message = status ? tile_last_error() : "";
    }
    ~KernelRun() {
        if (!status) tile_kernel_destroy(kernel_);
        tile_context_destroy(ctx_);
    }

    /* Runs the kernel on the values. */
    void forward(const Ints &grid) {
        ASSERT_EQ(TILE_OK, status) << message;
        tile_bound bound = bind(grid);
        run(kernel_->forward, &bound);
    }

    /* Runs the kernel, and its adjoint on the gradients, from the values before. */
    void backward(const Ints &grid) {
        ASSERT_EQ(TILE_OK, status) << message;
        tile_adjoint_key key = {};
        for (size_t k = 0; k < fields_.size(); k++) {
            key.active |= fields_[k]->real ? 1u << k : 0;
            key.same[k] = static_cast<int8_t>(k);
        }
        key.upstream = key.accumulate = key.active;
        key.apart = true;
        const tile_adjoint_plan *plan;
        ASSERT_EQ(TILE_OK, tile_kernel_adjoint(kernel_, &key, &plan)) << tile_last_error();
        tile_bound bound = bind(grid);
        std::vector<std::vector<double>> before;
        for (Field *f : fields_) before.push_back(f->value);
        std::vector<unsigned char> stash = run_augmented(plan, &bound);
        for (size_t k = 0; k < fields_.size(); k++) std::swap(before[k], fields_[k]->value);
        bound = bind(grid);
        bound.stash = stash.data();
        for (int s = 0; s < plan->count; s++) run_step(plan->step[s], bound);
        for (size_t k = 0; k < fields_.size(); k++) std::swap(before[k], fields_[k]->value);
    }

    tile_status status;
    std::string message;

  private:
    tile_bound bind(const Ints &grid) {
        tile_bound bound = {};
        for (size_t d = 0; d < 3; d++)
            bound.grid[d] = bound.domain[d] = d < grid.size() ? grid[d] : 1;
        for (size_t k = 0; k < fields_.size(); k++)
            bound.array[k] = fields_[k]->memory(fields_[k]->data());
        return bound;
    }
    void run(tile_executable *exe, const tile_bound *bound) {
        Mirror mirror(ctx_);
        tile_bound there = *bound;
        const int count = tile_executable_program(exe)->param_count;
        for (int k = 0; k < count; k++) {
            const tile_memory &m = bound->array[k];
            size_t elements = 1;
            for (int d = 0; d < m.rank; d++) elements *= static_cast<size_t>(m.extent[d]);
            there.array[k].write = mirror.of(m.write, elements * sizeof(double));
            there.array[k].read = there.array[k].write;
        }
        there.stash = mirror.of(bound->stash, stash_bytes_);
        ASSERT_EQ(TILE_OK, tile_executable_reserve(exe, &there)) << tile_last_error();
        ASSERT_EQ(TILE_OK, tile_execute(exe, &there)) << tile_last_error();
    }
    std::vector<unsigned char> run_augmented(const tile_adjoint_plan *plan, tile_bound *bound) {
        size_t bytes = 0;
        if (plan->augmented) {
            EXPECT_EQ(TILE_OK, tile_stash_bytes(plan->augmented, bound, &bytes));
        }
        std::vector<unsigned char> stash(bytes + 64);
        bound->stash = stash.data();
        stash_bytes_ = stash.size();
        run(plan->augmented ? plan->augmented : kernel_->forward, bound);
        return stash;
    }
    void run_step(const tile_adjoint_step &step, tile_bound bound) {
        size_t at = fields_.size();
        for (size_t k = 0; k < fields_.size(); k++)
            if (step.grads >> k & 1u)
                bound.array[at++] = fields_[k]->memory(fields_[k]->grad.data());
        for (int d = 0; d < 3; d++) bound.grid[d] += step.margin[d];
        run(step.exe, &bound);
    }

    tile_context *ctx_ = nullptr;
    tile_kernel *kernel_ = nullptr;
    std::vector<Field *> fields_;
    size_t stash_bytes_ = 0;
};

/* A builder call on a tile of shape [3, 4] that is an error: its status, part of its sentence. */
inline void expect_error(tile_status want, const std::string &part,
                         const std::function<void(tile)> &f) {
    Field in = Field::zeros({3, 4});
    KernelRun run({&in}, [&](tile_builder *, const std::vector<tile_param> &p) {
        f(tile_load(p[0], TILE_SHAPE(3, 4), TILE_AT_ZERO));
    });
    EXPECT_EQ(want, run.status);
    EXPECT_NE(std::string::npos, run.message.find(part)) << run.message;
}

#endif
