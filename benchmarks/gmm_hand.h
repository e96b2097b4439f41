/* gmm_hand.h: the log-likelihood of a Gaussian mixture and its gradient, written by hand.
 *
 *   z = x[.., i] - mean[c], y = exp(log_q[c]) z + L[c] z, L strictly lower triangular
 *   inner[c] = alpha[c] + sum log_q[c] - |y|^2 / 2, loss = sum_i log sum_c exp(inner[c])
 *
 * source: F. Srajer, Z. Kukelova, A. Fitzgibbon, A benchmark of selected algorithmic
 * differentiation tools on some problems in computer vision and machine learning, 2018. */
#ifndef TILE_BENCHMARKS_GMM_HAND_H
#define TILE_BENCHMARKS_GMM_HAND_H

#include <stdint.h>

enum { GMM_D = 10, GMM_K = 25, GMM_LANES = 64 /* points at a time */ };

/* The parameters, or the gradient by them. */
typedef struct gmm_parameters {
    double alpha[GMM_K], mean[GMM_K][GMM_D], log_q[GMM_K][GMM_D], L[GMM_K][GMM_D][GMM_D];
} gmm_parameters;

/* The loss of n points, a multiple of GMM_LANES; coordinate j of point i is x[j * n + i]. d: the
 * gradient is added to it; NULL: none. */
double gmm_hand(const gmm_parameters *p, int64_t n, const double *x, gmm_parameters *d,
                int threads);

#endif
