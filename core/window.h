/* window.h: where the elements of a tile lie in an array or in another tile; for lane functions.
 *
 * A window is walked by rows, the last dimension. The part of a row that is inside is one interval,
 * so that a row is [outside | inside | outside] and the loop over the inside has no conditions. */
#ifndef TILE_CORE_WINDOW_H
#define TILE_CORE_WINDOW_H

#include "core/lane.h"

#define TILE_INDEX_MAX 9223372036854775807LL

typedef struct tile_window {
    int32_t rank; /* at least 1 */
    int32_t axis; /* the dimension that goes by indices, or -1 */
    const int64_t *indices;
    int64_t rows;              /* of the tile */
    int64_t n;                 /* elements of a row */
    int64_t extent[TILE_DIMS]; /* of the tile; 1 everywhere for a rank-0 tile */
    int64_t offset[TILE_DIMS];
    int64_t stride[TILE_DIMS];
    int64_t low[TILE_DIMS], high[TILE_DIMS];   /* places that take part */
    int64_t first[TILE_DIMS], last[TILE_DIMS]; /* coordinates that are inside, but for axis */
} tile_window;

/* Elements first..last-1 of the row are inside; element j is at base + j * stride of the last
 * dimension (along an indexed last dimension: base + place * stride). */
typedef struct tile_row {
    int64_t start; /* element of the tile */
    int64_t base, first, last;
    int64_t k; /* coordinate along the indexed axis, when that is not the last */
} tile_row;

/* Elements of a tile. */
TILE_LANE_FN int64_t tile_count(const tile_dims *dims) {
    int64_t n = 1;
    for (int d = 0; d < dims->rank; d++) n *= dims->extent[d];
    return n;
}

/* C-order strides of a tile. */
TILE_LANE_FN void tile_strides(const tile_dims *dims, int64_t *stride) {
    int64_t n = 1;
    for (int d = dims->rank - 1; d >= 0; d--) {
        stride[d] = n;
        n *= dims->extent[d];
    }
}

/* Where row r of a tile begins in memory of the given strides, one per dimension of the tile. */
TILE_LANE_FN int64_t tile_row_base(const tile_dims *dims, const int64_t *stride, int64_t r) {
    int64_t base = 0;
    for (int d = dims->rank - 2; d >= 0; d--) {
        base += r % dims->extent[d] * stride[d];
        r /= dims->extent[d];
    }
    return base;
}

/* How many c in [0, n) have offset + c < bound. Nothing wraps, whatever the offset. */
TILE_LANE_FN int64_t tile_count_below(int64_t bound, int64_t offset, int64_t n) {
    if (offset >= bound) return 0;
    const uint64_t gap = (uint64_t)bound - (uint64_t)offset;
    return gap < (uint64_t)n ? (int64_t)gap : n;
}

/* x + y, held at the ends of int64: a place there is outside of every array. */
TILE_LANE_FN int64_t tile_add_saturated(int64_t x, int64_t y) {
    if (y > 0 && x > TILE_INDEX_MAX - y) return TILE_INDEX_MAX;
    if (y < 0 && x < -TILE_INDEX_MAX - 1 - y) return -TILE_INDEX_MAX - 1;
    return x + y;
}

/* A window at offset of a memory of the given rank and strides. A rank-0 tile is one element. */
TILE_LANE_FN tile_window tile_window_make(const tile_dims *part, int32_t rank,
                                          const int64_t *offset, const int64_t *stride,
                                          const int64_t *low, const int64_t *high) {
    tile_window w;
    w.rank = rank > 0 ? rank : 1;
    w.axis = -1;
    w.indices = 0;
    w.rows = 1;
    for (int d = 0; d < w.rank; d++) {
        w.extent[d] = part->rank > 0 ? part->extent[d] : 1;
        w.offset[d] = rank > 0 ? offset[d] : 0;
        w.stride[d] = rank > 0 ? stride[d] : 0;
        w.low[d] = rank > 0 ? low[d] : 0;
        w.high[d] = rank > 0 ? high[d] : 1;
        w.first[d] = tile_count_below(w.low[d], w.offset[d], w.extent[d]);
        w.last[d] = tile_count_below(w.high[d], w.offset[d], w.extent[d]);
        if (w.last[d] < w.first[d]) w.last[d] = w.first[d];
        if (d < w.rank - 1) w.rows *= w.extent[d];
    }
    w.n = w.extent[w.rank - 1];
    return w;
}

/* A window of shape part at the call's offset in a tile of shape whole. */
TILE_LANE_FN tile_window tile_window_within(const tile_call *c, const tile_dims *part,
                                            const tile_dims *whole) {
    int64_t stride[TILE_DIMS], low[TILE_DIMS], high[TILE_DIMS];
    tile_strides(whole, stride);
    for (int d = 0; d < TILE_DIMS; d++) {
        low[d] = 0;
        high[d] = d < whole->rank ? whole->extent[d] : 1;
    }
    return tile_window_make(part, whole->rank, c->offset, stride, low, high);
}

/* The window of an op with an access. */
TILE_LANE_FN tile_window tile_window_of(const tile_call *c, const tile_dims *part) {
    return tile_window_make(part, c->array.rank, c->offset, c->array.stride, c->low, c->high);
}

/* The same, going by the indices (input 0) along attrs.n[0]. */
TILE_LANE_FN tile_window tile_window_indexed(const tile_call *c, const tile_dims *part) {
    tile_window w = tile_window_of(c, part);
    w.axis = (int32_t)c->attrs.n[0];
    w.indices = (const int64_t *)c->in[0];
    w.first[w.axis] = 0;
    w.last[w.axis] = w.extent[w.axis];
    return w;
}

/* Where coordinate k of the indexed axis lies; false: outside. */
TILE_LANE_FN bool tile_window_place(const tile_window *w, int64_t k, int64_t *place) {
    *place = tile_add_saturated(w->offset[w->axis], w->indices[k]);
    return w->low[w->axis] <= *place && *place < w->high[w->axis];
}

/* Whether no later element goes where coordinate k of the indexed axis goes. Asked where elements
 * are not taken in order. */
TILE_LANE_FN bool tile_window_wins(const tile_window *w, int64_t k) {
    for (int64_t later = k + 1; later < w->extent[w->axis]; later++)
        if (w->indices[later] == w->indices[k]) return false;
    return true;
}

TILE_LANE_FN tile_row tile_window_row(const tile_window *w, int64_t r) {
    const int inner = w->rank - 1;
    tile_row row;
    row.start = r * w->n;
    row.base = 0;
    row.k = 0;
    row.first = w->first[inner];
    row.last = w->last[inner];
    bool inside = row.first < row.last;
    for (int d = inner - 1; d >= 0; d--) {
        const int64_t at = d > 0 ? r % w->extent[d] : r;
        if (d > 0) r /= w->extent[d];
        int64_t place = 0;
        if (d == w->axis) {
            row.k = at;
            inside = tile_window_place(w, at, &place) && inside;
        } else {
            inside = w->first[d] <= at && at < w->last[d] && inside;
            if (inside) place = w->offset[d] + at;
        }
        if (inside) row.base += place * w->stride[d];
    }
    if (inside && w->axis != inner) row.base += w->offset[inner] * w->stride[inner];
    if (!inside) row.first = row.last = 0;
    return row;
}

/* Where element j of a row lies in memory, first <= j < last; false: outside. */
TILE_LANE_FN bool tile_row_place(const tile_window *w, const tile_row *row, int64_t j,
                                 int64_t *at) {
    int64_t place = j;
    if (w->axis == w->rank - 1 && !tile_window_place(w, j, &place)) return false;
    *at = row->base + place * w->stride[w->rank - 1];
    return true;
}

#endif
