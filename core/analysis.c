/* analysis.c: which values are the same for every block, which windows stay apart. */
#include "core/analysis.h"

#include <string.h>

#include "core/memory.h"
#include "core/status.h"

/* The ops that the analysis knows by name. */
typedef struct known_ops {
    const tile_op *full, *broadcast, *view, *add, *sub, *mul, *cast;
} known_ops;

static known_ops find_ops(void) {
    return (known_ops){tile_op_find("full"), tile_op_find("broadcast"), tile_op_find("view"),
                       tile_op_find("add"),  tile_op_find("sub"),       tile_op_find("mul"),
                       tile_op_find("cast")};
}

static bool is(const tile_node *n, const tile_op *op) {
    return op && n->op == op;
}

static int64_t count_of(tile_shape shape) {
    int64_t n = 1;
    for (int d = 0; d < shape.rank; d++) n *= shape.extent[d];
    return n;
}

/* Inputs and windows */

tile_inputs tile_inputs_of(const tile_program *p, const tile_node *n) {
    tile_inputs inputs = {.tiles = n->n_in < n->op->n_in ? n->n_in : n->op->n_in};
    if (n->op->kind == TILE_OP_STRUCTURE) inputs.tiles = n->n_in;
    int rank = 0;
    if (n->op->access)
        rank = p->param[n->param].rank;
    else if (n->op->kind == TILE_OP_COOPERATIVE && inputs.tiles)
        rank = p->value[tile_node_in(p, n, 0)].shape.rank;
    inputs.bounds = n->bounded ? 2 * rank : 0;
    inputs.offsets = n->n_in - inputs.tiles - inputs.bounds;
    return inputs;
}

static tile_shape window_shape(const tile_program *p, const tile_node *n) {
    if (n->op->access == TILE_ACCESS_LOAD || n->op->access == TILE_ACCESS_TAKE)
        return p->value[n->out].shape;
    return p->value[tile_node_in(p, n, n->op->indexed ? 1 : 0)].shape;
}

tile_access_window tile_window_of_node(const tile_program *p, const tile_analysis *a,
                                       const tile_node *n) {
    tile_access_window w = {.rank = p->param[n->param].rank,
                            .wild = n->op->indexed ? (int)n->attrs.n[0] : -1};
    const tile_shape shape = window_shape(p, n);
    const tile_inputs inputs = tile_inputs_of(p, n);
    for (int d = 0; d < w.rank; d++) {
        w.extent[d] = d < shape.rank ? shape.extent[d] : 1;
        tile_affine at = {.known = true, .uniform = -1};
        if (inputs.offsets) at = a->affine[tile_node_in(p, n, inputs.tiles + d)];
        if (__builtin_add_overflow(at.constant, n->attrs.shift[d], &at.constant)) at.known = false;
        w.at[d] = at;
    }
    return w;
}

bool tile_view_shift(const tile_program *p, const tile_node *n, int64_t shift[TILE_RANK_MAX]) {
    const tile_op *full = tile_op_find("full");
    const tile_shape from = p->value[tile_node_in(p, n, 0)].shape, to = p->value[n->out].shape;
    for (int d = 0; d < to.rank; d++) {
        shift[d] = n->attrs.shift[d];
        if (n->n_in > 1) {
            const tile_node *at = &p->node[p->value[tile_node_in(p, n, 1 + d)].node];
            if (at->op != full || __builtin_add_overflow(shift[d], at->attrs.n[0], &shift[d]))
                return false;
        }
        if (shift[d] < 0 || shift[d] > from.extent[d] - to.extent[d]) return false;
    }
    return true;
}

/* Blocks apart */

/* Whether windows v and w of blocks that differ along one axis never meet in dimension d. */
static bool apart_in(const tile_access_window *v, const tile_access_window *w, int d, int axis) {
    const tile_affine *a = &v->at[d], *b = &w->at[d];
    if (d == v->wild || d == w->wild || !a->known || !b->known || a->uniform != b->uniform)
        return false;
    for (int g = 0; g < TILE_GRID_RANK; g++) {
        if (a->coefficient[g] != b->coefficient[g]) return false;
        if (g != axis && a->coefficient[g] != 0) return false;
    }
    const int64_t step = a->coefficient[axis];
    int64_t gap;
    if (step == 0 || step == INT64_MIN) return false;
    if (__builtin_sub_overflow(b->constant, a->constant, &gap)) return false;
    const int64_t size = step < 0 ? -step : step;
    if (gap < -size || gap > size) return false;
    return v->extent[d] - gap <= size && w->extent[d] + gap <= size;
}

static bool windows_apart(const tile_access_window *v, const tile_access_window *w,
                          const bool many[TILE_GRID_RANK]) {
    for (int g = 0; g < TILE_GRID_RANK; g++) {
        if (!many[g]) continue;
        bool apart = false;
        for (int d = 0; d < v->rank && d < w->rank && !apart; d++) apart = apart_in(v, w, d, g);
        if (!apart) return false;
    }
    return true;
}

static bool is_access_to(const tile_node *n, uint64_t params) {
    return n->op->access && n->param >= 0 && (params >> n->param & 1u);
}

static bool all_apart(const tile_program *p, const tile_analysis *a, uint64_t params,
                      const bool many[TILE_GRID_RANK]) {
    for (int32_t i = 0; i < a->order_count; i++) {
        const tile_node *m = &p->node[a->order[i]];
        if (!is_access_to(m, params) || m->op->access == TILE_ACCESS_LOAD) continue;
        const tile_access_window w = tile_window_of_node(p, a, m);
        for (int32_t k = 0; k < a->order_count; k++) {
            const tile_node *n = &p->node[a->order[k]];
            if (!is_access_to(n, params)) continue;
            const tile_access_window v = tile_window_of_node(p, a, n);
            if (!windows_apart(&w, &v, many)) return false;
        }
    }
    return true;
}

bool tile_blocks_apart(const tile_program *p, const tile_analysis *a, uint64_t params) {
    bool many[TILE_GRID_RANK] = {false};
    for (int32_t k = 0; k < a->order_count; k++) {
        const tile_node *n = &p->node[a->order[k]];
        if (n->op == &tile_op_block_index) many[n->attrs.n[0]] = true;
    }
    return all_apart(p, a, params, many);
}

bool tile_blocks_apart_on(const tile_program *p, const tile_analysis *a, uint64_t params,
                          const int64_t grid[TILE_GRID_RANK]) {
    bool many[TILE_GRID_RANK];
    for (int g = 0; g < TILE_GRID_RANK; g++) many[g] = grid[g] > 1;
    return all_apart(p, a, params, many);
}

/* Order and accesses */

static void put_region(const tile_program *p, tile_analysis *a, int32_t region) {
    const tile_region *r = &p->region[region];
    for (int32_t k = 0; k < r->count; k++) {
        const tile_node *n = &p->node[r->node[k]];
        a->order[a->order_count++] = r->node[k];
        if (n->op == &tile_op_loop) put_region(p, a, n->region);
    }
}

static void note_accesses(const tile_program *p, tile_analysis *a) {
    for (int32_t k = 0; k < a->order_count; k++) {
        const tile_node *n = &p->node[a->order[k]];
        if (n->op == &tile_op_extent) a->sized |= (uint64_t)1 << n->attrs.n[0];
        if (!n->op->access || n->param < 0) continue;
        a->reads[n->param] |= 1u << n->op->access;
        if (n->op->access != TILE_ACCESS_LOAD) a->written |= (uint64_t)1 << n->param;
    }
}

static void note_answer(const tile_program *p, tile_analysis *a, int32_t value) {
    const tile_value *v = &p->value[value];
    const tile_node *n = &p->node[v->node];
    if (v->result >= 0 && n->op->access >= TILE_ACCESS_ADD) a->answered |= (uint64_t)1 << n->param;
}

static void note_answers(const tile_program *p, tile_analysis *a) {
    for (int32_t k = 0; k < a->order_count; k++) {
        const tile_node *n = &p->node[a->order[k]];
        for (int32_t i = 0; i < n->n_in; i++) note_answer(p, a, tile_node_in(p, n, i));
    }
    for (int32_t r = 0; r < p->region_count; r++)
        for (int32_t k = 0; k < p->region[r].yield_count; k++)
            note_answer(p, a, p->region[r].yield[k]);
}

/* Variance */

static bool inputs_uniform(const tile_program *p, const tile_analysis *a, const tile_node *n) {
    for (int32_t k = 0; k < n->n_in; k++)
        if (a->variance[tile_node_in(p, n, k)] != TILE_UNIFORM) return false;
    return true;
}

static bool is_uniform(const tile_program *p, const tile_analysis *a, const tile_node *n) {
    if (tile_node_is_launch_leaf(n)) return true;
    if (n->op->kind == TILE_OP_STRUCTURE || n->op->access > TILE_ACCESS_LOAD) return false;
    if (n->op->access && (a->written >> n->param & 1u)) return false;
    return inputs_uniform(p, a, n);
}

/* Flat values are found on one element, so a cooperative op must be at home there. */
static bool is_flat(const tile_program *p, const tile_analysis *a, const tile_node *n,
                    const known_ops *ops) {
    if (tile_node_is_launch_leaf(n) || is(n, ops->full)) return true;
    if (!is_uniform(p, a, n)) return false;
    for (int32_t k = 0; k < n->n_in; k++)
        if (!a->flat[tile_node_in(p, n, k)]) return false;
    if (n->op->kind == TILE_OP_ELEMENTWISE) return true;
    if (is(n, ops->broadcast)) return true;
    int64_t shift[TILE_RANK_MAX];
    if (is(n, ops->view) && tile_view_shift(p, n, shift)) return true;
    for (int32_t k = 0; k < n->n_in; k++)
        if (count_of(p->value[tile_node_in(p, n, k)].shape) != 1) return false;
    return n->n_out == 1 && count_of(p->value[n->out].shape) == 1;
}

static bool affine_sum(const tile_affine *x, const tile_affine *y, int64_t sign, tile_affine *z) {
    int64_t term;
    *z = *x;
    if (__builtin_mul_overflow(y->constant, sign, &term) ||
        __builtin_add_overflow(x->constant, term, &z->constant))
        return false;
    for (int g = 0; g < TILE_GRID_RANK; g++)
        if (__builtin_mul_overflow(y->coefficient[g], sign, &term) ||
            __builtin_add_overflow(x->coefficient[g], term, &z->coefficient[g]))
            return false;
    if (y->uniform < 0) return true;
    if (sign < 0) {
        if (x->uniform != y->uniform) return false;
        z->uniform = -1;
        return true;
    }
    z->uniform = y->uniform;
    return x->uniform < 0;
}

static bool is_constant(const tile_affine *x) {
    for (int g = 0; g < TILE_GRID_RANK; g++)
        if (x->coefficient[g]) return false;
    return x->uniform < 0;
}

static bool affine_product(const tile_affine *x, const tile_affine *y, tile_affine *z) {
    if (is_constant(x)) {
        const tile_affine *swap = x;
        x = y;
        y = swap;
    }
    if (!is_constant(y) || x->uniform >= 0) return false;
    *z = *x;
    if (__builtin_mul_overflow(x->constant, y->constant, &z->constant)) return false;
    for (int g = 0; g < TILE_GRID_RANK; g++)
        if (__builtin_mul_overflow(x->coefficient[g], y->constant, &z->coefficient[g]))
            return false;
    return true;
}

static bool affine_maths(const tile_program *p, const tile_analysis *a, const tile_node *n,
                         const known_ops *ops, tile_affine *z) {
    if (n->op->access || n->n_in < 1) return false;
    const tile_affine *x = &a->affine[tile_node_in(p, n, 0)];
    if (is(n, ops->cast) || is(n, ops->broadcast) || is(n, ops->view)) {
        *z = *x;
        return x->known;
    }
    if (n->n_in != 2) return false;
    const tile_affine *y = &a->affine[tile_node_in(p, n, 1)];
    if (!x->known || !y->known) return false;
    if (is(n, ops->add)) return affine_sum(x, y, 1, z) || affine_sum(y, x, 1, z);
    if (is(n, ops->sub)) return affine_sum(x, y, -1, z);
    return is(n, ops->mul) && affine_product(x, y, z);
}

static tile_affine find_affine(const tile_program *p, const tile_analysis *a, const tile_node *n,
                               const known_ops *ops) {
    tile_affine z = {.known = true, .uniform = -1};
    const tile_value *v = &p->value[n->out];
    if (n->n_out != 1 || v->shape.rank != 0 || v->dtype != TILE_I64)
        return (tile_affine){.uniform = -1};
    if (is(n, ops->full)) {
        z.constant = n->attrs.n[0];
        return z;
    }
    if (n->op == &tile_op_block_index) {
        z.coefficient[n->attrs.n[0]] = 1;
        return z;
    }
    if (affine_maths(p, a, n, ops, &z)) return z;
    z = (tile_affine){.known = a->flat[n->out], .uniform = -1};
    if (z.known) z.uniform = n->out;
    return z;
}

static void classify(const tile_program *p, tile_analysis *a, const tile_node *n,
                     const known_ops *ops) {
    const bool uniform = is_uniform(p, a, n), flat = is_flat(p, a, n, ops);
    for (int32_t k = 0; k < n->n_out; k++) {
        a->variance[n->out + k] = uniform ? TILE_UNIFORM : TILE_VARYING;
        a->flat[n->out + k] = flat;
    }
    if (flat && n->op->access) a->uniform |= (uint64_t)1 << n->param;
    if (n->n_out != 1) return;
    a->affine[n->out] = find_affine(p, a, n, ops);
    if (a->affine[n->out].known && !uniform) a->variance[n->out] = TILE_AFFINE;
}

static tile_status analyse(const tile_program *p, tile_analysis *a) {
    const size_t values = (size_t)p->value_count + 1;
    a->order = tile_alloc(((size_t)p->node_count + 1) * sizeof *a->order);
    a->variance = tile_alloc(values * sizeof *a->variance);
    a->affine = tile_alloc(values * sizeof *a->affine);
    a->flat = tile_alloc(values * sizeof *a->flat);
    if (!a->order || !a->variance || !a->affine || !a->flat) return TILE_E_MEMORY;
    if (p->region_count) put_region(p, a, 0);
    for (int32_t k = 0; k < p->value_count; k++) {
        a->variance[k] = TILE_VARYING;
        a->affine[k].uniform = -1;
    }
    note_accesses(p, a);
    note_answers(p, a);
    const known_ops ops = find_ops();
    for (int32_t k = 0; k < a->order_count; k++) classify(p, a, &p->node[a->order[k]], &ops);
    for (int k = 0; k < p->param_count; k++)
        if ((a->written >> k & 1u) && !tile_blocks_apart(p, a, (uint64_t)1 << k))
            a->ordered_needed = true;
    return tile_field_find(p, a);
}

tile_status tile_analyse(const tile_program *program, tile_analysis *analysis) {
    *analysis = (tile_analysis){.order_count = 0};
    const tile_status status = analyse(program, analysis);
    if (status) tile_analysis_clear(analysis);
    return status;
}

void tile_analysis_clear(tile_analysis *analysis) {
    tile_free(analysis->order);
    tile_free(analysis->variance);
    tile_free(analysis->affine);
    tile_free(analysis->flat);
    *analysis = (tile_analysis){.order_count = 0};
}
