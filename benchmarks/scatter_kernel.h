/* scatter_kernel.h: indexed additions as a tile kernel: y[index[k]] += x[k]. */
#ifndef TILE_BENCHMARKS_SCATTER_KERNEL_H
#define TILE_BENCHMARKS_SCATTER_KERNEL_H

#include <tiletape.h>

enum { SCATTER_TILE = 4096 }; /* additions of a block */

/* Parameters: x (float32), index (int32), y (float32). */
tile_status scatter_kernel_build(tile_context *ctx, tile_kernel **kernel);

#endif
