/* exec.c: making an executable, and how a launch is run: which blocks may run at once, and what is
 * committed in their order. */
#include "core/exec_internal.h"

#include <string.h>

#include "core/device.h"
#include "core/memory.h"
#include "core/native.h"
#include "core/status.h"

/* Making */

/* Rough costs, to decide whether threads are worth waking. */
static double estimate_ns(const tile_plan *plan) {
    static const double STEP = 10, STRIP = 0.15, CALL = 0.5;
    double ns = 0;
    for (int32_t k = 0; k < plan->step_count; k++) {
        const tile_step *s = &plan->step[k];
        const double ops = s->kind == TILE_STEP_STRIPS ? s->count : 1;
        ns += ops * STEP;
        if (s->kind == TILE_STEP_STRIPS) ns += ops * STRIP * (double)s->elements;
        if (s->kind == TILE_STEP_CALL) ns += CALL * (double)s->elements;
    }
    return ns;
}

static tile_status prepare(tile_executable *exe) {
    TILE_TRY(tile_analyse(&exe->program, &exe->analysis));
    TILE_TRY(tile_plan_blocks(&exe->program, &exe->blocks));
    TILE_TRY(tile_plan_flat(&exe->program, &exe->analysis, &exe->flat));
    exe->block_ns = estimate_ns(&exe->blocks);
    TILE_TRY(tile_find_checks(exe));
    return tile_rows_plan(exe, &exe->rows);
}

tile_status tile_executable_create(tile_context *ctx, tile_program *program,
                                   tile_executable **exe) {
    tile_executable *made = tile_alloc(sizeof *made);
    if (!made) {
        tile_program_clear(program);
        return TILE_E_MEMORY;
    }
    made->ctx = ctx;
    made->program = *program;
    *program = (tile_program){.param_count = 0};
    const tile_status status = prepare(made);
    if (status) {
        tile_executable_destroy(made);
        return status;
    }
    *exe = made;
    return TILE_OK;
}

void tile_executable_destroy(tile_executable *exe) {
    if (!exe) return;
    tile_native_drop(exe->native);
    tile_device_drop(exe);
    tile_rows_destroy(exe->rows);
    tile_plan_clear(&exe->blocks);
    tile_plan_clear(&exe->flat);
    tile_free(exe->check);
    tile_analysis_clear(&exe->analysis);
    tile_program_clear(&exe->program);
    tile_free(exe);
}

const tile_program *tile_executable_program(const tile_executable *exe) {
    return &exe->program;
}

const tile_analysis *tile_executable_analysis(const tile_executable *exe) {
    return &exe->analysis;
}

void tile_execute_by_blocks(tile_executable *exe, bool on) {
    exe->by_blocks = on;
}

/* Scratch */

/* The context's scratch: for all threads together, a part for each, for commits. Never shrinks. */
typedef struct scratch {
    tile_buffer *shared, *parts, *commit;
} scratch;

static void free_scratch(tile_context *ctx) {
    scratch *s = ctx->scratch;
    if (s) {
        tile_buffer_release(s->shared);
        tile_buffer_release(s->parts);
        tile_buffer_release(s->commit);
    }
    tile_free(s);
    ctx->scratch = NULL;
}

static tile_status grow_buffer(tile_context *ctx, tile_buffer **buffer, size_t bytes) {
    if (*buffer && (*buffer)->bytes >= bytes) return TILE_OK;
    tile_buffer *grown;
    TILE_TRY(tile_buffer_create_host(ctx, bytes, &grown));
    tile_buffer_release(*buffer);
    *buffer = grown;
    return TILE_OK;
}

static size_t thread_bytes(const tile_executable *exe) {
    const size_t blocks = exe->blocks.bytes, rows = tile_rows_thread_bytes(exe->rows);
    return tile_align(blocks > rows ? blocks : rows);
}

/* Bytes at the start of the shared scratch that every launch needs: flat values, slots, rows. */
static size_t flat_bytes(const tile_executable *exe) {
    return tile_align(exe->flat.bytes);
}

static size_t slot_bytes(const tile_executable *exe) {
    return tile_align((size_t)exe->program.slot_count * sizeof(tile_slot_place));
}

static size_t launch_bytes(const tile_executable *exe) {
    return flat_bytes(exe) + slot_bytes(exe) + tile_align(tile_rows_shared_bytes(exe->rows));
}

static tile_status need_scratch(const tile_executable *exe) {
    tile_context *ctx = exe->ctx;
    if (!ctx->scratch) {
        ctx->scratch = tile_alloc(sizeof(scratch));
        if (!ctx->scratch) return TILE_E_MEMORY;
        ctx->free_scratch = free_scratch;
    }
    scratch *s = ctx->scratch;
    TILE_TRY(grow_buffer(ctx, &s->shared, launch_bytes(exe) + TILE_LINE));
    if (ctx->device) return TILE_OK;
    return grow_buffer(ctx, &s->parts, thread_bytes(exe) * (size_t)ctx->threads + TILE_LINE);
}

/* Beginning a launch */

static tile_status count_blocks(const tile_executable *exe, const tile_bound *bound,
                                int64_t *blocks) {
    *blocks = 1;
    bool fits = true, none = false;
    for (int g = 0; g < TILE_GRID_RANK; g++) {
        TILE_CHECK(bound->grid[g] >= 0, TILE_E_ARGUMENT, "%s: grid axis %d has %lld blocks",
                   exe->program.name, g, (long long)bound->grid[g]);
        if (!bound->grid[g]) none = true;
        fits =
            !__builtin_mul_overflow(*blocks, bound->grid[g] ? bound->grid[g] : 1, blocks) && fits;
    }
    if (none) *blocks = 0;
    TILE_CHECK(fits || none, TILE_E_ARGUMENT, "%s: the grid has more than 2^63 blocks",
               exe->program.name);
    return TILE_OK;
}

static bool scale(size_t *bytes, int64_t by) {
    return by >= 0 && !__builtin_mul_overflow(*bytes, (size_t)by, bytes);
}

/* Slots follow each other; a slot holds, for every block, one tile per iteration. */
static tile_status place_slots(const tile_run_state *run, size_t *total) {
    const tile_program *p = &run->exe->program;
    *total = 0;
    for (int32_t k = 0; k < p->slot_count; k++) {
        const tile_slot *slot = &p->slot[k];
        tile_slot_place *place = &run->slot[k];
        *place = (tile_slot_place){.base = *total, .bytes = tile_dtype_size(slot->dtype)};
        bool fits = true;
        for (int d = 0; d < slot->shape.rank; d++)
            fits = scale(&place->bytes, slot->shape.extent[d]) && fits;
        place->entries = 1;
        for (int32_t d = 0; d < slot->loops; d++) {
            memcpy(&place->trips[d], run->flat + run->exe->flat.place[slot->count_value[d]],
                   sizeof place->trips[d]);
            if (place->trips[d] < 0) place->trips[d] = 0;
            fits =
                !__builtin_mul_overflow(place->entries, place->trips[d], &place->entries) && fits;
        }
        size_t bytes = place->bytes;
        fits = fits && scale(&bytes, place->entries) && scale(&bytes, run->blocks) &&
               bytes < (size_t)1 << 61;
        TILE_CHECK(fits && *total < (size_t)1 << 61, TILE_E_MEMORY,
                   "%s: kept values need more than 2^61 bytes", p->name);
        *total += tile_align(bytes);
    }
    return TILE_OK;
}

/* Lays out the shared scratch, finds flat values and slots. loads: arrays are there to be read. */
static tile_status begin(const tile_executable *exe, const tile_bound *bound, bool loads,
                         tile_run_state *run, size_t *stash) {
    *run = (tile_run_state){.exe = exe, .plan = &exe->blocks, .bound = bound};
    TILE_TRY(count_blocks(exe, bound, &run->blocks));
    const scratch *s = exe->ctx->scratch;
    run->flat = s->shared->data;
    run->slot = (tile_slot_place *)(void *)(run->flat + flat_bytes(exe));
    tile_runner flat = {.run = run, .arena = run->flat, .no_memory = !loads};
    if (!loads) memset(run->flat, 0, exe->flat.bytes);
    tile_run_steps(&flat, &exe->flat, 0, exe->flat.step_count);
    run->may_fail = tile_run_may_fail(run);
    return place_slots(run, stash);
}

tile_status tile_stash_bytes(const tile_executable *exe, const tile_bound *bound, size_t *bytes) {
    *bytes = 0;
    if (!exe->program.slot_count) return TILE_OK;
    tile_run_state run;
    TILE_TRY(need_scratch(exe));
    return begin(exe, bound, false, &run, bytes);
}

/* Running */

typedef struct block_job {
    const tile_run_state *run;
    char *arenas;
    size_t arena_bytes;
    int64_t chunk;
} block_job;

static void run_part(int64_t part, int thread, void *arg) {
    const block_job *job = arg;
    tile_runner r = {.run = job->run, .arena = job->arenas + (size_t)thread * job->arena_bytes};
    const int64_t first = part * job->chunk, left = job->run->blocks - first;
    tile_run_blocks(&r, first, first + (left < job->chunk ? left : job->chunk));
}

static void run_apart(const tile_run_state *run, char *arenas, size_t arena_bytes) {
    const tile_executable *exe = run->exe;
    const int64_t parts = run->serial ? 1 : 16 * (int64_t)exe->ctx->threads;
    block_job job = {run, arenas, arena_bytes, run->blocks / parts + (run->blocks % parts != 0)};
    const int64_t chunks = (run->blocks - 1) / job.chunk + 1;
    tile_parallel(exe->ctx, chunks, exe->block_ns * (double)run->blocks, run_part, &job);
}

/* The policy, and memory for the commit where it needs one. A device keeps order in another way. */
static tile_status choose(tile_run_state *run, tile_commit_size *size) {
    *size = (tile_commit_size){.bytes = 0};
    if (run->blocks < 2) {
        run->serial = true;
        return TILE_OK;
    }
    tile_choose_policy(run);
    if (run->exe->ctx->device || (!run->logged && !run->summed)) return TILE_OK;
    *size = tile_commit_measure(run);
    scratch *s = run->exe->ctx->scratch;
    return grow_buffer(run->exe->ctx, &s->commit, size->bytes);
}

tile_status tile_executable_reserve(tile_executable *exe, const tile_bound *bound) {
    tile_run_state run;
    tile_commit_size size;
    size_t stash;
    TILE_TRY(need_scratch(exe));
    TILE_TRY(begin(exe, bound, false, &run, &stash));
    TILE_TRY(choose(&run, &size));
    return exe->ctx->device ? tile_device_reserve(exe, &run) : TILE_OK;
}

bool tile_executable_may_fail(tile_executable *exe, const tile_bound *bound) {
    tile_run_state run;
    size_t stash;
    if (!exe->check_count || exe->unproven) return exe->unproven;
    return need_scratch(exe) || begin(exe, bound, false, &run, &stash) || run.may_fail;
}

/* Generated rows. Where there is no memory for them the interpreter, which has its own, goes on. */
static bool run_native_rows(const tile_run_state *run) {
    if (!run->native || run->exe->by_blocks || !run->exe->rows) return false;
    scratch *s = run->exe->ctx->scratch;
    const size_t bytes = tile_native_bytes(run->native, run->exe->ctx->threads);
    if (!bytes || grow_buffer(run->exe->ctx, &s->commit, bytes)) return false;
    return tile_native_run(run, run->native, s->commit->data);
}

static bool run_rows(tile_executable *exe, const tile_run_state *run) {
    const scratch *s = exe->ctx->scratch;
    if (!exe->rows || exe->by_blocks || run->may_fail) return false;
    if (!run_native_rows(run) && !tile_rows_run(run, run->flat + flat_bytes(exe) + slot_bytes(exe),
                                                s->parts->data, thread_bytes(exe)))
        return false;
    exe->runs_by_rows++;
    return true;
}

/* Generated code has a block plan of its own. Without memory for it the interpreter goes on. */
static void choose_plan(tile_run_state *run) {
    const tile_native *native = run->native;
    if (!native || native->plan.rows) return;
    tile_context *ctx = run->exe->ctx;
    scratch *s = ctx->scratch;
    const size_t bytes = tile_align(native->plan.blocks.bytes);
    if (grow_buffer(ctx, &s->parts, bytes * (size_t)ctx->threads + TILE_LINE))
        run->native = NULL;
    else
        run->plan = &native->plan.blocks;
}

static size_t arena_bytes(const tile_run_state *run) {
    const size_t bytes = thread_bytes(run->exe), own = tile_align(run->plan->bytes);
    return bytes > own ? bytes : own;
}

tile_status tile_execute(tile_executable *exe, const tile_bound *bound) {
    tile_run_state run;
    tile_run_error error;
    tile_commit_size size;
    size_t stash;
    if (exe->ctx->rehearsal) return tile_executable_reserve(exe, bound);
    TILE_TRY(need_scratch(exe));
    TILE_TRY(begin(exe, bound, !exe->ctx->device, &run, &stash));
    error.set = false;
    run.error = &error;
    if (!run.blocks) return TILE_OK;
    TILE_CHECK(bound->stash || !stash, TILE_E_STATE, "%s: no stash for kept values",
               exe->program.name);
    if (exe->ctx->device) {
        TILE_TRY(choose(&run, &size));
        exe->ctx->device_launches++;
        TILE_TRY(tile_device_run(exe, &run));
        return error.set ? tile_fail(TILE_E_EXECUTION, "%s", error.message) : TILE_OK;
    }
    run.native = tile_native_of(exe, exe->block_ns * (double)run.blocks);
    choose_plan(&run);
    if (run.native)
        exe->ctx->native_launches++;
    else
        exe->ctx->interpreted_launches++;
    if (run_rows(exe, &run)) return TILE_OK;
    const size_t bytes = arena_bytes(&run);
    const scratch *s = exe->ctx->scratch;
    TILE_TRY(choose(&run, &size));
    if (run.logged || run.summed)
        tile_commit_run(&run, &size, s->commit->data, s->parts->data, bytes);
    else
        run_apart(&run, s->parts->data, bytes);
    return error.set ? tile_fail(TILE_E_EXECUTION, "%s", error.message) : TILE_OK;
}
