/* native_view.c: tiles that generated code does not make: those that are another tile, read in
 * another way. */
#include <string.h>

#include "core/native_order.h"

/* The ops whose results are views. */
typedef struct moves {
    const tile_op *broadcast, *reshape, *view;
} moves;

static bool is_contiguous(tile_shape shape, const int64_t *stride) {
    int64_t n = 1;
    for (int d = shape.rank - 1; d >= 0; d--) {
        if (shape.extent[d] > 1 && stride[d] != n) return false;
        n *= shape.extent[d];
    }
    return true;
}

static void set_contiguous(tile_shape shape, int64_t *stride) {
    int64_t n = 1;
    for (int d = shape.rank - 1; d >= 0; d--) {
        stride[d] = n;
        n *= shape.extent[d];
    }
}

static tile_native_view own_view(const tile_program *p, int32_t value) {
    tile_native_view view = {.base = value, .same = true};
    set_contiguous(p->value[value].shape, view.stride);
    return view;
}

/* Takes dimensions of both shapes, from the last on, until their counts agree. Old ones must follow
 * each other in memory; their step goes to the new ones. */
static bool reshape_part(tile_shape from, const int64_t *stride, tile_shape to, int64_t *out,
                         int at[2]) {
    const int last = at[1];
    int64_t step = 0, old_count = 1, count = 1;
    do {
        if (at[0] >= 0 && (at[1] < 0 || old_count <= count)) {
            const int d = at[0]--;
            if (from.extent[d] > 1 && old_count > 1 && stride[d] != step * old_count) return false;
            if (from.extent[d] > 1 && old_count == 1) step = stride[d];
            old_count *= from.extent[d];
        } else {
            count *= to.extent[at[1]--];
        }
    } while (old_count != count);
    for (int d = last; d > at[1]; d--) {
        out[d] = step;
        step *= to.extent[d];
    }
    return true;
}

/* Strides of a tile in another shape. false: no strides do it. */
static bool reshape_strides(tile_shape from, const int64_t *stride, tile_shape to, int64_t *out) {
    int at[2] = {from.rank - 1, to.rank - 1};
    while (at[0] >= 0 || at[1] >= 0)
        if (!reshape_part(from, stride, to, out, at)) return false;
    return true;
}

static bool view_of_part(const tile_program *p, const tile_node *n, tile_native_view *view) {
    const tile_shape from = p->value[tile_node_in(p, n, 0)].shape, to = p->value[n->out].shape;
    int64_t shift[TILE_RANK_MAX];
    if (to.rank != from.rank || !tile_view_shift(p, n, shift)) return false;
    for (int d = 0; d < to.rank; d++) view->first += shift[d] * view->stride[d];
    return true;
}

static void view_of_broadcast(const tile_program *p, const tile_node *n, tile_native_view *view) {
    const tile_shape from = p->value[tile_node_in(p, n, 0)].shape, to = p->value[n->out].shape;
    int64_t stride[TILE_RANK_MAX] = {0};
    for (int d = to.rank - from.rank; d < to.rank; d++) {
        const int k = d - (to.rank - from.rank);
        if (from.extent[k] > 1) stride[d] = view->stride[k];
    }
    memcpy(view->stride, stride, sizeof stride);
}

static bool is_move(const moves *m, const tile_node *n) {
    return n->op == m->broadcast || n->op == m->reshape || n->op == m->view;
}

/* The result of a moving op as a view of what its operand is a view of. false: it is none. */
static bool find_view(const tile_program *p, const moves *m, const tile_native_view *of,
                      const tile_node *n, tile_native_view *view) {
    const int32_t in = tile_node_in(p, n, 0);
    const tile_shape from = p->value[in].shape, to = p->value[n->out].shape;
    *view = of[in];
    if (n->op == m->broadcast) view_of_broadcast(p, n, view);
    if (n->op == m->view && !view_of_part(p, n, view)) return false;
    if (n->op == m->reshape && !reshape_strides(from, of[in].stride, to, view->stride))
        return false;
    view->same = !view->first && is_contiguous(to, view->stride);
    return true;
}

bool tile_native_is_uniform(tile_shape shape, const tile_native_view *view) {
    for (int d = 0; d < shape.rank; d++)
        if (shape.extent[d] > 1 && view->stride[d]) return false;
    return true;
}

/* What is read by something else than elementwise ops needs a place where its elements follow each
 * other. */
static void find_plain_uses(const tile_program *p, const tile_analysis *a, const bool *direct,
                            const tile_native_view *view, bool *plain) {
    for (int32_t k = a->order_count - 1; k >= 0; k--) {
        const tile_node *n = &p->node[a->order[k]];
        const bool made = n->n_out != 1 || view[n->out].base == n->out || plain[n->out];
        if (n->op->kind == TILE_OP_ELEMENTWISE || !made || (direct && direct[a->order[k]]))
            continue;
        for (int32_t i = 0; i < n->n_in; i++) plain[tile_node_in(p, n, i)] = true;
    }
}

/* Views with what is known to be made. true: more is. */
static bool find_views(const tile_program *p, const tile_analysis *a, const bool *plain, bool *made,
                       tile_native_view *view) {
    const moves m = {tile_op_find("broadcast"), tile_op_find("reshape"), tile_op_find("view")};
    bool more = false;
    for (int32_t k = 0; k < a->order_count; k++) {
        const tile_node *n = &p->node[a->order[k]];
        tile_native_view found;
        if (n->n_out != 1 || made[n->out] || !is_move(&m, n)) continue;
        if (find_view(p, &m, view, n, &found) && (found.same || !plain[n->out])) {
            view[n->out] = found;
            continue;
        }
        view[n->out] = own_view(p, n->out);
        made[n->out] = more = true;
    }
    return more;
}

void tile_native_find_views(const tile_program *p, const tile_analysis *a, const bool *direct,
                            bool *plain, bool *made, tile_native_view *view) {
    for (int32_t v = 0; v < p->value_count; v++) view[v] = own_view(p, v);
    for (int32_t r = 0; r < p->region_count; r++)
        for (int32_t k = 0; k < p->region[r].yield_count; k++)
            plain[p->region[r].yield[k]] = made[p->region[r].yield[k]] = true;
    (void)find_views(p, a, plain, made, view);
    do find_plain_uses(p, a, direct, view, plain);
    while (find_views(p, a, plain, made, view));
}

tile_shape tile_native_squeeze(tile_shape shape, const int64_t *stride, int64_t *squeezed) {
    tile_shape to = {.rank = 0};
    for (int d = 0; d < shape.rank; d++) {
        if (shape.extent[d] == 1) continue;
        if (stride) squeezed[to.rank] = stride[d];
        to.extent[to.rank++] = shape.extent[d];
    }
    return to;
}
