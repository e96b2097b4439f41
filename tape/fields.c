/* fields.c: where adjoints lie; their sums and zeros, over arrays of any strides. */
#include <string.h>

#include "core/dtype.h"
#include "core/move.h"
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
    if (a->storage != b->storage || a->dtype != b->dtype || a->offset != b->offset) return false;
    if (!tile_shape_equal(a->shape, b->shape)) return false;
    return !memcmp(a->stride, b->stride, (size_t)a->shape.rank * sizeof *a->stride);
}

tile_status tape_fill_zero(tile_buffer *buffer) {
    return tile_move_zero(buffer->ctx, buffer->data, buffer->bytes);
}

/* Bytes of an adjoint for one of its storage. */
static int64_t adjoint_scale(const tile_storage *storage) {
    return tile_holds_half(storage->dtype) ? 2 : 1;
}

size_t tape_adjoint_bytes(const tile_storage *storage) {
    return storage->bytes * (size_t)adjoint_scale(storage);
}

tape_elements tape_elements_of(const tile_array *array) {
    tape_elements e = {.dtype = array->dtype, .at = tile_array_address(array)};
    memcpy(e.stride, array->stride, sizeof e.stride);
    return e;
}

tape_elements tape_adjoint_of(const tape_use *use, const tile_array *array) {
    tape_elements e = {.dtype = tile_wide_dtype(array->dtype)};
    const int64_t size = (int64_t)tile_dtype_size(array->dtype) * adjoint_scale(use->storage);
    const int64_t wide = (int64_t)tile_dtype_size(e.dtype);
    if (use->adjoint) e.at = (char *)use->adjoint->data + array->offset * size;
    for (int d = 0; d < array->shape.rank; d++) e.stride[d] = array->stride[d] * size / wide;
    return e;
}

static float get_half(tile_dtype dtype, const void *from) {
    if (dtype == TILE_F16) return tile_f32_of_f16(*(const tile_f16 *)from);
    if (dtype == TILE_BF16) return tile_f32_of_bf16(*(const tile_bf16 *)from);
    return *(const float *)from;
}

static void put_half(tile_dtype dtype, void *to, float value) {
    if (dtype == TILE_F16)
        *(tile_f16 *)to = tile_f16_of_f32(value);
    else if (dtype == TILE_BF16)
        *(tile_bf16 *)to = tile_bf16_of_f32(value);
    else
        *(float *)to = value;
}

/* A row of elements, steps in bytes. */
typedef struct row {
    tile_dtype dtype;
    char *at;
    int64_t step;
} row;

/* to[i] += from[i] along one row, one of which is of 16 bits. */
static void add_half_row(int64_t n, row to, row from) {
    for (int64_t k = 0; k < n; k++, to.at += to.step, from.at += from.step)
        put_half(to.dtype, to.at, get_half(to.dtype, to.at) + get_half(from.dtype, from.at));
}

/* to[i] += from[i] along one row. */
static void add_row(int64_t n, row to, row from) {
    if (tile_is_half(to.dtype) || tile_is_half(from.dtype)) {
        add_half_row(n, to, from);
    } else if (to.dtype == TILE_F32) {
        const int64_t i = to.step / (int64_t)sizeof(float), j = from.step / (int64_t)sizeof(float);
        float *y = (float *)(void *)to.at;
        const float *x = (const float *)(const void *)from.at;
        for (int64_t k = 0; k < n; k++) y[k * i] += x[k * j];
    } else {
        const int64_t i = to.step / (int64_t)sizeof(double),
                      j = from.step / (int64_t)sizeof(double);
        double *y = (double *)(void *)to.at;
        const double *x = (const double *)(const void *)from.at;
        for (int64_t k = 0; k < n; k++) y[k * i] += x[k * j];
    }
}

static row row_of(const tape_elements *e, int d) {
    return (row){e->dtype, e->at, e->stride[d] * (int64_t)tile_dtype_size(e->dtype)};
}

static void add_dims(tile_shape shape, int d, tape_elements to, tape_elements from) {
    if (shape.rank == 0) {
        to.stride[0] = from.stride[0] = 1;
        add_row(1, row_of(&to, 0), row_of(&from, 0));
        return;
    }
    const row y = row_of(&to, d), x = row_of(&from, d);
    if (d == shape.rank - 1) {
        add_row(shape.extent[d], y, x);
        return;
    }
    for (int64_t k = 0; k < shape.extent[d]; k++) {
        to.at = y.at + k * y.step;
        from.at = x.at + k * x.step;
        add_dims(shape, d + 1, to, from);
    }
}

tile_status tape_add_elements(tile_context *ctx, tile_shape shape, tape_elements to,
                              tape_elements from) {
    if (tile_shape_count(shape) == 0) return TILE_OK;
    if (tile_is_remote(ctx)) return tape_remote_add(ctx, shape, to, from);
    if (ctx->rehearsal) return TILE_OK;
    add_dims(shape, 0, to, from);
    return TILE_OK;
}

tile_status tape_copy_elements(tile_context *ctx, tile_shape shape, tape_elements to,
                               tape_elements from) {
    if (tile_shape_count(shape) == 0) return TILE_OK;
    if (tile_is_remote(ctx)) return tape_remote_copy(ctx, shape, to, from);
    if (ctx->rehearsal) return TILE_OK;
    tile_copy_strided(to.dtype, shape, to.at, to.stride, from.at, from.stride);
    return TILE_OK;
}

tile_status tape_zero_elements(tile_context *ctx, tile_shape shape, tape_elements to) {
    static const int64_t same_place[TILE_RANK_MAX];
    static const _Alignas(16) char zero[16];
    if (tile_shape_count(shape) == 0) return TILE_OK;
    if (tile_is_remote(ctx)) return tape_remote_zero(ctx, shape, to);
    if (ctx->rehearsal) return TILE_OK;
    tile_copy_strided(to.dtype, shape, to.at, to.stride, zero, same_place);
    return TILE_OK;
}

tile_array tape_whole(tile_storage *storage) {
    tile_array all = {.storage = storage, .dtype = storage->dtype, .stride = {1}};
    all.shape = (tile_shape){1, {(int64_t)(storage->bytes / tile_dtype_size(storage->dtype))}};
    tile_array_measure(&all);
    return all;
}

tile_status tape_zero_adjoint(const tape_use *use, const tile_array *array) {
    for (int k = 0; k < tile_array_part_count(array); k++) {
        const tile_array part = tile_array_part(array, k);
        if (!tile_is_float(part.dtype)) continue;
        TILE_TRY(tape_zero_elements(use->storage->ctx, part.shape, tape_adjoint_of(use, &part)));
    }
    return TILE_OK;
}

tile_status tape_stand_in(tile_context *ctx, tile_shape shape, const tape_elements *e,
                          tile_buffer *buffer, tile_array **stand_in) {
    tile_storage *storage;
    const int64_t offset =
        ((const char *)e->at - (const char *)buffer->data) / (int64_t)tile_dtype_size(e->dtype);
    tile_buffer_hold(buffer);
    const tile_status made = tile_storage_create(ctx, e->dtype, buffer->bytes, buffer, &storage);
    if (made) {
        tile_buffer_release(buffer);
        return made;
    }
    const tile_status status =
        tile_array_over(storage, e->dtype, shape, e->stride, offset, stand_in);
    tile_storage_release(storage);
    return status;
}
