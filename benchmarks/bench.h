/* bench.h: measuring candidates in rounds, and the lines that come out.
 *
 * Method: every candidate runs once per round, in rotating order and direction; what counts is the
 * median over the rounds of the ratio to the baseline of the same round. The baseline is entered
 * twice: how far the ratio of the two is from 1 is the noise. */
#ifndef TILE_BENCHMARKS_BENCH_H
#define TILE_BENCHMARKS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tiletape.h>

#include "benchmarks/hand_grid.h"

enum { BENCH_ROUNDS_MAX = 101 };

/* One way to do the work. */
typedef struct bench_candidate {
    void (*prepare)(void *data); /* not timed; may be NULL */
    void (*run)(void *data);
    void *data;
    double seconds[BENCH_ROUNDS_MAX]; /* filled by bench_measure */
} bench_candidate;

/* What is measured: `ratio NAME WHAT GRID THREADS VALUE`. */
typedef struct bench_title {
    const char *name, *what;
    char grid[32];
    int threads;
    int64_t steps; /* of one run: times are printed for one step */
    double bytes;  /* that one run must move at least */
} bench_title;

typedef struct bench_options {
    int rounds;
    int threads_min, threads_max;
    bool quick;       /* three rounds and no grid that is larger than the caches */
    const char *only; /* NULL: everything */
} bench_options;

/* Reads --rounds N, --threads N (default: 1, then 2), --cpu (one thread, by processor time: where
 * others use the machine), --only TEXT and --quick; prints a usage line and ends the program for
 * anything else. */
bench_options bench_parse(int argc, char **argv);

/* Whether "NAME WHAT GRID" has the text of --only in it. */
bool bench_wants(const bench_options *options, const bench_title *title);

double bench_now(void);

/* Runs every candidate once unmeasured, then once per round. settle: seconds of sleep before each,
 * so that idle threads of the one before have stopped spinning. */
void bench_measure(bench_candidate *candidate, int count, int rounds, double settle);

/* Median over the rounds of the ratio of two candidates; smallest time of one. */
double bench_ratio(const bench_candidate *a, const bench_candidate *b, int rounds);
double bench_least(const bench_candidate *a, int rounds);

/* Measures hand twice, ours and a plain copy of a field of this grid; prints a row of the table and
 * keeps the ratio and bandwidth lines for bench_finish. */
void bench_compare(const bench_title *title, const bench_candidate *hand,
                   const bench_candidate *ours, const hand_grid *grid,
                   const bench_options *options);

/* Keeps one formatted line for bench_finish. */
void bench_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the kept lines. Returns 0, the program's exit status. */
int bench_finish(void);

/* Ends the program with the library's message when a call failed. */
void bench_must(tile_status status);

/* Aligned zeros. Ends the program when there is no memory. */
void *bench_zeros(int64_t bytes);

/* Uniform noise in low..high, the same for the same seed. */
void bench_noise(float *x, int64_t count, uint64_t seed, double low, double high);

/* Between C order and a field of hand_grid.h. */
void bench_pack(const hand_grid *g, const float *dense, float *field);

/* A field, filled from a dense array unless that is NULL; the pointer is cell (0, 0). */
float *bench_field(const hand_grid *g, const float *dense);
void bench_free_field(const hand_grid *g, float *field); /* NULL is fine */

/* Ends the program when a dense array and a field differ by more than tolerance times the largest
 * element: then there is nothing to compare. */
void bench_agree(const char *what, const hand_grid *g, const float *dense, const float *field,
                 double tolerance);

#endif
