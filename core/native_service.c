/* native_service.c: asks for generated code and builds it on a thread of its own.
 *
 * A launch writes the text, which takes a fraction of a millisecond; everything slow happens here,
 * and the interpreter goes on until the code is there. */
#define _POSIX_C_SOURCE 200809L /* pthread_sigmask */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/device.h"
#include "core/memory.h"
#include "core/native.h"
#include "core/status.h"

/* A compilation takes some tenths of a second of another core: worth it from here on. */
static const double WORTH_NS = 5e7;
enum { WORTH_LAUNCHES = 4, FAILURES_MAX = 3, SOURCE_MAX = 1 << 20 };

struct tile_native_service {
    pthread_mutex_t lock; /* all but stop */
    pthread_cond_t asked, built;
    pthread_t thread;
    bool started;
    bool stop; /* atomic */
    bool off;  /* atomic: nothing more is asked for */
    tile_native *first, *last;
    int64_t compiled, reused, waiting, failed;
    int failures; /* in a row */
    char why[TILE_NATIVE_WHY];
};

/* Objects */

static void destroy(tile_native *n) {
    if (__atomic_sub_fetch(&n->refs, 1, __ATOMIC_ACQ_REL)) return;
    if (n->library) dlclose(n->library);
    tile_native_plan_clear(&n->plan);
    tile_free(n->group);
    tile_free(n);
}

void tile_native_drop(tile_native *native) {
    if (!native) return;
    __atomic_store_n(&native->dropped, true, __ATOMIC_RELAXED);
    destroy(native);
}

static bool find_function(void *library, const char *kind, int32_t number, void *to, size_t size) {
    char name[40];
    (void)snprintf(name, sizeof name, "tile_%s_%d", kind, (int)number);
    void *found = dlsym(library, name);
    memcpy(to, &found, size); /* a data pointer is no function pointer in C */
    return found != NULL;
}

static bool find_functions(tile_native *n, void *library) {
    bool found = true;
    for (int32_t k = 0; n->plan.rows && k < n->plan.stage_count; k++)
        found = find_function(library, "stage", k, &n->stage[k], sizeof n->stage[k]) && found;
    for (int32_t k = 0; k < n->plan.group_count; k++)
        found = find_function(library, "group", k, &n->group[k], sizeof n->group[k]) && found;
    return found;
}

/* Loads an object of the cache. false: it is not what its name says, and is removed. */
static bool load(tile_native *n, const char *folder) {
    char path[TILE_NATIVE_PATH];
    (void)snprintf(path, sizeof path, "%.900s/%s.so", folder, n->id);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *id = library ? dlsym(library, "tile_native_id") : NULL;
    if (id && !strncmp(id, n->id, sizeof n->id) && find_functions(n, library)) {
        n->library = library;
        return true;
    }
    if (library) dlclose(library);
    (void)unlink(path);
    return false;
}

/* Building, on the service's thread */

static bool write_text(const tile_native *n, const char *path, char why[TILE_NATIVE_WHY]) {
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *out = file < 0 ? NULL : fdopen(file, "w");
    if (file >= 0 && !out) close(file);
    bool done = false;
    if (out) {
        done = fputs(tile_text_get(&n->plan.source), out) >= 0 &&
               fprintf(out, "\nconst char tile_native_id[] = \"%s\";\n", n->id) > 0;
        done = fclose(out) == 0 && done;
    }
    if (!done) (void)snprintf(why, TILE_NATIVE_WHY, "%.180s cannot be written", path);
    return done;
}

static bool compile(tile_native_service *s, const tile_native *n, const char *compiler,
                    const char *folder, char why[TILE_NATIVE_WHY]) {
    char text[TILE_NATIVE_PATH], object[TILE_NATIVE_PATH];
    tile_native_temporary(folder, n->id, ".c", text);
    tile_native_temporary(folder, n->id, ".so", object);
    const bool done = write_text(n, text, why) &&
                      tile_native_compile(compiler, text, object, &s->stop, why) &&
                      tile_native_keep(folder, n->id, object, text, why);
    (void)unlink(text);
    (void)unlink(object);
    return done;
}

static bool build(tile_native_service *s, tile_native *n, bool *reused, char why[TILE_NATIVE_WHY]) {
    char compiler[TILE_NATIVE_PATH], folder[TILE_NATIVE_PATH];
    if (!tile_native_compiler(compiler, why) || !tile_native_folder(folder, why)) return false;
    tile_native_name(tile_text_get(&n->plan.source), compiler, n->id);
    *reused = tile_native_have(folder, n->id) && load(n, folder);
    if (*reused) return true;
    if (!compile(s, n, compiler, folder, why)) return false;
    if (load(n, folder)) return true;
    (void)snprintf(why, TILE_NATIVE_WHY, "what the C compiler %.120s made cannot be loaded",
                   compiler);
    return false;
}

static void note_built(tile_native_service *s, tile_native *n, bool done, bool reused,
                       const char *why) {
    pthread_mutex_lock(&s->lock);
    s->waiting--;
    s->compiled += done && !reused;
    s->reused += done && reused;
    s->failed += !done;
    s->failures = done ? 0 : s->failures + 1;
    if (s->failures >= FAILURES_MAX) __atomic_store_n(&s->off, true, __ATOMIC_RELAXED);
    if (!done) memcpy(s->why, why, sizeof s->why);
    __atomic_store_n(&n->state, done ? TILE_NATIVE_READY : TILE_NATIVE_FAILED, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&s->built);
    pthread_mutex_unlock(&s->lock);
}

static void *service_main(void *arg) {
    tile_native_service *s = arg;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        while (!s->first && !s->stop) pthread_cond_wait(&s->asked, &s->lock);
        tile_native *n = s->first;
        if (n) s->first = n->next;
        const bool stop = s->stop, off = s->off;
        char why[TILE_NATIVE_WHY];
        memcpy(why, s->why, sizeof why);
        pthread_mutex_unlock(&s->lock);
        if (!n) return NULL;
        bool reused = false;
        const bool done = !stop && !off && !__atomic_load_n(&n->dropped, __ATOMIC_RELAXED) &&
                          build(s, n, &reused, why);
        note_built(s, n, done, reused, why);
        destroy(n);
    }
}

/* Asking */

static tile_native_service *service_of(tile_context *ctx) {
    if (ctx->native) return ctx->native;
    tile_native_service *s = tile_alloc(sizeof *s);
    if (!s) return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->asked, NULL);
    pthread_cond_init(&s->built, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->started = pthread_create(&s->thread, NULL, service_main, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->off = !s->started;
    if (s->off) (void)snprintf(s->why, sizeof s->why, "no thread to compile on");
    ctx->native = s;
    return s;
}

void tile_native_stop(tile_context *ctx) {
    tile_native_service *s = ctx->native;
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    __atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&s->asked);
    pthread_mutex_unlock(&s->lock);
    if (s->started) pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->built);
    pthread_cond_destroy(&s->asked);
    pthread_mutex_destroy(&s->lock);
    tile_free(s);
    ctx->native = NULL;
}

static void queue(tile_native_service *s, tile_native *n) {
    pthread_mutex_lock(&s->lock);
    n->refs++;
    n->next = NULL;
    if (s->first)
        s->last->next = n;
    else
        s->first = n;
    s->last = n;
    s->waiting++;
    pthread_cond_signal(&s->asked);
    pthread_mutex_unlock(&s->lock);
}

/* The text is written here, on the launching thread: nobody else may look at the executable. */
static void ask(tile_executable *exe) {
    tile_native *n = tile_alloc(sizeof *n);
    if (!n) return;
    n->refs = 1;
    n->state = TILE_NATIVE_FAILED;
    exe->native = n;
    tile_native_service *s = service_of(exe->ctx);
    if (!s || __atomic_load_n(&s->off, __ATOMIC_RELAXED)) return;
    if (tile_native_plan_make(exe, &n->plan)) return;
    if ((!n->plan.rows && !n->plan.group_count) || n->plan.source.length > SOURCE_MAX) return;
    n->group = tile_alloc(((size_t)n->plan.group_count + 1) * sizeof *n->group);
    if (!n->group) return;
    __atomic_store_n(&n->state, TILE_NATIVE_WAITING, __ATOMIC_RELAXED);
    queue(s, n);
}

static void wait_for(tile_native_service *s, const tile_native *n) {
    pthread_mutex_lock(&s->lock);
    while (n->state == TILE_NATIVE_WAITING) pthread_cond_wait(&s->built, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

const tile_native *tile_native_of(tile_executable *exe, double work_ns) {
    const tile_executor executor = exe->ctx->executor;
    if (executor == TILE_EXECUTOR_INTERPRETER) return NULL;
    if (!exe->native) {
        exe->launches++;
        exe->work_ns += work_ns;
        const bool worth = exe->launches >= WORTH_LAUNCHES && exe->work_ns >= WORTH_NS;
        if (executor == TILE_EXECUTOR_AUTO && !worth) return NULL;
        ask(exe);
        if (!exe->native) return NULL;
    }
    int state = __atomic_load_n(&exe->native->state, __ATOMIC_ACQUIRE);
    if (state == TILE_NATIVE_WAITING && executor == TILE_EXECUTOR_NATIVE) {
        wait_for(exe->ctx->native, exe->native);
        state = __atomic_load_n(&exe->native->state, __ATOMIC_ACQUIRE);
    }
    return state == TILE_NATIVE_READY ? exe->native : NULL;
}

tile_status tile_context_info(tile_context *ctx, tile_executor_info *info) {
    TILE_CHECK(ctx, TILE_E_ARGUMENT, "tile_context_info: ctx is NULL");
    TILE_CHECK(info, TILE_E_ARGUMENT, "tile_context_info: info is NULL");
    *info = (tile_executor_info){.executor = ctx->executor,
                                 .native_launches = ctx->native_launches,
                                 .interpreted_launches = ctx->interpreted_launches};
    info->device_launches = ctx->device_launches;
    if (ctx->device && ctx->device->info) ctx->device->info(ctx->device, info);
    tile_native_service *s = ctx->native;
    if (!s) return TILE_OK;
    pthread_mutex_lock(&s->lock);
    info->compiled = s->compiled;
    info->reused = s->reused;
    info->waiting = s->waiting;
    info->failed = s->failed;
    memcpy(info->why, s->why, sizeof info->why);
    pthread_mutex_unlock(&s->lock);
    return TILE_OK;
}
