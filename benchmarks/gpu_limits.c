/* gpu_limits.c: the copy bandwidth and the rate of multiply-adds of a CUDA device. */
#include "benchmarks/gpu_limits.h"

#include <stdlib.h>

#include "benchmarks/bench.h"
#include "cuda/cuda_device.h"
#include "cuda/nvrtc.h"

enum { ROUNDS = 5, COPIES = 20, THREADS = 256, BLOCKS_OF_ONE = 16, CHAINS = 8, STEPS = 1 << 14 };

enum { ATTRIBUTE_PROCESSORS = 16 }; /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */

static void must_be_done(int result, const char *what) {
    if (result == 0) return;
    fprintf(stderr, "%s: result %d of the driver\n", what, result);
    exit(1);
}

double gpu_copy_rate(tile_context *ctx, int64_t bytes) {
    tile_cuda_device *d = tile_cuda_device_of(ctx);
    tile_cu_address from, to;
    double best = 0;
    bench_must(tile_cuda_enter(d));
    must_be_done(d->driver->alloc(&from, (size_t)bytes), "cuMemAlloc");
    must_be_done(d->driver->alloc(&to, (size_t)bytes), "cuMemAlloc");
    for (int round = 0; round <= ROUNDS; round++) {
        must_be_done(d->driver->stream_sync(d->stream), "cuStreamSynchronize");
        const double begin = bench_now();
        for (int k = 0; k < COPIES; k++)
            must_be_done(d->driver->copy(to, from, (size_t)bytes, d->stream), "cuMemcpyDtoDAsync");
        must_be_done(d->driver->stream_sync(d->stream), "cuStreamSynchronize");
        const double rate = 2.0 * COPIES * (double)bytes / (bench_now() - begin);
        if (round > 0 && rate > best) best = rate;
    }
    must_be_done(d->driver->free(from), "cuMemFree");
    must_be_done(d->driver->free(to), "cuMemFree");
    tile_cuda_leave(d);
    return best;
}

/* Chains that do not wait for each other. */
static const char *const source =
    "extern \"C\" __global__ void multiply_add(float *out, float a, float b, int steps) {\n"
    "    float x[8];\n"
    "    for (int c = 0; c < 8; c++) x[c] = (float)(threadIdx.x + c);\n"
    "    for (int k = 0; k < steps; k++)\n"
    "        for (int c = 0; c < 8; c++) x[c] = __fmaf_rn(x[c], a, b);\n"
    "    float sum = 0;\n"
    "    for (int c = 0; c < 8; c++) sum += x[c];\n"
    "    if (sum == 0.123f) out[0] = sum;\n"
    "}\n";

double gpu_fma_rate(tile_context *ctx) {
    tile_cuda_device *d = tile_cuda_device_of(ctx);
    char architecture[TILE_NVRTC_NAME];
    tile_cubin cubin;
    tile_cu_handle module, function;
    tile_cu_address out;
    int processors = 0, steps = STEPS;
    float a = 0.999f, b = 0.5f;
    void *arguments[] = {&out, &a, &b, &steps};
    double best = 0;
    bench_must(tile_nvrtc_architecture(d->major, d->minor, architecture));
    bench_must(tile_nvrtc_compile(source, "multiply_add", architecture, &cubin));
    bench_must(tile_cuda_enter(d));
    must_be_done(d->driver->device_attribute(&processors, ATTRIBUTE_PROCESSORS, d->number),
                 "cuDeviceGetAttribute");
    must_be_done(d->driver->module_load(&module, cubin.data), "cuModuleLoadData");
    must_be_done(d->driver->module_function(&function, module, "multiply_add"),
                 "cuModuleGetFunction");
    must_be_done(d->driver->alloc(&out, sizeof(float)), "cuMemAlloc");
    const unsigned blocks = (unsigned)(processors * BLOCKS_OF_ONE);
    for (int round = 0; round <= ROUNDS; round++) {
        must_be_done(d->driver->stream_sync(d->stream), "cuStreamSynchronize");
        const double begin = bench_now();
        must_be_done(d->driver->launch(function, blocks, 1, 1, THREADS, 1, 1, 0, d->stream,
                                       arguments, NULL),
                     "cuLaunchKernel");
        must_be_done(d->driver->stream_sync(d->stream), "cuStreamSynchronize");
        const double rate = 2.0 * CHAINS * STEPS * THREADS * (double)blocks / (bench_now() - begin);
        if (round > 0 && rate > best) best = rate;
    }
    must_be_done(d->driver->free(out), "cuMemFree");
    must_be_done(d->driver->module_unload(module), "cuModuleUnload");
    tile_cuda_leave(d);
    tile_cubin_clear(&cubin);
    return best;
}
