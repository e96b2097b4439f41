/* invert.h: the search for the velocity that explains the observed data. */
#ifndef FWI_INVERT_H
#define FWI_INVERT_H

#include <signal.h>

#include "ground.h"
#include "model.h"

typedef struct inversion {
    wave_model *model;
    tile_array *const *observed;
    const ground *truth;               /* for the model error that is printed */
    int64_t known;                     /* rows from the top that keep their velocity */
    double low, high;                  /* bounds of the velocity, m/s */
    int64_t iterations;                /* at most */
    const volatile sig_atomic_t *stop; /* not 0: end after the iteration that is running */

    ground best;                 /* begins as the start model, ends as the result */
    ground first_gradient;       /* out */
    double first_misfit, misfit; /* out: of the start model, of the best */

    int64_t done;   /* iterations so far; -1 before the start model */
    double seconds; /* of the clock at the beginning */
    ground trial, gradient;
} inversion;

/* The start model, and room for the results; undone by invert_end. */
void invert_begin(inversion *v, const ground *start);
void invert_end(inversion *v);

/* Misfit and gradient of the trial model, in a line of the output; the best is kept. every: a worse
 * one is an iteration too. */
double invert_evaluate(inversion *v, bool every);

/* No further iteration: enough of them, or the user stops. */
bool invert_over(const inversion *v);

/* L-BFGS with bounds: NLopt's LD_LBFGS. An iteration is a model that lowers the misfit; trials of
 * the line search that do not are printed as such. */
void invert_lbfgs(inversion *v);

/* Adam, clamped to the bounds. An iteration is a step. */
void invert_adam(inversion *v);

/* Seconds of a clock. */
double clock_seconds(void);

#endif
