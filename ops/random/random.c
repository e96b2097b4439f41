/* random.c: the descriptors of the random ops, their shape rule, their public functions. */
#include "ops/random/random_ops.h"

#include <math.h>

#include "core/builder.h"
#include "core/status.h"
#include "ops/random/random_strips.h"

static tile_strip strip_out(const tile_op *op, const tile_dtype *in, tile_dtype out) {
    (void)in;
    const tile_random_strips *strips = &tile_random_base;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) strips = &tile_random_avx2;
#endif
    return out < TILE_DTYPES ? strips->row[op - tile_ops_random.ops][out] : NULL;
}

static tile_status infer_random(tile_infer *in) {
    static const char *const operand[] = {"seed", "number", "draw"};
    const char *name = in->op->name;
    for (int k = 0; k < in->n_in; k++)
        TILE_CHECK(in->in_dtype[k] == TILE_I64, TILE_E_DTYPE, "tile_%s: %s is %s, wanted int64",
                   name, operand[k], tile_dtype_name(in->in_dtype[k]));
    const bool bits = in->op == &tile_ops_random.ops[TILE_RANDOM_BITS];
    const tile_dtype dtype = bits ? TILE_U32 : in->want_dtype;
    TILE_CHECK(bits || dtype == TILE_F32 || dtype == TILE_F64, TILE_E_DTYPE,
               "tile_%s: dtype is %s, wanted a float dtype", name,
               tile_dtype_valid(dtype) ? tile_dtype_name(dtype) : "not given");
    in->n_out = 1;
    in->out_shape[0] = in->in_shape[0];
    in->out_dtype[0] = dtype;
    return TILE_OK;
}

#define RANDOM(op_name, expression)                                                        \
    {                                                                                      \
        .name = #op_name, .n_in = 3, .n_out = 1, .key = TILE_KEY_OUT0, .math = expression, \
        .infer = infer_random, .strip = strip_out,                                         \
        .grad = {TILE_GRAD_ZERO, TILE_GRAD_ZERO, TILE_GRAD_ZERO}, .low = {0, 0, 0},        \
        .high = {1e9, 1e9, 40}, .kink = (double)NAN                                        \
    }

static const tile_op ops[TILE_RANDOM_OPS] = {
    [TILE_RANDOM_BITS] = RANDOM(random_bits, "PHILOX(a, b, c)"),
    [TILE_RANDOM_UNIFORM] = RANDOM(random_uniform, "PHILOX_UNIFORM(a, b, c)"),
    [TILE_RANDOM_NORMAL] = RANDOM(random_normal, "PHILOX_NORMAL(a, b, c)"),
};

const tile_family tile_ops_random = {"random", TILE_RANDOM_OPS, ops};

static tile emit(int row, tile seed, tile number, tile draw, tile_dtype dtype) {
    const tile_emission emission = {
        .op = &ops[row], .n_in = 3, .in = {seed, number, draw}, .has_dtype = true, .dtype = dtype};
    tile_builder *b = tile_builder_of(emission.in, 3);
    return b ? tile_emit(b, &emission) : (tile){NULL, -1};
}

tile(tile_random_bits)(tile seed, tile number, tile draw) {
    return emit(TILE_RANDOM_BITS, seed, number, draw, TILE_U32);
}

tile(tile_random_uniform)(tile seed, tile number, tile draw, tile_dtype dtype) {
    return emit(TILE_RANDOM_UNIFORM, seed, number, draw, dtype);
}

tile(tile_random_normal)(tile seed, tile number, tile draw, tile_dtype dtype) {
    return emit(TILE_RANDOM_NORMAL, seed, number, draw, dtype);
}
