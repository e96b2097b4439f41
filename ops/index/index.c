/* index.c: elements of a tile by indices, and running sums: descriptors, shape rules, adjoints.
 *
 * attrs.n[0]: the axis; of cumsum attrs.n[1]: how, as tile_cumsum has it. */
#include "ops/index/index.h"

#include "core/adjoint.h"
#include "core/array.h"
#include "core/status.h"
#include "ops/index/index_ops.h"

#define TILE_KERNEL_FILE "ops/index/index_kernel.inc"
#include "core/for_each_dtype.inc"

static tile_status check_axis(const tile_infer *in) {
    const int64_t axis = in->attrs->n[0];
    TILE_CHECK(axis >= 0 && axis < in->in_shape[0].rank, TILE_E_ARGUMENT,
               "%s: axis is %lld, the rank is %d", in->op->name, (long long)axis,
               in->in_shape[0].rank);
    TILE_CHECK(in->op->run[in->in_dtype[0]], TILE_E_DTYPE, "%s: not defined for %s", in->op->name,
               tile_dtype_name(in->in_dtype[0]));
    return TILE_OK;
}

static tile_status check_indices(const tile_infer *in, int k) {
    char text[TILE_SHAPE_TEXT];
    TILE_CHECK(in->in_dtype[k] == TILE_I64, TILE_E_DTYPE,
               "%s: indices are %s, expected int32 or int64", in->op->name,
               tile_dtype_name(in->in_dtype[k]));
    TILE_CHECK(in->in_shape[k].rank == 1, TILE_E_SHAPE, "%s: indices are %s, expected rank 1",
               in->op->name, tile_shape_text(in->in_shape[k], text));
    return TILE_OK;
}

static tile_status infer_gather(tile_infer *in) {
    TILE_TRY(check_axis(in));
    TILE_TRY(check_indices(in, 1));
    in->out_shape[0] = in->in_shape[0];
    in->out_shape[0].extent[in->attrs->n[0]] = in->in_shape[1].extent[0];
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

static tile_status infer_scatter(tile_infer *in) {
    TILE_TRY(check_axis(in));
    TILE_TRY(check_indices(in, 2));
    tile_shape want = in->in_shape[0];
    char text[2][TILE_SHAPE_TEXT];
    want.extent[in->attrs->n[0]] = in->in_shape[2].extent[0];
    TILE_CHECK(tile_shape_equal(in->in_shape[1], want), TILE_E_SHAPE, "%s: src is %s, expected %s",
               in->op->name, tile_shape_text(in->in_shape[1], text[0]),
               tile_shape_text(want, text[1]));
    TILE_CHECK(in->in_dtype[0] == in->in_dtype[1], TILE_E_DTYPE, "%s: dst is %s, src is %s",
               in->op->name, tile_dtype_name(in->in_dtype[0]), tile_dtype_name(in->in_dtype[1]));
    in->out_shape[0] = in->in_shape[0];
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

static tile_status infer_cumsum(tile_infer *in) {
    TILE_TRY(check_axis(in));
    TILE_CHECK(in->attrs->n[1] >> 2 == 0, TILE_E_ARGUMENT,
               "cumsum: how is %lld, expected TILE_EXCLUSIVE, TILE_REVERSE, both or 0",
               (long long)in->attrs->n[1]);
    in->out_shape[0] = in->in_shape[0];
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

/* An op of the family along the forward op's axis. */
static tile along(tile_adjoint *adjoint, int op, tile a, tile b, tile c) {
    const tile_emission e = {.op = &tile_index_ops[op],
                             .n_in = tile_index_ops[op].n_in,
                             .in = {a, b, c},
                             .attrs.n = {tile_adjoint_attrs(adjoint)->n[0]}};
    return tile_emit(tile_adjoint_builder(adjoint), &e);
}

static tile zeros_of(tile_adjoint *adjoint, int k) {
    return tile_constant(tile_adjoint_builder(adjoint), tile_adjoint_in_dtype(adjoint, k),
                         tile_adjoint_in_shape(adjoint, k), 0);
}

/* dx = 0, then dx[indices[k]] += dy[k], or for the last k of a place alone dx[..] = dy[k] */
static void spread(tile_adjoint *adjoint, int op) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (tile_adjoint_wants(adjoint, 0) && tile_is_good(dy))
        tile_adjoint_add(adjoint, 0,
                         along(adjoint, op, zeros_of(adjoint, 0), dy, tile_adjoint_in(adjoint, 1)));
}
static void adjoint_gather(tile_adjoint *adjoint) {
    spread(adjoint, SCATTER_ADD);
}
static void adjoint_gather_last(tile_adjoint *adjoint) {
    spread(adjoint, SCATTER);
}

/* ddst = dy, 0 where src was put; dsrc[k] = dy[indices[k]] for the k that stayed */
static void adjoint_scatter(tile_adjoint *adjoint) {
    static const tile none = {NULL, -1};
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (!tile_is_good(dy)) return;
    if (tile_adjoint_wants(adjoint, 0))
        tile_adjoint_add(adjoint, 0,
                         along(adjoint, SCATTER, dy, zeros_of(adjoint, 1),
                               tile_adjoint_in(adjoint, 2)));
    if (tile_adjoint_wants(adjoint, 1))
        tile_adjoint_add(adjoint, 1,
                         along(adjoint, GATHER_LAST, dy, tile_adjoint_in(adjoint, 2), none));
}

/* ddst = dy; dsrc[k] = dy[indices[k]] */
static void adjoint_scatter_add(tile_adjoint *adjoint) {
    static const tile none = {NULL, -1};
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (!tile_is_good(dy)) return;
    if (tile_adjoint_wants(adjoint, 0)) tile_adjoint_add(adjoint, 0, dy);
    if (tile_adjoint_wants(adjoint, 1))
        tile_adjoint_add(adjoint, 1, along(adjoint, GATHER, dy, tile_adjoint_in(adjoint, 2), none));
}

/* dx[j] = sum of dy[k] over the k that j is a part of: the other way along the axis */
static void adjoint_cumsum(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (!tile_adjoint_wants(adjoint, 0) || !tile_is_good(dy)) return;
    const tile_attrs *attrs = tile_adjoint_attrs(adjoint);
    const tile_emission e = {.op = &tile_index_ops[CUMSUM],
                             .n_in = 1,
                             .in = {dy},
                             .attrs.n = {attrs->n[0], attrs->n[1] ^ TILE_REVERSE}};
    tile_adjoint_add(adjoint, 0, tile_emit(dy.builder, &e));
}

const tile_op tile_index_ops[INDEX_OPS] = {
    [GATHER] = {.name = "gather",
                .kind = TILE_OP_COOPERATIVE,
                .moves = true,
                .n_in = 2,
                .n_out = 1,
                .grad = {TILE_GRAD_FULL, TILE_GRAD_ABSENT},
                .math = "y[c] = x[c, indices[c[axis]] along axis]",
                .special = "0 where the index is outside of x, on either side; no gradient there",
                .adjoint_math = "dx[c, indices[c[axis]] along axis] += dy[c] inside",
                .infer = infer_gather,
                .run = {TILE_RUNS(gather)},
                .adjoint = adjoint_gather,
                .sample = tile_sample_gather},
    [GATHER_LAST] = {.name = "gather_last",
                     .kind = TILE_OP_COOPERATIVE,
                     .n_in = 2,
                     .n_out = 1,
                     .grad = {TILE_GRAD_FULL, TILE_GRAD_ABSENT},
                     .math = "y = gather(x, indices) for the last of equal indices, 0 for the "
                             "others",
                     .special = "0 where the index is outside of x; the adjoint of scatter",
                     .adjoint_math = "dx at the places = dy of the last index of a place",
                     .infer = infer_gather,
                     .run = {TILE_RUNS(gather_last)},
                     .adjoint = adjoint_gather_last,
                     .sample = tile_sample_gather_last},
    [SCATTER] = {.name = "scatter",
                 .kind = TILE_OP_COOPERATIVE,
                 .moves = true,
                 .n_in = 3,
                 .n_out = 1,
                 .grad = {TILE_GRAD_FULL, TILE_GRAD_FULL, TILE_GRAD_ABSENT},
                 .math = "y = dst, then y[c, indices[c[axis]] along axis] = src[c]",
                 .special = "indices outside of dst are skipped; of several elements at one place "
                            "the last wins",
                 .adjoint_math = "ddst += dy, 0 where replaced; dsrc += dy for the last element "
                                 "of a place",
                 .infer = infer_scatter,
                 .run = {TILE_RUNS(scatter)},
                 .adjoint = adjoint_scatter,
                 .sample = tile_sample_scatter},
    [SCATTER_ADD] = {.name = "scatter_add",
                     .kind = TILE_OP_COOPERATIVE,
                     .n_in = 3,
                     .n_out = 1,
                     .grad = {TILE_GRAD_FULL, TILE_GRAD_FULL, TILE_GRAD_ABSENT},
                     .math = "y = dst, then y[c, indices[c[axis]] along axis] += src[c]",
                     .special = "indices outside of dst are skipped; integers wrap",
                     .adjoint_math = "ddst += dy; dsrc[c] += dy[c, indices[c[axis]] along axis]",
                     .infer = infer_scatter,
                     .run = {TILE_RUNS_NUMBER(scatter_add)},
                     .adjoint = adjoint_scatter_add,
                     .sample = tile_sample_scatter_add},
    [CUMSUM] = {.name = "cumsum",
                .kind = TILE_OP_COOPERATIVE,
                .n_in = 1,
                .n_out = 1,
                .grad = {TILE_GRAD_FULL},
                .math = "y[k] = sum of x[j] along the axis, j <= k",
                .special = "exclusive: j < k; reverse: from the end; integers wrap",
                .adjoint_math = "dx[j] += sum of dy[k], k >= j",
                .infer = infer_cumsum,
                .run = {TILE_RUNS_NUMBER(cumsum)},
                .adjoint = adjoint_cumsum,
                .sample = tile_sample_cumsum},
};

const tile_family tile_ops_index = {"index", INDEX_OPS, tile_index_ops};
