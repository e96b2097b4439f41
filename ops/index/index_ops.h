/* index_ops.h: elements of a tile by indices, and running sums; included by tiletape.h. */
#ifndef TILE_OPS_INDEX_OPS_H
#define TILE_OPS_INDEX_OPS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tile_gather: elements of a tile by indices along one axis.
 *
 *   y[c] = x[c, with indices[c[axis]] along axis]
 *   dx += dy at the places read (several elements at one place all add)
 *
 * in       x tile of rank n >= 1; indices int32 or int64 of rank 1;
 *          gives y tile of x's shape, but as long as indices along axis
 * special  0 where the index is outside of x, on either side: index -1 gives 0
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1
 */
TILE_API tile tile_gather(tile x, tile indices, int axis);

/* tile_scatter: a tile with elements replaced by indices along one axis.
 *
 *   y = dst, then y[c, with indices[c[axis]] along axis] = src[c]
 *   ddst += dy, 0 where replaced; dsrc += dy at the places written
 *
 * in       dst tile of rank n >= 1; indices int32 or int64 of rank 1; src of dst's dtype and shape,
 *          but as long as indices along axis
 * special  indices outside of dst (either side) are skipped, so -1 discards; duplicates: the last
 *          element in row-major order wins, and gets the gradient alone
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1
 */
TILE_API tile tile_scatter(tile dst, tile indices, tile src, int axis);

/* tile_scatter_add: a tile with elements added by indices along one axis.
 *
 *   y = dst, then y[c, with indices[c[axis]] along axis] += src[c]
 *   ddst += dy; dsrc += dy at the places
 *
 * in       as tile_scatter, dst not bool
 * special  indices outside of dst (either side) are skipped; duplicates all add, in row-major
 *          order; integers wrap
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1
 */
TILE_API tile tile_scatter_add(tile dst, tile indices, tile src, int axis);

/* How tile_cumsum sums: bits. 0: x[0] to x[k]. */
enum {
    TILE_EXCLUSIVE = 1, /* without x[k] */
    TILE_REVERSE = 2    /* from the other end */
};

/* tile_cumsum: running sum along one axis.
 *
 *   y[k] = sum of x[j], j <= k             TILE_EXCLUSIVE: j < k
 *   dx[j] += sum of dy[k], k >= j          TILE_REVERSE: j >= k, j > k
 *
 * in       x tile of rank n >= 1, not bool; how 0 or bits of the list above
 * special  integers wrap
 * repeats  one after the other, float32 in float64, each rounded once
 * errors   TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1, how
 */
TILE_API tile tile_cumsum(tile x, int axis, unsigned how);

#ifdef __cplusplus
}
#endif

#define tile_gather(...) (tile_here(__FILE__, __LINE__), tile_gather(__VA_ARGS__))
#define tile_scatter(...) (tile_here(__FILE__, __LINE__), tile_scatter(__VA_ARGS__))
#define tile_scatter_add(...) (tile_here(__FILE__, __LINE__), tile_scatter_add(__VA_ARGS__))
#define tile_cumsum(...) (tile_here(__FILE__, __LINE__), tile_cumsum(__VA_ARGS__))
#endif
