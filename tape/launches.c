/* launches.c: the ready-made launches: fill, copy, axpy, sums, Adam.
 *
 * Each is a kernel like a user's, built when first used for a dtype and a rank and kept by the
 * context. Contiguous arrays are one row of elements, whatever their rank; others up to rank 3 have
 * a grid axis per dimension, so that these too run as long rows; above, one axis counts through the
 * outer dimensions. 16-bit floats are float32 between the load and the store. */
#include <math.h>

#include "core/array.h"
#include "core/builder.h"
#include "core/context.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/status.h"
#include "ops/all_ops.h"
#include "tape/tape.h"

enum {
    FIELD_WIDTH = 512, /* elements of a block of an elementwise kernel; runs as long rows anyway */
    SUM_WIDTH = 4096,  /* elements that one block adds up */
    ARRAYS_MAX = 4,
    SCALARS_MAX = 7
};

typedef enum task { FILL, COPY, AXPY, ADAM, SUM, DOT, MISFIT } task;

/* A kernel that was made. */
typedef struct ready {
    struct ready *next;
    task what;
    tile_dtype dtype, result;
    int rank;
    int64_t width;
    tile_kernel *kernel;
} ready;

/* What a block of a kernel works on. */
typedef struct window {
    tile_builder *builder;
    tile_dtype dtype, result; /* result: of sums */
    int rank;
    tile_shape shape; /* 1 but in the last dimension */
    tile_offset at;
} window;

/* Grid axes of arrays of a rank. */
static int axes_of(int rank) {
    return rank < TILE_GRID_RANK ? rank : TILE_GRID_RANK;
}

/* Above rank 3 grid axis 0 counts the rank - 2 outer dimensions; parameters n1, n2, .. are the
 * extents of all of these but the first. */
static void split_outer(window *w) {
    static const char *const names[] = {"n1", "n2", "n3"};
    tile extent[TILE_RANK_MAX];
    for (int d = 1; d <= w->rank - TILE_GRID_RANK; d++)
        extent[d] = tile_int_param(w->builder, names[d - 1]);
    tile i = tile_block_index(w->builder, 0);
    for (int d = w->rank - TILE_GRID_RANK; d > 0; d--) {
        w->at.at[d] = tile_mod(i, extent[d]);
        i = tile_floor_div(i, extent[d]);
    }
    w->at.at[0] = i;
}

static window make_window(tile_builder *b, const ready *like) {
    const int rank = like->rank, axes = axes_of(rank);
    window w = {.builder = b,
                .dtype = like->dtype,
                .result = like->result,
                .rank = rank,
                .shape.rank = rank,
                .at.rank = rank};
    for (int d = 0; d < rank; d++) w.shape.extent[d] = d == rank - 1 ? like->width : 1;
    if (rank > TILE_GRID_RANK) split_outer(&w);
    for (int g = rank > TILE_GRID_RANK; g < axes; g++)
        w.at.at[rank - axes + g] = tile_block_start(b, g, w.shape.extent[rank - axes + g]);
    return w;
}

static tile_param array_param(const window *w, const char *name) {
    return tile_array_param(w->builder, name, w->dtype, w->rank);
}

static tile as_dtype(tile t, tile_dtype dtype) {
    return tile_is_good(t) && tile_dtype_of(t) != dtype ? tile_cast(t, dtype) : t;
}

static tile load(const window *w, tile_param a) {
    return tile_widened(tile_load(a, w->shape, w->at));
}

static void store(const window *w, tile_param a, tile t) {
    tile_store(a, as_dtype(t, w->dtype), w->at);
}

static tile real_param(const window *w, const char *name) {
    return tile_real_param(w->builder, name, tile_wide_dtype(w->dtype));
}

static void build_fill(const window *w) {
    const tile_param a = array_param(w, "a");
    const tile value = tile_is_float(w->dtype)
                           ? tile_real_param(w->builder, "value", w->dtype)
                           : tile_cast(tile_int_param(w->builder, "value"), w->dtype);
    tile_store(a, tile_broadcast(value, w->shape), w->at);
}

static void build_copy(const window *w) {
    const tile_param x = array_param(w, "x"), y = array_param(w, "y");
    tile_store(y, tile_load(x, w->shape, w->at), w->at);
}

static void build_axpy(const window *w) {
    const tile_param px = array_param(w, "x"), py = array_param(w, "y");
    const tile alpha = real_param(w, "alpha");
    const tile x = load(w, px), y = load(w, py);
    store(w, py, tile_expr("y + alpha*x", y, alpha, x));
}

/* The scalars that hold 1 - beta are made in double: in float32, 1 - 0.999f is off by 1e-5. */
static void build_adam(const window *w) {
    const tile_param px = array_param(w, "x"), pg = array_param(w, "g");
    const tile_param pm = array_param(w, "m"), pv = array_param(w, "v");
    const tile beta1 = real_param(w, "beta1"), rest1 = real_param(w, "rest1");
    const tile beta2 = real_param(w, "beta2"), rest2 = real_param(w, "rest2");
    const tile rate = real_param(w, "rate"), grow = real_param(w, "grow");
    const tile epsilon = real_param(w, "epsilon");
    const tile x = load(w, px), g = load(w, pg), m = load(w, pm), v = load(w, pv);
    const tile m1 = tile_expr("beta1*m + rest1*g", beta1, m, rest1, g);
    const tile v1 = tile_expr("beta2*v + rest2*g*g", beta2, v, rest2, g);
    store(w, pm, m1);
    store(w, pv, v1);
    store(w, px,
          tile_expr("x - rate*m1/(sqrt(grow*v1) + epsilon)", x, rate, m1, grow, v1, epsilon));
}

/* A block's sum goes to its own place of an array as large as the grid. */
static void store_sum(const window *w, tile_param sums, tile s) {
    tile_offset at = {.rank = axes_of(w->rank)};
    for (int g = 0; g < at.rank; g++) at.at[g] = tile_block_index(w->builder, g);
    tile_store(sums, as_dtype(s, w->result), at);
}

static tile_param sums_param(const window *w) {
    return tile_array_param(w->builder, "sums", w->result, axes_of(w->rank));
}

static void build_sum(const window *w) {
    const tile_param px = array_param(w, "x"), sums = sums_param(w);
    store_sum(w, sums, tile_sum(load(w, px), TILE_ALL_AXES));
}

static void build_dot(const window *w) {
    const tile_param px = array_param(w, "x"), py = array_param(w, "y"), sums = sums_param(w);
    store_sum(w, sums, tile_dot(load(w, px), load(w, py)));
}

static void build_misfit(const window *w) {
    const tile_param px = array_param(w, "x"), py = array_param(w, "y"), sums = sums_param(w);
    const tile difference = tile_sub(load(w, px), load(w, py));
    store_sum(w, sums, tile_dot(difference, difference));
}

typedef struct recipe {
    const char *call;
    int arrays; /* of one shape; a sum has its result besides */
    const char *names[ARRAYS_MAX];
    void (*build)(const window *w);
} recipe;

static const recipe recipes[] = {
    [FILL] = {"tape_fill", 1, {"a"}, build_fill},
    [COPY] = {"tape_copy", 2, {"x", "y"}, build_copy},
    [AXPY] = {"tape_axpy", 2, {"x", "y"}, build_axpy},
    [ADAM] = {"tape_adam", 4, {"x", "g", "m", "v"}, build_adam},
    [SUM] = {"tape_sum", 1, {"x"}, build_sum},
    [DOT] = {"tape_dot", 2, {"x", "y"}, build_dot},
    [MISFIT] = {"tape_misfit", 2, {"x", "y"}, build_misfit},
};

/* Only for making: a list that is there is read without it. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static void free_ready(tile_context *ctx) {
    ready *r = ctx->ready_made;
    while (r) {
        ready *next = r->next;
        tile_kernel_destroy(r->kernel);
        tile_free(r);
        r = next;
    }
}

static const ready *look_up(const tile_context *ctx, const ready *like) {
    const ready *r = __atomic_load_n((ready *const *)&ctx->ready_made, __ATOMIC_ACQUIRE);
    while (r && (r->what != like->what || r->dtype != like->dtype || r->result != like->result ||
                 r->rank != like->rank || r->width != like->width))
        r = r->next;
    return r;
}

static tile_status make(tile_context *ctx, const ready *like, const ready **made) {
    tile_builder *b = tile_kernel_begin(ctx, recipes[like->what].call);
    if (!b) return TILE_E_MEMORY;
    const window w = make_window(b, like);
    recipes[like->what].build(&w);
    tile_kernel *kernel = NULL;
    TILE_TRY(tile_kernel_end(b, &kernel));
    __atomic_add_fetch(&ctx->ready_refs, 1, __ATOMIC_RELAXED);
    ready *r = tile_alloc(sizeof *r);
    if (!r) {
        __atomic_sub_fetch(&ctx->ready_refs, 1, __ATOMIC_RELAXED);
        tile_kernel_destroy(kernel);
        return TILE_E_MEMORY;
    }
    *r = *like;
    r->kernel = kernel;
    r->next = ctx->ready_made;
    ctx->free_ready_made = free_ready;
    __atomic_store_n((ready **)&ctx->ready_made, r, __ATOMIC_RELEASE);
    *made = r;
    return TILE_OK;
}

static tile_status find_kernel(tile_context *ctx, const ready *like, tile_kernel **kernel) {
    const ready *found = look_up(ctx, like);
    if (!found) {
        pthread_mutex_lock(&making);
        found = look_up(ctx, like);
        const tile_status status = found ? TILE_OK : make(ctx, like, &found);
        pthread_mutex_unlock(&making);
        TILE_TRY(status);
    }
    *kernel = found->kernel;
    return TILE_OK;
}

/* One ready-made launch: arrays of one shape, a sum's array of block sums, scalars. */
typedef struct job {
    tape *record;
    task what;
    int64_t width;
    tile_array *array[ARRAYS_MAX];
    tile_array *sums; /* NULL but for sums */
    int scalars;
    tile_arg scalar[SCALARS_MAX];
} job;

static int array_count(const job *j) {
    return recipes[j->what].arrays;
}

static tile_status check(const job *j, bool any_dtype) {
    const recipe *r = &recipes[j->what];
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

/* Blocks along the grid axes of an array. */
static tile_grid grid_of(tile_shape shape, int64_t width) {
    tile_grid grid = {{1, 1, 1}};
    const int axes = axes_of(shape.rank);
    for (int d = 0; d < shape.rank; d++) {
        const int64_t n = shape.extent[d];
        const int g = d < shape.rank - axes ? 0 : d - (shape.rank - axes);
        grid.blocks[g] *= d == shape.rank - 1 ? n / width + (n % width != 0) : n;
    }
    return grid;
}

static tile_status launch(const job *j, tile_grid grid) {
    const tile_array *first = j->array[0];
    const ready like = {.what = j->what,
                        .dtype = first->dtype,
                        .result = (j->sums ? j->sums : first)->dtype,
                        .rank = first->shape.rank,
                        .width = j->width};
    tile_kernel *kernel;
    TILE_TRY(find_kernel(first->storage->ctx, &like, &kernel));
    tile_arg arg[TILE_RANK_MAX + ARRAYS_MAX + 1 + SCALARS_MAX];
    int count = 0;
    for (int d = 1; d <= like.rank - TILE_GRID_RANK; d++)
        arg[count++] = tile_arg_int(first->shape.extent[d]);
    for (int k = 0; k < array_count(j); k++) arg[count++] = tile_arg_array(j->array[k]);
    if (j->sums) arg[count++] = tile_arg_array(j->sums);
    for (int k = 0; k < j->scalars; k++) arg[count++] = j->scalar[k];
    return tile_launch(j->record, kernel, grid, (tile_args){count, arg});
}

static tile_status launch_field(job *j) {
    j->width = FIELD_WIDTH;
    TILE_TRY(make_rows(j));
    return launch(j, grid_of(j->array[0]->shape, j->width));
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
    job first = {.record = j->record, .what = COPY, .array = {x, copy}};
    tile_status status = launch_field(&first);
    j->array[0] = copy;
    if (!status) status = launch_field(j);
    if (status && j->record) tape_forget(j->record, before);
    tile_array_destroy(copy);
    return status;
}

tile_status tape_fill(tape *record, tile_array *a, double value) {
    job j = {.record = record, .what = FILL, .array = {a}, .scalars = 1};
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
    job j = {.record = record, .what = COPY, .array = {x, y}};
    TILE_TRY(check(&j, true));
    return launch_apart(&j);
}

tile_status tape_axpy(tape *record, double alpha, tile_array *x, tile_array *y) {
    job j = {.record = record, .what = AXPY, .array = {x, y}, .scalars = 1};
    j.scalar[0] = tile_arg_real(alpha);
    TILE_TRY(check(&j, false));
    return launch_apart(&j);
}

static tile_status check_result(const job *j, const tile_array *result) {
    const char *call = recipes[j->what].call;
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
    const tile_grid grid = grid_of(shape, j->width);
    if (shape.rank == 1 && grid.blocks[0] <= 1) {
        TILE_TRY(tile_array_row(result, &j->sums));
        return launch(j, (tile_grid){{1, 1, 1}});
    }
    tile_array *sums;
    tile_shape blocks = {.rank = axes_of(shape.rank)};
    for (int g = 0; g < blocks.rank; g++) blocks.extent[g] = grid.blocks[g];
    TILE_TRY(
        tile_array_create(result->storage->ctx, tile_wide_dtype(result->dtype), blocks, &sums));
    j->sums = sums;
    tile_status status = launch(j, grid);
    job next = {.record = j->record, .what = SUM, .array = {sums}};
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
    job j = {.record = record, .what = DOT, .array = {x, y}};
    return run_sum(&j, result);
}

tile_status tape_sum(tape *record, tile_array *x, tile_array *result) {
    job j = {.record = record, .what = SUM, .array = {x}};
    return run_sum(&j, result);
}

tile_status tape_misfit(tape *record, tile_array *x, tile_array *y, tile_array *result) {
    job j = {.record = record, .what = MISFIT, .array = {x, y}};
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
                       "tape_adam: %s and %s share memory", recipes[ADAM].names[i],
                       recipes[ADAM].names[k]);
    return TILE_OK;
}

tile_status tape_adam(tape *record, const tape_adam_options *options, int64_t step, tile_array *x,
                      tile_array *g, tile_array *m, tile_array *v) {
    tape_adam_options o = {.rate = 0};
    if (options) o = *options;
    job j = {.record = record, .what = ADAM, .array = {x, g, m, v}, .scalars = SCALARS_MAX};
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
