/* exec_row_launch.c: a launch as rows: whether it may be, which places, how it is shared out. */
#include <string.h>

#include "core/exec_rows.h"

size_t tile_rows_shared_bytes(const tile_rows *rows) {
    if (!rows) return 0;
    const size_t strip = tile_align((size_t)(rows->strip + rows->margin) * sizeof(double));
    return tile_align((size_t)rows->window_count * sizeof(tile_row_place)) +
           tile_align((size_t)rows->flat_count * sizeof(char *)) +
           tile_align((size_t)rows->op_count) + (size_t)rows->flat_count * strip;
}

static int64_t integer_at(const tile_run_state *run, size_t place) {
    int64_t value;
    memcpy(&value, run->flat + place, sizeof value);
    return value;
}

/* false: a place is too far out to count with. */
static bool resolve_window(const tile_row_job *job, const tile_row_window *window,
                           tile_row_place *r) {
    const tile_memory *m = &job->run->bound->array[window->param];
    r->read = (char *)(uintptr_t)m->read;
    r->write = m->write;
    for (int d = 0; d < window->rank; d++) {
        r->start[d] = window->constant[d];
        if (window->uniform[d] != TILE_NO_PLACE &&
            __builtin_add_overflow(r->start[d], integer_at(job->run, window->uniform[d]),
                                   &r->start[d]))
            return false;
        if (r->start[d] > INT64_MAX / 4 || r->start[d] < -INT64_MAX / 4) return false;
        r->low[d] = 0;
        r->high[d] = m->extent[d];
        r->stride[d] = m->stride[d] * (int64_t)window->size;
        if (!window->bounded) continue;
        r->low[d] = tile_between(integer_at(job->run, window->bound[2 * d]), 0, m->extent[d]);
        r->high[d] =
            tile_between(integer_at(job->run, window->bound[2 * d + 1]), r->low[d], m->extent[d]);
    }
    return true;
}

/* The places where something is written. false: the grid is no field. */
static bool find_domain(tile_row_job *job) {
    const tile_rows *rows = job->rows;
    const int64_t *grid = job->run->bound->grid;
    bool used[TILE_GRID_RANK] = {false}, none = true;
    int64_t size[TILE_RANK_MAX];
    for (int d = 0; d < rows->dims; d++) {
        const int axis = rows->axis[d];
        if (axis >= 0) used[axis] = true;
        if (__builtin_mul_overflow(rows->core[d], axis < 0 ? 1 : grid[axis], &size[d]) ||
            size[d] > INT64_MAX / 4)
            return false;
        job->low[d] = job->high[d] = 0;
    }
    for (int g = 0; g < TILE_GRID_RANK; g++)
        if (grid[g] > 1 && !used[g]) return false;
    for (int32_t k = 0; k < rows->op_count; k++) {
        if (!rows->op[k].writes) continue;
        const tile_row_place *r = &job->window[rows->op[k].window];
        const int skip = rows->window[rows->op[k].window].skip;
        int64_t low[TILE_RANK_MAX] = {0}, high[TILE_RANK_MAX] = {1};
        bool empty = false;
        for (int d = skip; d < rows->dims; d++) {
            low[d] = tile_between(r->low[d - skip] - r->start[d - skip], 0, size[d]);
            high[d] = tile_between(r->high[d - skip] - r->start[d - skip], 0, size[d]);
            if (high[d] <= low[d]) empty = true;
        }
        for (int d = 0; d < rows->dims && !empty; d++) {
            if (none || low[d] < job->low[d]) job->low[d] = low[d];
            if (none || high[d] > job->high[d]) job->high[d] = high[d];
        }
        if (!empty) none = false;
    }
    return true;
}

static bool same_places(const tile_row_place *a, const tile_row_place *b, int rank) {
    for (int d = 0; d < rank; d++)
        if (a->start[d] != b->start[d]) return false;
    return true;
}

/* Whether the load of op k may see what another op writes to the same elements: only in the same
 * window, and copied when it is used after the write. */
static bool check_load(tile_row_job *job, int32_t k, uint64_t same) {
    const tile_rows *rows = job->rows;
    const tile_row_op *op = &rows->op[k];
    const tile_row_item *item = &rows->item[op->item];
    const tile_row_window *window = &rows->window[op->window];
    for (int32_t j = 0; j < rows->op_count; j++) {
        if (!rows->op[j].writes) continue;
        const tile_row_window *other = &rows->window[rows->op[j].window];
        if (!tile_has_bit(same, other->param)) continue;
        if (window->rank != other->rank || item->right > item->left || item->warm) return false;
        for (int d = 0; d < rows->dims; d++)
            if (d < rows->dims - 1 ? item->at[d] != 0 : item->left != 0) return false;
        for (int d = 0; d < window->rank; d++)
            if (window->moves[d] != other->moves[d]) return false;
        if (!same_places(&job->window[op->window], &job->window[rows->op[j].window], other->rank))
            return false;
        if (j > k && item->last > j) job->copied[k] = true;
        if (j < k) job->reread = true;
    }
    return true;
}

static bool check_aliases(tile_row_job *job) {
    const tile_rows *rows = job->rows;
    const tile_analysis *a = &job->run->exe->analysis;
    tile_aliases aliases;
    tile_find_aliases(job->run, &aliases);
    if (aliases.folded) return false;
    uint64_t sharing[TILE_PROGRAM_PARAMS] = {0};
    for (int k = 0; k < TILE_PROGRAM_PARAMS; k++) {
        if (!tile_has_bit(a->written, k)) continue;
        sharing[k] |= (uint64_t)1 << k;
        if (aliases.meets[k] & (a->uniform | a->written)) return false;
        if (aliases.meets[k] != aliases.same[k]) return false;
        for (int j = 0; aliases.same[k] && j < TILE_PROGRAM_PARAMS; j++)
            if (tile_has_bit(aliases.same[k], j)) sharing[j] |= (uint64_t)1 << k;
    }
    for (int32_t k = 0; k < rows->op_count; k++) {
        job->copied[k] = false;
        if (rows->op[k].kind != TILE_ROW_LOAD) continue;
        const int32_t param = rows->window[rows->op[k].window].param;
        if (job->shared) job->shared[k] = sharing[param] != 0;
        if (sharing[param] & ~((uint64_t)1 << param)) job->crossed = true;
        if (sharing[param] && !check_load(job, k, sharing[param])) return false;
    }
    return true;
}

static void fill_flat(const tile_row_job *job, char *memory) {
    const tile_rows *rows = job->rows;
    const int64_t length = job->high[rows->dims - 1] - job->low[rows->dims - 1];
    const int64_t n = (length < rows->strip ? length : rows->strip) + rows->margin;
    for (int32_t k = 0; k < rows->flat_count; k++) {
        const int32_t value = rows->flat[k];
        const size_t size = tile_dtype_size(job->run->exe->program.value[value].dtype);
        job->flat[k] = tile_cut(&memory, (size_t)(rows->strip + rows->margin) * sizeof(double));
        tile_fill_elements(job->flat[k], job->run->flat + job->run->exe->flat.place[value], size,
                           n);
    }
}

/* Bands of rows for all threads; pieces of rows where there are few rows. */
static void split(tile_row_job *job) {
    enum { PARTS_PER_THREAD = 2, WARM_ROWS = 8, PIECE_STRIPS = 2, STRIP_STEP = 16 };
    const tile_rows *rows = job->rows;
    const int64_t length = job->high[rows->dims - 1] - job->low[rows->dims - 1];
    const int64_t threads = job->run->exe->ctx->threads;
    const int64_t want = threads > 1 ? threads * PARTS_PER_THREAD : 1;
    job->lines = 1;
    for (int d = 0; d < rows->dims - 1; d++) job->lines *= job->high[d] - job->low[d];
    job->panels = (length - 1) / rows->panel + 1;
    job->bands = tile_between(job->lines / (1 + WARM_ROWS * rows->warm), 1, want);
    const int64_t pieces =
        tile_between(length / (PIECE_STRIPS * rows->strip), 1, want / job->bands);
    if (pieces > job->panels) job->panels = pieces;
    job->panel = (length - 1) / job->panels + 1;
    if (job->panels > 1) job->panel = (job->panel + rows->strip - 1) / rows->strip * rows->strip;
    job->panels = (length - 1) / job->panel + 1;
    const int64_t strips = (job->panel - 1) / rows->strip + 1;
    job->strip =
        tile_between((job->panel / strips + STRIP_STEP) / STRIP_STEP * STRIP_STEP, 1, rows->strip);
}

bool tile_rows_begin(tile_row_job *job) {
    const tile_rows *rows = job->rows;
    for (int32_t k = 0; k < rows->window_count; k++)
        if (!resolve_window(job, &rows->window[k], &job->window[k])) return false;
    return find_domain(job) && check_aliases(job);
}

bool tile_rows_run(const tile_run_state *run, char *shared, char *arenas, size_t arena_bytes) {
    const tile_rows *rows = run->exe->rows;
    tile_row_job job = {.run = run, .rows = rows, .arenas = arenas, .arena_bytes = arena_bytes};
    job.window = tile_cut(&shared, (size_t)rows->window_count * sizeof *job.window);
    job.flat = tile_cut(&shared, (size_t)rows->flat_count * sizeof *job.flat);
    job.copied = tile_cut(&shared, (size_t)rows->op_count);
    if (!tile_rows_begin(&job)) return false;
    for (int d = 0; d < rows->dims; d++)
        if (job.high[d] <= job.low[d]) return true;
    fill_flat(&job, shared);
    split(&job);
    double elements = (double)(job.high[rows->dims - 1] - job.low[rows->dims - 1]);
    elements *= (double)job.lines;
    tile_parallel(run->exe->ctx, job.bands * job.panels, elements * rows->element_ns,
                  tile_rows_part, &job);
    return true;
}
