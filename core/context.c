/* context.c: contexts: options, references, the pending execution error. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "core/context.h"

#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/device.h"
#include "core/environment.h"
#include "core/status.h"

enum { THREADS_MAX = 1024 };

/* The most that a block can have on compute capability 9.0 and 10.0.
 *
 * source   CUDA C++ Programming Guide, Technical specifications per compute capability */
static const size_t shared_bytes_max = (size_t)227 << 10;

/* The cores this process may run on. */
static int core_count(void) {
    long count = 0;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
#endif
    if (count < 1) count = sysconf(_SC_NPROCESSORS_ONLN);
    if (count < 1) return 1;
    return count < THREADS_MAX ? (int)count : THREADS_MAX;
}

static tile_status choose_threads(const char *call, int wanted, int *threads) {
    TILE_CHECK(wanted >= 0 && wanted <= THREADS_MAX, TILE_E_ARGUMENT,
               "%s: threads is %d, wanted 0 to %d", call, wanted, THREADS_MAX);
    int64_t count = wanted;
    if (wanted == 0) TILE_TRY(tile_environment_whole(call, "TILE_THREADS", 1, THREADS_MAX, &count));
    *threads = count ? (int)count : core_count();
    return TILE_OK;
}

static tile_status choose_check(const char *call, bool wanted, bool *check) {
    const char *text = getenv("TILE_CHECK");
    *check = wanted;
    if (!text || !*text) return TILE_OK;
    TILE_CHECK((text[0] == '0' || text[0] == '1') && !text[1], TILE_E_ARGUMENT,
               "%s: TILE_CHECK is \"%.40s\", wanted 0 or 1", call, text);
    *check = wanted || text[0] == '1';
    return TILE_OK;
}

static tile_status choose_executor(const char *call, tile_executor wanted,
                                   tile_executor *executor) {
    static const char *const names[] = {"auto", "interpreter", "native"};
    TILE_CHECK((unsigned)wanted < TILE_EXECUTORS, TILE_E_ARGUMENT,
               "%s: executor is %d, wanted a tile_executor", call, (int)wanted);
    const char *text = getenv("TILE_EXECUTOR");
    *executor = wanted;
    if (wanted != TILE_EXECUTOR_AUTO || !text || !*text) return TILE_OK;
    for (int k = 0; k < TILE_EXECUTORS; k++) {
        if (strcmp(text, names[k]) != 0) continue;
        *executor = (tile_executor)k;
        return TILE_OK;
    }
    return tile_fail(TILE_E_ARGUMENT,
                     "%s: TILE_EXECUTOR is \"%.40s\", wanted auto, interpreter or native", call,
                     text);
}

static tile_device *next_device;
static tile_device_maker next_maker;

void tile_device_use(tile_device *device) {
    next_device = device;
}

void tile_device_make_with(tile_device_maker make) {
    next_maker = make;
}

typedef struct choices {
    int threads;
    bool check;
    tile_executor executor;
} choices;

static tile_status choose(const char *call, const tile_context_options *o, choices *c) {
    TILE_TRY(tile_environment_check(call));
    TILE_TRY(choose_check(call, o && o->check, &c->check));
    TILE_TRY(choose_threads(call, o ? o->threads : 0, &c->threads));
    return choose_executor(call, o ? o->executor : TILE_EXECUTOR_AUTO, &c->executor);
}

/* The device is the context's only when all is well. */
static tile_status make(const choices *c, const tile_context_options *options, tile_device *device,
                        tile_context **ctx) {
    tile_context *made = tile_alloc(sizeof *made);
    if (!made) return TILE_E_MEMORY;
    made->refs = 1;
    made->executor = c->executor;
    made->threads = c->threads;
    made->check = c->check;
    made->deterministic = options && options->deterministic;
    made->memory_limit = options ? options->memory_limit : 0;
    made->shared_bytes =
        options && options->shared_bytes ? options->shared_bytes : shared_bytes_max;
    pthread_mutex_init(&made->lock, NULL);
    const tile_status status = tile_workers_start(made);
    if (status) {
        tile_context_release(made);
        return status;
    }
    made->device = device;
    *ctx = made;
    return TILE_OK;
}

static void destroy_device(tile_device *device) {
    if (device && device->destroy) device->destroy(device);
}

tile_status tile_context_make(const char *call, const tile_context_options *options,
                              tile_device *device, tile_context **ctx) {
    choices c = {.threads = 1};
    tile_status status = choose(call, options, &c);
    if (device && device->alloc) c.threads = 1; /* the host does nothing but ask */
    if (!status) status = make(&c, options, device, ctx);
    if (status) destroy_device(device);
    return status;
}

tile_status tile_context_create(const tile_context_options *options, tile_context **ctx) {
    static const char call[] = "tile_context_create";
    tile_device *device = NULL;
    choices c = {.threads = 1};
    TILE_CHECK(ctx, TILE_E_ARGUMENT, "%s: ctx is NULL", call);
    TILE_TRY(choose(call, options, &c));
    if (c.executor == TILE_EXECUTOR_AUTO) device = next_device;
    if (c.executor == TILE_EXECUTOR_AUTO && next_maker) TILE_TRY(next_maker(&device));
    return tile_context_make(call, options, device, ctx);
}

tile_context *tile_context_hold(tile_context *ctx) {
    __atomic_fetch_add(&ctx->refs, 1, __ATOMIC_RELAXED);
    return ctx;
}

static void context_free(tile_context *ctx) {
    tile_native_stop(ctx);
    tile_workers_stop(ctx);
    if (ctx->free_scratch)
        ctx->free_scratch(ctx);
    else
        tile_free(ctx->scratch);
    tile_pool_empty(ctx);
    destroy_device(ctx->device);
    pthread_mutex_destroy(&ctx->lock);
    tile_free(ctx);
}

void tile_context_release(tile_context *ctx) {
    if (!ctx) return;
    pthread_mutex_lock(&ctx->lock); /* so that nobody looks at a context that another has freed */
    const int64_t left = __atomic_sub_fetch(&ctx->refs, 1, __ATOMIC_ACQ_REL);
    const bool last = left == __atomic_load_n(&ctx->ready_refs, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&ctx->lock);
    if (!last) return;
    /* Only the ready-made kernels hold the context: it holds itself while they go. */
    tile_context_hold(ctx);
    __atomic_store_n(&ctx->ready_refs, 0, __ATOMIC_RELAXED);
    if (ctx->ready_made && ctx->free_ready_made) ctx->free_ready_made(ctx);
    ctx->ready_made = NULL;
    if (__atomic_sub_fetch(&ctx->refs, 1, __ATOMIC_ACQ_REL) == 0) context_free(ctx);
}

void tile_context_destroy(tile_context *ctx) {
    tile_context_release(ctx);
}

void tile_context_pend(tile_context *ctx, tile_status code, const char *format, ...) {
    pthread_mutex_lock(&ctx->lock);
    if (ctx->pending == TILE_OK) {
        va_list arguments;
        va_start(arguments, format);
        const size_t room = sizeof ctx->pending_message;
        if (vsnprintf(ctx->pending_message, room, format, arguments) < 0)
            ctx->pending_message[0] = '\0';
        va_end(arguments);
        __atomic_store_n(&ctx->pending, code, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&ctx->lock);
}

tile_status tile_context_sync(tile_context *ctx) {
    TILE_CHECK(ctx, TILE_E_ARGUMENT, "tile_context_sync: ctx is NULL");
    if (ctx->device && ctx->device->sync) TILE_TRY(ctx->device->sync(ctx->device));
    if (__atomic_load_n(&ctx->pending, __ATOMIC_RELAXED) == TILE_OK) return TILE_OK;
    char message[sizeof ctx->pending_message];
    pthread_mutex_lock(&ctx->lock);
    const tile_status pending = ctx->pending;
    memcpy(message, ctx->pending_message, sizeof message);
    __atomic_store_n(&ctx->pending, TILE_OK, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&ctx->lock);
    return pending ? tile_fail(pending, "%s", message) : TILE_OK;
}

int tile_context_threads(const tile_context *ctx) {
    return ctx ? ctx->threads : 0;
}

size_t tile_context_bytes(const tile_context *ctx) {
    return ctx ? __atomic_load_n(&ctx->bytes, __ATOMIC_RELAXED) : 0;
}
