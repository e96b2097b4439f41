/* memory.c: loads, stores, atomic additions, and takes (what a store's gradient reads and clears).
 *
 * attrs.n[0]: the indexed axis. Padding: attrs.real for floats, attrs.n[1] for the other types. */
#include "ops/memory/memory_ops.h"

#include <math.h>

#include "core/adjoint.h"
#include "core/array.h"
#include "core/status.h"
#include "core/struct_tile.h"
#include "ops/memory/memory_rules.h"

#define TILE_KERNEL_FILE "ops/memory/memory_kernel.inc"
#include "core/for_each_dtype.inc"

enum {
    LOAD,
    LOAD_INDEXED,
    STORE,
    STORE_INDEXED,
    ATOMIC_ADD,
    ATOMIC_ADD_INDEXED,
    TAKE,
    TAKE_INDEXED,
    OPS
};
static const tile_op ops[OPS];

/* A tile of the array's rank, or one element. */
static tile_status check_window(const tile_infer *in, tile_shape part) {
    char text[TILE_SHAPE_TEXT];
    TILE_CHECK(part.rank == in->array_rank || (part.rank == 0 && !in->op->indexed), TILE_E_SHAPE,
               "%s: the tile is %s, the array has rank %d", in->op->name,
               tile_shape_text(part, text), in->array_rank);
    return TILE_OK;
}

static tile_status check_indices(const tile_infer *in, tile_shape part) {
    const int64_t axis = in->attrs->n[0];
    char text[2][TILE_SHAPE_TEXT];
    TILE_CHECK(axis >= 0 && axis < in->array_rank, TILE_E_ARGUMENT,
               "%s: axis is %lld, the array has rank %d", in->op->name, (long long)axis,
               in->array_rank);
    TILE_CHECK(in->in_dtype[0] == TILE_I64, TILE_E_DTYPE,
               "%s: indices are %s, expected int32 or int64", in->op->name,
               tile_dtype_name(in->in_dtype[0]));
    TILE_CHECK(in->in_shape[0].rank == 1 && in->in_shape[0].extent[0] == part.extent[axis],
               TILE_E_SHAPE,
               "%s: indices are %s, the tile is %s and goes by indices along axis %lld",
               in->op->name, tile_shape_text(in->in_shape[0], text[0]),
               tile_shape_text(part, text[1]), (long long)axis);
    return TILE_OK;
}

tile_status tile_check_access(const tile_infer *in, tile_shape part) {
    TILE_TRY(check_window(in, part));
    return in->op->indexed ? check_indices(in, part) : TILE_OK;
}

/* load, take: the result has the shape that is asked for. */
static tile_status infer_read(tile_infer *in) {
    TILE_TRY(tile_check_access(in, in->want_shape));
    in->out_shape[0] = in->want_shape;
    in->out_dtype[0] = in->array_dtype;
    return TILE_OK;
}

tile_status tile_infer_write(tile_infer *in) {
    const int t = in->op->indexed ? 1 : 0;
    TILE_TRY(tile_check_access(in, in->in_shape[t]));
    TILE_CHECK(in->in_dtype[t] == in->array_dtype, TILE_E_DTYPE,
               "%s: the tile is %s, the array is %s", in->op->name,
               tile_dtype_name(in->in_dtype[t]), tile_dtype_name(in->array_dtype));
    TILE_CHECK(in->op->access != TILE_ACCESS_ADD || in->op->run[in->array_dtype], TILE_E_DTYPE,
               "%s: %s has no atomic addition", in->op->name, tile_dtype_name(in->array_dtype));
    in->out_shape[0] = in->in_shape[t];
    in->out_dtype[0] = in->array_dtype;
    return TILE_OK;
}

tile tile_emit_on_grad(tile_adjoint *adjoint, const tile_op *op, int n, const tile *in,
                       tile_shape shape) {
    const bool reads = op->access == TILE_ACCESS_LOAD || op->access == TILE_ACCESS_TAKE;
    tile_emission e = {.op = op,
                       .array = tile_adjoint_grad(adjoint),
                       .at = tile_adjoint_offset(adjoint),
                       .has_shape = reads,
                       .shape = shape};
    tile bounds[2 * TILE_RANK_MAX];
    if (!e.array.builder) return (tile){NULL, -1};
    if (tile_adjoint_bounds(adjoint, bounds)) e.bounds = bounds;
    if (op->indexed) {
        e.attrs.n[0] = tile_adjoint_attrs(adjoint)->n[0];
        e.in[e.n_in++] = tile_adjoint_in(adjoint, 0);
    }
    for (int k = 0; k < n; k++) e.in[e.n_in++] = in[k];
    return tile_emit(tile_adjoint_builder(adjoint), &e);
}

/* t: what is written, or no tile. */
static tile on_grad(tile_adjoint *adjoint, int op, tile t, tile_shape shape) {
    return tile_emit_on_grad(adjoint, &ops[op], t.builder != NULL, &t, shape);
}

/* da += dt */
static void adjoint_load(tile_adjoint *adjoint) {
    const tile dt = tile_adjoint_dy(adjoint, 0);
    if (tile_is_good(dt)) on_grad(adjoint, ATOMIC_ADD, dt, TILE_SCALAR);
}
static void adjoint_load_indexed(tile_adjoint *adjoint) {
    const tile dt = tile_adjoint_dy(adjoint, 0);
    if (tile_is_good(dt)) on_grad(adjoint, ATOMIC_ADD_INDEXED, dt, TILE_SCALAR);
}

/* dt += da, then da = 0: the clearing is due whether or not dt is wanted. */
static void adjoint_store(tile_adjoint *adjoint) {
    const tile dt = on_grad(adjoint, TAKE, (tile){NULL, -1}, tile_adjoint_in_shape(adjoint, 0));
    if (tile_is_good(dt) && tile_adjoint_wants(adjoint, 0)) tile_adjoint_add(adjoint, 0, dt);
}
static void adjoint_store_indexed(tile_adjoint *adjoint) {
    const tile dt =
        on_grad(adjoint, TAKE_INDEXED, (tile){NULL, -1}, tile_adjoint_in_shape(adjoint, 1));
    if (tile_is_good(dt) && tile_adjoint_wants(adjoint, 1)) tile_adjoint_add(adjoint, 1, dt);
}

/* dt += da, da kept; the previous values are constants */
static void adjoint_add(tile_adjoint *adjoint) {
    if (!tile_adjoint_wants(adjoint, 0)) return;
    const tile dt = on_grad(adjoint, LOAD, (tile){NULL, -1}, tile_adjoint_in_shape(adjoint, 0));
    if (tile_is_good(dt)) tile_adjoint_add(adjoint, 0, dt);
}
static void adjoint_add_indexed(tile_adjoint *adjoint) {
    if (!tile_adjoint_wants(adjoint, 1)) return;
    const tile dt =
        on_grad(adjoint, LOAD_INDEXED, (tile){NULL, -1}, tile_adjoint_in_shape(adjoint, 1));
    if (tile_is_good(dt)) tile_adjoint_add(adjoint, 1, dt);
}

/* The array is 0 at the taken places afterwards, so what their adjoint was goes nowhere, and what
 * they held went to t: da = dt, or 0 where t has no adjoint. */
static void give_back(tile_adjoint *adjoint, int op) {
    tile dt = tile_adjoint_dy(adjoint, 0);
    if (!tile_is_good(dt)) {
        const tile t = tile_adjoint_out(adjoint, 0);
        if (!tile_is_good(t)) return;
        dt = tile_constant(tile_adjoint_builder(adjoint), tile_dtype_of(t), tile_shape_of_tile(t),
                           0);
    }
    on_grad(adjoint, op, dt, TILE_SCALAR);
}
static void adjoint_take(tile_adjoint *adjoint) {
    give_back(adjoint, STORE);
}
static void adjoint_take_indexed(tile_adjoint *adjoint) {
    give_back(adjoint, STORE_INDEXED);
}

static const tile_op ops[OPS] = {
    [LOAD] = {.name = "load",
              .kind = TILE_OP_COOPERATIVE,
              .element = "load_element",
              .access = TILE_ACCESS_LOAD,
              .n_out = 1,
              .key = TILE_KEY_OUT0,
              .math = "t[c] = a[at + c]",
              .special = "outside of a, on either side: the padding value, no gradient",
              .adjoint_math = "da[at + c] += dt[c] inside",
              .infer = infer_read,
              .run = {TILE_RUNS(load)},
              .adjoint = adjoint_load},
    [LOAD_INDEXED] = {.name = "load_indexed",
                      .kind = TILE_OP_COOPERATIVE,
                      .element = "load_element",
                      .access = TILE_ACCESS_LOAD,
                      .indexed = true,
                      .n_in = 1,
                      .n_out = 1,
                      .key = TILE_KEY_OUT0,
                      .math = "t[c] = a[at + c, at[axis] + indices[c[axis]] along axis]",
                      .special = "outside of a, on either side: the padding value, no gradient",
                      .adjoint_math = "da += dt at the places read",
                      .infer = infer_read,
                      .run = {TILE_RUNS(load_indexed)},
                      .adjoint = adjoint_load_indexed},
    [STORE] = {.name = "store",
               .kind = TILE_OP_COOPERATIVE,
               .element = "store_element",
               .access = TILE_ACCESS_STORE,
               .n_in = 1,
               .key = TILE_KEY_IN0,
               .grad = {TILE_GRAD_FULL},
               .math = "a[at + c] = t[c]",
               .special = "places outside of a are skipped",
               .adjoint_math = "dt[c] += da[at + c] inside, then da there = 0",
               .infer = tile_infer_write,
               .run = {TILE_RUNS(store)},
               .adjoint = adjoint_store},
    [STORE_INDEXED] = {.name = "store_indexed",
                       .kind = TILE_OP_COOPERATIVE,
                       .access = TILE_ACCESS_STORE,
                       .indexed = true,
                       .n_in = 2,
                       .key = TILE_KEY_IN1,
                       .grad = {TILE_GRAD_ABSENT, TILE_GRAD_FULL},
                       .math = "a[at + c, at[axis] + indices[c[axis]] along axis] = t[c]",
                       .special = "places outside of a are skipped; of several elements "
                                  "at one place the last wins",
                       .adjoint_math =
                           "dt += da for the last element of a place, then da there = 0",
                       .infer = tile_infer_write,
                       .run = {TILE_RUNS(store_indexed)},
                       .adjoint = adjoint_store_indexed},
    [ATOMIC_ADD] = {.name = "atomic_add",
                    .kind = TILE_OP_COOPERATIVE,
                    .element = "add_element",
                    .access = TILE_ACCESS_ADD,
                    .n_in = 1,
                    .n_out = 1,
                    .key = TILE_KEY_IN0,
                    .grad = {TILE_GRAD_FULL},
                    .math = "previous[c] = a[at + c], then a[at + c] += t[c]",
                    .special = "previous is 0 outside of a, and a constant for gradients",
                    .adjoint_math = "dt[c] += da[at + c] inside",
                    .infer = tile_infer_write,
                    .run = {TILE_RUNS_ADD(atomic_add)},
                    .adjoint = adjoint_add},
    [ATOMIC_ADD_INDEXED] = {.name = "atomic_add_indexed",
                            .kind = TILE_OP_COOPERATIVE,
                            .element = "add_element",
                            .access = TILE_ACCESS_ADD,
                            .indexed = true,
                            .n_in = 2,
                            .n_out = 1,
                            .key = TILE_KEY_IN1,
                            .grad = {TILE_GRAD_ABSENT, TILE_GRAD_FULL},
                            .math = "previous = a[x], then a[x] += t, "
                                    "x = at + c, at[axis] + indices[c[axis]] along axis",
                            .special = "previous is 0 outside of a, and a constant for gradients",
                            .adjoint_math = "dt += da at the places",
                            .infer = tile_infer_write,
                            .run = {TILE_RUNS_ADD(atomic_add_indexed)},
                            .adjoint = adjoint_add_indexed},
    [TAKE] = {.name = "take",
              .kind = TILE_OP_COOPERATIVE,
              .element = "take_element",
              .access = TILE_ACCESS_TAKE,
              .n_out = 1,
              .key = TILE_KEY_OUT0,
              .math = "t[c] = a[at + c], then a[at + c] = 0",
              .special = "outside of a: 0; the adjoint of store",
              .adjoint_math = "da[at + c] = dt[c] inside",
              .infer = infer_read,
              .run = {TILE_RUNS(take)},
              .adjoint = adjoint_take},
    [TAKE_INDEXED] = {.name = "take_indexed",
                      .kind = TILE_OP_COOPERATIVE,
                      .access = TILE_ACCESS_TAKE,
                      .indexed = true,
                      .n_in = 1,
                      .n_out = 1,
                      .key = TILE_KEY_OUT0,
                      .math = "t = a[x] for the last element of a place, 0 for the others, "
                              "then a[x] = 0",
                      .special = "outside of a: 0; the adjoint of store_indexed",
                      .adjoint_math = "da[x] = dt of the last element of a place",
                      .infer = infer_read,
                      .run = {TILE_RUNS(take_indexed)},
                      .adjoint = adjoint_take_indexed},
};

const tile_family tile_ops_memory = {"memory", OPS, ops};

bool tile_set_pad(const char *call, tile_param a, double pad, tile_attrs *attrs) {
    tile_builder *b = a.builder;
    if (tile_param_is_struct(a) && pad != 0) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: pad is %.17g, structs are padded with 0", call,
                          pad);
        return false;
    }
    if (!b || a.index < 0 || a.index >= b->program.param_count) return true;
    const tile_dtype dtype = b->program.param[a.index].dtype;
    if (tile_is_float(dtype)) {
        attrs->real = pad;
        return true;
    }
    if (!tile_dtype_holds(dtype, pad) || (pad == 0 && signbit(pad))) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: pad is %.17g, which %s does not hold", call, pad,
                          tile_dtype_name(dtype));
        return false;
    }
    attrs->n[1] = dtype == TILE_U64 ? (int64_t)(uint64_t)pad : (int64_t)pad;
    return true;
}

static tile emit_load(const char *call, tile_param a, tile_shape shape, tile_offset at,
                      double pad) {
    tile_emission e = {.op = &ops[LOAD], .array = a, .at = at, .has_shape = true, .shape = shape};
    if (!tile_set_pad(call, a, pad, &e.attrs)) return (tile){a.builder, -1};
    return tile_emit(a.builder, &e);
}

static tile emit_load_indexed(const char *call, tile_param a, tile indices, const tile_emission *at,
                              double pad) {
    tile_emission e = *at;
    e.op = &ops[LOAD_INDEXED];
    e.array = a;
    e.n_in = 1;
    e.in[0] = tile_builder_indices(a.builder, call, indices);
    if (!tile_set_pad(call, a, pad, &e.attrs)) return (tile){a.builder, -1};
    return tile_emit(a.builder, &e);
}

static tile emit_write(int op, tile_param a, tile t, tile_offset at) {
    const tile_emission e = {.op = &ops[op], .n_in = 1, .in = {t}, .array = a, .at = at};
    return tile_emit(a.builder, &e);
}

static tile emit_write_indexed(const char *call, int op, tile_param a, tile indices, tile t,
                               const tile_emission *at) {
    tile_emission e = *at;
    e.op = &ops[op];
    e.array = a;
    e.n_in = 2;
    e.in[0] = tile_builder_indices(a.builder, call, indices);
    e.in[1] = t;
    return tile_emit(a.builder, &e);
}

tile(tile_load)(tile_param a, tile_shape shape, tile_offset at) {
    return emit_load("tile_load", a, shape, at, 0);
}

tile(tile_load_padded)(tile_param a, tile_shape shape, tile_offset at, double pad) {
    return emit_load("tile_load_padded", a, shape, at, pad);
}

tile(tile_load_indexed)(tile_param a, tile indices, tile_shape shape, tile_offset at, int axis) {
    const tile_emission where = {
        .at = at, .attrs = {.n = {axis}}, .has_shape = true, .shape = shape};
    return emit_load_indexed("tile_load_indexed", a, indices, &where, 0);
}

tile(tile_load_indexed_padded)(tile_param a, tile indices, tile_shape shape, tile_offset at,
                               int axis, double pad) {
    const tile_emission where = {
        .at = at, .attrs = {.n = {axis}}, .has_shape = true, .shape = shape};
    return emit_load_indexed("tile_load_indexed_padded", a, indices, &where, pad);
}

void(tile_store)(tile_param a, tile t, tile_offset at) {
    emit_write(STORE, a, t, at);
}

void(tile_store_indexed)(tile_param a, tile indices, tile t, tile_offset at, int axis) {
    const tile_emission where = {.at = at, .attrs = {.n = {axis}}};
    emit_write_indexed("tile_store_indexed", STORE_INDEXED, a, indices, t, &where);
}

tile(tile_atomic_add)(tile_param a, tile t, tile_offset at) {
    return emit_write(ATOMIC_ADD, a, t, at);
}

/* Integers wrap, so that the lowest one is its own negative and is subtracted all the same. */
tile(tile_atomic_sub)(tile_param a, tile t, tile_offset at) {
    return emit_write(ATOMIC_ADD, a, tile_emit_elementwise(a.builder, "neg", 1, &t), at);
}

tile(tile_atomic_sub_indexed)(tile_param a, tile indices, tile t, tile_offset at, int axis) {
    const tile_emission where = {.at = at, .attrs = {.n = {axis}}};
    return emit_write_indexed("tile_atomic_sub_indexed", ATOMIC_ADD_INDEXED, a, indices,
                              tile_emit_elementwise(a.builder, "neg", 1, &t), &where);
}

tile(tile_atomic_add_indexed)(tile_param a, tile indices, tile t, tile_offset at, int axis) {
    const tile_emission where = {.at = at, .attrs = {.n = {axis}}};
    return emit_write_indexed("tile_atomic_add_indexed", ATOMIC_ADD_INDEXED, a, indices, t, &where);
}
