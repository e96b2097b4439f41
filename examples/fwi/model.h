/* model.h: the wave equation as tile kernels, shots on a tape, misfit and gradient. */
#ifndef FWI_MODEL_H
#define FWI_MODEL_H

#include <tiletape.h>

#include "survey.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels and arrays of one survey, all of one float dtype. */
typedef struct wave_model {
    const survey *survey; /* borrowed */
    tile_context *ctx;    /* borrowed */
    tile_dtype dtype;
    tile_kernel *extend, *step, *inject, *receive;
    tile_array *velocity;     /* [nz, nx] m/s, with a gradient */
    tile_array *k;            /* [rows, columns] (v dt / h)^2 / 12 on the padded grid */
    tile_array *damp;         /* [rows, columns] */
    tile_array *pressure[3];  /* [rows, columns], steps t-1, t, t+1 in turn */
    tile_array *wavelet;      /* [steps] */
    tile_array *model_column; /* [columns] i32: the model's column that a padded column continues */
    tile_array *source_column;   /* [shots] i32, padded columns */
    tile_array *receiver_column; /* [nx] i32, padded columns */
    tile_array *traces;          /* [steps, nx]: what the receivers record of a shot */
    tile_array *misfit;          /* [1] */
    tape *record;
} wave_model;

/* must: a status that is not TILE_OK ends the program with the library's sentence. */
void must(tile_status status);

/* Host doubles to and from a float array of any dtype. */
void array_write(tile_array *array, const double *values);
void array_read(tile_array *array, double *values);

void model_create(wave_model *m, tile_context *ctx, tile_dtype dtype, const survey *s);
void model_destroy(wave_model *m);
void model_build_kernels(wave_model *m); /* part of model_create */

/* Pressure is 0 everywhere. */
void model_rest(wave_model *m, tape *record);

/* All time steps of a shot from the pressure as it is: traces. A NULL tape records nothing. */
void model_run(wave_model *m, tape *record, int64_t shot);

/* From rest, what the receivers record of a shot in the velocity as it is. */
void model_shot(wave_model *m, int64_t shot, tile_array *traces);

/* Sum of squared residuals over all shots, and its gradient by velocity in the velocity's gradient.
 * Each shot is recorded, run backward and forgotten: one shot's pressure is held at a time. */
double model_gradient(wave_model *m, tile_array *const *observed);

#ifdef __cplusplus
}
#endif
#endif
