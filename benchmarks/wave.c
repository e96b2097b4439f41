/* wave.c: acoustic wave steps, forward and with gradients: tiles against hand-written C. */
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <tiletape.h>

#include "benchmarks/bench.h"
#include "benchmarks/wave_hand.h"
#include "benchmarks/wave_kernel.h"

enum { BUFFERS = 3, STATES_MAX = 128 };

static const float COURANT = 0.5f; /* k of wave_hand.h; v is 0.6 to 1 */

typedef enum wave_mode { FORWARD, BY_STATE, BY_VELOCITY, MODES } wave_mode;

static const char *const MODE_NAME[MODES] = {"forward", "gradient", "gradient_v"};

/* Fields a cell reads and writes in one step: prev, p, v, s, next; then dnext, v, s, dprev and dp
 * twice; then p and dv twice. */
static const int MODE_FIELDS[MODES] = {5, 11, 14};

/* One problem: two states to start from, the derivative of the loss by the last state. */
typedef struct wave_problem {
    int64_t rows, cols, steps;
    int64_t tile_rows, tile_cols;
    float *first[2], *v, *s, *seed; /* dense */
} wave_problem;

typedef struct hand_wave {
    const wave_problem *problem;
    hand_grid grid;
    wave_mode mode;
    int64_t states; /* 3 in turn, or one for each time */
    float *state[STATES_MAX], *first[2], *v, *s, *seed, *d[BUFFERS], *dv, *ring;
} hand_wave;

typedef struct tile_wave {
    const wave_problem *problem;
    wave_mode mode;
    tile_context *ctx;
    tile_kernel *step;
    tile_array *p[BUFFERS], *v, *s, *seed;
    tape *record;
} tile_wave;

/* Damping over 20 cells from each edge. */
static void fill_sponge(const wave_problem *w) {
    for (int64_t i = 0; i < w->rows; i++)
        for (int64_t j = 0; j < w->cols; j++) {
            int64_t edge = i < w->rows - 1 - i ? i : w->rows - 1 - i;
            if (j < edge) edge = j;
            if (w->cols - 1 - j < edge) edge = w->cols - 1 - j;
            w->s[i * w->cols + j] =
                edge < 20 ? 1.0f - 2e-4f * (float)((20 - edge) * (20 - edge)) : 1;
        }
}

static wave_problem problem_begin(int64_t rows, int64_t cols, int64_t steps, int64_t tile_rows,
                                  int64_t tile_cols) {
    wave_problem w = {rows, cols, steps, tile_rows, tile_cols, {NULL}, NULL, NULL, NULL};
    float **field[] = {&w.first[0], &w.first[1], &w.v, &w.seed, &w.s};
    const int64_t count = rows * cols;
    for (int f = 0; f < 5; f++) *field[f] = bench_zeros(count * (int64_t)sizeof(float));
    bench_noise(w.first[0], count, 1, -1, 1);
    memcpy(w.first[1], w.first[0], (size_t)count * sizeof(float));
    bench_noise(w.v, count, 2, 0.6, 1);
    bench_noise(w.seed, count, 3, -1, 1);
    fill_sponge(&w);
    return w;
}

static void problem_end(const wave_problem *w) {
    free(w->first[0]);
    free(w->first[1]);
    free(w->v);
    free(w->s);
    free(w->seed);
}

static hand_wave hand_begin(const wave_problem *w, wave_mode mode, int threads) {
    hand_wave h = {.problem = w, .grid = hand_grid_of(w->rows, w->cols, threads), .mode = mode};
    h.states = mode == BY_VELOCITY ? w->steps + 2 : BUFFERS;
    for (int64_t t = 0; t < h.states; t++) h.state[t] = bench_field(&h.grid, NULL);
    for (int i = 0; i < 2; i++) h.first[i] = bench_field(&h.grid, w->first[i]);
    h.v = bench_field(&h.grid, w->v);
    h.s = bench_field(&h.grid, w->s);
    if (mode == FORWARD) return h;
    h.seed = bench_field(&h.grid, w->seed);
    for (int i = 0; i < BUFFERS; i++) h.d[i] = bench_field(&h.grid, NULL);
    if (mode == BY_VELOCITY) h.dv = bench_field(&h.grid, NULL);
    h.ring = bench_zeros(wave_hand_ring(&h.grid) * (int64_t)sizeof(float));
    return h;
}

static void hand_end(hand_wave *h) {
    for (int64_t t = 0; t < h->states; t++) bench_free_field(&h->grid, h->state[t]);
    float *const field[] = {h->first[0], h->first[1], h->v,    h->s, h->seed,
                            h->d[0],     h->d[1],     h->d[2], h->dv};
    for (int f = 0; f < 9; f++) bench_free_field(&h->grid, field[f]);
    free(h->ring);
}

/* Puts the first states in place; a run goes on from where the one before ended. */
static void start_hand(hand_wave *h) {
    const int64_t origin = hand_grid_origin(&h->grid);
    const size_t bytes = (size_t)hand_grid_count(&h->grid) * sizeof(float);
    for (int i = 0; i < 2; i++) memcpy(h->state[i] - origin, h->first[i] - origin, bytes);
    if (h->dv != NULL) memset(h->dv - origin, 0, bytes);
}

static float *hand_state(const hand_wave *h, int64_t t) {
    return h->state[t % h->states];
}

static void hand_run(void *data) {
    const hand_wave *h = data;
    const hand_grid *g = &h->grid;
    const int64_t steps = h->problem->steps;
    for (int64_t t = 0; t < steps; t++)
        wave_hand_step_f32(g, COURANT, hand_state(h, t), hand_state(h, t + 1), h->v, h->s,
                           hand_state(h, t + 2));
    if (h->mode == FORWARD) return;
    for (int64_t t = steps - 1; t >= 0; t--) {
        const bool last = t == steps - 1;
        const float *dnext = last ? h->seed : h->d[(t + 2) % BUFFERS];
        wave_hand_adjoint_f32(g, COURANT, h->dv != NULL ? hand_state(h, t + 1) : NULL, h->v, h->s,
                              dnext, h->d[t % BUFFERS], h->d[(t + 1) % BUFFERS], !last, h->dv,
                              h->ring);
    }
}

static tile_array *new_array(tile_wave *o, const float *dense, bool grad) {
    const wave_problem *w = o->problem;
    tile_array *array;
    bench_must(tile_array_create(o->ctx, TILE_F32, TILE_SHAPE(w->rows, w->cols), &array));
    if (dense != NULL)
        bench_must(tile_array_write(array, dense, (size_t)(w->rows * w->cols) * sizeof(float)));
    if (grad) bench_must(tile_array_request_grad(array));
    return array;
}

static tile_wave tile_begin(const wave_problem *w, wave_mode mode, int threads,
                            tile_executor executor) {
    tile_wave o = {.problem = w, .mode = mode};
    const tile_context_options options = {.threads = threads, .executor = executor};
    bench_must(tile_context_create(&options, &o.ctx));
    bench_must(wave_kernel_build(o.ctx, TILE_F32, w->tile_rows, w->tile_cols, &o.step));
    for (int i = 0; i < BUFFERS; i++) o.p[i] = new_array(&o, NULL, mode == BY_STATE && i < 2);
    o.v = new_array(&o, w->v, mode == BY_VELOCITY);
    o.s = new_array(&o, w->s, false);
    if (mode != FORWARD) {
        o.seed = new_array(&o, w->seed, false);
        bench_must(tape_create(o.ctx, NULL, &o.record));
    }
    return o;
}

static void tile_end(tile_wave *o) {
    tape_destroy(o->record);
    for (int i = 0; i < BUFFERS; i++) tile_array_destroy(o->p[i]);
    tile_array_destroy(o->v);
    tile_array_destroy(o->s);
    tile_array_destroy(o->seed);
    tile_kernel_destroy(o->step);
    tile_context_destroy(o->ctx);
}

static void start_tiles(tile_wave *o) {
    const size_t bytes = (size_t)(o->problem->rows * o->problem->cols) * sizeof(float);
    for (int i = 0; i < 2; i++) {
        bench_must(tile_array_write(o->p[i], o->problem->first[i], bytes));
        tile_array *dp = tile_array_grad(o->p[i]);
        if (dp != NULL) bench_must(tile_array_fill(dp, 0));
    }
    tile_array *dv = tile_array_grad(o->v);
    if (dv != NULL) bench_must(tile_array_fill(dv, 0));
    bench_must(tile_context_sync(o->ctx));
}

static void tile_run(void *data) {
    tile_wave *o = data;
    const wave_problem *w = o->problem;
    const tile_grid grid = TILE_GRID((w->rows + w->tile_rows - 1) / w->tile_rows,
                                     (w->cols + w->tile_cols - 1) / w->tile_cols);
    for (int64_t t = 0; t < w->steps; t++)
        bench_must(tile_launch(o->record, o->step, grid,
                               TILE_ARGS(o->p[t % BUFFERS], o->p[(t + 1) % BUFFERS], o->v, o->s,
                                         o->p[(t + 2) % BUFFERS], COURANT)));
    if (o->record != NULL) {
        tile_array *last = o->p[(w->steps + 1) % BUFFERS];
        bench_must(tape_backward_seeds(o->record, 1, &last, &o->seed));
        bench_must(tape_reset(o->record));
    }
    bench_must(tile_context_sync(o->ctx));
}

static void check_one(const char *what, const hand_wave *h, tile_array *ours, const float *hand) {
    const wave_problem *w = h->problem;
    const int64_t bytes = w->rows * w->cols * (int64_t)sizeof(float);
    float *dense = bench_zeros(bytes);
    bench_must(tile_array_read(ours, dense, (size_t)bytes));
    bench_agree(what, &h->grid, dense, hand - hand_grid_origin(&h->grid),
                16.0 * (double)FLT_EPSILON * (double)(w->steps + 2));
    free(dense);
}

/* Both from the same start. */
static void check(hand_wave *h, tile_wave *o) {
    start_hand(h);
    start_tiles(o);
    hand_run(h);
    tile_run(o);
    const int64_t end = h->problem->steps + 1;
    check_one("wave state", h, o->p[end % BUFFERS], hand_state(h, end));
    if (h->mode == BY_STATE)
        for (int i = 0; i < 2; i++)
            check_one("wave gradient", h, tile_array_grad(o->p[i]), h->d[i]);
    if (h->mode == BY_VELOCITY)
        check_one("wave velocity gradient", h, tile_array_grad(o->v), h->dv);
}

static void compare_with(tile_executor executor, const wave_problem *w, wave_mode mode, int threads,
                         const bench_options *options) {
    const bool native = executor == TILE_EXECUTOR_NATIVE;
    bench_title title = {.name = native ? "wave_native" : "wave",
                         .what = MODE_NAME[mode],
                         .threads = threads};
    snprintf(title.grid, sizeof title.grid, "%dx%d", (int)w->rows, (int)w->cols);
    if (!bench_wants(options, &title)) return;
    hand_wave h = hand_begin(w, mode, threads);
    tile_wave o = tile_begin(w, mode, threads, executor);
    title.steps = w->steps;
    title.bytes = (double)(w->rows * w->cols * w->steps * MODE_FIELDS[mode]) * sizeof(float);
    const bench_candidate hand = {.run = hand_run, .data = &h};
    const bench_candidate ours = {.run = tile_run, .data = &o};
    start_hand(&h);
    start_tiles(&o);
    bench_compare(&title, &hand, &ours, &h.grid, options);
    check(&h, &o);
    hand_end(&h);
    tile_end(&o);
}

static void compare(const wave_problem *w, wave_mode mode, int threads,
                    const bench_options *options) {
    compare_with(TILE_EXECUTOR_INTERPRETER, w, mode, threads, options);
    compare_with(TILE_EXECUTOR_NATIVE, w, mode, threads, options);
}

static void compare_all(wave_problem w, const bench_options *options) {
    for (int mode = 0; mode < MODES; mode++)
        for (int threads = options->threads_min; threads <= options->threads_max; threads++)
            compare(&w, (wave_mode)mode, threads, options);
    problem_end(&w);
}

int main(int argc, char **argv) {
    const bench_options options = bench_parse(argc, argv);
    compare_all(problem_begin(301, 941, 40, 8, 256), &options);
    if (!options.quick) compare_all(problem_begin(4096, 4096, 2, 1, 512), &options);
    return bench_finish();
}
