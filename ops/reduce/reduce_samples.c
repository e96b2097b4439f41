/* reduce_samples.c: inputs for the generated tests of the family. */
#include "ops/reduce/reduce_samples.h"

#include "core/builder.h"

typedef struct shape_and_axes {
    tile_shape shape;
    int64_t axes;
} shape_and_axes;

/* Ranks, runs and columns, merged and alternating axes, one element, and sizes on both sides of the
 * blocks of the kernel (32 accumulators, 32 steps, 1024 elements). */
static const shape_and_axes shapes[] = {
    {{0, {0}}, 0},          {{1, {1}}, 1},           {{1, {7}}, 1},
    {{1, {33}}, 1},         {{1, {1100}}, 1},        {{2, {3, 5}}, 1},
    {{2, {3, 5}}, 2},       {{2, {3, 5}}, 3},        {{2, {70, 35}}, 1},
    {{3, {2, 3, 4}}, 2},    {{3, {2, 3, 4}}, 5},     {{3, {2, 3, 4}}, 6},
    {{4, {2, 3, 2, 3}}, 5}, {{4, {2, 3, 2, 3}}, 10}, {{6, {2, 1, 2, 2, 1, 2}}, 21},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static bool fill(int variant, int n_in, double low, double high, tile_sample *sample) {
    if (variant >= SHAPES) return false;
    *sample = (tile_sample){.n_in = n_in};
    for (int k = 0; k < n_in; k++) {
        sample->shape[k] = shapes[variant].shape;
        sample->low[k] = low;
        sample->high[k] = high;
    }
    sample->n[0] = shapes[variant].axes;
    return true;
}

static tile build(const char *op, tile_builder *b, const tile_sample *sample, const tile *in) {
    tile_emission e = {.op = tile_op_find(op), .n_in = sample->n_in, .attrs.n = {sample->n[0]}};
    for (int k = 0; k < sample->n_in; k++) e.in[k] = in[k];
    return tile_emit(b, &e);
}

static tile build_sum(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build("sum", b, sample, in);
}
bool tile_sample_sum(int variant, tile_sample *sample) {
    const bool more = fill(variant, 1, -2, 2, sample);
    sample->build = build_sum;
    return more;
}

/* Factors around 1, so that a product of a thousand neither vanishes nor overflows. */
static tile build_prod(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build("prod", b, sample, in);
}
bool tile_sample_prod(int variant, tile_sample *sample) {
    const bool more = fill(variant, 1, 0.9, 1.1, sample);
    sample->build = build_prod;
    return more;
}

static tile build_min(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build("reduce_min", b, sample, in);
}
bool tile_sample_reduce_min(int variant, tile_sample *sample) {
    const bool more = fill(variant, 1, -2, 2, sample);
    sample->build = build_min;
    return more;
}

static tile build_max(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build("reduce_max", b, sample, in);
}
bool tile_sample_reduce_max(int variant, tile_sample *sample) {
    const bool more = fill(variant, 1, -2, 2, sample);
    sample->build = build_max;
    return more;
}

static tile build_argmin(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build("argmin", b, sample, in);
}
bool tile_sample_argmin(int variant, tile_sample *sample) {
    const bool more = fill(variant, 1, -2, 2, sample);
    sample->build = build_argmin;
    return more;
}

static tile build_argmax(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build("argmax", b, sample, in);
}
bool tile_sample_argmax(int variant, tile_sample *sample) {
    const bool more = fill(variant, 1, -2, 2, sample);
    sample->build = build_argmax;
    return more;
}

static tile build_others(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build("prod_others", b, sample, in);
}
bool tile_sample_prod_others(int variant, tile_sample *sample) {
    const bool more = fill(variant, 1, 0.9, 1.1, sample);
    sample->build = build_others;
    return more;
}

static tile build_along(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build("prod_others_along", b, sample, in);
}
bool tile_sample_prod_others_along(int variant, tile_sample *sample) {
    const bool more = fill(variant, 2, 0.9, 1.1, sample);
    sample->build = build_along;
    return more;
}
