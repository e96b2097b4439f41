/* wave_kernel.c: the acoustic wave step as a tile kernel. */
#include "benchmarks/wave_kernel.h"

/* The sum of the four neighbours at a distance. */
static tile ring_sum(tile_param p, tile_shape shape, tile_offset at, int64_t distance) {
    tile n = tile_load(p, shape, TILE_SHIFT(at, -distance, 0));
    tile s = tile_load(p, shape, TILE_SHIFT(at, distance, 0));
    tile w = tile_load(p, shape, TILE_SHIFT(at, 0, -distance));
    tile e = tile_load(p, shape, TILE_SHIFT(at, 0, distance));
    return tile_expr("n + s + w + e", n, s, w, e);
}

tile_status wave_kernel_build(tile_context *ctx, tile_dtype dtype, int64_t tile_rows,
                              int64_t tile_cols, tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, "wave_step");
    tile_param prev = tile_array_param(b, "prev", dtype, 2);
    tile_param p = tile_array_param(b, "p", dtype, 2);
    tile_param v = tile_array_param(b, "v", dtype, 2);
    tile_param s = tile_array_param(b, "s", dtype, 2);
    tile_param next = tile_array_param(b, "next", dtype, 2);
    tile k = tile_real_param(b, "k", dtype);

    tile y = tile_block_start(b, 0, tile_rows), x = tile_block_start(b, 1, tile_cols);
    const tile_offset at = TILE_AT(y, x);
    const tile_shape shape = TILE_SHAPE(tile_rows, tile_cols);
    tile here = tile_load(p, shape, at), before = tile_load(prev, shape, at);
    tile speed = tile_load(v, shape, at), sponge = tile_load(s, shape, at);
    tile near = ring_sum(p, shape, at, 1), far = ring_sum(p, shape, at, 2);
    tile lap = tile_expr("-5*here + 4/3*near - 1/12*far", here, near, far);
    tile kv = tile_expr("k * speed", k, speed);
    tile after = tile_expr("sponge * (2*here - before + kv*kv*lap)", sponge, here, before, kv, lap);
    tile_store(next, after, at);
    return tile_kernel_end(b, kernel);
}

tile_status wave_kernel_build_smooth(tile_context *ctx, tile_dtype dtype, int64_t tile_rows,
                                     int64_t tile_cols, tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, "smooth");
    tile_param p = tile_array_param(b, "p", dtype, 2);
    tile_param next = tile_array_param(b, "next", dtype, 2);
    tile y = tile_block_start(b, 0, tile_rows), x = tile_block_start(b, 1, tile_cols);
    const tile_offset at = TILE_AT(y, x);
    const tile_shape shape = TILE_SHAPE(tile_rows, tile_cols);
    tile here = tile_load(p, shape, at);
    tile near = ring_sum(p, shape, at, 1), far = ring_sum(p, shape, at, 2);
    tile_store(next, tile_expr("here/2 + near/6 - far/24", here, near, far), at);
    return tile_kernel_end(b, kernel);
}
