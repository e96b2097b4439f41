/* survey.h: what is fixed before a wave is computed: grid, time steps, sources, receivers. */
#ifndef FWI_SURVEY_H
#define FWI_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The wave runs on a padded grid: the model, `top` sponge cells above it, and `side` sponge cells
 * to the left, to the right and below. Sources and receivers stand in one row of the model, with a
 * receiver in each of its columns. */
typedef struct survey {
    int64_t nz, nx;    /* samples of the model: depth, distance */
    double spacing;    /* m between them */
    int64_t side, top; /* sponge cells; top is 0 under a free surface */
    bool free_surface; /* pressure is 0 in row 0 */
    int64_t row;       /* of sources and receivers, in the model */
    int64_t shots, steps;
    double dt;        /* s */
    double frequency; /* peak of the Ricker wavelet, Hz */
} survey;

/* Limits, for 2nd order in time and 4th order in space.
 * cfl: von Neumann; the largest eigenvalue of -h^2 lap is 2 * 16/3, and (v dt / h)^2 times it must
 * stay below 4.
 * points: Alford, Kelly, Boore, "Accuracy of finite-difference modeling of the acoustic wave
 * equation", Geophysics 39 (1974), ask for 5.5 at the upper half-power frequency, which is 1.44
 * times a Ricker's peak. 5 at 2.5 times the peak are 8.7 there. */
#define SURVEY_CFL_LIMIT 0.612
#define SURVEY_POINTS_LIMIT 5.0
#define SURVEY_HIGHEST 2.5 /* highest frequency over peak: a Ricker has 3 % of its peak there */

/* Rows and columns of the padded grid. */
int64_t survey_rows(const survey *s);
int64_t survey_columns(const survey *s);

/* The model's column of a shot's source: shots are spread evenly. */
int64_t survey_source(const survey *s, int64_t shot);

/* v dt / h, and how many cells the shortest wave covers. */
double survey_cfl(const survey *s, double fastest);
double survey_points(const survey *s, double slowest);

/* Bytes that the tape keeps of one shot: each step's pressure. */
double survey_tape_bytes(const survey *s, size_t element_bytes);

/* Whether the settings can be run for velocities in slowest..fastest; if not, one sentence. */
bool survey_check(const survey *s, double slowest, double fastest, char *message, size_t bytes);

/* Ricker wavelet, [steps]. */
void survey_wavelet(const survey *s, double *wavelet);

/* What a step multiplies the pressure with: 1 inside, less in the sponge, 0 at a free surface.
 * [rows, columns] */
void survey_damp(const survey *s, double *damp);

#ifdef __cplusplus
}
#endif
#endif
