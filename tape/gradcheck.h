/* gradcheck.h: a recorded program as a function that can be tried; private to the gradient check.
 * */
#ifndef TILE_TAPE_GRADCHECK_H
#define TILE_TAPE_GRADCHECK_H

#include "tape/tape.h"

/* An array whose gradient is checked: x = at + h * direction. */
typedef struct tape_subject {
    tile_array *array;       /* the whole storage; NULL: not made yet */
    const tile_array *shown; /* what the program calls it */
    int64_t count;
    size_t bytes;
    void *at, *tried; /* elements of the dtype */
    double *grad, *direction;
    void *grad_before; /* what the gradient held */
    double size;       /* root of the mean square of at; 1 when that is 0 or not finite */
    bool moves;        /* by the direction; else it stays */
} tape_subject;

/* Saved values of a storage that the tape writes. */
typedef struct tape_saved {
    tile_storage *storage;
    tile_buffer *values;
} tape_saved;

typedef struct tape_check {
    tape *record;
    tile_array *loss;
    int count;
    tape_subject *subject;
    int saved_count;
    tape_saved *saved;
    uint64_t random; /* state of the generator */
    double eps;      /* of the coarsest dtype that is seen: loss and subjects */
    double value;    /* loss at h = 0 */
    double noise;    /* rounding error of a loss, estimated */
} tape_check;

/* A number from 0 to below 1. */
double tape_check_random(tape_check *c);

/* An element's natural step. */
double tape_check_size(const tape_subject *s, int64_t i);

/* A directional derivative, ours and by differences. */
typedef struct tape_difference {
    double ours, difference;
    double tolerance; /* on their difference */
    tape_verdict verdict;
} tape_difference;

/* The loss at h; moved: <gradient, x - at> with x as rounded to its dtype, so that rounding of x
 * is no error of the difference. */
tile_status tape_check_try(tape_check *c, double h, double *value, double *moved) TILE_MUST_USE;

/* Fills noise. */
tile_status tape_check_noise(tape_check *c) TILE_MUST_USE;

/* Compares along the subjects' directions. */
tile_status tape_check_compare(tape_check *c, tape_difference *d) TILE_MUST_USE;

/* The slope of the Taylor remainder, or NAN. */
tile_status tape_check_taylor(tape_check *c, double *slope) TILE_MUST_USE;

#endif
