/* atomic_ops.h: atomic minimum, maximum, and, or, xor of tiles; included by tiletape.h.
 *
 * Windows, indices and previous values are those of tile_atomic_add (ops/memory/memory_ops.h). */
#ifndef TILE_OPS_ATOMIC_OPS_H
#define TILE_OPS_ATOMIC_OPS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tile_atomic_min, tile_atomic_max: the lesser, the greater of a place and an element.
 *
 *   previous[c] = a[at + c], then a[at + c] = t[c] where t[c] < a[at + c] (max: >)
 *   dt += da for the element that a holds at the end, then da there = 0
 *
 * in       a array, rank n, of a float dtype, int32, int64, uint32 or uint64; t tile of rank n or
 *          0, dtype of a; at n offsets;
 *          gives previous tile of t's shape: a constant, a gradient that reaches it is dropped
 * special  places outside of a are skipped, previous is 0 there; a tie leaves a as it is, and so
 *          does NaN on either side. One wins all of the gradient: a itself when it is as good, else
 *          the first element, in the order of blocks and then row-major, that holds the final value
 * repeats  same bits on every run and for any number of threads: blocks count as run in row-major
 *          order
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT
 */
TILE_API tile tile_atomic_min(tile_param a, tile t, tile_offset at);
TILE_API tile tile_atomic_max(tile_param a, tile t, tile_offset at);

/* tile_atomic_min_indexed, tile_atomic_max_indexed: the same, scattering along one axis.
 *
 *   x = at + c, with at[axis] + indices[c[axis]] along axis
 *   previous[c] = a[x], then a[x] = t[c] where t[c] < a[x] (max: >), for c in row-major order
 *
 * in       indices int32 or int64 [t.shape[axis]]; else as tile_atomic_min, t of rank n
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1
 */
TILE_API tile tile_atomic_min_indexed(tile_param a, tile indices, tile t, tile_offset at, int axis);
TILE_API tile tile_atomic_max_indexed(tile_param a, tile indices, tile t, tile_offset at, int axis);

/* tile_atomic_and, tile_atomic_or, tile_atomic_xor: bit by bit.
 *
 *   previous[c] = a[at + c], then a[at + c] = a[at + c] & t[c] (or: |, xor: ^)
 *
 * in       a array, rank n, of int32, int64, uint32 or uint64; t tile of rank n or 0, dtype of a;
 *          at n offsets; gives previous tile of t's shape
 * special  places outside of a are skipped, previous is 0 there
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT; no gradient exists: TILE_E_NO_ADJOINT
 */
TILE_API tile tile_atomic_and(tile_param a, tile t, tile_offset at);
TILE_API tile tile_atomic_or(tile_param a, tile t, tile_offset at);
TILE_API tile tile_atomic_xor(tile_param a, tile t, tile_offset at);

/* tile_atomic_and_indexed, tile_atomic_or_indexed, tile_atomic_xor_indexed: the same, scattering
 * along one axis.
 *
 * in       indices int32 or int64 [t.shape[axis]]; else as tile_atomic_and, t of rank n
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT axis outside 0..n-1
 */
TILE_API tile tile_atomic_and_indexed(tile_param a, tile indices, tile t, tile_offset at, int axis);
TILE_API tile tile_atomic_or_indexed(tile_param a, tile indices, tile t, tile_offset at, int axis);
TILE_API tile tile_atomic_xor_indexed(tile_param a, tile indices, tile t, tile_offset at, int axis);

#ifdef __cplusplus
}
#endif

#define tile_atomic_min(...) (tile_here(__FILE__, __LINE__), tile_atomic_min(__VA_ARGS__))
#define tile_atomic_min_indexed(...) \
    (tile_here(__FILE__, __LINE__), tile_atomic_min_indexed(__VA_ARGS__))
#define tile_atomic_max(...) (tile_here(__FILE__, __LINE__), tile_atomic_max(__VA_ARGS__))
#define tile_atomic_max_indexed(...) \
    (tile_here(__FILE__, __LINE__), tile_atomic_max_indexed(__VA_ARGS__))
#define tile_atomic_and(...) (tile_here(__FILE__, __LINE__), tile_atomic_and(__VA_ARGS__))
#define tile_atomic_and_indexed(...) \
    (tile_here(__FILE__, __LINE__), tile_atomic_and_indexed(__VA_ARGS__))
#define tile_atomic_or(...) (tile_here(__FILE__, __LINE__), tile_atomic_or(__VA_ARGS__))
#define tile_atomic_or_indexed(...) \
    (tile_here(__FILE__, __LINE__), tile_atomic_or_indexed(__VA_ARGS__))
#define tile_atomic_xor(...) (tile_here(__FILE__, __LINE__), tile_atomic_xor(__VA_ARGS__))
#define tile_atomic_xor_indexed(...) \
    (tile_here(__FILE__, __LINE__), tile_atomic_xor_indexed(__VA_ARGS__))
#endif
