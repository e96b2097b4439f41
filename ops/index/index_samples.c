/* index_samples.c: inputs for the generated tests of the family. */
#include "core/builder.h"
#include "ops/index/index.h"

/* A tile, indices drawn from low..high (duplicates, and both sides of the axis), the axis. */
typedef struct example {
    tile_shape shape;
    int64_t n; /* indices; of cumsum: how */
    double low, high;
    int axis;
} example;

static const example indexed[] = {
    {{1, {7}}, 4, -0.4, 6.4, 0},     {{1, {5}}, 9, -1.5, 5.5, 0},    {{1, {1}}, 1, 0, 0, 0},
    {{1, {40}}, 33, -3, 44, 0},      {{2, {4, 3}}, 5, -1.5, 3.5, 0}, {{2, {3, 4}}, 6, -1.5, 4.5, 1},
    {{3, {2, 3, 4}}, 5, -1, 3.4, 1}, {{3, {2, 3, 4}}, 2, 0, 1.4, 0}, {{2, {2, 3}}, 3, 3, 9, 1},
};
enum { INDEXED = sizeof indexed / sizeof *indexed };

/* sources: tiles before the indices; the second is as long as the indices along the axis. */
static bool fill(int variant, int sources, tile_sample *sample) {
    if (variant >= INDEXED) return false;
    const example *e = &indexed[variant];
    *sample = (tile_sample){.n_in = sources + 1, .n = {e->axis}};
    for (int k = 0; k < sources; k++) {
        sample->shape[k] = e->shape;
        sample->low[k] = -2;
        sample->high[k] = 2;
    }
    if (sources > 1) sample->shape[1].extent[e->axis] = e->n;
    sample->shape[sources] = (tile_shape){1, {e->n}};
    sample->low[sources] = e->low;
    sample->high[sources] = e->high;
    sample->integer[sources] = true;
    return true;
}

static tile build(int op, tile_builder *b, const tile_sample *sample, const tile *in) {
    tile_emission e = {.op = &tile_index_ops[op],
                       .n_in = tile_index_ops[op].n_in,
                       .attrs.n = {sample->n[0], sample->n[1]}};
    for (int k = 0; k < e.n_in; k++) e.in[k] = in[k];
    return tile_emit(b, &e);
}

static tile build_gather(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(GATHER, b, sample, in);
}
bool tile_sample_gather(int variant, tile_sample *sample) {
    const bool more = fill(variant, 1, sample);
    sample->build = build_gather;
    return more;
}

static tile build_gather_last(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(GATHER_LAST, b, sample, in);
}
bool tile_sample_gather_last(int variant, tile_sample *sample) {
    const bool more = fill(variant, 1, sample);
    sample->build = build_gather_last;
    return more;
}

static tile build_scatter(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(SCATTER, b, sample, in);
}
bool tile_sample_scatter(int variant, tile_sample *sample) {
    const bool more = fill(variant, 2, sample);
    sample->build = build_scatter;
    return more;
}

static tile build_scatter_add(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(SCATTER_ADD, b, sample, in);
}
bool tile_sample_scatter_add(int variant, tile_sample *sample) {
    const bool more = fill(variant, 2, sample);
    sample->build = build_scatter_add;
    return more;
}

static const example summed[] = {
    {{1, {1}}, 0, 0, 0, 0},       {{1, {9}}, 0, 0, 0, 0},       {{1, {9}}, 1, 0, 0, 0},
    {{1, {9}}, 2, 0, 0, 0},       {{1, {9}}, 3, 0, 0, 0},       {{2, {4, 5}}, 0, 0, 0, 1},
    {{2, {4, 5}}, 1, 0, 0, 0},    {{3, {2, 3, 4}}, 2, 0, 0, 1}, {{3, {2, 3, 4}}, 3, 0, 0, 0},
    {{3, {2, 3, 4}}, 1, 0, 0, 2},
};
static tile build_cumsum(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(CUMSUM, b, sample, in);
}
bool tile_sample_cumsum(int variant, tile_sample *sample) {
    if (variant >= (int)(sizeof summed / sizeof *summed)) return false;
    *sample = (tile_sample){.n_in = 1,
                            .shape = {summed[variant].shape},
                            .low = {-2},
                            .high = {2},
                            .build = build_cumsum,
                            .n = {summed[variant].axis, summed[variant].n}};
    return true;
}
