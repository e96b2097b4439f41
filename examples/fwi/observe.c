/* observe.c: observed data by the same physics, with seeded noise. */
#include "observe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROW = 512 };

/* y += level * normal; an element's number and its shot choose the random number. */
static tile_kernel *build_noise(tile_context *ctx, tile_dtype dtype) {
    tile_builder *b = tile_kernel_begin(ctx, "noise");
    tile_param ys = tile_array_param(b, "y", dtype, 2);
    tile level = tile_real_param(b, "level", dtype), seed = tile_int_param(b, "seed");
    tile shot = tile_int_param(b, "shot"), columns = tile_int_param(b, "columns");

    tile_shape shape = TILE_SHAPE(1, ROW);
    tile t = tile_block_index(b, 0), first = tile_block_start(b, 1, ROW);
    tile begin = tile_expr("t * columns + first", t, columns, first);
    tile number = tile_iota(b, TILE_I64, shape, 1, begin);
    tile normal = tile_random_normal(seed, number, shot, dtype);
    tile y = tile_load(ys, shape, TILE_AT(t, first));
    tile_store(ys, tile_expr("y + level * normal", y, level, normal), TILE_AT(t, first));
    tile_kernel *kernel;
    must(tile_kernel_end(b, &kernel));
    return kernel;
}

/* Root mean square over all shots. */
static double rms(wave_model *m, tile_array **observed) {
    double sum = 0, square = 0;
    for (int64_t shot = 0; shot < m->survey->shots; shot++) {
        must(tape_dot(NULL, observed[shot], observed[shot], m->misfit));
        array_read(m->misfit, &square);
        sum += square;
    }
    return sqrt(sum / (double)(m->survey->shots * tile_array_count(m->traces)));
}

static void add_noise(wave_model *m, tile_array **observed, double noise, int64_t seed) {
    const survey *s = m->survey;
    tile_kernel *kernel = build_noise(m->ctx, m->dtype);
    tile_grid grid = TILE_GRID(s->steps, (s->nx + ROW - 1) / ROW);
    double level = noise * rms(m, observed);
    for (int64_t shot = 0; shot < s->shots; shot++)
        must(tile_launch(NULL, kernel, grid, TILE_ARGS(observed[shot], level, seed, shot, s->nx)));
    tile_kernel_destroy(kernel);
}

tile_array **observe(wave_model *m, double noise, int64_t seed) {
    const survey *s = m->survey;
    tile_array **observed = calloc((size_t)s->shots, sizeof(*observed));
    if (!observed) {
        fprintf(stderr, "fwi: out of memory\n");
        exit(1);
    }
    for (int64_t shot = 0; shot < s->shots; shot++) {
        tile_shape shape = TILE_SHAPE(s->steps, s->nx);
        must(tile_array_create(m->ctx, m->dtype, shape, &observed[shot]));
        model_shot(m, shot, observed[shot]);
    }
    if (noise > 0) add_noise(m, observed, noise, seed);
    return observed;
}

void observe_free(tile_array **observed, int64_t shots) {
    for (int64_t shot = 0; shot < shots; shot++) tile_array_destroy(observed[shot]);
    free(observed);
}
