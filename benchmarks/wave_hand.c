/* wave_hand.c: the hand-written wave step for both float types. */
#include "benchmarks/wave_hand.h"

#include <omp.h>
#include <stddef.h>

enum { RING_ROWS = 5 };

/* Each thread has a ring of rows of its own, with a border of zeros and a line between threads. */
static int64_t ring_size(const hand_grid *g) {
    return RING_ROWS * g->pitch + 3 * HAND_LINE;
}

int64_t wave_hand_ring(const hand_grid *g) {
    return g->threads * ring_size(g);
}

#define T float
#define NAME(f) f##_f32
#include "benchmarks/wave_hand.inc"
#undef T
#undef NAME

#define T double
#define NAME(f) f##_f64
#include "benchmarks/wave_hand.inc"
#undef T
#undef NAME
