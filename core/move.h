/* move.h: moving values in a context's memory, and between it and the host.
 *
 * On the CPU that is memcpy. Memory of a device is never touched by the host: all that reads or
 * writes the elements of arrays outside of a launch goes by these calls. */
#ifndef TILE_CORE_MOVE_H
#define TILE_CORE_MOVE_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the context's memory is a device's. */
bool tile_is_remote(const tile_context *ctx);

/* Within the context's memory. */
tile_status tile_move_zero(tile_context *ctx, void *to, size_t bytes) TILE_MUST_USE;
tile_status tile_move_copy(tile_context *ctx, void *to, const void *from,
                           size_t bytes) TILE_MUST_USE;

/* Whether two places hold the same bytes. */
tile_status tile_move_equal(tile_context *ctx, const void *a, const void *b, size_t bytes,
                            bool *equal) TILE_MUST_USE;

/* Between the host and the context. Strides as in tile_copy_strided; over when it returns.
 *
 * errors   TILE_E_MEMORY; TILE_E_DEVICE */
tile_status tile_move_in(tile_context *ctx, tile_dtype dtype, tile_shape shape, void *to,
                         const int64_t *to_stride, const void *host,
                         const int64_t *host_stride) TILE_MUST_USE;
tile_status tile_move_out(tile_context *ctx, tile_dtype dtype, tile_shape shape, void *host,
                          const void *from, const int64_t *from_stride) TILE_MUST_USE;

/* Moves the content of a buffer to the memory at home, where the pool has that; else does nothing.
 * refs is 1. Nothing has changed when it fails. */
tile_status tile_move_home(tile_context *ctx, tile_buffer **held, const void *home) TILE_MUST_USE;

/* Between begin and end what a device is asked for is taken down, to run as a graph when the same
 * was asked for before: core/device.h. Not nested. On the CPU nothing. *graph NULL: a new one. */
bool tile_has_graphs(const tile_context *ctx);
tile_status tile_graph_begin(tile_context *ctx, tile_device_graph **graph) TILE_MUST_USE;
tile_status tile_graph_end(tile_context *ctx) TILE_MUST_USE;

/* Has done what was taken down so far: code of the user's comes next. */
tile_status tile_graph_cut(tile_context *ctx) TILE_MUST_USE;
void tile_graph_free(tile_context *ctx, tile_device_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
