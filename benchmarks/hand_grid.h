/* hand_grid.h: the layout of the hand-written versions: 2-d fields with a border of zeros.
 *
 * The border is what makes the hand-written loops free of special cases: a stencil of reach 2 reads
 * zeros there, and nothing ever writes it. Each row begins on a cache line. */
#ifndef TILE_BENCHMARKS_HAND_GRID_H
#define TILE_BENCHMARKS_HAND_GRID_H

#include <stdint.h>

enum { HAND_HALO = 2, HAND_LINE = 16 /* elements */ };

typedef struct hand_grid {
    int64_t rows, cols;
    int64_t pitch; /* elements from one row to the next; the gap between is the border */
    int threads;
} hand_grid;

static inline hand_grid hand_grid_of(int64_t rows, int64_t cols, int threads) {
    const int64_t lines = (cols + HAND_HALO + HAND_LINE - 1) / HAND_LINE;
    return (hand_grid){rows, cols, lines * HAND_LINE, threads};
}

/* Elements of a field, border included. */
static inline int64_t hand_grid_count(const hand_grid *g) {
    return (g->rows + 2 * HAND_HALO) * g->pitch + 2 * HAND_LINE;
}

/* Where cell (0, 0) is in a field. */
static inline int64_t hand_grid_origin(const hand_grid *g) {
    return HAND_HALO * g->pitch + HAND_LINE;
}

#endif
