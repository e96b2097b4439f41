/* move.c: moving values in a context's memory, and between it and the host. */
#include "core/move.h"

#include <string.h>

#include "core/array.h"
#include "core/device.h"
#include "core/dtype.h"

bool tile_is_remote(const tile_context *ctx) {
    return ctx->device && ctx->device->alloc;
}

tile_status tile_move_zero(tile_context *ctx, void *to, size_t bytes) {
    static const char zero;
    if (bytes == 0 || ctx->rehearsal) return TILE_OK;
    if (tile_is_remote(ctx)) return ctx->device->fill(ctx->device, to, &zero, 1, bytes);
    memset(to, 0, bytes);
    return TILE_OK;
}

tile_status tile_move_copy(tile_context *ctx, void *to, const void *from, size_t bytes) {
    if (bytes == 0 || ctx->rehearsal) return TILE_OK;
    if (tile_is_remote(ctx)) return ctx->device->copy(ctx->device, to, from, bytes);
    memcpy(to, from, bytes);
    return TILE_OK;
}

tile_status tile_move_equal(tile_context *ctx, const void *a, const void *b, size_t bytes,
                            bool *equal) {
    *equal = true;
    if (bytes == 0) return TILE_OK;
    if (!tile_is_remote(ctx)) {
        *equal = memcmp(a, b, bytes) == 0;
        return TILE_OK;
    }
    char *host = tile_alloc(2 * bytes);
    if (!host) return TILE_E_MEMORY;
    tile_status status = ctx->device->copy_out(ctx->device, host, a, bytes);
    if (!status) status = ctx->device->copy_out(ctx->device, host + bytes, b, bytes);
    if (!status) *equal = memcmp(host, host + bytes, bytes) == 0;
    tile_free(host);
    return status;
}

static bool is_dense(tile_shape shape, const int64_t *stride) {
    int64_t next = 1;
    for (int d = shape.rank - 1; stride && d >= 0; d--) {
        if (shape.extent[d] > 1 && stride[d] != next) return false;
        next *= shape.extent[d];
    }
    return true;
}

static bool is_one_place(tile_shape shape, const int64_t *stride) {
    for (int d = 0; d < shape.rank; d++)
        if (!stride || (shape.extent[d] > 1 && stride[d] != 0)) return false;
    return true;
}

/* Bytes from the first to the last element of a shape that has some. */
static size_t span_of(tile_dtype dtype, tile_shape shape, const int64_t *stride) {
    const int64_t count = stride ? tile_shape_last(shape, stride) + 1 : tile_shape_count(shape);
    return (size_t)count * tile_dtype_size(dtype);
}

/* Elements with gaps between them: all that lies from the first to the last is fetched, changed
 * here, and put back. Nothing else runs in between. */
static tile_status move_in_by_host(tile_context *ctx, tile_dtype dtype, tile_shape shape, void *to,
                                   const int64_t *to_stride, const void *host,
                                   const int64_t *host_stride) {
    tile_device *device = ctx->device;
    const size_t bytes = span_of(dtype, shape, to_stride);
    void *stage = tile_alloc(bytes);
    if (!stage) return TILE_E_MEMORY;
    tile_status status =
        is_dense(shape, to_stride) ? TILE_OK : device->copy_out(device, stage, to, bytes);
    if (!status) tile_copy_strided(dtype, shape, stage, to_stride, host, host_stride);
    if (!status) status = device->copy_in(device, to, stage, bytes);
    tile_free(stage);
    return status;
}

tile_status tile_move_in(tile_context *ctx, tile_dtype dtype, tile_shape shape, void *to,
                         const int64_t *to_stride, const void *host, const int64_t *host_stride) {
    tile_device *device = ctx->device;
    const size_t size = tile_dtype_size(dtype);
    const int64_t count = tile_shape_count(shape);
    if (!tile_is_remote(ctx)) {
        tile_copy_strided(dtype, shape, to, to_stride, host, host_stride);
        return TILE_OK;
    }
    if (count == 0) return TILE_OK;
    if (is_dense(shape, to_stride) && is_dense(shape, host_stride))
        return device->copy_in(device, to, host, (size_t)count * size);
    if (is_dense(shape, to_stride) && is_one_place(shape, host_stride) && size <= 8)
        return device->fill(device, to, host, size, (size_t)count);
    return move_in_by_host(ctx, dtype, shape, to, to_stride, host, host_stride);
}

tile_status tile_move_out(tile_context *ctx, tile_dtype dtype, tile_shape shape, void *host,
                          const void *from, const int64_t *from_stride) {
    tile_device *device = ctx->device;
    if (!tile_is_remote(ctx)) {
        tile_copy_strided(dtype, shape, host, NULL, from, from_stride);
        return TILE_OK;
    }
    if (tile_shape_count(shape) == 0) return TILE_OK;
    const size_t bytes = span_of(dtype, shape, from_stride);
    if (is_dense(shape, from_stride)) return device->copy_out(device, host, from, bytes);
    void *stage = tile_alloc(bytes);
    if (!stage) return TILE_E_MEMORY;
    const tile_status status = device->copy_out(device, stage, from, bytes);
    if (!status) tile_copy_strided(dtype, shape, host, NULL, stage, from_stride);
    tile_free(stage);
    return status;
}

bool tile_has_graphs(const tile_context *ctx) {
    return ctx->device && ctx->device->graph_begin;
}

tile_status tile_graph_begin(tile_context *ctx, tile_device_graph **graph) {
    return tile_has_graphs(ctx) ? ctx->device->graph_begin(ctx->device, graph) : TILE_OK;
}

tile_status tile_graph_end(tile_context *ctx) {
    return tile_has_graphs(ctx) ? ctx->device->graph_end(ctx->device) : TILE_OK;
}

tile_status tile_graph_cut(tile_context *ctx) {
    return tile_has_graphs(ctx) ? ctx->device->graph_cut(ctx->device) : TILE_OK;
}

void tile_graph_free(tile_context *ctx, tile_device_graph *graph) {
    if (graph) ctx->device->graph_free(ctx->device, graph);
}
