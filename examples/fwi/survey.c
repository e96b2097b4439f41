/* survey.c: grid, time steps, sponge, wavelet, and the checks before a run. */
#include "survey.h"

#include <math.h>
#include <stdio.h>

int64_t survey_rows(const survey *s) {
    return s->top + s->nz + s->side;
}

int64_t survey_columns(const survey *s) {
    return s->side + s->nx + s->side;
}

int64_t survey_source(const survey *s, int64_t shot) {
    return (2 * shot + 1) * s->nx / (2 * s->shots);
}

double survey_cfl(const survey *s, double fastest) {
    return fastest * s->dt / s->spacing;
}

double survey_points(const survey *s, double slowest) {
    return slowest / (SURVEY_HIGHEST * s->frequency * s->spacing);
}

double survey_tape_bytes(const survey *s, size_t element_bytes) {
    return (double)s->steps * (double)survey_rows(s) * (double)survey_columns(s) *
           (double)element_bytes;
}

bool survey_check(const survey *s, double slowest, double fastest, char *message, size_t bytes) {
    double cfl = survey_cfl(s, fastest), points = survey_points(s, slowest);
    if (!(cfl <= SURVEY_CFL_LIMIT)) {
        snprintf(message, bytes,
                 "unstable: CFL number %.3f is above %.3f; use a --dt of at most %.3g s", cfl,
                 SURVEY_CFL_LIMIT, floor(SURVEY_CFL_LIMIT * s->spacing / fastest * 1e5) / 1e5);
        return false;
    }
    if (!(points >= SURVEY_POINTS_LIMIT)) {
        double product = slowest / (SURVEY_HIGHEST * SURVEY_POINTS_LIMIT);
        snprintf(message, bytes,
                 "under-sampled: %.1f points per shortest wavelength, %.0f are needed; use a "
                 "--spacing of at most %.4g m or a --frequency of at most %.3g Hz",
                 points, SURVEY_POINTS_LIMIT, floor(product / s->frequency * 10) / 10,
                 floor(product / s->spacing * 100) / 100);
        return false;
    }
    if ((double)s->steps * s->dt * s->frequency < 3) {
        snprintf(message, bytes,
                 "too short: the wavelet alone takes %.2g s; use a longer --duration",
                 3 / s->frequency);
        return false;
    }
    return true;
}

/* w(t) = (1 - 2 a) exp(-a), a = (pi f (t - t0))^2; it begins 1.2 periods before its peak. */
void survey_wavelet(const survey *s, double *wavelet) {
    const double pi = 3.14159265358979323846;
    for (int64_t t = 0; t < s->steps; t++) {
        double phase = pi * (s->frequency * (double)t * s->dt - 1.2);
        wavelet[t] = (1 - 2 * phase * phase) * exp(-phase * phase);
    }
}

/* How deep a place lies in a sponge that begins at first and last: 0 inside, 1 at the rim. */
static double depth_in_sponge(int64_t i, int64_t first, int64_t last, int64_t width) {
    int64_t cells = i < first ? first - i : i > last ? i - last : 0;
    return (double)cells / (double)width;
}

/* A step multiplies by exp(-c d^2), as in Cerjan, Kosloff, Kosloff, Reshef, "A nonreflecting
 * boundary condition for discrete acoustic and elastic wave equations", Geophysics 50 (1985). A
 * wave of that speed falls to exp(-loss / 3) on its way through the sponge, and again on its way
 * back, whatever the time step and the spacing. With more loss, the sponge itself reflects more. */
void survey_damp(const survey *s, double *damp) {
    const double speed = 2500, loss = 5;
    const double strength = loss * speed * s->dt / ((double)s->side * s->spacing);
    int64_t rows = survey_rows(s), columns = survey_columns(s);
    for (int64_t z = 0; z < rows; z++) {
        double down = depth_in_sponge(z, s->top, s->top + s->nz - 1, s->side);
        for (int64_t x = 0; x < columns; x++) {
            double across = depth_in_sponge(x, s->side, s->side + s->nx - 1, s->side);
            bool surface = s->free_surface && z == 0;
            damp[z * columns + x] = surface ? 0 : exp(-strength * (down * down + across * across));
        }
    }
}
