/* host_copy.c: the host reads, writes and fills arrays. */
#include "core/array.h"
#include "core/context.h"
#include "core/dtype.h"
#include "core/move.h"
#include "core/status.h"

enum { ELEMENT_BYTES_MAX = 64 };

static tile_status check_grad_valid(const tile_array *array, const char *call) {
    const tile_storage *storage = array->storage;
    pthread_mutex_lock(&storage->ctx->lock);
    const bool invalid = storage->grad_of && storage->grad_of->grad_invalid;
    pthread_mutex_unlock(&storage->ctx->lock);
    TILE_CHECK(!invalid, TILE_E_STATE, "%s: the gradient is of a backward that failed half-way",
               call);
    return TILE_OK;
}

tile_status tile_array_check_readable(tile_array *array, const char *call) {
    TILE_TRY(tile_context_sync(array->storage->ctx));
    return check_grad_valid(array, call);
}

static tile_status check_host(const char *call, const tile_array *array, const void *host,
                              size_t bytes) {
    TILE_CHECK(array, TILE_E_ARGUMENT, "%s: array is NULL", call);
    const size_t wanted = (size_t)tile_array_count(array) * tile_dtype_size(array->dtype);
    TILE_CHECK(bytes == wanted, TILE_E_ARGUMENT, "%s: bytes is %zu, wanted %zu", call, bytes,
               wanted);
    TILE_CHECK(host || bytes == 0, TILE_E_ARGUMENT, "%s: host is NULL", call);
    return TILE_OK;
}

tile_status tile_array_read(tile_array *array, void *host, size_t bytes) {
    TILE_TRY(check_host("tile_array_read", array, host, bytes));
    TILE_TRY(tile_array_check_readable(array, "tile_array_read"));
    return tile_move_out(array->storage->ctx, array->dtype, array->shape, host,
                         tile_array_address(array), array->stride);
}

/* What the host wrote over a whole gradient is valid again. */
static void validate_grad(tile_storage *storage) {
    pthread_mutex_lock(&storage->ctx->lock);
    if (storage->grad_of) storage->grad_of->grad_invalid = false;
    pthread_mutex_unlock(&storage->ctx->lock);
}

/* A watcher that refuses names who needs the values; the call says who would destroy them. */
static tile_status refused_by(const char *call, tile_status status) {
    if (status != TILE_E_STATE) return status;
    return tile_fail(status, "%s: array would be overwritten: %s", call, tile_last_error());
}

/* Writes values of the given strides (all 0: one value) to an array, noted by its watchers. */
static tile_status write_noted(const char *call, tile_array *array, const void *from,
                               const int64_t *from_stride) {
    tile_storage *storage = array->storage;
    const bool whole = tile_array_is_whole(array);
    const tile_status kept = whole ? tile_storage_will_replace(storage)
                                   : tile_storage_will_write(storage, tile_array_range(array));
    if (kept) return refused_by(call, kept);
    TILE_TRY(tile_move_in(storage->ctx, array->dtype, array->shape, tile_array_address(array),
                          array->stride, from, from_stride));
    if (whole) validate_grad(storage);
    return tile_storage_written(storage, array);
}

tile_status tile_array_write(tile_array *array, const void *host, size_t bytes) {
    TILE_TRY(check_host("tile_array_write", array, host, bytes));
    return write_noted("tile_array_write", array, host, NULL);
}

tile_status tile_array_fill(tile_array *array, double value) {
    TILE_CHECK(array, TILE_E_ARGUMENT, "tile_array_fill: array is NULL");
    const tile_dtype dtype = array->dtype;
    TILE_CHECK(tile_dtype_valid(dtype), TILE_E_DTYPE,
               "tile_array_fill: array is %s: fill its members, see tile_array_field",
               tile_dtype_name(dtype));
    TILE_CHECK(tile_dtype_holds(dtype, value), TILE_E_ARGUMENT,
               "tile_array_fill: value is %.17g, which %s does not hold", value,
               tile_dtype_name(dtype));
    const int64_t same_place[TILE_RANK_MAX] = {0};
    _Alignas(64) char element[ELEMENT_BYTES_MAX];
    tile_dtype_put(dtype, value, element);
    return write_noted("tile_array_fill", array, element, same_place);
}

tile_status tile_array_data(tile_array *array, void **data) {
    TILE_CHECK(array && data, TILE_E_ARGUMENT, "tile_array_data: %s is NULL",
               array ? "data" : "array");
    TILE_CHECK(!tile_is_remote(array->storage->ctx), TILE_E_STATE,
               "tile_array_data: array is in a device's memory, expected one of a CPU context: "
               "tile_cuda_array_data gives its address there");
    TILE_TRY(check_grad_valid(array, "tile_array_data"));
    array->storage->exposed = true;
    *data = tile_array_address(array);
    return TILE_OK;
}
