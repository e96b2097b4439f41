/* context.h: a device and its worker threads. */
#ifndef TILE_CORE_CONTEXT_H
#define TILE_CORE_CONTEXT_H

#include <pthread.h>

#include "core/core_api.h"
#include "core/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_workers tile_workers;
typedef struct tile_device tile_device;                 /* core/device.h */
typedef struct tile_device_graph tile_device_graph;     /* core/device.h */
typedef struct tile_native_service tile_native_service; /* core/native_service.c */

struct tile_context {
    int64_t refs; /* the handle, arrays' storages, kernels, tapes; atomic */
    int threads;
    bool rehearsal;       /* what is asked for is reserved, and does not happen */
    bool deterministic;   /* on a device, too, the same bits from run to run */
    bool check;           /* launches that may fail are tried: a failed one changes nothing */
    size_t memory_limit;  /* on bytes; 0: none */
    size_t shared_bytes;  /* of a block */
    pthread_mutex_t lock; /* the fields up to the blank line, and weak links of storages */
    size_t bytes;         /* held, the pool not counted */
    size_t peak;          /* the most that bytes was; a test may set it */
    size_t held_capacity; /* of buffers in use */
    size_t peak_capacity; /* the most of it */
    size_t pool_capacity; /* of buffers in the pool */
    size_t blocks;        /* large ones that were ever allocated; atomic */
    tile_buffer *pool[TILE_POOL_CLASSES]; /* free buffers by size class */
    tile_status pending;                  /* an execution error not yet reported */
    char pending_message[512];

    tile_workers *workers;                   /* NULL: one thread */
    void *scratch;                           /* executor's arena, one part per thread; see exec */
    void (*free_scratch)(tile_context *ctx); /* NULL: scratch is from tile_alloc */
    void *ready_made; /* built-in kernels, made when first used; see tape/launches.c */
    void (*free_ready_made)(tile_context *ctx);
    tile_executor executor;
    tile_device *device;         /* runs every launch; NULL: the CPU does; see device.h */
    tile_native_service *native; /* NULL: nothing was asked of it yet */
    int64_t native_launches, interpreted_launches, device_launches;
    int64_t ready_refs; /* of refs, those of ready_made's own kernels; whoever makes one adds 1 */
};

tile_context *tile_context_hold(tile_context *ctx);

/* The context goes when refs is down to ready_refs. NULL is fine. */
void tile_context_release(tile_context *ctx);

/* Ends the thread that compiles, and the compiler. */
void tile_native_stop(tile_context *ctx);

/* Notes an execution error for the next synchronisation; the first one stays. Any thread. */
void tile_context_pend(tile_context *ctx, tile_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs task(part, thread, arg) for part = 0..parts-1, each once, on the caller and the workers;
 * returns when all are done. thread is 0..threads-1. work_ns: an estimate of the whole; small work
 * runs on the caller alone, in order. Which thread runs a part is not fixed: results must not
 * depend on it. Not reentrant. */
typedef void (*tile_task)(int64_t part, int thread, void *arg);
void tile_parallel(tile_context *ctx, int64_t parts, double work_ns, tile_task task, void *arg);

/* The ctx->threads - 1 worker threads; tile_context_create and the last release call these. */
tile_status tile_workers_start(tile_context *ctx) TILE_MUST_USE;
void tile_workers_stop(tile_context *ctx);

#ifdef __cplusplus
}
#endif

#endif
