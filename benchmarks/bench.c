/* bench.c: measuring candidates in rounds, and the lines that come out. */
#define _POSIX_C_SOURCE 200809L
#include "benchmarks/bench.h"

#include <math.h>
#include <omp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static clockid_t bench_clock = CLOCK_MONOTONIC;

/* The number after argument i, at least 1 and at most most. */
static int number_after(int argc, char **argv, int i, int most) {
    const int value = i + 1 < argc ? atoi(argv[i + 1]) : 0;
    if (value >= 1 && value <= most) return value;
    fprintf(stderr, "%s: %s needs a number from 1 to %d\n", argv[0], argv[i], most);
    exit(2);
}

bench_options bench_parse(int argc, char **argv) {
    bench_options options = {.rounds = 15, .threads_min = 1, .threads_max = 2};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            options.quick = true;
            options.rounds = 3;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            options.rounds = number_after(argc, argv, i++, BENCH_ROUNDS_MAX);
        } else if (strcmp(argv[i], "--threads") == 0) {
            options.threads_min = options.threads_max = number_after(argc, argv, i++, 1024);
        } else if (strcmp(argv[i], "--cpu") == 0) {
            bench_clock = CLOCK_PROCESS_CPUTIME_ID;
            options.threads_max = 1;
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            options.only = argv[++i];
        } else {
            fprintf(stderr,
                    "usage: %s [--quick] [--rounds N] [--threads N] [--cpu] [--only TEXT]\n",
                    argv[0]);
            exit(strcmp(argv[i], "--help") == 0 ? 0 : 2);
        }
    }
    return options;
}

bool bench_wants(const bench_options *options, const bench_title *title) {
    char text[128];
    snprintf(text, sizeof text, "%s %s %s", title->name, title->what, title->grid);
    return options->only == NULL || strstr(text, options->only) != NULL;
}

double bench_now(void) {
    struct timespec t;
    clock_gettime(bench_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_for(double seconds) {
    struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
    nanosleep(&t, NULL);
}

static double time_once(const bench_candidate *c) {
    if (c->prepare != NULL) c->prepare(c->data);
    const double start = bench_now();
    c->run(c->data);
    return bench_now() - start;
}

void bench_measure(bench_candidate *candidate, int count, int rounds, double settle) {
    for (int c = 0; c < count; c++) time_once(&candidate[c]);
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < count; i++) {
            /* Every other round backwards, so that no candidate always follows the same one. */
            const int c = r % 2 ? (r / 2 + count - i) % count : (r / 2 + i) % count;
            sleep_for(settle);
            candidate[c].seconds[r] = time_once(&candidate[c]);
        }
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_ratio(const bench_candidate *a, const bench_candidate *b, int rounds) {
    double ratio[BENCH_ROUNDS_MAX];
    for (int r = 0; r < rounds; r++) ratio[r] = a->seconds[r] / b->seconds[r];
    qsort(ratio, (size_t)rounds, sizeof ratio[0], compare_doubles);
    return 0.5 * (ratio[(rounds - 1) / 2] + ratio[rounds / 2]);
}

double bench_least(const bench_candidate *a, int rounds) {
    double least = a->seconds[0];
    for (int r = 1; r < rounds; r++) least = fmin(least, a->seconds[r]);
    return least;
}

/* A plain copy of a field, repeated until it takes some milliseconds. */
typedef struct copy_work {
    hand_grid grid;
    float *from, *to;
    int repeats;
} copy_work;

static void copy_run(void *data) {
    const copy_work *w = data;
    const hand_grid g = w->grid;
    for (int k = 0; k < w->repeats; k++) {
#pragma omp parallel for schedule(static) num_threads(g.threads)
        for (int64_t i = 0; i < g.rows; i++)
            memcpy(w->to + i * g.pitch, w->from + i * g.pitch, (size_t)g.cols * sizeof(float));
    }
}

static copy_work copy_begin(const hand_grid *g) {
    const int64_t bytes = hand_grid_count(g) * (int64_t)sizeof(float);
    copy_work w = {.grid = *g, .from = bench_zeros(bytes), .to = bench_zeros(bytes)};
    w.repeats = (int)(1 + (64 << 20) / bytes);
    return w;
}

static char *kept_lines;
static size_t kept_length;

void bench_line(const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const size_t length = strlen(line);
    char *grown = realloc(kept_lines, kept_length + length + 2);
    if (grown == NULL) exit(1);
    kept_lines = grown;
    memcpy(kept_lines + kept_length, line, length);
    memcpy(kept_lines + kept_length + length, "\n", 2);
    kept_length += length + 1;
}

int bench_finish(void) {
    if (kept_lines != NULL) printf("\n%s", kept_lines);
    free(kept_lines);
    kept_lines = NULL;
    kept_length = 0;
    return 0;
}

/* hand, hand again, ours, copy. */
static void report(const bench_title *t, const bench_candidate *c, double copy_bytes, int rounds) {
    static bool begun = false;
    if (!begun)
        printf("%-14s %-10s %-10s %7s %9s %9s %7s %7s %7s %9s %6s %6s\n", "name", "what", "grid",
               "threads", "hand ms", "ours ms", "ratio", "best", "noise", "copy GB/s", "hand bw",
               "ours bw");
    begun = true;
    const double ratio = bench_ratio(&c[2], &c[0], rounds);
    const double noise = bench_ratio(&c[1], &c[0], rounds);
    const double copy = copy_bytes / t->bytes; /* so many copies are the bytes of one run */
    const double hand_share = bench_ratio(&c[3], &c[0], rounds) / copy;
    const double our_share = bench_ratio(&c[3], &c[2], rounds) / copy;
    const double hand = fmin(bench_least(&c[0], rounds), bench_least(&c[1], rounds));
    const double ours = bench_least(&c[2], rounds), step = 1e3 / (double)t->steps;
    printf("%-14s %-10s %-10s %7d %9.3f %9.3f %7.2f %7.2f %7.2f %9.1f %7.2f %7.2f\n", t->name,
           t->what, t->grid, t->threads, hand * step, ours * step, ratio, ours / hand, noise,
           1e-9 * copy_bytes / bench_least(&c[3], rounds), hand_share, our_share);
    if (!(noise > 0.8 && noise < 1.25))
        printf("%14s the line above is not to be trusted: the same code took %.2f times as long\n",
               "noise:", noise);
    fflush(stdout);
    bench_line("ratio %s %s %s %d %.2f", t->name, t->what, t->grid, t->threads, ratio);
    bench_line("bandwidth %s %s %s %d hand %.2f", t->name, t->what, t->grid, t->threads,
               hand_share);
    bench_line("bandwidth %s %s %s %d ours %.2f", t->name, t->what, t->grid, t->threads, our_share);
}

void bench_compare(const bench_title *title, const bench_candidate *hand,
                   const bench_candidate *ours, const hand_grid *grid,
                   const bench_options *options) {
    copy_work copy = copy_begin(grid);
    bench_candidate c[4] = {*hand, *hand, *ours, {.run = copy_run, .data = &copy}};
    bench_measure(c, 4, options->rounds, grid->threads > 1 ? 0.02 : 0.001);
    const double copied = 2.0 * sizeof(float) * (double)(grid->rows * grid->cols);
    report(title, c, copied * copy.repeats, options->rounds);
    free(copy.from);
    free(copy.to);
}

void bench_must(tile_status status) {
    if (status == TILE_OK) return;
    fprintf(stderr, "%s: %s\n", tile_status_text(status), tile_last_error());
    exit(1);
}

void *bench_zeros(int64_t bytes) {
    const size_t size = ((size_t)bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, size);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", size);
        exit(1);
    }
    return memset(memory, 0, size);
}

void bench_noise(float *x, int64_t count, uint64_t seed, double low, double high) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(low + (high - low) * (double)(state >> 11) * 0x1p-53);
    }
}

void bench_pack(const hand_grid *g, const float *dense, float *field) {
    for (int64_t i = 0; i < g->rows; i++)
        memcpy(field + hand_grid_origin(g) + i * g->pitch, dense + i * g->cols,
               (size_t)g->cols * sizeof(float));
}

void bench_agree(const char *what, const hand_grid *g, const float *dense, const float *field,
                 double tolerance) {
    double largest = 0, error = 0;
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t j = 0; j < g->cols; j++) {
            const double hand = (double)field[hand_grid_origin(g) + i * g->pitch + j];
            const double e = fabs((double)dense[i * g->cols + j] - hand);
            largest = fmax(largest, fabs(hand));
            if (!(e <= error) && !isnan(error)) error = e; /* NaN stays */
        }
    if (error <= tolerance * largest && largest > 0) return;
    fprintf(stderr, "%s: ours and the hand-written version differ by %g of %g\n", what, error,
            largest);
    exit(1);
}

float *bench_field(const hand_grid *g, const float *dense) {
    float *field = bench_zeros(hand_grid_count(g) * (int64_t)sizeof(float));
    if (dense != NULL) bench_pack(g, dense, field);
    return field + hand_grid_origin(g);
}

void bench_free_field(const hand_grid *g, float *field) {
    if (field != NULL) free(field - hand_grid_origin(g));
}
