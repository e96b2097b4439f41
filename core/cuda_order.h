/* cuda_order.h: the block plan of CUDA code: what every thread computes for itself, and which ops
 * are one loop over a tile's elements.
 *
 * A lone value is one element: a variable that every thread computes. Ops that go by elements
 * (maths, windows that are read, written and added to) of one shape are joined to groups, whatever
 * stands between them and does not meet them; a value of a group that only the group reads is a
 * register. Windows are read in the group that needs them. What may touch one memory keeps its
 * order. */
#ifndef TILE_CORE_CUDA_ORDER_H
#define TILE_CORE_CUDA_ORDER_H

#include "core/cuda_source.h"
#include "core/exec_internal.h"
#include "core/native_order.h"

/* What a node does to arrays, with the nodes inside; bits of parameters. */
typedef struct tile_cuda_effect {
    uint64_t reads, writes, adds; /* adds: additions whose previous values nobody reads */
    bool fails;                   /* may end in an execution error */
    bool some;
} tile_cuda_effect;

typedef struct tile_cuda_order {
    const tile_program *p;
    const tile_analysis *a;
    unsigned mode;            /* tile_cuda_mode */
    const int8_t *same;       /* per parameter: the first that is the same array */
    tile_native_view *view;   /* per value */
    tile_cuda_effect *effect; /* per node */
    int32_t *group;           /* per node: the first node of its group */
    bool *member;             /* per node: goes by elements */
    bool *lone;               /* per value */
    bool *placed;             /* per value: it is in the arena */
    bool *used;               /* per value */
    tile_plan blocks;
} tile_cuda_order;

tile_status tile_cuda_order_make(const tile_executable *exe, unsigned mode, const int8_t *same,
                                 tile_cuda_order *order) TILE_MUST_USE;
void tile_cuda_order_clear(tile_cuda_order *order);

/* Whether what two nodes do to arrays must stay in order: neither only reads, and they may meet. */
bool tile_cuda_meet(const tile_cuda_order *order, const tile_cuda_effect *x,
                    const tile_cuda_effect *y);

/* Whether two windows of one array begin at a known distance; by dimension. */
bool tile_cuda_distance(const tile_cuda_order *order, const tile_node *x, const tile_node *y,
                        int64_t distance[TILE_RANK_MAX]);

/* The extents of a window without those of 1, and the array's dimensions that they are. */
tile_shape tile_cuda_window_shape(const tile_cuda_order *order, const tile_node *node,
                                  int dimension[TILE_RANK_MAX]);

/* Whether a node reads elements where they are wanted, without effects: windows, constants. */
static inline bool tile_cuda_is_source(const tile_node *n) {
    return n->op->element && n->op->access <= TILE_ACCESS_LOAD;
}

static inline int64_t tile_cuda_count(tile_shape shape) {
    int64_t n = 1;
    for (int d = 0; d < shape.rank; d++) n *= shape.extent[d];
    return n;
}

/* The array of a node with an access, as a bit. */
static inline uint64_t tile_cuda_array(const tile_cuda_order *order, const tile_node *n) {
    return (uint64_t)1 << order->same[n->param];
}

/* Elements of what goes by elements. */
int64_t tile_cuda_elements(const tile_program *program, const tile_node *node);

/* Nodes in the order of steps, and in groups (cuda_grow.c); fills blocks. */
tile_status tile_cuda_grow_groups(tile_cuda_order *order) TILE_MUST_USE;

#endif
