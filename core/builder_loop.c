/* builder_loop.c: loops, block indices, and the life of a builder. */
#include <stdio.h>

#include "core/array.h"
#include "core/builder.h"
#include "core/memory.h"
#include "core/status.h"

static const tile_shape scalar = {.rank = 0};

tile tile_builder_axis_value(tile_builder *b, const tile_op *op, int axis) {
    if (!b || b->status) return (tile){b, -1};
    if (axis < 0 || axis >= TILE_GRID_RANK)
        return tile_builder_fail(b, TILE_E_ARGUMENT, "%s: axis %d, expected 0 to 2", op->name,
                                 axis);
    const tile_program *p = &b->program;
    const tile_region *root = &p->region[0];
    for (int32_t k = 0; k < root->count; k++) {
        const tile_node *n = &p->node[root->node[k]];
        if (n->op == op && n->attrs.n[0] == axis) return (tile){b, n->out};
    }
    const tile_node node = {
        .op = op, .param = -1, .region = -1, .n_out = 1, .attrs.n[0] = axis, .epoch = b->epoch};
    return tile_builder_add_structure(b, &node, TILE_I64);
}

tile tile_builder_add_structure(tile_builder *b, const tile_node *node, tile_dtype dtype) {
    tile_program *p = &b->program;
    const int32_t id = tile_program_add_node(p, node, NULL);
    if (id < 0 || tile_region_append(p, 0, id)) goto memory;
    const int32_t value = tile_program_add_value(p, dtype, scalar, id, 0, 0);
    if (value < 0) goto memory;
    p->node[id].out = value;
    return (tile){b, value};
memory:
    return tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
}

/* The body's arguments: the index, then tiles like the initial ones. */
static tile_status add_arguments(tile_builder *b, int32_t loop, int n, const tile *initial) {
    tile_program *p = &b->program;
    const int32_t region = tile_program_add_region(p, loop);
    if (region < 0) return TILE_E_MEMORY;
    p->node[loop].region = region;
    for (int k = 0; k <= n; k++) {
        const tile_dtype dtype = k ? tile_dtype_of(initial[k - 1]) : TILE_I64;
        const tile_shape shape = k ? tile_shape_of_tile(initial[k - 1]) : scalar;
        const int32_t id = tile_program_add_value(p, dtype, shape, loop, -1 - k, region);
        if (id < 0) return TILE_E_MEMORY;
        if (k) p->value[id].shared = p->value[initial[k - 1].id].shared;
        if (!k) p->region[region].argument = id;
    }
    return TILE_OK;
}

static int32_t begin_with(tile_builder *b, tile count, int n, const tile *initial, bool reverse,
                          int32_t *in) {
    in[0] = count.id;
    for (int k = 0; k < n; k++) in[1 + k] = initial[k].id;
    const tile_node node = {.op = &tile_op_loop,
                            .n_in = 1 + n,
                            .param = -1,
                            .parent = b->region,
                            .attrs.n[0] = reverse,
                            .epoch = b->epoch,
                            .file = b->file,
                            .line = b->line};
    const int32_t loop = tile_program_add_node(&b->program, &node, in);
    if (loop < 0 || add_arguments(b, loop, n, initial)) {
        tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
        return -1;
    }
    b->region = b->program.node[loop].region;
    b->epoch++;
    return loop;
}

int32_t tile_builder_loop_begin(tile_builder *b, tile count, int n, const tile *initial,
                                bool reverse) {
    if (!b || b->status) return -1;
    int32_t *in = tile_alloc(((size_t)n + 1) * sizeof *in);
    if (!in) {
        tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
        return -1;
    }
    const int32_t loop = begin_with(b, count, n, initial, reverse, in);
    tile_free(in);
    return loop;
}

tile tile_builder_loop_argument(tile_builder *b, int32_t loop, int k) {
    if (!b || b->status || loop < 0) return (tile){b, -1};
    return (tile){b, b->program.region[b->program.node[loop].region].argument + k};
}

tile tile_builder_loop_result(tile_builder *b, int32_t loop, int k) {
    if (!b || b->status || loop < 0) return (tile){b, -1};
    return (tile){b, b->program.node[loop].out + k};
}

static tile_status finish_loop(tile_builder *b, int32_t loop, int n, const tile *next) {
    tile_program *p = &b->program;
    tile_region *body = &p->region[p->node[loop].region];
    body->yield = tile_alloc(((size_t)n + 1) * sizeof *body->yield);
    if (!body->yield) return TILE_E_MEMORY;
    body->yield_count = n;
    for (int k = 0; k < n; k++) body->yield[k] = next[k].id;
    TILE_TRY(tile_region_append(p, p->node[loop].parent, loop));
    for (int k = 0; k < n; k++) {
        const tile_value *v = &p->value[next[k].id];
        const int32_t id =
            tile_program_add_value(p, v->dtype, v->shape, loop, k, p->node[loop].parent);
        if (id < 0) return TILE_E_MEMORY;
        p->value[id].shared = p->value[body->argument + 1 + k].shared;
        if (!k) p->node[loop].out = id;
    }
    p->node[loop].n_out = n;
    return TILE_OK;
}

void tile_builder_loop_end(tile_builder *b, int32_t loop, int n, const tile *next) {
    if (!b || b->status || loop < 0) return;
    b->epoch++;
    b->region = b->program.node[loop].parent;
    if (finish_loop(b, loop, n, next)) tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
}

tile_builder *tile_builder_create(tile_context *ctx, const char *name) {
    tile_builder *b = tile_alloc(sizeof *b);
    if (!b) return NULL;
    b->ctx = ctx;
    snprintf(b->program.name, sizeof b->program.name, "%s", name ? name : "");
    if (tile_program_add_region(&b->program, -1) < 0) {
        tile_free(b);
        return NULL;
    }
    return b;
}

void tile_builder_destroy(tile_builder *b) {
    if (!b) return;
    tile_program_clear(&b->program);
    tile_free(b->hash);
    tile_free(b->structs);
    tile_free(b);
}
