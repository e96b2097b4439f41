/* tape_api.h: tapes, backward, ready-made launches, gradient checks; included by tiletape.h. */
#ifndef TILE_TAPE_API_H
#define TILE_TAPE_API_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What happens when a value that an adjoint needs is about to be overwritten. */
typedef enum tape_overwrite {
    TAPE_OVERWRITE_KEEP, /* the old values are kept: gradients stay right */
    TAPE_OVERWRITE_ERROR /* TILE_E_STATE names both launches and the array */
} tape_overwrite;

/* What tape_create may be told. */
typedef struct tape_options {
    tape_overwrite overwrite;
} tape_options;

/* tape_create: an empty tape, recording at once.
 *
 * in       options may be NULL for the defaults
 * errors   TILE_E_ARGUMENT, TILE_E_MEMORY
 */
TILE_API tile_status tape_create(tile_context *ctx, const tape_options *options,
                                 tape **record) TILE_MUST_USE;

/* tape_destroy: let go of a tape and all it kept; NULL is fine. */
TILE_API void tape_destroy(tape *record);

/* tape_reset: empty the tape and let go of what it kept. Gradients stay.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_STATE the tape is running
 */
TILE_API tile_status tape_reset(tape *record) TILE_MUST_USE;

/* tape_length: how many launches, calls and outside writes are recorded. */
TILE_API int64_t tape_length(const tape *record);

/* tape_backward: gradients of a loss of one element, seeded with 1.
 *
 *   gradient(a) += d loss / d (what a held when the tape first used it), for each a with a gradient
 *
 * special  backward twice doubles; recording may go on afterwards. The loss is what the array held
 * at
 *          the end of the recording
 * repeats  same bits on every run and for any number of threads
 * errors   TILE_E_STATE the tape is empty or its arrays have no gradient to compute, or no
 * requested
 *          gradient is reached by the loss; TILE_E_SHAPE loss has not one element; TILE_E_DTYPE,
 *          TILE_E_NO_ADJOINT loss is no float (the latter names the op that wrote it);
 *          TILE_E_MEMORY; TILE_E_EXECUTION a launch failed while it ran, and from then on
 *          TILE_E_STATE until the tape is reset. Nothing has changed then
 */
TILE_API tile_status tape_backward(tape *record, tile_array *loss) TILE_MUST_USE;

/* tape_backward_seeds: the same for several arrays: seed[i] has the shape and dtype of array[i] and
 * is the derivative of some loss by what array[i] held at the end of the recording. Adjoints of
 * 16-bit floats are summed in float32 and rounded once, when they are added to a gradient.
 *
 *   gradient(a) += sum over i of <seed[i], d array[i] / d a>
 *
 * special  an array that the tape has not used is its own derivative: its seed goes to its
 *          gradient, which tape_zero does not know
 * errors   those of tape_backward; TILE_E_DTYPE an array of structs: seed views of its members;
 *          TILE_E_SHAPE, TILE_E_DTYPE a seed that is not like its array
 */
TILE_API tile_status tape_backward_seeds(tape *record, int count, tile_array *const *array,
                                         tile_array *const *seed) TILE_MUST_USE;

/* tape_zero: set the gradient of every array that the tape used to zero.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_MEMORY
 */
TILE_API tile_status tape_zero(tape *record) TILE_MUST_USE;

/* tape_replay: run the recording again. Arrays that it writes, and those that the host wrote
 * between two uses, start from what they held at their first use, and what the host wrote is
 * written again; arrays that it only reads are taken as they are now. Backward is of the new run.
 *
 * errors   TILE_E_STATE somebody else's launch wrote an array that the tape writes too, or an
 *          earlier failure; TILE_E_MEMORY; TILE_E_EXECUTION; after a failure the tape must be reset
 */
TILE_API tile_status tape_replay(tape *record) TILE_MUST_USE;

/* tape_retain: keep the adjoint of what an array holds at this point of the recording. adjoint: an
 * array of the same shape and dtype, the tape's, filled by each backward, valid until reset. The
 * array need not have a gradient.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_DTYPE not a float array; TILE_E_MEMORY
 */
TILE_API tile_status tape_retain(tape *record, tile_array *array,
                                 tile_array **adjoint) TILE_MUST_USE;

/* Host code on the tape. Arrays handed over may be stand-ins for those declared, in their order.
 * forward: overwrite every write. backward: dwrites are the adjoints of what forward wrote (an
 * array that is also read has two entries); add to dreads, where an entry is NULL no gradient is
 * wanted. Both have the dtype of their array, but float32 where that is a 16-bit float. */
typedef tile_status (*tape_forward_call)(void *user, tile_array *const *reads,
                                         tile_array *const *writes);
typedef tile_status (*tape_backward_call)(void *user, tile_array *const *reads,
                                          tile_array *const *dwrites, tile_array *const *dreads);

/* A call to record. */
typedef struct tape_call {
    int read_count, write_count; /* at most TILE_PARAMS_MAX together */
    tile_array *const *reads;
    tile_array *const *writes;
    tape_forward_call forward;
    tape_backward_call
        backward; /* NULL: no adjoint; a gradient that reaches the call is an error */
    void *user;
} tape_call;

/* tape_record_call: run host code now and put it on the tape.
 *
 * errors   what forward returns, when not TILE_OK: nothing is recorded then
 */
TILE_API tile_status tape_record_call(tape *record, const tape_call *call) TILE_MUST_USE;

/* Ready-made launches.
 * Recorded like any other; a NULL tape records nothing. Arrays have equal shapes and dtypes, of a
 * float type unless said, of any rank and strides. They may overlap: it is as if all was read
 * before anything is written. 16-bit floats are computed in float32 and a result rounded once; the
 * result of a sum of theirs may be float32 as well. */

/* tape_fill: a = value; any dtype.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_SHAPE; TILE_E_DTYPE; those of tile_launch
 */
TILE_API tile_status tape_fill(tape *record, tile_array *a, double value) TILE_MUST_USE;

/* tape_copy: y = x; any dtype.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_SHAPE; TILE_E_DTYPE; those of tile_launch
 */
TILE_API tile_status tape_copy(tape *record, tile_array *x, tile_array *y) TILE_MUST_USE;

/* tape_axpy: y += alpha * x.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_SHAPE; TILE_E_DTYPE; those of tile_launch
 */
TILE_API tile_status tape_axpy(tape *record, double alpha, tile_array *x,
                               tile_array *y) TILE_MUST_USE;

/* tape_dot: result[0] = sum of x * y; result has one element.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_SHAPE; TILE_E_DTYPE; those of tile_launch
 */
TILE_API tile_status tape_dot(tape *record, tile_array *x, tile_array *y,
                              tile_array *result) TILE_MUST_USE;

/* tape_sum: result[0] = sum of x.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_SHAPE; TILE_E_DTYPE; those of tile_launch
 */
TILE_API tile_status tape_sum(tape *record, tile_array *x, tile_array *result) TILE_MUST_USE;

/* tape_misfit: result[0] = sum of (x - y)^2.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_SHAPE; TILE_E_DTYPE; those of tile_launch
 */
TILE_API tile_status tape_misfit(tape *record, tile_array *x, tile_array *y,
                                 tile_array *result) TILE_MUST_USE;

/* Zeros choose the defaults. */
typedef struct tape_adam_options {
    double rate, beta1, beta2, epsilon; /* zeros: 1e-3, 0.9, 0.999, 1e-8 */
} tape_adam_options;

/* tape_adam: one step of Adam on x against gradient g; step counts from 1.
 *
 *   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
 *   x -= rate * (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + epsilon)
 *
 * errors   TILE_E_ARGUMENT step below 1, an option out of range, two arrays share memory;
 *          TILE_E_SHAPE; TILE_E_DTYPE; those of tile_launch
 * source   Kingma, Ba, Adam: a method for stochastic optimization, 2015, algorithm 1
 */
TILE_API tile_status tape_adam(tape *record, const tape_adam_options *options, int64_t step,
                               tile_array *x, tile_array *g, tile_array *m,
                               tile_array *v) TILE_MUST_USE;

/* What a gradient check does. */
enum {
    TAPE_CHECK_DIRECTIONS = 1, /* central differences along random directions */
    TAPE_CHECK_ELEMENTS = 2,   /* the same along single elements */
    TAPE_CHECK_TAYLOR = 4,     /* slope of the remainder: 2 */
    TAPE_CHECK_ALL = 7,
    TAPE_CHECK_ROWS = 32
};

/* What it says of an array. */
typedef enum tape_verdict {
    TAPE_CHECK_OK,
    TAPE_CHECK_WRONG,
    TAPE_CHECK_KINK /* one-sided differences disagree: no derivative there */
} tape_verdict;

/* One array with a gradient. */
typedef struct tape_check_row {
    const tile_array *array; /* the tape's, until it is reset */
    int64_t element;         /* the worst, in C order; -1: a direction was worst */
    double ours;             /* the tape's derivative there */
    double difference;       /* by central differences */
    double absolute, relative;
    tape_verdict verdict;
} tape_check_row;

/* What tape_gradcheck found. */
typedef struct tape_check_report {
    int rows;
    tape_check_row row[TAPE_CHECK_ROWS];
    double taylor_slope; /* NAN: not asked for, or the remainder is rounding from the start */
    uint64_t seed;
    bool passed;
} tape_check_report;

/* tape_gradcheck: compare the tape's gradients with differences of replays, in the program's own
 * precision. Arrays and gradients are as before afterwards.
 *
 * in       what: TAPE_CHECK_... bits
 * errors   those of tape_backward and tape_replay; TILE_E_DTYPE an array that carries a gradient,
 *          or a value that a kernel rounds, is of a 16-bit float: differences of its steps say
 *          nothing; a wrong gradient is not an error but a report
 */
TILE_API tile_status tape_gradcheck(tape *record, tile_array *loss, unsigned what,
                                    tape_check_report *report) TILE_MUST_USE;

/* tape_check_print: the report as a table. */
TILE_API void tape_check_print(const tape_check_report *report, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
