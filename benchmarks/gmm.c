/* gmm.c: the log-likelihood of a Gaussian mixture and its gradient by all parameters: tiles and
 * hand-written C. The equations are in gmm_hand.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/bench.h"
#include "benchmarks/gmm_hand.h"

enum { D = GMM_D, K = GMM_K, POINTS = GMM_LANES, PARTS = 4 };

typedef struct gmm_problem {
    int64_t n;
    double *x;
    gmm_parameters p;
} gmm_problem;

typedef struct hand_gmm {
    const gmm_problem *problem;
    int threads;
    bool gradient;
    double loss;
    gmm_parameters d;
} hand_gmm;

typedef struct tile_gmm {
    const gmm_problem *problem;
    tile_context *ctx;
    tile_kernel *kernel;
    tile_array *x, *part[PARTS], *loss; /* alpha, mean, log_q, L */
    tape *record;
} tile_gmm;

/* Where a part of the parameters is, and its shape. */
static double *part_of(gmm_parameters *p, int part, tile_shape *shape) {
    double *const parts[PARTS] = {p->alpha, p->mean[0], p->log_q[0], p->L[0][0]};
    const tile_shape shapes[PARTS] = {TILE_SHAPE(K), TILE_SHAPE(K, D), TILE_SHAPE(K, D),
                                      TILE_SHAPE(K, D, D)};
    *shape = shapes[part];
    return parts[part];
}

static size_t bytes_of(tile_shape shape) {
    size_t bytes = sizeof(double);
    for (int d = 0; d < shape.rank; d++) bytes *= (size_t)shape.extent[d];
    return bytes;
}

static void hand_run(void *data) {
    hand_gmm *h = data;
    h->loss = gmm_hand(&h->problem->p, h->problem->n, h->problem->x, h->gradient ? &h->d : NULL,
                       h->threads);
}

static tile log_sum_exp(tile inner) {
    const tile top = tile_stop_gradient(tile_reduce_max(inner, TILE_AXES(0)));
    const tile part = tile_sum(tile_expr("exp(inner - top)", inner, top), TILE_AXES(0));
    return tile_expr("top + log(part)", top, part);
}

static tile_kernel *build(tile_context *ctx) {
    tile_builder *b = tile_kernel_begin(ctx, "mixture");
    const tile_param points = tile_array_param(b, "x", TILE_F64, 2);
    const tile_param alphas = tile_array_param(b, "alpha", TILE_F64, 1);
    const tile_param means = tile_array_param(b, "mean", TILE_F64, 2);
    const tile_param log_qs = tile_array_param(b, "log_q", TILE_F64, 2);
    const tile_param Ls = tile_array_param(b, "L", TILE_F64, 3);
    const tile_param loss = tile_array_param(b, "loss", TILE_F64, 1);
    const tile_offset at = TILE_AT(tile_int(b, 0), tile_block_start(b, 0, POINTS));
    const tile x =
        tile_reshape(tile_load(points, TILE_SHAPE(D, POINTS), at), TILE_SHAPE(1, D, POINTS));
    const tile mean = tile_load(means, TILE_SHAPE(K, D), TILE_AT_ZERO);
    const tile log_q = tile_load(log_qs, TILE_SHAPE(K, D), TILE_AT_ZERO);
    const tile L = tile_load(Ls, TILE_SHAPE(K, D, D), TILE_AT_ZERO);
    const tile a = tile_load(alphas, TILE_SHAPE(K), TILE_AT_ZERO);
    const tile z = tile_sub(x, tile_reshape(mean, TILE_SHAPE(K, D, 1)));
    const tile q = tile_reshape(tile_exp(log_q), TILE_SHAPE(K, D, 1)), Lz = tile_matmul(L, z);
    const tile y = tile_expr("q*z + Lz", q, z, Lz);
    const tile square = tile_sum(tile_mul(y, y), TILE_AXES(1));
    const tile scale = tile_reshape(tile_add(a, tile_sum(log_q, TILE_AXES(1))), TILE_SHAPE(K, 1));
    const tile lse = log_sum_exp(tile_expr("scale - square/2", scale, square));
    tile_atomic_add(loss, tile_sum(lse, TILE_ALL_AXES), TILE_AT_ZERO);
    tile_kernel *kernel;
    bench_must(tile_kernel_end(b, &kernel));
    return kernel;
}

static tile_array *array_of(tile_context *ctx, tile_shape shape, const double *from) {
    tile_array *a;
    bench_must(tile_array_create(ctx, TILE_F64, shape, &a));
    if (from != NULL) bench_must(tile_array_write(a, from, bytes_of(shape)));
    return a;
}

static tile_gmm tile_begin(const hand_gmm *h, tile_executor executor) {
    tile_gmm o = {.problem = h->problem};
    const tile_context_options options = {.threads = h->threads, .executor = executor};
    gmm_parameters p = h->problem->p;
    bench_must(tile_context_create(&options, &o.ctx));
    o.kernel = build(o.ctx);
    o.x = array_of(o.ctx, TILE_SHAPE(D, h->problem->n), h->problem->x);
    for (int k = 0; k < PARTS; k++) {
        tile_shape shape;
        const double *from = part_of(&p, k, &shape);
        o.part[k] = array_of(o.ctx, shape, from);
        if (h->gradient) bench_must(tile_array_request_grad(o.part[k]));
    }
    o.loss = array_of(o.ctx, TILE_SHAPE(1), NULL);
    if (h->gradient) bench_must(tape_create(o.ctx, NULL, &o.record));
    return o;
}

static void tile_end(const tile_gmm *o) {
    tape_destroy(o->record);
    for (int k = 0; k < PARTS; k++) tile_array_destroy(o->part[k]);
    tile_array_destroy(o->x);
    tile_array_destroy(o->loss);
    tile_kernel_destroy(o->kernel);
    tile_context_destroy(o->ctx);
}

static void tile_run(void *data) {
    const tile_gmm *o = data;
    tile_array *const *part = o->part;
    bench_must(tile_array_fill(o->loss, 0));
    bench_must(tile_launch(o->record, o->kernel, TILE_GRID(o->problem->n / POINTS),
                           TILE_ARGS(o->x, part[0], part[1], part[2], part[3], o->loss)));
    if (o->record != NULL) {
        bench_must(tape_backward(o->record, o->loss));
        bench_must(tape_reset(o->record));
    }
    bench_must(tile_context_sync(o->ctx));
}

static void differ(const char *what, double ours, double hand) {
    fprintf(stderr, "gmm: %s is %.17g, by hand %.17g\n", what, ours, hand);
    exit(1);
}

/* Both from a gradient of zeros. Above the diagonal L is a constant: hand leaves it out. */
static void check(hand_gmm *h, tile_gmm *o) {
    gmm_parameters ours;
    double loss;
    memset(&h->d, 0, sizeof h->d);
    for (int k = 0; k < PARTS && h->gradient; k++)
        bench_must(tile_array_fill(tile_array_grad(o->part[k]), 0));
    hand_run(h);
    tile_run(o);
    bench_must(tile_array_read(o->loss, &loss, sizeof loss));
    if (!(fabs(loss - h->loss) <= 1e-10 * fabs(h->loss))) differ("the loss", loss, h->loss);
    for (int k = 0; k < PARTS && h->gradient; k++) {
        tile_shape shape;
        double *to = part_of(&ours, k, &shape), largest = 0;
        const double *hand = part_of(&h->d, k, &shape);
        const int64_t count = (int64_t)(bytes_of(shape) / sizeof *to);
        bench_must(tile_array_read(tile_array_grad(o->part[k]), to, bytes_of(shape)));
        for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(hand[i]));
        for (int64_t i = 0; i < count; i++) {
            if (k == 3 && i % D >= i / D % D) continue;
            if (!(fabs(to[i] - hand[i]) <= 1e-9 * largest)) differ("a gradient", to[i], hand[i]);
        }
    }
}

static void compare(hand_gmm *h, tile_executor executor, const bench_options *options) {
    bench_title title = {.name = executor == TILE_EXECUTOR_NATIVE ? "gmm_native" : "gmm",
                         .what = h->gradient ? "gradient" : "forward"};
    snprintf(title.grid, sizeof title.grid, "%d", (int)h->problem->n);
    if (!bench_wants(options, &title)) return;
    tile_gmm o = tile_begin(h, executor);
    const hand_grid grid = hand_grid_of(1, h->problem->n, h->threads);
    title.threads = h->threads;
    title.steps = 1;
    title.bytes = (double)h->problem->n * D * sizeof(double) * (h->gradient ? 2 : 1);
    const bench_candidate hand = {.run = hand_run, .data = h};
    const bench_candidate ours = {.run = tile_run, .data = &o};
    bench_compare(&title, &hand, &ours, &grid, options);
    check(h, &o);
    tile_end(&o);
}

static void fill(double *x, int64_t count, uint64_t seed, double low, double high) {
    float *noise = bench_zeros(count * (int64_t)sizeof *noise);
    bench_noise(noise, count, seed, low, high);
    for (int64_t i = 0; i < count; i++) x[i] = (double)noise[i];
    free(noise);
}

static gmm_problem problem_begin(int64_t n) {
    gmm_problem w = {.n = n, .x = bench_zeros(n * D * (int64_t)sizeof(double))};
    fill(w.x, n * D, 1, -2, 2);
    for (int k = 0; k < PARTS; k++) {
        tile_shape shape;
        double *to = part_of(&w.p, k, &shape);
        fill(to, (int64_t)(bytes_of(shape) / sizeof *to), (uint64_t)(2 + k), -0.5, 0.5);
    }
    for (int c = 0; c < K; c++)
        for (int i = 0; i < D; i++)
            for (int j = i; j < D; j++) w.p.L[c][i][j] = 0;
    return w;
}

int main(int argc, char **argv) {
    const bench_options options = bench_parse(argc, argv);
    gmm_problem w = problem_begin(options.quick ? 1024 : 8192);
    hand_gmm h = {.problem = &w};
    for (h.threads = options.threads_min; h.threads <= options.threads_max; h.threads++)
        for (int what = 0; what < 4; what++) {
            h.gradient = what % 2;
            compare(&h, what < 2 ? TILE_EXECUTOR_INTERPRETER : TILE_EXECUTOR_NATIVE, &options);
        }
    free(w.x);
    return bench_finish();
}
