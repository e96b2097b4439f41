/* builder_promote.c: casts that the builder makes: indices to int64, and 16-bit floats, which are
 * computed in float32 and rounded once an op.
 *
 * An op that has no kernel for a 16-bit float gets its operands cast to float32, is emitted in
 * float32, and its result is cast back. This is the one place that does so: programs hold 16-bit
 * tiles in what moves elements and in casts, and everything after the builder sees no other. */
#include "core/builder.h"
#include "core/status.h"

/* A result type that is wanted and does not exist is the shape rule's to refuse; one that is not
 * asked for is the first operand's. */
static bool has_kernel(const tile_op *op, const tile_dtype *in, tile_dtype want) {
    const bool asked = op->key != TILE_KEY_OUT0 || tile_dtype_valid(want);
    if (op->kind == TILE_OP_ELEMENTWISE) return !asked || op->strip(op, in, want);
    if (op->key == TILE_KEY_OUT0) return op->run[asked ? want : in[0]];
    return op->run[in[op->key == TILE_KEY_IN1]];
}

/* The 16-bit float that the op is to be computed for, or TILE_DTYPES. Ops on arrays take their
 * elements as they are. */
static tile_dtype half_of(const tile_op *op, int n_in, const tile_dtype *in, tile_dtype want) {
    tile_dtype half = TILE_DTYPES;
    if (op->access || op->kind == TILE_OP_STRUCTURE) return half;
    for (int k = n_in - 1; k >= 0; k--)
        if (tile_is_half(in[k])) half = in[k];
    if (half == TILE_DTYPES && op->key == TILE_KEY_OUT0 && tile_is_half(want)) half = want;
    return half == TILE_DTYPES || has_kernel(op, in, want) ? TILE_DTYPES : half;
}

/* The shape rule with float32 in place of the 16-bit float. Another float beside it is refused, as
 * float64 beside float32 is. */
static tile_status infer_wide(tile_infer *in, tile_dtype half) {
    for (int k = 0; k < in->n_in; k++) {
        TILE_CHECK(in->in_dtype[k] == half || !tile_is_float(in->in_dtype[k]), TILE_E_DTYPE,
                   "%s: %s and %s are mixed", in->op->name, tile_dtype_name(half),
                   tile_dtype_name(in->in_dtype[k]));
        if (in->in_dtype[k] == half) in->in_dtype[k] = TILE_F32;
    }
    if (in->want_dtype == half) in->want_dtype = TILE_F32;
    return in->op->infer(in);
}

tile_status tile_infer_promoted(tile_infer *in) {
    const tile_dtype half = half_of(in->op, in->n_in, in->in_dtype, in->want_dtype);
    if (half == TILE_DTYPES) return in->op->infer(in);
    tile_attrs attrs = *in->attrs;
    tile_infer wide = *in;
    wide.attrs = &attrs;
    if (infer_wide(&wide, half)) return in->op->infer(in); /* which names the types that came */
    for (int k = 0; k < wide.n_out; k++) {
        in->out_shape[k] = wide.out_shape[k];
        in->out_dtype[k] = wide.out_dtype[k] == TILE_F32 ? half : wide.out_dtype[k];
    }
    in->n_out = wide.n_out;
    *in->attrs = attrs;
    return TILE_OK;
}

static tile cast_to(tile t, tile_dtype dtype) {
    const tile_emission e = {
        .op = tile_op_find("cast"), .n_in = 1, .in = {t}, .has_dtype = true, .dtype = dtype};
    return tile_emit(t.builder, &e);
}

tile tile_widened(tile t) {
    return tile_is_good(t) && tile_is_half(tile_dtype_of(t)) ? cast_to(t, TILE_F32) : t;
}

/* What the rule is asked: types, and shapes as they came. false: an operand is no tile of this
 * kernel, which tile_emit reports. */
static bool draft(const tile_builder *b, const tile_emission *e, tile_attrs *attrs,
                  tile_infer *in) {
    *attrs = e->attrs;
    *in = (tile_infer){.op = e->op,
                       .n_in = e->n_in,
                       .attrs = attrs,
                       .want_shape = e->shape,
                       .want_dtype = e->has_dtype ? e->dtype : TILE_DTYPES,
                       .n_out = e->op->n_out};
    if (!e->has_shape) in->want_shape.rank = -1;
    for (int k = 0; k < e->n_in; k++) {
        if (e->in[k].builder != b || e->in[k].id < 0 || e->in[k].id >= b->program.value_count)
            return false;
        in->in_dtype[k] = tile_dtype_of(e->in[k]);
        in->in_shape[k] = tile_shape_of_tile(e->in[k]);
    }
    return true;
}

bool tile_emit_promoted(tile_builder *b, const tile_emission *e, tile *result) {
    tile_attrs attrs;
    tile_infer in;
    if (!draft(b, e, &attrs, &in)) return false;
    const tile_dtype half = half_of(e->op, e->n_in, in.in_dtype, in.want_dtype);
    if (half == TILE_DTYPES || infer_wide(&in, half)) return false;
    tile_emission wide = *e;
    for (int k = 0; k < e->n_in; k++) wide.in[k] = tile_widened(e->in[k]);
    if (wide.dtype == half) wide.dtype = TILE_F32;
    *result = tile_emit(b, &wide);
    if (!tile_is_good(*result) || tile_dtype_of(*result) != TILE_F32) return true;
    *result = e->op->n_out == 1 ? cast_to(*result, half)
                                : tile_builder_fail(b, TILE_E_DTYPE, "%s: no kernel for %s",
                                                    e->op->name, tile_dtype_name(half));
    return true;
}

tile tile_builder_indices(tile_builder *b, const char *call, tile indices) {
    if (!tile_is_good(indices)) {
        if (b && indices.builder != b)
            tile_builder_fail(b, TILE_E_ARGUMENT, "%s: indices are not a tile", call);
        return (tile){b, -1};
    }
    const tile_dtype dtype = tile_dtype_of(indices);
    if (dtype == TILE_I64) return indices;
    if (dtype != TILE_I32)
        return tile_builder_fail(b, TILE_E_DTYPE, "%s: indices are %s, expected int32 or int64",
                                 call, tile_dtype_name(dtype));
    return cast_to(indices, TILE_I64);
}
