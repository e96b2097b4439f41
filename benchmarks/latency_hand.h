/* latency_hand.h: the smallest tape there is: an array of records, each with two functions. */
#ifndef TILE_BENCHMARKS_LATENCY_HAND_H
#define TILE_BENCHMARKS_LATENCY_HAND_H

#include <stdint.h>

typedef struct hand_record hand_record;

typedef void (*hand_function)(const hand_record *record);

struct hand_record {
    hand_function forward, backward;
    const float *x, *dy;
    float *y, *dx;
    int64_t count;
};

typedef struct hand_tape {
    hand_record *record;
    int64_t count, capacity;
} hand_tape;

/* Runs and records y = x + 0.01 x^2; dx = dy (1 + 0.02 x). Drops what does not fit. */
void hand_launch(hand_tape *tape, const float *x, float *y, const float *dy, float *dx,
                 int64_t count);

/* Runs the records' adjoints, last first, and empties the tape. */
void hand_backward(hand_tape *tape);

#endif
