/* burgers.c: Burgers steps in 2-D, forward and with the gradient by the initial state: tiles and
 * hand-written C. */
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <tiletape.h>

#include "benchmarks/bench.h"
#include "benchmarks/burgers_hand.h"
#include "benchmarks/burgers_kernel.h"

enum { BUFFERS = 2, STATES_MAX = 128, COMPONENTS = 2 };

static const float A = 0.2f, B = 0.1f; /* of burgers_hand.h */

/* One problem: a state to start from, the derivative of the loss by the last state. */
typedef struct burgers_problem {
    int64_t rows, cols, steps;
    int64_t tile_rows, tile_cols;
    float *first[COMPONENTS], *seed[COMPONENTS]; /* dense */
} burgers_problem;

typedef struct hand_burgers {
    const burgers_problem *problem;
    hand_grid grid;
    bool gradient;
    int64_t states; /* 2 in turn, or one for each time */
    float *state[STATES_MAX][COMPONENTS];
    float *first[COMPONENTS], *seed[COMPONENTS], *d[2][COMPONENTS];
} hand_burgers;

typedef struct tile_burgers {
    const burgers_problem *problem;
    tile_context *ctx;
    tile_kernel *step;
    tile_array *state[BUFFERS][COMPONENTS], *seed[COMPONENTS];
    tape *record;
} tile_burgers;

static burgers_problem problem_begin(int64_t rows, int64_t cols, int64_t steps, int64_t tile_rows,
                                     int64_t tile_cols) {
    burgers_problem w = {rows, cols, steps, tile_rows, tile_cols, {NULL}, {NULL}};
    const int64_t count = rows * cols;
    for (int c = 0; c < COMPONENTS; c++) {
        w.first[c] = bench_zeros(count * (int64_t)sizeof(float));
        w.seed[c] = bench_zeros(count * (int64_t)sizeof(float));
        bench_noise(w.first[c], count, (uint64_t)(1 + c), -0.2, 0.8);
        bench_noise(w.seed[c], count, (uint64_t)(3 + c), -1, 1);
    }
    return w;
}

static void problem_end(const burgers_problem *w) {
    for (int c = 0; c < COMPONENTS; c++) {
        free(w->first[c]);
        free(w->seed[c]);
    }
}

static hand_burgers hand_begin(const burgers_problem *w, bool gradient, int threads) {
    hand_burgers h = {.problem = w, .gradient = gradient};
    h.grid = hand_grid_of(w->rows, w->cols, threads);
    h.states = gradient ? w->steps + 1 : 2;
    for (int c = 0; c < COMPONENTS; c++) {
        for (int64_t t = 0; t < h.states; t++) h.state[t][c] = bench_field(&h.grid, NULL);
        h.first[c] = bench_field(&h.grid, w->first[c]);
        h.seed[c] = bench_field(&h.grid, w->seed[c]);
        for (int i = 0; i < 2; i++) h.d[i][c] = bench_field(&h.grid, NULL);
    }
    return h;
}

static void hand_end(hand_burgers *h) {
    for (int c = 0; c < COMPONENTS; c++) {
        for (int64_t t = 0; t < h->states; t++) bench_free_field(&h->grid, h->state[t][c]);
        bench_free_field(&h->grid, h->first[c]);
        bench_free_field(&h->grid, h->seed[c]);
        for (int i = 0; i < 2; i++) bench_free_field(&h->grid, h->d[i][c]);
    }
}

/* Puts the first state in place. */
static void start_hand(hand_burgers *h) {
    const int64_t origin = hand_grid_origin(&h->grid);
    const size_t bytes = (size_t)hand_grid_count(&h->grid) * sizeof(float);
    for (int c = 0; c < COMPONENTS; c++)
        memcpy(h->state[0][c] - origin, h->first[c] - origin, bytes);
}

static void hand_run(void *data) {
    hand_burgers *h = data;
    const hand_grid *g = &h->grid;
    const int64_t steps = h->problem->steps;
    for (int64_t t = 0; t < steps; t++) {
        float **from = h->state[t % h->states], **to = h->state[(t + 1) % h->states];
        burgers_hand_step_f32(g, A, B, from[0], from[1], to[0], to[1]);
    }
    if (!h->gradient) return;
    for (int64_t t = steps - 1; t >= 0; t--) {
        float **at = h->state[t], **d = h->d[t % 2];
        float **dnext = t == steps - 1 ? h->seed : h->d[(t + 1) % 2];
        burgers_hand_adjoint_f32(g, A, B, at[0], at[1], dnext[0], dnext[1], d[0], d[1]);
    }
}

static size_t array_bytes(const burgers_problem *w) {
    return (size_t)(w->rows * w->cols) * sizeof(float);
}

static tile_array *new_array(tile_burgers *o, const float *dense, bool grad) {
    const burgers_problem *w = o->problem;
    tile_array *array;
    bench_must(tile_array_create(o->ctx, TILE_F32, TILE_SHAPE(w->rows, w->cols), &array));
    if (dense != NULL) bench_must(tile_array_write(array, dense, array_bytes(w)));
    if (grad) bench_must(tile_array_request_grad(array));
    return array;
}

static tile_burgers tile_begin(const burgers_problem *w, bool gradient, int threads,
                               tile_executor executor) {
    tile_burgers o = {.problem = w};
    const tile_context_options options = {.threads = threads, .executor = executor};
    bench_must(tile_context_create(&options, &o.ctx));
    bench_must(burgers_kernel_build(o.ctx, TILE_F32, w->tile_rows, w->tile_cols, &o.step));
    for (int c = 0; c < COMPONENTS; c++) {
        for (int i = 0; i < BUFFERS; i++) o.state[i][c] = new_array(&o, NULL, gradient && i == 0);
        o.seed[c] = new_array(&o, w->seed[c], false);
    }
    if (gradient) bench_must(tape_create(o.ctx, NULL, &o.record));
    return o;
}

static void tile_end(tile_burgers *o) {
    tape_destroy(o->record);
    for (int c = 0; c < COMPONENTS; c++) {
        for (int i = 0; i < BUFFERS; i++) tile_array_destroy(o->state[i][c]);
        tile_array_destroy(o->seed[c]);
    }
    tile_kernel_destroy(o->step);
    tile_context_destroy(o->ctx);
}

static void start_tiles(tile_burgers *o) {
    for (int c = 0; c < COMPONENTS; c++) {
        tile_array *first = o->state[0][c];
        bench_must(tile_array_write(first, o->problem->first[c], array_bytes(o->problem)));
        if (o->record != NULL) bench_must(tile_array_fill(tile_array_grad(first), 0));
    }
    bench_must(tile_context_sync(o->ctx));
}

static void tile_run(void *data) {
    tile_burgers *o = data;
    const burgers_problem *w = o->problem;
    const tile_grid grid = TILE_GRID((w->rows + w->tile_rows - 1) / w->tile_rows,
                                     (w->cols + w->tile_cols - 1) / w->tile_cols);
    for (int64_t t = 0; t < w->steps; t++) {
        tile_array **from = o->state[t % BUFFERS], **to = o->state[(t + 1) % BUFFERS];
        bench_must(
            tile_launch(o->record, o->step, grid, TILE_ARGS(from[0], from[1], to[0], to[1], A, B)));
    }
    if (o->record != NULL) {
        tile_array **last = o->state[w->steps % BUFFERS];
        bench_must(tape_backward_seeds(o->record, COMPONENTS, last, o->seed));
        bench_must(tape_reset(o->record));
    }
    bench_must(tile_context_sync(o->ctx));
}

static void check_one(const char *what, const hand_burgers *h, tile_array *ours,
                      const float *hand) {
    const burgers_problem *w = h->problem;
    float *dense = bench_zeros((int64_t)array_bytes(w));
    bench_must(tile_array_read(ours, dense, array_bytes(w)));
    bench_agree(what, &h->grid, dense, hand - hand_grid_origin(&h->grid),
                16.0 * (double)FLT_EPSILON * (double)(w->steps + 2));
    free(dense);
}

/* Both from the same start. */
static void check(hand_burgers *h, tile_burgers *o) {
    start_hand(h);
    start_tiles(o);
    hand_run(h);
    tile_run(o);
    const int64_t end = h->problem->steps;
    for (int c = 0; c < COMPONENTS; c++) {
        check_one("Burgers state", h, o->state[end % BUFFERS][c], h->state[end % h->states][c]);
        if (h->gradient)
            check_one("Burgers gradient", h, tile_array_grad(o->state[0][c]), h->d[0][c]);
    }
}

/* Fields a cell reads and writes in one step: u, v and their next; then both adjoints twice, and
 * u, v again. */
static double run_bytes(const burgers_problem *w, bool gradient) {
    return (double)(w->rows * w->cols * w->steps * (gradient ? 10 : 4)) * sizeof(float);
}

static void compare_with(tile_executor executor, const burgers_problem *w, bool gradient,
                         int threads, const bench_options *options) {
    const bool native = executor == TILE_EXECUTOR_NATIVE;
    bench_title title = {.name = native ? "burgers_native" : "burgers",
                         .what = gradient ? "gradient" : "forward"};
    snprintf(title.grid, sizeof title.grid, "%dx%d", (int)w->rows, (int)w->cols);
    title.threads = threads;
    if (!bench_wants(options, &title)) return;
    hand_burgers h = hand_begin(w, gradient, threads);
    tile_burgers o = tile_begin(w, gradient, threads, executor);
    title.steps = w->steps;
    title.bytes = run_bytes(w, gradient);
    const bench_candidate hand = {.run = hand_run, .data = &h};
    const bench_candidate ours = {.run = tile_run, .data = &o};
    start_hand(&h);
    start_tiles(&o);
    bench_compare(&title, &hand, &ours, &h.grid, options);
    check(&h, &o);
    hand_end(&h);
    tile_end(&o);
}

static void compare(const burgers_problem *w, bool gradient, int threads,
                    const bench_options *options) {
    compare_with(TILE_EXECUTOR_INTERPRETER, w, gradient, threads, options);
    compare_with(TILE_EXECUTOR_NATIVE, w, gradient, threads, options);
}

static void compare_all(burgers_problem w, bool forward, const bench_options *options) {
    for (int threads = options->threads_min; threads <= options->threads_max; threads++) {
        if (forward) compare(&w, false, threads, options);
        compare(&w, true, threads, options);
    }
    problem_end(&w);
}

int main(int argc, char **argv) {
    const bench_options options = bench_parse(argc, argv);
    compare_all(problem_begin(301, 941, 20, 8, 256), true, &options);
    compare_all(problem_begin(512, 512, 100, 8, 256), false, &options);
    if (!options.quick) compare_all(problem_begin(4096, 4096, 2, 1, 512), true, &options);
    return bench_finish();
}
