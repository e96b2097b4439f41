/* where.c: stores of chosen elements, and takes of them (what the store's gradient reads and
 * clears, and what the winner of a minimum takes). attrs.n[0]: the indexed axis. */
#include "ops/where/where_ops.h"

#include "core/adjoint.h"
#include "core/array.h"
#include "core/status.h"
#include "ops/memory/memory_rules.h"

#define TILE_KERNEL_FILE "ops/where/where_kernel.inc"
#include "core/for_each_dtype.inc"

enum { STORE_WHERE, STORE_WHERE_INDEXED, TAKE_WHERE, TAKE_WHERE_INDEXED, OPS };
static const tile_op ops[OPS];

/* The mask is the last input. */
static tile_status check_mask(const tile_infer *in, tile_shape part) {
    const int m = in->n_in - 1;
    char text[2][TILE_SHAPE_TEXT];
    TILE_CHECK(in->in_dtype[m] == TILE_BOOL, TILE_E_DTYPE, "%s: the mask is %s, expected bool",
               in->op->name, tile_dtype_name(in->in_dtype[m]));
    TILE_CHECK(tile_shape_equal(in->in_shape[m], part), TILE_E_SHAPE,
               "%s: the mask is %s, the tile is %s", in->op->name,
               tile_shape_text(in->in_shape[m], text[0]), tile_shape_text(part, text[1]));
    return TILE_OK;
}

static tile_status infer_store(tile_infer *in) {
    TILE_TRY(tile_infer_write(in));
    return check_mask(in, in->out_shape[0]);
}

static tile_status infer_take(tile_infer *in) {
    TILE_TRY(tile_check_access(in, in->want_shape));
    TILE_TRY(check_mask(in, in->want_shape));
    in->out_shape[0] = in->want_shape;
    in->out_dtype[0] = in->array_dtype;
    return TILE_OK;
}

/* dt += da where chosen, then da there = 0: the clearing is due whether or not dt is wanted. */
static void take_back(tile_adjoint *adjoint, int op) {
    const int t = ops[op].indexed ? 1 : 0;
    const tile mask = tile_adjoint_in(adjoint, t + 1);
    const tile dt =
        tile_emit_on_grad(adjoint, &ops[op], 1, &mask, tile_adjoint_in_shape(adjoint, t));
    if (tile_is_good(dt) && tile_adjoint_wants(adjoint, t)) tile_adjoint_add(adjoint, t, dt);
}
static void adjoint_store_where(tile_adjoint *adjoint) {
    take_back(adjoint, TAKE_WHERE);
}
static void adjoint_store_where_indexed(tile_adjoint *adjoint) {
    take_back(adjoint, TAKE_WHERE_INDEXED);
}

/* The chosen places are 0 afterwards, so what their adjoint was goes nowhere, and what they held
 * went to t: da = dt there, or 0 where t has no adjoint. */
static void give_back(tile_adjoint *adjoint, int op) {
    const tile mask = tile_adjoint_in(adjoint, ops[op].indexed ? 1 : 0);
    tile dt = tile_adjoint_dy(adjoint, 0);
    if (!tile_is_good(dt)) {
        const tile t = tile_adjoint_out(adjoint, 0);
        if (!tile_is_good(t)) return;
        dt = tile_constant(tile_adjoint_builder(adjoint), tile_dtype_of(t), tile_shape_of_tile(t),
                           0);
    }
    tile_emit_on_grad(adjoint, &ops[op], 2, (const tile[]){dt, mask}, TILE_SCALAR);
}
static void adjoint_take_where(tile_adjoint *adjoint) {
    give_back(adjoint, STORE_WHERE);
}
static void adjoint_take_where_indexed(tile_adjoint *adjoint) {
    give_back(adjoint, STORE_WHERE_INDEXED);
}

static const tile_op ops[OPS] = {
    [STORE_WHERE] = {.name = "store_where",
                     .kind = TILE_OP_COOPERATIVE,
                     .access = TILE_ACCESS_UPDATE,
                     .n_in = 2,
                     .key = TILE_KEY_IN0,
                     .grad = {TILE_GRAD_FULL, TILE_GRAD_ZERO},
                     .math = "a[at + c] = t[c] where mask[c]",
                     .special = "places outside of a are skipped",
                     .adjoint_math = "dt[c] += da[at + c] where mask[c], inside, then da there = 0",
                     .infer = infer_store,
                     .run = {TILE_RUNS(store_where)},
                     .adjoint = adjoint_store_where},
    [STORE_WHERE_INDEXED] = {.name = "store_where_indexed",
                             .kind = TILE_OP_COOPERATIVE,
                             .access = TILE_ACCESS_UPDATE,
                             .indexed = true,
                             .n_in = 3,
                             .key = TILE_KEY_IN1,
                             .grad = {TILE_GRAD_ABSENT, TILE_GRAD_FULL, TILE_GRAD_ZERO},
                             .math = "a[x] = t[c] where mask[c], x = at + c, at[axis] + "
                                     "indices[c[axis]] along axis",
                             .special = "places outside of a are skipped; of several chosen "
                                        "elements at one place the last wins",
                             .adjoint_math = "dt += da for the last chosen element of a place, "
                                             "then da there = 0",
                             .infer = infer_store,
                             .run = {TILE_RUNS(store_where_indexed)},
                             .adjoint = adjoint_store_where_indexed},
    [TAKE_WHERE] = {.name = "take_where",
                    .kind = TILE_OP_COOPERATIVE,
                    .access = TILE_ACCESS_TAKE,
                    .n_in = 1,
                    .n_out = 1,
                    .key = TILE_KEY_OUT0,
                    .grad = {TILE_GRAD_ZERO},
                    .math = "t[c] = a[at + c], then a[at + c] = 0, where mask[c]; else t[c] = 0",
                    .special = "outside of a: 0; the adjoint of store_where",
                    .adjoint_math = "da[at + c] = dt[c] where mask[c], inside",
                    .infer = infer_take,
                    .run = {TILE_RUNS(take_where)},
                    .adjoint = adjoint_take_where},
    [TAKE_WHERE_INDEXED] = {.name = "take_where_indexed",
                            .kind = TILE_OP_COOPERATIVE,
                            .access = TILE_ACCESS_TAKE,
                            .indexed = true,
                            .n_in = 2,
                            .n_out = 1,
                            .key = TILE_KEY_OUT0,
                            .grad = {TILE_GRAD_ABSENT, TILE_GRAD_ZERO},
                            .math = "t = a[x] for the last chosen element of a place, 0 for the "
                                    "others, then a[x] = 0",
                            .special = "outside of a: 0; the adjoint of store_where_indexed",
                            .adjoint_math = "da[x] = dt of the last chosen element of a place",
                            .infer = infer_take,
                            .run = {TILE_RUNS(take_where_indexed)},
                            .adjoint = adjoint_take_where_indexed},
};

const tile_family tile_ops_where = {"where", OPS, ops};

/* The mask spread to the tile's shape; what does not fit is for the shape rule to say. */
static tile spread(tile mask, tile t) {
    tile_shape shape;
    if (!tile_is_good(mask) || !tile_is_good(t)) return mask;
    const tile_shape want = tile_shape_of_tile(t), have = tile_shape_of_tile(mask);
    if (!tile_shape_broadcast(have, want, &shape) || !tile_shape_equal(shape, want)) return mask;
    if (tile_shape_equal(have, want)) return mask;
    const tile_emission e = {
        .op = tile_op_find("broadcast"), .n_in = 1, .in = {mask}, .has_shape = true, .shape = want};
    return tile_emit(t.builder, &e);
}

void(tile_store_where)(tile_param a, tile mask, tile t, tile_offset at) {
    const tile_emission e = {
        .op = &ops[STORE_WHERE], .n_in = 2, .in = {t, spread(mask, t)}, .array = a, .at = at};
    tile_emit(a.builder, &e);
}

void(tile_store_where_indexed)(tile_param a, tile indices, tile mask, tile t, tile_offset at,
                               int axis) {
    const tile i = tile_builder_indices(a.builder, "tile_store_where_indexed", indices);
    const tile_emission e = {.op = &ops[STORE_WHERE_INDEXED],
                             .n_in = 3,
                             .in = {i, t, spread(mask, t)},
                             .array = a,
                             .at = at,
                             .attrs = {.n = {axis}}};
    tile_emit(a.builder, &e);
}
