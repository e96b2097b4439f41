/* burgers_kernel.h: the Burgers step as a tile kernel; see burgers_hand.h for the equation. */
#ifndef TILE_BENCHMARKS_BURGERS_KERNEL_H
#define TILE_BENCHMARKS_BURGERS_KERNEL_H

#include <tiletape.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Parameters: u, v, u_next, v_next (arrays of rank 2), a, b (real). */
tile_status burgers_kernel_build(tile_context *ctx, tile_dtype dtype, int64_t tile_rows,
                                 int64_t tile_cols, tile_kernel **kernel);

#ifdef __cplusplus
}
#endif
#endif
