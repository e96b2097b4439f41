/* latency_hand.c: the smallest tape there is, with one elementwise operation. */
#include "benchmarks/latency_hand.h"

static void forward(const hand_record *r) {
    const float *x = r->x;
    float *y = r->y;
#pragma GCC ivdep
    for (int64_t i = 0; i < r->count; i++) y[i] = x[i] + 0.01f * (x[i] * x[i]);
}

static void backward(const hand_record *r) {
    const float *x = r->x, *dy = r->dy;
    float *dx = r->dx;
#pragma GCC ivdep
    for (int64_t i = 0; i < r->count; i++) dx[i] = dy[i] * (1 + 0.02f * x[i]);
}

void hand_launch(hand_tape *tape, const float *x, float *y, const float *dy, float *dx,
                 int64_t count) {
    if (tape->count == tape->capacity) return;
    hand_record *r = &tape->record[tape->count++];
    *r = (hand_record){forward, backward, x, dy, y, dx, count};
    r->forward(r);
}

void hand_backward(hand_tape *tape) {
    while (tape->count > 0) {
        const hand_record *r = &tape->record[--tape->count];
        r->backward(r);
    }
}
