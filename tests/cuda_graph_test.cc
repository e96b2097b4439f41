/* cuda_graph_test.cc: replays and sweeps as CUDA graphs, and random numbers, on the fake device. */
#include "cuda/cuda_device.h"
#include "tests/cuda_fake_test.h"

namespace {

class CudaGraphTest : public CudaTest {
  protected:
    /* steps times y = x * x, x = y: values are kept, buffers move on. */
    void record_steps(int steps) {
        x = active({1, 1.5, 2});
        y = zeros(3);
        tile_kernel *forth = square(), *in_place = square_in_place();
        for (int k = 0; k < steps; k++) {
            ASSERT_EQ(TILE_OK, launch(forth, x, y));
            ASSERT_EQ(TILE_OK, launch(in_place, y));
        }
        loss = sum(y);
    }
    void iterate(const Reals &input) {
        write(x, input);
        ASSERT_EQ(TILE_OK, tape_replay(record)) << tile_last_error();
        ASSERT_EQ(TILE_OK, tape_zero(record));
        backward(loss);
    }
    /* Calls of a driver's function while one iteration runs. */
    int64_t calls(const char *function, const Reals &input) {
        const int64_t before = fake->calls(function);
        iterate(input);
        return fake->calls(function) - before;
    }
    /* y = x^4, dy/dx = 4 x^3 */
    void expect_values(const Reals &input) {
        Reals value, slope;
        for (double v : input) {
            value.push_back(v * v * v * v);
            slope.push_back(4 * v * v * v);
        }
        EXPECT_EQ(value, read(y));
        EXPECT_EQ(slope, grad(x));
    }
    tile_array *x = nullptr, *y = nullptr, *loss = nullptr;
};

TEST_F(CudaGraphTest, ReplaysAndSweepsBecomeGraphs) {
    record_steps(2);
    for (int k = 0; k < 4; k++) iterate({1, 2, 3});
    expect_values({1, 2, 3});
    EXPECT_EQ(0, calls("cuLaunchKernel", {2, 3, 4}));
    expect_values({2, 3, 4});
    EXPECT_EQ(2, calls("cuGraphLaunch", {3, 4, 5}));
    expect_values({3, 4, 5});
    EXPECT_EQ(0, calls("cuGraphInstantiateWithFlags", {0.5, 0.25, 2}));
    expect_values({0.5, 0.25, 2});
    EXPECT_EQ(0, calls("cuMemAllocAsync", {0.5, 0.25, 2}));
}

/* 2 launches a step: segments of 512 and the rest; backward needs the last step alone. */
TEST_F(CudaGraphTest, LongReplaysAreSeveralGraphs) {
    record_steps(400);
    for (int k = 0; k < 4; k++) iterate({1, 2, 3});
    EXPECT_EQ(0, calls("cuLaunchKernel", {2, 3, 4}));
    EXPECT_EQ(3, calls("cuGraphLaunch", {2, 3, 4}));
    expect_values({2, 3, 4});
}

TEST_F(CudaGraphTest, WhatChangesIsSeen) {
    record_steps(1);
    for (int k = 0; k < 4; k++) iterate({1, 2, 3});
    /* Another buffer for y: its address was handed out, so that it stays. */
    uint64_t address;
    ASSERT_EQ(TILE_OK, tile_cuda_array_data(y, &address));
    for (int k = 0; k < 4; k++) {
        iterate({1, 2, 3.0 + k});
        expect_values({1, 2, 3.0 + k});
    }
    ASSERT_EQ(TILE_OK, launch(square_in_place(), y));
    loss = sum(y);
    for (int k = 0; k < 4; k++) iterate({1, 2, 0.5});
    EXPECT_EQ(Reals({1, 256, 1.0 / 256}), read(y));
    EXPECT_EQ(Reals({8, 1024, 8.0 / 128}), grad(x));
}

/* A graph is of functions: when one is unloaded, another may get its handle. */
TEST_F(CudaGraphTest, GraphsOfKernelsThatAreGoneAreForgotten) {
    x = active({1, 2, 3});
    y = zeros(3);
    for (const double factor : {2.0, 3.0, 5.0}) {
        tile_builder *b = tile_kernel_begin(ctx, "scale");
        const tile_param from = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param to = tile_array_param(b, "y", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
        const tile by = tile_real(b, TILE_F64, factor);
        tile_store(to, tile_mul(tile_load(from, TILE_SHAPE(BLOCK), at), by), at);
        tile_kernel *scale = nullptr;
        ASSERT_EQ(TILE_OK, tile_kernel_end(b, &scale)) << tile_last_error();
        ASSERT_EQ(TILE_OK, launch(scale, x, y));
        loss = sum(y);
        const int64_t before = fake->calls("cuGraphLaunch");
        ASSERT_EQ(TILE_OK, tape_replay(record));
        EXPECT_EQ(before, fake->calls("cuGraphLaunch")) << factor;
        for (int k = 0; k < 3; k++) iterate({1, 2, 3});
        EXPECT_LT(before, fake->calls("cuGraphLaunch")) << factor;
        EXPECT_EQ(Reals({factor, 2 * factor, 3 * factor}), read(y));
        EXPECT_EQ(Reals({factor, factor, factor}), grad(x));
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_kernel_destroy(scale);
    }
}

TEST_F(CudaGraphTest, ADriverWithoutCapturesRunsAsWell) {
    for (const char *call :
         {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"}) {
        record_steps(1);
        iterate({1, 2, 3});
        fake->fail(call, 1, 801);
        for (int k = 0; k < 4; k++) {
            iterate({1, 2, 3.0 + k});
            expect_values({1, 2, 3.0 + k});
        }
        ASSERT_EQ(TILE_OK, tape_reset(record));
    }
}

TEST_F(CudaGraphTest, AFailedGraphIsAnError) {
    record_steps(1);
    for (int k = 0; k < 4; k++) iterate({1, 2, 3});
    fake->fail("kernel", 2, 719);
    (void)!tape_replay(record);
    double host[3];
    EXPECT_EQ(TILE_E_DEVICE, tile_array_read(y, host, sizeof host));
    fake->fail(nullptr, 0, 0);
}

TEST_F(CudaGraphTest, ACallOfTheHostCutsAGraph) {
    x = active({1, 2, 3});
    y = zeros(3);
    tile_array *z = zeros(3);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    const auto forward = [](void *, tile_array *const *reads, tile_array *const *writes) {
        double host[3];
        tile_status status = tile_array_read(reads[0], host, sizeof host);
        for (double &v : host) v *= 10;
        return status ? status : tile_array_write(writes[0], host, sizeof host);
    };
    const auto back = [](void *, tile_array *const *, tile_array *const *dwrites,
                         tile_array *const *dreads) {
        double up[3], down[3];
        tile_status status = tile_array_read(dwrites[0], up, sizeof up);
        if (!status) status = tile_array_read(dreads[0], down, sizeof down);
        for (int k = 0; k < 3; k++) down[k] += 10 * up[k];
        return status ? status : tile_array_write(dreads[0], down, sizeof down);
    };
    tape_call call = {1, 1, &y, &z, forward, back, nullptr};
    ASSERT_EQ(TILE_OK, tape_record_call(record, &call)) << tile_last_error();
    loss = sum(z);
    for (int k = 0; k < 4; k++) {
        iterate({1, 2, 3.0 + k});
        EXPECT_EQ(Reals({10, 40, 10 * (3.0 + k) * (3.0 + k)}), read(z));
        EXPECT_EQ(Reals({20, 40, 20 * (3.0 + k)}), grad(x));
    }
    EXPECT_EQ(0, calls("cuLaunchKernel", {1, 2, 3}));
}

/* A call's own work on the stream comes after what is taken down: a copy of y to z. */
struct OwnWork {
    void *stream = nullptr;
    uint64_t from = 0, to = 0;
    static tile_status forward(void *user, tile_array *const *, tile_array *const *) {
        const OwnWork *w = static_cast<OwnWork *>(user);
        const tile_driver *driver;
        void *context;
        tile_status status = tile_driver_get(&driver);
        if (status || driver->context_retain(&context, 0)) return TILE_E_DEVICE;
        int result = driver->context_push(context);
        if (!result) result = driver->copy(w->to, w->from, 3 * sizeof(double), w->stream);
        if (driver->context_pop(&context) || driver->context_release(0)) return TILE_E_DEVICE;
        return result ? TILE_E_DEVICE : TILE_OK;
    }
};

TEST_F(CudaGraphTest, WorkOfTheCallersComesInOrder) {
    x = active({1, 2, 3});
    y = zeros(3);
    tile_array *z = zeros(3);
    OwnWork work;
    ASSERT_EQ(TILE_OK, tile_cuda_stream(ctx, &work.stream));
    ASSERT_EQ(TILE_OK, tile_cuda_array_data(y, &work.from));
    ASSERT_EQ(TILE_OK, tile_cuda_array_data(z, &work.to));
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tape_call call = {1, 1, &y, &z, OwnWork::forward, nullptr, &work};
    ASSERT_EQ(TILE_OK, tape_record_call(record, &call)) << tile_last_error();
    ASSERT_EQ(TILE_OK, launch(square_in_place(), z));
    for (int k = 0; k < 4; k++) {
        write(x, {1, 2, 3.0 + k});
        ASSERT_EQ(TILE_OK, tape_replay(record)) << tile_last_error();
        EXPECT_EQ(Reals({1, 16, std::pow(3.0 + k, 4)}), read(z));
    }
}

/* Random numbers: the fake's say what was asked for. */

TEST_F(CudaGraphTest, RandomNumbersComeFromCurand) {
    tile_array *a = floats({9, 9, 9, 9, 9}), *b = zeros(3);
    ASSERT_EQ(TILE_OK, tile_cuda_random_uniform(a, 8)) << tile_last_error();
    EXPECT_EQ(Reals({8 / 128.0, 9 / 128.0, 10 / 128.0, 11 / 128.0, 12 / 128.0}), read(a));
    ASSERT_EQ(TILE_OK, tile_cuda_random_normal(b, 64, 3, 2)) << tile_last_error();
    EXPECT_EQ(Reals({3 + 2 * 64 / 128.0, 3 + 2 * 65 / 128.0, 3 + 2 * 66 / 128.0}), read(b));
    ASSERT_EQ(TILE_OK, tile_cuda_random_uniform(a, 8));
    EXPECT_EQ(8 / 128.0, read(a)[0]) << "a seed begins anew";
}

TEST_F(CudaGraphTest, RandomNumbersOverwriteWhatATapeKeeps) {
    x = active({1, 2, 3});
    y = zeros(3);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    loss = sum(y);
    ASSERT_EQ(TILE_OK, tile_cuda_random_uniform(x, 1));
    backward(loss);
    EXPECT_EQ(Reals({2, 4, 6}), grad(x));
    EXPECT_EQ(1 / 128.0, read(x)[0]);
}

TEST_F(CudaGraphTest, WhatRandomNumbersRefuse) {
    tile_array *i = integers({1, 2}), *a = zeros(6), *gaps = slice(a, {0}, TILE_SHAPE(3), {2});
    expect_error(TILE_E_DTYPE, "array is int32, wanted float32 or float64",
                 tile_cuda_random_uniform(i, 1));
    expect_error(TILE_E_ARGUMENT, "array has gaps", tile_cuda_random_uniform(gaps, 1));
    expect_error(TILE_E_ARGUMENT, "deviation -1", tile_cuda_random_normal(a, 1, 0, -1));
    expect_error(TILE_E_ARGUMENT, "array is NULL", tile_cuda_random_uniform(nullptr, 1));
    fake->fail("curandGenerateUniformDouble", 1, 201);
    expect_error(TILE_E_DEVICE, "tile_cuda_random_uniform: cuRAND: the numbers: status 201",
                 tile_cuda_random_uniform(a, 1));
    tile_curand_look_in("/nowhere/libcurand.so");
    expect_error(TILE_E_DEVICE, "cuRAND: /nowhere/libcurand.so not found",
                 tile_cuda_random_uniform(a, 1));
    tile_curand_look_in(fake_cuda_library());
    EXPECT_EQ(TILE_OK, tile_cuda_random_uniform(a, 1));
}

} // namespace
