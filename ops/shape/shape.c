/* shape.c: making tiles and moving their elements: descriptors, shape rules, adjoints. */
#include "ops/shape/shape_ops.h"

#include "core/adjoint.h"
#include "core/array.h"
#include "core/status.h"
#include "ops/shape/shape.h"

#define TILE_KERNEL_FILE "ops/shape/shape_kernel.inc"
#include "core/for_each_dtype.inc"

/* full: attrs.real for floats, attrs.n[0] for the other types. */
static tile_status infer_full(tile_infer *in) {
    TILE_CHECK(in->want_shape.rank >= 0 && tile_dtype_valid(in->want_dtype), TILE_E_ARGUMENT,
               "full: shape and dtype are not given");
    in->out_shape[0] = in->want_shape;
    in->out_dtype[0] = in->want_dtype;
    return TILE_OK;
}

/* iota: attrs.n[0]: bits of the axes that count. */
static tile_status infer_iota(tile_infer *in) {
    TILE_CHECK(in->want_shape.rank >= 0 && in->in_shape[0].rank == 0, TILE_E_SHAPE,
               "iota: start has rank %d, expected 0", in->in_shape[0].rank);
    TILE_CHECK(in->in_dtype[0] != TILE_BOOL, TILE_E_DTYPE, "iota: bool does not count");
    TILE_CHECK(in->attrs->n[0] >= 0 && in->attrs->n[0] >> in->want_shape.rank == 0, TILE_E_ARGUMENT,
               "iota: an axis is outside of the rank %d", in->want_shape.rank);
    in->out_shape[0] = in->want_shape;
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

static tile_status infer_broadcast(tile_infer *in) {
    tile_shape shape;
    char text[2][TILE_SHAPE_TEXT];
    const bool fits = in->want_shape.rank >= in->in_shape[0].rank &&
                      tile_shape_broadcast(in->in_shape[0], in->want_shape, &shape) &&
                      tile_shape_equal(shape, in->want_shape);
    TILE_CHECK(fits, TILE_E_SHAPE, "broadcast: %s does not broadcast to %s",
               tile_shape_text(in->in_shape[0], text[0]), tile_shape_text(in->want_shape, text[1]));
    in->out_shape[0] = in->want_shape;
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

static tile_status infer_reshape(tile_infer *in) {
    char text[2][TILE_SHAPE_TEXT];
    TILE_CHECK(in->want_shape.rank >= 0 &&
                   tile_shape_count(in->in_shape[0]) == tile_shape_count(in->want_shape),
               TILE_E_SHAPE, "reshape: %s has another number of elements than %s",
               tile_shape_text(in->in_shape[0], text[0]), tile_shape_text(in->want_shape, text[1]));
    in->out_shape[0] = in->want_shape;
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

/* permute: attrs.n[k]: the dimension that becomes dimension k. */
static tile_status infer_permute(tile_infer *in) {
    const tile_shape x = in->in_shape[0];
    unsigned seen = 0;
    in->out_shape[0] = x;
    for (int k = 0; k < x.rank; k++) {
        const int64_t d = in->attrs->n[k];
        const bool good = d >= 0 && d < x.rank && !(seen >> d & 1u);
        TILE_CHECK(good, TILE_E_ARGUMENT, "permute: the order is no permutation of %d dimensions",
                   x.rank);
        seen |= 1u << d;
        in->out_shape[0].extent[k] = x.extent[d];
    }
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

static tile_status check_part(const tile_infer *in, tile_shape part) {
    char text[2][TILE_SHAPE_TEXT];
    TILE_CHECK(part.rank == in->in_shape[0].rank || part.rank == 0, TILE_E_SHAPE,
               "%s: the part is %s, the tile is %s", in->op->name, tile_shape_text(part, text[0]),
               tile_shape_text(in->in_shape[0], text[1]));
    return TILE_OK;
}

static tile_status infer_view(tile_infer *in) {
    TILE_TRY(check_part(in, in->want_shape));
    in->out_shape[0] = in->want_shape;
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

static tile_status infer_assign(tile_infer *in) {
    TILE_TRY(check_part(in, in->in_shape[1]));
    TILE_CHECK(in->in_dtype[0] == in->in_dtype[1], TILE_E_DTYPE, "assign: dst is %s, src is %s",
               tile_dtype_name(in->in_dtype[0]), tile_dtype_name(in->in_dtype[1]));
    in->out_shape[0] = in->in_shape[0];
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

/* concat: attrs.n[0]: the axis. */
static tile_status infer_concat(tile_infer *in) {
    const tile_shape a = in->in_shape[0], b = in->in_shape[1];
    const int64_t axis = in->attrs->n[0];
    char text[2][TILE_SHAPE_TEXT];
    TILE_CHECK(axis >= 0 && axis < a.rank, TILE_E_ARGUMENT, "concat: axis is %lld, the rank is %d",
               (long long)axis, a.rank);
    TILE_CHECK(in->in_dtype[0] == in->in_dtype[1], TILE_E_DTYPE, "concat: a is %s, b is %s",
               tile_dtype_name(in->in_dtype[0]), tile_dtype_name(in->in_dtype[1]));
    bool fits = a.rank == b.rank;
    for (int d = 0; fits && d < a.rank; d++) fits = d == axis || a.extent[d] == b.extent[d];
    TILE_CHECK(fits, TILE_E_SHAPE, "concat: a is %s, b is %s, along axis %lld",
               tile_shape_text(a, text[0]), tile_shape_text(b, text[1]), (long long)axis);
    in->out_shape[0] = a;
    in->out_shape[0].extent[axis] += b.extent[axis];
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

static tile zeros_of(tile_adjoint *adjoint, int k) {
    return tile_constant(tile_adjoint_builder(adjoint), tile_adjoint_in_dtype(adjoint, k),
                         tile_adjoint_in_shape(adjoint, k), 0);
}

/* t with another shape, by the op that takes one. */
static tile shaped(int op, tile t, tile_shape shape) {
    const tile_emission e = {
        .op = &tile_shape_ops[op], .n_in = 1, .in = {t}, .has_shape = true, .shape = shape};
    return tile_emit(t.builder, &e);
}

/* dx = sum of dy over the dimensions that were repeated, in the shape of x. */
static tile sum_to(tile dy, tile_shape shape) {
    const tile_shape from = tile_shape_of_tile(dy);
    tile_emission e = {.op = tile_op_find("sum"), .n_in = 1, .in = {dy}};
    for (int d = 0; d < from.rank; d++) {
        const int k = d - (from.rank - shape.rank);
        if (k < 0 || shape.extent[k] != from.extent[d]) e.attrs.n[0] |= INT64_C(1) << d;
    }
    if (e.attrs.n[0]) dy = tile_emit(dy.builder, &e);
    return tile_is_good(dy) ? shaped(RESHAPE, dy, shape) : dy;
}

static void adjoint_iota(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (tile_adjoint_wants(adjoint, 0) && tile_is_good(dy))
        tile_adjoint_add(adjoint, 0, sum_to(dy, TILE_SCALAR));
}

static void adjoint_broadcast(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (tile_adjoint_wants(adjoint, 0) && tile_is_good(dy))
        tile_adjoint_add(adjoint, 0, sum_to(dy, tile_adjoint_in_shape(adjoint, 0)));
}

static void adjoint_reshape(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (tile_adjoint_wants(adjoint, 0) && tile_is_good(dy))
        tile_adjoint_add(adjoint, 0, shaped(RESHAPE, dy, tile_adjoint_in_shape(adjoint, 0)));
}

static void adjoint_permute(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (!tile_adjoint_wants(adjoint, 0) || !tile_is_good(dy)) return;
    const int64_t *order = tile_adjoint_attrs(adjoint)->n;
    tile_emission e = {.op = &tile_shape_ops[PERMUTE], .n_in = 1, .in = {dy}};
    for (int k = 0; k < tile_adjoint_in_shape(adjoint, 0).rank; k++) e.attrs.n[order[k]] = k;
    tile_adjoint_add(adjoint, 0, tile_emit(dy.builder, &e));
}

/* dst with src in the window of the forward op. */
static tile assign_at(tile_adjoint *adjoint, tile dst, tile src) {
    const tile_emission e = {.op = &tile_shape_ops[ASSIGN],
                             .n_in = 2,
                             .in = {dst, src},
                             .at = tile_adjoint_offset(adjoint)};
    return tile_emit(tile_adjoint_builder(adjoint), &e);
}

static void adjoint_view(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (tile_adjoint_wants(adjoint, 0) && tile_is_good(dy))
        tile_adjoint_add(adjoint, 0, assign_at(adjoint, zeros_of(adjoint, 0), dy));
}

static void adjoint_assign(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (!tile_is_good(dy)) return;
    if (tile_adjoint_wants(adjoint, 0))
        tile_adjoint_add(adjoint, 0, assign_at(adjoint, dy, zeros_of(adjoint, 1)));
    if (!tile_adjoint_wants(adjoint, 1)) return;
    const tile_emission e = {.op = &tile_shape_ops[VIEW],
                             .n_in = 1,
                             .in = {dy},
                             .at = tile_adjoint_offset(adjoint),
                             .has_shape = true,
                             .shape = tile_adjoint_in_shape(adjoint, 1)};
    tile_adjoint_add(adjoint, 1, tile_emit(dy.builder, &e));
}

static void adjoint_concat(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (!tile_is_good(dy)) return;
    const int64_t axis = tile_adjoint_attrs(adjoint)->n[0];
    tile_emission e = {.op = &tile_shape_ops[VIEW], .n_in = 1, .in = {dy}, .has_shape = true};
    for (int k = 0; k < 2; k++) {
        e.shape = tile_adjoint_in_shape(adjoint, k);
        if (tile_adjoint_wants(adjoint, k)) tile_adjoint_add(adjoint, k, tile_emit(dy.builder, &e));
        e.attrs.shift[axis] = e.shape.extent[axis];
    }
}

const tile_op tile_shape_ops[SHAPE_OPS] = {
    [FULL] = {.name = "full",
              .kind = TILE_OP_COOPERATIVE,
              .element = "full_element",
              .n_out = 1,
              .key = TILE_KEY_OUT0,
              .math = "y[c] = value",
              .infer = infer_full,
              .run = {TILE_RUNS(full)},
              .sample = tile_sample_full},
    [IOTA] = {.name = "iota",
              .kind = TILE_OP_COOPERATIVE,
              .element = "iota_element",
              .n_in = 1,
              .n_out = 1,
              .key = TILE_KEY_OUT0,
              .grad = {TILE_GRAD_FULL},
              .math = "y[c] = start + number of c along the axes",
              .special = "integers wrap",
              .adjoint_math = "dstart += sum dy",
              .infer = infer_iota,
              .run = {TILE_RUNS_NUMBER(iota)},
              .adjoint = adjoint_iota,
              .sample = tile_sample_iota},
    [BROADCAST] = {.name = "broadcast",
                   .kind = TILE_OP_COOPERATIVE,
                   .moves = true,
                   .n_in = 1,
                   .n_out = 1,
                   .grad = {TILE_GRAD_FULL},
                   .math = "y[c] = x[c], aligned at the last dimension",
                   .adjoint_math = "dx += sum of dy over the repeated dimensions",
                   .infer = infer_broadcast,
                   .run = {TILE_RUNS(broadcast)},
                   .adjoint = adjoint_broadcast,
                   .sample = tile_sample_broadcast},
    [RESHAPE] = {.name = "reshape",
                 .kind = TILE_OP_COOPERATIVE,
                 .moves = true,
                 .n_in = 1,
                 .n_out = 1,
                 .grad = {TILE_GRAD_FULL},
                 .math = "y[i] = x[i] in row-major order",
                 .adjoint_math = "dx[i] += dy[i]",
                 .infer = infer_reshape,
                 .run = {TILE_RUNS(reshape)},
                 .adjoint = adjoint_reshape,
                 .sample = tile_sample_reshape},
    [PERMUTE] = {.name = "permute",
                 .kind = TILE_OP_COOPERATIVE,
                 .n_in = 1,
                 .n_out = 1,
                 .grad = {TILE_GRAD_FULL},
                 .math = "y[c] = x[e], e[order[k]] = c[k]",
                 .adjoint_math = "dx[e] += dy[c]",
                 .infer = infer_permute,
                 .run = {TILE_RUNS(permute)},
                 .adjoint = adjoint_permute,
                 .sample = tile_sample_permute},
    [VIEW] = {.name = "view",
              .kind = TILE_OP_COOPERATIVE,
              .n_in = 1,
              .n_out = 1,
              .grad = {TILE_GRAD_FULL},
              .math = "y[c] = x[offset + c], 0 outside",
              .special = "no gradient outside",
              .adjoint_math = "dx[offset + c] += dy[c] inside",
              .infer = infer_view,
              .run = {TILE_RUNS(view)},
              .adjoint = adjoint_view,
              .sample = tile_sample_view},
    [ASSIGN] = {.name = "assign",
                .kind = TILE_OP_COOPERATIVE,
                .n_in = 2,
                .n_out = 1,
                .grad = {TILE_GRAD_FULL, TILE_GRAD_FULL},
                .math = "y = dst, then y[offset + c] = src[c] inside",
                .special = "places outside of dst are skipped",
                .adjoint_math = "ddst += dy but 0 at offset + c; dsrc[c] += dy[offset + c] inside",
                .infer = infer_assign,
                .run = {TILE_RUNS(assign)},
                .adjoint = adjoint_assign,
                .sample = tile_sample_assign},
    [CONCAT] = {.name = "concat",
                .kind = TILE_OP_COOPERATIVE,
                .n_in = 2,
                .n_out = 1,
                .grad = {TILE_GRAD_FULL, TILE_GRAD_FULL},
                .math = "y = a, then b, along the axis",
                .adjoint_math = "da, db += their parts of dy",
                .infer = infer_concat,
                .run = {TILE_RUNS(concat)},
                .adjoint = adjoint_concat,
                .sample = tile_sample_concat},
};

const tile_family tile_ops_shape = {"shape", SHAPE_OPS, tile_shape_ops};
