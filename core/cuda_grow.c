/* cuda_grow.c: nodes of a block in the order of CUDA code, and in groups. */
#include <string.h>

#include "core/cuda_order.h"
#include "core/memory.h"

/* Larger groups want too many registers. */
enum { MEMBERS_MAX = 256, ACCESSES_MAX = 48 };

/* The group that is being made. */
typedef struct growing {
    int32_t first; /* its first node; -1: it has none yet */
    int32_t members, accesses;
    int64_t count;    /* elements */
    tile_shape shape; /* rank -1: any of that count */
} growing;

typedef struct grower {
    tile_cuda_order *o;
    const tile_program *p;
    tile_region *to; /* per region: the new order */
    const tile_region *from;
    bool *done;      /* per node */
    int32_t *pulled; /* nodes that are put before the one that is tried */
    int32_t pulled_count;
    int32_t region;
    growing now;
} grower;

static const tile_node *node_of(const grower *g, int32_t node) {
    return &g->p->node[node];
}

/* The node of the region at hand that makes what a value is read from, or -1. */
static int32_t maker_of(const grower *g, int32_t value) {
    const tile_value *v = &g->p->value[g->o->view[value].base];
    return v->result >= 0 && node_of(g, v->node)->parent == g->region ? v->node : -1;
}

static bool is_there(const grower *g, int32_t value) {
    const int32_t maker = maker_of(g, value);
    return maker < 0 || g->done[maker];
}

/* Whether all that a node and the loop it is need is there. */
static bool has_operands(const grower *g, const tile_node *n) {
    for (int32_t i = 0; i < n->n_in; i++)
        if (!is_there(g, tile_node_in(g->p, n, i))) return false;
    if (n->region < 0) return true;
    const tile_region *body = &g->p->region[n->region];
    for (int32_t k = 0; k < body->count; k++)
        if (!has_operands(g, node_of(g, body->node[k]))) return false;
    for (int32_t k = 0; k < body->yield_count; k++)
        if (!is_there(g, body->yield[k])) return false;
    return true;
}

/* Whether two windows of one array have no place in common; in_place: or are the same places,
 * element for element. */
static bool stay_apart(const grower *g, const tile_node *x, const tile_node *y, bool in_place) {
    int64_t by[TILE_RANK_MAX];
    if (!x->op->access || !y->op->access || (g->o->mode & TILE_CUDA_MIXED)) return false;
    if (!tile_cuda_distance(g->o, x, y, by)) return false;
    const tile_access_window v = tile_window_of_node(g->p, g->o->a, x),
                             w = tile_window_of_node(g->p, g->o->a, y);
    bool same = in_place;
    for (int d = 0; d < v.rank; d++) {
        if (by[d] >= v.extent[d] || by[d] <= -w.extent[d]) return true;
        same = same && !by[d] && v.extent[d] == w.extent[d];
    }
    return same;
}

/* Whether nothing that stands before a node and is not done must be; of the group at hand it may
 * follow what goes element for element to the same places. */
static bool may_follow(const grower *g, int32_t node) {
    const tile_cuda_effect *e = &g->o->effect[node];
    if (!e->some) return true;
    for (int32_t k = 0; g->from->node[k] != node; k++) {
        const int32_t other = g->from->node[k];
        if (!g->o->effect[other].some || !tile_cuda_meet(g->o, &g->o->effect[other], e)) continue;
        const bool inside =
            g->done[other] && g->now.first >= 0 && g->o->group[other] == g->now.first;
        if (g->done[other] && !inside) continue;
        if (!stay_apart(g, node_of(g, other), node_of(g, node), inside)) return false;
    }
    return true;
}

static void put(grower *g, int32_t node, int32_t group) {
    tile_region *to = &g->to[g->region];
    to->node[to->count++] = node;
    g->o->group[node] = group;
    g->done[node] = true;
}

/* Everything that does not go by elements and can be had now. */
static void put_others(grower *g) {
    bool more = true;
    g->now.first = -1;
    while (more) {
        more = false;
        for (int32_t k = 0; k < g->from->count; k++) {
            const int32_t node = g->from->node[k];
            if (g->done[node] || g->o->member[node]) continue;
            if (!has_operands(g, node_of(g, node)) || !may_follow(g, node)) continue;
            put(g, node, node);
            more = true;
        }
    }
}

/* Groups */

static bool takes(growing *now, tile_shape shape) {
    if (now->shape.rank >= 0 && !tile_shape_equal(now->shape, shape)) return false;
    now->shape = shape;
    return true;
}

static bool is_inside(const grower *g, int32_t maker) {
    return g->done[maker] && g->now.first >= 0 && g->o->group[maker] == g->now.first;
}

static bool try_node(grower *g, int32_t node, growing *now);

static bool is_pulled(const grower *g, int32_t node) {
    for (int32_t k = 0; k < g->pulled_count; k++)
        if (g->pulled[k] == node) return true;
    return false;
}

/* Whether the group can read an operand; in_order: element by element, as the nest goes. */
static bool try_operand(grower *g, int32_t value, bool in_order, growing *now) {
    const tile_native_view *view = &g->o->view[value];
    const int32_t maker = maker_of(g, value);
    const tile_shape shape = g->p->value[value].shape;
    const bool same = in_order && view->same;
    if (maker >= 0 && (is_inside(g, maker) || is_pulled(g, maker))) return same;
    if (maker >= 0 && !g->done[maker])
        return same && tile_cuda_is_source(node_of(g, maker)) && g->o->member[maker] &&
               try_node(g, maker, now);
    if (same || !in_order || tile_native_is_uniform(shape, view)) return true;
    return takes(now, tile_native_squeeze(shape, NULL, NULL));
}

/* Whether a node may join the group; what must come before it is pulled. */
static bool try_node(grower *g, int32_t node, growing *now) {
    const tile_node *n = node_of(g, node);
    const int32_t tiles = tile_inputs_of(g->p, n).tiles;
    if (tile_cuda_elements(g->p, n) != now->count || now->members >= MEMBERS_MAX) return false;
    if (n->op->access) {
        int dimension[TILE_RANK_MAX];
        if (++now->accesses > ACCESSES_MAX || !may_follow(g, node)) return false;
        if (!takes(now, tile_cuda_window_shape(g->o, n, dimension))) return false;
    }
    for (int32_t i = 0; i < n->n_in; i++) {
        const int32_t value = tile_node_in(g->p, n, i);
        const bool number = i >= tiles || (n->op->element && !n->op->access);
        /* Indices of a tile of several dimensions are read along one of them. */
        const bool indices = n->op->indexed && i == 0 && now->shape.rank != 1;
        if (number ? !is_there(g, value) ||
                         (maker_of(g, value) >= 0 && is_inside(g, maker_of(g, value)))
                   : !try_operand(g, value, !indices, now))
            return false;
    }
    now->members++;
    g->pulled[g->pulled_count++] = node;
    return true;
}

static bool join(grower *g, int32_t node) {
    growing now = g->now;
    g->pulled_count = 0;
    if (!try_node(g, node, &now)) return false;
    if (now.first < 0) now.first = g->pulled[0];
    g->now = now;
    for (int32_t k = 0; k < g->pulled_count; k++) put(g, g->pulled[k], now.first);
    return true;
}

static void begin_group(grower *g, int32_t node) {
    g->now = (growing){.first = -1,
                       .count = tile_cuda_elements(g->p, node_of(g, node)),
                       .shape = {.rank = -1}};
}

/* What a group is made for: the op of the fewest elements that can be had with what it reads; where
 * there is none, a window or constant that others want. -1: nothing is left. */
static int32_t find_first(grower *g) {
    int32_t best = -1, source = -1;
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < g->from->count; k++) {
        const int32_t node = g->from->node[k];
        if (g->done[node] || !g->o->member[node]) continue;
        const int64_t count = tile_cuda_elements(g->p, node_of(g, node));
        const bool is_source = tile_cuda_is_source(node_of(g, node));
        if (is_source ? source >= 0 : count >= least) continue;
        begin_group(g, node);
        growing now = g->now;
        g->pulled_count = 0;
        if (!try_node(g, node, &now)) continue;
        if (is_source)
            source = node;
        else
            best = node, least = count;
    }
    return best >= 0 ? best : source;
}

static bool make_group(grower *g) {
    const int32_t first = find_first(g);
    if (first < 0) return false;
    begin_group(g, first);
    (void)join(g, first);
    for (int32_t k = 0; k < g->from->count; k++) {
        const int32_t node = g->from->node[k];
        if (!g->done[node] && g->o->member[node] && !tile_cuda_is_source(node_of(g, node)))
            (void)join(g, node);
    }
    return true;
}

static void order_region(grower *g, int32_t region) {
    g->region = region;
    g->from = &g->p->region[region];
    g->to[region].count = 0;
    for (int32_t k = 0; k < g->from->count; k++) {
        const tile_node *n = node_of(g, g->from->node[k]);
        g->done[g->from->node[k]] = n->n_out == 1 && g->o->view[n->out].base != n->out;
    }
    do put_others(g);
    while (make_group(g));
}

/* Places */

/* An operand that is read in the arena: everything but variables and what the reader's group
 * makes. */
static void find_placed(const grower *g, int32_t node, bool *needed) {
    const tile_node *n = node_of(g, node);
    const int32_t tiles = tile_inputs_of(g->p, n).tiles;
    const bool by_values = n->op->kind == TILE_OP_ELEMENTWISE || g->o->member[node] ||
                           tile_cuda_is_source(n) || n->op == &tile_op_loop ||
                           n->op == &tile_op_within;
    for (int32_t i = 0; i < n->n_in; i++) {
        const int32_t base = g->o->view[tile_node_in(g->p, n, i)].base;
        const int32_t maker = g->p->value[base].node;
        const bool number = i >= tiles || (n->op == &tile_op_kept || (n->op == &tile_op_keep && i));
        if (g->o->lone[base] && (by_values || number)) continue;
        if (g->p->value[base].result >= 0 && g->o->member[maker] && g->o->member[node] &&
            g->o->group[maker] == g->o->group[node])
            continue;
        needed[base] = true;
    }
}

static void find_places(const grower *g, bool *unplaced) {
    const tile_program *p = g->p;
    bool *needed = g->o->placed;
    for (int32_t r = 0; r < p->region_count; r++) {
        for (int32_t k = 0; k < p->region[r].count; k++) {
            const tile_node *n = node_of(g, p->region[r].node[k]);
            if (n->n_out == 1 && g->o->view[n->out].base != n->out) continue;
            find_placed(g, p->region[r].node[k], needed);
        }
        for (int32_t k = 0; k < p->region[r].yield_count; k++) {
            const int32_t base = g->o->view[p->region[r].yield[k]].base;
            if (!g->o->lone[base]) needed[base] = true;
        }
    }
    for (int32_t v = 0; v < p->value_count; v++) {
        const tile_node *n = &p->node[p->value[v].node];
        const bool made = p->value[v].result >= 0 && g->o->member[p->value[v].node];
        if (!g->o->lone[v] && !made) needed[v] = true;
        if (n->op != &tile_op_loop || p->value[v].result < 0 || !needed[v]) continue;
        needed[p->region[n->region].argument + 1 + p->value[v].result] = true;
    }
    for (int32_t v = 0; v < p->value_count; v++) unplaced[v] = !needed[v];
}

/* Making */

static tile_status plan(grower *g, int32_t *alias, bool *unplaced) {
    const tile_program *p = g->p;
    for (int32_t r = 0; r < p->region_count; r++) {
        g->to[r] = p->region[r];
        g->to[r].node = tile_alloc(((size_t)p->region[r].count + 1) * sizeof *g->to[r].node);
    }
    for (int32_t r = 0; r < p->region_count; r++)
        if (!g->to[r].node) return TILE_E_MEMORY;
    for (int32_t r = 0; r < p->region_count; r++) order_region(g, r);
    find_places(g, unplaced);
    for (int32_t v = 0; v < p->value_count; v++) alias[v] = g->o->view[v].base;
    tile_program ordered = *p;
    ordered.region = g->to;
    return tile_plan_ordered(&ordered, g->o->group, alias, g->o->member, unplaced, &g->o->blocks);
}

tile_status tile_cuda_grow_groups(tile_cuda_order *order) {
    const tile_program *p = order->p;
    const size_t values = (size_t)p->value_count + 1, nodes = (size_t)p->node_count + 1;
    grower g = {.o = order,
                .p = p,
                .to = tile_alloc(((size_t)p->region_count + 1) * sizeof *g.to),
                .done = tile_alloc(nodes),
                .pulled = tile_alloc(nodes * sizeof *g.pulled)};
    int32_t *alias = tile_alloc(values * sizeof *alias);
    bool *unplaced = tile_alloc(values);
    tile_status status = TILE_E_MEMORY;
    if (g.to && g.done && g.pulled && alias && unplaced) status = plan(&g, alias, unplaced);
    for (int32_t r = 0; g.to && r < p->region_count; r++) tile_free(g.to[r].node);
    tile_free(g.to);
    tile_free(g.done);
    tile_free(g.pulled);
    tile_free(alias);
    tile_free(unplaced);
    return status;
}
