/* field.c: whether a kernel is elementwise on windows that follow the blocks. */
#include "core/analysis.h"
#include "core/memory.h"

typedef struct finder {
    const tile_program *p;
    tile_analysis *a;
    tile_field_form *field;
    bool *in_field; /* per value: a function of the place in the field */
    const tile_op *broadcast, *view, *iota;
} finder;

static bool fail(finder *f, const char *why) {
    if (!f->field->why) f->field->why = why;
    return false;
}

static bool is_effect(const tile_node *n) {
    return n->op->access > TILE_ACCESS_LOAD;
}

/* The field's dimension of dimension d of something of a rank. */
static int field_dim(const finder *f, int rank, int d) {
    return f->field->rank - rank + d;
}

static int axis_of(const tile_affine *at) {
    int axis = -1;
    for (int g = 0; g < TILE_GRID_RANK; g++) {
        if (!at->coefficient[g]) continue;
        if (axis >= 0) return TILE_GRID_RANK;
        axis = g;
    }
    return axis;
}

/* The first write says how the field is cut. */
static bool find_core(finder *f) {
    for (int32_t k = 0; k < f->a->order_count; k++) {
        const tile_node *n = &f->p->node[f->a->order[k]];
        if (!is_effect(n)) continue;
        const tile_access_window w = tile_window_of_node(f->p, f->a, n);
        f->field->rank = w.rank;
        for (int d = 0; d < w.rank; d++) {
            f->field->core[d] = w.extent[d];
            if (!w.at[d].known) return fail(f, "a window is written at a place that is not affine");
            const int axis = f->field->axis[d] = axis_of(&w.at[d]);
            if (axis == TILE_GRID_RANK)
                return fail(f, "a window moves along two grid axes at once");
            if (axis >= 0 && w.at[d].coefficient[axis] != w.extent[d])
                return fail(f, "written windows do not lie side by side");
            for (int e = 0; e < d; e++)
                if (axis >= 0 && f->field->axis[e] == axis)
                    return fail(f, "two dimensions move along one grid axis");
        }
        return w.rank > 0 || fail(f, "the array that is written has no dimensions");
    }
    return fail(f, "nothing is written");
}

static bool fits(const finder *f, tile_shape shape) {
    if (shape.rank > f->field->rank) return false;
    for (int d = 0; d < shape.rank; d++)
        if (shape.extent[d] != 1 && shape.extent[d] < f->field->core[field_dim(f, shape.rank, d)])
            return false;
    return true;
}

/* A position along field dimension d that goes with the field (moves), or stays where it is. */
static bool follows(const finder *f, const tile_affine *at, int d, bool *moves) {
    if (!at->known) return false;
    const int axis = axis_of(at);
    *moves = axis == f->field->axis[d] && (axis < 0 || at->coefficient[axis] == f->field->core[d]);
    return *moves || axis == -1;
}

static bool check_load(finder *f, const tile_node *n) {
    if (n->op->indexed) return fail(f, "an indexed load");
    const tile_access_window w = tile_window_of_node(f->p, f->a, n);
    if (w.rank > f->field->rank) return fail(f, "a load has more dimensions than what is written");
    for (int d = 0; d < w.rank; d++) {
        const int e = field_dim(f, w.rank, d);
        bool moves;
        if (!follows(f, &w.at[d], e, &moves)) return fail(f, "a load does not follow the blocks");
        if (w.extent[d] != 1 && !moves) return fail(f, "a load does not follow the blocks");
        if (w.extent[d] == 1 && f->field->core[e] != 1 && axis_of(&w.at[d]) >= 0)
            return fail(f, "a load follows the blocks but not the elements");
    }
    return true;
}

/* iota along one axis, from a start that moves with the blocks. */
static bool check_iota(finder *f, const tile_node *n) {
    const tile_shape shape = f->p->value[n->out].shape;
    const int64_t mask = n->attrs.n[0];
    tile_affine start = {.known = true, .uniform = -1};
    if (n->n_in) start = f->a->affine[tile_node_in(f->p, n, 0)];
    for (int d = 0; d < shape.rank; d++) {
        if (!(mask >> d & 1)) continue;
        if (mask != (int64_t)1 << d) return fail(f, "an iota along several axes");
        const int e = field_dim(f, shape.rank, d);
        bool moves;
        if (!follows(f, &start, e, &moves) || !moves)
            return fail(f, "an iota does not follow the blocks");
        return shape.extent[d] != 1 || f->field->core[e] == 1 ||
               fail(f, "an iota does not follow the blocks");
    }
    return fail(f, "an iota along no axis");
}

/* Whether every bound of a window is the same for all blocks. */
static bool bounds_flat(const finder *f, const tile_node *n) {
    const tile_inputs inputs = tile_inputs_of(f->p, n);
    for (int k = 0; k < inputs.bounds; k++)
        if (!f->a->flat[tile_node_in(f->p, n, inputs.tiles + inputs.offsets + k)]) return false;
    return true;
}

static bool check_write(finder *f, const tile_node *n) {
    if (n->op->indexed) return fail(f, "an indexed write");
    if (n->op->access == TILE_ACCESS_TAKE) return fail(f, "a take");
    if (n->op->access == TILE_ACCESS_UPDATE) return fail(f, "an update");
    const tile_access_window w = tile_window_of_node(f->p, f->a, n);
    if (w.rank != f->field->rank) return fail(f, "written windows differ in rank");
    for (int d = 0; d < w.rank; d++) {
        bool moves;
        if (w.extent[d] != f->field->core[d]) return fail(f, "written windows differ in shape");
        if (!follows(f, &w.at[d], d, &moves) || !moves)
            return fail(f, "a written window does not follow the blocks");
    }
    return true;
}

static bool same_window(const tile_access_window *v, const tile_access_window *w) {
    if (v->rank != w->rank) return false;
    for (int d = 0; d < v->rank; d++) {
        const tile_affine *a = &v->at[d], *b = &w->at[d];
        if (v->extent[d] != w->extent[d] || a->constant != b->constant || a->uniform != b->uniform)
            return false;
        for (int g = 0; g < TILE_GRID_RANK; g++)
            if (a->coefficient[g] != b->coefficient[g]) return false;
    }
    return true;
}

/* An array is written at most once, and read where it is written only in the same window. */
static bool check_alone(finder *f, const tile_node *write) {
    const tile_access_window w = tile_window_of_node(f->p, f->a, write);
    for (int32_t k = 0; k < f->a->order_count; k++) {
        const tile_node *n = &f->p->node[f->a->order[k]];
        if (!n->op->access || n->param != write->param || n == write) continue;
        if (is_effect(n)) return fail(f, "an array is written twice");
        if (n->op->indexed) return fail(f, "an array is written and read by index");
        const tile_access_window v = tile_window_of_node(f->p, f->a, n);
        if (!same_window(&v, &w)) return fail(f, "an array is written and read in other windows");
    }
    return true;
}

static bool tiles_in_field(finder *f, const tile_node *n, int tiles) {
    for (int k = 0; k < tiles; k++) {
        const int32_t v = tile_node_in(f->p, n, k);
        if (!f->in_field[v] && !f->a->flat[v])
            return fail(f, "a block's own scalar is used as a value");
    }
    return true;
}

static bool check_effect(finder *f, const tile_node *n) {
    if (n->n_out && n->op->access != TILE_ACCESS_ADD) return fail(f, "a write with results");
    return check_write(f, n) && bounds_flat(f, n) && check_alone(f, n) && tiles_in_field(f, n, 1);
}

static bool check_value(finder *f, const tile_node *n) {
    const tile_inputs inputs = tile_inputs_of(f->p, n);
    if (n->op->access == TILE_ACCESS_LOAD) {
        if (!bounds_flat(f, n)) return fail(f, "bounds that differ between blocks");
        return check_load(f, n);
    }
    if (n->op == f->iota) return check_iota(f, n);
    const bool moves_values = n->op == f->broadcast || n->op == f->view;
    if (n->op->kind != TILE_OP_ELEMENTWISE && !moves_values)
        return fail(f, "an op that is not elementwise");
    int64_t shift[TILE_RANK_MAX];
    if (n->op == f->view && !tile_view_shift(f->p, n, shift))
        return fail(f, "a view at a place that is not constant, or not inside");
    return tiles_in_field(f, n, inputs.tiles);
}

/* A check that can be made for all blocks at once, at the corners of the grid. */
static bool check_within(finder *f, const tile_node *n) {
    for (int k = 1; k < n->n_in; k++)
        if (!f->a->flat[tile_node_in(f->p, n, k)]) return fail(f, "a check that blocks differ in");
    return f->a->affine[tile_node_in(f->p, n, 0)].known || fail(f, "a check that is not affine");
}

static bool check_node(finder *f, const tile_node *n) {
    if (is_effect(n)) return check_effect(f, n) || fail(f, "a write with bounds of its own");
    if (n->n_out && f->a->flat[n->out]) return true;
    if (n->op == &tile_op_block_index) return true;
    if (n->n_out == 1 && f->a->affine[n->out].known) return true;
    if (n->op == &tile_op_within) return check_within(f, n);
    if (n->op->kind == TILE_OP_STRUCTURE) return fail(f, "a loop or kept values");
    if (n->n_out != 1 || !fits(f, f->p->value[n->out].shape))
        return fail(f, "a tile is smaller than what is written");
    if (!check_value(f, n)) return false;
    f->in_field[n->out] = true;
    return true;
}

static bool find(finder *f) {
    if (!find_core(f)) return false;
    if (f->a->answered) return fail(f, "previous values are used");
    for (int32_t k = 0; k < f->a->order_count; k++)
        if (!check_node(f, &f->p->node[f->a->order[k]])) return false;
    return true;
}

tile_status tile_field_find(const tile_program *program, tile_analysis *analysis) {
    finder f = {.p = program,
                .a = analysis,
                .field = &analysis->field,
                .in_field = tile_alloc((size_t)program->value_count + 1),
                .broadcast = tile_op_find("broadcast"),
                .view = tile_op_find("view"),
                .iota = tile_op_find("iota")};
    if (!f.in_field) return TILE_E_MEMORY;
    f.field->ok = find(&f);
    tile_free(f.in_field);
    return TILE_OK;
}
