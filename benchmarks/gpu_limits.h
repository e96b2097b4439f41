/* gpu_limits.h: what a CUDA device can do at most, measured without our kernels. */
#ifndef TILE_BENCHMARKS_GPU_LIMITS_H
#define TILE_BENCHMARKS_GPU_LIMITS_H

#include <tiletape.h>

/* Bytes a second of the driver's copy within the device, read and written ones counted; float32
 * operations a second of fused multiply-adds written in CUDA C, two for each. */
double gpu_copy_rate(tile_context *ctx, int64_t bytes);
double gpu_fma_rate(tile_context *ctx);

#endif
