/* ready.c: the kernels of the ready-made launches: built when first used, kept by the context.
 *
 * Contiguous arrays are one row of elements, whatever their rank; others up to rank 3 have a grid
 * axis per dimension, so that these too run as long rows; above, one axis counts through the outer
 * dimensions. 16-bit floats are float32 between the load and the store. */
#include "tape/ready.h"

#include "core/builder.h"
#include "core/context.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/status.h"
#include "ops/all_ops.h"

/* A kernel that was made. */
typedef struct ready {
    struct ready *next;
    tape_ready_key key;
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

int tape_ready_axes(int rank) {
    return rank < TILE_GRID_RANK ? rank : TILE_GRID_RANK;
}

tile_grid tape_ready_grid(tile_shape shape, int64_t width) {
    tile_grid grid = {{1, 1, 1}};
    const int axes = tape_ready_axes(shape.rank);
    for (int d = 0; d < shape.rank; d++) {
        const int64_t n = shape.extent[d];
        const int g = d < shape.rank - axes ? 0 : d - (shape.rank - axes);
        grid.blocks[g] *= d == shape.rank - 1 ? n / width + (n % width != 0) : n;
    }
    return grid;
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

static window make_window(tile_builder *b, const tape_ready_key *like) {
    const int rank = like->rank, axes = tape_ready_axes(rank);
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
    tile_offset at = {.rank = tape_ready_axes(w->rank)};
    for (int g = 0; g < at.rank; g++) at.at[g] = tile_block_index(w->builder, g);
    tile_store(sums, as_dtype(s, w->result), at);
}

static tile_param sums_param(const window *w) {
    return tile_array_param(w->builder, "sums", w->result, tape_ready_axes(w->rank));
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

/* y += x, where x is of the result's dtype: one of the two may be of 16 bits. */
static void build_add(const window *w) {
    const tile_param px = tile_array_param(w->builder, "x", w->result, w->rank);
    const tile_param py = array_param(w, "y");
    const tile x = load(w, px), y = load(w, py);
    store(w, py, tile_add(y, x));
}

typedef struct maker {
    tape_recipe recipe;
    void (*build)(const window *w);
} maker;

static const maker makers[] = {
    [TAPE_READY_FILL] = {{"tape_fill", 1, {"a"}}, build_fill},
    [TAPE_READY_COPY] = {{"tape_copy", 2, {"x", "y"}}, build_copy},
    [TAPE_READY_AXPY] = {{"tape_axpy", 2, {"x", "y"}}, build_axpy},
    [TAPE_READY_ADAM] = {{"tape_adam", 4, {"x", "g", "m", "v"}}, build_adam},
    [TAPE_READY_SUM] = {{"tape_sum", 1, {"x"}}, build_sum},
    [TAPE_READY_DOT] = {{"tape_dot", 2, {"x", "y"}}, build_dot},
    [TAPE_READY_ADD] = {{"tape_backward", 2, {"x", "y"}}, build_add},
    [TAPE_READY_MISFIT] = {{"tape_misfit", 2, {"x", "y"}}, build_misfit},
};

const tape_recipe *tape_ready_recipe(tape_ready_task what) {
    return &makers[what].recipe;
}

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

static bool is_like(const tape_ready_key *a, const tape_ready_key *b) {
    return a->what == b->what && a->dtype == b->dtype && a->result == b->result &&
           a->rank == b->rank && a->width == b->width;
}

static const ready *look_up(const tile_context *ctx, const tape_ready_key *like) {
    const ready *r = __atomic_load_n((ready *const *)&ctx->ready_made, __ATOMIC_ACQUIRE);
    while (r && !is_like(&r->key, like)) r = r->next;
    return r;
}

static tile_status make(tile_context *ctx, const tape_ready_key *like, const ready **made) {
    tile_builder *b = tile_kernel_begin(ctx, makers[like->what].recipe.call);
    if (!b) return TILE_E_MEMORY;
    const window w = make_window(b, like);
    makers[like->what].build(&w);
    tile_kernel *kernel = NULL;
    TILE_TRY(tile_kernel_end(b, &kernel));
    __atomic_add_fetch(&ctx->ready_refs, 1, __ATOMIC_RELAXED);
    ready *r = tile_alloc(sizeof *r);
    if (!r) {
        __atomic_sub_fetch(&ctx->ready_refs, 1, __ATOMIC_RELAXED);
        tile_kernel_destroy(kernel);
        return TILE_E_MEMORY;
    }
    r->key = *like;
    r->kernel = kernel;
    r->next = ctx->ready_made;
    ctx->free_ready_made = free_ready;
    __atomic_store_n((ready **)&ctx->ready_made, r, __ATOMIC_RELEASE);
    *made = r;
    return TILE_OK;
}

tile_status tape_ready_kernel(tile_context *ctx, const tape_ready_key *like, tile_kernel **kernel) {
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
