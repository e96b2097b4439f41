/* where_ops.h: stores of chosen elements; included by tiletape.h.
 *
 * Windows and indices are those of tile_store (ops/memory/memory_ops.h). */
#ifndef TILE_OPS_WHERE_OPS_H
#define TILE_OPS_WHERE_OPS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tile_store_where: write the chosen elements of a tile to a window of an array.
 *
 *   a[at + c] = t[c] where mask[c]
 *   dt[c] += da[at + c] where mask[c], inside, then da there = 0
 *
 * in       a array, rank n; mask bool tile that broadcasts to t's shape; t tile of rank n or 0,
 *          dtype of a; at n offsets
 * special  places outside of a, and those not chosen, are as they were
 * repeats  same bits on every run and for any number of threads: blocks count as run in row-major
 *          order
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT
 */
TILE_API void tile_store_where(tile_param a, tile mask, tile t, tile_offset at);

/* tile_store_where_indexed: the same, scattering along one axis.
 *
 *   a[at + c, with at[axis] + indices[c[axis]] along axis] = t[c] where mask[c]
 *   dt += da for the last chosen element of a place, then da there = 0
 *
 * in       indices int32 or int64 [t.shape[axis]]; else as tile_store_where, t of rank n
 * special  places outside of a are skipped; duplicates: the last chosen element in row-major order
 *          wins, and gets the gradient alone
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1
 */
TILE_API void tile_store_where_indexed(tile_param a, tile indices, tile mask, tile t,
                                       tile_offset at, int axis);

#ifdef __cplusplus
}
#endif

#define tile_store_where(...) (tile_here(__FILE__, __LINE__), tile_store_where(__VA_ARGS__))
#define tile_store_where_indexed(...) \
    (tile_here(__FILE__, __LINE__), tile_store_where_indexed(__VA_ARGS__))
#endif
