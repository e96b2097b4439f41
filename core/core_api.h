/* core_api.h: public types, contexts, arrays, kernels, launches; included by tiletape.h.
 *
 * Words: a context is a device; an array is strided memory on it; a tile is a value of fixed shape
 * inside a kernel; an op makes tiles from tiles; a kernel is a sequence of ops built once and
 * launched on a grid of blocks; a tape records launches and runs them backward.
 *
 * size: the whole public interface of core in one file, so that a reader finds it in one place. */
#ifndef TILE_CORE_API_H
#define TILE_CORE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TILE_MUST_USE __attribute__((warn_unused_result))
#else
#define TILE_MUST_USE
#endif
#define TILE_API __attribute__((visibility("default")))

/* The statuses, each with its text. */
#define TILE_STATUS_LIST(X)                                                     \
    X(TILE_OK, "success")                                                       \
    X(TILE_E_ARGUMENT, "an argument is out of range or missing")                \
    X(TILE_E_SHAPE, "shapes do not agree")                                      \
    X(TILE_E_DTYPE, "element types do not agree")                               \
    X(TILE_E_STATE, "the object is not in a state for this call")               \
    X(TILE_E_FORMULA, "the formula does not parse")                             \
    X(TILE_E_NO_ADJOINT, "no adjoint exists on a path that carries a gradient") \
    X(TILE_E_MEMORY, "memory ran out")                                          \
    X(TILE_E_FILE, "a file cannot be read or written")                          \
    X(TILE_E_EXECUTION, "a launch failed while it ran")                         \
    X(TILE_E_DEVICE, "a device call failed")

#define TILE_STATUS_ENUM(name, text) name,
typedef enum tile_status { TILE_STATUS_LIST(TILE_STATUS_ENUM) TILE_STATUS_COUNT } tile_status;
#undef TILE_STATUS_ENUM

/* tile_status_text: a few words on a status.
 *
 * returns  a constant string; "unknown status" for a value outside the list
 */
TILE_API const char *tile_status_text(tile_status status);

/* tile_last_error: one sentence on the last failure on the calling thread.
 *
 * returns  a string valid until the next failing call of this thread; "" when none failed yet
 */
TILE_API const char *tile_last_error(void);

enum {
    TILE_RANK_MAX = 6,     /* dimensions of an array or tile */
    TILE_PARAMS_MAX = 32,  /* parameters of a kernel */
    TILE_CARRIED_MAX = 16, /* tiles carried by a loop; entries of a TILE_LIST */
    TILE_GRID_RANK = 3     /* dimensions of a grid of blocks */
};

/* Element types. TILE_BOOL is one byte, 0 or 1. Values are stable: files hold them. */
typedef enum tile_dtype {
    TILE_F32,
    TILE_F64,
    TILE_I32,
    TILE_I64,
    TILE_U8,
    TILE_U32,
    TILE_U64,
    TILE_BOOL,
    TILE_DTYPES
} tile_dtype;

typedef struct tile_context tile_context;
typedef struct tile_array tile_array;
typedef struct tile_builder tile_builder;
typedef struct tile_kernel tile_kernel;
typedef struct tape tape;

/* Extents, first dimension slowest (C order). Rank 0 is one element. */
typedef struct tile_shape {
    int rank;
    int64_t extent[TILE_RANK_MAX];
} tile_shape;

/* A value inside a kernel. Copy it freely; it lives as long as its builder. */
typedef struct tile {
    tile_builder *builder;
    int32_t id;
} tile;

/* An array parameter of a kernel. */
typedef struct tile_param {
    tile_builder *builder;
    int32_t index;
} tile_param;

/* Where a window begins: one rank-0 integer tile per dimension, plus a constant shift.
 * Rank 0 (TILE_AT_ZERO) means the origin whatever the rank. */
typedef struct tile_offset {
    int rank;
    tile at[TILE_RANK_MAX];
    int64_t shift[TILE_RANK_MAX];
} tile_offset;

/* A few tiles. */
typedef struct tile_list {
    int count;
    tile item[TILE_CARRIED_MAX];
} tile_list;

/* Blocks along each grid axis. */
typedef struct tile_grid {
    int64_t blocks[TILE_GRID_RANK];
} tile_grid;

typedef enum tile_arg_kind { TILE_ARG_ARRAY, TILE_ARG_INT, TILE_ARG_REAL } tile_arg_kind;

/* One argument of a launch. */
typedef struct tile_arg {
    tile_arg_kind kind;
    union {
        tile_array *array;
        int64_t integer;
        double real;
    } as;
} tile_arg;

typedef struct tile_args {
    int count;
    const tile_arg *arg;
} tile_args;

typedef struct tile_context_options {
    int threads;         /* worker threads, the caller counted; 0: TILE_THREADS, else all cores */
    size_t memory_limit; /* bytes of arrays, tapes and scratch together; 0: no limit */
} tile_context_options;

/* tile_context_create: a CPU device with its worker threads.
 *
 * in       options may be NULL for the defaults
 * repeats  results have the same bits for any number of threads
 * errors   TILE_E_ARGUMENT threads outside 0..1024, ctx NULL; TILE_E_MEMORY
 */
TILE_API tile_status tile_context_create(const tile_context_options *options,
                                         tile_context **ctx) TILE_MUST_USE;

/* tile_context_destroy: free a context once its last array, kernel and tape is destroyed too.
 *
 * in       ctx may be NULL
 */
TILE_API void tile_context_destroy(tile_context *ctx);

/* tile_context_sync: wait until every launch has happened.
 *
 * errors   the first execution error since the last call, once
 */
TILE_API tile_status tile_context_sync(tile_context *ctx) TILE_MUST_USE;

/* tile_context_threads: how many threads run a launch, the caller counted. */
TILE_API int tile_context_threads(const tile_context *ctx);

/* tile_context_bytes: bytes now held for arrays, tapes and scratch. */
TILE_API size_t tile_context_bytes(const tile_context *ctx);

/* tile_dtype_name: "float32" and the like. */
TILE_API const char *tile_dtype_name(tile_dtype dtype);

/* tile_dtype_size: bytes of one element; 0 for a value outside the enum. */
TILE_API size_t tile_dtype_size(tile_dtype dtype);

/* tile_array_create: a C-contiguous array, filled with zeros.
 *
 * errors   TILE_E_ARGUMENT rank outside 0..6, an extent below 0, more than 2^62 bytes; TILE_E_DTYPE;
 *          TILE_E_MEMORY
 */
TILE_API tile_status tile_array_create(tile_context *ctx, tile_dtype dtype, tile_shape shape,
                                       tile_array **array) TILE_MUST_USE;

/* tile_array_wrap: an array over the caller's memory, which stays the caller's (borrowed) and must
 * outlive the array and every tape that used it.
 *
 * in       strides in elements, one per dimension, not negative; NULL: C order
 * errors   as tile_array_create; TILE_E_ARGUMENT memory NULL, misaligned, or a negative stride
 */
TILE_API tile_status tile_array_wrap(tile_context *ctx, tile_dtype dtype, tile_shape shape,
                                     const int64_t *strides, void *memory,
                                     tile_array **array) TILE_MUST_USE;

/* tile_array_slice: a view of part of an array; shares memory and gradient with it.
 *
 *   view[i] = base[start + i * step]
 *
 * in       start, step one per dimension (step NULL: 1 everywhere, else at least 1)
 * errors   TILE_E_ARGUMENT, TILE_E_SHAPE a place outside the base
 */
TILE_API tile_status tile_array_slice(tile_array *base, const int64_t *start, tile_shape shape,
                                      const int64_t *step, tile_array **view) TILE_MUST_USE;

/* tile_array_strided: a view by offset and strides, in elements of the base's storage counted from
 * the base's first element.
 *
 * errors   TILE_E_ARGUMENT a negative stride; TILE_E_SHAPE a place outside the storage
 */
TILE_API tile_status tile_array_strided(tile_array *base, int64_t offset, tile_shape shape,
                                        const int64_t *strides, tile_array **view) TILE_MUST_USE;

/* tile_array_destroy: free the handle; memory goes when the last view and tape let go of it. */
TILE_API void tile_array_destroy(tile_array *array);

/* tile_array_read: copy an array to host memory in C order.
 *
 * errors   TILE_E_ARGUMENT bytes is not size * element bytes; an execution error of an earlier launch
 */
TILE_API tile_status tile_array_read(tile_array *array, void *host, size_t bytes) TILE_MUST_USE;

/* tile_array_write: copy host memory in C order to an array. A tape that used the array notes it:
 * what was written is a constant from there on.
 */
TILE_API tile_status tile_array_write(tile_array *array, const void *host,
                                      size_t bytes) TILE_MUST_USE;

/* tile_array_fill: set every element to a value, rounded to the dtype. Noted like a write.
 *
 * errors   TILE_E_ARGUMENT the value does not fit an integer dtype
 */
TILE_API tile_status tile_array_fill(tile_array *array, double value) TILE_MUST_USE;

/* tile_array_data: the address of the first element, for the host to read or write between
 * launches. From this call on the array keeps its address, and overwriting it on a tape copies.
 * Writes through the address are not seen by tapes: use tile_array_write where a tape needs to know.
 */
TILE_API tile_status tile_array_data(tile_array *array, void **data) TILE_MUST_USE;

/* tile_array_request_grad: ask for a gradient of the same shape, zero at first. Before the first use
 * of the array (or of its base) on a tape.
 *
 * errors   TILE_E_DTYPE not a float array; TILE_E_STATE a tape has used it already; TILE_E_MEMORY
 */
TILE_API tile_status tile_array_request_grad(tile_array *array) TILE_MUST_USE;

/* tile_array_grad: the gradient of an array, or NULL when none was requested. Owned by the array: it
 * is valid until tile_array_destroy and not destroyed apart. The gradient of a view is that slice
 * of its base's gradient.
 */
TILE_API tile_array *tile_array_grad(tile_array *array);

TILE_API tile_dtype tile_array_dtype(const tile_array *array);
TILE_API tile_shape tile_array_shape(const tile_array *array);

/* tile_array_count: how many elements. */
TILE_API int64_t tile_array_count(const tile_array *array);

/* tile_array_load_npy: a new array from a NumPy .npy file (versions 1 to 3, either byte order, C or
 * Fortran order).
 *
 * errors   TILE_E_FILE it cannot be read, is truncated, malformed, or of a dtype we do not have;
 *          TILE_E_MEMORY
 * source   numpy.lib.format, "The .npy format"
 */
TILE_API tile_status tile_array_load_npy(tile_context *ctx, const char *path,
                                         tile_array **array) TILE_MUST_USE;

/* tile_array_save_npy: write an array as .npy version 1.0, little endian, C order. The file appears
 * whole or not at all.
 */
TILE_API tile_status tile_array_save_npy(tile_array *array, const char *path) TILE_MUST_USE;

/* Each builder call returns a tile, so that calls nest. The first error sticks to the builder with
 * the place of the call in the program's source, and comes out of tile_kernel_end. */

/* tile_here: notes the source line of the builder call that follows; the macros below call it. */
TILE_API void tile_here(const char *file, int line);

/* tile_kernel_begin: start a kernel. */
TILE_API tile_builder *tile_kernel_begin(tile_context *ctx, const char *name);

/* tile_kernel_end: verify and finish the kernel; the builder is gone afterwards.
 *
 * errors   the first error of the builder calls; TILE_E_MEMORY
 */
TILE_API tile_status tile_kernel_end(tile_builder *b, tile_kernel **kernel) TILE_MUST_USE;

TILE_API void tile_kernel_destroy(tile_kernel *kernel);

/* tile_kernel_print: the kernel's program as text. */
TILE_API tile_status tile_kernel_print(const tile_kernel *kernel, FILE *out) TILE_MUST_USE;

/* tile_kernel_print_adjoint: the text of the kernels that the tape runs backward for it, when every
 * float array parameter is active and no two share memory.
 *
 * errors   TILE_E_NO_ADJOINT names op, file and line
 */
TILE_API tile_status tile_kernel_print_adjoint(tile_kernel *kernel, FILE *out) TILE_MUST_USE;

/* tile_kernel_set_adjoint: use another kernel as the adjoint. Its parameters are the kernel's own,
 * in order, then for each float array parameter, in order, its gradient (read and written).
 *
 * errors   TILE_E_ARGUMENT the parameters do not match
 */
TILE_API tile_status tile_kernel_set_adjoint(tile_kernel *kernel,
                                             tile_kernel *adjoint) TILE_MUST_USE;

TILE_API tile_param tile_array_param(tile_builder *b, const char *name, tile_dtype dtype, int rank);

/* tile_int_param, tile_real_param: a rank-0 tile given at each launch; int64, or of a float dtype. */
TILE_API tile tile_int_param(tile_builder *b, const char *name);
TILE_API tile tile_real_param(tile_builder *b, const char *name, tile_dtype dtype);

/* tile_block_index: the block's index along a grid axis, int64. */
TILE_API tile tile_block_index(tile_builder *b, int axis);

/* tile_block_start: block index along a grid axis, times step. */
TILE_API tile tile_block_start(tile_builder *b, int axis, int64_t step);

/* tile_grid_size: how many blocks along a grid axis, int64. */
TILE_API tile tile_grid_size(tile_builder *b, int axis);

/* tile_int, tile_real: a rank-0 constant: int64; of a float dtype. */
TILE_API tile tile_int(tile_builder *b, int64_t value);
TILE_API tile tile_real(tile_builder *b, tile_dtype dtype, double value);

/* tile_expr: a formula over tiles; parsed when the kernel is built.
 *
 *   tile_expr("a*x + b", a, x, b)
 *
 * Numbers take the type of the operands beside them; / is real division (integers: div, mod, floor);
 * the functions are the elementwise ops by name; a ? b : c, comparisons, && || !; operands broadcast
 * as in NumPy.
 *
 * errors   TILE_E_FORMULA with a caret under the place
 */
TILE_API tile tile_formula(const char *formula, const char *names, tile_list operands);

/* A loop: count iterations, tiles carried from one to the next. */
typedef struct tile_loop {
    tile_builder *builder;
    int32_t node;
    tile index; /* rank-0 int64, 0..count-1 */
    int carried_count;
    tile carried[TILE_CARRIED_MAX]; /* inside the body; after tile_loop_end: the final values */
} tile_loop;

/* tile_loop_begin: count is a rank-0 integer tile known at the launch: made of constants and integer
 * parameters. Below 1: no iteration, the results are the initial tiles.
 *
 * errors   TILE_E_SHAPE, TILE_E_DTYPE, TILE_E_ARGUMENT count depends on the block or on an array
 */
TILE_API tile_loop tile_loop_begin(tile_builder *b, tile count, tile_list initial);

/* tile_loop_end: next holds the carried tiles of the next iteration, same shapes and dtypes. */
TILE_API void tile_loop_end(tile_loop *loop, tile_list next);

/* tile_launch: run a kernel on every block of a grid; recorded when the tape is not NULL.
 *
 * in       args in the order of the kernel's parameters; see TILE_ARGS
 * special  a grid with a zero axis does nothing
 * repeats  same bits on every run and for any number of threads: blocks count as run in row-major
 *          order
 * errors   TILE_E_ARGUMENT, TILE_E_DTYPE, TILE_E_SHAPE name the parameter; TILE_E_NO_ADJOINT;
 *          TILE_E_MEMORY. A failed launch changes nothing
 */
TILE_API tile_status tile_launch(tape *record, tile_kernel *kernel, tile_grid grid,
                                 tile_args args) TILE_MUST_USE;

/* ---- Argument macros -------------------------------------------------------------------------
 *
 * TILE_SHAPE(8, 256)          extents                      TILE_SCALAR   rank 0
 * TILE_GRID(4, 2)             blocks along each axis
 * TILE_LIST(a, b)             tiles                        TILE_NONE     no tile
 * TILE_AT(y, x)               rank-0 integer tiles         TILE_AT_ZERO  the origin
 * TILE_SHIFT(at, -1, 0)       an offset moved by constants
 * TILE_ARGS(array, 3, 0.5)    launch arguments; C99 writes TILE_ARGS(tile_arg_array(a), ...)
 */

/* tile_offset_shift: an offset moved by constants, one per dimension. */
TILE_API tile_offset tile_offset_shift(tile_offset at, tile_shape by);

#ifdef __cplusplus
}
#endif

static inline tile_arg tile_arg_array(tile_array *array) {
    tile_arg arg;
    arg.kind = TILE_ARG_ARRAY;
    arg.as.array = array;
    return arg;
}

static inline tile_arg tile_arg_int(int64_t integer) {
    tile_arg arg;
    arg.kind = TILE_ARG_INT;
    arg.as.integer = integer;
    return arg;
}

static inline tile_arg tile_arg_real(double real) {
    tile_arg arg;
    arg.kind = TILE_ARG_REAL;
    arg.as.real = real;
    return arg;
}

#define TILE_SCALAR TILE_EMPTY_(tile_shape)
#define TILE_NONE TILE_EMPTY_(tile_list)
#define TILE_AT_ZERO TILE_EMPTY_(tile_offset)
#define TILE_SHIFT(at, ...) tile_offset_shift(at, TILE_SHAPE(__VA_ARGS__))

#ifdef __cplusplus
#define TILE_EMPTY_(type) type()

template <typename... N> inline tile_shape tile_shape_of(N... n) {
    return tile_shape{static_cast<int>(sizeof...(N)), {static_cast<int64_t>(n)...}};
}

template <typename... N> inline tile_grid tile_grid_of(N... n) {
    static_assert(sizeof...(N) <= TILE_GRID_RANK, "a grid has at most three axes");
    const int64_t all[] = {static_cast<int64_t>(n)..., 1, 1};
    return tile_grid{{all[0], all[1], all[2]}};
}

template <typename... T> inline tile_list tile_list_of(T... t) {
    return tile_list{static_cast<int>(sizeof...(T)), {t...}};
}

template <typename... T> inline tile_offset tile_offset_of(T... t) {
    return tile_offset{static_cast<int>(sizeof...(T)), {t...}, {0, 0, 0, 0, 0, 0}};
}

inline tile_arg tile_arg_of(tile_array *a) {
    return tile_arg_array(a);
}
inline tile_arg tile_arg_of(double x) {
    return tile_arg_real(x);
}
inline tile_arg tile_arg_of(float x) {
    return tile_arg_real(static_cast<double>(x));
}
inline tile_arg tile_arg_of(int64_t n) {
    return tile_arg_int(n);
}
inline tile_arg tile_arg_of(int n) {
    return tile_arg_int(n);
}
inline tile_arg tile_arg_of(unsigned n) {
    return tile_arg_int(static_cast<int64_t>(n));
}
inline tile_arg tile_arg_of(size_t n) {
    return tile_arg_int(static_cast<int64_t>(n));
}
inline tile_arg tile_arg_of(tile_arg arg) {
    return arg;
}

/* Holds the arguments until the end of the launch's expression. */
template <int n> struct tile_arg_pack {
    tile_arg arg[n];
    operator tile_args() const {
        return tile_args{n, arg};
    }
};

template <typename... A> inline tile_arg_pack<sizeof...(A)> tile_args_of(A... a) {
    return tile_arg_pack<sizeof...(A)>{{tile_arg_of(a)...}};
}

#define TILE_SHAPE(...) tile_shape_of(__VA_ARGS__)
#define TILE_GRID(...) tile_grid_of(__VA_ARGS__)
#define TILE_LIST(...) tile_list_of(__VA_ARGS__)
#define TILE_AT(...) tile_offset_of(__VA_ARGS__)
#define TILE_ARGS(...) tile_args_of(__VA_ARGS__)
#define tile_expr(formula, ...) \
    (tile_here(__FILE__, __LINE__), tile_formula(formula, #__VA_ARGS__, TILE_LIST(__VA_ARGS__)))
#else
#define TILE_EMPTY_(type) ((type){0})
#define TILE_COUNT_(type, ...) ((int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type)))

static inline tile_grid tile_grid_of(const int64_t *blocks, int rank) {
    tile_grid grid = {{1, 1, 1}};
    for (int d = 0; d < rank && d < TILE_GRID_RANK; d++) grid.blocks[d] = blocks[d];
    return grid;
}

#define TILE_SHAPE(...) ((tile_shape){TILE_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}})
#define TILE_GRID(...) tile_grid_of((int64_t[]){__VA_ARGS__}, TILE_COUNT_(int64_t, __VA_ARGS__))
#define TILE_LIST(...) ((tile_list){TILE_COUNT_(tile, __VA_ARGS__), {__VA_ARGS__}})
#define TILE_AT(...) ((tile_offset){TILE_COUNT_(tile, __VA_ARGS__), {__VA_ARGS__}, {0}})
#define tile_expr(formula, ...) \
    (tile_here(__FILE__, __LINE__), tile_formula(formula, #__VA_ARGS__, TILE_LIST(__VA_ARGS__)))

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
static inline tile_arg tile_arg_same(tile_arg arg) {
    return arg;
}
#define TILE_ARG(x)                     \
    _Generic((x), tile_array *          \
             : tile_arg_array, tile_arg \
             : tile_arg_same, float     \
             : tile_arg_real, double    \
             : tile_arg_real, default   \
             : tile_arg_int)(x)
#else
#define TILE_ARG(x) (x)
#endif
#define TILE_ARGS(...) \
    ((tile_args){TILE_N_(__VA_ARGS__), (const tile_arg[]){TILE_MAP_(__VA_ARGS__)}})
#define TILE_N_(...)                                                                               \
    TILE_N33_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, \
              14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TILE_N33_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, \
                  a1, b1, c1, d1, e1, f1, count, ...)                                           \
    count
#define TILE_JOIN_(a, b) TILE_JOIN2_(a, b)
#define TILE_JOIN2_(a, b) a##b
#define TILE_MAP_(...) TILE_JOIN_(TILE_MAP, TILE_N_(__VA_ARGS__))(__VA_ARGS__)
#define TILE_MAP1(x) TILE_ARG(x)
#define TILE_MAP2(x, ...) TILE_ARG(x), TILE_MAP1(__VA_ARGS__)
#define TILE_MAP3(x, ...) TILE_ARG(x), TILE_MAP2(__VA_ARGS__)
#define TILE_MAP4(x, ...) TILE_ARG(x), TILE_MAP3(__VA_ARGS__)
#define TILE_MAP5(x, ...) TILE_ARG(x), TILE_MAP4(__VA_ARGS__)
#define TILE_MAP6(x, ...) TILE_ARG(x), TILE_MAP5(__VA_ARGS__)
#define TILE_MAP7(x, ...) TILE_ARG(x), TILE_MAP6(__VA_ARGS__)
#define TILE_MAP8(x, ...) TILE_ARG(x), TILE_MAP7(__VA_ARGS__)
#define TILE_MAP9(x, ...) TILE_ARG(x), TILE_MAP8(__VA_ARGS__)
#define TILE_MAP10(x, ...) TILE_ARG(x), TILE_MAP9(__VA_ARGS__)
#define TILE_MAP11(x, ...) TILE_ARG(x), TILE_MAP10(__VA_ARGS__)
#define TILE_MAP12(x, ...) TILE_ARG(x), TILE_MAP11(__VA_ARGS__)
#define TILE_MAP13(x, ...) TILE_ARG(x), TILE_MAP12(__VA_ARGS__)
#define TILE_MAP14(x, ...) TILE_ARG(x), TILE_MAP13(__VA_ARGS__)
#define TILE_MAP15(x, ...) TILE_ARG(x), TILE_MAP14(__VA_ARGS__)
#define TILE_MAP16(x, ...) TILE_ARG(x), TILE_MAP15(__VA_ARGS__)
#define TILE_MAP17(x, ...) TILE_ARG(x), TILE_MAP16(__VA_ARGS__)
#define TILE_MAP18(x, ...) TILE_ARG(x), TILE_MAP17(__VA_ARGS__)
#define TILE_MAP19(x, ...) TILE_ARG(x), TILE_MAP18(__VA_ARGS__)
#define TILE_MAP20(x, ...) TILE_ARG(x), TILE_MAP19(__VA_ARGS__)
#define TILE_MAP21(x, ...) TILE_ARG(x), TILE_MAP20(__VA_ARGS__)
#define TILE_MAP22(x, ...) TILE_ARG(x), TILE_MAP21(__VA_ARGS__)
#define TILE_MAP23(x, ...) TILE_ARG(x), TILE_MAP22(__VA_ARGS__)
#define TILE_MAP24(x, ...) TILE_ARG(x), TILE_MAP23(__VA_ARGS__)
#define TILE_MAP25(x, ...) TILE_ARG(x), TILE_MAP24(__VA_ARGS__)
#define TILE_MAP26(x, ...) TILE_ARG(x), TILE_MAP25(__VA_ARGS__)
#define TILE_MAP27(x, ...) TILE_ARG(x), TILE_MAP26(__VA_ARGS__)
#define TILE_MAP28(x, ...) TILE_ARG(x), TILE_MAP27(__VA_ARGS__)
#define TILE_MAP29(x, ...) TILE_ARG(x), TILE_MAP28(__VA_ARGS__)
#define TILE_MAP30(x, ...) TILE_ARG(x), TILE_MAP29(__VA_ARGS__)
#define TILE_MAP31(x, ...) TILE_ARG(x), TILE_MAP30(__VA_ARGS__)
#define TILE_MAP32(x, ...) TILE_ARG(x), TILE_MAP31(__VA_ARGS__)
#endif

/* Builder calls note their place in the program's source. */
#define tile_kernel_end(...) (tile_here(__FILE__, __LINE__), tile_kernel_end(__VA_ARGS__))
#define tile_array_param(...) (tile_here(__FILE__, __LINE__), tile_array_param(__VA_ARGS__))
#define tile_int_param(...) (tile_here(__FILE__, __LINE__), tile_int_param(__VA_ARGS__))
#define tile_real_param(...) (tile_here(__FILE__, __LINE__), tile_real_param(__VA_ARGS__))
#define tile_block_index(...) (tile_here(__FILE__, __LINE__), tile_block_index(__VA_ARGS__))
#define tile_block_start(...) (tile_here(__FILE__, __LINE__), tile_block_start(__VA_ARGS__))
#define tile_grid_size(...) (tile_here(__FILE__, __LINE__), tile_grid_size(__VA_ARGS__))
#define tile_int(...) (tile_here(__FILE__, __LINE__), tile_int(__VA_ARGS__))
#define tile_real(...) (tile_here(__FILE__, __LINE__), tile_real(__VA_ARGS__))
#define tile_loop_begin(...) (tile_here(__FILE__, __LINE__), tile_loop_begin(__VA_ARGS__))
#define tile_loop_end(...) (tile_here(__FILE__, __LINE__), tile_loop_end(__VA_ARGS__))
#endif
