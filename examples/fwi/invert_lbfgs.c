/* invert_lbfgs.c: L-BFGS by NLopt. */
#include <math.h>
#include <nlopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "invert.h"

/* What NLopt sees: x = velocity / depth below the known rows, in (km/s) / km, and the misfit times a
 * constant. A gradient by velocity fades with depth as waves spread and are reflected on their way;
 * by x it does not, and the deep ground is found in a few iterations. */
typedef struct search {
    inversion *v;
    nlopt_opt opt;
    double scale; /* 0 before the first call */
} search;

/* d velocity / d x of element i of the model, both in m. */
static double depth_weight(const inversion *v, int64_t i) {
    double row = (double)(i / v->trial.nx);
    return row * v->trial.spacing;
}

static double objective(unsigned n, const double *x, double *gradient, void *data) {
    const double first_step = 200; /* m/s, where it is largest; NLopt's is minus the gradient */
    search *s = data;
    inversion *v = s->v;
    int64_t first = v->known * v->trial.nx;
    for (unsigned i = 0; i < n; i++) v->trial.v[first + i] = depth_weight(v, first + i) * x[i];
    double misfit = invert_evaluate(v, false), largest = 0;
    for (unsigned i = 0; i < n; i++) {
        double weight = depth_weight(v, first + i), slope = weight * v->gradient.v[first + i];
        largest = fmax(largest, fabs(weight * slope));
        if (gradient) gradient[i] = slope;
    }
    if (s->scale == 0) s->scale = largest > 0 ? first_step / largest : 1;
    for (unsigned i = 0; gradient && i < n; i++) gradient[i] *= s->scale;
    if (invert_over(v)) nlopt_force_stop(s->opt);
    return s->scale * misfit;
}

/* x where velocity is what `of` holds, or a constant when of is NULL. */
static void set_variables(const inversion *v, const ground *of, double constant, double *x) {
    int64_t first = v->known * v->best.nx, count = v->best.nz * v->best.nx - first;
    for (int64_t i = 0; i < count; i++)
        x[i] = (of ? of->v[first + i] : constant) / depth_weight(v, first + i);
}

void invert_lbfgs(inversion *v) {
    int64_t count = (v->best.nz - v->known) * v->best.nx;
    nlopt_opt opt = nlopt_create(NLOPT_LD_LBFGS, (unsigned)count);
    double *x = malloc((size_t)count * sizeof *x), misfit;
    search s = {v, opt, 0};
    bool ready = opt && x && nlopt_set_min_objective(opt, objective, &s) > 0;
    if (ready) set_variables(v, NULL, v->low, x);
    ready = ready && nlopt_set_lower_bounds(opt, x) > 0;
    if (ready) set_variables(v, NULL, v->high, x);
    ready = ready && nlopt_set_upper_bounds(opt, x) > 0;
    if (!ready) {
        fprintf(stderr, "fwi: NLopt cannot be set up\n");
        exit(1);
    }
    set_variables(v, &v->best, 0, x);
    nlopt_result result = nlopt_optimize(opt, x, &misfit);
    if (result != NLOPT_FORCED_STOP)
        printf("L-BFGS ended by itself: %s\n", nlopt_result_to_string(result));
    nlopt_destroy(opt);
    free(x);
}
