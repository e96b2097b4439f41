/* cuda_test.cc: CUDA contexts on the fake device: what they say of themselves, memory, faults,
 * compiled code on disk. */
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "cuda/driver.h"
#include "tests/cuda_fake_test.h"

namespace {

TEST_F(CudaTest, WithoutADriverThereIsNoDevice) {
    tile_context *made = nullptr;
    int count = 7;
    tile_driver_look_in("/nowhere/libcuda.so.1");
    expect_error(TILE_E_DEVICE, "no CUDA device: /nowhere/libcuda.so.1 not found",
                 tile_cuda_context_create(0, nullptr, &made));
    EXPECT_EQ(TILE_OK, tile_cuda_device_count(&count));
    EXPECT_EQ(0, count);
    EXPECT_EQ(nullptr, made);
    tile_driver_look_in(fake_cuda_library());
}

TEST_F(CudaTest, WithoutADeviceTheDriverIsQuoted) {
    tile_context *made = nullptr;
    fake->set("devices", 0);
    tile_driver_look_in(fake_cuda_library());
    expect_error(TILE_E_DEVICE,
                 "no CUDA device: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, 100)",
                 tile_cuda_context_create(0, nullptr, &made));
    fake->set("devices", 1);
    tile_driver_look_in(fake_cuda_library());
    expect_error(TILE_E_ARGUMENT, "tile_cuda_context_create: device is 1, wanted 0 to 0",
                 tile_cuda_context_create(1, nullptr, &made));
    EXPECT_EQ(TILE_OK, tile_cuda_context_create(0, nullptr, &made)) << tile_last_error();
    tile_context_destroy(made);
}

TEST_F(CudaTest, AnOldDeviceIsRefused) {
    tile_context *made = nullptr;
    fake->set("major", 7);
    expect_error(TILE_E_DEVICE, "has compute capability 7.0, wanted 7.5 or newer",
                 tile_cuda_context_create(0, nullptr, &made));
    fake->set("major", 9);
}

TEST_F(CudaTest, AFailureWhileAContextIsMadeLeavesNothing) {
    const int64_t held = fake->held();
    for (const char *call :
         {"cuDriverGetVersion", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
          "cuCtxPushCurrent_v2", "cuStreamCreate", "cuMemAllocAsync", "cuMemAllocHost_v2"}) {
        tile_context *made = nullptr;
        fake->fail(call, 1, 2);
        EXPECT_EQ(TILE_E_MEMORY, tile_cuda_context_create(0, nullptr, &made)) << call;
        EXPECT_EQ(nullptr, made) << call;
        EXPECT_EQ(held, fake->held()) << call;
    }
}

TEST_F(CudaTest, TellsOfItself) {
    tile_array *x = active({1, 2, 3}), *y = zeros(3);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_executor_info info;
    ASSERT_EQ(TILE_OK, tile_context_info(ctx, &info));
    EXPECT_STREQ("Fake CUDA device", info.device);
    EXPECT_EQ(size_t{4} << 30, info.device_bytes);
    EXPECT_LT(info.device_unused, info.device_bytes);
    EXPECT_EQ(13000, info.driver);
    EXPECT_EQ(1, info.device_launches);
    EXPECT_EQ(1, info.compiled + info.reused);
    EXPECT_EQ(0, info.native_launches + info.interpreted_launches);
}

/* d sum (x^2)^2 / dx = 4 x^3 */
TEST_F(CudaTest, AGradientIsExact) {
    tile_array *x = active({1, 2, 3, -4, 5}), *y = zeros(5);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, launch(square_in_place(), y));
    backward(sum(y));
    EXPECT_EQ(Reals({4, 32, 108, -256, 500}), grad(x));
    EXPECT_EQ(Reals({1, 16, 81, 256, 625}), read(y));
}

TEST_F(CudaTest, WithoutMemoryPoolsToo) {
    fake->set("pools", 0);
    tile_context *other = nullptr;
    ASSERT_EQ(TILE_OK, tile_cuda_context_create(0, nullptr, &other));
    fake->set("pools", 1);
    const int64_t before = fake->calls("cuMemAllocAsync"), plain = fake->calls("cuMemAlloc_v2");
    std::swap(ctx, other);
    tile_array *x = reals({1, 2}), *y = zeros(2);
    EXPECT_EQ(TILE_OK, tile_launch(nullptr, square(), grid_for(x), TILE_ARGS(x, y)));
    EXPECT_EQ(Reals({1, 4}), read(y));
    std::swap(ctx, other);
    EXPECT_EQ(before, fake->calls("cuMemAllocAsync"));
    EXPECT_LT(plain, fake->calls("cuMemAlloc_v2"));
    tile_context_destroy(other);
}

/* Memory */

TEST_F(CudaTest, HostAddressesAreErrors) {
    tile_array *x = reals({1, 2, 3}), *w = nullptr;
    void *data;
    double host[3];
    expect_error(TILE_E_STATE, "tile_array_data: array is in a device's memory",
                 tile_array_data(x, &data));
    expect_error(TILE_E_ARGUMENT, "tile_array_wrap: memory is the host's",
                 tile_array_wrap(ctx, TILE_F64, TILE_SHAPE(3), nullptr, host, &w));
    expect_error(TILE_E_ARGUMENT, "is no memory of a CUDA device",
                 tile_cuda_array_wrap(ctx, TILE_F64, TILE_SHAPE(3), nullptr,
                                      reinterpret_cast<uint64_t>(host), &w));
    EXPECT_EQ(nullptr, w);
}

TEST_F(CudaTest, DeviceAddressesAreShared) {
    tile_array *x = reals({1, 2, 3}), *w = nullptr;
    uint64_t address;
    ASSERT_EQ(TILE_OK, tile_cuda_array_data(x, &address));
    ASSERT_EQ(TILE_OK, tile_cuda_array_wrap(ctx, TILE_F64, TILE_SHAPE(2), nullptr, address + 8, &w))
        << tile_last_error();
    own(w);
    EXPECT_EQ(Reals({2, 3}), read(w));
    write(w, {7, 8});
    EXPECT_EQ(Reals({1, 7, 8}), read(x));
}

TEST_F(CudaTest, CallsForDevicesRefuseTheCpu) {
    tile_context *cpu = nullptr;
    tile_array *x = nullptr;
    uint64_t address;
    void *stream;
    double seconds;
    make_cuda_contexts(false);
    ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &cpu));
    ASSERT_EQ(TILE_OK, tile_array_create(cpu, TILE_F32, TILE_SHAPE(2), &x));
    const char *said = "is of a CPU context, expected one of a CUDA device";
    expect_error(TILE_E_STATE, said, tile_cuda_array_data(x, &address));
    expect_error(TILE_E_STATE, said, tile_cuda_stream(cpu, &stream));
    expect_error(TILE_E_STATE, said, tile_cuda_random_uniform(x, 1));
    expect_error(TILE_E_STATE, said, tile_cuda_time_begin(cpu));
    expect_error(TILE_E_STATE, said, tile_cuda_time_end(cpu, &seconds));
    tile_array_destroy(x);
    tile_context_destroy(cpu);
}

TEST_F(CudaTest, MemoryThatRunsOutIsAnErrorAndTheContextGoesOn) {
    tile_array *x = reals({1, 2, 3}), *y = zeros(3), *large = nullptr;
    fake->set("memory", int64_t{1} << 22);
    expect_error(TILE_E_MEMORY, "CUDA: 4194304 bytes of device memory: out of memory",
                 tile_array_create(ctx, TILE_U8, TILE_SHAPE(4 << 20), &large));
    fake->set("memory", int64_t{4} << 30);
    EXPECT_EQ(nullptr, large);
    EXPECT_EQ(TILE_OK, launch(square(), x, y)) << tile_last_error();
    EXPECT_EQ(Reals({1, 4, 9}), read(y));
}

/* Each allocation on the device fails once, in a program with all that needs some. */
TEST_F(CudaTest, EachDeviceAllocationMayFail) {
    tile_kernel *k = square_in_place();
    bool done = false;
    for (int n = 1; !done && n < 40; n++) {
        tile_context *fresh = nullptr, *mine = ctx;
        ASSERT_EQ(TILE_OK, tile_cuda_context_create(0, nullptr, &fresh));
        tile_array *x = nullptr, *s = nullptr;
        tape *t = nullptr;
        ctx = fresh;
        k = square_in_place();
        ctx = mine;
        fake->fail("cuMemAllocAsync", n, 2);
        const double value[] = {3, 5};
        tile_status status = tile_array_create(fresh, TILE_F64, TILE_SHAPE(2), &x);
        if (!status) status = tile_array_request_grad(x);
        if (!status) status = tile_array_create(fresh, TILE_F64, TILE_SHAPE(1), &s);
        if (!status) status = tile_array_write(x, value, sizeof value);
        if (!status) status = tape_create(fresh, nullptr, &t);
        if (!status) status = tile_launch(t, k, TILE_GRID(1), TILE_ARGS(x));
        if (!status) status = tape_sum(t, x, s);
        if (!status) status = tape_backward(t, s);
        done = !status;
        if (status) {
            EXPECT_EQ(TILE_E_MEMORY, status) << n << ": " << tile_last_error();
        } else {
            EXPECT_EQ(Reals({6, 10}), grad(x));
        }
        fake->fail(nullptr, 0, 0);
        tape_destroy(t);
        tile_array_destroy(s);
        tile_array_destroy(x);
        tile_context_destroy(fresh);
    }
    EXPECT_TRUE(done);
}

/* Faults */

TEST_F(CudaTest, ALostDeviceNamesItsLaunchesAndStaysLost) {
    tile_array *x = reals({1, 2, 3}), *y = zeros(3);
    tile_kernel *first = square(), *second = square_in_place();
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, first, grid_for(x), TILE_ARGS(x, y)));
    ASSERT_EQ(TILE_OK, tile_context_sync(ctx));
    fake->fail("kernel", 2, 719);
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, second, grid_for(x), TILE_ARGS(y)));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, first, grid_for(x), TILE_ARGS(x, y)));
    const char *said = "CUDA: synchronisation: unspecified launch failure "
                       "(CUDA_ERROR_LAUNCH_FAILED, 719); one of launches 2 to 3, kernels "
                       "square_in_place to square; the context is lost";
    double host[3];
    tile_array *z = nullptr;
    expect_error(TILE_E_DEVICE, said, tile_context_sync(ctx));
    expect_error(TILE_E_DEVICE, said, tile_array_read(y, host, sizeof host));
    expect_error(TILE_E_DEVICE, said, tile_array_write(y, host, sizeof host));
    expect_error(TILE_E_DEVICE, said, tile_array_create(ctx, TILE_F32, TILE_SHAPE(9999), &z));
    expect_error(TILE_E_DEVICE, said, tile_launch(nullptr, first, grid_for(x), TILE_ARGS(x, y)));
    fake->fail(nullptr, 0, 0);
}

TEST_F(CudaTest, ABackwardOnALostDeviceIsAnErrorAndNoGradientIsRead) {
    tile_array *x = active({1, 2, 3}), *y = zeros(3);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_array *loss = sum(y);
    fake->fail("kernel", 3, 719);
    (void)!tape_backward(record, loss); /* queued, as the contract says */
    double host[3];
    EXPECT_EQ(TILE_E_DEVICE, tile_array_read(tile_array_grad(x), host, sizeof host));
    EXPECT_EQ(TILE_E_DEVICE, tile_array_read(tile_array_grad(x), host, sizeof host));
    fake->fail(nullptr, 0, 0);
}

TEST_F(CheckedCudaTest, InCheckedModeTheLaunchItselfFails) {
    tile_array *x = reals({1, 2, 3}), *y = zeros(3);
    fake->fail("kernel", 1, 719);
    expect_error(TILE_E_DEVICE, "launch 1, of kernel square; the context is lost",
                 tile_launch(nullptr, square(), grid_for(x), TILE_ARGS(x, y)));
    fake->fail(nullptr, 0, 0);
}

TEST_F(CudaTest, ALaunchThatIsRefusedChangesNothing) {
    tile_array *x = active({1, 2, 3}), *y = zeros(3);
    tile_kernel *k = square();
    fake->fail("cuLaunchKernel", 1, 701);
    expect_error(TILE_E_DEVICE, "CUDA: kernel square, launch 1 of 1 blocks of ", launch(k, x, y));
    EXPECT_EQ(0, tape_length(record));
    EXPECT_EQ(Reals({0, 0, 0}), read(y));
    ASSERT_EQ(TILE_OK, launch(k, x, y)) << tile_last_error();
    backward(sum(y));
    EXPECT_EQ(Reals({2, 4, 6}), grad(x));
}

TEST_F(CudaTest, ASweepThatIsRefusedMarksItsGradients) {
    tile_array *x = active({1, 2, 3}), *y = zeros(3);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_array *loss = sum(y);
    backward(loss); /* everything is compiled */
    fake->fail("cuLaunchKernel", 2, 701);
    EXPECT_EQ(TILE_E_DEVICE, tape_backward(record, loss));
    double host[3];
    expect_error(TILE_E_STATE, "the gradient is of a backward that failed half-way",
                 tile_array_read(tile_array_grad(x), host, sizeof host));
    ASSERT_EQ(TILE_OK, tape_zero(record));
    backward(loss);
    EXPECT_EQ(Reals({2, 4, 6}), grad(x));
}

TEST_F(CudaTest, WhatASweepNeedsIsCompiledBeforeItBegins) {
    set_cache(nullptr);
    tile_array *x = active({1, 2, 3}), *y = active({0, 0, 0});
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, launch(square_in_place(), y));
    tile_array *loss = sum(y);
    ASSERT_EQ(TILE_OK, tile_array_fill(tile_array_grad(x), 0.5));
    int refused = 0;
    for (; refused < 40; refused++) {
        fake->fail("nvrtcCompileProgram", 2, 6); /* one more is made each time */
        if (!tape_backward(record, loss)) break;
        ASSERT_EQ(Reals({0.5, 0.5, 0.5}), grad(x)) << refused;
    }
    EXPECT_LT(2, refused); /* adjoints of both kernels and of the sum, sums of gradients */
    EXPECT_EQ(Reals({4.5, 32.5, 108.5}), grad(x));
}

TEST_F(CudaTest, WhatDoesNotCompileIsAnErrorAndTheContextGoesOn) {
    tile_array *x = active({1, 2, 3}), *y = zeros(3);
    set_cache(nullptr);
    tile_kernel *k = map("unknown", [](tile t) { return tile_add(t, tile_mul(t, t)); });
    fake->fail("nvrtcCompileProgram", 1, 6);
    expect_error(TILE_E_DEVICE, "kernel unknown: NVRTC: NVRTC_ERROR_COMPILATION", launch(k, x, y));
    EXPECT_EQ(0, tape_length(record));
    EXPECT_EQ(TILE_OK, launch(k, x, y)) << tile_last_error();
    EXPECT_EQ(Reals({2, 6, 12}), read(y));
}

/* An argument of 32 arrays takes more than what older drivers had room for. */
TEST_F(CudaTest, ALargeArgumentNeedsANewDriver) {
    const auto build = [](tile_builder *b) {
        const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
        tile total = tile_real(b, TILE_F64, 0);
        tile_param p = {};
        for (int k = 0; k < TILE_PARAMS_MAX; k++) {
            const std::string name = "p" + std::to_string(k);
            p = tile_array_param(b, name.c_str(), TILE_F64, 1);
            if (k + 1 < TILE_PARAMS_MAX)
                total = tile_add(total, tile_load(p, TILE_SHAPE(BLOCK), at));
        }
        tile_store(p, total, at);
    };
    for (const int version : {13000, 12000}) {
        fake->set("version", version);
        tile_context *other = nullptr;
        ASSERT_EQ(TILE_OK, tile_cuda_context_create(0, nullptr, &other));
        std::swap(ctx, other);
        tile_array *x = reals({1, 2, 3}), *y = zeros(3);
        std::vector<tile_arg> args(TILE_PARAMS_MAX, tile_arg_array(x));
        args.back() = tile_arg_array(y);
        const tile_status status = tile_launch(nullptr, kernel("many", build), TILE_GRID(1),
                                               {TILE_PARAMS_MAX, args.data()});
        if (version == 13000) {
            EXPECT_EQ(TILE_OK, status) << tile_last_error();
            EXPECT_EQ(Reals({31, 62, 93}), read(y));
        } else {
            expect_error(TILE_E_DEVICE, "bytes, this driver (CUDA 12.0) has room for 4096", status);
        }
        std::swap(ctx, other);
        tile_context_destroy(other);
    }
    fake->set("version", 13000);
}

/* Tiles of 64 KiB and more: shared memory that must be asked for, and tiles that do not fit. */
TEST_F(CudaTest, LargeTilesAreInSharedMemoryOrBesideIt) {
    for (const int64_t n : {8192, 40960}) {
        tile_kernel *k = kernel("large", [&](tile_builder *b) {
            const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
            const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
            const tile t = tile_load(x, TILE_SHAPE(n), TILE_AT(tile_block_start(b, 0, n)));
            tile_store(y, tile_reshape(tile_sum(t, TILE_ALL_AXES), TILE_SHAPE(1)),
                       TILE_AT(tile_block_index(b, 0)));
        });
        tile_array *x = reals(Reals(static_cast<size_t>(3 * n), 1)), *y = zeros(3);
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(3), TILE_ARGS(x, y)))
            << tile_last_error();
        const double wanted = static_cast<double>(n);
        EXPECT_EQ(Reals({wanted, wanted, wanted}), read(y));
        tile_kernel_resources r;
        ASSERT_EQ(TILE_OK, tile_kernel_info(k, 0, &r)) << tile_last_error();
        if (n == 8192) {
            EXPECT_LT(size_t{64} << 10, r.shared_bytes);
        } else {
            EXPECT_EQ(0u, r.shared_bytes);
        }
    }
    EXPECT_LT(0, fake->calls("cuFuncSetAttribute"));
}

TEST_F(CudaTest, SharedMemoryThatIsRefusedIsAnError) {
    tile_kernel *k = kernel("large", [&](tile_builder *b) {
        const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        const tile t = tile_load(x, TILE_SHAPE(8192), TILE_AT(tile_block_start(b, 0, 8192)));
        tile_store(y, tile_reshape(tile_sum(t, TILE_ALL_AXES), TILE_SHAPE(1)),
                   TILE_AT(tile_block_index(b, 0)));
    });
    tile_array *x = zeros(8192), *y = zeros(1);
    fake->fail("cuFuncSetAttribute", 1, 1);
    expect_error(TILE_E_DEVICE,
                 "CUDA: kernel large: ", tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(x, y)));
    EXPECT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(x, y)));
}

TEST_F(CudaTest, ResourcesOfAKernelAndOfItsAdjoint) {
    tile_array *x = active({1, 2, 3}), *y = zeros(3);
    tile_kernel *k = square();
    tile_kernel_resources r;
    ASSERT_EQ(TILE_OK, tile_kernel_info(k, 0, &r)) << tile_last_error();
    EXPECT_EQ(1, r.parts);
    EXPECT_EQ(40, r.registers);
    EXPECT_EQ(16u, r.local_bytes);
    EXPECT_EQ(90, r.architecture);
    EXPECT_LT(0, r.threads);
    expect_error(TILE_E_ARGUMENT, "tile_kernel_info: part is 1, wanted 0 to 0",
                 tile_kernel_info(k, 1, &r));
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    backward(sum(y));
    ASSERT_EQ(TILE_OK, tile_kernel_info(k, 0, &r));
    EXPECT_LT(1, r.parts);
    EXPECT_EQ(TILE_OK, tile_kernel_info(k, r.parts - 1, &r)) << tile_last_error();
}

/* Compiled code on disk */

TEST_F(CudaTest, CompiledCodeIsKeptAndDamageIsSeen) {
    const std::string folder = set_cache("kept");
    EXPECT_EQ("1 compiled, 0 reused: ", use_square());
    EXPECT_EQ("0 compiled, 1 reused: ", use_square());
    const std::string entry = only_entry(folder);
    std::fstream(entry, std::ios::in | std::ios::out | std::ios::binary).seekp(40).put('?');
    EXPECT_EQ("1 compiled, 0 reused: ", use_square());
    EXPECT_EQ("0 compiled, 1 reused: ", use_square());
    EXPECT_EQ(0, truncate(entry.c_str(), 50));
    EXPECT_EQ("1 compiled, 0 reused: ", use_square());
    fake->fail("cuModuleLoadData", 1, 200); /* of another driver */
    EXPECT_EQ("1 compiled, 0 reused: ", use_square());
    EXPECT_EQ("0 compiled, 1 reused: ", use_square());
}

TEST_F(CudaTest, WithoutAFolderCodeIsCompiledEachTime) {
    ASSERT_EQ(0, setenv("XDG_CACHE_HOME", "/proc/nowhere", 1));
    const std::string said = "1 compiled, 0 reused: no cache: the folder /proc/nowhere";
    EXPECT_EQ(said, use_square().substr(0, said.size()));
    EXPECT_EQ(said, use_square().substr(0, said.size()));
}

TEST_F(CudaTest, AFullCacheDropsTheOldest) {
    const std::string folder = set_cache("full");
    ASSERT_EQ(0, setenv("TILE_CACHE_BYTES", "1", 1));
    EXPECT_EQ("1 compiled, 0 reused: ", use_square());
    const std::string first = only_entry(folder);
    tile_array *x = reals({1, 2}), *y = reals({1, 2});
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, multiply(), TILE_GRID(1), TILE_ARGS(x, y, y)));
    EXPECT_NE(first, only_entry(folder));
    unsetenv("TILE_CACHE_BYTES");
}

TEST_F(CudaTest, TimeIsMeasuredOnTheDevice) {
    tile_array *x = reals({1, 2, 3}), *y = zeros(3);
    double seconds = -1;
    expect_error(TILE_E_STATE, "tile_cuda_time_end: tile_cuda_time_begin was not called",
                 tile_cuda_time_end(ctx, &seconds));
    ASSERT_EQ(TILE_OK, tile_cuda_time_begin(ctx));
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, tile_cuda_time_end(ctx, &seconds)) << tile_last_error();
    EXPECT_LT(0, seconds);
    EXPECT_GT(60, seconds);
}

/* Many small writes are not waited for, and go on when the memory for that is used up. */
TEST_F(CudaTest, SmallWritesAreQueued) {
    std::vector<tile_array *> all;
    const int64_t waits = fake->calls("cuStreamSynchronize");
    for (int k = 0; k < 300; k++) all.push_back(reals(Reals(1024, k)));
    EXPECT_EQ(waits + 2, fake->calls("cuStreamSynchronize")); /* 2.3 MiB by 1 MiB */
    for (int k = 0; k < 300; k++) EXPECT_EQ(Reals(1024, k), read(all[static_cast<size_t>(k)]));
}

} // namespace
