/* memory.h: where bytes come from. All of a context's memory is counted and can be limited. */
#ifndef TILE_CORE_MEMORY_H
#define TILE_CORE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bookkeeping memory (handles, programs). NULL on failure, with the error set (TILE_E_MEMORY).
 * tile_alloc zeroes. */
void *tile_alloc(size_t bytes);
void tile_free(void *memory);

/* Makes *items (the address of a pointer from tile_alloc or NULL) hold at least need elements of
 * size bytes; doubles, zeroes what is new. Keeps what is there on failure. */
tile_status tile_grow(void *items, int32_t *capacity, int32_t need, size_t size) TILE_MUST_USE;

/* A test's planted failure: the n-th allocation of this thread from now (1 is the next) fails, the
 * one after works again; 0: none. What the pool serves counts as an allocation. */
void tile_fail_allocation(int64_t n);

/* Element memory, 64-byte aligned, counted by the context, given back to its pool for reuse. May be
 * held and released on any thread. */
typedef struct tile_buffer {
    tile_context *ctx;
    int64_t refs; /* atomic */
    void *data;
    void *block;              /* of the host, in which data stands; NULL: none */
    size_t bytes;             /* asked for; what the context counts */
    size_t capacity;          /* allocated from data on; 0: borrowed memory that is not freed */
    bool host;                /* the host's memory on a context whose memory is a device's */
    struct tile_buffer *next; /* in the pool */
} tile_buffer;

/* A buffer with one reference. Content is undefined. The pool serves it when it can.
 *
 * errors   TILE_E_MEMORY also when it would exceed the context's limit */
tile_status tile_buffer_create(tile_context *ctx, size_t bytes, tile_buffer **buffer) TILE_MUST_USE;
/* The same of memory that the host may touch, whatever the context. */
tile_status tile_buffer_create_host(tile_context *ctx, size_t bytes,
                                    tile_buffer **buffer) TILE_MUST_USE;

tile_status tile_buffer_borrow(tile_context *ctx, void *memory, size_t bytes,
                               tile_buffer **buffer) TILE_MUST_USE;
tile_buffer *tile_buffer_hold(tile_buffer *buffer);
void tile_buffer_release(tile_buffer *buffer); /* NULL is fine */

/* Size classes of the pool: 64, 128, 192, 256, then four to a doubling. */
enum { TILE_POOL_CLASSES = 232 };

/* The class of a size, at most 2^62, and the class's bytes. */
int tile_pool_class(size_t bytes, size_t *capacity);

/* Puts buffers whose content is not needed into the pool and takes others of their sizes out, the
 * pool being in the order of addresses then. So one and the same course of events gets the same
 * buffers each time. refs of each is 1. Cannot fail. */
void tile_pool_settle(tile_context *ctx, int count, tile_buffer **const *held);

/* Frees what the pool holds. */
void tile_pool_empty(tile_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
