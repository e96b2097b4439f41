/* cuda_group.c: CUDA C of a group: a loop over a tile's elements, whose values are registers. */
#include "core/cuda_group.h"

#include <string.h>

static const tile_value *value_of(const tile_cuda_group *g, int32_t value) {
    return &g->w->p->value[value];
}

tile_cuda_access *tile_cuda_access_of(tile_cuda_group *g, const tile_node *n) {
    for (int k = 0; k < g->accesses; k++)
        if (g->access[k].node == n) return &g->access[k];
    return NULL;
}

bool tile_cuda_makes(const tile_cuda_group *g, int32_t value) {
    const tile_value *v = value_of(g, tile_cuda_base(g->w, value));
    return v->result >= 0 && g->w->order->member[v->node] &&
           g->w->order->group[v->node] == g->first;
}

/* Which operand of an access is the tile that is written, -1: none. */
static int written_of(const tile_node *n) {
    return n->op->n_in > n->op->indexed ? n->op->indexed : -1;
}

/* The group's nest */

static void set_shape(tile_cuda_group *g, tile_shape shape) {
    g->rank = shape.rank;
    for (int d = 0; d < shape.rank; d++) g->extent[d] = shape.extent[d];
}

static bool is_indices(const tile_node *n, int operand) {
    return n->op->indexed && operand == 0;
}

bool tile_cuda_in_order(const tile_cuda_group *g, const tile_node *n, int operand) {
    return g->w->order->view[tile_node_in(g->w->p, n, operand)].same &&
           (!is_indices(n, operand) || g->rank == 1);
}

void tile_cuda_strides(const tile_cuda_group *g, const tile_node *n, int operand,
                       int64_t stride[TILE_RANK_MAX]) {
    const int32_t value = tile_node_in(g->w->p, n, operand);
    const tile_native_view *view = &g->w->order->view[value];
    memset(stride, 0, TILE_RANK_MAX * sizeof *stride);
    if (!is_indices(n, operand)) {
        (void)tile_native_squeeze(value_of(g, value)->shape, view->stride, stride);
        return;
    }
    int dimension[TILE_RANK_MAX];
    const tile_shape shape = tile_cuda_window_shape(g->w->order, n, dimension);
    for (int d = 0; d < shape.rank; d++)
        if (dimension[d] == n->attrs.n[0]) stride[d] = view->stride[0];
}

static void add_access(tile_cuda_group *g, const tile_node *n) {
    tile_cuda_access *a = &g->access[g->accesses];
    const tile_shape shape = tile_cuda_window_shape(g->w->order, n, a->dimension);
    a->node = n;
    a->index = a->family = g->accesses;
    for (int k = g->accesses - 1; k >= 0; k--) {
        const tile_cuda_access *other = &g->access[k];
        if (other->node->param == n->param && !other->node->op->indexed && !n->op->indexed &&
            !memcmp(other->dimension, a->dimension, (size_t)shape.rank * sizeof *a->dimension))
            a->index = other->index;
    }
    set_shape(g, shape);
    g->accesses++;
}

static void find_nest(tile_cuda_group *g) {
    g->rank = 1;
    g->extent[0] = g->count;
    for (int32_t k = 0; k < g->step->count; k++) {
        const tile_node *n = g->strip[k].node;
        if (n->op->access) add_access(g, n);
        if (n->op->kind != TILE_OP_ELEMENTWISE) continue;
        for (int32_t i = 0; i < n->n_in; i++) {
            const int32_t value = tile_node_in(g->w->p, n, i);
            const tile_native_view *view = &g->w->order->view[value];
            const tile_shape shape = value_of(g, value)->shape;
            if (!view->same && !tile_native_is_uniform(shape, view))
                set_shape(g, tile_native_squeeze(shape, NULL, NULL));
        }
    }
}

/* What the group reads and writes, for barriers. */
static void note_touches(tile_cuda_group *g) {
    tile_cuda_writer *w = g->w;
    for (int32_t k = 0; k < g->step->count; k++) {
        const tile_node *n = g->strip[k].node;
        for (int32_t i = 0; i < n->n_in; i++)
            if (!tile_cuda_makes(g, tile_node_in(w->p, n, i)))
                tile_cuda_needs(w, tile_node_in(w->p, n, i));
        if (n->op->access) tile_cuda_does(w, &w->order->effect[tile_cuda_number(g, n)]);
        if (n->n_out && w->order->placed[n->out]) tile_cuda_writes(w, n->out);
    }
}

/* Elements */

static void print_operand(const tile_cuda_group *g, const tile_node *n, int i,
                          char to[TILE_CUDA_OPERAND]) {
    const int32_t value = tile_node_in(g->w->p, n, i), base = tile_cuda_base(g->w, value);
    const tile_native_view *view = &g->w->order->view[value];
    int packs;
    if (tile_cuda_makes(g, value) || g->w->order->lone[base]) {
        (void)snprintf(to, TILE_CUDA_OPERAND, "v%d", (int)base);
        return;
    }
    if (!is_indices(n, i) && tile_native_is_uniform(value_of(g, value)->shape, view)) {
        tile_cuda_single(g->w, value, to);
        return;
    }
    const int skip = g->wide ? tile_cuda_arena_pack(g, n, i, &packs) : -1;
    if (skip >= 0) {
        (void)snprintf(to, TILE_CUDA_OPERAND, "tile_pick(r%d_%d, k + %d)", tile_cuda_number(g, n),
                       i, skip);
        return;
    }
    char index[TILE_CUDA_OPERAND] = "";
    int64_t stride[TILE_RANK_MAX];
    size_t length = 0;
    const char *more = g->wide ? " + k" : "";
    if (tile_cuda_in_order(g, n, i)) {
        (void)snprintf(index, sizeof index, "i%s", more);
    } else {
        tile_cuda_strides(g, n, i, stride);
        length = (size_t)snprintf(index, sizeof index, "%lld", (long long)view->first);
        for (int d = 0; d < g->rank && length < sizeof index; d++)
            if (stride[d])
                length += (size_t)snprintf(index + length, sizeof index - length,
                                           d == g->rank - 1 && *more ? " + (x%d%s) * %lld"
                                                                     : " + x%d%s * %lld",
                                           d, d == g->rank - 1 ? more : "", (long long)stride[d]);
    }
    tile_cuda_arena_at(g->w, value, index, to);
}

/* "in12": whether the element's place is inside. */
static void print_inside(const tile_cuda_group *g, const tile_cuda_access *a,
                         char to[TILE_CUDA_OPERAND]) {
    (void)snprintf(to, TILE_CUDA_OPERAND,
                   g->rim || a->node->op->indexed || !g->rank ? "in%d" : "true",
                   (int)tile_cuda_number(g, a->node));
}

static void write_inside(tile_cuda_group *g, const tile_cuda_access *a) {
    tile_cuda_writer *w = g->w;
    const tile_node *n = a->node;
    const int number = (int)tile_cuda_number(g, n);
    char index[TILE_CUDA_OPERAND];
    if (n->op->indexed) {
        print_operand(g, n, 0, index);
        TILE_CUDA_LINE(w, "const int64_t g%d = tile_add_saturated(o%d_%d, %s);\n", number, number,
                       (int)n->attrs.n[0], index);
    } else if (!g->rim && g->rank) {
        return;
    }
    TILE_CUDA_LINE(w, "const bool in%d = !s%d.none", number, number);
    if (n->op->indexed)
        tile_text_add(w->out, " && low%d <= g%d && g%d < high%d", number, number, number, number);
    for (int d = 0; d < g->rank; d++)
        if (g->rim && !(n->op->indexed && a->dimension[d] == n->attrs.n[0]))
            tile_text_add(w->out, " && x%d >= s%d.first[%d] && x%d < s%d.last[%d]", d, number, d, d,
                          number, d);
    tile_text_add(w->out, ";\n");
}

static void write_access(tile_cuda_group *g, const tile_node *n) {
    char operand[3][TILE_CUDA_OPERAND];
    const tile_cuda_access *a = tile_cuda_access_of(g, n);
    const int number = (int)tile_cuda_number(g, n), written = written_of(n);
    write_inside(g, a);
    print_inside(g, a, operand[1]);
    (void)snprintf(operand[0], TILE_CUDA_OPERAND, "p%d + a%d", number,
                   (int)tile_cuda_number(g, g->access[a->index].node));
    if (n->op->indexed)
        (void)snprintf(operand[0], TILE_CUDA_OPERAND,
                       "p%d + a%d + (in%d ? g%d : 0) * l.array[%d].stride[%d]", number, number,
                       number, number, (int)n->param, (int)n->attrs.n[0]);
    if (written >= 0) print_operand(g, n, written, operand[2]);
    if (!g->wide) {
        tile_cuda_write_call_of(g->w, n, operand);
    } else if (n->op->access == TILE_ACCESS_LOAD) {
        const tile_cuda_access *f = &g->access[a->family];
        (void)snprintf(operand[0], TILE_CUDA_OPERAND, "tile_pick(r%d, k + %d)",
                       (int)tile_cuda_number(g, f->node), (int)(a->along - f->low));
        TILE_CUDA_LINE(g->w, "const %s v%d = %s; /* %s: %s */\n",
                       tile_cuda_type(value_of(g, n->out)->dtype), (int)n->out, operand[0],
                       g->w->p->param[n->param].name, n->op->math);
    } else {
        TILE_CUDA_LINE(g->w, "w%d.at[k] = %s; /* %s: %s */\n", number, operand[2],
                       g->w->p->param[n->param].name, n->op->math);
    }
}

static void write_member(tile_cuda_group *g, const tile_node *n) {
    char operand[TILE_OP_IN + 1][TILE_CUDA_OPERAND];
    if (n->op->access) {
        write_access(g, n);
    } else if (n->op->element) {
        (void)snprintf(operand[0], TILE_CUDA_OPERAND, g->wide ? "i + k" : "i");
        for (int i = 0; i < n->n_in; i++) print_operand(g, n, i, operand[i + 1]);
        tile_cuda_write_call_of(g->w, n, operand);
    } else {
        for (int i = 0; i < n->n_in; i++) print_operand(g, n, i, operand[i]);
        tile_cuda_write_call_of(g->w, n, operand);
    }
    if (!n->n_out || !g->w->order->placed[n->out]) return;
    if (g->wide) {
        TILE_CUDA_LINE(g->w, "y%d.at[k] = v%d;\n", (int)n->out, (int)n->out);
        return;
    }
    tile_cuda_arena_at(g->w, n->out, "i", operand[0]);
    TILE_CUDA_LINE(g->w, "%s = v%d;\n", operand[0], (int)n->out);
}

void tile_cuda_write_members(tile_cuda_group *g) {
    for (int32_t k = 0; k < g->step->count; k++) write_member(g, g->strip[k].node);
}

void tile_cuda_write_coordinates(tile_cuda_group *g) {
    tile_cuda_writer *w = g->w;
    int64_t rest = g->count;
    for (int d = 0; d < g->rank; d++) {
        const bool first = d == 0, last = d == g->rank - 1;
        rest /= g->extent[d];
        TILE_CUDA_LINE(w, "const int x%d = i", d);
        if (!last) tile_text_add(w->out, " / %lld", (long long)rest);
        if (!first) tile_text_add(w->out, " %% %lld", (long long)g->extent[d]);
        tile_text_add(w->out, ";\n");
    }
    for (int k = 0; k < g->accesses; k++) {
        const tile_cuda_access *a = &g->access[k];
        if (a->index != k) continue;
        TILE_CUDA_LINE(w, "const int64_t a%d = 0", (int)tile_cuda_number(g, a->node));
        for (int d = 0; d < g->rank; d++) {
            if (a->node->op->indexed && a->dimension[d] == a->node->attrs.n[0]) continue;
            if (g->wide && d == g->rank - 1)
                tile_text_add(w->out, " + x%d", d);
            else
                tile_text_add(w->out, " + x%d * l.array[%d].stride[%d]", d, (int)a->node->param,
                              a->dimension[d]);
        }
        tile_text_add(w->out, ";\n");
    }
}

/* Loops */

static void write_loop(tile_cuda_group *g, bool rim) {
    tile_cuda_writer *w = g->w;
    g->rim = rim;
    TILE_CUDA_LINE(w, "for (int i = TILE_LANE_NUMBER; i < %lld; i += TILE_LANE_COUNT) {\n",
                   (long long)g->count);
    w->depth++;
    tile_cuda_write_coordinates(g);
    tile_cuda_write_members(g);
    w->depth--;
    TILE_CUDA_LINE(w, "}\n");
}

static void write_heads(tile_cuda_group *g) {
    tile_cuda_writer *w = g->w;
    for (int32_t k = 0; k < g->step->count; k++) {
        const tile_node *n = g->strip[k].node;
        if (!n->op->element) continue;
        if (n->op->access) {
            tile_cuda_write_span(w, n);
            continue;
        }
        const tile_shape *shape = &value_of(g, n->out)->shape;
        tile_cuda_write_attrs(w, n);
        TILE_CUDA_LINE(w, "const tile_dims d%d = {%d, {", (int)tile_cuda_number(g, n), shape->rank);
        for (int d = 0; d < shape->rank; d++)
            tile_text_add(w->out, d ? ", %lld" : "%lld", (long long)shape->extent[d]);
        tile_text_add(w->out, "}};\n");
    }
}

/* Whether every window of the block is inside: then no element asks. */
static void write_whole(tile_cuda_group *g) {
    TILE_CUDA_LINE(g->w, "const bool whole = ");
    for (int k = 0; k < g->accesses; k++)
        tile_text_add(g->w->out, k ? " && s%d.whole" : "s%d.whole",
                      (int)tile_cuda_number(g, g->access[k].node));
    tile_text_add(g->w->out, ";\n");
}

static void write_branch(tile_cuda_group *g, const char *head, bool rim) {
    TILE_CUDA_LINE(g->w, "%s {\n", head);
    g->w->depth++;
    write_loop(g, rim);
    g->w->depth--;
    TILE_CUDA_LINE(g->w, "}");
}

static void write_loops(tile_cuda_group *g) {
    tile_cuda_writer *w = g->w;
    if (!g->accesses || !g->rank) {
        write_loop(g, g->rank > 0);
        return;
    }
    write_whole(g);
    if (g->width > 1) {
        tile_cuda_write_wide_test(g);
        TILE_CUDA_LINE(w, "if (wide) {\n");
        w->depth++;
        tile_cuda_write_wide(g);
        w->depth--;
        TILE_CUDA_LINE(w, "} else ");
        tile_text_add(w->out, "if (whole) {\n");
        w->depth++;
        write_loop(g, false);
        w->depth--;
        TILE_CUDA_LINE(w, "}");
    } else {
        write_branch(g, "if (whole)", false);
    }
    tile_text_add(w->out, " else {\n");
    w->depth++;
    write_loop(g, true);
    w->depth--;
    TILE_CUDA_LINE(w, "}\n");
}

void tile_cuda_write_group(tile_cuda_writer *w, const tile_step *step) {
    tile_cuda_group g = {.w = w, .step = step, .strip = &w->plan->strip[step->first], .width = 1};
    g.first = w->order->group[tile_cuda_number(&g, g.strip[0].node)];
    g.count = tile_cuda_elements(w->p, g.strip[0].node);
    find_nest(&g);
    tile_cuda_find_width(&g);
    note_touches(&g);
    tile_cuda_begin(w);
    const int64_t work = (g.count + g.width - 1) / g.width;
    if (work > w->work) w->work = work;
    TILE_CUDA_LINE(w, "{ /* %lld elements */\n", (long long)g.count);
    w->depth++;
    write_heads(&g);
    write_loops(&g);
    w->depth--;
    TILE_CUDA_LINE(w, "}\n");
}
