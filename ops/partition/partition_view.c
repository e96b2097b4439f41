/* partition_view.c: an array cut into tiles, by index: loads, stores and atomics of one tile each.
 *
 * Every call is the window op at index * step, behind a check that the index exists. Nothing wraps:
 * the check looks at the index itself, and a block that fails it goes no further. */
#include <math.h>

#include "core/array.h"
#include "core/builder.h"
#include "core/status.h"
#include "ops/memory/memory_rules.h"
#include "ops/partition/partition_ops.h"

/* Of an atomic access, in the node: 1 + order, 1 + scope. Blocks that count as run one after the
 * other are as strong as the strongest, so the CPU needs neither. */
enum { ATTR_ORDER = 2, ATTR_SCOPE = 3 };

typedef enum kind { LOADS, STORES, UPDATES } kind;

/* A public call. */
typedef struct call {
    const char *name;
    const char *index; /* what is wrong when a check fails: string constants */
    const char *op;
    kind kind;
    bool masked, atomic;
    bool negates; /* the value, once it has the view's type */
} call;

/* A call's row. what: which index a check looks at. */
#define CALL(call, what, op_name, kind_of, ...)                                                   \
    {                                                                                             \
        .name = "tile_partition_" call, .index = "tile_partition_" call ": " what, .op = op_name, \
        .kind = kind_of, __VA_ARGS__                                                              \
    }
#define WHOLE "the index of a whole tile"
#define ANY "the index"

/* Views */

/* Whether a shape has one extent from 1 for each dimension of the array. */
static bool check_extents(tile_param a, const char *what, tile_shape shape) {
    const tile_launch_arg *info = tile_builder_array(a.builder, a);
    char text[TILE_SHAPE_TEXT];
    bool good = shape.rank == info->rank;
    for (int d = 0; good && d < shape.rank; d++) good = shape.extent[d] >= 1;
    if (!good)
        tile_builder_fail(a.builder, TILE_E_SHAPE,
                          "tile_partition_view: the %s is %s, array %s has rank %d, expected as "
                          "many extents from 1",
                          what, tile_shape_text(shape, text), info->name, info->rank);
    return good;
}

tile_partition(tile_partition_view_stepped)(tile_param a, tile_shape shape, tile_shape step) {
    const tile_partition p = {.array = a, .shape = shape, .step = step};
    tile_builder *b = a.builder;
    if (!b || b->status) return p;
    if (!tile_builder_array(b, a))
        tile_builder_fail(b, TILE_E_ARGUMENT,
                          "tile_partition_view: not an array parameter of this kernel");
    else if (check_extents(a, "shape", shape))
        (void)check_extents(a, "step", step);
    return p;
}

tile_partition(tile_partition_view)(tile_param a, tile_shape shape) {
    return (tile_partition_view_stepped)(a, shape, shape);
}

tile_param tile_partition_span(tile_partition p) {
    return p.array;
}

/* ceil(extent / step) = -floor(-extent / step): how many tiles begin inside. */
static tile count_of(const tile_partition *p, int d) {
    tile_builder *b = p->array.builder;
    const tile step = (tile_int)(b, p->step.extent[d]);
    tile n = (tile_extent)(p->array, d);
    n = tile_emit_elementwise(b, "neg", 1, &n);
    n = tile_emit_elementwise(b, "floor_div", 2, (const tile[]){n, step});
    return tile_emit_elementwise(b, "neg", 1, &n);
}

/* floor((extent - shape) / step) + 1: how many tiles are whole inside; below 1: none. */
static tile whole_count_of(const tile_partition *p, int d) {
    tile_builder *b = p->array.builder;
    const tile step = (tile_int)(b, p->step.extent[d]);
    tile n = (tile_extent)(p->array, d);
    n = tile_emit_elementwise(b, "sub", 2, (const tile[]){n, (tile_int)(b, p->shape.extent[d])});
    n = tile_emit_elementwise(b, "floor_div", 2, (const tile[]){n, step});
    return tile_emit_elementwise(b, "add", 2, (const tile[]){n, (tile_int)(b, 1)});
}

tile(tile_partition_count)(tile_partition p, int d) {
    tile_builder *b = p.array.builder;
    if (!b || b->status) return (tile){b, -1};
    if (d < 0 || d >= p.shape.rank)
        return tile_builder_fail(b, TILE_E_ARGUMENT,
                                 "tile_partition_count: dimension %d of a view of rank %d", d,
                                 p.shape.rank);
    return count_of(&p, d);
}

tile_shape tile_partition_counts(const tile_array *a, tile_shape step) {
    const tile_shape none = {.rank = -1};
    tile_shape counts = {.rank = step.rank};
    const tile_shape shape = tile_array_shape(a);
    char text[2][TILE_SHAPE_TEXT];
    bool good = a && shape.rank == step.rank;
    for (int d = 0; good && d < shape.rank; d++) {
        const int64_t e = shape.extent[d], s = step.extent[d];
        good = s >= 1;
        if (good) counts.extent[d] = e / s + (e % s != 0);
    }
    if (good) return counts;
    if (!a)
        (void)tile_fail(TILE_E_ARGUMENT, "tile_partition_counts: a is NULL");
    else
        (void)tile_fail(TILE_E_SHAPE, "tile_partition_counts: the step is %s, the array %s",
                        tile_shape_text(step, text[0]), tile_shape_text(shape, text[1]));
    return none;
}

/* Where a tile lies */

/* One index, its shift added. A shift that is held within +-2^62 cannot make a wrong index a right
 * one by wrapping. */
static tile index_of(const tile_partition *p, const call *c, const tile_offset *index, int d) {
    static const int64_t most = (int64_t)1 << 62;
    tile_builder *b = p->array.builder;
    const int64_t shift = index->shift[d];
    if (shift > most || shift < -most)
        return tile_builder_fail(b, TILE_E_ARGUMENT,
                                 "%s: the index is shifted by %lld, expected at most 2^62", c->name,
                                 (long long)shift);
    const tile i =
        index->rank ? tile_builder_int64(b, c->name, "an index", index->at[d]) : (tile_int)(b, 0);
    if (!shift) return i;
    return tile_emit_elementwise(b, "add", 2, (const tile[]){i, (tile_int)(b, shift)});
}

/* The window of a tile, behind the checks that it exists. */
static bool find_window(const tile_partition *p, const call *c, const tile_offset *index,
                        tile_offset *at) {
    tile_builder *b = p->array.builder;
    if (!b || b->status) return false;
    if (index->rank && index->rank != p->shape.rank) {
        tile_builder_fail(b, TILE_E_SHAPE, "%s: the index has %d dimensions, expected %d", c->name,
                          index->rank, p->shape.rank);
        return false;
    }
    *at = (tile_offset){.rank = p->shape.rank};
    for (int d = 0; d < at->rank; d++) {
        const tile i = index_of(p, c, index, d);
        tile_builder_within(b, i, (tile_int)(b, 0),
                            c->masked ? count_of(p, d) : whole_count_of(p, d), c->index, d);
        at->at[d] =
            tile_emit_elementwise(b, "mul", 2, (const tile[]){i, (tile_int)(b, p->step.extent[d])});
    }
    return !b->status;
}

/* Memory order and thread scope */

static const char *order_name(tile_memory_order order) {
    static const char *const names[] = {"relaxed", "acquire", "release"};
    return (unsigned)order <= TILE_ORDER_RELEASE ? names[order] : "none of the enum";
}

/* A load may acquire, a store may release; what does both is relaxed, within the device. */
static bool check_order(const tile_partition *p, const call *c, tile_memory_order order,
                        tile_thread_scope scope) {
    static const char *const wanted[] = {"relaxed or acquire", "relaxed or release", "relaxed"};
    static const tile_memory_order strong[] = {TILE_ORDER_ACQUIRE, TILE_ORDER_RELEASE,
                                               TILE_ORDER_RELAXED};
    const tile_thread_scope widest = c->kind == UPDATES ? TILE_SCOPE_DEVICE : TILE_SCOPE_SYSTEM;
    if (order != TILE_ORDER_RELAXED && order != strong[c->kind]) {
        tile_builder_fail(p->array.builder, TILE_E_ARGUMENT,
                          "%s: the memory order is %s, expected %s", c->name, order_name(order),
                          wanted[c->kind]);
        return false;
    }
    if ((unsigned)scope <= (unsigned)widest) return true;
    tile_builder_fail(p->array.builder, TILE_E_ARGUMENT, "%s: the thread scope is %s, expected %s",
                      c->name, scope == TILE_SCOPE_SYSTEM ? "system" : "none of the enum",
                      c->kind == UPDATES ? "block or device" : "block, device or system");
    return false;
}

/* Values */

/* Whether every value of a dtype is one of the other. */
static bool holds_all(tile_dtype from, tile_dtype to) {
    const tile_kind f = tile_dtype_kind(from), t = tile_dtype_kind(to);
    const size_t narrow = tile_dtype_size(from), wide = tile_dtype_size(to);
    if (from == to) return true;
    if (t == TILE_KIND_BOOL) return false;
    if (f == TILE_KIND_STRUCT || t == TILE_KIND_STRUCT) return false;
    if (f == TILE_KIND_BOOL) return true;
    if (f == TILE_KIND_FLOAT) return t == TILE_KIND_FLOAT && wide > narrow;
    if (t == TILE_KIND_FLOAT) return wide >= 2 * narrow;
    return f == t ? wide > narrow : t == TILE_KIND_INT && wide > narrow;
}

/* The value as a tile of the view: converted, then spread. So a gradient is summed in the view's
 * type and rounded once. */
static tile value_of(const tile_partition *p, const call *c, tile t) {
    tile_builder *b = p->array.builder;
    char text[2][TILE_SHAPE_TEXT];
    tile_shape shape;
    if (t.builder != b || !tile_is_good(t))
        return tile_builder_fail(b, TILE_E_ARGUMENT, "%s: the value is not a tile of this kernel",
                                 c->name);
    const tile_launch_arg *info = tile_builder_array(b, p->array);
    if (!holds_all(tile_dtype_of(t), info->dtype))
        return tile_builder_fail(b, TILE_E_DTYPE,
                                 "%s: the value is %s, which array %s of %s does not hold", c->name,
                                 tile_dtype_name(tile_dtype_of(t)), info->name,
                                 tile_dtype_name(info->dtype));
    if (!tile_shape_broadcast(tile_shape_of_tile(t), p->shape, &shape) ||
        !tile_shape_equal(shape, p->shape))
        return tile_builder_fail(b, TILE_E_SHAPE, "%s: the value is %s, the view's tiles are %s",
                                 c->name, tile_shape_text(tile_shape_of_tile(t), text[0]),
                                 tile_shape_text(p->shape, text[1]));
    if (tile_dtype_of(t) != info->dtype) {
        const tile_emission cast = {.op = tile_op_find("cast"),
                                    .n_in = 1,
                                    .in = {t},
                                    .has_dtype = true,
                                    .dtype = info->dtype};
        t = tile_emit(b, &cast);
    }
    if (!tile_is_good(t) || tile_shape_equal(tile_shape_of_tile(t), p->shape)) return t;
    const tile_emission spread = {.op = tile_op_find("broadcast"),
                                  .n_in = 1,
                                  .in = {t},
                                  .has_shape = true,
                                  .shape = p->shape};
    return tile_emit(b, &spread);
}

/* Calls */

typedef struct access {
    tile_partition p;
    tile_offset index;
    tile value;
    double pad;
    tile_memory_order order;
    tile_thread_scope scope;
} access;

static tile emit_load(const call *c, const access *a, tile_emission *e) {
    tile_builder *b = a->p.array.builder;
    if (!tile_set_pad(c->name, a->p.array, a->pad, &e->attrs)) return (tile){b, -1};
    e->has_shape = true;
    e->shape = a->p.shape;
    return tile_emit(b, e);
}

static tile emit(const call *c, const access *a) {
    tile_builder *b = a->p.array.builder;
    tile_emission e = {.op = tile_op_find(c->op), .array = a->p.array};
    if (!b) b = a->value.builder ? a->value.builder : a->index.at[0].builder;
    if (!b || b->status) return (tile){b, -1};
    if (!tile_builder_array(b, a->p.array))
        return tile_builder_fail(b, TILE_E_ARGUMENT, "%s: not a view of this kernel", c->name);
    if (c->atomic) {
        if (!check_order(&a->p, c, a->order, a->scope)) return (tile){b, -1};
        e.attrs.n[ATTR_ORDER] = 1 + (int)a->order;
        e.attrs.n[ATTR_SCOPE] = 1 + (int)a->scope;
    }
    if (c->kind != LOADS) {
        tile t = value_of(&a->p, c, a->value);
        if (c->negates) t = tile_emit_elementwise(b, "neg", 1, &t); /* integers wrap */
        e.in[e.n_in++] = t;
        if (b->status) return (tile){b, -1};
        tile_builder_array(b, a->p.array)->injective = true;
    }
    if (!find_window(&a->p, c, &a->index, &e.at)) return (tile){b, -1};
    return c->kind == LOADS ? emit_load(c, a, &e) : tile_emit(b, &e);
}

tile(tile_partition_load)(tile_partition p, tile_offset index) {
    static const call c = CALL("load", WHOLE, "load", LOADS, .masked = false);
    const access a = {.p = p, .index = index};
    return emit(&c, &a);
}

tile(tile_partition_load_masked)(tile_partition p, tile_offset index, double pad) {
    static const call c = CALL("load_masked", ANY, "load", LOADS, .masked = true);
    const access a = {.p = p, .index = index, .pad = pad};
    return emit(&c, &a);
}

tile(tile_partition_atomic_load)(tile_partition p, tile_offset index, tile_memory_order order,
                                 tile_thread_scope scope) {
    static const call c = CALL("atomic_load", WHOLE, "load", LOADS, .atomic = true);
    const access a = {.p = p, .index = index, .order = order, .scope = scope};
    return emit(&c, &a);
}

tile(tile_partition_atomic_load_masked)(tile_partition p, tile_offset index, double pad,
                                        tile_memory_order order, tile_thread_scope scope) {
    static const call c =
        CALL("atomic_load_masked", ANY, "load", LOADS, .masked = true, .atomic = true);
    const access a = {.p = p, .index = index, .pad = pad, .order = order, .scope = scope};
    return emit(&c, &a);
}

void(tile_partition_store)(tile_partition p, tile t, tile_offset index) {
    static const call c = CALL("store", WHOLE, "store", STORES, .masked = false);
    const access a = {.p = p, .index = index, .value = t};
    emit(&c, &a);
}

void(tile_partition_store_masked)(tile_partition p, tile t, tile_offset index) {
    static const call c = CALL("store_masked", ANY, "store", STORES, .masked = true);
    const access a = {.p = p, .index = index, .value = t};
    emit(&c, &a);
}

void(tile_partition_atomic_store)(tile_partition p, tile t, tile_offset index,
                                  tile_memory_order order, tile_thread_scope scope) {
    static const call c = CALL("atomic_store", WHOLE, "store", STORES, .atomic = true);
    const access a = {.p = p, .index = index, .value = t, .order = order, .scope = scope};
    emit(&c, &a);
}

void(tile_partition_atomic_store_masked)(tile_partition p, tile t, tile_offset index,
                                         tile_memory_order order, tile_thread_scope scope) {
    static const call c =
        CALL("atomic_store_masked", ANY, "store", STORES, .masked = true, .atomic = true);
    const access a = {.p = p, .index = index, .value = t, .order = order, .scope = scope};
    emit(&c, &a);
}

#define ARGUMENTS \
    tile_partition p, tile t, tile_offset index, tile_memory_order order, tile_thread_scope scope
#define UPDATE(name, op, what, ...)                                                            \
    tile(tile_partition_##name)(ARGUMENTS) {                                                   \
        static const call c = CALL(#name, what, op, UPDATES, .atomic = true, __VA_ARGS__);     \
        const access a = {.p = p, .index = index, .value = t, .order = order, .scope = scope}; \
        return emit(&c, &a);                                                                   \
    }

UPDATE(atomic_add, "atomic_add", WHOLE, .masked = false)
UPDATE(atomic_add_masked, "atomic_add", ANY, .masked = true)
UPDATE(atomic_sub, "atomic_add", WHOLE, .masked = false, .negates = true)
UPDATE(atomic_sub_masked, "atomic_add", ANY, .masked = true, .negates = true)
UPDATE(atomic_min, "atomic_min", WHOLE, .masked = false)
UPDATE(atomic_min_masked, "atomic_min", ANY, .masked = true)
UPDATE(atomic_max, "atomic_max", WHOLE, .masked = false)
UPDATE(atomic_max_masked, "atomic_max", ANY, .masked = true)
UPDATE(atomic_and, "atomic_and", WHOLE, .masked = false)
UPDATE(atomic_and_masked, "atomic_and", ANY, .masked = true)
UPDATE(atomic_or, "atomic_or", WHOLE, .masked = false)
UPDATE(atomic_or_masked, "atomic_or", ANY, .masked = true)
UPDATE(atomic_xor, "atomic_xor", WHOLE, .masked = false)
UPDATE(atomic_xor_masked, "atomic_xor", ANY, .masked = true)
