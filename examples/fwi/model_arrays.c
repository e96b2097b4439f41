/* model_arrays.c: creation of a wave model's arrays, and transfers from and to host doubles. */
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

void must(tile_status status) {
    if (status == TILE_OK) return;
    fflush(stdout);
    fprintf(stderr, "fwi: %s\n", tile_last_error());
    exit(1);
}

static void *allocate(int64_t count, size_t size) {
    void *memory = calloc((size_t)count + 1, size);
    if (memory) return memory;
    fprintf(stderr, "fwi: out of memory\n");
    exit(1);
}

void array_write(tile_array *array, const double *values) {
    int64_t count = tile_array_count(array);
    if (tile_array_dtype(array) == TILE_F64) {
        must(tile_array_write(array, values, (size_t)count * sizeof *values));
        return;
    }
    float *single = allocate(count, sizeof *single);
    for (int64_t i = 0; i < count; i++) single[i] = (float)values[i];
    must(tile_array_write(array, single, (size_t)count * sizeof *single));
    free(single);
}

void array_read(tile_array *array, double *values) {
    int64_t count = tile_array_count(array);
    if (tile_array_dtype(array) == TILE_F64) {
        must(tile_array_read(array, values, (size_t)count * sizeof *values));
        return;
    }
    float *single = allocate(count, sizeof *single);
    must(tile_array_read(array, single, (size_t)count * sizeof *single));
    for (int64_t i = 0; i < count; i++) values[i] = single[i];
    free(single);
}

static tile_array *integers(tile_context *ctx, int64_t count, const int32_t *values) {
    tile_array *array;
    must(tile_array_create(ctx, TILE_I32, TILE_SHAPE(count), &array));
    must(tile_array_write(array, values, (size_t)count * sizeof *values));
    return array;
}

static void create_columns(wave_model *m) {
    const survey *s = m->survey;
    int64_t columns = survey_columns(s), longest = columns > s->shots ? columns : s->shots;
    int32_t *number = allocate(longest, sizeof *number);
    for (int64_t i = 0; i < columns; i++) {
        int64_t x = i - s->side;
        number[i] = (int32_t)(x < 0 ? 0 : x >= s->nx ? s->nx - 1 : x);
    }
    m->model_column = integers(m->ctx, columns, number);
    for (int64_t i = 0; i < s->nx; i++) number[i] = (int32_t)(s->side + i);
    m->receiver_column = integers(m->ctx, s->nx, number);
    for (int64_t i = 0; i < s->shots; i++) number[i] = (int32_t)(s->side + survey_source(s, i));
    m->source_column = integers(m->ctx, s->shots, number);
    free(number);
}

void model_create(wave_model *m, tile_context *ctx, tile_dtype dtype, const survey *s) {
    tile_shape grid = TILE_SHAPE(survey_rows(s), survey_columns(s));
    *m = (wave_model){.survey = s, .ctx = ctx, .dtype = dtype};
    model_build_kernels(m);
    must(tape_create(ctx, NULL, &m->record));
    create_columns(m);
    must(tile_array_create(ctx, dtype, TILE_SHAPE(s->nz, s->nx), &m->velocity));
    must(tile_array_request_grad(m->velocity));
    must(tile_array_create(ctx, dtype, grid, &m->k));
    must(tile_array_create(ctx, dtype, grid, &m->damp));
    for (int i = 0; i < 3; i++) must(tile_array_create(ctx, dtype, grid, &m->pressure[i]));
    must(tile_array_create(ctx, dtype, TILE_SHAPE(s->steps), &m->wavelet));
    must(tile_array_create(ctx, dtype, TILE_SHAPE(s->steps, s->nx), &m->traces));
    must(tile_array_create(ctx, dtype, TILE_SHAPE(1), &m->misfit));

    double *values = allocate(grid.extent[0] * grid.extent[1] + s->steps, sizeof *values);
    survey_damp(s, values);
    array_write(m->damp, values);
    survey_wavelet(s, values);
    array_write(m->wavelet, values);
    free(values);
}

void model_destroy(wave_model *m) {
    tape_destroy(m->record);
    tile_array *arrays[] = {
        m->velocity,    m->k,       m->damp,         m->pressure[0],   m->pressure[1],
        m->pressure[2], m->wavelet, m->model_column, m->source_column, m->receiver_column,
        m->traces,      m->misfit};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) tile_array_destroy(arrays[i]);
    tile_kernel *kernels[] = {m->extend, m->step, m->inject, m->receive};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) tile_kernel_destroy(kernels[i]);
}
