/* prune.c: drops what has no effect and no use, and what loops carry unchanged; renumbers the rest.
 */
#include <string.h>

#include "core/memory.h"
#include "core/program.h"
#include "core/status.h"

typedef struct pruning {
    const tile_program *from;
    tile_program *to;
    bool *need;      /* per value of from; of a loop: carried tiles by their body argument */
    bool *need_node; /* per node of from */
    int32_t *map;    /* value of from -> value of to, or -1 */
    int32_t *same;   /* value of from -> the value outside of a loop that it always is, or -1 */
} pruning;

/* What a value is when tiles that loops carry and never change are left out. */
static int32_t plain(const pruning *p, int32_t value) {
    while (p->same[value] >= 0) value = p->same[value];
    return value;
}

/* Carried tiles that the body yields as they came: the body and what follows use the initial one.
 * Regions inside come after those around them. */
static void find_unchanged(pruning *p) {
    for (int32_t v = 0; v < p->from->value_count; v++) p->same[v] = -1;
    for (int32_t r = p->from->region_count - 1; r > 0; r--) {
        const tile_region *body = &p->from->region[r];
        const tile_node *n = &p->from->node[body->owner];
        for (int32_t k = tile_loop_own(n); k < body->yield_count; k++) {
            const int32_t argument = body->argument + 1 + k;
            if (plain(p, body->yield[k]) != argument) continue;
            p->same[argument] = p->same[n->out + k] = tile_node_in(p->from, n, 1 + k);
        }
    }
}

static void need_value(pruning *p, int32_t value);
static void need_carried(pruning *p, int32_t loop, int32_t k);

static void need_node(pruning *p, int32_t node) {
    if (p->need_node[node]) return;
    p->need_node[node] = true;
    const tile_node *n = &p->from->node[node];
    if (n->parent > 0) need_node(p, p->from->region[n->parent].owner);
    const bool loop = n->op == &tile_op_loop;
    for (int32_t k = 0; k < (loop ? 1 : n->n_in); k++) need_value(p, tile_node_in(p->from, n, k));
    for (int32_t k = 0; loop && k < tile_loop_own(n); k++) need_carried(p, node, k);
}

/* A carried tile is needed as a whole: where it starts, what the body yields, what comes out. */
static void need_carried(pruning *p, int32_t loop, int32_t k) {
    const tile_node *n = &p->from->node[loop];
    const tile_region *body = &p->from->region[n->region];
    const int32_t argument = body->argument + 1 + k;
    if (p->need[argument]) return;
    p->need[argument] = true;
    need_node(p, loop);
    need_value(p, tile_node_in(p->from, n, 1 + k));
    need_value(p, body->yield[k]);
}

static void need_value(pruning *p, int32_t value) {
    value = plain(p, value);
    const tile_value *v = &p->from->value[value];
    const bool loop = p->from->node[v->node].op == &tile_op_loop;
    if (loop && v->result != -1) {
        need_carried(p, v->node, v->result < 0 ? -2 - v->result : v->result);
    } else {
        need_node(p, v->node);
    }
}

static void need_effects(pruning *p) {
    for (int32_t k = 0; k < p->from->node_count; k++) {
        const tile_node *n = &p->from->node[k];
        if (n->op != &tile_op_loop && n->parent >= 0 && tile_node_has_effect(p->from, n))
            need_node(p, k);
    }
    for (int32_t k = 0; k < p->from->slot_count; k++)
        for (int32_t d = 0; d < p->from->slot[k].loops; d++)
            need_value(p, p->from->slot[k].count_value[d]);
}

static int32_t mapped(const pruning *p, int32_t value) {
    return p->map[plain(p, value)];
}

static tile_status map_results(pruning *p, const tile_node *n, int32_t node, int32_t parent) {
    int32_t made = 0;
    for (int32_t k = 0; k < n->n_out; k++) {
        const tile_value *v = tile_node_out(p->from, n, k);
        const bool loop = n->op == &tile_op_loop;
        if (loop && !p->need[p->from->region[n->region].argument + 1 + k]) continue;
        const int32_t id = tile_program_add_value(p->to, v->dtype, v->shape, node, made, parent);
        if (id < 0) return TILE_E_MEMORY;
        if (!made) p->to->node[node].out = id;
        p->map[n->out + k] = id;
        made++;
    }
    p->to->node[node].n_out = made;
    return TILE_OK;
}

static tile_status copy_region(pruning *p, int32_t from, int32_t to);

static tile_status copy_plain(pruning *p, const tile_node *n, int32_t region) {
    int32_t in[64];
    TILE_CHECK(n->n_in <= 64, TILE_E_STATE, "prune: %s has %d inputs", n->op->name, (int)n->n_in);
    for (int32_t k = 0; k < n->n_in; k++) in[k] = mapped(p, tile_node_in(p->from, n, k));
    const int32_t node = tile_program_add_node(p->to, n, in);
    if (node < 0) return TILE_E_MEMORY;
    TILE_TRY(tile_region_append(p->to, region, node));
    return map_results(p, n, node, region);
}

/* The arguments of a loop's body: the index and the carried tiles that are needed. */
static tile_status copy_arguments(pruning *p, const tile_region *body, int32_t node,
                                  int32_t region) {
    int32_t made = 0;
    for (int32_t k = 0; k <= body->yield_count; k++) {
        const int32_t id = body->argument + k;
        if (k && !p->need[id]) continue;
        const tile_value *v = &p->from->value[id];
        p->map[id] = tile_program_add_value(p->to, v->dtype, v->shape, node, -1 - made, region);
        if (p->map[id] < 0) return TILE_E_MEMORY;
        if (!k) p->to->region[region].argument = p->map[id];
        made++;
    }
    return TILE_OK;
}

static tile_status copy_yield(pruning *p, const tile_region *body, int32_t region) {
    int32_t *yield = tile_alloc(((size_t)body->yield_count + 1) * sizeof *yield);
    if (!yield) return TILE_E_MEMORY;
    tile_region *r = &p->to->region[region];
    r->yield = yield;
    for (int32_t k = 0; k < body->yield_count; k++)
        if (p->need[body->argument + 1 + k]) yield[r->yield_count++] = mapped(p, body->yield[k]);
    return TILE_OK;
}

static tile_status copy_loop_with(pruning *p, const tile_node *n, int32_t parent, int32_t *in) {
    const tile_region *body = &p->from->region[n->region];
    tile_node copy = *n;
    copy.n_in = 0;
    for (int32_t k = 0; k < n->n_in; k++)
        if (!k || p->need[body->argument + k])
            in[copy.n_in++] = mapped(p, tile_node_in(p->from, n, k));
    const int32_t node = tile_program_add_node(p->to, &copy, in);
    if (node < 0) return TILE_E_MEMORY;
    p->to->node[node].parent = parent;
    const int32_t region = tile_program_add_region(p->to, node);
    if (region < 0) return TILE_E_MEMORY;
    p->to->node[node].region = region;
    TILE_TRY(copy_arguments(p, body, node, region));
    TILE_TRY(copy_region(p, n->region, region));
    TILE_TRY(copy_yield(p, body, region));
    TILE_TRY(tile_region_append(p->to, parent, node));
    return map_results(p, n, node, parent);
}

static tile_status copy_loop(pruning *p, const tile_node *n, int32_t parent) {
    int32_t *in = tile_alloc((size_t)n->n_in * sizeof *in);
    if (!in) return TILE_E_MEMORY;
    const tile_status status = copy_loop_with(p, n, parent, in);
    tile_free(in);
    return status;
}

static tile_status copy_region(pruning *p, int32_t from, int32_t to) {
    const tile_region *r = &p->from->region[from];
    for (int32_t k = 0; k < r->count; k++) {
        if (!p->need_node[r->node[k]]) continue;
        const tile_node *n = &p->from->node[r->node[k]];
        TILE_TRY(n->op == &tile_op_loop ? copy_loop(p, n, to) : copy_plain(p, n, to));
    }
    return TILE_OK;
}

/* Scalar parameters stay even when unused: they are part of the kernel's signature. */
static void remap_params(pruning *p) {
    for (int32_t k = 0; k < p->to->param_count; k++) {
        const int32_t value = p->to->param[k].value;
        if (value >= 0) p->to->param[k].value = p->map[value];
    }
}

static tile_status prune_into(pruning *p) {
    if (!p->need || !p->need_node || !p->map || !p->same) return TILE_E_MEMORY;
    find_unchanged(p);
    for (int32_t k = 0; k < p->from->value_count; k++) p->map[k] = -1;
    need_effects(p);
    if (tile_program_add_region(p->to, -1) < 0) return TILE_E_MEMORY;
    TILE_TRY(copy_region(p, 0, 0));
    remap_params(p);
    for (int32_t k = 0; k < p->from->value_count; k++)
        if (p->map[k] >= 0) p->to->value[p->map[k]].shared = p->from->value[k].shared;
    for (int32_t k = 0; k < p->from->slot_count; k++) {
        TILE_TRY(tile_grow(&p->to->slot, &p->to->slot_capacity, k + 1, sizeof *p->to->slot));
        tile_slot *slot = &p->to->slot[p->to->slot_count++];
        *slot = p->from->slot[k];
        for (int32_t d = 0; d < slot->loops; d++)
            slot->count_value[d] = mapped(p, slot->count_value[d]);
    }
    return TILE_OK;
}

tile_status tile_program_prune(tile_program *program) {
    tile_program to = {.param_count = program->param_count, .reverse = program->reverse};
    memcpy(to.name, program->name, sizeof to.name);
    memcpy(to.param, program->param, sizeof to.param);
    const size_t values = (size_t)program->value_count + 1;
    pruning p = {
        .from = program,
        .to = &to,
        .need = tile_alloc(values * sizeof(bool)),
        .need_node = tile_alloc(((size_t)program->node_count + 1) * sizeof(bool)),
        .map = tile_alloc(values * sizeof(int32_t)),
        .same = tile_alloc(values * sizeof(int32_t)),
    };
    const tile_status status = prune_into(&p);
    tile_free(p.need);
    tile_free(p.need_node);
    tile_free(p.map);
    tile_free(p.same);
    if (status) {
        tile_program_clear(&to);
        return status;
    }
    tile_program_clear(program);
    *program = to;
    return TILE_OK;
}
