/* gmm_hand.c: the Gaussian mixture by hand: loops over the points of a group, which are vectors. */
#include "benchmarks/gmm_hand.h"

#include <math.h>
#include <sleef.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { LANES = GMM_LANES, D = GMM_D, K = GMM_K };

/* x = exp x; the same maths functions as tiles use. */
static void exp_all(double *x, int64_t n) {
#if defined(__AVX512F__)
    for (int64_t i = 0; i < n; i += 8)
        _mm512_storeu_pd(x + i, Sleef_finz_expd8_u10avx512f(_mm512_loadu_pd(x + i)));
#elif defined(__AVX2__) && defined(__FMA__)
    for (int64_t i = 0; i < n; i += 4)
        _mm256_storeu_pd(x + i, Sleef_finz_expd4_u10avx2(_mm256_loadu_pd(x + i)));
#else
    for (int64_t i = 0; i < n; i++) x[i] = exp(x[i]);
#endif
}

/* z and y of component c. */
static void transform(const gmm_parameters *p, const double q[D], int c, int64_t n, const double *x,
                      double z[D][LANES], double y[D][LANES]) {
    for (int i = 0; i < D; i++) {
        const double mean = p->mean[c][i];
        for (int l = 0; l < LANES; l++) {
            z[i][l] = x[i * n + l] - mean;
            y[i][l] = q[i] * z[i][l];
        }
        for (int j = 0; j < i; j++) {
            const double a = p->L[c][i][j];
            for (int l = 0; l < LANES; l++) y[i][l] += a * z[j][l];
        }
    }
}

/* inner becomes the weights exp(inner - lse); lse comes back. */
static void normalize(double inner[K][LANES], double lse[LANES]) {
    double top[LANES], sum[LANES] = {0};
    memcpy(top, inner[0], sizeof top);
    for (int c = 1; c < K; c++)
        for (int l = 0; l < LANES; l++) top[l] = inner[c][l] > top[l] ? inner[c][l] : top[l];
    for (int c = 0; c < K; c++) {
        for (int l = 0; l < LANES; l++) inner[c][l] -= top[l];
        exp_all(inner[c], LANES);
        for (int l = 0; l < LANES; l++) sum[l] += inner[c][l];
    }
    for (int l = 0; l < LANES; l++) lse[l] = top[l] + log(sum[l]);
    for (int l = 0; l < LANES; l++) sum[l] = 1 / sum[l];
    for (int c = 0; c < K; c++)
        for (int l = 0; l < LANES; l++) inner[c][l] *= sum[l];
}

static double sum_of(const double *x) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int l = 0; l < LANES; l++) sum += x[l];
    return sum;
}

static double sum_of_products(const double *x, const double *y) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int l = 0; l < LANES; l++) sum += x[l] * y[l];
    return sum;
}

/* Adds the gradient of component c for weights w. */
static void pull_back(const gmm_parameters *p, const double q[D], int c, const double *w,
                      double z[D][LANES], double y[D][LANES], gmm_parameters *d) {
    const double total = sum_of(w);
    d->alpha[c] += total;
    for (int i = 0; i < D; i++)
        for (int l = 0; l < LANES; l++) y[i][l] *= -w[l]; /* dy */
    for (int i = 0; i < D; i++) {
        double dz[LANES];
        d->log_q[c][i] += total + q[i] * sum_of_products(y[i], z[i]);
        for (int l = 0; l < LANES; l++) dz[l] = q[i] * y[i][l];
        for (int j = i + 1; j < D; j++)
            for (int l = 0; l < LANES; l++) dz[l] += p->L[c][j][i] * y[j][l];
        d->mean[c][i] -= sum_of(dz);
        for (int j = 0; j < i; j++) d->L[c][i][j] += sum_of_products(y[i], z[j]);
    }
}

static double some_points(const gmm_parameters *p, double q[K][D], const double *scale, int64_t n,
                          const double *x, gmm_parameters *d) {
    double inner[K][LANES], lse[LANES], z[D][LANES], y[D][LANES];
    for (int c = 0; c < K; c++) {
        transform(p, q[c], c, n, x, z, y);
        for (int l = 0; l < LANES; l++) inner[c][l] = scale[c];
        for (int i = 0; i < D; i++)
            for (int l = 0; l < LANES; l++) inner[c][l] -= 0.5 * y[i][l] * y[i][l];
    }
    normalize(inner, lse);
    for (int c = 0; c < K && d; c++) {
        transform(p, q[c], c, n, x, z, y);
        pull_back(p, q[c], c, inner[c], z, y, d);
    }
    return sum_of(lse);
}

static void add(gmm_parameters *to, const gmm_parameters *from) {
    double *t = (double *)to;
    const double *f = (const double *)from;
    for (size_t k = 0; k < sizeof *to / sizeof *t; k++) t[k] += f[k];
}

double gmm_hand(const gmm_parameters *p, int64_t n, const double *x, gmm_parameters *d,
                int threads) {
    double loss = 0, q[K][D], scale[K];
    for (int c = 0; c < K; c++) {
        scale[c] = p->alpha[c];
        for (int i = 0; i < D; i++) {
            scale[c] += p->log_q[c][i];
            q[c][i] = exp(p->log_q[c][i]);
        }
    }
#pragma omp parallel num_threads(threads) reduction(+ : loss)
    {
        gmm_parameters own = {.alpha = {0}};
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i += LANES)
            loss += some_points(p, q, scale, n, x + i, d ? &own : NULL);
#pragma omp critical
        if (d) add(d, &own);
    }
    return loss;
}
