/* invert_lbfgs.c: L-BFGS by NLopt. */
#include <math.h>
#include <nlopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "invert.h"

/* What NLopt sees: x = velocity / depth below the known rows, in 1/s, and the misfit times a
 * constant. A gradient by velocity fades with depth as waves spread and are reflected on their way;
 * by x it does not, and the deep ground is found in a few iterations. */
typedef struct search {
    inversion *v;
    nlopt_opt opt;
    double scale; /* 0 before the first call */
} search;

/* Depth of element i of the model in m: d velocity / d x. */
static double depth_weight(const inversion *v, int64_t i) {
    int64_t row = i / v->trial.nx;
    return (double)row * v->trial.spacing;
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

void invert_lbfgs(inversion *v) {
    int64_t first = v->known * v->best.nx, count = v->best.nz * v->best.nx - first;
    nlopt_opt opt = nlopt_create(NLOPT_LD_LBFGS, (unsigned)count);
    ground x = ground_like(&v->best), low = ground_like(&v->best), high = ground_like(&v->best);
    search s = {v, opt, 0};
    for (int64_t i = 0; i < count; i++) {
        double weight = depth_weight(v, first + i);
        x.v[i] = v->best.v[first + i] / weight;
        low.v[i] = v->low / weight;
        high.v[i] = v->high / weight;
    }
    if (!opt || nlopt_set_min_objective(opt, objective, &s) < 0 ||
        nlopt_set_lower_bounds(opt, low.v) < 0 || nlopt_set_upper_bounds(opt, high.v) < 0) {
        fprintf(stderr, "fwi: NLopt cannot be set up\n");
        exit(1);
    }
    double misfit;
    nlopt_result result = nlopt_optimize(opt, x.v, &misfit);
    if (result != NLOPT_FORCED_STOP)
        printf("L-BFGS ended by itself: %s\n", nlopt_result_to_string(result));
    nlopt_destroy(opt);
    ground_clear(&x);
    ground_clear(&low);
    ground_clear(&high);
}
