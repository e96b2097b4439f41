/* check_steps.c: differences of a recorded program's loss: step sizes, rounding, kinks, remainders.
 *
 * Central differences D(h) at steps h, h/4, h/16, .. and their extrapolation to h = 0
 * T(h) = (16 D(h/4) - D(h)) / 15. Large steps err by truncation, which two T show, small ones by
 * rounding, noise / h: the step with the least sum is taken, and what is left is the tolerance. So
 * a float32 program is compared as far as float32 can tell, and no further. */
#include <float.h>
#include <math.h>

#include "core/dtype.h"
#include "core/status.h"
#include "tape/gradcheck.h"

enum { NOISE_POINTS = 7, LEVELS_MAX = 9, TAYLOR_STEPS = 11 };

double tape_check_size(const tape_subject *s, int64_t i) {
    const tile_dtype dtype = s->array->dtype;
    const double x =
        fabs(tile_dtype_get(dtype, (const char *)s->at + (size_t)i * tile_dtype_size(dtype)));
    return isfinite(x) && x > s->size / 16 ? x : s->size / 16;
}

/* Writes at + h * direction; adds <gradient, x - at>. */
static tile_status move(tape *t, tape_subject *s, double h, double *moved) {
    const tile_dtype dtype = s->array->dtype;
    const size_t size = tile_dtype_size(dtype);
    for (int64_t i = 0; i < s->count; i++) {
        const double x = tile_dtype_get(dtype, (const char *)s->at + (size_t)i * size);
        char *to = (char *)s->tried + (size_t)i * size;
        tile_dtype_put(dtype, x + h * s->direction[i], to);
        if (s->direction[i] != 0) *moved += s->grad[i] * (tile_dtype_get(dtype, to) - x);
    }
    return tape_initial_write(t, s->array, s->tried, s->bytes);
}

tile_status tape_check_try(tape_check *c, double h, double *value, double *moved) {
    *moved = 0;
    for (int k = 0; k < c->count; k++)
        if (c->subject[k].moves) TILE_TRY(move(c->record, &c->subject[k], h, moved));
    TILE_TRY(tape_replay(c->record));
    _Alignas(16) char element[16];
    const tile_dtype dtype = c->loss->dtype;
    TILE_TRY(tile_array_read(c->loss, element, tile_dtype_size(dtype)));
    *value = tile_dtype_get(dtype, element);
    return TILE_OK;
}

/* Third differences of the loss at close, evenly spaced points, where the function itself is as
 * good as linear, have the variance 20 sigma^2.
 *
 * source   More, Wild, Estimating computational noise, SIAM J. Sci. Comput. 33 (2011), section 3 */
tile_status tape_check_noise(tape_check *c) {
    double f[NOISE_POINTS], sum = 0;
    for (int k = 0; k < NOISE_POINTS; k++) {
        double moved;
        TILE_TRY(tape_check_try(c, k * 64 * c->eps, &f[k], &moved));
        if (isfinite(moved)) f[k] -= moved;
    }
    for (int k = 0; k + 3 < NOISE_POINTS; k++) {
        const double third = f[k + 3] - 3 * f[k + 2] + 3 * f[k + 1] - f[k];
        sum += third * third;
    }
    const double sigma = sqrt(sum / (20 * (NOISE_POINTS - 3))), least = c->eps * fabs(c->value);
    c->noise = isfinite(sigma) && sigma > least ? sigma : least;
    return TILE_OK;
}

/* Both sides of a step. */
typedef struct sides {
    double h;
    double central; /* (f(h) - f(-h)) / 2h, less what rounding of x added */
    double gap;     /* difference of the one-sided derivatives */
    bool good;      /* all finite */
} sides;

static tile_status step(tape_check *c, double h, double ours, sides *s) {
    double f[2], moved[2];
    TILE_TRY(tape_check_try(c, h, &f[0], &moved[0]));
    TILE_TRY(tape_check_try(c, -h, &f[1], &moved[1]));
    const double rounding = (moved[0] - moved[1]) / (2 * h) - ours;
    s->h = h;
    s->central = (f[0] - f[1]) / (2 * h) - (isfinite(rounding) ? rounding : 0);
    s->gap = (f[0] - 2 * c->value + f[1]) / h;
    s->good = isfinite(s->central) && isfinite(s->gap);
    return TILE_OK;
}

/* <gradient, direction>, and the sum of the terms' magnitudes. */
static double directional(const tape_check *c, double *magnitude) {
    double sum = 0;
    *magnitude = 0;
    for (int k = 0; k < c->count; k++) {
        const tape_subject *s = &c->subject[k];
        for (int64_t i = 0; s->moves && i < s->count; i++) {
            if (s->direction[i] == 0) continue;
            sum += s->grad[i] * s->direction[i];
            *magnitude += fabs(s->grad[i] * s->direction[i]);
        }
    }
    return sum;
}

/* The best extrapolated difference, and what it may be off by. */
typedef struct estimate {
    double value, error;
} estimate;

static double relative_tolerance(const tape_check *c) {
    return c->eps > DBL_EPSILON ? 1e-3 : 1e-6;
}

static tile_status extrapolate(tape_check *c, double ours, estimate *best) {
    const int levels = c->eps > DBL_EPSILON ? 6 : LEVELS_MAX;
    sides coarse = {.good = false}, fine;
    double last = NAN;
    *best = (estimate){NAN, INFINITY};
    for (int j = 0; j < levels; j++, coarse = fine) {
        TILE_TRY(step(c, ldexp(1, -3 - 2 * j), ours, &fine));
        if (!coarse.good || !fine.good) {
            if (fine.good && isnan(best->value)) best->value = fine.central;
            continue;
        }
        const double t = (16 * fine.central - coarse.central) / 15;
        const double truncation = fabs(t - (isfinite(last) ? last : fine.central));
        const double error = truncation + 2 * c->noise / fine.h;
        if (error < best->error) *best = (estimate){t, error};
        if (best->error <= 1e-2 * relative_tolerance(c) * fabs(t)) break;
        if (2 * c->noise / fine.h > best->error) break;
        last = t;
    }
    return TILE_OK;
}

/* Where there is a derivative, the gap shrinks with the step. A subgradient is off by the gap at
 * most: what is further off is wrong, kink or not. */
static tile_status is_kink(tape_check *c, const tape_difference *d, bool *kink) {
    const double h = c->eps > DBL_EPSILON ? ldexp(1, -8) : ldexp(1, -18);
    sides coarse, fine;
    TILE_TRY(step(c, 4 * h, d->ours, &coarse));
    TILE_TRY(step(c, h, d->ours, &fine));
    const double gap = fabs(fine.gap);
    *kink = coarse.good && fine.good && gap > 16 * c->noise / h && gap > fabs(coarse.gap) / 2 &&
            fabs(d->ours - fine.central) <= gap + d->tolerance;
    return TILE_OK;
}

static bool agrees(const tape_difference *d) {
    return fabs(d->ours - d->difference) <= d->tolerance;
}

/* A function that bends within the steps above has differences that look settled and are not. The
 * least step that rounding allows has the last word, when it is settled too. */
static tile_status look_closer(tape_check *c, tape_difference *d) {
    const double relative = relative_tolerance(c), size = fmax(fabs(d->ours), fabs(d->difference));
    const double h = fmax(2 * c->noise / (relative * size), 64 * c->eps);
    sides coarse, fine;
    if (!(h < ldexp(1, -5))) return TILE_OK;
    TILE_TRY(step(c, 4 * h, d->ours, &coarse));
    TILE_TRY(step(c, h, d->ours, &fine));
    const double error = fabs(coarse.central - fine.central) + 2 * c->noise / h;
    if (!fine.good || !(error <= 10 * relative * size)) return TILE_OK;
    d->difference = fine.central;
    d->tolerance = relative * size + 4 * error;
    return TILE_OK;
}

tile_status tape_check_compare(tape_check *c, tape_difference *d) {
    double magnitude;
    estimate e;
    d->ours = directional(c, &magnitude);
    TILE_TRY(extrapolate(c, d->ours, &e));
    d->difference = e.value;
    d->tolerance = relative_tolerance(c) * fmax(fabs(d->ours), fabs(e.value)) +
                   64 * c->eps * magnitude + (isfinite(e.error) ? 4 * e.error : 0);
    d->verdict = TAPE_CHECK_OK;
    if (agrees(d)) return TILE_OK;
    TILE_TRY(look_closer(c, d));
    if (agrees(d)) return TILE_OK;
    bool kink;
    TILE_TRY(is_kink(c, d, &kink));
    d->verdict = kink ? TAPE_CHECK_KINK : TAPE_CHECK_WRONG;
    return TILE_OK;
}

/* The remainder R(h) = |f(h) - f(0) - h <gradient, direction>| falls with h^2 or faster when the
 * gradient is right, with h when it is not. R(h) + R(-h), so that the two terms of a wrong one
 * never cancel. The slope is taken at the least steps that rounding leaves. */
tile_status tape_check_taylor(tape_check *c, double *slope) {
    double before = NAN;
    *slope = NAN;
    for (int j = 0; j < TAYLOR_STEPS; j++) {
        double f[2], moved[2];
        const double h = ldexp(1, -1 - j);
        TILE_TRY(tape_check_try(c, h, &f[0], &moved[0]));
        TILE_TRY(tape_check_try(c, -h, &f[1], &moved[1]));
        const double remainder =
            fabs(f[0] - c->value - moved[0]) + fabs(f[1] - c->value - moved[1]);
        if (remainder <= 64 * c->noise) break;
        if (isfinite(before) && isfinite(remainder)) *slope = log2(before / remainder);
        before = remainder;
    }
    return TILE_OK;
}
