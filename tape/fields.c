/* fields.c: sums and zeros of adjoints, over arrays of any strides. */
#include <string.h>

#include "core/status.h"
#include "tape/tape.h"

void tape_memory(const tile_array *array, const void *read, void *write, tile_memory *m) {
    m->read = read;
    m->write = write;
    m->rank = array->shape.rank;
    for (int d = 0; d < m->rank; d++) {
        m->extent[d] = array->shape.extent[d];
        m->stride[d] = array->stride[d];
    }
}

bool tape_same_elements(const tile_array *a, const tile_array *b) {
    if (a == b) return true;
    if (a->storage != b->storage || a->offset != b->offset) return false;
    if (!tile_shape_equal(a->shape, b->shape)) return false;
    return !memcmp(a->stride, b->stride, (size_t)a->shape.rank * sizeof *a->stride);
}

void tape_fill_zero(tile_buffer *buffer) {
    memset(buffer->data, 0, buffer->bytes);
}

/* to[i] += from[i] along one row. */
static void add_row(tile_dtype dtype, int64_t n, char *to, int64_t to_step, const char *from,
                    int64_t from_step) {
    if (dtype == TILE_F32) {
        float *y = (float *)(void *)to;
        const float *x = (const float *)(const void *)from;
        for (int64_t k = 0; k < n; k++) y[k * to_step] += x[k * from_step];
    } else {
        double *y = (double *)(void *)to;
        const double *x = (const double *)(const void *)from;
        for (int64_t k = 0; k < n; k++) y[k * to_step] += x[k * from_step];
    }
}

static void add_dims(const tile_array *like, int d, char *to, const int64_t *to_stride,
                     const char *from, const int64_t *from_stride) {
    const tile_shape shape = like->shape;
    const int64_t size = (int64_t)tile_dtype_size(like->dtype);
    if (shape.rank == 0) {
        add_row(like->dtype, 1, to, 1, from, 1);
        return;
    }
    if (d == shape.rank - 1) {
        add_row(like->dtype, shape.extent[d], to, to_stride[d], from, from_stride[d]);
        return;
    }
    for (int64_t k = 0; k < shape.extent[d]; k++)
        add_dims(like, d + 1, to + k * to_stride[d] * size, to_stride,
                 from + k * from_stride[d] * size, from_stride);
}

void tape_add_array(const tile_array *like, void *to, const int64_t *to_stride, const void *from,
                    const int64_t *from_stride) {
    if (tile_array_count(like) > 0) add_dims(like, 0, to, to_stride, from, from_stride);
}

tile_array tape_whole(tile_storage *storage) {
    tile_array all = {.storage = storage, .dtype = storage->dtype, .stride = {1}};
    all.shape = (tile_shape){1, {(int64_t)(storage->bytes / tile_dtype_size(storage->dtype))}};
    tile_array_measure(&all);
    return all;
}

void tape_zero_array(const tile_array *array, void *base) {
    static const int64_t same_place[TILE_RANK_MAX];
    static const _Alignas(16) char zero[16];
    for (int k = 0; k < tile_array_part_count(array); k++) {
        const tile_array part = tile_array_part(array, k);
        const size_t size = tile_dtype_size(part.dtype);
        if (!tile_is_float(part.dtype)) continue;
        tile_copy_strided(part.dtype, part.shape, (char *)base + (size_t)part.offset * size,
                          part.stride, zero, same_place);
    }
}

tile_status tape_stand_in(tile_context *ctx, const tile_array *array, tile_buffer *buffer,
                          int64_t base_bytes, tile_array **stand_in) {
    tile_storage *storage;
    const int64_t size = (int64_t)tile_dtype_size(array->dtype);
    tile_buffer_hold(buffer);
    const tile_status made =
        tile_storage_create(ctx, array->dtype, buffer->bytes, buffer, &storage);
    if (made) {
        tile_buffer_release(buffer);
        return made;
    }
    const tile_status status = tile_array_over(storage, array->dtype, array->shape, array->stride,
                                               array->offset - base_bytes / size, stand_in);
    tile_storage_release(storage);
    return status;
}
