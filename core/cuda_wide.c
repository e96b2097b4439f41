/* cuda_wide.c: CUDA C of a group, several neighbours of a row at a time: windows are read and
 * written 16 bytes at a time where they lie so, which a block asks once. Windows that are shifts of
 * each other along a row are read together. */
#include "core/cuda_group.h"

enum { PACK_BYTES = 16 };

static int64_t floor_to(int64_t x, int64_t step) {
    const int64_t rest = x % step;
    return x - (rest < 0 ? rest + step : rest);
}

static size_t size_of(const tile_cuda_group *g, const tile_node *n) {
    return tile_dtype_size(g->w->p->param[n->param].dtype);
}

static int last_dimension(const tile_cuda_group *g, const tile_cuda_access *a) {
    return a->dimension[g->rank - 1];
}

/* Where a window begins against the places that are multiples of the width, if blocks begin there.
 */
static int64_t phase_of(const tile_cuda_group *g, const tile_cuda_access *a) {
    const int d = last_dimension(g, a);
    const tile_affine at = tile_window_of_node(g->w->p, g->w->order->a, a->node).at[d];
    const int64_t begin = at.known ? at.constant : a->node->attrs.shift[d];
    return begin - floor_to(begin, g->width);
}

/* Whether a load can be read with a family; then it is. */
static bool join_family(tile_cuda_group *g, tile_cuda_access *a, tile_cuda_access *head) {
    int64_t by[TILE_RANK_MAX];
    const int d = last_dimension(g, a);
    if (head->node->op->access != TILE_ACCESS_LOAD || head->index != a->index) return false;
    if (!tile_cuda_distance(g->w->order, head->node, a->node, by)) return false;
    for (int k = 0; k < g->w->p->param[a->node->param].rank; k++)
        if (k != d && by[k]) return false;
    if (by[d] > TILE_CUDA_PACKS * g->width || by[d] < -TILE_CUDA_PACKS * g->width) return false;
    const int64_t along = head->along + by[d], low = floor_to(along, g->width),
                  high = floor_to(along + 2 * g->width - 1, g->width);
    const int64_t least = low < head->low ? low : head->low,
                  most = high > head->high ? high : head->high;
    if (most - least > TILE_CUDA_PACKS * g->width) return false;
    head->low = least;
    head->high = most;
    a->along = along;
    a->family = head->family;
    return true;
}

static void find_families(tile_cuda_group *g) {
    for (int k = 0; k < g->accesses; k++) {
        tile_cuda_access *a = &g->access[k];
        bool joined = false;
        a->family = k;
        a->along = phase_of(g, a);
        a->low = floor_to(a->along, g->width);
        a->high = floor_to(a->along + 2 * g->width - 1, g->width);
        for (int f = 0; f < k && !joined && a->node->op->access == TILE_ACCESS_LOAD; f++)
            joined = g->access[f].family == f && join_family(g, a, &g->access[f]);
    }
}

/* Whether windows are only read, then written. */
static bool reads_first(const tile_cuda_group *g) {
    uint64_t written = 0;
    for (int k = 0; k < g->accesses; k++) {
        const tile_node *n = g->access[k].node;
        if (n->op->indexed || n->op->access > TILE_ACCESS_STORE) return false;
        if (n->op->access == TILE_ACCESS_STORE)
            written |= tile_cuda_array(g->w->order, n);
        else if (written & tile_cuda_array(g->w->order, n))
            return false;
    }
    return true;
}

/* Whether what is written begins at multiples of the width. */
static bool begins_aligned(const tile_cuda_group *g) {
    for (int k = 0; k < g->accesses; k++)
        if (g->access[k].node->op->access == TILE_ACCESS_STORE && phase_of(g, &g->access[k]))
            return false;
    return true;
}

void tile_cuda_find_width(tile_cuda_group *g) {
    enum { WARP = 32 };
    size_t most = 1;
    g->width = 1;
    if (!g->accesses || !g->rank || !reads_first(g)) return;
    for (int k = 0; k < g->accesses; k++)
        if (size_of(g, g->access[k].node) > most) most = size_of(g, g->access[k].node);
    int width = (int)(PACK_BYTES / most);
    if (width > TILE_CUDA_WIDTH) width = TILE_CUDA_WIDTH;
    while (width > 1 && (g->extent[g->rank - 1] % width || g->count < WARP * width)) width /= 2;
    for (g->width = width; g->width > 1 && !begins_aligned(g);) g->width /= 2;
    if (g->width > 1) find_families(g);
}

/* The test */

static void write_strides(tile_cuda_group *g, const tile_cuda_access *a) {
    const int param = (int)a->node->param;
    for (int d = 0; d < g->rank; d++) {
        if (d == g->rank - 1)
            tile_text_add(g->w->out, " && l.array[%d].stride[%d] == 1", param, a->dimension[d]);
        else
            tile_text_add(g->w->out, " && l.array[%d].stride[%d] %% %d == 0", param,
                          a->dimension[d], g->width);
    }
}

void tile_cuda_write_wide_test(tile_cuda_group *g) {
    tile_cuda_writer *w = g->w;
    const int64_t row = g->extent[g->rank - 1];
    TILE_CUDA_LINE(w, "const bool wide = whole");
    for (int k = 0; k < g->accesses; k++)
        if (g->access[k].index == k) write_strides(g, &g->access[k]);
    w->depth++;
    for (int k = 0; k < g->accesses; k++) {
        const tile_cuda_access *a = &g->access[k];
        const int number = (int)tile_cuda_number(g, a->node), d = last_dimension(g, a);
        const long long first = (long long)(a->low - a->along),
                        last = first + (long long)(row - g->width + a->high - a->low);
        if (a->family != k) continue;
        tile_text_add(w->out, "\n");
        TILE_CUDA_LINE(w, "&& tile_is_aligned(p%d + %lld, %d)", number, first,
                       (int)(size_of(g, a->node) * (size_t)g->width));
        if (a->node->op->access == TILE_ACCESS_LOAD)
            tile_text_add(w->out, " && o%d_%d >= %lld && o%d_%d <= l.array[%d].extent[%d] - %lld",
                          number, d, -first, number, d, (int)a->node->param, d, last);
    }
    w->depth--;
    tile_text_add(w->out, ";\n");
}

/* The loop */

int tile_cuda_arena_pack(const tile_cuda_group *g, const tile_node *n, int i, int *packs) {
    const int32_t value = tile_node_in(g->w->p, n, i), base = tile_cuda_base(g->w, value);
    const tile_native_view *view = &g->w->order->view[value];
    int64_t stride[TILE_RANK_MAX];
    *packs = 1;
    if (n->op->indexed || tile_cuda_makes(g, value) || g->w->order->lone[base]) return -1;
    if (tile_native_is_uniform(g->w->p->value[value].shape, view)) return -1;
    if (view->same) return 0;
    tile_cuda_strides(g, n, i, stride);
    if (stride[g->rank - 1] != 1) return -1;
    for (int d = 0; d < g->rank - 1; d++)
        if (stride[d] % g->width) return -1;
    *packs = view->first % g->width ? 2 : 1;
    return (int)(view->first % g->width);
}

/* Operands in the arena. */
static void write_arena_reads(tile_cuda_group *g, const tile_node *n) {
    tile_cuda_writer *w = g->w;
    for (int i = 0; i < n->n_in && i < tile_inputs_of(w->p, n).tiles; i++) {
        int packs;
        char index[TILE_CUDA_OPERAND] = "i", from[TILE_CUDA_OPERAND];
        const int skip = tile_cuda_arena_pack(g, n, i, &packs);
        const int32_t value = tile_node_in(w->p, n, i);
        const tile_native_view *view = &w->order->view[value];
        if (skip < 0) continue;
        if (!view->same) {
            int64_t stride[TILE_RANK_MAX];
            tile_cuda_strides(g, n, i, stride);
            size_t length =
                (size_t)snprintf(index, sizeof index, "%lld", (long long)(view->first - skip));
            for (int d = 0; d < g->rank && length < sizeof index; d++)
                if (stride[d])
                    length += (size_t)snprintf(index + length, sizeof index - length,
                                               " + x%d * %lld", d, (long long)stride[d]);
        }
        const char *type = tile_cuda_type(w->p->value[value].dtype);
        const int number = (int)tile_cuda_number(g, n);
        tile_cuda_arena_at(w, value, index, from);
        TILE_CUDA_LINE(w, "tile_pack<%s, %d> r%d_%d[%d];\n", type, g->width, number, i, packs);
        TILE_CUDA_LINE(w, "tile_get(r%d_%d, &%s);\n", number, i, from);
    }
}

static void write_reads(tile_cuda_group *g) {
    tile_cuda_writer *w = g->w;
    for (int k = 0; k < g->accesses; k++) {
        const tile_cuda_access *a = &g->access[k];
        const int number = (int)tile_cuda_number(g, a->node);
        const int index = (int)tile_cuda_number(g, g->access[a->index].node);
        if (a->family != k) continue;
        const char *type = tile_cuda_type(w->p->param[a->node->param].dtype);
        if (a->node->op->access == TILE_ACCESS_STORE) {
            TILE_CUDA_LINE(w, "tile_pack<%s, %d> w%d;\n", type, g->width, number);
            continue;
        }
        TILE_CUDA_LINE(w, "tile_pack<%s, %d> r%d[%d];\n", type, g->width, number,
                       (int)((a->high - a->low) / g->width));
        TILE_CUDA_LINE(w, "tile_get(r%d, p%d + a%d + %lld);\n", number, number, index,
                       (long long)(a->low - a->along));
    }
    for (int32_t k = 0; k < g->step->count; k++) {
        const tile_node *n = g->strip[k].node;
        write_arena_reads(g, n);
        if (n->n_out && w->order->placed[n->out])
            TILE_CUDA_LINE(w, "tile_pack<%s, %d> y%d;\n", tile_cuda_type(w->p->value[n->out].dtype),
                           g->width, (int)n->out);
    }
}

static void write_writes(tile_cuda_group *g) {
    tile_cuda_writer *w = g->w;
    for (int k = 0; k < g->accesses; k++) {
        const tile_cuda_access *a = &g->access[k];
        const int number = (int)tile_cuda_number(g, a->node);
        if (a->node->op->access == TILE_ACCESS_STORE)
            TILE_CUDA_LINE(w, "tile_put(p%d + a%d, w%d);\n", number,
                           (int)tile_cuda_number(g, g->access[a->index].node), number);
    }
    for (int32_t k = 0; k < g->step->count; k++) {
        const tile_node *n = g->strip[k].node;
        char to[TILE_CUDA_OPERAND];
        if (!n->n_out || !w->order->placed[n->out]) continue;
        tile_cuda_arena_at(w, n->out, "i", to);
        TILE_CUDA_LINE(w, "tile_put(&%s, y%d);\n", to, (int)n->out);
    }
}

void tile_cuda_write_wide(tile_cuda_group *g) {
    tile_cuda_writer *w = g->w;
    g->wide = true;
    g->rim = false;
    TILE_CUDA_LINE(w,
                   "for (int i = %d * TILE_LANE_NUMBER; i < %lld; i += %d * TILE_LANE_COUNT) {\n",
                   g->width, (long long)g->count, g->width);
    w->depth++;
    tile_cuda_write_coordinates(g);
    write_reads(g);
    tile_text_add(w->out, "#pragma unroll\n");
    TILE_CUDA_LINE(w, "for (int k = 0; k < %d; k++) {\n", g->width);
    w->depth++;
    tile_cuda_write_members(g);
    w->depth--;
    TILE_CUDA_LINE(w, "}\n");
    write_writes(g);
    w->depth--;
    TILE_CUDA_LINE(w, "}\n");
    g->wide = false;
}
