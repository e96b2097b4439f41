/* invert_adam.c: Adam, by the library's own launch, on the rows that are not known. */
#include "invert.h"

enum { ROW = 512 };

/* x = x kept in low..high. */
static tile_kernel *build_clamp(tile_context *ctx, tile_dtype dtype) {
    tile_builder *b = tile_kernel_begin(ctx, "clamp");
    tile_param xs = tile_array_param(b, "x", dtype, 2);
    tile low = tile_real_param(b, "low", dtype), high = tile_real_param(b, "high", dtype);
    tile_offset at = TILE_AT(tile_block_start(b, 0, 1), tile_block_start(b, 1, ROW));
    tile x = tile_load(xs, TILE_SHAPE(1, ROW), at);
    tile_store(xs, tile_expr("clamp(x, low, high)", x, low, high), at);
    tile_kernel *clamp;
    must(tile_kernel_end(b, &clamp));
    return clamp;
}

void invert_adam(inversion *v) {
    const tape_adam_options options = {.rate = 30}; /* m/s */
    wave_model *m = v->model;
    int64_t nx = v->best.nx, rows = v->best.nz - v->known;
    const int64_t start[] = {v->known, 0};
    tile_shape shape = TILE_SHAPE(rows, nx);
    tile_array *x, *mean, *square;
    must(tile_array_slice(m->velocity, start, shape, NULL, &x));
    must(tile_array_create(m->ctx, m->dtype, shape, &mean));
    must(tile_array_create(m->ctx, m->dtype, shape, &square));
    tile_kernel *clamp = build_clamp(m->ctx, m->dtype);

    invert_evaluate(v, true);
    for (int64_t step = 1; !invert_over(v); step++) {
        must(tape_adam(NULL, &options, step, x, tile_array_grad(x), mean, square));
        must(tile_launch(NULL, clamp, TILE_GRID(rows, (nx + ROW - 1) / ROW),
                         TILE_ARGS(x, v->low, v->high)));
        array_read(m->velocity, v->trial.v);
        invert_evaluate(v, true);
    }
    tile_kernel_destroy(clamp);
    tile_array_destroy(x);
    tile_array_destroy(mean);
    tile_array_destroy(square);
}
