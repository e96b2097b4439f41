/* ground.c: resampling and smoothing of velocity models. */
#include "ground.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ground ground_create(int64_t nz, int64_t nx, double spacing) {
    ground a = {nz, nx, spacing, calloc((size_t)(nz * nx), sizeof(double))};
    if (!a.v) {
        fprintf(stderr, "fwi: out of memory\n");
        exit(1);
    }
    return a;
}

ground ground_like(const ground *a) {
    return ground_create(a->nz, a->nx, a->spacing);
}

void ground_clear(ground *a) {
    free(a->v);
    a->v = NULL;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Bilinear; z and x in samples, inside. */
static double sample(const ground *a, double z, double x) {
    int64_t z0 = least((int64_t)z, a->nz - 1), x0 = least((int64_t)x, a->nx - 1);
    int64_t z1 = least(z0 + 1, a->nz - 1), x1 = least(x0 + 1, a->nx - 1);
    double fz = z - (double)z0, fx = x - (double)x0;
    const double *above = a->v + z0 * a->nx, *below = a->v + z1 * a->nx;
    return (1 - fz) * ((1 - fx) * above[x0] + fx * above[x1]) +
           fz * ((1 - fx) * below[x0] + fx * below[x1]);
}

ground ground_resample(const ground *a, double spacing) {
    double ratio = spacing / a->spacing, slack = 1e-9;
    int64_t nz = (int64_t)((double)(a->nz - 1) / ratio + slack) + 1;
    int64_t nx = (int64_t)((double)(a->nx - 1) / ratio + slack) + 1;
    ground b = ground_create(nz, nx, spacing);
    for (int64_t z = 0; z < nz; z++) {
        for (int64_t x = 0; x < nx; x++)
            b.v[z * nx + x] = sample(a, (double)z * ratio, (double)x * ratio);
    }
    return b;
}

/* y = Gaussian mean of x over n places `stride` apart; past an end its last value goes on. */
static void blur_line(const double *x, double *y, int64_t n, int64_t stride, double sigma) {
    int64_t reach = (int64_t)ceil(3 * sigma);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0, weights = 0;
        for (int64_t j = i - reach; j <= i + reach; j++) {
            int64_t inside = j < 0 ? 0 : least(j, n - 1);
            double d = (double)(j - i) / sigma, weight = exp(-0.5 * d * d);
            sum += weight * x[inside * stride];
            weights += weight;
        }
        y[i * stride] = sum / weights;
    }
}

ground ground_smooth(const ground *a, double length, int64_t first) {
    ground across = ground_like(a), b = ground_like(a);
    double sigma = length / a->spacing;
    for (int64_t z = 0; z < a->nz; z++)
        blur_line(a->v + z * a->nx, across.v + z * a->nx, a->nx, 1, sigma);
    for (int64_t x = 0; x < a->nx; x++) blur_line(across.v + x, b.v + x, a->nz, a->nx, sigma);
    memcpy(b.v, a->v, (size_t)(least(first, a->nz) * a->nx) * sizeof(double));
    ground_clear(&across);
    return b;
}

void ground_range(const ground *a, double *low, double *high) {
    *low = *high = a->v[0];
    for (int64_t i = 1; i < a->nz * a->nx; i++) {
        if (a->v[i] < *low) *low = a->v[i];
        if (a->v[i] > *high) *high = a->v[i];
    }
}

double ground_error(const ground *a, const ground *b) {
    double difference = 0, size = 0;
    for (int64_t i = 0; i < a->nz * a->nx; i++) {
        difference += (a->v[i] - b->v[i]) * (a->v[i] - b->v[i]);
        size += b->v[i] * b->v[i];
    }
    return sqrt(difference / size);
}
