/* shape_ops.h: making tiles and moving their elements; included by tiletape.h. */
#ifndef TILE_OPS_SHAPE_OPS_H
#define TILE_OPS_SHAPE_OPS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tile_full: a constant tile.
 *
 *   y[c] = value
 *
 * special  value is rounded to a float dtype
 * errors   TILE_E_SHAPE; TILE_E_DTYPE; TILE_E_ARGUMENT an integer dtype does not hold value
 */
TILE_API tile tile_full(tile_builder *b, tile_dtype dtype, tile_shape shape, double value);

/* tile_zeros, tile_ones: tile_full of 0, of 1. */
TILE_API tile tile_zeros(tile_builder *b, tile_dtype dtype, tile_shape shape);
TILE_API tile tile_ones(tile_builder *b, tile_dtype dtype, tile_shape shape);

/* tile_iota: coordinates along one axis.
 *
 *   y[c] = start + c[axis]
 *   dstart += sum dy
 *
 * in       start tile of rank 0, of dtype, or int64 (which is then converted)
 * special  integers wrap
 * errors   TILE_E_SHAPE; TILE_E_DTYPE; TILE_E_ARGUMENT axis outside 0..rank-1, dtype bool
 */
TILE_API tile tile_iota(tile_builder *b, tile_dtype dtype, tile_shape shape, int axis, tile start);

/* tile_broadcast: repeat a tile to a shape, as NumPy does.
 *
 *   y[c] = t[c], dimensions aligned at the last; 0 in place of c[d] where t has extent 1 or none
 *   dt += sum of dy over the repeated dimensions
 *
 * errors   TILE_E_SHAPE t does not broadcast to shape
 */
TILE_API tile tile_broadcast(tile t, tile_shape shape);

/* tile_reshape: the same elements in row-major order.
 *
 *   y[i] = t[i], i the row-major number
 *   dt = dy in the shape of t
 *
 * errors   TILE_E_SHAPE shape has another number of elements
 */
TILE_API tile tile_reshape(tile t, tile_shape shape);

/* TILE_ORDER(1, 0): dimensions in an order, for tile_permute. */
#define TILE_ORDER(...) TILE_SHAPE(__VA_ARGS__)

/* tile_permute: put dimensions in another order.
 *
 *   y[c] = t[x], x[order[k]] = c[k]
 *   dt = dy permuted by the inverse
 *
 * in       order each of 0..rank-1 once; see TILE_ORDER
 * errors   TILE_E_ARGUMENT order is no permutation of the dimensions
 */
TILE_API tile tile_permute(tile t, tile_shape order);

/* tile_transpose: swap the last two dimensions.
 *
 * errors   TILE_E_SHAPE rank below 2
 */
TILE_API tile tile_transpose(tile t);

/* tile_view: part of a tile.
 *
 *   y[c] = t[offset + c]
 *   dt[offset + c] += dy[c] inside
 *
 * in       t of rank n; offset n integers, constant or rank-0 tiles; shape of rank n, or
 *          TILE_SCALAR for one element
 * special  0 outside of t, on either side; no gradient goes there
 * errors   TILE_E_SHAPE
 */
TILE_API tile tile_view(tile t, tile_offset offset, tile_shape shape);

/* tile_assign: a tile with part of it replaced.
 *
 *   y = dst, then y[offset + c] = src[c]
 *   ddst += dy, 0 where replaced; dsrc[c] += dy[offset + c] inside
 *
 * in       src of dst's dtype, and of its rank or rank 0; offset as for tile_view
 * special  places outside of dst are skipped
 * errors   TILE_E_SHAPE, TILE_E_DTYPE
 */
TILE_API tile tile_assign(tile dst, tile src, tile_offset offset);

/* tile_concat: tiles one after the other along an axis.
 *
 *   y = parts[0], parts[1], ... along axis
 *   dparts[k] += its part of dy
 *
 * in       parts at least one, of one dtype, shapes equal but along axis
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT no parts, axis outside 0..rank-1
 */
TILE_API tile tile_concat(tile_list parts, int axis);

#ifdef __cplusplus
}
#endif

#define tile_full(...) (tile_here(__FILE__, __LINE__), tile_full(__VA_ARGS__))
#define tile_zeros(...) (tile_here(__FILE__, __LINE__), tile_zeros(__VA_ARGS__))
#define tile_ones(...) (tile_here(__FILE__, __LINE__), tile_ones(__VA_ARGS__))
#define tile_iota(...) (tile_here(__FILE__, __LINE__), tile_iota(__VA_ARGS__))
#define tile_broadcast(...) (tile_here(__FILE__, __LINE__), tile_broadcast(__VA_ARGS__))
#define tile_reshape(...) (tile_here(__FILE__, __LINE__), tile_reshape(__VA_ARGS__))
#define tile_permute(...) (tile_here(__FILE__, __LINE__), tile_permute(__VA_ARGS__))
#define tile_transpose(...) (tile_here(__FILE__, __LINE__), tile_transpose(__VA_ARGS__))
#define tile_view(...) (tile_here(__FILE__, __LINE__), tile_view(__VA_ARGS__))
#define tile_assign(...) (tile_here(__FILE__, __LINE__), tile_assign(__VA_ARGS__))
#define tile_concat(...) (tile_here(__FILE__, __LINE__), tile_concat(__VA_ARGS__))
#endif
