/* ground.h: velocity models on the host, [nz, nx] doubles in m/s. */
#ifndef FWI_GROUND_H
#define FWI_GROUND_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ground {
    int64_t nz, nx;
    double spacing; /* m */
    double *v;      /* freed by ground_clear */
} ground;

/* A model of the size of another, all zero. Memory that runs out ends the program. */
ground ground_like(const ground *a);
ground ground_create(int64_t nz, int64_t nx, double spacing);
void ground_clear(ground *a);

/* The model on another spacing, linear between samples; same corner, not larger. */
ground ground_resample(const ground *a, double spacing);

/* The model blurred by a Gaussian of standard deviation `length` m; rows before `first` stay. */
ground ground_smooth(const ground *a, double length, int64_t first);

void ground_range(const ground *a, double *low, double *high);

/* |a - b| / |b|, 2-norms. */
double ground_error(const ground *a, const ground *b);

#ifdef __cplusplus
}
#endif
#endif
