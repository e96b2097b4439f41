/* memory_ops.h: loads, stores and atomic additions of tiles; included by tiletape.h.
 *
 * A window is an offset and the shape of a tile: element c of the tile belongs to place offset + c
 * of the array. With indices, the coordinate along axis is offset[axis] + indices[c[axis]]. The sum
 * is a mathematical integer, it never wraps. A place is inside when it is not below zero and not
 * past the end in any dimension. A tile of rank 0 is one element of an array of any rank. */
#ifndef TILE_OPS_MEMORY_OPS_H
#define TILE_OPS_MEMORY_OPS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tile_load: read a window of an array.
 *
 *   t[c] = a[at + c]
 *   da[at + c] += dt[c] inside
 *
 * in       a array, rank n; shape of rank n, or TILE_SCALAR for one element; at n offsets;
 *          gives t tile of shape, dtype of a
 * special  0 outside of a, on either side; no gradient goes there
 * errors   TILE_E_SHAPE rank of shape is neither n nor 0; TILE_E_ARGUMENT
 */
TILE_API tile tile_load(tile_param a, tile_shape shape, tile_offset at);

/* tile_load_padded: tile_load that gives pad outside of the array, rounded to a float dtype.
 *
 * errors   as tile_load; TILE_E_ARGUMENT an integer dtype does not hold pad
 */
TILE_API tile tile_load_padded(tile_param a, tile_shape shape, tile_offset at, double pad);

/* tile_store: write a tile to a window of an array.
 *
 *   a[at + c] = t[c]
 *   dt[c] += da[at + c] inside, then da there = 0
 *
 * in       a array, rank n; t tile of rank n or 0, dtype of a; at n offsets
 * special  places outside of a are skipped
 * repeats  same bits on every run and for any number of threads: blocks count as run in row-major
 *          order
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT
 */
TILE_API void tile_store(tile_param a, tile t, tile_offset at);

/* tile_load_indexed: read slices of an array, gathering along one axis.
 *
 *   t[c] = a[at + c, with at[axis] + indices[c[axis]] along axis]
 *   da += dt at the places read (several elements at one place all add)
 *
 * in       a array, rank n; indices int32 or int64 [shape[axis]]; shape of rank n; at n offsets;
 *          gives t tile of shape, dtype of a
 * special  0 outside of a, on either side: index -1 gives 0 where the offset is 0
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1
 */
TILE_API tile tile_load_indexed(tile_param a, tile indices, tile_shape shape, tile_offset at,
                                int axis);

/* tile_load_indexed_padded: tile_load_indexed that gives pad outside of the array.
 *
 * errors   as tile_load_indexed; TILE_E_ARGUMENT an integer dtype does not hold pad
 */
TILE_API tile tile_load_indexed_padded(tile_param a, tile indices, tile_shape shape, tile_offset at,
                                       int axis, double pad);

/* tile_store_indexed: write t to a, scattering along one axis.
 *
 *   a[at + c, with at[axis] + indices[c[axis]] along axis] = t[c]
 *   dt += da at the written places, then da there = 0
 *
 * in       a array, rank n; indices int32 or int64 [t.shape[axis]]; t tile, rank n, dtype of a;
 *          at n offsets
 * special  places outside of a (either side) are skipped, so index -1 discards where the offset is
 *          0; duplicates: the last element in row-major order wins, and gets the gradient alone
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1
 */
TILE_API void tile_store_indexed(tile_param a, tile indices, tile t, tile_offset at, int axis);

/* tile_atomic_add: add a tile to a window of an array.
 *
 *   previous[c] = a[at + c], then a[at + c] += t[c]
 *   dt[c] += da[at + c] inside; da is kept
 *
 * in       a array, rank n, int32, uint32, int64, uint64 or a float dtype; t tile of rank n or 0,
 *          dtype of a; at n offsets;
 *          gives previous tile of t's shape: a constant, a gradient that reaches it is dropped
 * special  places outside of a are skipped, previous is 0 there; integers wrap; 16-bit floats are
 *          added in float32 and rounded once an addition
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT
 */
TILE_API tile tile_atomic_add(tile_param a, tile t, tile_offset at);

/* tile_atomic_add_indexed: add t to a, scattering along one axis.
 *
 *   x = at + c, with at[axis] + indices[c[axis]] along axis
 *   previous[c] = a[x], then a[x] += t[c], for c in row-major order
 *   dt[c] += da[x] inside; da is kept
 *
 * in       as tile_store_indexed, a of a dtype of tile_atomic_add;
 *          gives previous tile of t's shape: a constant, a gradient that reaches it is dropped
 * special  places outside of a are skipped, previous is 0 there; duplicates all add; integers wrap;
 *          16-bit floats are added in float32 and rounded once an addition
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1
 */
TILE_API tile tile_atomic_add_indexed(tile_param a, tile indices, tile t, tile_offset at, int axis);

/* tile_atomic_sub, tile_atomic_sub_indexed: add -t, which subtracts.
 *
 *   previous[c] = a[x], then a[x] -= t[c]
 *   dt[c] -= da[x] inside; da is kept
 *
 * in       as tile_atomic_add, tile_atomic_add_indexed
 * special  integers wrap, unsigned ones too; the lowest integer is subtracted like any other
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT
 */
TILE_API tile tile_atomic_sub(tile_param a, tile t, tile_offset at);
TILE_API tile tile_atomic_sub_indexed(tile_param a, tile indices, tile t, tile_offset at, int axis);

#ifdef __cplusplus
}
#endif

#define tile_load(...) (tile_here(__FILE__, __LINE__), tile_load(__VA_ARGS__))
#define tile_load_padded(...) (tile_here(__FILE__, __LINE__), tile_load_padded(__VA_ARGS__))
#define tile_store(...) (tile_here(__FILE__, __LINE__), tile_store(__VA_ARGS__))
#define tile_load_indexed(...) (tile_here(__FILE__, __LINE__), tile_load_indexed(__VA_ARGS__))
#define tile_load_indexed_padded(...) \
    (tile_here(__FILE__, __LINE__), tile_load_indexed_padded(__VA_ARGS__))
#define tile_store_indexed(...) (tile_here(__FILE__, __LINE__), tile_store_indexed(__VA_ARGS__))
#define tile_atomic_add(...) (tile_here(__FILE__, __LINE__), tile_atomic_add(__VA_ARGS__))
#define tile_atomic_add_indexed(...) \
    (tile_here(__FILE__, __LINE__), tile_atomic_add_indexed(__VA_ARGS__))
#define tile_atomic_sub(...) (tile_here(__FILE__, __LINE__), tile_atomic_sub(__VA_ARGS__))
#define tile_atomic_sub_indexed(...) \
    (tile_here(__FILE__, __LINE__), tile_atomic_sub_indexed(__VA_ARGS__))
#endif
