/* wave_kernel.h: the acoustic wave step as a tile kernel; see wave_hand.h for the equation. */
#ifndef TILE_BENCHMARKS_WAVE_KERNEL_H
#define TILE_BENCHMARKS_WAVE_KERNEL_H

#include <tiletape.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Parameters: prev, p, v, s, next (arrays of rank 2), k (real). */
tile_status wave_kernel_build(tile_context *ctx, tile_dtype dtype, int64_t tile_rows,
                              int64_t tile_cols, tile_kernel **kernel);

/* next = p + c1 (n + s + e + w) + c2 (nn + ss + ee + ww) with constant coefficients: linear, so its
 * adjoint needs no value of p. Parameters: p, next. */
tile_status wave_kernel_build_smooth(tile_context *ctx, tile_dtype dtype, int64_t tile_rows,
                                     int64_t tile_cols, tile_kernel **kernel);

#ifdef __cplusplus
}
#endif
#endif
