/* model.c: the wave equation as tile kernels, shots on a tape, misfit and gradient.
 *
 *   d2p/dt2 = v^2 (lap p + w(t) at the source)
 *
 * in 2nd order in time and 4th order in space, damped towards the rim:
 *
 *   p[t+1] = damp (2 p[t] - damp p[t-1] + (v dt/h)^2 (h^2 lap p[t] + w[t] at the source cell)) */
#include "model.h"

enum { ROW = 512, FEW = 128 }; /* elements of a block, of the grid and of the receivers */

static int64_t blocks(int64_t count, int64_t size) {
    return (count + size - 1) / size;
}

/* k = (v dt/h)^2 / 12 on the padded grid; outside the model its rim's velocity goes on. */
static void build_extend(wave_model *m) {
    tile_builder *b = tile_kernel_begin(m->ctx, "extend");
    tile_param velocity = tile_array_param(b, "velocity", m->dtype, 2);
    tile_param model_column = tile_array_param(b, "model_column", TILE_I32, 1);
    tile_param k = tile_array_param(b, "k", m->dtype, 2);
    tile scale = tile_real_param(b, "scale", m->dtype);
    tile top = tile_int_param(b, "top"), last = tile_int_param(b, "last");

    tile row = tile_block_index(b, 0), first = tile_block_start(b, 1, ROW), zero = tile_int(b, 0);
    tile z = tile_expr("min(max(row - top, 0), last)", row, top, last);
    tile x = tile_load_padded(model_column, TILE_SHAPE(ROW), TILE_AT(first), -1);
    tile v = tile_load_indexed(velocity, x, TILE_SHAPE(1, ROW), TILE_AT(z, zero), 1);
    tile_store(k, tile_expr("scale * v * v", scale, v), TILE_AT(row, first));
    must(tile_kernel_end(b, &m->extend));
}

/* The sum of the four neighbours at a distance. */
static tile ring(tile_param p, tile_shape shape, tile_offset at, int64_t distance) {
    tile n = tile_load(p, shape, TILE_SHIFT(at, -distance, 0));
    tile s = tile_load(p, shape, TILE_SHIFT(at, distance, 0));
    tile w = tile_load(p, shape, TILE_SHIFT(at, 0, -distance));
    tile e = tile_load(p, shape, TILE_SHIFT(at, 0, distance));
    return tile_expr("n + s + w + e", n, s, w, e);
}

/* One step without the source; lap is 12 h^2 lap p. */
static void build_step(wave_model *m) {
    tile_builder *b = tile_kernel_begin(m->ctx, "step");
    tile_param ks = tile_array_param(b, "k", m->dtype, 2);
    tile_param damps = tile_array_param(b, "damp", m->dtype, 2);
    tile_param before = tile_array_param(b, "before", m->dtype, 2);
    tile_param now = tile_array_param(b, "now", m->dtype, 2);
    tile_param next = tile_array_param(b, "next", m->dtype, 2);

    tile_shape shape = TILE_SHAPE(1, ROW);
    tile_offset at = TILE_AT(tile_block_start(b, 0, 1), tile_block_start(b, 1, ROW));
    tile k = tile_load(ks, shape, at), damp = tile_load(damps, shape, at);
    tile p = tile_load(now, shape, at), q = tile_load(before, shape, at);
    tile near = ring(now, shape, at, 1), far = ring(now, shape, at, 2);
    tile lap = tile_expr("16*near - far - 60*p", near, far, p);
    tile_store(next, tile_expr("damp * (2*p - damp*q + k*lap)", damp, p, q, k, lap), at);
    must(tile_kernel_end(b, &m->step));
}

/* next += (v dt/h)^2 w[t] at the source. */
static void build_inject(wave_model *m) {
    tile_builder *b = tile_kernel_begin(m->ctx, "inject");
    tile_param ks = tile_array_param(b, "k", m->dtype, 2);
    tile_param wavelet = tile_array_param(b, "wavelet", m->dtype, 1);
    tile_param source_column = tile_array_param(b, "source_column", TILE_I32, 1);
    tile_param next = tile_array_param(b, "next", m->dtype, 2);
    tile row = tile_int_param(b, "row"), shot = tile_int_param(b, "shot"),
         t = tile_int_param(b, "t");

    tile_offset at = TILE_AT(row, tile_int(b, 0));
    tile x = tile_load(source_column, TILE_SHAPE(1), TILE_AT(shot));
    tile k = tile_load_indexed(ks, x, TILE_SHAPE(1, 1), at, 1);
    tile w = tile_load(wavelet, TILE_SHAPE(1), TILE_AT(t));
    tile_atomic_add_indexed(next, x, tile_expr("12 * k * w", k, w), at, 1);
    must(tile_kernel_end(b, &m->inject));
}

/* traces[t, :] = next at the receivers. */
static void build_receive(wave_model *m) {
    tile_builder *b = tile_kernel_begin(m->ctx, "receive");
    tile_param receiver_column = tile_array_param(b, "receiver_column", TILE_I32, 1);
    tile_param next = tile_array_param(b, "next", m->dtype, 2);
    tile_param traces = tile_array_param(b, "traces", m->dtype, 2);
    tile row = tile_int_param(b, "row"), t = tile_int_param(b, "t");

    tile first = tile_block_start(b, 0, FEW);
    tile x = tile_load_padded(receiver_column, TILE_SHAPE(FEW), TILE_AT(first), -1);
    tile p = tile_load_indexed(next, x, TILE_SHAPE(1, FEW), TILE_AT(row, tile_int(b, 0)), 1);
    tile_store(traces, p, TILE_AT(t, first));
    must(tile_kernel_end(b, &m->receive));
}

void model_build_kernels(wave_model *m) {
    build_extend(m);
    build_step(m);
    build_inject(m);
    build_receive(m);
}

void model_rest(wave_model *m, tape *record) {
    for (int i = 0; i < 3; i++) must(tape_fill(record, m->pressure[i], 0));
}

void model_run(wave_model *m, tape *record, int64_t shot) {
    const survey *s = m->survey;
    tile_array **p = m->pressure;
    tile_grid grid = TILE_GRID(survey_rows(s), blocks(survey_columns(s), ROW));
    double ratio = s->dt / s->spacing;
    int64_t row = s->top + s->row;

    must(tile_launch(record, m->extend, grid,
                     TILE_ARGS(m->velocity, m->model_column, m->k, ratio * ratio / 12, s->top,
                               s->nz - 1)));
    for (int64_t t = 0; t < s->steps; t++) {
        tile_array *before = p[t % 3], *now = p[(t + 1) % 3], *next = p[(t + 2) % 3];
        must(tile_launch(record, m->step, grid, TILE_ARGS(m->k, m->damp, before, now, next)));
        must(tile_launch(record, m->inject, TILE_GRID(1),
                         TILE_ARGS(m->k, m->wavelet, m->source_column, next, row, shot, t)));
        must(tile_launch(record, m->receive, TILE_GRID(blocks(s->nx, FEW)),
                         TILE_ARGS(m->receiver_column, next, m->traces, row, t)));
    }
}

void model_shot(wave_model *m, int64_t shot, tile_array *traces) {
    model_rest(m, NULL);
    model_run(m, NULL, shot);
    must(tape_copy(NULL, m->traces, traces));
}

double model_gradient(wave_model *m, tile_array *const *observed) {
    double sum = 0, misfit = 0;
    must(tape_fill(NULL, tile_array_grad(m->velocity), 0));
    for (int64_t shot = 0; shot < m->survey->shots; shot++) {
        model_rest(m, m->record);
        model_run(m, m->record, shot);
        must(tape_misfit(m->record, m->traces, observed[shot], m->misfit));
        must(tape_backward(m->record, m->misfit));
        must(tape_reset(m->record));
        array_read(m->misfit, &misfit);
        sum += misfit;
    }
    return sum;
}
