/* reduce.c: reductions over some axes. attrs.n[0]: bits of the reduced axes. */
#include "ops/reduce/reduce_ops.h"

#include "core/adjoint.h"
#include "core/array.h"
#include "core/status.h"
#include "ops/reduce/reduce_samples.h"

#define TILE_KERNEL_FILE "ops/reduce/reduce_kernel.inc"
#include "core/for_each_dtype.inc"

enum { SUM, PROD, REDUCE_MIN, REDUCE_MAX, ARGMIN, ARGMAX, PROD_OTHERS, PROD_OTHERS_ALONG, OPS };
static const tile_op ops[OPS];

static tile_status check_axes(const tile_infer *in) {
    const int rank = in->in_shape[0].rank;
    TILE_CHECK(in->attrs->n[0] >= 0 && in->attrs->n[0] >> rank == 0, TILE_E_ARGUMENT,
               "%s: an axis is outside of the rank %d", in->op->name, rank);
    return TILE_OK;
}

static tile_shape without(tile_shape x, int64_t axes) {
    tile_shape y = {.rank = 0};
    for (int d = 0; d < x.rank; d++)
        if (!(axes >> d & 1)) y.extent[y.rank++] = x.extent[d];
    return y;
}

static tile_status infer_reduce(tile_infer *in) {
    TILE_TRY(check_axes(in));
    TILE_CHECK(in->op->run[in->in_dtype[0]], TILE_E_DTYPE, "%s: not defined for %s", in->op->name,
               tile_dtype_name(in->in_dtype[0]));
    in->out_shape[0] = without(in->in_shape[0], in->attrs->n[0]);
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

static tile_status infer_arg(tile_infer *in) {
    TILE_TRY(infer_reduce(in));
    in->out_dtype[0] = TILE_I64;
    return TILE_OK;
}

static tile_status infer_others(tile_infer *in) {
    TILE_TRY(check_axes(in));
    const int last = in->n_in - 1;
    TILE_CHECK(tile_is_float(in->in_dtype[0]) && in->in_dtype[last] == in->in_dtype[0],
               TILE_E_DTYPE, "%s: not defined for %s", in->op->name,
               tile_dtype_name(in->in_dtype[last]));
    TILE_CHECK(tile_shape_equal(in->in_shape[0], in->in_shape[last]), TILE_E_SHAPE,
               "%s: shapes are not equal", in->op->name);
    in->out_shape[0] = in->in_shape[0];
    in->out_dtype[0] = in->in_dtype[0];
    return TILE_OK;
}

/* A reduced tile in the shape of the input: reduced dimensions come back, repeated. */
static tile spread(tile_adjoint *adjoint, tile y) {
    tile_shape kept = tile_adjoint_in_shape(adjoint, 0);
    const int64_t axes = tile_adjoint_attrs(adjoint)->n[0];
    tile_emission e = {.op = tile_op_find("reshape"), .n_in = 1, .in = {y}, .has_shape = true};
    for (int d = 0; d < kept.rank; d++)
        if (axes >> d & 1) kept.extent[d] = 1;
    e.shape = kept;
    e.in[0] = tile_emit(tile_adjoint_builder(adjoint), &e);
    e.op = tile_op_find("broadcast");
    e.shape = tile_adjoint_in_shape(adjoint, 0);
    return tile_emit(tile_adjoint_builder(adjoint), &e);
}

/* One of this family's ops over the forward op's axes. */
static tile same_axes(tile_adjoint *adjoint, int op, tile x, tile v) {
    tile_emission e = {.op = &ops[op], .n_in = ops[op].n_in, .in = {x, v}};
    e.attrs.n[0] = tile_adjoint_attrs(adjoint)->n[0];
    return tile_emit(tile_adjoint_builder(adjoint), &e);
}

static const tile none = {NULL, -1};

static void adjoint_sum(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (tile_adjoint_wants(adjoint, 0) && tile_is_good(dy))
        tile_adjoint_add(adjoint, 0, spread(adjoint, dy));
}

/* dx = dy * others(x) */
static void adjoint_prod(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (!tile_adjoint_wants(adjoint, 0) || !tile_is_good(dy)) return;
    static const char *const names[] = {"dy", "others"};
    const tile operands[] = {spread(adjoint, dy),
                             same_axes(adjoint, PROD_OTHERS, tile_adjoint_in(adjoint, 0), none)};
    tile_adjoint_add(adjoint, 0,
                     tile_formula_emit(dy.builder, "dy * others", 2, names, operands, "dy"));
}

/* dx = dy where the element is the one that was chosen, 0 elsewhere */
static void adjoint_best(tile_adjoint *adjoint, int arg) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (!tile_adjoint_wants(adjoint, 0) || !tile_is_good(dy)) return;
    tile_builder *b = tile_adjoint_builder(adjoint);
    const tile_emission iota = {.op = tile_op_find("iota"),
                                .n_in = 1,
                                .in = {tile_constant(b, TILE_I64, TILE_SCALAR, 0)},
                                .attrs = {.n = {tile_adjoint_attrs(adjoint)->n[0]}},
                                .has_shape = true,
                                .shape = tile_adjoint_in_shape(adjoint, 0)};
    static const char *const names[] = {"dy", "number", "best"};
    const tile best = same_axes(adjoint, arg, tile_adjoint_in(adjoint, 0), none);
    const tile operands[] = {spread(adjoint, dy), tile_emit(b, &iota), spread(adjoint, best)};
    tile_adjoint_add(adjoint, 0,
                     tile_formula_emit(b, "number == best ? dy : 0", 3, names, operands, NULL));
}
static void adjoint_min(tile_adjoint *adjoint) {
    adjoint_best(adjoint, ARGMIN);
}
static void adjoint_max(tile_adjoint *adjoint) {
    adjoint_best(adjoint, ARGMAX);
}

/* y = others(x): dx[k] = sum over i != k of dy[i] * product of x[j], j != i, k */
static void adjoint_others(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (tile_adjoint_wants(adjoint, 0) && tile_is_good(dy))
        tile_adjoint_add(adjoint, 0,
                         same_axes(adjoint, PROD_OTHERS_ALONG, tile_adjoint_in(adjoint, 0), dy));
}

/* y = along(x, v) is linear in v by a symmetric matrix: dv = along(x, dy). */
static void adjoint_others_along(tile_adjoint *adjoint) {
    const tile dy = tile_adjoint_dy(adjoint, 0);
    if (tile_adjoint_wants(adjoint, 1) && tile_is_good(dy))
        tile_adjoint_add(adjoint, 1,
                         same_axes(adjoint, PROD_OTHERS_ALONG, tile_adjoint_in(adjoint, 0), dy));
}

static const tile_op ops[OPS] = {
    [SUM] = {.name = "sum",
             .kind = TILE_OP_COOPERATIVE,
             .n_in = 1,
             .n_out = 1,
             .grad = {TILE_GRAD_FULL},
             .math = "y = sum x over the axes",
             .special = "integers wrap",
             .adjoint_math = "dx += dy",
             .infer = infer_reduce,
             .run = {TILE_RUNS_NUMBER(sum)},
             .adjoint = adjoint_sum,
             .sample = tile_sample_sum},
    [PROD] = {.name = "prod",
              .kind = TILE_OP_COOPERATIVE,
              .n_in = 1,
              .n_out = 1,
              .grad = {TILE_GRAD_FULL},
              .math = "y = product of x over the axes",
              .special = "right with zeros among x; integers wrap",
              .adjoint_math = "dx[k] += dy * product of x[j], j != k",
              .infer = infer_reduce,
              .run = {TILE_RUNS_NUMBER(prod)},
              .adjoint = adjoint_prod,
              .sample = tile_sample_prod},
    [REDUCE_MIN] = {.name = "reduce_min",
                    .kind = TILE_OP_COOPERATIVE,
                    .n_in = 1,
                    .n_out = 1,
                    .grad = {TILE_GRAD_FULL},
                    .math = "y = min x over the axes",
                    .special = "a number wins over NaN",
                    .adjoint_math = "dx[k] += dy for the first k that holds y",
                    .infer = infer_reduce,
                    .run = {TILE_RUNS_WIDE(reduce_min)},
                    .adjoint = adjoint_min,
                    .sample = tile_sample_reduce_min},
    [REDUCE_MAX] = {.name = "reduce_max",
                    .kind = TILE_OP_COOPERATIVE,
                    .n_in = 1,
                    .n_out = 1,
                    .grad = {TILE_GRAD_FULL},
                    .math = "y = max x over the axes",
                    .special = "a number wins over NaN",
                    .adjoint_math = "dx[k] += dy for the first k that holds y",
                    .infer = infer_reduce,
                    .run = {TILE_RUNS_WIDE(reduce_max)},
                    .adjoint = adjoint_max,
                    .sample = tile_sample_reduce_max},
    [ARGMIN] = {.name = "argmin",
                .kind = TILE_OP_COOPERATIVE,
                .n_in = 1,
                .n_out = 1,
                .grad = {TILE_GRAD_ZERO},
                .math = "y = number of the first least element over the axes",
                .special = "a number wins over NaN; 0 when all are NaN",
                .infer = infer_arg,
                .run = {TILE_RUNS_WIDE(argmin)},
                .sample = tile_sample_argmin},
    [ARGMAX] = {.name = "argmax",
                .kind = TILE_OP_COOPERATIVE,
                .n_in = 1,
                .n_out = 1,
                .grad = {TILE_GRAD_ZERO},
                .math = "y = number of the first greatest element over the axes",
                .special = "a number wins over NaN; 0 when all are NaN",
                .infer = infer_arg,
                .run = {TILE_RUNS_WIDE(argmax)},
                .sample = tile_sample_argmax},
    [PROD_OTHERS] = {.name = "prod_others",
                     .kind = TILE_OP_COOPERATIVE,
                     .n_in = 1,
                     .n_out = 1,
                     .grad = {TILE_GRAD_FULL},
                     .math = "y[k] = product of x[j], j != k, over the axes",
                     .special = "the adjoint of prod",
                     .adjoint_math =
                         "dx[k] += sum over i != k of dy[i] * product of x[j], j != i, k",
                     .infer = infer_others,
                     .run = {TILE_RUNS_FLOAT(prod_others)},
                     .adjoint = adjoint_others,
                     .sample = tile_sample_prod_others},
    [PROD_OTHERS_ALONG] = {.name = "prod_others_along",
                           .kind = TILE_OP_COOPERATIVE,
                           .n_in = 2,
                           .n_out = 1,
                           .grad = {TILE_GRAD_ABSENT, TILE_GRAD_FULL},
                           .math = "y[k] = sum over i != k of v[i] * product of x[j], j != i, k",
                           .special = "the adjoint of prod_others",
                           .adjoint_math = "dv = prod_others_along(x, dy)",
                           .infer = infer_others,
                           .run = {TILE_RUNS_FLOAT(prod_others_along)},
                           .adjoint = adjoint_others_along,
                           .sample = tile_sample_prod_others_along},
};

const tile_family tile_ops_reduce = {"reduce", OPS, ops};

/* The axes as bits below the rank; an axis outside leaves a bit that the shape rule refuses. */
static int64_t axes_of(tile x, unsigned axes) {
    return axes == TILE_ALL_AXES ? (INT64_C(1) << tile_shape_of_tile(x).rank) - 1 : (int64_t)axes;
}

static tile emit_reduce(int op, tile x, unsigned axes) {
    if (!tile_is_good(x)) return x;
    const tile_emission e = {
        .op = &ops[op], .n_in = 1, .in = {x}, .attrs = {.n = {axes_of(x, axes)}}};
    return tile_emit(x.builder, &e);
}

tile(tile_sum)(tile x, unsigned axes) {
    return emit_reduce(SUM, x, axes);
}

tile(tile_prod)(tile x, unsigned axes) {
    return emit_reduce(PROD, x, axes);
}

tile(tile_reduce_min)(tile x, unsigned axes) {
    return emit_reduce(REDUCE_MIN, x, axes);
}

tile(tile_reduce_max)(tile x, unsigned axes) {
    return emit_reduce(REDUCE_MAX, x, axes);
}

tile(tile_argmin)(tile x, unsigned axes) {
    return emit_reduce(ARGMIN, x, axes);
}

tile(tile_argmax)(tile x, unsigned axes) {
    return emit_reduce(ARGMAX, x, axes);
}

tile(tile_mean)(tile x, unsigned axes) {
    if (!tile_is_good(x)) return x;
    if (!tile_is_float(tile_dtype_of(x)))
        return tile_builder_fail(x.builder, TILE_E_DTYPE, "tile_mean: x is %s, expected a float",
                                 tile_dtype_name(tile_dtype_of(x)));
    const tile sum = emit_reduce(SUM, tile_widened(x), axes); /* 16 bits may not hold it */
    if (!tile_is_good(sum)) return sum;
    const double n = (double)(tile_shape_count(tile_shape_of_tile(x)) /
                              tile_shape_count(tile_shape_of_tile(sum)));
    const tile in[] = {sum, tile_constant(x.builder, tile_dtype_of(sum), TILE_SCALAR, n)};
    const tile_emission cast = {.op = tile_op_find("cast"),
                                .n_in = 1,
                                .in = {tile_emit_elementwise(x.builder, "div", 2, in)},
                                .has_dtype = true,
                                .dtype = tile_dtype_of(x)};
    return tile_is_half(tile_dtype_of(x)) ? tile_emit(x.builder, &cast) : cast.in[0];
}
