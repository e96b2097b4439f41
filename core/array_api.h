/* array_api.h: devices, and arrays on them. */
#ifndef TILE_CORE_ARRAY_API_H
#define TILE_CORE_ARRAY_API_H

#include "core/types_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What runs kernels: results have the same bits. */
typedef enum tile_executor {
    TILE_EXECUTOR_AUTO, /* the interpreter; native code for what runs often, once built */
    TILE_EXECUTOR_INTERPRETER,
    TILE_EXECUTOR_NATIVE, /* native code at once: the first launch of a program waits for it */
    TILE_EXECUTORS
} tile_executor;

/* What tile_context_create may be told. */
typedef struct tile_context_options {
    int threads;         /* worker threads, the caller counted; 0: TILE_THREADS, else all cores */
    size_t memory_limit; /* bytes of arrays, tapes and scratch together; 0: no limit */
    bool check; /* checked mode: a launch that ends in an execution error has changed nothing, and
                   tile_launch returns the error; also by TILE_CHECK=1 in the environment */
    size_t shared_bytes;    /* shared memory of a block; 0: 227 KiB, the most of a CUDA device */
    tile_executor executor; /* TILE_EXECUTOR_AUTO: TILE_EXECUTOR (auto, interpreter, native) may say
                               otherwise */
    bool
        deterministic; /* the same bits from run to run on a device, too, where sums otherwise go in
                           the order in which its blocks come; the CPU always gives them */
} tile_context_options;

/* tile_context_create: a CPU device with its worker threads.
 *
 * in       options may be NULL for the defaults
 * repeats  results have the same bits for any number of threads
 * errors   TILE_E_ARGUMENT threads outside 0..1024, ctx NULL, TILE_CHECK neither 0 nor 1,
 *          executor or TILE_EXECUTOR none of the executors;
 *          TILE_E_MEMORY
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

/* What tile_context_info tells. A program is a kernel, or a part of its adjoint. */
typedef struct tile_executor_info {
    tile_executor executor;       /* as chosen when the context was made */
    int64_t native_launches;      /* that ran by native code, wholly or in part */
    int64_t interpreted_launches; /* all others */
    int64_t compiled;             /* programs that the C compiler built */
    int64_t reused;               /* programs found in the cache folder */
    int64_t waiting;              /* programs that are being built */
    int64_t failed;               /* programs that could not be built */
    char why[256];                /* why there is no native code, the last reason; "": none */
} tile_executor_info;

/* tile_context_info: what runs this context's kernels, and why native code does not.
 *
 * in       info is filled
 * special  native code needs a C compiler (TILE_CC, else cc; it may take TILE_CC_SECONDS, 60) and a
 *          folder for objects (XDG_CACHE_HOME or ~/.cache, then tiletape; it is kept below
 *          TILE_CACHE_BYTES, 256 MiB); without them the interpreter goes on
 * errors   TILE_E_ARGUMENT ctx or info is NULL
 */
TILE_API tile_status tile_context_info(tile_context *ctx, tile_executor_info *info) TILE_MUST_USE;

/* tile_dtype_name: "float32" and the like. */
TILE_API const char *tile_dtype_name(tile_dtype dtype);

/* tile_dtype_size: bytes of one element; 0 for a value outside the enum. */
TILE_API size_t tile_dtype_size(tile_dtype dtype);

/* tile_array_create: a C-contiguous array, filled with zeros.
 *
 * errors   TILE_E_ARGUMENT rank outside 0..6, an extent below 0, more than 2^62 bytes;
 * TILE_E_DTYPE;
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
 * errors   TILE_E_ARGUMENT bytes is not size * element bytes; an execution error of an earlier
 * launch
 */
TILE_API tile_status tile_array_read(tile_array *array, void *host, size_t bytes) TILE_MUST_USE;

/* tile_array_write: copy host memory in C order to an array. A tape that used the array notes it:
 * what was written is a constant from there on.
 *
 * errors   TILE_E_ARGUMENT bytes is not size * element bytes; TILE_E_MEMORY
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
 * Writes through the address are not seen by tapes: use tile_array_write where a tape needs to
 * know.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_STATE the gradient of a backward that failed
 */
TILE_API tile_status tile_array_data(tile_array *array, void **data) TILE_MUST_USE;

/* tile_array_request_grad: ask for a gradient of the same shape, zero at first. Before the first
 * use of the array (or of its base) on a tape.
 *
 * errors   TILE_E_DTYPE not a float array; TILE_E_STATE a tape has used it already; TILE_E_MEMORY
 */
TILE_API tile_status tile_array_request_grad(tile_array *array) TILE_MUST_USE;

/* tile_array_grad: the gradient of an array, or NULL when none was requested. Owned by the array:
 * it is valid until tile_array_destroy and not destroyed apart. The gradient of a view is that
 * slice of its base's gradient.
 */
TILE_API tile_array *tile_array_grad(tile_array *array);

/* tile_array_dtype, tile_array_shape: of NULL: TILE_DTYPES, rank -1. */
TILE_API tile_dtype tile_array_dtype(const tile_array *array);
TILE_API tile_shape tile_array_shape(const tile_array *array);

/* tile_array_count: how many elements. */
TILE_API int64_t tile_array_count(const tile_array *array);

/* tile_array_load_npy: a new array from a NumPy .npy file (versions 1 to 3, either byte order, C or
 * Fortran order).
 *
 * special  NumPy has no bfloat16: a file of one holds its bits and loads as uint16
 * errors   TILE_E_FILE it cannot be read, is truncated, malformed, or of a dtype we do not have;
 *          TILE_E_MEMORY
 * source   numpy.lib.format, "The .npy format"
 */
TILE_API tile_status tile_array_load_npy(tile_context *ctx, const char *path,
                                         tile_array **array) TILE_MUST_USE;

/* tile_array_save_npy: write an array as .npy version 1.0, little endian, C order. The file appears
 * whole or not at all.
 *
 * special  NumPy has no bfloat16: its bits are written, as uint16
 * errors   TILE_E_ARGUMENT; TILE_E_FILE; an execution error of an earlier launch
 */
TILE_API tile_status tile_array_save_npy(tile_array *array, const char *path) TILE_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
