/* buffer.c: bookkeeping memory, planted failures, and counted element memory with its pool. */
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/status.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(WITH_ASAN)
#include <sanitizer/asan_interface.h>
#define MARK_DEAD(from, bytes) __asan_poison_memory_region(from, bytes)
#define MARK_ALIVE(from, bytes) __asan_unpoison_memory_region(from, bytes)
#else
#define MARK_DEAD(from, bytes) ((void)(from), (void)(bytes))
#define MARK_ALIVE(from, bytes) ((void)(from), (void)(bytes))
#endif

static const size_t bytes_max = (size_t)1 << 62;
static const size_t pool_slack = (size_t)256 << 20;

static _Thread_local int64_t fail_in;

void tile_fail_allocation(int64_t n) {
    fail_in = n;
}

static bool planted_failure(void) {
    if (fail_in == 0 || --fail_in > 0) return false;
    tile_fail(TILE_E_MEMORY, "memory: the failure a test planted");
    return true;
}

void *tile_alloc(size_t bytes) {
    if (planted_failure()) return NULL;
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) tile_fail(TILE_E_MEMORY, "memory: %zu bytes could not be allocated", bytes);
    return memory;
}

void tile_free(void *memory) {
    free(memory);
}

tile_status tile_grow(void *items, int32_t *capacity, int32_t need, size_t size) {
    if (need <= *capacity) return TILE_OK;
    int64_t count = *capacity < 8 ? 8 : 2 * (int64_t)*capacity;
    if (count < need) count = need;
    if (count > INT32_MAX) count = INT32_MAX;
    if (planted_failure()) return TILE_E_MEMORY;
    void *old;
    memcpy(&old, items, sizeof old); /* items is a T **, which is not a void ** */
    char *grown = (size_t)count > bytes_max / size ? NULL : realloc(old, (size_t)count * size);
    TILE_CHECK(grown, TILE_E_MEMORY, "memory: %lld items of %zu bytes could not be allocated",
               (long long)count, size);
    memset(grown + (size_t)*capacity * size, 0, (size_t)(count - *capacity) * size);
    memcpy(items, &grown, sizeof grown);
    *capacity = (int32_t)count;
    return TILE_OK;
}

int tile_pool_class(size_t bytes, size_t *capacity) {
    if (bytes <= 256) {
        const size_t lines = bytes ? (bytes + 63) / 64 : 1;
        *capacity = 64 * lines;
        return (int)lines - 1;
    }
    /* bytes - 1 is in [2^p, 2^(p+1)): its two bits below the highest choose the quarter. */
    const int p = 63 - __builtin_clzll((unsigned long long)(bytes - 1));
    const size_t quarter = (bytes - 1) >> (p - 2);
    *capacity = (quarter + 1) << (p - 2);
    return 4 * (p - 7) + (int)(quarter & 3);
}

static void buffer_free(tile_buffer *buffer) {
    if (buffer->block)
        MARK_ALIVE(buffer->block,
                   buffer->capacity + (size_t)((char *)buffer->data - (char *)buffer->block));
    free(buffer->block);
    free(buffer);
}

/* Takes buffers out of the pool, largest first, until it holds at most `keep` bytes. */
static tile_buffer *pool_cut(tile_context *ctx, size_t keep) {
    tile_buffer *cut = NULL;
    for (int c = TILE_POOL_CLASSES - 1; c >= 0 && ctx->pool_capacity > keep; c--)
        while (ctx->pool[c] && ctx->pool_capacity > keep) {
            tile_buffer *buffer = ctx->pool[c];
            ctx->pool[c] = buffer->next;
            ctx->pool_capacity -= buffer->capacity;
            buffer->next = cut;
            cut = buffer;
        }
    return cut;
}

static void free_list(tile_buffer *list) {
    while (list) {
        tile_buffer *next = list->next;
        buffer_free(list);
        list = next;
    }
}

void tile_pool_empty(tile_context *ctx) {
    pthread_mutex_lock(&ctx->lock);
    tile_buffer *cut = pool_cut(ctx, 0);
    pthread_mutex_unlock(&ctx->lock);
    free_list(cut);
}

/* A new buffer takes space: the pool gives back what goes beyond the limit, or, without one, beyond
 * twice the most that was ever in use plus a slack. So sizes that alternate stay warm, and sizes
 * that are gone for good do not pile up. */
static void pool_make_room(tile_context *ctx) {
    pthread_mutex_lock(&ctx->lock);
    const size_t most = ctx->memory_limit ? ctx->memory_limit : 2 * ctx->peak_capacity + pool_slack;
    const size_t keep = most > ctx->held_capacity ? most - ctx->held_capacity : 0;
    tile_buffer *cut = pool_cut(ctx, keep);
    pthread_mutex_unlock(&ctx->lock);
    free_list(cut);
}

/* Under the lock. */
static void count_in(tile_context *ctx, size_t bytes, size_t capacity) {
    __atomic_store_n(&ctx->bytes, ctx->bytes + bytes, __ATOMIC_RELAXED);
    ctx->held_capacity += capacity;
    if (ctx->bytes > ctx->peak) ctx->peak = ctx->bytes;
    if (ctx->held_capacity > ctx->peak_capacity) ctx->peak_capacity = ctx->held_capacity;
}

static void count_out(tile_context *ctx, size_t bytes, size_t capacity) {
    __atomic_store_n(&ctx->bytes, ctx->bytes - bytes, __ATOMIC_RELAXED);
    ctx->held_capacity -= capacity;
}

/* Counts the bytes, and takes a buffer from the pool if there is one. */
static tile_status reserve(tile_context *ctx, size_t bytes, tile_buffer **warm) {
    size_t capacity;
    const int c = tile_pool_class(bytes, &capacity);
    pthread_mutex_lock(&ctx->lock);
    const size_t held = ctx->bytes, limit = ctx->memory_limit;
    const bool fits = !limit || (held <= limit && bytes <= limit - held);
    if (fits) {
        count_in(ctx, bytes, capacity);
        *warm = ctx->pool[c];
        if (*warm) {
            ctx->pool[c] = (*warm)->next;
            ctx->pool_capacity -= capacity;
        }
    }
    pthread_mutex_unlock(&ctx->lock);
    TILE_CHECK(fits, TILE_E_MEMORY, "memory: %zu bytes wanted, %zu held, the limit is %zu", bytes,
               held, limit);
    return TILE_OK;
}

/* Large blocks begin at the same place of a page: equal elements of several arrays would drive each
 * other out of the caches, and a load wait for a store it has nothing to do with. So their data
 * begin a different number of lines into the block. */
static size_t shift_of(tile_context *ctx, size_t capacity) {
    enum { LARGE = 1 << 14, STEP = 9 * 64, STEPS = 11 };
    if (capacity < LARGE) return 0;
    return STEP * (__atomic_fetch_add(&ctx->blocks, 1, __ATOMIC_RELAXED) % STEPS);
}

static tile_buffer *buffer_new(tile_context *ctx, size_t capacity) {
    pool_make_room(ctx);
    const size_t shift = shift_of(ctx, capacity);
    tile_buffer *buffer = calloc(1, sizeof *buffer);
    char *block = aligned_alloc(64, capacity + shift);
    if (!block) {
        tile_pool_empty(ctx);
        block = aligned_alloc(64, capacity + shift);
    }
    if (buffer && block) {
        *buffer =
            (tile_buffer){.ctx = ctx, .data = block + shift, .block = block, .capacity = capacity};
        MARK_DEAD(block, shift);
        return buffer;
    }
    free(buffer);
    free(block);
    return NULL;
}

tile_status tile_buffer_create(tile_context *ctx, size_t bytes, tile_buffer **buffer) {
    TILE_CHECK(bytes <= bytes_max, TILE_E_MEMORY, "memory: %zu bytes wanted, at most 2^62 can be",
               bytes);
    if (planted_failure()) return TILE_E_MEMORY;
    tile_buffer *got = NULL;
    TILE_TRY(reserve(ctx, bytes, &got));
    size_t capacity;
    tile_pool_class(bytes, &capacity);
    if (!got) got = buffer_new(ctx, capacity);
    if (!got) {
        pthread_mutex_lock(&ctx->lock);
        count_out(ctx, bytes, capacity);
        pthread_mutex_unlock(&ctx->lock);
        return tile_fail(TILE_E_MEMORY, "memory: %zu bytes could not be allocated", bytes);
    }
    got->refs = 1;
    got->bytes = bytes;
    got->next = NULL;
    MARK_ALIVE(got->data, bytes);
    MARK_DEAD((char *)got->data + bytes, capacity - bytes);
    *buffer = got;
    return TILE_OK;
}

tile_status tile_buffer_borrow(tile_context *ctx, void *memory, size_t bytes,
                               tile_buffer **buffer) {
    tile_buffer *got = tile_alloc(sizeof *got);
    if (!got) return TILE_E_MEMORY;
    *got = (tile_buffer){.ctx = ctx, .refs = 1, .data = memory, .bytes = bytes};
    *buffer = got;
    return TILE_OK;
}

tile_buffer *tile_buffer_hold(tile_buffer *buffer) {
    __atomic_fetch_add(&buffer->refs, 1, __ATOMIC_RELAXED);
    return buffer;
}

void tile_buffer_release(tile_buffer *buffer) {
    if (!buffer || __atomic_sub_fetch(&buffer->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    if (buffer->capacity == 0) {
        free(buffer);
        return;
    }
    tile_context *ctx = buffer->ctx;
    size_t capacity;
    const int c = tile_pool_class(buffer->capacity, &capacity);
    MARK_DEAD(buffer->data, capacity);
    pthread_mutex_lock(&ctx->lock);
    count_out(ctx, buffer->bytes, capacity);
    buffer->next = ctx->pool[c];
    ctx->pool[c] = buffer;
    ctx->pool_capacity += capacity;
    pthread_mutex_unlock(&ctx->lock);
}
