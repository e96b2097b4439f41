/* threads.c: the worker threads of a context.
 *
 * A job is open while parts are left. A worker that is awake joins it, a late one finds it closed:
 * the caller never waits for a thread that does no work. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, pthread_sigmask, sched_yield */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "core/context.h"
#include "core/status.h"

/* Measured: a job costs 0.2 to 0.4 us with spinning workers, and waking one 28 to 40 us. */
static const double inline_ns = 2e3; /* less work than this runs on the caller alone */
static const double wake_ns = 1e5;   /* less work than this wakes nobody */
static const int64_t spin_ns = 70000;
enum { CHUNKS_PER_THREAD = 16, LINE = 64, SPINS = 64, SPINS_BEFORE_YIELD = 4096 };

typedef struct worker {
    tile_workers *group;
    int thread;
    pthread_t handle;
} worker;

struct tile_workers {
    /* generation << 32 | open_bit | workers inside: one word, so that entering is one step. */
    uint64_t state;
    char apart[LINE];
    int64_t next; /* the first part not handed out */
    char apart_too[LINE];
    int64_t parts, chunk;
    tile_task task;
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int sleeping; /* atomic, changed under the lock */
    bool stop;    /* atomic */
    int count;
    uint32_t generation; /* the caller's */
    int64_t last_end;    /* the caller's: of the last job that it did alone */
    double missed_ns;    /* the caller's: time of such jobs in a row, less than spin_ns apart */
    worker each[];
};

static const uint64_t open_bit = (uint64_t)1 << 31;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void run_parts(tile_workers *group, int thread) {
    const int64_t parts = group->parts, chunk = group->chunk;
    for (;;) {
        const int64_t first = __atomic_fetch_add(&group->next, chunk, __ATOMIC_RELAXED);
        if (first >= parts) return;
        const int64_t end = parts - first < chunk ? parts : first + chunk;
        for (int64_t part = first; part < end; part++) group->task(part, thread, group->arg);
    }
}

/* Joins the open job unless the worker was in it before. */
static bool enter(tile_workers *group, uint32_t *seen) {
    uint64_t state = __atomic_load_n(&group->state, __ATOMIC_SEQ_CST);
    while ((state & open_bit) && (uint32_t)(state >> 32) != *seen) {
        if (__atomic_compare_exchange_n(&group->state, &state, state + 1, true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
            *seen = (uint32_t)(state >> 32);
            return true;
        }
    }
    return false;
}

static bool stopping(tile_workers *group) {
    return __atomic_load_n(&group->stop, __ATOMIC_RELAXED);
}

/* Asleep until there is a job (true) or the end (false). A caller that wants sleepers opens the job
 * first and counts them second; here it is the other way round, so none is missed. */
static bool sleep_until_job(tile_workers *group, uint32_t *seen) {
    bool entered = false;
    pthread_mutex_lock(&group->lock);
    __atomic_fetch_add(&group->sleeping, 1, __ATOMIC_SEQ_CST);
    while (!stopping(group) && !(entered = enter(group, seen)))
        pthread_cond_wait(&group->wake, &group->lock);
    __atomic_fetch_sub(&group->sleeping, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&group->lock);
    return entered;
}

static bool next_job(tile_workers *group, uint32_t *seen) {
    const int64_t end = now_ns() + spin_ns;
    do {
        for (int i = 0; i < SPINS; i++) {
            if (enter(group, seen)) return true;
            pause_briefly();
        }
        if (stopping(group)) return false;
    } while (now_ns() < end);
    return sleep_until_job(group, seen);
}

static void *worker_main(void *arg) {
    const worker *self = arg;
    tile_workers *group = self->group;
    uint32_t seen = 0;
    while (next_job(group, &seen)) {
        run_parts(group, self->thread);
        __atomic_fetch_sub(&group->state, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Whether sleeping workers are worth waking: for a large job, or for small ones that follow each
 * other so closely that a woken worker would find the next by spinning. */
static bool worth_waking(tile_workers *group, double work_ns) {
    if (work_ns >= wake_ns) return true;
    if (now_ns() - group->last_end > spin_ns) group->missed_ns = 0;
    return group->missed_ns + work_ns >= wake_ns;
}

/* The job on the caller alone, timed: estimates may be far off. */
static void run_alone(tile_workers *group, int64_t parts, tile_task task, void *arg) {
    const int64_t start = now_ns();
    for (int64_t part = 0; part < parts; part++) task(part, 0, arg);
    group->last_end = now_ns();
    group->missed_ns += (double)(group->last_end - start);
}

static void wake(tile_workers *group, int64_t wanted) {
    pthread_mutex_lock(&group->lock);
    if (wanted >= group->count)
        pthread_cond_broadcast(&group->wake);
    else
        for (int64_t i = 0; i < wanted; i++) pthread_cond_signal(&group->wake);
    pthread_mutex_unlock(&group->lock);
}

static void close_job(tile_workers *group) {
    __atomic_fetch_and(&group->state, ~open_bit, __ATOMIC_ACQ_REL);
    for (int i = 0; (uint32_t)__atomic_load_n(&group->state, __ATOMIC_ACQUIRE) != 0; i++) {
        if (i < SPINS_BEFORE_YIELD)
            pause_briefly();
        else
            sched_yield();
    }
}

void tile_parallel(tile_context *ctx, int64_t parts, double work_ns, tile_task task, void *arg) {
    tile_workers *group = ctx->workers;
    if (!group || parts < 2 || !(work_ns >= inline_ns)) {
        for (int64_t part = 0; part < parts; part++) task(part, 0, arg);
        return;
    }
    const int sleeping = __atomic_load_n(&group->sleeping, __ATOMIC_RELAXED);
    const bool waking = sleeping > 0 && worth_waking(group, work_ns);
    if (sleeping == group->count && !waking) {
        run_alone(group, parts, task, arg);
        return;
    }
    group->missed_ns = 0;
    const int64_t chunk = parts / ((int64_t)ctx->threads * CHUNKS_PER_THREAD);
    group->parts = parts;
    group->chunk = chunk > 1 ? chunk : 1;
    group->task = task;
    group->arg = arg;
    __atomic_store_n(&group->next, 0, __ATOMIC_RELAXED);
    const uint64_t opened = (uint64_t)++group->generation << 32 | open_bit;
    __atomic_store_n(&group->state, opened, __ATOMIC_SEQ_CST);
    if (waking && __atomic_load_n(&group->sleeping, __ATOMIC_SEQ_CST) > 0) wake(group, parts - 1);
    run_parts(group, 0);
    close_job(group);
}

/* Starts the threads with every signal blocked: signals are the program's business. */
static int start_threads(tile_workers *group, int count) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    for (int i = 0; i < count && !error; i++) {
        worker *w = &group->each[i];
        w->group = group;
        w->thread = i + 1;
        error = pthread_create(&w->handle, NULL, worker_main, w);
        if (!error) group->count = i + 1;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

tile_status tile_workers_start(tile_context *ctx) {
    const int count = ctx->threads - 1;
    if (count < 1) return TILE_OK;
    tile_workers *group = tile_alloc(sizeof *group + (size_t)count * sizeof *group->each);
    if (!group) return TILE_E_MEMORY;
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->wake, NULL);
    ctx->workers = group;
    const int error = start_threads(group, count);
    if (!error) return TILE_OK;
    const int started = group->count;
    tile_workers_stop(ctx);
    return tile_fail(TILE_E_MEMORY, "tile_context_create: thread %d of %d did not start (error %d)",
                     started + 2, ctx->threads, error);
}

void tile_workers_stop(tile_context *ctx) {
    tile_workers *group = ctx->workers;
    if (!group) return;
    pthread_mutex_lock(&group->lock);
    __atomic_store_n(&group->stop, true, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&group->wake);
    pthread_mutex_unlock(&group->lock);
    for (int i = 0; i < group->count; i++) pthread_join(group->each[i].handle, NULL);
    pthread_cond_destroy(&group->wake);
    pthread_mutex_destroy(&group->lock);
    ctx->workers = NULL;
    tile_free(group);
}
