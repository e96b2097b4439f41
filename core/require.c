/* require.c: what a kernel asks of its launch: the extents of its arrays, and that a value lies
 * between two others. */
#include "core/array.h"
#include "core/builder.h"
#include "core/status.h"

tile tile_builder_extent(tile_builder *b, int32_t param, int d) {
    if (!b || b->status) return (tile){b, -1};
    const tile_program *p = &b->program;
    const tile_region *root = &p->region[0];
    for (int32_t k = 0; k < root->count; k++) {
        const tile_node *n = &p->node[root->node[k]];
        if (n->op == &tile_op_extent && n->attrs.n[0] == param && n->attrs.n[1] == d)
            return (tile){b, n->out};
    }
    const tile_node node = {.op = &tile_op_extent,
                            .param = -1,
                            .region = -1,
                            .n_out = 1,
                            .attrs.n = {param, d},
                            .epoch = b->epoch};
    return tile_builder_add_structure(b, &node, TILE_I64);
}

tile(tile_extent)(tile_param a, int d) {
    tile_builder *b = a.builder;
    if (!b || b->status) return (tile){b, -1};
    const tile_launch_arg *array = tile_builder_array(b, a);
    if (!array)
        return tile_builder_fail(b, TILE_E_ARGUMENT,
                                 "tile_extent: not an array parameter of this kernel");
    if (d < 0 || d >= array->rank)
        return tile_builder_fail(b, TILE_E_ARGUMENT, "tile_extent: d is %d, wanted 0 to %d for %s",
                                 d, array->rank - 1, array->name);
    return tile_builder_extent(b, array->first, d);
}

void tile_builder_within(tile_builder *b, tile value, tile low, tile high, const char *what,
                         int d) {
    if (!b || b->status || !tile_is_good(value) || !tile_is_good(low) || !tile_is_good(high))
        return;
    const tile_node node = {.op = &tile_op_within,
                            .n_in = 3,
                            .param = -1,
                            .region = -1,
                            .out = -1,
                            .attrs.n[0] = 1 + d,
                            .epoch = b->epoch,
                            .file = tile_builder_file(b),
                            .line = tile_builder_line(b),
                            .what = what};
    const int32_t id =
        tile_program_add_node(&b->program, &node, (const int32_t[]){value.id, low.id, high.id});
    if (id < 0 || tile_region_append(&b->program, b->region, id))
        tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
}

tile tile_builder_int64(tile_builder *b, const char *call, const char *what, tile t) {
    if (!b || b->status) return (tile){b, -1};
    if (t.builder != b || t.id < 0 || t.id >= b->program.value_count ||
        !tile_region_within(&b->program, b->region, b->program.value[t.id].region))
        return tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %s is not a tile that is usable here",
                                 call, what);
    const tile_dtype dtype = tile_dtype_of(t);
    const tile_kind kind = tile_dtype_kind(dtype);
    if (tile_shape_of_tile(t).rank || kind == TILE_KIND_FLOAT || kind == TILE_KIND_BOOL)
        return tile_builder_fail(b, TILE_E_DTYPE,
                                 "%s: %s is %s of rank %d, expected a rank-0 integer tile", call,
                                 what, tile_dtype_name(dtype), tile_shape_of_tile(t).rank);
    if (dtype == TILE_I64) return t;
    const tile_emission cast = {
        .op = tile_op_find("cast"), .n_in = 1, .in = {t}, .has_dtype = true, .dtype = TILE_I64};
    return tile_emit(b, &cast);
}

void(tile_require)(tile value, tile low, tile high, const char *what) {
    tile_builder *b = tile_builder_of((const tile[]){value, low, high}, 3);
    if (!b || b->status) return;
    if (!what || !*what) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "tile_require: what is %s, expected a name for value",
                          what ? "empty" : "NULL");
        return;
    }
    value = tile_builder_int64(b, "tile_require", "value", value);
    low = tile_builder_int64(b, "tile_require", "low", low);
    high = tile_builder_int64(b, "tile_require", "high", high);
    tile_builder_within(b, value, low, high, what, -1);
}
