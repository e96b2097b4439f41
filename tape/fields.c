/* fields.c: where adjoints lie; their sums and zeros, over arrays of any strides. */
#include <string.h>

#include "core/dtype.h"
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

size_t tape_adjoint_bytes(const tile_storage *storage) {
    const size_t wide = tile_dtype_size(tile_wide_dtype(storage->dtype));
    return storage->bytes / tile_dtype_size(storage->dtype) * wide;
}

void *tape_adjoint_address(const tape_use *use, const tile_array *array) {
    if (!use->adjoint) return NULL;
    const size_t wide = tile_dtype_size(tile_wide_dtype(array->storage->dtype));
    return (char *)use->adjoint->data + (size_t)array->offset * wide;
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
    static const int64_t single[1] = {1};
    if (shape.rank == 0) {
        to.stride = from.stride = single;
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

void tape_add_elements(tile_shape shape, tape_elements to, tape_elements from) {
    if (tile_shape_count(shape) > 0) add_dims(shape, 0, to, from);
}

void tape_zero_adjoint(const tape_use *use, const tile_array *array) {
    static const int64_t same_place[TILE_RANK_MAX];
    static const _Alignas(16) char zero[16];
    tile_copy_strided(tile_wide_dtype(array->storage->dtype), array->shape,
                      tape_adjoint_address(use, array), array->stride, zero, same_place);
}

tile_status tape_stand_in(tile_context *ctx, const tile_array *array, tile_dtype dtype,
                          tile_buffer *buffer, int64_t base, tile_array **stand_in) {
    tile_storage *storage;
    tile_buffer_hold(buffer);
    const tile_status made = tile_storage_create(ctx, dtype, buffer->bytes, buffer, &storage);
    if (made) {
        tile_buffer_release(buffer);
        return made;
    }
    const tile_status status =
        tile_array_over(storage, array->shape, array->stride, array->offset - base, stand_in);
    tile_storage_release(storage);
    return status;
}
