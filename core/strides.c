/* strides.c: extents, strides, and copies between two stridings. */
#include <string.h>

#include "core/array.h"

static const int64_t count_max = (int64_t)1 << 62;

int64_t tile_shape_count(tile_shape shape) {
    if (shape.rank < 0 || shape.rank > TILE_RANK_MAX) return -1;
    int64_t product = 1;
    bool empty = false;
    for (int d = 0; d < shape.rank; d++) {
        const int64_t extent = shape.extent[d];
        if (extent < 0) return -1;
        if (extent == 0)
            empty = true;
        else if (__builtin_mul_overflow(product, extent, &product) || product > count_max)
            return -1;
    }
    return empty ? 0 : product;
}

bool tile_shape_equal(tile_shape a, tile_shape b) {
    if (a.rank != b.rank) return false;
    for (int d = 0; d < a.rank; d++)
        if (a.extent[d] != b.extent[d]) return false;
    return true;
}

void tile_shape_strides(tile_shape shape, int64_t *stride) {
    int64_t next = 1;
    for (int d = shape.rank - 1; d >= 0; d--) {
        stride[d] = next;
        if (shape.extent[d] > 1) next *= shape.extent[d];
    }
}

int64_t tile_shape_last(tile_shape shape, const int64_t *stride) {
    int64_t last = 0;
    for (int d = 0; d < shape.rank; d++) {
        int64_t reach;
        if (shape.extent[d] < 1 || stride[d] < 0) return -1;
        if (__builtin_mul_overflow(shape.extent[d] - 1, stride[d], &reach) ||
            __builtin_add_overflow(last, reach, &last) || last > count_max)
            return -1;
    }
    return last;
}

/* How far places reach within a period: dimensions that step by multiples of it do not count. -1:
 * beyond the period. */
static int64_t reach_within(const tile_places *p, int64_t period) {
    int64_t reach = p->size;
    for (int d = 0; d < p->rank; d++) {
        const int64_t step = p->stride[d] * p->size;
        if (p->extent[d] < 2 || step % period == 0) continue;
        if (step > period || p->extent[d] > period) return -1;
        reach += (p->extent[d] - 1) * step;
    }
    return reach <= period ? reach : -1;
}

static bool apart_by(const tile_places *a, const tile_places *b, int64_t gap, int64_t period) {
    const int64_t x = reach_within(a, period), y = reach_within(b, period);
    const int64_t start = (gap % period + period) % period;
    return x >= 0 && y >= 0 && start >= x && start + y <= period;
}

bool tile_places_interleave(const tile_places *a, const tile_places *b, int64_t gap) {
    for (int d = 0; d < a->rank; d++)
        if (a->extent[d] > 1 && a->stride[d] > 1 && apart_by(a, b, gap, a->stride[d] * a->size))
            return true;
    for (int d = 0; d < b->rank; d++)
        if (b->extent[d] > 1 && b->stride[d] > 1 && apart_by(a, b, gap, b->stride[d] * b->size))
            return true;
    return false;
}

const char *tile_shape_text(tile_shape shape, char text[TILE_SHAPE_TEXT]) {
    const int rank = shape.rank < TILE_RANK_MAX ? shape.rank : TILE_RANK_MAX;
    size_t used = 1;
    text[0] = '[';
    for (int d = 0; d < rank; d++) {
        const int more = snprintf(text + used, TILE_SHAPE_TEXT - used, d ? ", %lld" : "%lld",
                                  (long long)shape.extent[d]);
        used += more > 0 ? (size_t)more : 0;
    }
    (void)snprintf(text + used, TILE_SHAPE_TEXT - used, "]");
    return text;
}

/* Two stridings of one shape, in bytes; without extents of 1, and what can be merged is. */
typedef struct walk {
    int rank;
    size_t extent[TILE_RANK_MAX], to[TILE_RANK_MAX], from[TILE_RANK_MAX];
} walk;

static walk walk_of(size_t size, tile_shape shape, const int64_t *to_stride,
                    const int64_t *from_stride) {
    walk w = {0};
    for (int d = 0; d < shape.rank; d++) {
        if (shape.extent[d] == 1) continue;
        const size_t extent = (size_t)shape.extent[d];
        const size_t to = (size_t)to_stride[d] * size, from = (size_t)from_stride[d] * size;
        const int outer = w.rank - 1;
        if (outer >= 0 && w.to[outer] == to * extent && w.from[outer] == from * extent) {
            w.extent[outer] *= extent;
            w.to[outer] = to;
            w.from[outer] = from;
        } else {
            w.extent[w.rank] = extent;
            w.to[w.rank] = to;
            w.from[w.rank++] = from;
        }
    }
    return w;
}

static inline void copy_each(const size_t size, size_t n, char *to, size_t to_step,
                             const char *from, size_t from_step) {
    for (size_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, size);
}

/* One value n times in a row: doubles what is there up to a block that stays in L1. */
static void repeat(size_t size, size_t n, char *to, const char *from) {
    const size_t bytes = n * size, block_max = 8192;
    size_t block = size;
    memcpy(to, from, size);
    for (size_t done = size; done < bytes;) {
        const size_t now = bytes - done < block ? bytes - done : block;
        memcpy(to + done, to, now);
        done += now;
        if (2 * block <= block_max && done >= 2 * block) block *= 2;
    }
}

static void copy_row(size_t size, size_t n, char *to, size_t to_step, const char *from,
                     size_t from_step) {
    if (to_step == size && from_step == size)
        memcpy(to, from, n * size);
    else if (to_step == size && from_step == 0)
        repeat(size, n, to, from);
    else if (size == 4) /* a constant size makes memcpy one move */
        copy_each(4, n, to, to_step, from, from_step);
    else if (size == 8)
        copy_each(8, n, to, to_step, from, from_step);
    else if (size == 2)
        copy_each(2, n, to, to_step, from, from_step);
    else if (size == 1)
        copy_each(1, n, to, to_step, from, from_step);
    else
        copy_each(size, n, to, to_step, from, from_step);
}

void tile_copy_strided(tile_dtype dtype, tile_shape shape, void *to, const int64_t *to_stride,
                       const void *from, const int64_t *from_stride) {
    int64_t c_order[TILE_RANK_MAX] = {0};
    const size_t size = tile_dtype_size(dtype);
    if (tile_shape_count(shape) < 1) return;
    tile_shape_strides(shape, c_order);
    const walk w =
        walk_of(size, shape, to_stride ? to_stride : c_order, from_stride ? from_stride : c_order);
    const int row = w.rank - 1;
    char *out = to;
    const char *in = from;
    if (row < 0) {
        memcpy(out, in, size);
        return;
    }
    size_t at[TILE_RANK_MAX] = {0};
    for (int d = row; d >= 0;) {
        copy_row(size, w.extent[row], out, w.to[row], in, w.from[row]);
        for (d = row - 1; d >= 0; d--) {
            out += w.to[d];
            in += w.from[d];
            if (++at[d] < w.extent[d]) break;
            at[d] = 0;
            out -= w.extent[d] * w.to[d];
            in -= w.extent[d] * w.from[d];
        }
    }
}
