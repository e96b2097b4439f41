/* nbody.c: the energy of particles that attract each other, and its gradient by their places: tiles
 * and hand-written C.
 *
 *   E = -1/2 sum_i m_i sum_j m_j / sqrt(|r_j - r_i|^2 + eps^2) */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "benchmarks/bench.h"
#include "benchmarks/nbody_kernel.h"

enum { AXES = NBODY_AXES };

static const float EPS2 = NBODY_EPS2;

typedef struct hand_nbody {
    int64_t n;
    int threads;
    bool gradient;
    float *r[AXES], *m, *d[AXES];
    double energy;
} hand_nbody;

typedef struct tile_nbody {
    int64_t n;
    tile_context *ctx;
    tile_kernel *kernel;
    tile_array *r[AXES], *m, *energy;
    tape *record;
} tile_nbody;

static double hand_energy(const hand_nbody *h) {
    const float *x = h->r[0], *y = h->r[1], *z = h->r[2], *m = h->m;
    double energy = 0;
#pragma omp parallel for schedule(static) num_threads(h->threads) reduction(+ : energy)
    for (int64_t i = 0; i < h->n; i++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < h->n; j++) {
            const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            sum += m[j] / sqrtf(dx * dx + dy * dy + dz * dz + EPS2);
        }
        energy -= 0.5 * (double)(m[i] * sum);
    }
    return energy;
}

/* Each pair twice, as the forward loop has it: dE/dr_i = -m_i sum_j m_j (r_j - r_i) / s^3. */
static void hand_gradient(hand_nbody *h) {
    const float *x = h->r[0], *y = h->r[1], *z = h->r[2], *m = h->m;
#pragma omp parallel for schedule(static) num_threads(h->threads)
    for (int64_t i = 0; i < h->n; i++) {
        float gx = 0, gy = 0, gz = 0;
#pragma omp simd reduction(+ : gx, gy, gz)
        for (int64_t j = 0; j < h->n; j++) {
            const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const float s2 = dx * dx + dy * dy + dz * dz + EPS2;
            const float pull = m[j] / (s2 * sqrtf(s2));
            gx += pull * dx;
            gy += pull * dy;
            gz += pull * dz;
        }
        h->d[0][i] -= m[i] * gx;
        h->d[1][i] -= m[i] * gy;
        h->d[2][i] -= m[i] * gz;
    }
}

static void hand_run(void *data) {
    hand_nbody *h = data;
    h->energy = hand_energy(h);
    if (h->gradient) hand_gradient(h);
}

static tile_array *array_of(tile_context *ctx, int64_t count, const float *from) {
    tile_array *a;
    bench_must(tile_array_create(ctx, TILE_F32, TILE_SHAPE(count), &a));
    if (from != NULL) bench_must(tile_array_write(a, from, (size_t)count * sizeof *from));
    return a;
}

static tile_nbody tile_begin(const hand_nbody *h, tile_executor executor) {
    tile_nbody o = {.n = h->n};
    const tile_context_options options = {.threads = h->threads, .executor = executor};
    bench_must(tile_context_create(&options, &o.ctx));
    bench_must(nbody_kernel_build(o.ctx, h->n, &o.kernel));
    for (int k = 0; k < AXES; k++) {
        o.r[k] = array_of(o.ctx, h->n, h->r[k]);
        if (h->gradient) bench_must(tile_array_request_grad(o.r[k]));
    }
    o.m = array_of(o.ctx, h->n, h->m);
    o.energy = array_of(o.ctx, 1, NULL);
    if (h->gradient) bench_must(tape_create(o.ctx, NULL, &o.record));
    return o;
}

static void tile_end(tile_nbody *o) {
    tape_destroy(o->record);
    for (int k = 0; k < AXES; k++) tile_array_destroy(o->r[k]);
    tile_array_destroy(o->m);
    tile_array_destroy(o->energy);
    tile_kernel_destroy(o->kernel);
    tile_context_destroy(o->ctx);
}

static void tile_run(void *data) {
    tile_nbody *o = data;
    bench_must(tile_array_fill(o->energy, 0));
    bench_must(tile_launch(o->record, o->kernel, TILE_GRID(o->n / NBODY_ROWS),
                           TILE_ARGS(o->r[0], o->r[1], o->r[2], o->m, o->energy)));
    if (o->record != NULL) {
        bench_must(tape_backward(o->record, o->energy));
        bench_must(tape_reset(o->record));
    }
    bench_must(tile_context_sync(o->ctx));
}

static void differ(const char *what, double ours, double hand) {
    fprintf(stderr, "nbody: %s is %.9g, by hand %.9g\n", what, ours, hand);
    exit(1);
}

static void clear(hand_nbody *h, tile_nbody *o) {
    for (int k = 0; k < AXES && h->gradient; k++) {
        for (int64_t i = 0; i < h->n; i++) h->d[k][i] = 0;
        bench_must(tile_array_fill(tile_array_grad(o->r[k]), 0));
    }
}

static void check(hand_nbody *h, tile_nbody *o) {
    clear(h, o);
    hand_run(h);
    tile_run(o);
    float energy;
    bench_must(tile_array_read(o->energy, &energy, sizeof energy));
    if (!(fabs((double)energy - h->energy) <= 1e-4 * fabs(h->energy)))
        differ("the energy", (double)energy, h->energy);
    float *ours = bench_zeros(h->n * (int64_t)sizeof(float));
    for (int k = 0; k < AXES && h->gradient; k++) {
        double largest = 0;
        bench_must(tile_array_read(tile_array_grad(o->r[k]), ours, (size_t)h->n * sizeof *ours));
        for (int64_t i = 0; i < h->n; i++) largest = fmax(largest, fabs((double)h->d[k][i]));
        for (int64_t i = 0; i < h->n; i++)
            if (!(fabs((double)(ours[i] - h->d[k][i])) <= 1e-3 * largest))
                differ("a gradient", (double)ours[i], (double)h->d[k][i]);
    }
    free(ours);
}

static void compare(hand_nbody *h, tile_executor executor, const bench_options *options) {
    bench_title title = {.name = executor == TILE_EXECUTOR_NATIVE ? "nbody_native" : "nbody",
                         .what = h->gradient ? "gradient" : "forward"};
    snprintf(title.grid, sizeof title.grid, "%d", (int)h->n);
    if (!bench_wants(options, &title)) return;
    tile_nbody o = tile_begin(h, executor);
    const hand_grid grid = hand_grid_of(1, h->n, h->threads);
    title.threads = h->threads;
    title.steps = 1;
    title.bytes = (double)h->n * sizeof(float) * (h->gradient ? 11 : 4);
    const bench_candidate hand = {.run = hand_run, .data = h};
    const bench_candidate ours = {.run = tile_run, .data = &o};
    bench_compare(&title, &hand, &ours, &grid, options);
    check(h, &o);
    tile_end(&o);
}

static void run_all(int64_t n, const bench_options *options) {
    hand_nbody h = {.n = n};
    for (int k = 0; k < AXES; k++) {
        h.r[k] = bench_zeros(n * 4);
        h.d[k] = bench_zeros(n * 4);
        bench_noise(h.r[k], n, (uint64_t)(1 + k), 0, 1);
    }
    h.m = bench_zeros(n * 4);
    bench_noise(h.m, n, 4, 0.5, 1.5);
    for (h.threads = options->threads_min; h.threads <= options->threads_max; h.threads++)
        for (int what = 0; what < 4; what++) {
            h.gradient = what % 2;
            compare(&h, what < 2 ? TILE_EXECUTOR_INTERPRETER : TILE_EXECUTOR_NATIVE, options);
        }
    for (int k = 0; k < AXES; k++) {
        free(h.r[k]);
        free(h.d[k]);
    }
    free(h.m);
}

int main(int argc, char **argv) {
    const bench_options options = bench_parse(argc, argv);
    run_all(options.quick ? 1024 : 4096, &options);
    return bench_finish();
}
