/* adjoint_loop.c: the walk backwards over a loop. */
#include "core/adjoint_state.h"
#include "core/memory.h"
#include "core/status.h"

/* Values from outside that a region uses and that want a gradient. */
static int32_t find_captured(const tile_adjoint *a, int32_t region, int32_t loop, int32_t *captured,
                             int32_t count) {
    const tile_region *r = &a->forward->region[region];
    for (int32_t i = 0; i < r->count; i++) {
        const tile_node *n = &a->forward->node[r->node[i]];
        if (n->op == &tile_op_loop) count = find_captured(a, n->region, loop, captured, count);
        for (int32_t k = 0; k < n->n_in; k++) captured[count++] = tile_node_in(a->forward, n, k);
    }
    for (int32_t k = 0; k < r->yield_count; k++) captured[count++] = r->yield[k];
    const int32_t body = a->forward->node[loop].region;
    int32_t kept = 0;
    for (int32_t k = 0; k < count; k++) {
        const int32_t v = captured[k];
        bool good =
            a->wants[v] && !tile_region_within(a->forward, a->forward->value[v].region, body);
        for (int32_t j = 0; j < kept; j++) good = good && captured[j] != v;
        if (good) captured[kept++] = v;
    }
    return kept;
}

static bool region_touches_grads(const tile_adjoint *a, int32_t region) {
    const tile_region *r = &a->forward->region[region];
    for (int32_t i = 0; i < r->count; i++) {
        const tile_node *n = &a->forward->node[r->node[i]];
        if (n->op == &tile_op_loop && region_touches_grads(a, n->region)) return true;
        if (n->op->access > TILE_ACCESS_LOAD && (a->grads >> tile_class_of(a->key, n->param) & 1u))
            return true;
    }
    return false;
}

/* The reverse loop carries the adjoints of the carried tiles, then those of captured values. */
typedef struct reverse_loop {
    const tile_node *node;
    const tile_region *body;
    int32_t *carried;  /* which carried tiles want a gradient */
    int32_t *captured; /* values */
    int32_t carried_count, captured_count;
    tile *tiles;
} reverse_loop;

static tile adjoint_or_zero(tile_adjoint *a, int32_t value) {
    return tile_is_good(a->adjoint[value]) ? a->adjoint[value] : tile_adjoint_zero(a, value);
}

/* The loop of the adjoint program: as many iterations, from the last one. A while ran as often as
 * its trips say, which is a kept value; its adjoint is a while that counts them down. */
typedef struct adjoint_loop {
    int32_t node;
    tile index; /* of the forward iteration */
} adjoint_loop;

static adjoint_loop begin_reverse(tile_adjoint *a, const reverse_loop *l, int n) {
    adjoint_loop to;
    const tile count = tile_adjoint_primal(a, tile_node_in(a->forward, l->node, 0));
    if (!tile_loop_is_while(l->node)) {
        to.node = tile_builder_loop_begin(a->b, count, n, l->tiles, true);
        to.index = tile_builder_loop_argument(a->b, to.node, 0);
        return to;
    }
    static const char *const names[] = {"trips", "k"};
    const tile trips = tile_adjoint_primal(a, l->node->out + TILE_LOOP_TRIPS);
    const tile go = tile_formula_emit(a->b, "trips > 0", 1, names, &trips, NULL);
    to.node = tile_builder_while_begin(a->b, go, count, n, l->tiles);
    const tile both[] = {trips, tile_builder_loop_argument(a->b, to.node, 0)};
    to.index = tile_formula_emit(a->b, "trips - 1 - k", 2, names, both, NULL);
    return to;
}

static void end_reverse(tile_adjoint *a, const reverse_loop *l, const adjoint_loop *loop, int n) {
    if (!tile_loop_is_while(l->node)) {
        tile_builder_loop_end(a->b, loop->node, n, l->tiles);
        return;
    }
    const tile go =
        tile_formula_emit(a->b, "index > 0", 1, (const char *const[]){"index"}, &loop->index, NULL);
    tile_builder_while_end(a->b, loop->node, go, n, l->tiles);
}

static void walk_body(tile_adjoint *a, const reverse_loop *l) {
    const int n = l->carried_count + l->captured_count;
    for (int k = 0; k < l->carried_count; k++)
        l->tiles[k] = adjoint_or_zero(a, l->node->out + l->carried[k]);
    for (int k = 0; k < l->captured_count; k++)
        l->tiles[l->carried_count + k] = adjoint_or_zero(a, l->captured[k]);
    const adjoint_loop to = begin_reverse(a, l, n);
    const int32_t loop = to.node;
    if (loop < 0) return;
    a->region[l->node->region] = a->b->region;
    a->primal[l->body->argument] = to.index;
    for (int k = 0; k < l->captured_count; k++)
        a->adjoint[l->captured[k]] =
            tile_builder_loop_argument(a->b, loop, 1 + l->carried_count + k);
    for (int k = 0; k < l->carried_count; k++)
        tile_adjoint_add_to(a, l->body->yield[l->carried[k]],
                            tile_builder_loop_argument(a->b, loop, 1 + k));
    tile_adjoint_walk_region(a, l->node->region);
    for (int k = 0; k < l->carried_count; k++)
        l->tiles[k] = adjoint_or_zero(a, l->body->argument + 1 + l->carried[k]);
    for (int k = 0; k < l->captured_count; k++)
        l->tiles[l->carried_count + k] = a->adjoint[l->captured[k]];
    if (a->b->status) return;
    end_reverse(a, l, &to, n);
    a->region[l->node->region] = -1;
    for (int k = 0; k < l->captured_count; k++)
        a->adjoint[l->captured[k]] = tile_builder_loop_result(a->b, loop, l->carried_count + k);
    for (int k = 0; k < l->carried_count; k++)
        tile_adjoint_add_to(a, tile_node_in(a->forward, l->node, 1 + l->carried[k]),
                            tile_builder_loop_result(a->b, loop, k));
}

void tile_adjoint_walk_loop(tile_adjoint *a, const tile_node *n) {
    if (!tile_adjoint_any(a, n) && !region_touches_grads(a, n->region)) return;
    reverse_loop l = {.node = n, .body = &a->forward->region[n->region]};
    const size_t most = (size_t)a->forward->input_count + (size_t)a->forward->value_count + 1;
    l.carried = tile_alloc(most * sizeof *l.carried);
    l.captured = tile_alloc(2 * most * sizeof *l.captured);
    l.tiles = tile_alloc(2 * most * sizeof *l.tiles);
    if (!l.carried || !l.captured || !l.tiles) {
        tile_builder_fail(a->b, TILE_E_MEMORY, "%s", tile_last_error());
    } else {
        for (int32_t k = 0; k < l.body->yield_count; k++)
            if (a->wants[l.body->argument + 1 + k]) l.carried[l.carried_count++] = k;
        l.captured_count =
            find_captured(a, n->region, (int32_t)(n - a->forward->node), l.captured, 0);
        walk_body(a, &l);
    }
    tile_free(l.carried);
    tile_free(l.captured);
    tile_free(l.tiles);
}
