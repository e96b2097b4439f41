/* remote.c: adjoints in a device's memory: their sums, copies and zeros are kernels. */
#include <string.h>

#include "core/move.h"
#include "core/status.h"
#include "tape/ready.h"

static bool is_dense(tile_shape shape, const tape_elements *e) {
    int64_t next = 1;
    for (int d = shape.rank - 1; d >= 0; d--) {
        if (shape.extent[d] > 1 && e->stride[d] != next) return false;
        next *= shape.extent[d];
    }
    return true;
}

static tile_memory memory_of(tile_shape shape, const tape_elements *e) {
    tile_memory m = {.read = e->at, .write = e->at, .rank = shape.rank};
    memcpy(m.extent, shape.extent, sizeof m.extent);
    memcpy(m.stride, e->stride, sizeof m.stride);
    return m;
}

/* Dense elements are a row. */
static void flatten(tile_shape *shape, tape_elements **e, int count) {
    for (int k = 0; k < count; k++)
        if (!is_dense(*shape, e[k])) return;
    *shape = (tile_shape){1, {tile_shape_count(*shape)}};
    for (int k = 0; k < count; k++) e[k]->stride[0] = 1;
}

/* Runs a kernel on from, where there is one, and to; a scalar of it is 0. */
static tile_status run(tile_context *ctx, tape_ready_task what, tile_shape shape, tape_elements to,
                       tape_elements *from) {
    tape_elements *all[] = {&to, from};
    flatten(&shape, all, from ? 2 : 1);
    const tape_ready_key key = {.what = what,
                                .dtype = to.dtype,
                                .result = (from ? from : &to)->dtype,
                                .rank = shape.rank,
                                .width = TAPE_READY_WIDTH};
    const tile_grid grid = tape_ready_grid(shape, key.width);
    tile_kernel *kernel;
    tile_bound bound;
    int at = 0;
    TILE_TRY(tape_ready_kernel(ctx, &key, &kernel));
    memcpy(bound.grid, grid.blocks, sizeof bound.grid);
    memcpy(bound.domain, grid.blocks, sizeof bound.domain);
    bound.stash = NULL;
    for (int d = 1; d <= shape.rank - TILE_GRID_RANK; d++)
        bound.scalar[at++].integer = shape.extent[d];
    if (from) bound.array[at++] = memory_of(shape, from);
    bound.array[at++] = memory_of(shape, &to);
    memset(&bound.scalar[at], 0, sizeof bound.scalar[at]);
    TILE_TRY(tile_executable_reserve(kernel->forward, &bound));
    return tile_execute(kernel->forward, &bound);
}

tile_status tape_remote_add(tile_context *ctx, tile_shape shape, tape_elements to,
                            tape_elements from) {
    return run(ctx, TAPE_READY_ADD, shape, to, &from);
}

tile_status tape_remote_copy(tile_context *ctx, tile_shape shape, tape_elements to,
                             tape_elements from) {
    const size_t bytes = (size_t)tile_shape_count(shape) * tile_dtype_size(to.dtype);
    if (is_dense(shape, &to) && is_dense(shape, &from))
        return tile_move_copy(ctx, to.at, from.at, bytes);
    return run(ctx, TAPE_READY_COPY, shape, to, &from);
}

tile_status tape_remote_zero(tile_context *ctx, tile_shape shape, tape_elements to) {
    const size_t bytes = (size_t)tile_shape_count(shape) * tile_dtype_size(to.dtype);
    if (is_dense(shape, &to)) return tile_move_zero(ctx, to.at, bytes);
    return run(ctx, TAPE_READY_FILL, shape, to, NULL);
}
