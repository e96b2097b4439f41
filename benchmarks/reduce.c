/* reduce.c: the sum and the largest of 10^7 numbers, and the gradient of a dot product: tiles and a
 * vector loop in C. Ours has a fixed tree: the same bits for any number of threads. */
#include <math.h>
#include <stdlib.h>

#include "benchmarks/bench.h"

typedef enum reduce_what { SUM, DOT, DOT_GRADIENT, WHATS } reduce_what;

static const char *const names[WHATS] = {"sum", "dot", "dot+grad"};

typedef struct hand_reduce {
    reduce_what what;
    int64_t count;
    int threads;
    float *x, *y, *dx;
    double result;
} hand_reduce;

typedef struct tile_reduce {
    reduce_what what;
    tile_context *ctx;
    tile_array *x, *y, *result;
    tape *record;
} tile_reduce;

static void hand_run(void *data) {
    hand_reduce *h = data;
    const int threads = h->threads;
    const float *x = h->x, *y = h->y;
    double sum = 0;
    if (h->what == SUM) {
#pragma omp parallel for simd schedule(static) num_threads(threads) reduction(+ : sum)
        for (int64_t k = 0; k < h->count; k++) sum += (double)x[k];
    } else {
#pragma omp parallel for simd schedule(static) num_threads(threads) reduction(+ : sum)
        for (int64_t k = 0; k < h->count; k++) sum += (double)(x[k] * y[k]);
    }
    h->result = sum;
    if (h->what != DOT_GRADIENT) return;
    float *dx = h->dx;
#pragma omp parallel for simd schedule(static) num_threads(threads)
    for (int64_t k = 0; k < h->count; k++) dx[k] += y[k];
}

static tile_array *array_of(tile_context *ctx, int64_t count, const float *from) {
    tile_array *a;
    bench_must(tile_array_create(ctx, TILE_F32, TILE_SHAPE(count), &a));
    if (from != NULL) bench_must(tile_array_write(a, from, (size_t)count * sizeof *from));
    return a;
}

static void tile_run(void *data) {
    tile_reduce *o = data;
    if (o->what == SUM)
        bench_must(tape_sum(o->record, o->x, o->result));
    else
        bench_must(tape_dot(o->record, o->x, o->y, o->result));
    if (o->record != NULL) {
        bench_must(tape_backward(o->record, o->result));
        bench_must(tape_reset(o->record));
    }
    bench_must(tile_context_sync(o->ctx));
}

static tile_reduce tile_begin(const hand_reduce *h) {
    tile_reduce o = {.what = h->what};
    const tile_context_options options = {.threads = h->threads};
    bench_must(tile_context_create(&options, &o.ctx));
    o.x = array_of(o.ctx, h->count, h->x);
    o.y = array_of(o.ctx, h->count, h->y);
    o.result = array_of(o.ctx, 1, NULL);
    if (h->what != DOT_GRADIENT) return o;
    bench_must(tile_array_request_grad(o.x));
    bench_must(tape_create(o.ctx, NULL, &o.record));
    return o;
}

static void tile_end(tile_reduce *o) {
    tape_destroy(o->record);
    tile_array_destroy(o->x);
    tile_array_destroy(o->y);
    tile_array_destroy(o->result);
    tile_context_destroy(o->ctx);
}

static void check(const hand_reduce *h, tile_reduce *o) {
    float result;
    bench_must(tile_array_read(o->result, &result, sizeof result));
    if (fabs((double)result - h->result) <= 1e-6 * (fabs(h->result) + sqrt((double)h->count)))
        return;
    fprintf(stderr, "%s: %.9g, by hand %.9g\n", names[h->what], (double)result, h->result);
    exit(1);
}

static void compare(hand_reduce *h, const bench_options *options) {
    tile_reduce o = tile_begin(h);
    const hand_grid grid = hand_grid_of(1, h->count, h->threads);
    bench_title title = {.name = "reduce", .what = names[h->what]};
    static const int passes[WHATS] = {1, 2, 5};
    snprintf(title.grid, sizeof title.grid, "%.0e", (double)h->count);
    title.threads = h->threads;
    title.steps = 1;
    title.bytes = (double)h->count * passes[h->what] * sizeof(float);
    const bench_candidate hand = {.run = hand_run, .data = h};
    const bench_candidate ours = {.run = tile_run, .data = &o};
    bench_compare(&title, &hand, &ours, &grid, options);
    check(h, &o);
    tile_end(&o);
}

static void run_all(int64_t count, const bench_options *options) {
    hand_reduce h = {.count = count};
    h.x = bench_zeros(count * 4);
    h.y = bench_zeros(count * 4);
    h.dx = bench_zeros(count * 4);
    bench_noise(h.x, count, 1, -1, 1);
    bench_noise(h.y, count, 2, -1, 1);
    for (h.threads = options->threads_min; h.threads <= options->threads_max; h.threads++)
        for (int what = 0; what < WHATS; what++) {
            h.what = (reduce_what)what;
            compare(&h, options);
        }
    free(h.x);
    free(h.y);
    free(h.dx);
}

int main(int argc, char **argv) {
    const bench_options options = bench_parse(argc, argv);
    run_all(100000, &options);
    run_all(options.quick ? 1000000 : 10000000, &options);
    return bench_finish();
}
