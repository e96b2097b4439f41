/* atomic.c: atomic minimum, maximum, and, or, xor. attrs.n[0]: the indexed axis. */
#include "ops/atomic/atomic_ops.h"

#include "core/adjoint.h"
#include "core/status.h"
#include "ops/memory/memory_rules.h"

#define TILE_KERNEL_FILE "ops/atomic/atomic_kernel.inc"
#include "core/for_each_dtype.inc"

static tile_status infer_update(tile_infer *in) {
    const bool bitwise = !in->op->run[TILE_F64];
    TILE_CHECK(in->op->run[in->array_dtype], TILE_E_DTYPE,
               "%s: the array is %s, expected %sint32, int64, uint32 or uint64", in->op->name,
               tile_dtype_name(in->array_dtype), bitwise ? "" : "a float dtype, ");
    return tile_infer_write(in);
}

/* An element won when it was strictly better than what it met: the last winner of a place takes
 * da, which is then 0 for those before. The clearing is due whether or not dt is wanted. */
static void adjoint_best(tile_adjoint *adjoint, const char *better, bool indexed) {
    const int k = indexed ? 1 : 0;
    const tile t = tile_adjoint_in(adjoint, k), previous = tile_adjoint_out(adjoint, 0);
    const tile won = tile_emit_elementwise(tile_adjoint_builder(adjoint), better, 2,
                                           (const tile[]){t, previous});
    const tile_op *take = tile_op_find(indexed ? "take_where_indexed" : "take_where");
    const tile dt = tile_emit_on_grad(adjoint, take, 1, &won, tile_adjoint_in_shape(adjoint, k));
    if (tile_is_good(dt) && tile_adjoint_wants(adjoint, k)) tile_adjoint_add(adjoint, k, dt);
}
static void adjoint_min(tile_adjoint *adjoint) {
    adjoint_best(adjoint, "less", false);
}
static void adjoint_min_indexed(tile_adjoint *adjoint) {
    adjoint_best(adjoint, "less", true);
}
static void adjoint_max(tile_adjoint *adjoint) {
    adjoint_best(adjoint, "greater", false);
}
static void adjoint_max_indexed(tile_adjoint *adjoint) {
    adjoint_best(adjoint, "greater", true);
}

#define UPDATE(id)                                                                                \
    .name = id, .kind = TILE_OP_COOPERATIVE, .access = TILE_ACCESS_UPDATE, .n_in = 1, .n_out = 1, \
    .key = TILE_KEY_IN0, .infer = infer_update
#define UPDATE_INDEXED(id)                                                                  \
    .name = id, .kind = TILE_OP_COOPERATIVE, .access = TILE_ACCESS_UPDATE, .indexed = true, \
    .n_in = 2, .n_out = 1, .key = TILE_KEY_IN1, .infer = infer_update

#define FIRST "previous[c] = a[at + c], then a[at + c] = "
#define FIRST_INDEXED \
    "previous = a[x], x = at + c, at[axis] + indices[c[axis]] along axis, then a[x] = "
#define OUTSIDE "previous is 0 outside of a, and a constant for gradients"
#define WINNER "a tie and NaN leave a as it is; " OUTSIDE
#define TO_WINNER \
    "dt += da for the last element that was better than what it met, then da there = 0"
#define NONE "none: asking is an error"

enum {
    MIN,
    MIN_INDEXED,
    MAX,
    MAX_INDEXED,
    AND,
    AND_INDEXED,
    OR,
    OR_INDEXED,
    XOR,
    XOR_INDEXED,
    OPS
};

static const tile_op ops[OPS] = {
    [MIN] = {UPDATE("atomic_min"), .grad = {TILE_GRAD_FULL},
             .math = FIRST "t[c] where t[c] < a[at + c]", .special = WINNER,
             .adjoint_math = TO_WINNER, .run = {TILE_RUNS_ADD(atomic_min)}, .adjoint = adjoint_min},
    [MIN_INDEXED] = {UPDATE_INDEXED("atomic_min_indexed"),
                     .grad = {TILE_GRAD_ABSENT, TILE_GRAD_FULL},
                     .math = FIRST_INDEXED "t[c] where t[c] < a[x]", .special = WINNER,
                     .adjoint_math = TO_WINNER, .run = {TILE_RUNS_ADD(atomic_min_indexed)},
                     .adjoint = adjoint_min_indexed},
    [MAX] = {UPDATE("atomic_max"), .grad = {TILE_GRAD_FULL},
             .math = FIRST "t[c] where t[c] > a[at + c]", .special = WINNER,
             .adjoint_math = TO_WINNER, .run = {TILE_RUNS_ADD(atomic_max)}, .adjoint = adjoint_max},
    [MAX_INDEXED] = {UPDATE_INDEXED("atomic_max_indexed"),
                     .grad = {TILE_GRAD_ABSENT, TILE_GRAD_FULL},
                     .math = FIRST_INDEXED "t[c] where t[c] > a[x]", .special = WINNER,
                     .adjoint_math = TO_WINNER, .run = {TILE_RUNS_ADD(atomic_max_indexed)},
                     .adjoint = adjoint_max_indexed},
    [AND] = {UPDATE("atomic_and"), .math = FIRST "a[at + c] & t[c]", .special = OUTSIDE,
             .adjoint_math = NONE, .run = {TILE_RUNS_WORDS(atomic_and)}},
    [AND_INDEXED] = {UPDATE_INDEXED("atomic_and_indexed"), .math = FIRST_INDEXED "a[x] & t[c]",
                     .special = OUTSIDE, .adjoint_math = NONE,
                     .run = {TILE_RUNS_WORDS(atomic_and_indexed)}},
    [OR] = {UPDATE("atomic_or"), .math = FIRST "a[at + c] | t[c]", .special = OUTSIDE,
            .adjoint_math = NONE, .run = {TILE_RUNS_WORDS(atomic_or)}},
    [OR_INDEXED] = {UPDATE_INDEXED("atomic_or_indexed"), .math = FIRST_INDEXED "a[x] | t[c]",
                    .special = OUTSIDE, .adjoint_math = NONE,
                    .run = {TILE_RUNS_WORDS(atomic_or_indexed)}},
    [XOR] = {UPDATE("atomic_xor"), .math = FIRST "a[at + c] ^ t[c]", .special = OUTSIDE,
             .adjoint_math = NONE, .run = {TILE_RUNS_WORDS(atomic_xor)}},
    [XOR_INDEXED] = {UPDATE_INDEXED("atomic_xor_indexed"), .math = FIRST_INDEXED "a[x] ^ t[c]",
                     .special = OUTSIDE, .adjoint_math = NONE,
                     .run = {TILE_RUNS_WORDS(atomic_xor_indexed)}},
};

const tile_family tile_ops_atomic = {"atomic", OPS, ops};

static tile emit(int op, tile_param a, tile t, tile_offset at) {
    const tile_emission e = {.op = &ops[op], .n_in = 1, .in = {t}, .array = a, .at = at};
    return tile_emit(a.builder, &e);
}

/* op: the plain one; the indexed one follows it. */
static tile emit_indexed(int op, const char *call, tile_param a, const tile *in, tile_offset at,
                         int axis) {
    const tile_emission e = {.op = &ops[op + 1],
                             .n_in = 2,
                             .in = {tile_builder_indices(a.builder, call, in[0]), in[1]},
                             .array = a,
                             .at = at,
                             .attrs = {.n = {axis}}};
    return tile_emit(a.builder, &e);
}

#define CALLS(name, id)                                                                          \
    tile(tile_atomic_##name)(tile_param a, tile t, tile_offset at) {                             \
        return emit(id, a, t, at);                                                               \
    }                                                                                            \
    tile(tile_atomic_##name##_indexed)(tile_param a, tile i, tile t, tile_offset at, int axis) { \
        return emit_indexed(id, "tile_atomic_" #name "_indexed", a, (const tile[]){i, t}, at,    \
                            axis);                                                               \
    }

CALLS(min, MIN)
CALLS(max, MAX)
CALLS(and, AND)
CALLS(or, OR)
CALLS(xor, XOR)
