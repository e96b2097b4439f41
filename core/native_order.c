/* native_order.c: puts the nodes of a block in the order of generated code, and in groups. */
#include "core/native_order.h"

#include <string.h>

#include "core/memory.h"

/* Larger groups want too many registers; a call keeps a piece of each of its operands on the stack,
 * a reduction a row. */
enum { MEMBERS_MAX = 256, CALLED_MAX = 24, CALLED_MEMBERS_MAX = 96, SUMS_MAX = 32 };

/* The group that is being made. */
typedef struct growing {
    int32_t first; /* its first node */
    int32_t members, called;
    int64_t count;    /* elements */
    tile_shape shape; /* rank -1: any of that count */
    bool moved;       /* an operand goes another way than the elements */
    int32_t sums;     /* taken on the way */
} growing;

typedef struct orderer {
    const tile_program *p;
    const tile_native_view *view;
    const tile_op *fold[TILE_FOLDS];
    tile_region *to; /* per region: the new order */
    int32_t *group;  /* per node; -1: has no place in the order yet */
    bool *done;      /* per node */
    int32_t region;
    growing now;
} orderer;

static int64_t count_of(tile_shape shape) {
    int64_t n = 1;
    for (int d = 0; d < shape.rank; d++) n *= shape.extent[d];
    return n;
}

static bool is_elementwise(const tile_node *n) {
    return n->op->kind == TILE_OP_ELEMENTWISE;
}

/* Whether a node is left out: its result is a view of another. */
static bool is_view(const orderer *b, const tile_node *n) {
    return n->n_out == 1 && b->view[n->out].base != n->out;
}

/* Nodes whose order among each other stays: what they do may meet. */
static bool is_ordered(const tile_node *n) {
    return n->op->access || n->op == &tile_op_loop || n->op == &tile_op_keep ||
           n->op == &tile_op_kept || n->op == &tile_op_within;
}

/* The node of the region at hand that makes what a value is read from, or -1. */
static int32_t maker_of(const orderer *b, int32_t value) {
    const tile_value *v = &b->p->value[b->view[value].base];
    return v->result >= 0 && b->p->node[v->node].parent == b->region ? v->node : -1;
}

static bool is_there(const orderer *b, int32_t value) {
    const int32_t maker = maker_of(b, value);
    return maker < 0 || b->done[maker];
}

/* Whether all that a node and the loop it is need is there. */
static bool is_ready(const orderer *b, const tile_node *n) {
    for (int32_t i = 0; i < n->n_in; i++)
        if (!is_there(b, tile_node_in(b->p, n, i))) return false;
    if (n->region < 0) return true;
    const tile_region *body = &b->p->region[n->region];
    for (int32_t k = 0; k < body->count; k++)
        if (!is_ready(b, &b->p->node[body->node[k]])) return false;
    for (int32_t k = 0; k < body->yield_count; k++)
        if (!is_there(b, body->yield[k])) return false;
    return true;
}

static void put(orderer *b, int32_t node, int32_t group) {
    tile_region *to = &b->to[b->region];
    to->node[to->count++] = node;
    b->group[node] = group;
    b->done[node] = true;
}

/* Everything that is no elementwise op and can be had now. */
static void put_others(orderer *b, const tile_region *from) {
    bool more = true;
    while (more) {
        bool open = true;
        more = false;
        for (int32_t k = 0; k < from->count; k++) {
            const tile_node *n = &b->p->node[from->node[k]];
            if (b->done[from->node[k]] || is_elementwise(n)) continue;
            const bool ready = (open || !is_ordered(n)) && is_ready(b, n);
            if (ready) put(b, from->node[k], from->node[k]);
            if (!ready && is_ordered(n)) open = false;
            more = more || ready;
        }
    }
}

/* Groups */

static tile_shape shape_of(const orderer *b, int32_t value) {
    return tile_native_squeeze(b->p->value[value].shape, NULL, NULL);
}

static bool takes_shape(const growing *g, tile_shape shape) {
    return g->shape.rank < 0 || tile_shape_equal(g->shape, shape);
}

/* Whether the group makes what a value is read from. */
static bool is_inside(const orderer *b, int32_t value) {
    const int32_t maker = maker_of(b, value);
    return maker >= 0 && b->done[maker] && b->group[maker] == b->now.first;
}

/* Whether an operand can be read in the group's loops; moved: its place is not the element's. */
static bool reads_operand(const orderer *b, int32_t value, bool *moved) {
    const tile_native_view *view = &b->view[value];
    if (is_inside(b, value)) return view->same && is_elementwise(&b->p->node[maker_of(b, value)]);
    *moved = *moved || (!view->same && !tile_native_is_uniform(b->p->value[value].shape, view));
    return is_there(b, value);
}

static bool is_called(const orderer *b, const tile_node *n) {
    tile_dtype in[TILE_OP_IN] = {TILE_F32};
    char name[64];
    for (int i = 0; i < n->n_in; i++) in[i] = b->p->value[tile_node_in(b->p, n, i)].dtype;
    return !tile_native_function(NULL, n->op, in, b->p->value[n->out].dtype, name);
}

/* Joins an elementwise op to the group when it fits. */
static bool join(orderer *b, int32_t node) {
    const tile_node *n = &b->p->node[node];
    growing *g = &b->now;
    const bool called = is_called(b, n);
    bool moved = false;
    if (count_of(b->p->value[n->out].shape) != g->count || g->called + called > CALLED_MAX)
        return false;
    if (g->called + called && g->members >= CALLED_MEMBERS_MAX) return false;
    for (int32_t i = 0; i < n->n_in; i++)
        if (!reads_operand(b, tile_node_in(b->p, n, i), &moved)) return false;
    if (moved && !takes_shape(g, shape_of(b, n->out))) return false;
    if (moved) g->shape = shape_of(b, n->out);
    g->moved = g->moved || moved;
    g->called += called;
    g->members++;
    put(b, node, g->first);
    return true;
}

/* Whether loops over the rows of a shape sum over these dimensions as the interpreter does. */
static bool sums_in_order(tile_shape shape, int64_t axes) {
    int64_t rows = 1;
    tile_shape left = {.rank = 0};
    bool last = false;
    for (int d = 0; d < shape.rank; d++) {
        if (shape.extent[d] == 1) continue;
        last = axes >> d & 1;
        if (last) rows *= shape.extent[d];
        left.extent[left.rank++] = shape.extent[d];
    }
    /* The interpreter goes by the last dimension, also where that is one element. */
    if (!left.rank || rows == 1 || last != (axes >> (shape.rank - 1) & 1)) return false;
    const int64_t row = left.extent[left.rank - 1];
    if (left.rank > 1 && row < TILE_NEST_ROW_MIN) return false;
    return last ? rows == row && row <= TILE_FUSED_ROW_MAX : rows <= TILE_FUSED_ROWS_MAX;
}

/* Joins a reduction of what the group makes. */
static bool join_sum(orderer *b, int32_t node) {
    const tile_node *n = &b->p->node[node];
    growing *g = &b->now;
    if (n->op != b->fold[TILE_FOLD_SUM] && n->op != b->fold[TILE_FOLD_MIN] &&
        n->op != b->fold[TILE_FOLD_MAX])
        return false;
    const int32_t in = tile_node_in(b->p, n, 0);
    const tile_dtype dtype = b->p->value[in].dtype;
    if (g->sums >= SUMS_MAX) return false;
    if ((dtype != TILE_F32 && dtype != TILE_F64) || !is_inside(b, in) || !b->view[in].same)
        return false;
    if (!is_elementwise(&b->p->node[maker_of(b, in)]) || !takes_shape(g, shape_of(b, in)))
        return false;
    if (!sums_in_order(b->p->value[in].shape, n->attrs.n[0])) return false;
    g->shape = shape_of(b, in);
    g->sums++;
    put(b, node, g->first);
    return true;
}

/* Sums are taken on the way by loops over rows; a group that calls goes by pieces. */
static void drop_sums(orderer *b) {
    tile_region *to = &b->to[b->region];
    int32_t kept = 0;
    while (to->node[kept] != b->now.first) kept++;
    for (int32_t k = kept; k < to->count; k++) {
        if (is_elementwise(&b->p->node[to->node[k]]))
            to->node[kept++] = to->node[k];
        else
            b->done[to->node[k]] = false;
    }
    to->count = kept;
}

/* The first elementwise op of the fewest elements that is ready, or -1: small tiles are what large
 * ones wait for. */
static int32_t find_first(const orderer *b, const tile_region *from) {
    int32_t best = -1;
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < from->count; k++) {
        const tile_node *n = &b->p->node[from->node[k]];
        if (b->done[from->node[k]] || !is_elementwise(n)) continue;
        const int64_t count = count_of(b->p->value[n->out].shape);
        if (count >= least || !is_ready(b, n)) continue;
        best = from->node[k];
        least = count;
    }
    return best;
}

static bool make_group(orderer *b, const tile_region *from) {
    const int32_t first = find_first(b, from);
    if (first < 0) return false;
    growing *g = &b->now;
    *g = (growing){.first = first,
                   .count = count_of(b->p->value[b->p->node[first].out].shape),
                   .shape = {.rank = -1}};
    for (int32_t k = 0; k < from->count && g->members < MEMBERS_MAX; k++) {
        const int32_t node = from->node[k];
        if (b->done[node]) continue;
        if (is_elementwise(&b->p->node[node]))
            (void)join(b, node);
        else
            (void)join_sum(b, node);
    }
    const int rank = g->shape.rank;
    const bool pieces =
        g->called || (g->moved && rank > 1 && g->shape.extent[rank - 1] < TILE_NEST_ROW_MIN);
    if (g->sums && pieces) drop_sums(b);
    return true;
}

static void order_region(orderer *b, int32_t region) {
    const tile_region *from = &b->p->region[region];
    b->region = region;
    b->to[region].count = 0;
    for (int32_t k = 0; k < from->count; k++)
        b->done[from->node[k]] = is_view(b, &b->p->node[from->node[k]]);
    do put_others(b, from);
    while (make_group(b, from));
}

/* Planning */

static tile_status order_all(orderer *b, tile_native_plan *plan, int32_t *alias) {
    const tile_program *p = b->p;
    for (int32_t r = 0; r < p->region_count; r++) {
        b->to[r] = p->region[r];
        b->to[r].node = tile_alloc(((size_t)p->region[r].count + 1) * sizeof *b->to[r].node);
    }
    for (int32_t r = 0; r < p->region_count; r++)
        if (!b->to[r].node) return TILE_E_MEMORY;
    for (int32_t r = 0; r < p->region_count; r++) order_region(b, r);
    for (int32_t v = 0; v < p->value_count; v++) alias[v] = b->view[v].base;
    tile_program ordered = *p;
    ordered.region = b->to;
    return tile_plan_ordered(&ordered, b->group, alias, NULL, NULL, &plan->blocks);
}

static tile_status order_with(orderer *b, tile_native_plan *plan) {
    const size_t values = (size_t)b->p->value_count + 1, nodes = (size_t)b->p->node_count + 1;
    bool *plain = tile_alloc(values), *made = tile_alloc(values);
    int32_t *alias = tile_alloc(values * sizeof *alias);
    b->group = tile_alloc(nodes * sizeof *b->group);
    b->done = tile_alloc(nodes);
    b->to = tile_alloc(((size_t)b->p->region_count + 1) * sizeof *b->to);
    tile_status status = TILE_E_MEMORY;
    if (plain && made && alias && b->group && b->done && b->to) {
        tile_native_find_views(b->p, &plan->exe->analysis, NULL, plain, made, plan->view);
        for (int32_t k = 0; k < b->p->node_count; k++) b->group[k] = k;
        status = order_all(b, plan, alias);
    }
    for (int32_t r = 0; b->to && r < b->p->region_count; r++) tile_free(b->to[r].node);
    tile_free(b->to);
    tile_free(b->done);
    tile_free(b->group);
    tile_free(alias);
    tile_free(made);
    tile_free(plain);
    return status;
}

const tile_op *tile_native_fold_op(tile_native_fold fold) {
    static const char *const names[] = {"sum", "reduce_min", "reduce_max"};
    return tile_op_find(names[fold]);
}

tile_status tile_native_plan_order(tile_native_plan *plan) {
    const tile_program *p = &plan->exe->program;
    plan->view = tile_alloc(((size_t)p->value_count + 1) * sizeof *plan->view);
    if (!plan->view) return TILE_E_MEMORY;
    orderer b = {.p = p, .view = plan->view};
    for (int k = 0; k < TILE_FOLDS; k++) b.fold[k] = tile_native_fold_op((tile_native_fold)k);
    return order_with(&b, plan);
}
