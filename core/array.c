/* array.c: arrays: creation, what is known of them, their gradients. */
#include "core/array.h"

#include "core/dtype.h"
#include "core/move.h"
#include "core/status.h"
#include "core/struct_dtype.h"

static const int64_t bytes_max = (int64_t)1 << 62;

/* What an array that wraps no memory because it is empty points to. */
static _Alignas(64) char nothing[64];

tile_status tile_array_check_ranks(const char *call, tile_dtype dtype, tile_shape shape) {
    const tile_struct_info *info = tile_struct_of(dtype);
    for (int k = 0; info && k < info->count; k++)
        TILE_CHECK(shape.rank + info->member[k].shape.rank <= TILE_RANK_MAX, TILE_E_ARGUMENT,
                   "%s: rank is %d, member %s of %s has rank %d: more than %d together", call,
                   shape.rank, info->member[k].name, info->name, info->member[k].shape.rank,
                   TILE_RANK_MAX);
    return TILE_OK;
}

static tile_status check_new(const char *call, const tile_context *ctx, tile_dtype dtype,
                             tile_shape shape, tile_array *const *array) {
    char text[TILE_SHAPE_TEXT];
    TILE_CHECK(ctx, TILE_E_ARGUMENT, "%s: ctx is NULL", call);
    TILE_CHECK(array, TILE_E_ARGUMENT, "%s: array is NULL", call);
    TILE_CHECK(tile_dtype_valid(dtype) || tile_struct_of(dtype), TILE_E_DTYPE,
               "%s: dtype is %d, wanted 0 to %d or a struct's", call, (int)dtype,
               (int)TILE_DTYPES - 1);
    TILE_CHECK(shape.rank >= 0 && shape.rank <= TILE_RANK_MAX, TILE_E_ARGUMENT,
               "%s: rank is %d, wanted 0 to %d", call, shape.rank, (int)TILE_RANK_MAX);
    TILE_TRY(tile_array_check_ranks(call, dtype, shape));
    const int64_t count = tile_shape_count(shape);
    TILE_CHECK(count >= 0 && count <= bytes_max / (int64_t)tile_dtype_size(dtype), TILE_E_ARGUMENT,
               "%s: shape is %s, wanted extents from 0 and at most 2^62 bytes", call,
               tile_shape_text(shape, text));
    return TILE_OK;
}

/* The strides that an array keeps: C order where there is no element, and where no second place
 * along a dimension exists. */
static void keep_strides(tile_array *array, const int64_t *stride) {
    const tile_shape shape = array->shape;
    tile_shape_strides(shape, array->stride);
    if (!stride || tile_shape_count(shape) == 0) return;
    int64_t next = 1;
    for (int d = shape.rank - 1; d >= 0; d--) {
        array->stride[d] = shape.extent[d] > 1 ? stride[d] : next;
        next = array->stride[d] * shape.extent[d];
    }
}

static tile_status check_places(const tile_storage *storage, tile_dtype dtype, tile_shape shape,
                                const int64_t *stride, int64_t offset) {
    char text[TILE_SHAPE_TEXT];
    int64_t c_order[TILE_RANK_MAX];
    const int64_t size = (int64_t)tile_dtype_size(dtype);
    const int64_t elements = (int64_t)storage->bytes / size, count = tile_shape_count(shape);
    TILE_CHECK(count >= 0, TILE_E_ARGUMENT, "tile_array_strided: shape is malformed: rank %d, %s",
               shape.rank, tile_shape_text(shape, text));
    for (int d = 0; stride && d < shape.rank; d++)
        TILE_CHECK(stride[d] >= 0, TILE_E_ARGUMENT,
                   "tile_array_strided: stride %lld of dimension %d is negative",
                   (long long)stride[d], d);
    if (!stride) tile_shape_strides(shape, c_order);
    const int64_t last = count ? tile_shape_last(shape, stride ? stride : c_order) : -1;
    const bool inside =
        count == 0 ? offset >= 0 && offset <= elements
                   : offset >= 0 && last >= 0 && last < elements && offset < elements - last;
    TILE_CHECK(
        inside, TILE_E_SHAPE,
        "tile_array_strided: shape %s at element %lld reaches outside the storage's %lld elements",
        tile_shape_text(shape, text), (long long)offset, (long long)elements);
    return TILE_OK;
}

tile_status tile_array_over(tile_storage *storage, tile_dtype dtype, tile_shape shape,
                            const int64_t *stride, int64_t offset, tile_array **array) {
    TILE_TRY(check_places(storage, dtype, shape, stride, offset));
    tile_array *made = tile_alloc(sizeof *made);
    if (!made) return TILE_E_MEMORY;
    *made = (tile_array){.refs = 1,
                         .storage = tile_storage_hold(storage),
                         .dtype = dtype,
                         .shape = shape,
                         .offset = offset};
    keep_strides(made, stride);
    tile_array_measure(made);
    *array = made;
    return TILE_OK;
}

tile_status tile_array_create(tile_context *ctx, tile_dtype dtype, tile_shape shape,
                              tile_array **array) {
    TILE_TRY(check_new("tile_array_create", ctx, dtype, shape, array));
    const size_t bytes = (size_t)tile_shape_count(shape) * tile_dtype_size(dtype);
    tile_storage *storage;
    TILE_TRY(tile_storage_create(ctx, dtype, bytes, NULL, &storage));
    const tile_status status = tile_array_over(storage, dtype, shape, NULL, 0, array);
    tile_storage_release(storage);
    return status;
}

static tile_status check_memory(const char *call, tile_dtype dtype, tile_shape shape,
                                const int64_t *strides, const void *memory) {
    const size_t align = tile_dtype_align(dtype);
    const int64_t most = bytes_max / (int64_t)tile_dtype_size(dtype);
    const bool empty = tile_shape_count(shape) == 0;
    TILE_CHECK(memory || empty, TILE_E_ARGUMENT, "%s: memory is NULL", call);
    TILE_CHECK((uintptr_t)memory % align == 0, TILE_E_ARGUMENT,
               "%s: memory %p is not a multiple of %zu", call, memory, align);
    for (int d = 0; strides && d < shape.rank; d++)
        TILE_CHECK(strides[d] >= 0, TILE_E_ARGUMENT, "%s: stride %lld of dimension %d is negative",
                   call, (long long)strides[d], d);
    const int64_t last = strides && !empty ? tile_shape_last(shape, strides) : 0;
    TILE_CHECK(last >= 0 && last < most, TILE_E_ARGUMENT, "%s: the strides reach beyond 2^62 bytes",
               call);
    return TILE_OK;
}

tile_status tile_array_borrow(const char *call, tile_context *ctx, tile_dtype dtype,
                              tile_shape shape, const int64_t *strides, void *memory,
                              tile_array **array) {
    TILE_TRY(check_new(call, ctx, dtype, shape, array));
    TILE_TRY(check_memory(call, dtype, shape, strides, memory));
    const int64_t count = tile_shape_count(shape);
    const int64_t span = count && strides ? tile_shape_last(shape, strides) + 1 : count;
    const size_t bytes = (size_t)span * tile_dtype_size(dtype);
    tile_buffer *buffer;
    TILE_TRY(tile_buffer_borrow(ctx, memory ? memory : nothing, bytes, &buffer));
    tile_storage *storage;
    const tile_status made = tile_storage_create(ctx, dtype, bytes, buffer, &storage);
    if (made) {
        tile_buffer_release(buffer);
        return made;
    }
    storage->exposed = true;
    const tile_status status = tile_array_over(storage, dtype, shape, strides, 0, array);
    tile_storage_release(storage);
    return status;
}

tile_status tile_array_wrap(tile_context *ctx, tile_dtype dtype, tile_shape shape,
                            const int64_t *strides, void *memory, tile_array **array) {
    TILE_CHECK(!ctx || !memory || !tile_is_remote(ctx), TILE_E_ARGUMENT,
               "tile_array_wrap: memory is the host's, expected a CPU context: "
               "tile_cuda_array_wrap takes memory of a device");
    return tile_array_borrow("tile_array_wrap", ctx, dtype, shape, strides, memory, array);
}

tile_array *tile_array_hold(tile_array *array) {
    array->refs++;
    return array;
}

void tile_array_release(tile_array *array) {
    if (!array || --array->refs > 0) return;
    tile_array_release(array->grad);
    tile_array_release(array->row);
    const tile_struct_info *info = array->field ? tile_struct_of(array->dtype) : NULL;
    for (int k = 0; info && k < info->count; k++) tile_array_release(array->field[k]);
    tile_free(array->field);
    tile_storage_release(array->storage);
    tile_free(array);
}

void tile_array_destroy(tile_array *array) {
    if (array && !array->lent) tile_array_release(array);
}

tile_dtype tile_array_dtype(const tile_array *array) {
    return array ? array->dtype : TILE_DTYPES;
}

tile_shape tile_array_shape(const tile_array *array) {
    const tile_shape none = {.rank = -1};
    return array ? array->shape : none;
}

int64_t tile_array_count(const tile_array *array) {
    return array ? array->count : -1;
}

static tile_status make_grad_handle(tile_array *array) {
    if (array->grad) return TILE_OK;
    TILE_TRY(tile_array_over(array->storage->grad, array->dtype, array->shape, array->stride,
                             array->offset, &array->grad));
    array->grad->lent = true;
    return TILE_OK;
}

static void drop_grad(tile_storage *storage) {
    tile_storage_release(storage->grad);
    storage->grad = NULL;
}

tile_status tile_array_request_grad(tile_array *array) {
    TILE_CHECK(array, TILE_E_ARGUMENT, "tile_array_request_grad: array is NULL");
    tile_storage *storage = array->storage;
    TILE_CHECK(tile_has_gradient(array->dtype), TILE_E_DTYPE,
               "tile_array_request_grad: array is %s, wanted a float dtype",
               tile_dtype_name(array->dtype));
    if (storage->grad) return make_grad_handle(array);
    TILE_CHECK(!storage->watchers, TILE_E_STATE,
               "tile_array_request_grad: array was used on a tape before");
    TILE_TRY(
        tile_storage_create(storage->ctx, storage->dtype, storage->bytes, NULL, &storage->grad));
    storage->grad->grad_of = storage;
    const tile_status status = make_grad_handle(array);
    if (status) drop_grad(storage);
    return status;
}

tile_array *tile_array_grad(tile_array *array) {
    if (!array || !array->storage->grad || !tile_has_gradient(array->dtype)) return NULL;
    if (make_grad_handle(array)) return NULL;
    return array->grad;
}
