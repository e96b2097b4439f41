/* reduce_ops.h: reductions of tiles over some axes; included by tiletape.h.
 *
 * Reduced dimensions are dropped; tile_reshape brings them back with extent 1 where that is wanted.
 * All orders of elements are row-major. */
#ifndef TILE_OPS_REDUCE_OPS_H
#define TILE_OPS_REDUCE_OPS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A set of axes: TILE_AXES(0, 2), or all there are. */
enum { TILE_ALL_AXES = 1 << 30 };
#define TILE_AXES(...) tile_axes_of(TILE_SHAPE(__VA_ARGS__))

/* tile_axes_of: the set of the axes that a shape lists, for TILE_AXES. */
static inline unsigned tile_axes_of(tile_shape axes) {
    unsigned set = 0;
    int d;
    for (d = 0; d < axes.rank && d < TILE_RANK_MAX; d++) {
        const bool known = axes.extent[d] >= 0 && axes.extent[d] < TILE_RANK_MAX;
        set |= 1u << (known ? (int)axes.extent[d] : TILE_RANK_MAX);
    }
    return set;
}

/* tile_sum: sum over axes.
 *
 *   y = sum x
 *   dx += dy, broadcast
 *
 * special  integers wrap
 * repeats  one order of sums, fixed by the shape: accumulators over blocks, then a pairwise tree;
 *          block results of float32 are summed in float64
 * errors   TILE_E_ARGUMENT an axis outside 0..rank-1; TILE_E_DTYPE bool
 * source   N. J. Higham, The accuracy of floating point summation, SIAM J. Sci. Comput. 14 (1993)
 */
TILE_API tile tile_sum(tile x, unsigned axes);

/* tile_mean: sum over axes, divided by the number of elements.
 *
 *   y = (sum x) / n
 *   dx += dy / n, broadcast
 *
 * errors   TILE_E_ARGUMENT an axis outside 0..rank-1; TILE_E_DTYPE not a float tile
 */
TILE_API tile tile_mean(tile x, unsigned axes);

/* tile_prod: product over axes.
 *
 *   y = product of x
 *   dx[k] += dy * product of the other x
 *
 * special  right with zeros among x; integers wrap
 * errors   TILE_E_ARGUMENT an axis outside 0..rank-1; TILE_E_DTYPE bool
 */
TILE_API tile tile_prod(tile x, unsigned axes);

/* tile_reduce_min, tile_reduce_max: least, greatest over axes.
 *
 *   y = min x, max x
 *   dx[k] += dy for the first k that holds y, 0 for the others
 *
 * special  a number wins over NaN
 * errors   TILE_E_ARGUMENT an axis outside 0..rank-1
 */
TILE_API tile tile_reduce_min(tile x, unsigned axes);
TILE_API tile tile_reduce_max(tile x, unsigned axes);

/* tile_argmin, tile_argmax: where the least, greatest is.
 *
 *   y = row-major number over the reduced axes of the first element that holds the least, greatest
 *
 * in       gives y tile int64
 * special  a number wins over NaN; 0 when all are NaN
 * errors   TILE_E_ARGUMENT an axis outside 0..rank-1
 */
TILE_API tile tile_argmin(tile x, unsigned axes);
TILE_API tile tile_argmax(tile x, unsigned axes);

#ifdef __cplusplus
}
#endif

#define tile_sum(...) (tile_here(__FILE__, __LINE__), tile_sum(__VA_ARGS__))
#define tile_mean(...) (tile_here(__FILE__, __LINE__), tile_mean(__VA_ARGS__))
#define tile_prod(...) (tile_here(__FILE__, __LINE__), tile_prod(__VA_ARGS__))
#define tile_reduce_min(...) (tile_here(__FILE__, __LINE__), tile_reduce_min(__VA_ARGS__))
#define tile_reduce_max(...) (tile_here(__FILE__, __LINE__), tile_reduce_max(__VA_ARGS__))
#define tile_argmin(...) (tile_here(__FILE__, __LINE__), tile_argmin(__VA_ARGS__))
#define tile_argmax(...) (tile_here(__FILE__, __LINE__), tile_argmax(__VA_ARGS__))
#endif
