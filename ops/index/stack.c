/* stack.c: a stack as tiles that pushes and pops replace: scatters, gathers and sums of masks, so
 * that its gradient is theirs. */
#include "core/array.h"
#include "core/builder.h"
#include "core/struct_tile.h"
#include "ops/index/index_ops.h"
#include "ops/index/stack_ops.h"

/* The states of a stack, from stack.state on: how many elements, how many were dropped, and the
 * slots, [capacity]. */
enum { COUNT, OVERFLOW, SLOTS, STATES };

static tile get(tile_stack s, int32_t k) {
    return tile_builder_state(s.builder, s.state + k);
}

static void set(tile_stack s, int32_t k, tile next) {
    tile_builder_state_set(s.builder, s.state + k, next);
}

static tile nothing(tile_builder *b) {
    return (tile){b, -1};
}

tile_stack(tile_stack_create)(tile_builder *b, int64_t capacity, tile_dtype dtype) {
    enum { CAPACITY_MAX = 1 << 24 };
    const tile_stack none = {b, -1};
    if (!b || b->status) return none;
    if (!tile_dtype_valid(dtype) && !tile_struct_of(dtype)) {
        tile_builder_fail(b, TILE_E_DTYPE, "tile_stack_create: dtype %d does not exist",
                          (int)dtype);
        return none;
    }
    if (capacity < 1 || capacity > CAPACITY_MAX) {
        tile_builder_fail(b, TILE_E_ARGUMENT,
                          "tile_stack_create: capacity is %lld, expected 1 to %d",
                          (long long)capacity, CAPACITY_MAX);
        return none;
    }
    const tile zero = tile_constant(b, TILE_I64, TILE_SCALAR, 0);
    const tile_stack s = {b, tile_builder_state_add(b, zero)};
    tile_builder_state_add(b, zero);
    const tile slots = tile_constant(b, dtype, TILE_SHAPE(capacity), 0);
    tile_builder_state_add(b, (tile_set_space)(slots, TILE_SHARED));
    return b->status ? none : s;
}

/* Checks */

static bool check_stack(const char *call, tile_stack s) {
    tile_builder *b = s.builder;
    if (!b || b->status) return false;
    if (s.state < 0 || s.state + STATES > b->state_count) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: not a stack of this kernel", call);
        return false;
    }
    if (tile_is_good(get(s, COUNT))) return true;
    tile_builder_fail(b, TILE_E_STATE, "%s: the stack was made inside a loop that has ended", call);
    return false;
}

static bool check_tile(tile_builder *b, const char *call, const char *what, tile t) {
    if (tile_is_good(t) && t.builder == b) return true;
    if (!t.builder || t.builder == b)
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %s is not a tile", call, what);
    else
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %s is a tile of another kernel than the stack",
                          call, what);
    return false;
}

static bool check_mask(tile_builder *b, const char *call, tile mask) {
    if (!check_tile(b, call, "mask", mask)) return false;
    if (tile_dtype_of(mask) == TILE_BOOL) return true;
    tile_builder_fail(b, TILE_E_DTYPE, "%s: mask is %s, expected bool", call,
                      tile_dtype_name(tile_dtype_of(mask)));
    return false;
}

static bool check_value(tile_stack s, tile value, tile mask) {
    const char *call = "tile_stack_push";
    tile_builder *b = s.builder;
    char text[2][TILE_SHAPE_TEXT];
    if (!check_tile(b, call, "value", value) || !check_mask(b, call, mask)) return false;
    const tile_dtype dtype = tile_dtype_of(get(s, SLOTS));
    if (tile_dtype_of(value) != dtype) {
        tile_builder_fail(b, TILE_E_DTYPE, "%s: value is %s, the stack holds %s", call,
                          tile_dtype_name(tile_dtype_of(value)), tile_dtype_name(dtype));
        return false;
    }
    const tile_shape shape = tile_shape_of_tile(value), of_mask = tile_shape_of_tile(mask);
    if (!of_mask.rank || tile_shape_equal(shape, of_mask)) return true;
    tile_builder_fail(b, TILE_E_SHAPE, "%s: mask is %s, value is %s", call,
                      tile_shape_text(of_mask, text[0]), tile_shape_text(shape, text[1]));
    return false;
}

/* Lanes */

/* Which of n lanes move an element. */
typedef struct lanes {
    tile mask;   /* bool [n] */
    tile before; /* how many before the lane, int64 [n] */
    tile total;  /* how many, int64 */
} lanes;

static tile reshaped(tile t, tile_shape shape) {
    if (!tile_is_good(t) || tile_shape_equal(tile_shape_of_tile(t), shape)) return t;
    const tile_emission e = {
        .op = tile_op_find("reshape"), .n_in = 1, .in = {t}, .has_shape = true, .shape = shape};
    return tile_emit(t.builder, &e);
}

/* mask: of n elements, or rank 0: the same for all lanes. */
static lanes lanes_of(tile mask, int64_t n) {
    tile_builder *b = mask.builder;
    const tile_emission spread = {.op = tile_op_find("broadcast"),
                                  .n_in = 1,
                                  .in = {mask},
                                  .has_shape = true,
                                  .shape = TILE_SHAPE(n)};
    lanes l = {.mask = tile_shape_of_tile(mask).rank ? reshaped(mask, TILE_SHAPE(n))
                                                     : tile_emit(b, &spread)};
    const tile_emission cast = {.op = tile_op_find("cast"),
                                .n_in = 1,
                                .in = {l.mask},
                                .has_dtype = true,
                                .dtype = TILE_I64};
    const tile ones = tile_emit(b, &cast);
    const tile_emission sum = {.op = tile_op_find("sum"), .n_in = 1, .in = {ones}, .attrs.n = {1}};
    l.before = (tile_cumsum)(ones, 0, TILE_EXCLUSIVE);
    l.total = tile_emit(b, &sum);
    return l;
}

/* A formula over the stack's count and the lanes. */
static tile with_lanes(tile_stack s, const char *formula, const lanes *l, tile count) {
    static const char *const names[] = {"mask", "before", "total", "count", "overflow", "capacity"};
    const int64_t capacity = tile_shape_of_tile(get(s, SLOTS)).extent[0];
    const tile in[] = {l->mask, l->before,        l->total,
                       count,   get(s, OVERFLOW), (tile_int)(s.builder, capacity)};
    return tile_formula_emit(s.builder, formula, 6, names, in, NULL);
}

tile(tile_stack_push)(tile_stack s, tile value, tile mask) {
    if (!s.builder && tile_is_good(value))
        return tile_builder_fail(value.builder, TILE_E_ARGUMENT,
                                 "tile_stack_push: not a stack of this kernel");
    if (!check_stack("tile_stack_push", s) || !check_value(s, value, mask))
        return nothing(s.builder);
    const tile_shape shape = tile_shape_of_tile(value);
    const int64_t n = tile_shape_count(shape);
    const lanes l = lanes_of(mask, n);
    const tile count = get(s, COUNT);
    const tile slot =
        with_lanes(s, "mask && count + before < capacity ? count + before : -1", &l, count);
    const tile slots = (tile_scatter)(get(s, SLOTS), slot, reshaped(value, TILE_SHAPE(n)), 0);
    set(s, SLOTS, (tile_set_space)(slots, TILE_SHARED));
    set(s, OVERFLOW, with_lanes(s, "overflow + max(count + total - capacity, 0)", &l, count));
    set(s, COUNT, with_lanes(s, "min(count + total, capacity)", &l, count));
    return reshaped(slot, shape);
}

/* mask: of the shape, or rank 0. */
static tile pop(tile_stack s, tile mask, tile_shape shape, tile *slot) {
    const lanes l = lanes_of(mask, tile_shape_count(shape));
    const tile count = get(s, COUNT);
    const tile from =
        with_lanes(s, "mask && count - 1 - before >= 0 ? count - 1 - before : -1", &l, count);
    set(s, COUNT, with_lanes(s, "max(count - total, 0)", &l, count));
    if (slot) *slot = reshaped(from, shape);
    return reshaped((tile_gather)(get(s, SLOTS), from, 0), shape);
}

tile(tile_stack_pop)(tile_stack s, tile_shape shape, tile *slot) {
    if (slot) *slot = nothing(s.builder);
    if (!check_stack("tile_stack_pop", s) ||
        !tile_builder_check_shape(s.builder, "tile_stack_pop", shape))
        return nothing(s.builder);
    const tile all = tile_constant(s.builder, TILE_BOOL, shape, 1);
    return tile_is_good(all) ? pop(s, all, shape, slot) : all;
}

tile(tile_stack_pop_masked)(tile_stack s, tile mask, tile *slot) {
    if (slot) *slot = nothing(s.builder);
    if (!check_stack("tile_stack_pop_masked", s) ||
        !check_mask(s.builder, "tile_stack_pop_masked", mask))
        return nothing(s.builder);
    return pop(s, mask, tile_shape_of_tile(mask), slot);
}

void(tile_stack_clear)(tile_stack s) {
    if (check_stack("tile_stack_clear", s))
        set(s, COUNT, tile_constant(s.builder, TILE_I64, TILE_SCALAR, 0));
}

tile(tile_stack_count)(tile_stack s) {
    return check_stack("tile_stack_count", s) ? get(s, COUNT) : nothing(s.builder);
}

tile(tile_stack_overflow)(tile_stack s) {
    return check_stack("tile_stack_overflow", s) ? get(s, OVERFLOW) : nothing(s.builder);
}
