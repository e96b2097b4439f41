/* burgers_hand.h: a step of the viscous Burgers equation in 2-D and its adjoint, written by hand.
 *
 *   u' = u - a (u (ue - uw) + v (us - un)) + b (ue + uw + us + un - 4 u),  a = dt / (2 h)
 *   v' = v - a (u (ve - vw) + v (vs - vn)) + b (ve + vw + vs + vn - 4 v),  b = nu dt / h^2
 *
 * e, w, s, n: the neighbours in the next and previous column and row, zero outside the grid. Fields
 * have the layout of hand_grid.h; each pointer is cell (0, 0). */
#ifndef TILE_BENCHMARKS_BURGERS_HAND_H
#define TILE_BENCHMARKS_BURGERS_HAND_H

#include "benchmarks/hand_grid.h"

#ifdef __cplusplus
extern "C" {
#endif

void burgers_hand_step_f32(const hand_grid *g, float a, float b, const float *u, const float *v,
                           float *u_next, float *v_next);
void burgers_hand_step_f64(const hand_grid *g, double a, double b, const double *u, const double *v,
                           double *u_next, double *v_next);

/* The adjoint: du and dv are stored; u and v are what the step read. */
void burgers_hand_adjoint_f32(const hand_grid *g, float a, float b, const float *u, const float *v,
                              const float *du_next, const float *dv_next, float *du, float *dv);
void burgers_hand_adjoint_f64(const hand_grid *g, double a, double b, const double *u,
                              const double *v, const double *du_next, const double *dv_next,
                              double *du, double *dv);

#ifdef __cplusplus
}
#endif
#endif
