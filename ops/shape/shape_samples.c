/* shape_samples.c: inputs for the generated tests of the family. */
#include "core/builder.h"
#include "ops/shape/shape.h"

/* One case: shapes of the inputs and of the result, and constants. */
typedef struct example {
    tile_shape in[2];
    tile_shape out;
    int64_t n[TILE_DIMS];
} example;

static bool fill(const example *all, int count, int variant, int n_in, tile_sample *sample) {
    if (variant >= count) return false;
    *sample = (tile_sample){.n_in = n_in};
    for (int k = 0; k < n_in; k++) {
        sample->shape[k] = all[variant].in[k];
        sample->low[k] = -2;
        sample->high[k] = 2;
    }
    sample->shape[n_in] = all[variant].out;
    for (int d = 0; d < TILE_DIMS; d++) sample->n[d] = all[variant].n[d];
    return true;
}
#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

/* The op on the inputs; the wanted shape of the result follows theirs in the sample. */
static tile build(int op, tile_builder *b, const tile_sample *sample, const tile *in) {
    const tile_op *what = &tile_shape_ops[op];
    tile_emission e = {.op = what, .n_in = what->n_in, .shape = sample->shape[what->n_in]};
    for (int k = 0; k < what->n_in; k++) e.in[k] = in[k];
    for (int d = 0; d < TILE_DIMS; d++) {
        if (op == VIEW || op == ASSIGN)
            e.attrs.shift[d] = sample->n[d];
        else
            e.attrs.n[d] = sample->n[d];
    }
    e.has_shape = op != PERMUTE && op != ASSIGN && op != CONCAT;
    return tile_emit(b, &e);
}

/* One element, a dimension, three; the dtype is the sample's own, there are no inputs. */
static tile build_full(tile_builder *b, const tile_sample *sample, const tile *in) {
    (void)in;
    const tile_emission e = {.op = &tile_shape_ops[FULL],
                             .attrs.real = 3,
                             .has_shape = true,
                             .shape = sample->shape[0],
                             .has_dtype = true,
                             .dtype = (tile_dtype)sample->n[0]};
    return tile_emit(b, &e);
}
static const example fulls[] = {{{{0}}, {0, {0}}, {TILE_F64}},
                                {{{0}}, {1, {7}}, {TILE_F64}},
                                {{{0}}, {3, {2, 3, 4}}, {TILE_F32}}};
bool tile_sample_full(int variant, tile_sample *sample) {
    const bool more = fill(fulls, COUNT(fulls), variant, 0, sample);
    sample->build = build_full;
    return more;
}

static const example iotas[] = {{{{0}}, {1, {5}}, {1}},
                                {{{0}}, {2, {3, 4}}, {3}},
                                {{{0}}, {3, {2, 3, 4}}, {5}}};
static tile build_iota(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(IOTA, b, sample, in);
}
bool tile_sample_iota(int variant, tile_sample *sample) {
    const bool more = fill(iotas, COUNT(iotas), variant, 1, sample);
    sample->build = build_iota;
    return more;
}

static const example broadcasts[] = {
    {{{0}}, {2, {3, 4}}, {0}},         {{{1, {4}}}, {2, {3, 4}}, {0}},
    {{{2, {3, 1}}}, {2, {3, 4}}, {0}}, {{{3, {2, 1, 3}}}, {4, {2, 2, 5, 3}}, {0}},
    {{{1, {1}}}, {1, {1}}, {0}},
};
static tile build_broadcast(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(BROADCAST, b, sample, in);
}
bool tile_sample_broadcast(int variant, tile_sample *sample) {
    const bool more = fill(broadcasts, COUNT(broadcasts), variant, 1, sample);
    sample->build = build_broadcast;
    return more;
}

static const example reshapes[] = {
    {{{2, {3, 4}}}, {1, {12}}, {0}},
    {{{1, {6}}}, {3, {2, 1, 3}}, {0}},
    {{{2, {1, 1}}}, {0, {0}}, {0}},
};
static tile build_reshape(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(RESHAPE, b, sample, in);
}
bool tile_sample_reshape(int variant, tile_sample *sample) {
    const bool more = fill(reshapes, COUNT(reshapes), variant, 1, sample);
    sample->build = build_reshape;
    return more;
}

static const example permutes[] = {
    {{{1, {5}}}, {0}, {0}},
    {{{2, {3, 4}}}, {0}, {1, 0}},
    {{{3, {2, 3, 4}}}, {0}, {1, 2, 0}},
    {{{3, {2, 3, 4}}}, {0}, {0, 2, 1}},
    {{{4, {2, 1, 3, 2}}}, {0}, {3, 1, 0, 2}},
};
static tile build_permute(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(PERMUTE, b, sample, in);
}
bool tile_sample_permute(int variant, tile_sample *sample) {
    const bool more = fill(permutes, COUNT(permutes), variant, 1, sample);
    sample->build = build_permute;
    return more;
}

/* Inside, on both edges, outside; one element. */
static const example views[] = {
    {{{1, {7}}}, {1, {3}}, {2}},
    {{{1, {4}}}, {1, {4}}, {-2}},
    {{{1, {4}}}, {1, {3}}, {3}},
    {{{2, {3, 5}}}, {2, {2, 3}}, {1, 1}},
    {{{2, {3, 5}}}, {2, {5, 7}}, {-1, -1}},
    {{{2, {3, 5}}}, {0, {0}}, {2, 4}},
};
static tile build_view(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(VIEW, b, sample, in);
}
bool tile_sample_view(int variant, tile_sample *sample) {
    const bool more = fill(views, COUNT(views), variant, 1, sample);
    sample->build = build_view;
    return more;
}

static const example assigns[] = {
    {{{1, {7}}, {1, {3}}}, {0}, {2}},          {{{1, {5}}, {1, {4}}}, {0}, {-2}},
    {{{2, {3, 5}}, {2, {2, 3}}}, {0}, {2, 3}}, {{{2, {3, 5}}, {2, {5, 7}}}, {0}, {-1, -1}},
    {{{2, {3, 5}}, {0, {0}}}, {0}, {1, 4}},
};
static tile build_assign(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(ASSIGN, b, sample, in);
}
bool tile_sample_assign(int variant, tile_sample *sample) {
    const bool more = fill(assigns, COUNT(assigns), variant, 2, sample);
    sample->build = build_assign;
    return more;
}

static const example concats[] = {
    {{{1, {3}}, {1, {4}}}, {0}, {0}},
    {{{2, {3, 2}}, {2, {1, 2}}}, {0}, {0}},
    {{{2, {3, 2}}, {2, {3, 5}}}, {0}, {1}},
    {{{3, {2, 3, 2}}, {3, {2, 1, 2}}}, {0}, {1}},
};
static tile build_concat(tile_builder *b, const tile_sample *sample, const tile *in) {
    return build(CONCAT, b, sample, in);
}
bool tile_sample_concat(int variant, tile_sample *sample) {
    const bool more = fill(concats, COUNT(concats), variant, 2, sample);
    sample->build = build_concat;
    return more;
}
