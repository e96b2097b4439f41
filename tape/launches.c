/* launches.c: the ready-made launches: fill, copy, axpy, sums, Adam. */
#include <math.h>

#include "core/array.h"
#include "core/dtype.h"
#include "core/status.h"
#include "tape/ready.h"

enum {
    SUM_WIDTH = 4096, /* elements that one block adds up */
    SCALARS_MAX = 7
};

/* One ready-made launch: arrays of one shape, a sum's array of block sums, scalars. */
typedef struct job {
    tape *record;
    tape_ready_task what;
    int64_t width;
    tile_array *array[TAPE_READY_ARRAYS];
    tile_array *sums; /* NULL but for sums */
    int scalars;
    tile_arg scalar[SCALARS_MAX];
} job;

static int array_count(const job *j) {
    return tape_ready_recipe(j->what)->arrays;
}

static tile_status check(const job *j, bool any_dtype) {
    const tape_recipe *r = tape_ready_recipe(j->what);
    char text[2][TILE_SHAPE_TEXT];
    for (int k = 0; k < r->arrays; k++) {
        const tile_array *a = j->array[k], *first = j->array[0];
        TILE_CHECK(a, TILE_E_ARGUMENT, "%s: %s is NULL", r->call, r->names[k]);
        TILE_CHECK(any_dtype || tile_is_float(a->dtype), TILE_E_DTYPE,
                   "%s: %s is %s, wanted a float dtype", r->call, r->names[k],
                   tile_dtype_name(a->dtype));
        TILE_CHECK(a->dtype == first->dtype, TILE_E_DTYPE, "%s: %s is %s, %s is %s", r->call,
                   r->names[k], tile_dtype_name(a->dtype), r->names[0],
                   tile_dtype_name(first->dtype));
        TILE_CHECK(tile_shape_equal(a->shape, first->shape), TILE_E_SHAPE, "%s: %s is %s, %s is %s",
                   r->call, r->names[k], tile_shape_text(a->shape, text[0]), r->names[0],
                   tile_shape_text(first->shape, text[1]));
        TILE_CHECK(a->storage->ctx == first->storage->ctx, TILE_E_ARGUMENT,
                   "%s: %s is of another context than %s", r->call, r->names[k], r->names[0]);
    }
    TILE_CHECK(!j->record || j->record->ctx == j->array[0]->storage->ctx, TILE_E_ARGUMENT,
               "%s: the tape is of another context than %s", r->call, r->names[0]);
    return TILE_OK;
}

/* Contiguous arrays become rows. */
static tile_status make_rows(job *j) {
    for (int k = 0; k < array_count(j); k++)
        if (!tile_array_is_contiguous(j->array[k])) return TILE_OK;
    for (int k = 0; k < array_count(j); k++) TILE_TRY(tile_array_row(j->array[k], &j->array[k]));
    return TILE_OK;
}

static tile_status launch(const job *j, tile_grid grid) {
    const tile_array *first = j->array[0];
    const tape_ready_key like = {.what = j->what,
                                 .dtype = first->dtype,
                                 .result = (j->sums ? j->sums : first)->dtype,
                                 .rank = first->shape.rank,
                                 .width = j->width};
    tile_kernel *kernel;
    TILE_TRY(tape_ready_kernel(first->storage->ctx, &like, &kernel));
    tile_arg arg[TILE_RANK_MAX + TAPE_READY_ARRAYS + 1 + SCALARS_MAX];
    int count = 0;
    for (int d = 1; d <= like.rank - TILE_GRID_RANK; d++)
        arg[count++] = tile_arg_int(first->shape.extent[d]);
    for (int k = 0; k < array_count(j); k++) arg[count++] = tile_arg_array(j->array[k]);
    if (j->sums) arg[count++] = tile_arg_array(j->sums);
    for (int k = 0; k < j->scalars; k++) arg[count++] = j->scalar[k];
    return tile_launch(j->record, kernel, grid, (tile_args){count, arg});
}

static tile_status launch_field(job *j) {
    j->width = TAPE_READY_WIDTH;
    TILE_TRY(make_rows(j));
    return launch(j, tape_ready_grid(j->array[0]->shape, j->width));
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* False only when no place of one is a place of the other: apart in memory, or interleaved. */
static bool may_meet(const tile_array *a, const tile_array *b) {
    if (a->storage != b->storage) return false;
    const tile_range r = tile_array_range(a), s = tile_array_range(b);
    if (r.low >= s.high || s.low >= r.high) return false;
    int64_t step = 0;
    for (int d = 0; d < a->shape.rank; d++)
        if (a->shape.extent[d] > 1)
            step = common_divisor(common_divisor(step, a->stride[d]), b->stride[d]);
    return step == 0 || (a->offset - b->offset) % step == 0;
}

/* Runs a job whose first array is read and whose second is written. Where they overlap without
 * being the same, the first is copied before. */
static tile_status launch_apart(job *j) {
    tile_array *x = j->array[0], *y = j->array[1], *copy;
    if (!may_meet(x, y) || tape_same_elements(x, y)) return launch_field(j);
    TILE_TRY(tile_array_create(x->storage->ctx, x->dtype, x->shape, &copy));
    const int32_t before = j->record ? j->record->count : 0;
    job first = {.record = j->record, .what = TAPE_READY_COPY, .array = {x, copy}};
    tile_status status = launch_field(&first);
    j->array[0] = copy;
    if (!status) status = launch_field(j);
    if (status && j->record) tape_forget(j->record, before);
    tile_array_destroy(copy);
    return status;
}

tile_status tape_fill(tape *record, tile_array *a, double value) {
    job j = {.record = record, .what = TAPE_READY_FILL, .array = {a}, .scalars = 1};
    TILE_TRY(check(&j, true));
    const tile_dtype dtype = a->dtype;
    TILE_CHECK(tile_dtype_holds(dtype, value), TILE_E_ARGUMENT,
               "tape_fill: value is %.17g, which %s does not hold", value, tile_dtype_name(dtype));
    if (tile_is_float(dtype)) {
        j.scalar[0] = tile_arg_real(value);
    } else {
        uint64_t bits = 0;
        tile_dtype_put(TILE_U64, value, &bits);
        if (value < 0) tile_dtype_put(TILE_I64, value, &bits);
        j.scalar[0] = tile_arg_int((int64_t)bits);
    }
    return launch_field(&j);
}

tile_status tape_copy(tape *record, tile_array *x, tile_array *y) {
    job j = {.record = record, .what = TAPE_READY_COPY, .array = {x, y}};
    TILE_TRY(check(&j, true));
    return launch_apart(&j);
}

tile_status tape_axpy(tape *record, double alpha, tile_array *x, tile_array *y) {
    job j = {.record = record, .what = TAPE_READY_AXPY, .array = {x, y}, .scalars = 1};
    j.scalar[0] = tile_arg_real(alpha);
    TILE_TRY(check(&j, false));
    return launch_apart(&j);
}

static tile_status check_result(const job *j, const tile_array *result) {
    const char *call = tape_ready_recipe(j->what)->call;
    const tile_array *x = j->array[0];
    char text[TILE_SHAPE_TEXT];
    TILE_CHECK(result, TILE_E_ARGUMENT, "%s: result is NULL", call);
    const tile_dtype dtype = result->dtype;
    TILE_CHECK(dtype == x->dtype || dtype == tile_wide_dtype(x->dtype), TILE_E_DTYPE,
               "%s: result is %s, x is %s", call, tile_dtype_name(dtype),
               tile_dtype_name(x->dtype));
    TILE_CHECK(tile_array_count(result) == 1, TILE_E_SHAPE, "%s: result is %s, wanted one element",
               call, tile_shape_text(result->shape, text));
    TILE_CHECK(result->storage->ctx == x->storage->ctx, TILE_E_ARGUMENT,
               "%s: result is of another context than x", call);
    return TILE_OK;
}

/* Elements that a block adds up: rows that are no row of a contiguous array may be short. */
static int64_t sum_width(tile_shape shape) {
    const int64_t n = shape.extent[shape.rank - 1];
    if (shape.rank == 1 || n > 256) return SUM_WIDTH;
    return n > 16 ? 256 : 16;
}

/* Sums of blocks, then sums of these, until one block is left. Whatever was recorded is the
 * caller's to forget on failure: it wrote to arrays that nobody else knows. */
static tile_status add_up(job *j, tile_array *result) {
    TILE_TRY(make_rows(j));
    const tile_shape shape = j->array[0]->shape;
    j->width = sum_width(shape);
    const tile_grid grid = tape_ready_grid(shape, j->width);
    if (shape.rank == 1 && grid.blocks[0] <= 1) {
        TILE_TRY(tile_array_row(result, &j->sums));
        return launch(j, (tile_grid){{1, 1, 1}});
    }
    tile_array *sums;
    tile_shape blocks = {.rank = tape_ready_axes(shape.rank)};
    for (int g = 0; g < blocks.rank; g++) blocks.extent[g] = grid.blocks[g];
    TILE_TRY(
        tile_array_create(result->storage->ctx, tile_wide_dtype(result->dtype), blocks, &sums));
    j->sums = sums;
    tile_status status = launch(j, grid);
    job next = {.record = j->record, .what = TAPE_READY_SUM, .array = {sums}};
    if (!status) status = add_up(&next, result);
    tile_array_destroy(sums);
    return status;
}

static tile_status run_sum(job *j, tile_array *result) {
    TILE_TRY(check(j, false));
    TILE_TRY(check_result(j, result));
    const int32_t before = j->record ? j->record->count : 0;
    const tile_status status = add_up(j, result);
    if (status && j->record) tape_forget(j->record, before);
    return status;
}

tile_status tape_dot(tape *record, tile_array *x, tile_array *y, tile_array *result) {
    job j = {.record = record, .what = TAPE_READY_DOT, .array = {x, y}};
    return run_sum(&j, result);
}

tile_status tape_sum(tape *record, tile_array *x, tile_array *result) {
    job j = {.record = record, .what = TAPE_READY_SUM, .array = {x}};
    return run_sum(&j, result);
}

tile_status tape_misfit(tape *record, tile_array *x, tile_array *y, tile_array *result) {
    job j = {.record = record, .what = TAPE_READY_MISFIT, .array = {x, y}};
    return run_sum(&j, result);
}

static double or_default(double given, double otherwise) {
    return given != 0 ? given : otherwise;
}

static tile_status check_adam(const job *j, const tape_adam_options *o, int64_t step) {
    TILE_CHECK(step >= 1, TILE_E_ARGUMENT, "tape_adam: step is %lld, wanted 1 or more",
               (long long)step);
    TILE_CHECK(o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1, TILE_E_ARGUMENT,
               "tape_adam: beta1 is %g and beta2 is %g, wanted from 0 and below 1", o->beta1,
               o->beta2);
    TILE_CHECK(isfinite(o->rate) && o->epsilon >= 0 && isfinite(o->epsilon), TILE_E_ARGUMENT,
               "tape_adam: rate is %g and epsilon is %g, wanted finite and from 0", o->rate,
               o->epsilon);
    TILE_TRY(check(j, false));
    for (int k = 0; k < array_count(j); k++)
        for (int i = 0; i < k; i++)
            TILE_CHECK(!may_meet(j->array[i], j->array[k]), TILE_E_ARGUMENT,
                       "tape_adam: %s and %s share memory",
                       tape_ready_recipe(TAPE_READY_ADAM)->names[i],
                       tape_ready_recipe(TAPE_READY_ADAM)->names[k]);
    return TILE_OK;
}

tile_status tape_adam(tape *record, const tape_adam_options *options, int64_t step, tile_array *x,
                      tile_array *g, tile_array *m, tile_array *v) {
    tape_adam_options o = {.rate = 0};
    if (options) o = *options;
    job j = {
        .record = record, .what = TAPE_READY_ADAM, .array = {x, g, m, v}, .scalars = SCALARS_MAX};
    TILE_TRY(check_adam(&j, &o, step));
    const double beta1 = or_default(o.beta1, 0.9), beta2 = or_default(o.beta2, 0.999);
    const double power1 = pow(beta1, (double)step), power2 = pow(beta2, (double)step);
    const double scalar[SCALARS_MAX] = {beta1,
                                        1 - beta1,
                                        beta2,
                                        1 - beta2,
                                        or_default(o.rate, 1e-3) / (1 - power1),
                                        1 / (1 - power2),
                                        or_default(o.epsilon, 1e-8)};
    for (int k = 0; k < SCALARS_MAX; k++) j.scalar[k] = tile_arg_real(scalar[k]);
    return launch_field(&j);
}
