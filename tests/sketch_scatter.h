/* sketch_scatter.h: the first program of the sketch, compiled as C. */
#ifndef TILE_TESTS_SKETCH_SCATTER_H
#define TILE_TESTS_SKETCH_SCATTER_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SKETCH_SCATTER_N = 1000 };

typedef struct sketch_scatter_data {
    const float *x, *w;
    const int32_t *index;
    float *dx;        /* filled */
    const char *path; /* .npy file of the gradient */
} sketch_scatter_data;

tile_status sketch_scatter(const sketch_scatter_data *data);

#ifdef __cplusplus
}
#endif

#endif
