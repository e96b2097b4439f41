/* scatter.c: 10^7 indexed additions, forward and with the gradient: tiles and a serial loop in C,
 * which no other order of the sums is allowed to beat in bits. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench.h"
#include "benchmarks/scatter_kernel.h"

/* y[index[k]] += x[k], then dx[k] = dy[index[k]]. */
typedef struct scatter_problem {
    const char *name;
    int64_t count, bins;
    int32_t *index;
    float *x, *dy;
} scatter_problem;

typedef struct hand_scatter {
    const scatter_problem *problem;
    bool gradient;
    float *y, *dx;
} hand_scatter;

typedef struct tile_scatter_run {
    const scatter_problem *problem;
    tile_context *ctx;
    tile_kernel *kernel;
    tile_array *index, *x, *y, *dy;
    tape *record;
} tile_scatter_run;

static void hand_run(void *data) {
    hand_scatter *h = data;
    const scatter_problem *w = h->problem;
    memset(h->y, 0, (size_t)w->bins * sizeof *h->y);
    for (int64_t k = 0; k < w->count; k++) h->y[w->index[k]] += w->x[k];
    for (int64_t k = 0; h->gradient && k < w->count; k++) h->dx[k] += w->dy[w->index[k]];
}

static tile_array *array_of(tile_context *ctx, tile_dtype dtype, int64_t count, const void *from) {
    tile_array *a;
    bench_must(tile_array_create(ctx, dtype, TILE_SHAPE(count), &a));
    if (from != NULL) bench_must(tile_array_write(a, from, (size_t)count * tile_dtype_size(dtype)));
    return a;
}

static tile_scatter_run tile_begin(const scatter_problem *w, bool gradient, int threads) {
    tile_scatter_run o = {.problem = w};
    const tile_context_options options = {.threads = threads};
    bench_must(tile_context_create(&options, &o.ctx));
    bench_must(scatter_kernel_build(o.ctx, &o.kernel));
    o.index = array_of(o.ctx, TILE_I32, w->count, w->index);
    o.x = array_of(o.ctx, TILE_F32, w->count, w->x);
    o.y = array_of(o.ctx, TILE_F32, w->bins, NULL);
    o.dy = array_of(o.ctx, TILE_F32, w->bins, w->dy);
    if (!gradient) return o;
    bench_must(tile_array_request_grad(o.x));
    bench_must(tape_create(o.ctx, NULL, &o.record));
    return o;
}

static void tile_end(tile_scatter_run *o) {
    tape_destroy(o->record);
    tile_array *all[] = {o->index, o->x, o->y, o->dy};
    for (int k = 0; k < 4; k++) tile_array_destroy(all[k]);
    tile_kernel_destroy(o->kernel);
    tile_context_destroy(o->ctx);
}

static void tile_run(void *data) {
    tile_scatter_run *o = data;
    bench_must(tile_array_fill(o->y, 0));
    bench_must(tile_launch(o->record, o->kernel,
                           TILE_GRID((o->problem->count + SCATTER_TILE - 1) / SCATTER_TILE),
                           TILE_ARGS(o->x, o->index, o->y)));
    if (o->record != NULL) {
        bench_must(tape_backward_seeds(o->record, 1, &o->y, &o->dy));
        bench_must(tape_reset(o->record));
    }
    bench_must(tile_context_sync(o->ctx));
}

/* The sums of the serial loop, to the bit: blocks count as run one after the other. */
static void check(const hand_scatter *h, tile_scatter_run *o) {
    const size_t bytes = (size_t)h->problem->bins * sizeof(float);
    float *y = bench_zeros((int64_t)bytes);
    bench_must(tile_array_read(o->y, y, bytes));
    if (memcmp(y, h->y, bytes) != 0) {
        fprintf(stderr, "scatter %s: the sums are not those of a serial loop\n", h->problem->name);
        exit(1);
    }
    free(y);
}

static void compare(const scatter_problem *w, bool gradient, int threads,
                    const bench_options *options) {
    hand_scatter h = {w, gradient, bench_zeros(w->bins * (int64_t)sizeof(float)),
                      bench_zeros(w->count * (int64_t)sizeof(float))};
    tile_scatter_run o = tile_begin(w, gradient, threads);
    const hand_grid grid = hand_grid_of(1, w->count, threads);
    bench_title title = {.name = w->name, .what = gradient ? "gradient" : "forward"};
    snprintf(title.grid, sizeof title.grid, "%.0e", (double)w->bins);
    title.threads = threads;
    title.steps = 1;
    /* Indices and values are read once; the gradient reads indices, reads and writes dx. */
    title.bytes = (double)w->count * (gradient ? 5 : 2) * sizeof(float);
    const bench_candidate hand = {.run = hand_run, .data = &h};
    const bench_candidate ours = {.run = tile_run, .data = &o};
    bench_compare(&title, &hand, &ours, &grid, options);
    check(&h, &o);
    tile_end(&o);
    free(h.y);
    free(h.dx);
}

static scatter_problem problem_begin(const char *name, int64_t count, int64_t bins, bool sorted) {
    scatter_problem w = {
        name, count, bins, bench_zeros(count * 4), bench_zeros(count * 4), bench_zeros(bins * 4)};
    bench_noise(w.x, count, 1, -1, 1);
    bench_noise(w.dy, bins, 2, -1, 1);
    bench_noise((float *)w.index, count, 3, 0, 1); /* in place of indices, turned into them below */
    for (int64_t k = 0; k < count; k++) {
        float u;
        memcpy(&u, &w.index[k], sizeof u);
        const double place = sorted ? (double)k / (double)count * (double)bins + 64 * (double)u
                                    : (double)u * (double)bins;
        w.index[k] = (int32_t)fmin(place, (double)(bins - 1));
    }
    return w;
}

static void problem_end(const scatter_problem *w) {
    free(w->index);
    free(w->x);
    free(w->dy);
}

static void run_all(const char *name, bool sorted, int64_t count, int64_t bins,
                    const bench_options *options) {
    scatter_problem w = problem_begin(name, count, bins, sorted);
    for (int threads = options->threads_min; threads <= options->threads_max; threads++) {
        compare(&w, false, threads, options);
        compare(&w, true, threads, options);
    }
    problem_end(&w);
}

int main(int argc, char **argv) {
    const bench_options options = bench_parse(argc, argv);
    const int64_t count = options.quick ? 1000000 : 10000000;
    run_all("scatter", false, count, 100000, &options);
    run_all("scatter", false, count, 1000000, &options);
    run_all("scatter_near", true, count, 100000, &options);
    if (!options.quick) run_all("scatter", false, count, 10000000, &options);
    return bench_finish();
}
