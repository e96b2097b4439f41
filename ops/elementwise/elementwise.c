/* elementwise.c: the descriptors of the table, their shape rules, the choice of strips. */
#include <math.h>

#include "core/status.h"
#include "ops/elementwise/elementwise_strips.h"

static const tile_strips *strips(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &tile_strips_avx2;
#endif
    return &tile_strips_base;
}

/* All operands from first on of one type, which the row has. */
static tile_status same_type(const tile_infer *in, int first) {
    const char *name = in->op->name;
    const tile_dtype dtype = in->in_dtype[first];
    for (int k = first + 1; k < in->n_in; k++)
        TILE_CHECK(in->in_dtype[k] == dtype, TILE_E_DTYPE, "tile_%s: %c is %s, %c is %s", name,
                   'a' + first, tile_dtype_name(dtype), 'a' + k, tile_dtype_name(in->in_dtype[k]));
    TILE_CHECK(in->op->strip(in->op, in->in_dtype, TILE_DTYPES), TILE_E_DTYPE,
               "tile_%s: no such operation on %s", name, tile_dtype_name(dtype));
    return TILE_OK;
}

static tile_status one_result(tile_infer *in, tile_dtype dtype) {
    in->n_out = 1;
    in->out_shape[0] = in->in_shape[0];
    in->out_dtype[0] = dtype;
    return TILE_OK;
}

static tile_status infer_same(tile_infer *in) {
    TILE_TRY(same_type(in, 0));
    return one_result(in, in->in_dtype[0]);
}

static tile_status infer_compare(tile_infer *in) {
    TILE_TRY(same_type(in, 0));
    return one_result(in, TILE_BOOL);
}

static tile_status infer_select(tile_infer *in) {
    TILE_CHECK(in->in_dtype[0] == TILE_BOOL, TILE_E_DTYPE, "tile_select: a is %s, wanted bool",
               tile_dtype_name(in->in_dtype[0]));
    TILE_TRY(same_type(in, 1));
    return one_result(in, in->in_dtype[1]);
}

static tile_status infer_cast(tile_infer *in) {
    TILE_CHECK(tile_dtype_valid(in->want_dtype), TILE_E_DTYPE,
               "tile_cast: dtype is %d, which is no element type", (int)in->want_dtype);
    return one_result(in, in->want_dtype);
}

static tile_strip strip_in0(const tile_op *op, const tile_dtype *in, tile_dtype out) {
    (void)out;
    return strips()->row[op - tile_ops_elementwise.ops][in[0]];
}

static tile_strip strip_in1(const tile_op *op, const tile_dtype *in, tile_dtype out) {
    (void)out;
    return strips()->row[op - tile_ops_elementwise.ops][in[1]];
}

static tile_strip strip_cast(const tile_op *op, const tile_dtype *in, tile_dtype out) {
    (void)op;
    return strips()->cast[in[0]][out];
}

#define GRAD_FULL(formula) TILE_GRAD_FULL
#define GRAD_ZERO TILE_GRAD_ZERO
#define TEXT_FULL(formula) #formula
#define TEXT_ZERO NULL

#define HEAD(text, n, expression, edges) \
    .name = text, .n_in = n, .n_out = 1, .math = expression, .special = edges
#define RULES(rule, choice, by) .infer = rule, .strip = choice, .key = by
#define RULES_SAME RULES(infer_same, strip_in0, TILE_KEY_IN0)
#define GRADS1(da) .grad = {GRAD_##da}, .derivative = {TEXT_##da}
#define GRADS2(da, db) .grad = {GRAD_##da, GRAD_##db}, .derivative = {TEXT_##da, TEXT_##db}
#define GRADS3(da, db, dc) \
    .grad = {GRAD_##da, GRAD_##db, GRAD_##dc}, .derivative = {TEXT_##da, TEXT_##db, TEXT_##dc}
#define TEST1(la, ha, at) .low = {la}, .high = {ha}, .kink = (double)(at)
#define TEST2(la, ha, lb, hb, at) .low = {la, lb}, .high = {ha, hb}, .kink = (double)(at)
#define TEST3(la, ha, lb, hb, lc, hc, at) \
    .low = {la, lb, lc}, .high = {ha, hb, hc}, .kink = (double)(at)

#define UNARY(name_, y, types, da, la, ha, at, what, edges) \
    {HEAD(#name_, 1, #y, edges), RULES_SAME, GRADS1(da), TEST1(la, ha, at)},
#define BINARY(name_, y, types, da, db, la, ha, lb, hb, at, what, edges) \
    {HEAD(#name_, 2, #y, edges), RULES_SAME, GRADS2(da, db), TEST2(la, ha, lb, hb, at)},
#define TERNARY(name_, y, types, da, db, dc, la, ha, lb, hb, lc, hc, at, what, edges) \
    {HEAD(#name_, 3, #y, edges), RULES_SAME, GRADS3(da, db, dc), TEST3(la, ha, lb, hb, lc, hc, at)},
#define COMPARE(name_, y, types, la, ha, lb, hb, what, edges)                   \
    {HEAD(#name_, 2, #y, edges), RULES(infer_compare, strip_in0, TILE_KEY_IN0), \
     GRADS2(ZERO, ZERO), TEST2(la, ha, lb, hb, NAN)},
#define SELECT(name_, y, types, da, db, dc, la, ha, lb, hb, lc, hc, at, what, edges)          \
    {HEAD(#name_, 3, #y, edges), .moves = true, RULES(infer_select, strip_in1, TILE_KEY_IN1), \
     GRADS3(da, db, dc), TEST3(la, ha, lb, hb, lc, hc, at)},
#define CAST(name_, y, types, da, la, ha, at, what, edges)                                 \
    {HEAD(#name_, 1, #y, edges), RULES(infer_cast, strip_cast, TILE_KEY_OUT0), GRADS1(da), \
     TEST1(la, ha, at)},
#define MATH1 UNARY
#define MATH2 BINARY

static const tile_op ops[TILE_ROWS] = {
#include "ops/elementwise/elementwise.def"
};

const tile_family tile_ops_elementwise = {"elementwise", TILE_ROWS, ops};
