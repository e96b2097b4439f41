/* cuda_order.c: what every thread computes for itself, what goes by elements, what may meet. */
#include "core/cuda_order.h"

#include <string.h>

#include "core/memory.h"
#include "core/status.h"

/* Windows */

/* Whether two offsets differ by a constant. */
static bool differ_by(const tile_cuda_order *b, const tile_node *x, const tile_node *y,
                      const tile_affine *at_x, const tile_affine *at_y, int d, int64_t *by) {
    if (at_x->known && at_y->known) {
        if (at_x->uniform != at_y->uniform ||
            memcmp(at_x->coefficient, at_y->coefficient, sizeof at_x->coefficient) != 0)
            return false;
        return !__builtin_sub_overflow(at_y->constant, at_x->constant, by);
    }
    const tile_inputs in_x = tile_inputs_of(b->p, x), in_y = tile_inputs_of(b->p, y);
    if (d >= in_x.offsets || d >= in_y.offsets ||
        tile_node_in(b->p, x, in_x.tiles + d) != tile_node_in(b->p, y, in_y.tiles + d))
        return false;
    return !__builtin_sub_overflow(y->attrs.shift[d], x->attrs.shift[d], by);
}

bool tile_cuda_distance(const tile_cuda_order *b, const tile_node *x, const tile_node *y,
                        int64_t distance[TILE_RANK_MAX]) {
    const tile_access_window v = tile_window_of_node(b->p, b->a, x),
                             w = tile_window_of_node(b->p, b->a, y);
    if (b->same[x->param] != b->same[y->param] || v.wild >= 0 || w.wild >= 0) return false;
    for (int d = 0; d < v.rank; d++)
        if (!differ_by(b, x, y, &v.at[d], &w.at[d], d, &distance[d])) return false;
    return true;
}

tile_shape tile_cuda_window_shape(const tile_cuda_order *b, const tile_node *n,
                                  int dimension[TILE_RANK_MAX]) {
    const tile_access_window w = tile_window_of_node(b->p, b->a, n);
    tile_shape shape = {.rank = 0};
    for (int d = 0; d < w.rank; d++) {
        if (w.extent[d] == 1) continue;
        dimension[shape.rank] = d;
        shape.extent[shape.rank++] = w.extent[d];
    }
    return shape;
}

int64_t tile_cuda_elements(const tile_program *p, const tile_node *n) {
    if (n->n_out) return tile_cuda_count(p->value[n->out].shape);
    return tile_cuda_count(p->value[tile_node_in(p, n, n->op->indexed)].shape);
}

/* Effects */

static void add_effect(tile_cuda_effect *to, const tile_cuda_effect *from) {
    to->reads |= from->reads;
    to->writes |= from->writes;
    to->adds |= from->adds;
    to->fails = to->fails || from->fails;
    to->some = to->some || from->some;
}

static void find_effect(tile_cuda_order *b, int32_t node) {
    const tile_node *n = &b->p->node[node];
    tile_cuda_effect *e = &b->effect[node];
    const uint64_t param = n->op->access ? tile_cuda_array(b, n) : 0;
    *e = (tile_cuda_effect){.fails = n->op == &tile_op_within};
    if (n->op->access == TILE_ACCESS_LOAD)
        e->reads = param;
    else if (n->op->access == TILE_ACCESS_ADD && !b->used[n->out])
        e->adds = param;
    else
        e->writes = param;
    e->some = param || e->fails;
    if (n->op != &tile_op_loop) return;
    const tile_region *body = &b->p->region[n->region];
    for (int32_t k = 0; k < body->count; k++) add_effect(e, &b->effect[body->node[k]]);
    if (tile_loop_is_while(n)) e->fails = e->some = true;
}

bool tile_cuda_meet(const tile_cuda_order *b, const tile_cuda_effect *x,
                    const tile_cuda_effect *y) {
    const uint64_t change_x = x->writes | x->adds, change_y = y->writes | y->adds;
    if (x->fails && (y->fails || change_y)) return true;
    if (y->fails && change_x) return true;
    uint64_t met = (x->writes & (y->reads | change_y)) | (y->writes & (x->reads | change_x)) |
                   (x->adds & y->reads) | (y->adds & x->reads);
    if (b->mode & TILE_CUDA_DETERMINISTIC) met |= x->adds & y->adds;
    if (met || !(b->mode & TILE_CUDA_MIXED)) return met != 0;
    const bool only_adds =
        !(x->writes | x->reads | y->writes | y->reads) && !(b->mode & TILE_CUDA_DETERMINISTIC);
    return !only_adds && ((change_x && (y->reads | change_y)) || (change_y && x->reads));
}

/* Lone values and members */

static bool is_lone(const tile_program *p, const tile_value *v) {
    if (tile_cuda_count(v->shape) != 1) return false;
    const tile_node *n = &p->node[v->node];
    if (n->op == &tile_op_loop || n->op->kind == TILE_OP_ELEMENTWISE) return true;
    if (n->op->kind == TILE_OP_STRUCTURE) return n->op != &tile_op_kept;
    return tile_cuda_is_source(n) && !n->op->indexed;
}

/* Whether the operands beside the windows are one element, as maths by elements wants them. */
static bool has_single_operands(const tile_program *p, const tile_node *n) {
    for (int32_t i = 0; i < n->n_in; i++)
        if (tile_cuda_count(p->value[tile_node_in(p, n, i)].shape) != 1) return false;
    return true;
}

/* Whether it goes by elements; lone values aside. */
static bool is_member(const tile_cuda_order *b, const tile_node *n) {
    if (n->op->kind == TILE_OP_ELEMENTWISE) return true;
    if (!n->op->element) return false;
    if (!n->op->access) return has_single_operands(b->p, n);
    if (n->op->access < TILE_ACCESS_ADD) return true;
    return !b->used[n->out] && !(n->op->indexed && (b->mode & TILE_CUDA_DETERMINISTIC));
}

static void find_used(tile_cuda_order *b) {
    const tile_program *p = b->p;
    for (int32_t r = 0; r < p->region_count; r++) {
        for (int32_t k = 0; k < p->region[r].count; k++) {
            const tile_node *n = &p->node[p->region[r].node[k]];
            for (int32_t i = 0; i < n->n_in; i++) b->used[tile_node_in(p, n, i)] = true;
        }
        for (int32_t k = 0; k < p->region[r].yield_count; k++)
            b->used[p->region[r].yield[k]] = true;
    }
}

static tile_status allot(tile_cuda_order *b) {
    const size_t values = (size_t)b->p->value_count + 1, nodes = (size_t)b->p->node_count + 1;
    b->view = tile_alloc(values * sizeof *b->view);
    b->lone = tile_alloc(values);
    b->placed = tile_alloc(values);
    b->used = tile_alloc(values);
    b->effect = tile_alloc(nodes * sizeof *b->effect);
    b->group = tile_alloc(nodes * sizeof *b->group);
    b->member = tile_alloc(nodes);
    return b->view && b->lone && b->placed && b->used && b->effect && b->group && b->member
               ? TILE_OK
               : TILE_E_MEMORY;
}

static tile_status order_all(tile_cuda_order *b) {
    TILE_TRY(allot(b));
    find_used(b);
    for (int32_t k = 0; k < b->p->node_count; k++) b->member[k] = is_member(b, &b->p->node[k]);
    bool *made = tile_alloc((size_t)b->p->value_count + 1);
    if (!made) return TILE_E_MEMORY;
    tile_native_find_views(b->p, b->a, b->member, b->placed, made, b->view);
    tile_free(made);
    memset(b->placed, 0, (size_t)b->p->value_count + 1);
    for (int32_t k = b->a->order_count - 1; k >= 0; k--) find_effect(b, b->a->order[k]);
    for (int32_t v = 0; v < b->p->value_count; v++)
        b->lone[v] = b->view[v].base == v && is_lone(b->p, &b->p->value[v]);
    for (int32_t k = 0; k < b->p->node_count; k++) {
        b->group[k] = k;
        const tile_node *n = &b->p->node[k];
        if (n->n_out && b->lone[n->out]) b->member[k] = false;
    }
    return tile_cuda_grow_groups(b);
}

tile_status tile_cuda_order_make(const tile_executable *exe, unsigned mode, const int8_t *same,
                                 tile_cuda_order *order) {
    *order = (tile_cuda_order){.p = &exe->program, .a = &exe->analysis, .mode = mode, .same = same};
    const tile_status status = order_all(order);
    if (status) tile_cuda_order_clear(order);
    return status;
}

void tile_cuda_order_clear(tile_cuda_order *b) {
    tile_free(b->view);
    tile_free(b->effect);
    tile_free(b->group);
    tile_free(b->member);
    tile_free(b->lone);
    tile_free(b->placed);
    tile_free(b->used);
    tile_plan_clear(&b->blocks);
    b->view = NULL;
    b->effect = NULL;
    b->group = NULL;
    b->member = b->lone = b->placed = b->used = NULL;
}
