/* wave_hand.h: the acoustic wave step and its adjoint, written by hand.
 *
 *   next = s (2 p - prev + (k v)^2 L(p)),  k = time step / grid spacing
 *   L(p) = -5 p + 4/3 (n + s + e + w) - 1/12 (nn + ss + ee + ww),  zero outside the grid
 *
 * Fields have the layout of hand_grid.h; each pointer is cell (0, 0). */
#ifndef TILE_BENCHMARKS_WAVE_HAND_H
#define TILE_BENCHMARKS_WAVE_HAND_H

#include <stdbool.h>

#include "benchmarks/hand_grid.h"

#ifdef __cplusplus
extern "C" {
#endif

void wave_hand_step_f32(const hand_grid *g, float k, const float *prev, const float *p,
                        const float *v, const float *s, float *next);
void wave_hand_step_f64(const hand_grid *g, double k, const double *prev, const double *p,
                        const double *v, const double *s, double *next);

/* The adjoint: dprev is stored, dp is stored or (add) added to, dv is added to. p and dv are NULL
 * when no gradient by v is wanted. ring: scratch of wave_hand_ring(g) elements. */
void wave_hand_adjoint_f32(const hand_grid *g, float k, const float *p, const float *v,
                           const float *s, const float *dnext, float *dprev, float *dp, bool add,
                           float *dv, float *ring);
void wave_hand_adjoint_f64(const hand_grid *g, double k, const double *p, const double *v,
                           const double *s, const double *dnext, double *dprev, double *dp,
                           bool add, double *dv, double *ring);

int64_t wave_hand_ring(const hand_grid *g);

#ifdef __cplusplus
}
#endif
#endif
