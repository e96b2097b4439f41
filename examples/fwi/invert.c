/* invert.c: what every search does with a model: misfit, gradient, a line of output. */
#include "invert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double clock_seconds(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void ground_copy(ground *to, const ground *from) {
    memcpy(to->v, from->v, (size_t)(from->nz * from->nx) * sizeof *from->v);
}

void invert_begin(inversion *v, const ground *start) {
    v->best = ground_like(start);
    v->trial = ground_like(start);
    v->gradient = ground_like(start);
    v->first_gradient = ground_like(start);
    ground_copy(&v->best, start);
    ground_copy(&v->trial, start);
    v->done = -1;
    v->seconds = clock_seconds();
    printf("iteration       misfit  relative  model error  gradient norm  seconds\n");
}

void invert_end(inversion *v) {
    ground_clear(&v->best);
    ground_clear(&v->trial);
    ground_clear(&v->gradient);
    ground_clear(&v->first_gradient);
}

bool invert_over(const inversion *v) {
    return *v->stop || v->done >= v->iterations;
}

static double norm(const ground *a) {
    double sum = 0;
    for (int64_t i = 0; i < a->nz * a->nx; i++) sum += a->v[i] * a->v[i];
    return sqrt(sum);
}

double invert_evaluate(inversion *v, bool every) {
    array_write(v->model->velocity, v->trial.v);
    double misfit = model_gradient(v->model, v->observed);
    array_read(tile_array_grad(v->model->velocity), v->gradient.v);
    memset(v->gradient.v, 0, (size_t)(v->known * v->gradient.nx) * sizeof *v->gradient.v);
    if (!isfinite(misfit)) {
        fflush(stdout);
        fprintf(stderr, "fwi: the misfit is not finite\n");
        exit(1);
    }
    bool first = v->done < 0, better = first || misfit < v->misfit;
    if (first) {
        ground_copy(&v->first_gradient, &v->gradient);
        v->first_misfit = misfit;
    }
    if (better) {
        ground_copy(&v->best, &v->trial);
        v->misfit = misfit;
    }
    if (better || every) v->done++;
    char label[24];
    snprintf(label, sizeof label, "%lld", (long long)v->done);
    printf("%9s %12.5g %9.4f %12.5f %14.4g %8.1f\n", better || every ? label : "trial", misfit,
           misfit / v->first_misfit, ground_error(&v->trial, v->truth), norm(&v->gradient),
           clock_seconds() - v->seconds);
    fflush(stdout);
    return misfit;
}
