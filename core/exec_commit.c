/* exec_commit.c: blocks at once, their effects in block order.
 *
 * Blocks are computed in chunks. A chunk logs the operands of its calls on shared arrays; when a
 * round of chunks is computed, the logs are run one after the other, so that memory sees what it
 * would see from blocks in order. Additions of all blocks to one window are summed instead: a
 * chunk in order, chunks in a pairwise tree, in float64, the total added to memory once. The
 * chunks depend on shapes and loop counts alone, never on threads. */
#include <string.h>

#include "core/exec_internal.h"

enum {
    CHUNK_MAX = 64,       /* blocks of a chunk */
    ROUND_PER_THREAD = 4, /* chunks of a round */
    ENTRY_ALIGN = 16
};
static const size_t CHUNK_LOG_BYTES = (size_t)256 << 10, BLOCK_LOG_MAX = (size_t)16 << 20;

typedef struct tile_commit_entry {
    const tile_call_step *step;
    size_t bytes; /* with the operands */
    int64_t offset[TILE_DIMS], low[TILE_DIMS], high[TILE_DIMS];
} entry;

static size_t round_up(size_t bytes) {
    return (bytes + ENTRY_ALIGN - 1) / ENTRY_ALIGN * ENTRY_ALIGN;
}

static size_t entry_bytes(const tile_call_step *step) {
    size_t bytes = round_up(sizeof(entry));
    for (int k = 0; k < step->n_in; k++) bytes += round_up(step->in_bytes[k]);
    return bytes;
}

static bool is_summed(const tile_run_state *run, const tile_call_step *step) {
    return step->node->op->access == TILE_ACCESS_ADD &&
           tile_has_bit(run->summed, step->node->param);
}

static bool is_logged(const tile_run_state *run, const tile_call_step *step) {
    return step->node->op->access && tile_has_bit(run->logged, step->node->param);
}

static int64_t tile_elements(const tile_call_step *step) {
    const tile_dims *dims = &step->call.in_dims[0];
    int64_t n = 1;
    for (int d = 0; d < dims->rank; d++) n *= dims->extent[d];
    return n;
}

/* Sizes */

static bool add_bytes(size_t *total, size_t bytes, int64_t times) {
    size_t product;
    if (times <= 0) return true;
    return !__builtin_mul_overflow(bytes, (size_t)times, &product) &&
           !__builtin_add_overflow(*total, product, total);
}

/* Log bytes of one run of some steps. false: too many to count. */
static bool measure_steps(const tile_run_state *run, int32_t first, int32_t count, size_t *bytes) {
    const tile_plan *plan = run->plan;
    for (int32_t k = first; k < first + count; k++) {
        const tile_step *s = &plan->step[k];
        if (s->kind == TILE_STEP_CALL && is_logged(run, &plan->call[s->first]))
            if (!add_bytes(bytes, entry_bytes(&plan->call[s->first]), 1)) return false;
        if (s->kind != TILE_STEP_LOOP) continue;
        size_t body = 0;
        if (!measure_steps(run, k + 1, s->body, &body)) return false;
        k += s->body;
        const int32_t count_value = run->exe->program.input[s->node->in];
        int64_t trips = 0;
        if (body && !run->exe->analysis.flat[count_value]) return false;
        if (body) memcpy(&trips, run->flat + run->exe->flat.place[count_value], sizeof trips);
        if (!add_bytes(bytes, body, trips)) return false;
    }
    return true;
}

static void measure_sums(const tile_run_state *run, tile_commit_size *size) {
    const tile_plan *plan = run->plan;
    for (int32_t k = 0; k < plan->call_count; k++) {
        if (!is_summed(run, &plan->call[k])) continue;
        size->sums += tile_elements(&plan->call[k]);
        size->summed++;
    }
}

static size_t chunk_bytes(const tile_commit_size *size) {
    return tile_align(sizeof(tile_commit_log)) + tile_align(size->log_bytes) +
           tile_align((size_t)size->sums * sizeof(double)) +
           tile_align((size_t)size->summed * sizeof(entry));
}

/* Blocks that log too much run in order instead, whatever the threads: sums need one answer. */
static size_t measure_log(tile_run_state *run) {
    size_t bytes = 0;
    if (measure_steps(run, 0, run->plan->step_count, &bytes) && bytes <= BLOCK_LOG_MAX)
        return bytes;
    run->serial = true;
    run->logged = 0;
    return 0;
}

tile_commit_size tile_commit_measure(tile_run_state *run) {
    tile_commit_size size = {.chunk = CHUNK_MAX};
    const size_t block_bytes = measure_log(run);
    measure_sums(run, &size);
    if (block_bytes * CHUNK_MAX > CHUNK_LOG_BYTES)
        size.chunk = 1 + (int64_t)(CHUNK_LOG_BYTES / block_bytes);
    size.chunks = (run->blocks - 1) / size.chunk + 1;
    size.log_bytes = block_bytes * (size_t)size.chunk;
    size.round = (int64_t)ROUND_PER_THREAD * run->exe->ctx->threads;
    if (size.round > size.chunks) size.round = size.chunks;
    size.levels = 1;
    for (int64_t n = size.chunks; n > 1; n = n / 2 + n % 2) size.levels++;
    size.bytes = (size_t)size.round * chunk_bytes(&size) +
                 (size_t)size.levels * tile_align((size_t)size.sums * sizeof(double));
    return size;
}

/* Logging */

static entry make_entry(const tile_call_step *step, const tile_call *call) {
    entry e = {.step = step, .bytes = entry_bytes(step)};
    memcpy(e.offset, call->offset, sizeof e.offset);
    memcpy(e.low, call->low, sizeof e.low);
    memcpy(e.high, call->high, sizeof e.high);
    return e;
}

static void add_sum(const tile_run_state *run, tile_commit_log *log, const tile_call_step *step,
                    const tile_call *call) {
    const tile_plan *plan = run->plan;
    double *sum = log->sum;
    int32_t number = 0;
    for (const tile_call_step *c = plan->call; c != step; c++) {
        if (!is_summed(run, c)) continue;
        sum += tile_elements(c);
        number++;
    }
    const int64_t n = tile_elements(step);
    const bool wide = run->exe->program.param[step->node->param].dtype == TILE_F64;
    const float *narrow = call->in[0];
    const double *values = call->in[0];
    const bool begun = log->window[number].step != NULL;
    for (int64_t i = 0; i < n; i++) {
        const double value = wide ? values[i] : (double)narrow[i];
        sum[i] = begun ? sum[i] + value : value;
    }
    log->window[number] = make_entry(step, call);
}

bool tile_commit_take(tile_runner *r, const tile_call_step *step, const tile_call *call) {
    tile_commit_log *log = r->log;
    if (is_summed(r->run, step)) {
        add_sum(r->run, log, step, call);
        return true;
    }
    if (!is_logged(r->run, step)) return false;
    entry *e = (entry *)(void *)(log->entries + log->used);
    *e = make_entry(step, call);
    char *to = log->entries + log->used + round_up(sizeof *e);
    for (int k = 0; k < step->n_in; k++) {
        memcpy(to, call->in[k], step->in_bytes[k]);
        to += round_up(step->in_bytes[k]);
    }
    log->used += e->bytes;
    return true;
}

/* Committing */

/* parts > 1: only the part of the window in one part of the array. */
static void run_entry(const tile_run_state *run, const entry *e, const char *operands, int64_t part,
                      int64_t parts) {
    tile_call call = e->step->call;
    for (int k = 0; k < e->step->n_in; k++) {
        call.in[k] = operands;
        operands += round_up(e->step->in_bytes[k]);
    }
    call.array = run->bound->array[e->step->node->param];
    memcpy(call.offset, e->offset, sizeof e->offset);
    memcpy(call.low, e->low, sizeof e->low);
    memcpy(call.high, e->high, sizeof e->high);
    if (parts > 1) { /* of the first dimension's places */
        const int64_t extent = call.array.extent[0], share = extent / parts + 1;
        const int64_t low = part * share, high = low + share;
        if (call.low[0] < low) call.low[0] = low;
        if (call.high[0] > high) call.high[0] = high;
        if (call.high[0] <= call.low[0]) return;
    }
    e->step->run(&call);
}

static void commit_log(const tile_run_state *run, const tile_commit_log *log, int64_t part,
                       int64_t parts) {
    for (size_t at = 0; at < log->used;) {
        const entry *e = (const entry *)(const void *)(log->entries + at);
        run_entry(run, e, log->entries + at + round_up(sizeof *e), part, parts);
        at += e->bytes;
    }
}

typedef struct commit {
    const tile_run_state *run;
    const tile_commit_size *size;
    char *memory, *arenas;
    size_t arena_bytes;
    int64_t first; /* chunk of the round */
    int64_t count; /* chunks of it */
    int64_t parts; /* of every array, committed at once */
} commit;

static tile_commit_log *log_of(const commit *c, int64_t k) {
    return (tile_commit_log *)(void *)(c->memory + (size_t)k * chunk_bytes(c->size));
}

static void begin_log(const commit *c, tile_commit_log *log) {
    char *memory = (char *)log + tile_align(sizeof *log);
    log->entries = memory;
    log->used = 0;
    memory += tile_align(c->size->log_bytes);
    log->sum = (double *)(void *)memory;
    memory += tile_align((size_t)c->size->sums * sizeof(double));
    log->window = (entry *)(void *)memory;
    memset(log->window, 0, (size_t)c->size->summed * sizeof *log->window);
}

static void run_chunk(int64_t part, int thread, void *arg) {
    const commit *c = arg;
    tile_runner r = {.run = c->run,
                     .arena = c->arenas + (size_t)thread * c->arena_bytes,
                     .log = log_of(c, part)};
    begin_log(c, r.log);
    const int64_t first = (c->first + part) * c->size->chunk, left = c->run->blocks - first;
    tile_run_blocks(&r, first, first + (left < c->size->chunk ? left : c->size->chunk));
}

static void commit_part(int64_t part, int thread, void *arg) {
    const commit *c = arg;
    (void)thread;
    for (int64_t k = 0; k < c->count; k++) commit_log(c->run, log_of(c, k), part, c->parts);
}

static void commit_logs(commit *c) {
    static const double NS_PER_BYTE = 0.1;
    size_t bytes = 0;
    for (int64_t k = 0; k < c->count; k++) bytes += log_of(c, k)->used;
    if (c->parts == 1)
        commit_part(0, 0, c);
    else
        tile_parallel(c->run->exe->ctx, c->parts, NS_PER_BYTE * (double)bytes, commit_part, c);
}

/* Whether what is logged can be taken apart by places: windows of arrays that share nothing. */
static bool is_divisible(const tile_run_state *run) {
    const tile_plan *plan = run->plan;
    for (int32_t k = 0; k < plan->call_count; k++) {
        const tile_node *n = plan->call[k].node;
        if (!is_logged(run, &plan->call[k])) continue;
        if (n->op->indexed || run->exe->program.param[n->param].rank < 1) return false;
    }
    return !run->entangled && !run->serial;
}

static void add_to(double *to, const double *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

/* Level l of the tree holds the sum of 2^l chunks when bit l of their number is set. */
static double *level_of(const commit *c, int level) {
    const size_t bytes = tile_align((size_t)c->size->sums * sizeof(double));
    char *levels = c->memory + (size_t)c->size->round * chunk_bytes(c->size);
    return (double *)(void *)(levels + (size_t)level * bytes);
}

static void add_chunk(const commit *c, int64_t chunk, double *sum) {
    const int64_t n = c->size->sums;
    int level = 0;
    for (; chunk >> level & 1; level++) {
        double *before = level_of(c, level);
        add_to(before, sum, n);
        sum = before;
    }
    memcpy(level_of(c, level), sum, (size_t)n * sizeof *sum);
}

/* What is left on the levels, from the smallest sum up. */
static double *total_of(const commit *c) {
    double *total = NULL;
    for (int level = 0; c->size->chunks >> level; level++) {
        if (!(c->size->chunks >> level & 1)) continue;
        double *next = level_of(c, level);
        if (total) add_to(next, total, c->size->sums);
        total = next;
    }
    return total;
}

/* The total in the array's dtype, in place, as one call on the window that every block named. */
static void commit_sum(const commit *c, const entry *e, double *sum) {
    const int32_t param = e->step->node->param;
    const int64_t n = tile_elements(e->step);
    if (c->run->exe->program.param[param].dtype == TILE_F32)
        for (int64_t i = 0; i < n; i++) {
            const float value = (float)sum[i];
            memcpy((char *)sum + (size_t)i * sizeof value, &value, sizeof value);
        }
    run_entry(c->run, e, (const char *)sum, 0, 1);
}

static void commit_sums(const commit *c) {
    double *sum = total_of(c);
    const tile_commit_log *log = log_of(c, 0);
    for (int32_t k = 0; k < c->size->summed; k++) {
        commit_sum(c, &log->window[k], sum);
        sum += tile_elements(log->window[k].step);
    }
}

void tile_commit_run(const tile_run_state *run, const tile_commit_size *size, char *memory,
                     char *arenas, size_t arena_bytes) {
    commit c = {run, size, memory, arenas, arena_bytes, 0, 0, 1};
    if (is_divisible(run)) c.parts = run->exe->ctx->threads;
    const double chunk_ns = run->exe->block_ns * (double)size->chunk;
    for (; c.first < size->chunks; c.first += size->round) {
        const int64_t left = size->chunks - c.first;
        const int64_t count = left < size->round ? left : size->round;
        if (run->serial)
            for (int64_t k = 0; k < count; k++) run_chunk(k, 0, &c);
        else
            tile_parallel(run->exe->ctx, count, chunk_ns * (double)count, run_chunk, &c);
        c.count = count;
        commit_logs(&c);
        for (int64_t k = 0; k < count && size->sums; k++)
            add_chunk(&c, c.first + k, log_of(&c, k)->sum);
    }
    if (size->sums) commit_sums(&c);
}
