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

/* What kind of loop begins. */
typedef struct loop_kind {
    bool reverse, is_while;
} loop_kind;

static int32_t begin_with(tile_builder *b, tile count, int n, const tile *initial, loop_kind kind,
                          int32_t *in) {
    in[0] = count.id;
    for (int k = 0; k < n; k++) in[1 + k] = initial[k].id;
    const tile_node node = {.op = &tile_op_loop,
                            .n_in = 1 + n,
                            .param = -1,
                            .parent = b->region,
                            .attrs.n = {kind.reverse, kind.is_while},
                            .epoch = b->epoch,
                            .file = tile_builder_file(b),
                            .line = tile_builder_line(b)};
    const int32_t loop = tile_program_add_node(&b->program, &node, in);
    if (loop < 0 || add_arguments(b, loop, n, initial)) {
        tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
        return -1;
    }
    b->region = b->program.node[loop].region;
    b->epoch++;
    return loop;
}

static int32_t begin_loop(tile_builder *b, tile count, int n, const tile *initial, loop_kind kind) {
    if (!b || b->status) return -1;
    int32_t *in = tile_alloc(((size_t)n + 1) * sizeof *in);
    if (!in) {
        tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
        return -1;
    }
    const int32_t loop = begin_with(b, count, n, initial, kind, in);
    tile_free(in);
    return loop;
}

int32_t tile_builder_loop_begin(tile_builder *b, tile count, int n, const tile *initial,
                                bool reverse) {
    return begin_loop(b, count, n, initial, (loop_kind){.reverse = reverse});
}

tile tile_builder_loop_argument(tile_builder *b, int32_t loop, int k) {
    if (!b || b->status || loop < 0) return (tile){b, -1};
    const tile_node *n = &b->program.node[loop];
    if (k) k += tile_loop_own(n);
    return (tile){b, b->program.region[n->region].argument + k};
}

tile tile_builder_loop_result(tile_builder *b, int32_t loop, int k) {
    if (!b || b->status || loop < 0) return (tile){b, -1};
    const tile_node *n = &b->program.node[loop];
    return (tile){b, n->out + tile_loop_own(n) + k};
}

/* The tiles of a while's own, then the others; NULL on an error. */
static tile *with_own(tile_builder *b, tile go, tile trips, int n, const tile *others) {
    if (!b || b->status) return NULL;
    tile *all = tile_alloc(((size_t)n + TILE_LOOP_OWN) * sizeof *all);
    if (!all) {
        tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
        return NULL;
    }
    all[TILE_LOOP_GO] = go;
    all[TILE_LOOP_TRIPS] = trips;
    for (int k = 0; k < n; k++) all[TILE_LOOP_OWN + k] = others[k];
    return all;
}

int32_t tile_builder_while_begin(tile_builder *b, tile go, tile most, int n, const tile *initial) {
    tile *all = with_own(b, go, tile_constant(b, TILE_I64, scalar, 0), n, initial);
    if (!all) return -1;
    const int32_t loop = begin_loop(b, most, n + TILE_LOOP_OWN, all, (loop_kind){.is_while = true});
    tile_free(all);
    return loop;
}

void tile_builder_while_end(tile_builder *b, int32_t loop, tile go, int n, const tile *next) {
    const tile ran[] = {tile_builder_loop_argument(b, loop, 0),
                        tile_constant(b, TILE_I64, scalar, 1)};
    tile *all = with_own(b, go, tile_emit_elementwise(b, "add", 2, ran), n, next);
    if (!all) return;
    tile_builder_loop_end(b, loop, n + TILE_LOOP_OWN, all);
    tile_free(all);
}

tile tile_builder_while_trips(tile_builder *b, int32_t loop) {
    return tile_builder_loop_result(b, loop, TILE_LOOP_TRIPS - TILE_LOOP_OWN);
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

int32_t tile_builder_state_add(tile_builder *b, tile initial) {
    if (!b || b->status || !tile_is_good(initial)) return -1;
    if (tile_grow(&b->state, &b->state_capacity, b->state_count + 1, sizeof *b->state)) {
        tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
        return -1;
    }
    b->state[b->state_count] = initial.id;
    return b->state_count++;
}

tile tile_builder_state(tile_builder *b, int32_t state) {
    return (tile){b, state >= 0 && state < b->state_count ? b->state[state] : -1};
}

void tile_builder_state_set(tile_builder *b, int32_t state, tile next) {
    if (!b->status && tile_is_good(next)) b->state[state] = next.id;
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
    tile_free(b->state);
    tile_free(b);
}
