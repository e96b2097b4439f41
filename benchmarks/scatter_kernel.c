/* scatter_kernel.c: indexed additions as a tile kernel. */
#include "benchmarks/scatter_kernel.h"

tile_status scatter_kernel_build(tile_context *ctx, tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, "scatter");
    const tile_param x = tile_array_param(b, "x", TILE_F32, 1);
    const tile_param index = tile_array_param(b, "index", TILE_I32, 1);
    const tile_param y = tile_array_param(b, "y", TILE_F32, 1);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, SCATTER_TILE));
    const tile places = tile_load_padded(index, TILE_SHAPE(SCATTER_TILE), at, -1);
    tile_atomic_add_indexed(y, places, tile_load(x, TILE_SHAPE(SCATTER_TILE), at), TILE_AT_ZERO, 0);
    return tile_kernel_end(b, kernel);
}
