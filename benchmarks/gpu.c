/* gpu.c: kernels on a CUDA device, forward and gradient, against the bandwidth of a copy and the
 * rate of multiply-adds measured in the same run; launches a second, one by one and replayed.
 *
 * Bytes are those that must move at least, flops those of the formula; a gradient's are its own,
 * without the forward run. --quick: small arrays. --cpu: on the CPU, without the limits. */
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "benchmarks/bench.h"
#include "benchmarks/burgers_kernel.h"
#include "benchmarks/gpu_limits.h"
#include "benchmarks/nbody_kernel.h"
#include "benchmarks/scatter_kernel.h"
#include "benchmarks/wave_kernel.h"

enum { ARRAYS = 8, ENDS = 2, ROUNDS = 5, LINE = 1024, CHAIN = 1000, TINY = 1024 };

typedef struct problem {
    const char *name;
    tile_context *ctx;
    tile_kernel *kernel;
    tile_array *a[ARRAYS]; /* NULL where there is none */
    tile_array *end[ENDS]; /* whose derivative is given: 1 everywhere */
    int steps;             /* recorded together */
    int64_t grid[2];
    bool flops;           /* work is counted in flops, else in bytes */
    double work, descent; /* of a step forward, and of its gradient */
    void (*launch)(const struct problem *p, tape *record, int step);
} problem;

typedef struct limits {
    double bytes, flops; /* a second; 0: not measured */
} limits;

static tile_array *zeros(tile_context *ctx, tile_dtype dtype, tile_shape shape, double value) {
    tile_array *a;
    bench_must(tile_array_create(ctx, dtype, shape, &a));
    if (value != 0) bench_must(tile_array_fill(a, value));
    return a;
}

/* Uniform noise. */
static tile_array *noise(tile_context *ctx, tile_shape shape, uint64_t seed, double low,
                         double high) {
    tile_array *a = zeros(ctx, TILE_F32, shape, 0);
    const int64_t bytes = tile_array_count(a) * (int64_t)sizeof(float);
    float *x = bench_zeros(bytes);
    bench_noise(x, tile_array_count(a), seed, low, high);
    bench_must(tile_array_write(a, x, (size_t)bytes));
    free(x);
    return a;
}

static void ask_gradient(const problem *p, int first, int count) {
    for (int k = first; k < first + count; k++) bench_must(tile_array_request_grad(p->a[k]));
}

/* Problems */

static tile_kernel *affine(tile_context *ctx, int64_t elements) {
    tile_builder *b = tile_kernel_begin(ctx, "affine");
    const tile_param x = tile_array_param(b, "x", TILE_F32, 1);
    const tile_param y = tile_array_param(b, "y", TILE_F32, 1);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, elements));
    const tile t = tile_load(x, TILE_SHAPE(elements), at);
    tile_store(y, tile_expr("2*t + 1", t), at);
    tile_kernel *kernel;
    bench_must(tile_kernel_end(b, &kernel));
    return kernel;
}

static void launch_affine(const problem *p, tape *record, int step) {
    (void)step;
    bench_must(tile_launch(record, p->kernel, TILE_GRID(p->grid[0]), TILE_ARGS(p->a[0], p->a[1])));
}

static problem affine_problem(tile_context *ctx, int64_t count) {
    problem p = {.name = "load_store", .ctx = ctx, .steps = 1, .launch = launch_affine};
    p.kernel = affine(ctx, LINE);
    p.grid[0] = (count + LINE - 1) / LINE;
    p.a[0] = noise(ctx, TILE_SHAPE(count), 1, -1, 1);
    p.a[1] = p.end[0] = zeros(ctx, TILE_F32, TILE_SHAPE(count), 0);
    p.work = 8.0 * (double)count;
    p.descent = 12.0 * (double)count;
    ask_gradient(&p, 0, 1);
    return p;
}

static void launch_wave(const problem *p, tape *record, int step) {
    bench_must(tile_launch(record, p->kernel, TILE_GRID(p->grid[0], p->grid[1]),
                           TILE_ARGS(p->a[step % 3], p->a[(step + 1) % 3], p->a[3], p->a[4],
                                     p->a[(step + 2) % 3], tile_arg_real(0.5))));
}

/* The state's gradient: dnext, v, s read, dprev and dp read and written. */
static problem wave_problem(tile_context *ctx, int64_t side) {
    problem p = {.name = "wave", .ctx = ctx, .steps = 6, .launch = launch_wave};
    const tile_shape shape = TILE_SHAPE(side, side);
    bench_must(wave_kernel_build(ctx, TILE_F32, 1, LINE, &p.kernel));
    p.grid[0] = side;
    p.grid[1] = (side + LINE - 1) / LINE;
    for (int k = 0; k < 3; k++) p.a[k] = noise(ctx, shape, (uint64_t)k, -1, 1);
    p.a[3] = noise(ctx, shape, 3, 0.6, 1);
    p.a[4] = zeros(ctx, TILE_F32, shape, 1);
    p.end[0] = p.a[(p.steps + 1) % 3];
    p.work = 20.0 * (double)(side * side);
    p.descent = 28.0 * (double)(side * side);
    ask_gradient(&p, 0, 2);
    return p;
}

static void launch_burgers(const problem *p, tape *record, int step) {
    const int from = 2 * (step % 2), to = 2 - from;
    bench_must(tile_launch(record, p->kernel, TILE_GRID(p->grid[0], p->grid[1]),
                           TILE_ARGS(p->a[from], p->a[from + 1], p->a[to], p->a[to + 1],
                                     tile_arg_real(0.1), tile_arg_real(0.1))));
}

static problem burgers_problem(tile_context *ctx, int64_t side) {
    problem p = {.name = "burgers", .ctx = ctx, .steps = 4, .launch = launch_burgers};
    const tile_shape shape = TILE_SHAPE(side, side);
    bench_must(burgers_kernel_build(ctx, TILE_F32, 1, LINE, &p.kernel));
    p.grid[0] = side;
    p.grid[1] = (side + LINE - 1) / LINE;
    for (int k = 0; k < 4; k++) p.a[k] = noise(ctx, shape, (uint64_t)k, 0, 1);
    for (int k = 0; k < ENDS; k++) p.end[k] = p.a[k];
    p.work = 16.0 * (double)(side * side);
    p.descent = 24.0 * (double)(side * side);
    ask_gradient(&p, 0, 2);
    return p;
}

static void launch_nbody(const problem *p, tape *record, int step) {
    (void)step;
    bench_must(tile_launch(record, p->kernel, TILE_GRID(p->grid[0]),
                           TILE_ARGS(p->a[0], p->a[1], p->a[2], p->a[3], p->a[4])));
}

/* A pair forward: 3 differences, 3 squares, 3 sums, root, quotient, sum; its gradient: those and
 * the quotient by s^2, 3 products and 3 sums. */
static problem nbody_problem(tile_context *ctx, int64_t n) {
    problem p = {.name = "nbody", .ctx = ctx, .steps = 1, .launch = launch_nbody, .flops = true};
    bench_must(nbody_kernel_build(ctx, n, &p.kernel));
    p.grid[0] = n / NBODY_ROWS;
    for (int k = 0; k < NBODY_AXES; k++) p.a[k] = noise(ctx, TILE_SHAPE(n), (uint64_t)k, -1, 1);
    p.a[3] = noise(ctx, TILE_SHAPE(n), 3, 0.5, 1);
    p.a[4] = p.end[0] = zeros(ctx, TILE_F32, TILE_SHAPE(1), 0);
    p.work = 12.0 * (double)n * (double)n;
    p.descent = 19.0 * (double)n * (double)n;
    ask_gradient(&p, 0, NBODY_AXES);
    return p;
}

static void launch_scatter(const problem *p, tape *record, int step) {
    (void)step;
    bench_must(tile_launch(record, p->kernel, TILE_GRID(p->grid[0]),
                           TILE_ARGS(p->a[0], p->a[1], p->a[2])));
}

/* An addition: index, x, and the sum read and written; its gradient: index, dy, dx twice. */
static problem scatter_problem(tile_context *ctx, const char *name, int64_t count, int64_t bins) {
    problem p = {.name = name, .ctx = ctx, .steps = 1, .launch = launch_scatter};
    const size_t bytes = (size_t)count * sizeof(int32_t);
    int32_t *index = bench_zeros((int64_t)bytes);
    uint64_t state = 88172645463325252u;
    for (int64_t k = 0; k < count; k++) {
        state ^= state << 13; /* xorshift64 */
        state ^= state >> 7;
        state ^= state << 17;
        index[k] = (int32_t)(state % (uint64_t)bins);
    }
    bench_must(scatter_kernel_build(ctx, &p.kernel));
    p.grid[0] = (count + SCATTER_TILE - 1) / SCATTER_TILE;
    p.a[0] = noise(ctx, TILE_SHAPE(count), 1, -1, 1);
    p.a[1] = zeros(ctx, TILE_I32, TILE_SHAPE(count), 0);
    bench_must(tile_array_write(p.a[1], index, bytes));
    p.a[2] = p.end[0] = zeros(ctx, TILE_F32, TILE_SHAPE(bins), 0);
    p.work = 16.0 * (double)count;
    p.descent = 16.0 * (double)count;
    ask_gradient(&p, 0, 1);
    free(index);
    return p;
}

static void problem_end(problem *p) {
    for (int k = 0; k < ARRAYS; k++) tile_array_destroy(p->a[k]);
    tile_kernel_destroy(p->kernel);
}

/* Measuring */

static void launch_all(const problem *p, tape *record) {
    for (int k = 0; k < p->steps; k++) p->launch(p, record, k);
}

/* The least time of a step. */
static double time_forward(const problem *p) {
    double least = DBL_MAX;
    for (int round = 0; round <= ROUNDS; round++) {
        bench_must(tile_context_sync(p->ctx));
        const double begin = bench_now();
        launch_all(p, NULL);
        bench_must(tile_context_sync(p->ctx));
        const double seconds = (bench_now() - begin) / p->steps;
        if (round > 0 && seconds < least) least = seconds;
    }
    return least;
}

static double time_gradient(const problem *p) {
    tape *record;
    tile_array *seed[ENDS] = {NULL};
    int ends = 0;
    double least = DBL_MAX;
    bench_must(tape_create(p->ctx, NULL, &record));
    launch_all(p, record);
    for (; ends < ENDS && p->end[ends] != NULL; ends++)
        seed[ends] = zeros(p->ctx, TILE_F32, tile_array_shape(p->end[ends]), 1);
    for (int round = 0; round <= ROUNDS; round++) {
        bench_must(tile_context_sync(p->ctx));
        const double begin = bench_now();
        bench_must(tape_backward_seeds(record, ends, (tile_array **)p->end, seed));
        bench_must(tile_context_sync(p->ctx));
        const double seconds = (bench_now() - begin) / p->steps;
        if (round > 0 && seconds < least) least = seconds;
    }
    for (int k = 0; k < ends; k++) tile_array_destroy(seed[k]);
    tape_destroy(record);
    return least;
}

static void print_row(const problem *p, const char *what, double seconds, double work,
                      const limits *most) {
    const double rate = work / seconds, limit = p->flops ? most->flops : most->bytes;
    printf("%-12s %-9s %10.3f ms %10.1f %s", p->name, what, 1e3 * seconds, 1e-9 * rate,
           p->flops ? "Gflop/s" : "GB/s   ");
    if (limit > 0) printf(" %6.1f %% of %s", 100 * rate / limit, p->flops ? "fma" : "copy");
    printf("\n");
}

static void measure(problem p, const limits *most) {
    const double forward = time_forward(&p), gradient = time_gradient(&p);
    print_row(&p, "forward", forward, p.work, most);
    print_row(&p, "gradient", gradient, p.descent, most);
    printf("%-12s gradient / forward %.2f\n", p.name, gradient / forward);
    fflush(stdout);
    problem_end(&p);
}

static void print_rate(const char *what, double seconds) {
    printf("launches     %-28s %12.0f a second\n", what, CHAIN / seconds);
}

/* A chain of tiny launches, each of which reads what the one before wrote. */
static void measure_launches(tile_context *ctx) {
    tile_kernel *kernel = affine(ctx, TINY);
    tile_array *a[2] = {zeros(ctx, TILE_F32, TILE_SHAPE(TINY), 0),
                        zeros(ctx, TILE_F32, TILE_SHAPE(TINY), 0)},
               *seed = zeros(ctx, TILE_F32, TILE_SHAPE(TINY), 1);
    tape *record;
    double least[3] = {DBL_MAX, DBL_MAX, DBL_MAX};
    bench_must(tile_array_request_grad(a[0]));
    bench_must(tape_create(ctx, NULL, &record));
    for (int k = 0; k < CHAIN; k++)
        bench_must(tile_launch(record, kernel, TILE_GRID(1), TILE_ARGS(a[k % 2], a[1 - k % 2])));
    for (int round = 0; round <= ROUNDS; round++)
        for (int way = 0; way < 3; way++) {
            bench_must(tile_context_sync(ctx));
            const double begin = bench_now();
            if (way == 1) bench_must(tape_replay(record));
            if (way == 2) bench_must(tape_backward_seeds(record, 1, &a[CHAIN % 2], &seed));
            for (int k = 0; way == 0 && k < CHAIN; k++)
                bench_must(tile_launch(NULL, kernel, TILE_GRID(1),
                                       TILE_ARGS(a[0], seed))); /* nobody needs seed's values */
            bench_must(tile_context_sync(ctx));
            const double seconds = bench_now() - begin;
            if (round > 0 && seconds < least[way]) least[way] = seconds;
        }
    print_rate("one by one", least[0]);
    print_rate("replayed (in graphs)", least[1]);
    print_rate("backward (in graphs)", least[2]);
    tape_destroy(record);
    for (int k = 0; k < 2; k++) tile_array_destroy(a[k]);
    tile_array_destroy(seed);
    tile_kernel_destroy(kernel);
}

static limits print_header(tile_context *ctx, bool cpu, int64_t bytes) {
    limits most = {0, 0};
    tile_executor_info info;
    char date[32];
    const time_t now = time(NULL);
    bench_must(tile_context_info(ctx, &info));
    strftime(date, sizeof date, "%Y-%m-%d", localtime(&now));
    if (!cpu) most = (limits){gpu_copy_rate(ctx, bytes), gpu_fma_rate(ctx)};
    printf("device       %s, CUDA driver %d.%d, %s\n", cpu ? "CPU" : info.device,
           info.driver / 1000, info.driver % 1000 / 10, date);
    if (!cpu)
        printf("limits       copy %.1f GB/s, fma %.1f Gflop/s\n", 1e-9 * most.bytes,
               1e-9 * most.flops);
    return most;
}

int main(int argc, char **argv) {
    bool quick = false, cpu = false;
    for (int k = 1; k < argc; k++) {
        quick = quick || strcmp(argv[k], "--quick") == 0;
        cpu = cpu || strcmp(argv[k], "--cpu") == 0;
        if (strcmp(argv[k], "--quick") == 0 || strcmp(argv[k], "--cpu") == 0) continue;
        fprintf(stderr, "usage: %s [--quick] [--cpu]\n", argv[0]);
        return strcmp(argv[k], "--help") == 0 ? 0 : 2;
    }
    tile_context *ctx;
    bench_must(cpu ? tile_context_create(NULL, &ctx) : tile_cuda_context_create(0, NULL, &ctx));
    const int64_t side = quick ? 256 : 4096, adds = quick ? 100000 : 10000000;
    const limits most = print_header(ctx, cpu, 4 * side * side);
    measure(affine_problem(ctx, side * side), &most);
    measure(wave_problem(ctx, side), &most);
    measure(burgers_problem(ctx, side), &most);
    measure(nbody_problem(ctx, quick ? 512 : 16384), &most);
    measure(scatter_problem(ctx, "scatter_1e5", adds, quick ? 1000 : 100000), &most);
    measure(scatter_problem(ctx, "scatter_1e7", adds, adds), &most);
    measure_launches(ctx);
    tile_context_destroy(ctx);
    return 0;
}
