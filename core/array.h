/* array.h: arrays, the storage they share, and how writers announce themselves. */
#ifndef TILE_CORE_ARRAY_H
#define TILE_CORE_ARRAY_H

#include "core/core_api.h"
#include "core/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_storage tile_storage;

/* Bytes [low, high) of a storage. */
typedef struct tile_range {
    int64_t low, high;
} tile_range;

/* One who must know before a storage is written (a tape). Registered once per storage. */
typedef struct tile_watcher {
    struct tile_watcher *next;
    /* Whether values in the range are still needed. */
    bool (*needs)(const struct tile_watcher *self, tile_range range);
    /* Keeps what is needed of the range. adopt: a buffer that now holds the old bytes at the old
     * positions and may be kept (hold it); NULL: copy from the storage's buffer. Must not change
     * anything on failure. */
    tile_status (*save)(struct tile_watcher *self, tile_range range, tile_buffer *adopt);
    /* These elements were written; not by the watcher itself. */
    tile_status (*written)(struct tile_watcher *self, const tile_array *array);
} tile_watcher;

/* Memory with identity: what arrays and views share. */
struct tile_storage {
    tile_context *ctx;
    int64_t refs; /* atomic */
    tile_dtype dtype;
    size_t bytes;
    tile_buffer *buffer;   /* holds the current values */
    bool exposed;          /* an address was handed out: the buffer must stay */
    tile_storage *grad;    /* same bytes and layout; NULL: none requested */
    bool grad_invalid;     /* a backward failed half-way; reading the gradient is an error */
    tile_storage *grad_of; /* whose gradient this is while that lives; not held; under ctx->lock */
    tile_watcher *watchers;
};

struct tile_array {
    int64_t refs; /* the handle's and those of tapes; not atomic, as in kernels */
    tile_storage *storage;
    tile_dtype dtype; /* the storage's, or that of a member of its structs */
    tile_shape shape;
    int64_t stride[TILE_RANK_MAX]; /* elements, never negative; as in C order where extent <= 1 */
    int64_t offset;                /* elements of dtype from the storage's first byte */
    tile_array *grad;              /* made when asked for */
    tile_array *row;               /* the same elements as rank 1, made when asked for */
    tile_array **field;            /* views of the members of its structs, made when asked for */
    /* What follows from the fields above, found once: every launch asks for it. */
    int64_t count;
    tile_range range; /* bytes from the first to the last element; empty for an empty array */
    bool lent;        /* its owner alone destroys it: a gradient, a retained adjoint */
    bool folded;      /* two places can be one element: stride 0 or overlap; conservative */
};

/* A storage with one reference, holding the context. take: its buffer, whose reference it takes
 * (not on failure); NULL: a new one, filled with zeros. */
tile_status tile_storage_create(tile_context *ctx, tile_dtype dtype, size_t bytes,
                                tile_buffer *take, tile_storage **storage) TILE_MUST_USE;
tile_storage *tile_storage_hold(tile_storage *storage);
void tile_storage_release(tile_storage *storage); /* NULL is fine */

/* An array over part of a storage, holding a reference. stride NULL: C order.
 *
 * errors   TILE_E_ARGUMENT a malformed shape or a negative stride; TILE_E_SHAPE a place outside the
 *          storage; TILE_E_MEMORY */
tile_status tile_array_over(tile_storage *storage, tile_dtype dtype, tile_shape shape,
                            const int64_t *stride, int64_t offset,
                            tile_array **array) TILE_MUST_USE;

/* tile_array_wrap of memory that is the context's, a device's too. */
tile_status tile_array_borrow(const char *call, tile_context *ctx, tile_dtype dtype,
                              tile_shape shape, const int64_t *strides, void *memory,
                              tile_array **array) TILE_MUST_USE;

/* One more reference to an array; tile_array_release gives it back. */
tile_array *tile_array_hold(tile_array *array);
void tile_array_release(tile_array *array); /* NULL is fine */

/* Whether the array's elements are exactly the storage's bytes in C order. */
bool tile_array_is_whole(const tile_array *array);

/* Whether elements follow each other in C order without gaps. */
bool tile_array_is_contiguous(const tile_array *array);

/* The elements of a contiguous array as rank 1; kept by the array. Any thread.
 *
 * errors   TILE_E_MEMORY */
tile_status tile_array_row(tile_array *array, tile_array **row) TILE_MUST_USE;

/* The view of member k of an array of structs; kept by the array. Any thread.
 *
 * errors   TILE_E_MEMORY */
tile_status tile_array_member(tile_array *array, int k, tile_array **view) TILE_MUST_USE;

/* Whether the members of a struct type fit into an array of a shape: ranks add up. */
tile_status tile_array_check_ranks(const char *call, tile_dtype dtype,
                                   tile_shape shape) TILE_MUST_USE;

/* What an array consists of: itself, or the members of its structs, as views that hold nothing. */
int tile_array_part_count(const tile_array *array);
tile_array tile_array_part(const tile_array *array, int k);

/* Fills what follows from an array's other fields. */
void tile_array_measure(tile_array *array);

static inline tile_range tile_array_range(const tile_array *array) {
    return array->range;
}

static inline bool tile_array_overlaps_itself(const tile_array *array) {
    return array->folded;
}

/* Byte of the storage where the first element begins; its address now. */
static inline int64_t tile_array_byte(const tile_array *array) {
    return array->offset * (int64_t)tile_dtype_size(array->dtype);
}
static inline void *tile_array_address(const tile_array *array) {
    return (char *)array->storage->buffer->data + tile_array_byte(array);
}

/* Number of elements of a shape, or -1 when it is malformed or too large (beyond 2^62, also without
 * its zero extents, so that strides never overflow). */
int64_t tile_shape_count(tile_shape shape);
bool tile_shape_equal(tile_shape a, tile_shape b);

/* C-order strides of a shape. */
void tile_shape_strides(tile_shape shape, int64_t *stride);

/* The place of the last element, sum of (extent - 1) * stride; -1 when there is no element, a
 * stride is negative or the place is beyond 2^62. */
int64_t tile_shape_last(tile_shape shape, const int64_t *stride);

/* The places of strided memory: strides and size in elements and bytes of an element. */
typedef struct tile_places {
    int rank;
    const int64_t *extent, *stride;
    int64_t size;
} tile_places;

/* Whether two never share a byte although their ranges meet, because they go in steps of one period
 * through different parts of it: members of structs, columns. gap: bytes from the first place of a
 * to the first of b. false: not known. */
bool tile_places_interleave(const tile_places *a, const tile_places *b, int64_t gap);

/* "[2, 3]" into text; returns text. */
enum { TILE_SHAPE_TEXT = 160 };
const char *tile_shape_text(tile_shape shape, char text[TILE_SHAPE_TEXT]);

/* Copies the elements of a shape in row-major order, strides in elements (NULL: C order). The two
 * sides do not overlap; a from_stride of 0 everywhere fills. Addresses need no alignment. */
void tile_copy_strided(tile_dtype dtype, tile_shape shape, void *to, const int64_t *to_stride,
                       const void *from, const int64_t *from_stride);

/* Whether the host may read the values now: launches done without an execution error, and not the
 * gradient of a failed backward. call: the public function, for the message. */
tile_status tile_array_check_readable(tile_array *array, const char *call) TILE_MUST_USE;

/* A write that is not on any tape: keeps the old values of a range where a watcher needs them. Call
 * before writing; then write; then tile_storage_written. On failure nothing changed. */
tile_status tile_storage_will_write(tile_storage *storage, tile_range range) TILE_MUST_USE;

/* The same where every byte of the storage is about to be written: the old buffer goes to the
 * watchers that need it and the storage gets a fresh one of undefined content, without a copy,
 * unless its address was handed out. */
tile_status tile_storage_will_replace(tile_storage *storage) TILE_MUST_USE;

/* The elements of an array were written, by nobody's tape. */
tile_status tile_storage_written(tile_storage *storage, const tile_array *array) TILE_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
