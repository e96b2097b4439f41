/* adjoint_gather.c: the adjoint of a field-form kernel, one writer per element.
 *
 * Forward, at every place p of the field: loads at p + s_k, elementwise maths, stores at p + c. So
 *
 *   dA[j] = sum over the loads k of A of G_k(j - s_k),  G_k = d out / d load_k times what came in,
 *
 * and G_k is 0 at places that the launch did not visit, because what came in is 0 there by select.
 * The kernel computes every G_k once, on the core widened by the spread of the shifts, and picks
 * the moved sub-tiles; the sum runs in the order of the loads. */
#include <string.h>

#include "core/adjoint_state.h"
#include "core/array.h"
#include "core/memory.h"
#include "core/status.h"

typedef struct field_plan {
    tile_kernel *kernel;
    tile_adjoint_plan *plan;
    const tile_program *p; /* normal form */
    const tile_analysis *a;
    uint32_t gather, in_place, reduce, stored; /* classes */
    bool possible;
} field_plan;

static const tile_node *node_at(const field_plan *f, int32_t i) {
    return &f->p->node[f->a->order[i]];
}

static uint32_t class_bit(const field_plan *f, int param) {
    return (uint32_t)1 << tile_class_of(&f->plan->key, param);
}

/* Whether the load moves with the field in every dimension, and whole. */
static bool is_full(const field_plan *f, const tile_access_window *w) {
    const tile_field_form *field = &f->a->field;
    if (w->rank != field->rank) return false;
    for (int d = 0; d < w->rank; d++) {
        if (w->extent[d] != field->core[d]) return false;
        if (field->axis[d] >= 0 && !w->at[d].coefficient[field->axis[d]]) return false;
    }
    return true;
}

/* Windows of one array that do not move with the blocks in some dimension: equal or apart. */
static bool groups_fit(const field_plan *f, const tile_access_window *v,
                       const tile_access_window *w) {
    const tile_field_form *field = &f->a->field;
    bool equal = true, apart = false;
    for (int d = 0; d < v->rank; d++) {
        if (v->at[d].uniform != w->at[d].uniform) return false;
        if (field->axis[d] >= 0 || v->at[d].constant == w->at[d].constant) continue;
        const int64_t gap = v->at[d].constant - w->at[d].constant;
        equal = false;
        if (gap >= field->core[d] || -gap >= field->core[d]) apart = true;
    }
    return equal || apart;
}

static bool same_place(const tile_access_window *v, const tile_access_window *w) {
    for (int d = 0; d < v->rank; d++) {
        const tile_affine *a = &v->at[d], *b = &w->at[d];
        if (a->uniform != b->uniform || a->constant != b->constant) return false;
        for (int g = 0; g < TILE_GRID_RANK; g++)
            if (a->coefficient[g] != b->coefficient[g]) return false;
    }
    return true;
}

/* Whether what a class's loads read is what its store writes, so that one pass may turn the adjoint
 * in place. Within one parameter the field form sees to it; parameters that are the same array may
 * differ. */
static bool loads_where_stored(const field_plan *f, const tile_node *store) {
    const tile_access_window w = tile_window_of_node(f->p, f->a, store);
    for (int32_t i = 0; i < f->a->order_count; i++) {
        const tile_node *n = node_at(f, i);
        if (n->op->access != TILE_ACCESS_LOAD ||
            class_bit(f, n->param) != class_bit(f, store->param))
            continue;
        const tile_access_window v = tile_window_of_node(f->p, f->a, n);
        if (v.rank != w.rank || !same_place(&v, &w)) return false;
    }
    return true;
}

/* Sorts the classes: stored once; loaded by full windows, or not. */
static void sort_classes(field_plan *f) {
    const tile_adjoint_key *key = &f->plan->key;
    uint32_t loaded = 0, odd = 0;
    for (int32_t i = 0; i < f->a->order_count; i++) {
        const tile_node *n = node_at(f, i);
        if (!n->op->access) continue;
        const uint32_t bit = class_bit(f, n->param);
        if (n->op->access == TILE_ACCESS_LOAD) {
            if (tile_load_must_be_kept(f->p, f->a, key, n)) f->possible = false;
            if (!tile_is_float(f->p->param[n->param].dtype)) continue;
            const tile_access_window w = tile_window_of_node(f->p, f->a, n);
            loaded |= bit;
            if (!is_full(f, &w)) odd |= bit;
            for (int32_t k = 0; k < i; k++) {
                const tile_node *m = node_at(f, k);
                if (m->op->access != TILE_ACCESS_LOAD || class_bit(f, m->param) != bit) continue;
                const tile_access_window v = tile_window_of_node(f->p, f->a, m);
                if (!groups_fit(f, &v, &w)) odd |= bit;
            }
        } else {
            if ((f->stored & bit) || n->op->access != TILE_ACCESS_STORE) f->possible = false;
            f->stored |= bit;
        }
    }
    const uint32_t wanted = loaded & key->active;
    f->in_place = wanted & f->stored;
    f->gather = wanted & ~f->stored & ~odd;
    f->reduce = wanted & ~f->stored & odd;
    if (f->in_place & odd) f->possible = false;
    for (int32_t i = 0; i < f->a->order_count && f->in_place; i++) {
        const tile_node *n = node_at(f, i);
        if (n->op->access == TILE_ACCESS_STORE && (f->in_place & class_bit(f, n->param)) &&
            !loads_where_stored(f, n))
            f->possible = false;
    }
}

static void measure(const field_plan *f, tile_adjoint *a, uint32_t set) {
    bool first = true;
    a->wide = (tile_widening){.on = true, .rank = f->a->field.rank};
    memcpy(a->wide.core, f->a->field.core, sizeof a->wide.core);
    memcpy(a->wide.axis, f->a->field.axis, sizeof a->wide.axis);
    for (int32_t i = 0; i < f->a->order_count; i++) {
        const tile_node *n = node_at(f, i);
        if (n->op->access != TILE_ACCESS_LOAD || !(set & class_bit(f, n->param))) continue;
        const tile_access_window w = tile_window_of_node(f->p, f->a, n);
        for (int d = 0; d < a->wide.rank; d++) {
            if (a->wide.axis[d] < 0) continue;
            const int64_t s = w.at[d].constant;
            if (first || s < a->wide.low[d]) a->wide.low[d] = s;
            if (first || s > a->wide.high[d]) a->wide.high[d] = s;
        }
        first = false;
    }
}

/* A collected adjoint at j - s for j in the target's window. */
static tile move(tile_adjoint *a, const tile_access_window *w, tile t) {
    tile_emission e = {.op = tile_op_find("view"), .n_in = 1, .in = {t}, .has_shape = true};
    e.shape = tile_shape_of_tile(t);
    bool moves = false;
    for (int d = 0; d < a->wide.rank; d++) {
        const int64_t spread = a->wide.high[d] - a->wide.low[d];
        if (a->wide.axis[d] < 0 || !spread) continue;
        e.shape.extent[d] -= spread;
        e.attrs.shift[d] = a->wide.high[d] - w->at[d].constant;
        moves = true;
    }
    return moves ? tile_emit(a->b, &e) : t;
}

/* The adjoint has to have the widened shape before it is moved; constants may not. */
static tile widened(tile_adjoint *a, tile t) {
    tile_shape shape = {.rank = a->wide.rank};
    for (int d = 0; d < shape.rank; d++)
        shape.extent[d] = a->wide.core[d] + a->wide.high[d] - a->wide.low[d];
    if (!tile_is_good(t) || tile_shape_equal(tile_shape_of_tile(t), shape)) return t;
    const tile_emission e = {
        .op = tile_op_find("broadcast"), .n_in = 1, .in = {t}, .has_shape = true, .shape = shape};
    return tile_emit(a->b, &e);
}

static bool same_group(const tile_adjoint *a, const tile_access_window *v,
                       const tile_access_window *w) {
    for (int d = 0; d < v->rank; d++)
        if (a->wide.axis[d] < 0 && v->at[d].constant != w->at[d].constant) return false;
    return true;
}

/* The sum of a group's moved adjoints; zeros when nothing reaches it. */
static tile sum_group(field_plan *f, tile_adjoint *a, int cls, const tile_access_window *group) {
    tile sum = {a->b, -1};
    for (int32_t i = a->collected_count - 1; i >= 0; i--) { /* collected backwards */
        const tile_node *n = &f->p->node[a->collected[i].node];
        if (tile_class_of(a->key, n->param) != cls) continue;
        const tile_access_window w = tile_window_of_node(f->p, f->a, n);
        if (!same_group(a, &w, group)) continue;
        const tile t = move(a, &w, widened(a, a->collected[i].adjoint));
        sum = tile_is_good(sum) ? tile_emit_elementwise(a->b, "add", 2, (const tile[]){sum, t}) : t;
    }
    if (tile_is_good(sum)) return sum;
    tile_shape shape = {.rank = a->wide.rank};
    memcpy(shape.extent, a->wide.core, sizeof shape.extent);
    return tile_constant(a->b, tile_wide_dtype(f->p->param[cls].dtype), shape, 0);
}

static void emit_target(field_plan *f, tile_adjoint *a, int cls, const tile_node *load) {
    const tile_access_window w = tile_window_of_node(f->p, f->a, load);
    tile sum = sum_group(f, a, cls, &w);
    tile_emission e = {.array = a->grad[cls], .at = tile_adjoint_window(a, load)};
    for (int d = 0; d < a->wide.rank; d++) {
        e.at.shift[d] = load->attrs.shift[d];
        if (a->wide.axis[d] >= 0) e.at.shift[d] += a->wide.low[d] - w.at[d].constant;
    }
    if (a->b->status) return;
    if (a->key->accumulate >> cls & 1u) {
        tile_emission old = e;
        old.op = tile_op_find("load");
        old.has_shape = old.has_dtype = true;
        old.shape = tile_shape_of_tile(sum);
        old.dtype = tile_dtype_of(sum);
        const tile before = tile_emit(a->b, &old);
        sum = tile_emit_elementwise(a->b, "add", 2, (const tile[]){before, sum});
    }
    e.op = tile_op_find("store");
    e.n_in = 1;
    e.in[0] = sum;
    tile_emit(a->b, &e);
}

/* What the target's windows reach together. */
static void note_cover(field_plan *f, const tile_adjoint *a, int cls, const tile_node *load,
                       bool alone) {
    const tile_access_window w = tile_window_of_node(f->p, f->a, load);
    tile_cover *c = &f->plan->cover[cls];
    *c = (tile_cover){.known = alone, .rank = w.rank};
    for (int d = 0; d < w.rank; d++) {
        c->axis[d] = a->wide.axis[d];
        c->extent[d] = c->step[d] = a->wide.core[d];
        c->low[d] = c->axis[d] < 0 ? w.at[d].constant : a->wide.low[d];
        if (w.at[d].uniform >= 0) c->known = false;
        if (c->axis[d] >= 0)
            c->margin[c->axis[d]] =
                (a->wide.high[d] - a->wide.low[d] + a->wide.core[d] - 1) / a->wide.core[d];
    }
}

static void emit_class(field_plan *f, tile_adjoint *a, int cls) {
    const tile_node *first = NULL;
    bool alone = true;
    for (int32_t i = 0; i < f->a->order_count; i++) {
        const tile_node *n = node_at(f, i);
        if (n->op->access != TILE_ACCESS_LOAD || tile_class_of(a->key, n->param) != cls) continue;
        const tile_access_window w = tile_window_of_node(f->p, f->a, n);
        bool seen = false;
        for (int32_t k = 0; k < i && !seen; k++) {
            const tile_node *m = node_at(f, k);
            if (m->op->access != TILE_ACCESS_LOAD || tile_class_of(a->key, m->param) != cls)
                continue;
            const tile_access_window v = tile_window_of_node(f->p, f->a, m);
            seen = same_group(a, &v, &w);
        }
        if (seen) continue;
        emit_target(f, a, cls, n);
        if (first) alone = false;
        if (!first) first = n;
    }
    if (first) note_cover(f, a, cls, first, alone);
}

static uint32_t members_of(const field_plan *f, uint32_t classes) {
    uint32_t members = 0;
    for (int k = 0; k < f->p->param_count; k++)
        if (classes >> k & 1u) members |= tile_class_members(f->p, &f->plan->key, k);
    return members;
}

static tile_status finish_step(field_plan *f, tile_adjoint *a, tile_adjoint_kind kind) {
    tile_executable *exe;
    TILE_TRY(tile_adjoint_finish(a, &exe));
    tile_adjoint_plan_add(f->plan, a, kind, exe);
    tile_adjoint_step *step = &f->plan->step[f->plan->count - 1];
    for (int d = 0; a->wide.on && d < a->wide.rank; d++)
        if (a->wide.axis[d] >= 0)
            step->margin[a->wide.axis[d]] =
                (a->wide.high[d] - a->wide.low[d] + a->wide.core[d] - 1) / a->wide.core[d];
    return TILE_OK;
}

static tile_status gather_with(field_plan *f, tile_adjoint *a, uint32_t set,
                               tile_adjoint_kind kind) {
    measure(f, a, set);
    for (int d = 0; kind == TILE_ADJOINT_IN_PLACE && d < a->wide.rank; d++) {
        if (a->wide.low[d] == a->wide.high[d]) continue;
        f->possible = false;
        return TILE_OK;
    }
    tile_adjoint_walk(a);
    for (int k = 0; k < f->p->param_count && !a->b->status; k++)
        if (set >> k & 1u) emit_class(f, a, k);
    return finish_step(f, a, kind);
}

static tile_status add_step(field_plan *f, uint32_t set, tile_adjoint_kind kind,
                            tile_status (*body)(field_plan *, tile_adjoint *, uint32_t,
                                                tile_adjoint_kind)) {
    tile_adjoint a;
    if (!set || !f->possible) return TILE_OK;
    const uint32_t grads = set | (f->stored & f->plan->key.upstream);
    tile_status status =
        tile_adjoint_begin(&a, f->kernel, f->p, f->a, &f->plan->key, members_of(f, set), grads);
    if (!status) status = body(f, &a, set, kind);
    tile_adjoint_end(&a);
    return status;
}

/* Loads that many places share: block by block, sums added in block order. */
static tile_status reduce_with(field_plan *f, tile_adjoint *a, uint32_t set,
                               tile_adjoint_kind kind) {
    (void)set;
    tile_adjoint_walk(a);
    return finish_step(f, a, kind);
}

/* Zeros where the forward kernel stored. */
static tile_status clear_with(field_plan *f, tile_adjoint *a, uint32_t set,
                              tile_adjoint_kind kind) {
    for (int32_t i = 0; i < f->a->order_count; i++) {
        const tile_node *n = node_at(f, i);
        if (n->op->access != TILE_ACCESS_STORE || !(set & class_bit(f, n->param))) continue;
        const tile_emission e = {.op = n->op,
                                 .n_in = 1,
                                 .in = {tile_adjoint_zero(a, tile_node_in(f->p, n, 0))},
                                 .array = a->grad[tile_class_of(a->key, n->param)],
                                 .at = tile_adjoint_window(a, n),
                                 .attrs = n->attrs};
        tile_emit(a->b, &e);
    }
    return finish_step(f, a, kind);
}

static tile_status make_steps(field_plan *f) {
    sort_classes(f);
    TILE_TRY(add_step(f, f->gather, TILE_ADJOINT_GATHER, gather_with));
    TILE_TRY(add_step(f, f->reduce, TILE_ADJOINT_REDUCE, reduce_with));
    TILE_TRY(add_step(f, f->in_place, TILE_ADJOINT_IN_PLACE, gather_with));
    const uint32_t clear = f->stored & ~f->in_place & f->plan->key.upstream;
    for (int k = 0; k < f->p->param_count; k++)
        TILE_TRY(add_step(f, clear & ((uint32_t)1 << k), TILE_ADJOINT_CLEAR, clear_with));
    f->plan->gather = f->gather;
    return TILE_OK;
}

/* Widening spreads elementwise ops and what they are made of. Any other op, which can only stand on
 * values that are the same everywhere, wants its operands in the shapes that they have. */
static bool widens(const tile_program *p, const tile_analysis *a) {
    static const char *const known[] = {"broadcast", "view", "iota", "full"};
    for (int32_t i = 0; i < a->order_count; i++) {
        const tile_op *op = p->node[a->order[i]].op;
        if (op->kind != TILE_OP_COOPERATIVE || op->access) continue;
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (op == tile_op_find(known[k])) found = true;
        if (!found) return false;
    }
    return true;
}

tile_status tile_adjoint_plan_field(tile_kernel *kernel, tile_adjoint_plan *plan, bool *made) {
    const tile_analysis *fa = tile_executable_analysis(kernel->forward);
    tile_program normal;
    tile_analysis analysis;
    *made = false;
    if (!fa->field.ok || !plan->key.apart) return TILE_OK;
    TILE_TRY(
        tile_program_normalise(kernel->ctx, tile_executable_program(kernel->forward), fa, &normal));
    tile_status status = tile_analyse(&normal, &analysis);
    if (!status) {
        field_plan f = {
            .kernel = kernel, .plan = plan, .p = &normal, .a = &analysis, .possible = true};
        if (analysis.field.ok && widens(&normal, &analysis)) {
            status = make_steps(&f);
            *made = !status && f.possible;
        }
        tile_analysis_clear(&analysis);
    }
    tile_program_clear(&normal);
    return status;
}
