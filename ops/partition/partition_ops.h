/* partition_ops.h: partition views: an array cut into tiles; included by tiletape.h.
 *
 * A view cuts an array of extents e into tiles of one shape S. Tile I begins at place I * step, the
 * step being S unless one is given: element c of it is place I * step + c of the array. Tile I
 * exists when I >= 0 and I * step < e in every dimension. S and step need no powers of two and the
 * tiles at the far end may stick out. A step below S makes tiles that overlap, one above S leaves
 * gaps.
 *
 * Every call has a masked form, for tiles that stick out: elements outside of the array are the
 * padding in a load and are skipped in a write. An index of a tile that does not exist and, in the
 * plain form, a tile that sticks out are execution errors: the access touches nothing, the block
 * stops there, the other blocks run, and the error of the first such block comes out at the next
 * synchronisation (in checked mode at tile_launch, and nothing has changed). Nothing wraps,
 * whatever the index is.
 *
 * What is written is first made a tile of the view: it is converted to the array's dtype, which has
 * to hold every value of its own (float32 to float64, say), and spread as NumPy does; its gradient
 * is the sum over the elements it was spread to, rounded once. An array that overlaps itself (a
 * stride of 0, say) may be loaded through a view; a launch that writes it is refused. Where tiles
 * of a view overlap, writes go by the order of blocks, as with tile_store and tile_atomic_add.
 *
 * index: as many rank-0 integer tiles as dimensions: TILE_AT(i, j), or TILE_AT_ZERO. */
#ifndef TILE_OPS_PARTITION_OPS_H
#define TILE_OPS_PARTITION_OPS_H

#include <math.h>

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An array parameter cut into tiles. Copy it freely. */
typedef struct tile_partition {
    tile_param array;
    tile_shape shape; /* of a tile */
    tile_shape step;  /* from the beginning of a tile to that of the next */
} tile_partition;

/* Padding of masked loads: any number that the dtype holds; integers hold neither of the last four.
 */
#define TILE_PAD_ZERO 0.0
#define TILE_PAD_NEGATIVE_ZERO (-0.0)
#define TILE_PAD_NAN ((double)NAN)
#define TILE_PAD_POSITIVE_INF ((double)INFINITY)
#define TILE_PAD_NEGATIVE_INF (-(double)INFINITY)

/* What an atomic access orders around it. Loads: relaxed or acquire. Stores: relaxed or release.
 * What reads and writes: relaxed. */
typedef enum tile_memory_order {
    TILE_ORDER_RELAXED,
    TILE_ORDER_ACQUIRE,
    TILE_ORDER_RELEASE
} tile_memory_order;

/* Among whom. What reads and writes: a block or the device. */
typedef enum tile_thread_scope {
    TILE_SCOPE_BLOCK,
    TILE_SCOPE_DEVICE,
    TILE_SCOPE_SYSTEM
} tile_thread_scope;

/* tile_partition_view: an array cut into tiles that lie side by side.
 *
 * in       a array, rank n; shape n extents, at least 1
 * errors   TILE_E_ARGUMENT; TILE_E_SHAPE
 */
TILE_API tile_partition tile_partition_view(tile_param a, tile_shape shape);

/* tile_partition_view_stepped: the same with a step of its own in each dimension.
 *
 * in       step n extents, at least 1
 * errors   TILE_E_ARGUMENT; TILE_E_SHAPE
 */
TILE_API tile_partition tile_partition_view_stepped(tile_param a, tile_shape shape,
                                                    tile_shape step);

/* tile_partition_span: the array that is cut. */
TILE_API tile_param tile_partition_span(tile_partition p);

/* tile_partition_count: how many tiles there are along dimension d: ceil(e / step), rank-0 int64,
 * known at the launch.
 *
 * errors   TILE_E_ARGUMENT d outside 0..n-1
 */
TILE_API tile tile_partition_count(tile_partition p, int d);

/* tile_partition_counts: the same for an array, on the host, in every dimension: what a grid of one
 * block a tile is made of.
 *
 * special  rank -1, and tile_last_error says why, when a is NULL or step is not like its shape
 */
TILE_API tile_shape tile_partition_counts(const tile_array *a, tile_shape step);

/* tile_partition_load, tile_partition_load_masked: read a tile.
 *
 *   t[c] = a[index * step + c]; masked: pad outside
 *   da[index * step + c] += dt[c] inside
 *
 * errors   TILE_E_SHAPE, TILE_E_DTYPE; TILE_E_ARGUMENT an integer dtype does not hold pad
 * source   CUDA Tile C++ API reference 13.5, partition_view
 */
TILE_API tile tile_partition_load(tile_partition p, tile_offset index);
TILE_API tile tile_partition_load_masked(tile_partition p, tile_offset index, double pad);

/* tile_partition_store, tile_partition_store_masked: write a tile.
 *
 *   a[index * step + c] = t[c]; masked: inside
 *   dt[c] += da[index * step + c] inside, then da there = 0
 *
 * repeats  same bits on every run and for any number of threads: blocks count as run in row-major
 *          order
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT
 * source   CUDA Tile C++ API reference 13.5, partition_view
 */
TILE_API void tile_partition_store(tile_partition p, tile t, tile_offset index);
TILE_API void tile_partition_store_masked(tile_partition p, tile t, tile_offset index);

/* tile_partition_atomic_load, tile_partition_atomic_load_masked: tile_partition_load,
 * tile_partition_load_masked with an order and a scope. One element is one access.
 *
 * errors   as those; TILE_E_ARGUMENT an order that is neither relaxed nor acquire
 */
TILE_API tile tile_partition_atomic_load(tile_partition p, tile_offset index,
                                         tile_memory_order order, tile_thread_scope scope);
TILE_API tile tile_partition_atomic_load_masked(tile_partition p, tile_offset index, double pad,
                                                tile_memory_order order, tile_thread_scope scope);

/* tile_partition_atomic_store, tile_partition_atomic_store_masked: tile_partition_store,
 * tile_partition_store_masked with an order and a scope. One element is one access.
 *
 * errors   as those; TILE_E_ARGUMENT an order that is neither relaxed nor release
 */
TILE_API void tile_partition_atomic_store(tile_partition p, tile t, tile_offset index,
                                          tile_memory_order order, tile_thread_scope scope);
TILE_API void tile_partition_atomic_store_masked(tile_partition p, tile t, tile_offset index,
                                                 tile_memory_order order, tile_thread_scope scope);

/* tile_partition_atomic_add, tile_partition_atomic_add_masked: add to a tile.
 *
 *   previous[c] = a[x], then a[x] += t[c], x = index * step + c; masked: inside
 *   dt[c] += da[x] inside; da is kept
 *
 * in       a not bool; gives previous tile of the view's shape, 0 outside: a constant, a gradient
 *          that reaches it is dropped
 * special  integers wrap
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_SHAPE, TILE_E_DTYPE; TILE_E_ARGUMENT an order or scope that is not allowed
 * source   CUDA Tile C++ API reference 13.5, partition_view
 */
TILE_API tile tile_partition_atomic_add(tile_partition p, tile t, tile_offset index,
                                        tile_memory_order order, tile_thread_scope scope);
TILE_API tile tile_partition_atomic_add_masked(tile_partition p, tile t, tile_offset index,
                                               tile_memory_order order, tile_thread_scope scope);

/* tile_partition_atomic_sub, tile_partition_atomic_sub_masked: subtract from it.
 *
 *   previous[c] = a[x], then a[x] -= t[c]; else as tile_partition_atomic_add
 *   dt[c] -= da[x] inside; da is kept
 *
 * special  integers wrap; the lowest one is subtracted like any other
 * errors   TILE_E_SHAPE, TILE_E_DTYPE; TILE_E_ARGUMENT an order or scope that is not allowed
 * source   CUDA Tile C++ API reference 13.5, partition_view
 */
TILE_API tile tile_partition_atomic_sub(tile_partition p, tile t, tile_offset index,
                                        tile_memory_order order, tile_thread_scope scope);
TILE_API tile tile_partition_atomic_sub_masked(tile_partition p, tile t, tile_offset index,
                                               tile_memory_order order, tile_thread_scope scope);

/* tile_partition_atomic_min, tile_partition_atomic_min_masked: the lesser of a place and t.
 *
 *   previous[c] = a[x], then a[x] = t[c] where t[c] < a[x], x = index * step + c; masked: inside
 *   dt += da for the element that a holds at the end, then da there = 0
 *
 * in       a of a float dtype, int32, int64, uint32 or uint64; gives previous as
 *          tile_partition_atomic_add
 * special  ties, NaN and who wins the gradient: tile_atomic_min
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_SHAPE, TILE_E_DTYPE; TILE_E_ARGUMENT an order or scope that is not allowed
 * source   CUDA Tile C++ API reference 13.5, partition_view
 */
TILE_API tile tile_partition_atomic_min(tile_partition p, tile t, tile_offset index,
                                        tile_memory_order order, tile_thread_scope scope);
TILE_API tile tile_partition_atomic_min_masked(tile_partition p, tile t, tile_offset index,
                                               tile_memory_order order, tile_thread_scope scope);

/* tile_partition_atomic_max, tile_partition_atomic_max_masked: the greater, else the same.
 *
 *   previous[c] = a[x], then a[x] = t[c] where t[c] > a[x]
 *
 * errors   TILE_E_SHAPE, TILE_E_DTYPE; TILE_E_ARGUMENT an order or scope that is not allowed
 * source   CUDA Tile C++ API reference 13.5, partition_view
 */
TILE_API tile tile_partition_atomic_max(tile_partition p, tile t, tile_offset index,
                                        tile_memory_order order, tile_thread_scope scope);
TILE_API tile tile_partition_atomic_max_masked(tile_partition p, tile t, tile_offset index,
                                               tile_memory_order order, tile_thread_scope scope);

/* tile_partition_atomic_and, tile_partition_atomic_and_masked: bit by bit.
 *
 *   previous[c] = a[x], then a[x] = a[x] & t[c], x = index * step + c; masked: inside
 *
 * in       a of int32, int64, uint32 or uint64; gives previous as tile_partition_atomic_add
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_SHAPE, TILE_E_DTYPE; TILE_E_ARGUMENT an order or scope that is not allowed; no
 *          gradient exists: TILE_E_NO_ADJOINT
 * source   CUDA Tile C++ API reference 13.5, partition_view
 */
TILE_API tile tile_partition_atomic_and(tile_partition p, tile t, tile_offset index,
                                        tile_memory_order order, tile_thread_scope scope);
TILE_API tile tile_partition_atomic_and_masked(tile_partition p, tile t, tile_offset index,
                                               tile_memory_order order, tile_thread_scope scope);

/* tile_partition_atomic_or, tile_partition_atomic_or_masked: the same with |.
 *
 *   previous[c] = a[x], then a[x] = a[x] | t[c], x = index * step + c; masked: inside
 *
 * errors   TILE_E_SHAPE, TILE_E_DTYPE; TILE_E_ARGUMENT an order or scope that is not allowed; no
 *          gradient exists: TILE_E_NO_ADJOINT
 * source   CUDA Tile C++ API reference 13.5, partition_view
 */
TILE_API tile tile_partition_atomic_or(tile_partition p, tile t, tile_offset index,
                                       tile_memory_order order, tile_thread_scope scope);
TILE_API tile tile_partition_atomic_or_masked(tile_partition p, tile t, tile_offset index,
                                              tile_memory_order order, tile_thread_scope scope);

/* tile_partition_atomic_xor, tile_partition_atomic_xor_masked: the same with ^.
 *
 *   previous[c] = a[x], then a[x] = a[x] ^ t[c], x = index * step + c; masked: inside
 *
 * errors   TILE_E_SHAPE, TILE_E_DTYPE; TILE_E_ARGUMENT an order or scope that is not allowed; no
 *          gradient exists: TILE_E_NO_ADJOINT
 * source   CUDA Tile C++ API reference 13.5, partition_view
 */
TILE_API tile tile_partition_atomic_xor(tile_partition p, tile t, tile_offset index,
                                        tile_memory_order order, tile_thread_scope scope);
TILE_API tile tile_partition_atomic_xor_masked(tile_partition p, tile t, tile_offset index,
                                               tile_memory_order order, tile_thread_scope scope);

#ifdef __cplusplus
}
#endif

#define tile_partition_view(...) (tile_here(__FILE__, __LINE__), tile_partition_view(__VA_ARGS__))
#define tile_partition_view_stepped(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_view_stepped(__VA_ARGS__))
#define tile_partition_count(...) (tile_here(__FILE__, __LINE__), tile_partition_count(__VA_ARGS__))
#define tile_partition_load(...) (tile_here(__FILE__, __LINE__), tile_partition_load(__VA_ARGS__))
#define tile_partition_load_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_load_masked(__VA_ARGS__))
#define tile_partition_store(...) (tile_here(__FILE__, __LINE__), tile_partition_store(__VA_ARGS__))
#define tile_partition_store_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_store_masked(__VA_ARGS__))
#define tile_partition_atomic_load(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_load(__VA_ARGS__))
#define tile_partition_atomic_load_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_load_masked(__VA_ARGS__))
#define tile_partition_atomic_store(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_store(__VA_ARGS__))
#define tile_partition_atomic_store_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_store_masked(__VA_ARGS__))
#define tile_partition_atomic_add(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_add(__VA_ARGS__))
#define tile_partition_atomic_add_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_add_masked(__VA_ARGS__))
#define tile_partition_atomic_sub(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_sub(__VA_ARGS__))
#define tile_partition_atomic_sub_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_sub_masked(__VA_ARGS__))
#define tile_partition_atomic_min(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_min(__VA_ARGS__))
#define tile_partition_atomic_min_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_min_masked(__VA_ARGS__))
#define tile_partition_atomic_max(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_max(__VA_ARGS__))
#define tile_partition_atomic_max_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_max_masked(__VA_ARGS__))
#define tile_partition_atomic_and(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_and(__VA_ARGS__))
#define tile_partition_atomic_and_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_and_masked(__VA_ARGS__))
#define tile_partition_atomic_or(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_or(__VA_ARGS__))
#define tile_partition_atomic_or_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_or_masked(__VA_ARGS__))
#define tile_partition_atomic_xor(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_xor(__VA_ARGS__))
#define tile_partition_atomic_xor_masked(...) \
    (tile_here(__FILE__, __LINE__), tile_partition_atomic_xor_masked(__VA_ARGS__))
#endif
