/* native_order.h: the block plan of generated code: which tiles are not made, and in which order
 * and groups the others are.
 *
 * A group becomes one loop nest over a tile's shape. Elementwise ops of that shape are joined
 * whatever stands between them and does not need them; a broadcast, reshape or sub-tile that only
 * they read is an index in their loops; a sum or extreme of a tile of the group along the last
 * dimension or over few rows is taken on the way, in the interpreter's order. */
#ifndef TILE_CORE_NATIVE_ORDER_H
#define TILE_CORE_NATIVE_ORDER_H

#include "core/native_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TILE_NEST_ROW_MIN = 16, /* shorter rows are not worth a loop of their own */
    TILE_FUSED_ROW_MAX =
        1024,                /* longest row, most rows, of a sum that is taken on the way: longer */
    TILE_FUSED_ROWS_MAX = 32 /* ones are sums of sums in the interpreter */
};

/* Reductions that are taken on the way. */
typedef enum tile_native_fold {
    TILE_FOLD_SUM,
    TILE_FOLD_MIN,
    TILE_FOLD_MAX,
    TILE_FOLDS
} tile_native_fold;

const tile_op *tile_native_fold_op(tile_native_fold fold);

/* An operand of an op, or a value that has no place of its own: element c of it is the element
 * first + sum over d of c[d] * stride[d] of the base. */
struct tile_native_view {
    int32_t base; /* itself: it is made */
    bool same;    /* element for element in row-major order */
    int64_t first, stride[TILE_RANK_MAX];
};

/* Fills view, per value; plain and made are scratch, per value, all false. direct: per node,
 * whether it reads views where they are, as maths does; NULL: only maths does. */
void tile_native_find_views(const tile_program *program, const tile_analysis *analysis,
                            const bool *direct, bool *plain, bool *made, tile_native_view *view);

/* Whether all elements are one. */
bool tile_native_is_uniform(tile_shape shape, const tile_native_view *view);

/* A shape without its dimensions of one element; of a view, with its strides. */
tile_shape tile_native_squeeze(tile_shape shape, const int64_t *stride, int64_t *squeezed);

/* Plans the blocks: fills plan->blocks and plan->view. */
tile_status tile_native_plan_order(tile_native_plan *plan) TILE_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
