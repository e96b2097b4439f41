/* burgers_kernel.c: the Burgers step as a tile kernel. */
#include "benchmarks/burgers_kernel.h"

/* A component, its central differences (times 2 h) and its Laplacian (times h^2). */
typedef struct component {
    tile here, dx, dy, lap;
} component;

static component load_component(tile_param f, tile_shape shape, tile_offset at) {
    tile here = tile_load(f, shape, at);
    tile n = tile_load(f, shape, TILE_SHIFT(at, -1, 0));
    tile s = tile_load(f, shape, TILE_SHIFT(at, 1, 0));
    tile w = tile_load(f, shape, TILE_SHIFT(at, 0, -1));
    tile e = tile_load(f, shape, TILE_SHIFT(at, 0, 1));
    return (component){here, tile_expr("e - w", e, w), tile_expr("s - n", s, n),
                       tile_expr("e + w + s + n - 4*here", e, w, s, n, here)};
}

static tile advance(component f, tile u, tile v, tile a, tile b) {
    tile here = f.here, dx = f.dx, dy = f.dy, lap = f.lap;
    return tile_expr("here - a*(u*dx + v*dy) + b*lap", here, a, u, dx, v, dy, b, lap);
}

tile_status burgers_kernel_build(tile_context *ctx, tile_dtype dtype, int64_t tile_rows,
                                 int64_t tile_cols, tile_kernel **kernel) {
    tile_builder *builder = tile_kernel_begin(ctx, "burgers_step");
    tile_param u = tile_array_param(builder, "u", dtype, 2);
    tile_param v = tile_array_param(builder, "v", dtype, 2);
    tile_param u_next = tile_array_param(builder, "u_next", dtype, 2);
    tile_param v_next = tile_array_param(builder, "v_next", dtype, 2);
    tile a = tile_real_param(builder, "a", dtype), b = tile_real_param(builder, "b", dtype);

    tile y = tile_block_start(builder, 0, tile_rows), x = tile_block_start(builder, 1, tile_cols);
    const tile_offset at = TILE_AT(y, x);
    const tile_shape shape = TILE_SHAPE(tile_rows, tile_cols);
    const component us = load_component(u, shape, at), vs = load_component(v, shape, at);
    tile_store(u_next, advance(us, us.here, vs.here, a, b), at);
    tile_store(v_next, advance(vs, us.here, vs.here, a, b), at);
    return tile_kernel_end(builder, kernel);
}
