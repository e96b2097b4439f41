/* latency.c: what a launch costs beside its work: recording, the call itself, allocations. */
#include <stdlib.h>
#include <tiletape.h>

#include "benchmarks/bench.h"
#include "benchmarks/latency_alloc.h"
#include "benchmarks/latency_hand.h"

enum { TINY = 16, SMALL = 1024, LAUNCHES = 2000 };

/* A chain of launches that go to and fro between two arrays. */
typedef struct chain {
    tile_context *ctx;
    tile_kernel *kernel;
    tile_array *x[2], *seed;
    tape *record;
    int64_t count;
    bool on_tape, with_backward;
    int64_t forward_allocs, backward_allocs; /* of the last run */
} chain;

/* y = formula of x, one block. */
static tile_kernel *build(tile_context *ctx, const char *name, bool linear, int64_t count) {
    tile_builder *b = tile_kernel_begin(ctx, name);
    tile_param x = tile_array_param(b, "x", TILE_F32, 1);
    tile_param y = tile_array_param(b, "y", TILE_F32, 1);
    tile first = tile_block_start(b, 0, count);
    tile xs = tile_load(x, TILE_SHAPE(count), TILE_AT(first));
    tile ys = linear ? tile_expr("0.5*xs", xs) : tile_expr("xs + 0.01*(xs*xs)", xs);
    tile_store(y, ys, TILE_AT(first));
    tile_kernel *kernel;
    bench_must(tile_kernel_end(b, &kernel));
    return kernel;
}

static chain chain_begin(bool linear, int64_t count, int threads) {
    chain c = {.count = count, .on_tape = true};
    const tile_context_options options = {.threads = threads,
                                          .executor = TILE_EXECUTOR_INTERPRETER};
    bench_must(tile_context_create(&options, &c.ctx));
    c.kernel = build(c.ctx, linear ? "halve" : "grow", linear, count);
    for (int i = 0; i < 2; i++)
        bench_must(tile_array_create(c.ctx, TILE_F32, TILE_SHAPE(count), &c.x[i]));
    bench_must(tile_array_create(c.ctx, TILE_F32, TILE_SHAPE(count), &c.seed));
    bench_must(tile_array_fill(c.x[0], 0.5));
    bench_must(tile_array_fill(c.seed, 1));
    bench_must(tile_array_request_grad(c.x[0]));
    bench_must(tape_create(c.ctx, NULL, &c.record));
    return c;
}

static void chain_end(chain *c) {
    tape_destroy(c->record);
    for (int i = 0; i < 2; i++) tile_array_destroy(c->x[i]);
    tile_array_destroy(c->seed);
    tile_kernel_destroy(c->kernel);
    tile_context_destroy(c->ctx);
}

static void chain_prepare(void *data) {
    chain *c = data;
    bench_must(tape_reset(c->record));
    bench_must(tile_array_fill(c->x[0], 0.5));
    bench_must(tile_context_sync(c->ctx));
}

static void chain_run(void *data) {
    chain *c = data;
    const int64_t before = latency_alloc_count();
    for (int i = 0; i < LAUNCHES; i++)
        bench_must(tile_launch(c->on_tape ? c->record : NULL, c->kernel, TILE_GRID(1),
                               TILE_ARGS(c->x[i % 2], c->x[(i + 1) % 2])));
    bench_must(tile_context_sync(c->ctx));
    c->forward_allocs = latency_alloc_count() - before;
    if (!c->with_backward) return;
    bench_must(tape_backward_seeds(c->record, 1, &c->x[LAUNCHES % 2], &c->seed));
    bench_must(tile_context_sync(c->ctx));
    c->backward_allocs = latency_alloc_count() - before - c->forward_allocs;
}

/* The same chain by hand, each state in a buffer of its own. */
typedef struct hand_chain {
    hand_tape tape;
    float *states, *d[2];
    bool with_backward;
} hand_chain;

static hand_chain hand_begin(void) {
    hand_chain h = {.tape.capacity = LAUNCHES};
    h.tape.record = bench_zeros(LAUNCHES * (int64_t)sizeof(hand_record));
    h.states = bench_zeros((LAUNCHES + 1) * SMALL * (int64_t)sizeof(float));
    for (int i = 0; i < 2; i++) h.d[i] = bench_zeros(SMALL * (int64_t)sizeof(float));
    for (int i = 0; i < SMALL; i++) h.states[i] = 0.5f;
    return h;
}

static void hand_run(void *data) {
    hand_chain *h = data;
    h->tape.count = 0;
    for (int64_t i = 0; i < LAUNCHES; i++) {
        float *x = h->states + i * SMALL;
        hand_launch(&h->tape, x, x + SMALL, h->d[(i + 1) % 2], h->d[i % 2], SMALL);
    }
    for (int i = 0; i < SMALL; i++) h->d[LAUNCHES % 2][i] = 1;
    if (h->with_backward) hand_backward(&h->tape);
}

static void hand_end(hand_chain *h) {
    free(h->tape.record);
    free(h->states);
    for (int i = 0; i < 2; i++) free(h->d[i]);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds a launch: median over the rounds of a's time less b's (b may be NULL). */
static double nanoseconds(const bench_candidate *a, const bench_candidate *b, int rounds) {
    double t[BENCH_ROUNDS_MAX];
    for (int r = 0; r < rounds; r++) t[r] = a->seconds[r] - (b != NULL ? b->seconds[r] : 0);
    qsort(t, (size_t)rounds, sizeof t[0], compare_doubles);
    return 1e9 / LAUNCHES * t[rounds / 2];
}

/* A launch with nearly nothing to do: called, and called and recorded. */
static void measure_recording(bool linear, int threads, const bench_options *options) {
    const char *name = linear ? "linear" : "kept"; /* kept: the adjoint needs each old value */
    chain bare = chain_begin(linear, TINY, threads), taped = chain_begin(linear, TINY, threads);
    bare.on_tape = false;
    bench_candidate c[2] = {{.prepare = chain_prepare, .run = chain_run, .data = &bare},
                            {.prepare = chain_prepare, .run = chain_run, .data = &taped}};
    bench_measure(c, 2, options->rounds, 0.001);
    const double total = nanoseconds(&c[1], NULL, options->rounds);
    const double alone = nanoseconds(&c[1], &c[0], options->rounds);
    const double call = nanoseconds(&c[0], NULL, options->rounds);
    printf("%-8s %7d %12.0f %12.0f %12.0f %14.3f\n", name, threads, call, total, alone,
           (double)taped.forward_allocs / LAUNCHES);
    bench_line("latency %s unrecorded_ns %d %.0f", name, threads, call);
    bench_line("latency %s recorded_ns %d %.0f", name, threads, total);
    bench_line("latency %s recording_ns %d %.0f", name, threads, alone);
    bench_line("latency %s recording_allocations %d %lld", name, threads,
               (long long)taped.forward_allocs);
    bench_line("latency %s unrecorded_allocations %d %lld", name, threads,
               (long long)bare.forward_allocs);
    chain_end(&bare);
    chain_end(&taped);
}

/* A kernel of 1,024 elements, forward and backward, against records in an array. */
static void measure_tape(int threads, const bench_options *options) {
    chain ours = chain_begin(false, SMALL, threads), both = chain_begin(false, SMALL, threads);
    hand_chain hand = hand_begin(), hand_both = hand_begin();
    both.with_backward = hand_both.with_backward = true;
    bench_candidate c[4] = {{.run = hand_run, .data = &hand},
                            {.run = hand_run, .data = &hand_both},
                            {.prepare = chain_prepare, .run = chain_run, .data = &ours},
                            {.prepare = chain_prepare, .run = chain_run, .data = &both}};
    const int rounds = options->rounds;
    bench_measure(c, 4, rounds, 0.001);
    const double hand_forward = nanoseconds(&c[0], NULL, rounds);
    const double hand_backward_ns = nanoseconds(&c[1], &c[0], rounds);
    const double forward = nanoseconds(&c[2], NULL, rounds);
    const double backward = nanoseconds(&c[3], &c[2], rounds);
    printf("%7d %12.3f %12.3f %12.3f %12.3f %14.3f\n", threads, 1e-3 * forward, 1e-3 * backward,
           1e-3 * hand_forward, 1e-3 * hand_backward_ns, (double)both.backward_allocs / LAUNCHES);
    bench_line("latency small forward_us %d %.3f", threads, 1e-3 * forward);
    bench_line("latency small backward_us %d %.3f", threads, 1e-3 * backward);
    bench_line("latency small backward_allocations %d %lld", threads,
               (long long)both.backward_allocs);
    bench_line("ratio latency forward %d %d %.2f", SMALL, threads, forward / hand_forward);
    bench_line("ratio latency backward %d %d %.2f", SMALL, threads, backward / hand_backward_ns);
    chain_end(&ours);
    chain_end(&both);
    hand_end(&hand);
    hand_end(&hand_both);
}

int main(int argc, char **argv) {
    const bench_options options = bench_parse(argc, argv);
    printf("%d elements, one launch: nanoseconds\n", TINY);
    printf("%-8s %7s %12s %12s %12s %14s\n", "kernel", "threads", "unrecorded", "recorded",
           "recording", "allocs/launch");
    for (int linear = 1; linear >= 0; linear--)
        for (int threads = options.threads_min; threads <= options.threads_max; threads++)
            measure_recording(linear, threads, &options);
    printf("\n%d elements, one launch: microseconds\n", SMALL);
    printf("%7s %12s %12s %12s %12s %14s\n", "threads", "forward", "backward", "hand forward",
           "hand backw.", "allocs/launch");
    for (int threads = options.threads_min; threads <= options.threads_max; threads++)
        measure_tape(threads, &options);
    return bench_finish();
}
