/* exec_row_run.c: runs a row plan: bands of rows over threads, strips along a row. */
#include <string.h>

#include "core/exec_rows.h"

/* A window at this launch; strides in bytes. */
typedef struct resolved {
    char *read, *write;
    int64_t start[TILE_RANK_MAX], low[TILE_RANK_MAX], high[TILE_RANK_MAX];
    int64_t stride[TILE_RANK_MAX];
} resolved;

typedef struct row_job {
    const tile_run_state *run;
    const tile_rows *rows;
    resolved *window;
    char **flat;  /* filled strips */
    bool *copied; /* per op: a load whose array changes before its last use */
    char *arenas;
    size_t arena_bytes;
    int64_t low[TILE_RANK_MAX], high[TILE_RANK_MAX]; /* places of the field that are visited */
    int64_t lines;                                   /* rows of all dimensions but the last */
    int64_t bands, panels, panel;
    int64_t strip; /* elements of a strip, at most the plan's */
} row_job;

/* Where the row at hand lies in the window of an op: element x at at + x * step. */
typedef struct lie {
    intptr_t base; /* of row 0, element 0 */
    int64_t row_step, step;
    int64_t row_low, row_high, x_low, x_high;
    char *at; /* NULL: the row is outside */
} lie;

typedef struct walker {
    const row_job *job;
    const tile_rows *rows;
    char *buffers;
    char **ptr;                   /* per slot */
    char **ring;                  /* per slot of a ring: the row at hand */
    lie *lies;                    /* per op */
    int64_t place[TILE_RANK_MAX]; /* of the row at hand */
    int64_t begin, end;           /* of the panel */
} walker;

/* ---- Memory ---------------------------------------------------------------------------------- */

size_t tile_rows_shared_bytes(const tile_rows *rows) {
    if (!rows) return 0;
    const size_t strip = tile_align((size_t)(rows->strip + rows->margin) * sizeof(double));
    return tile_align((size_t)rows->window_count * sizeof(resolved)) +
           tile_align((size_t)rows->flat_count * sizeof(char *)) +
           tile_align((size_t)rows->op_count) + (size_t)rows->flat_count * strip;
}

size_t tile_rows_thread_bytes(const tile_rows *rows) {
    if (!rows) return 0;
    return 2 * tile_align((size_t)rows->slot_count * sizeof(char *)) +
           tile_align((size_t)rows->op_count * sizeof(lie)) + tile_align(rows->buffers);
}

static void *cut(char **memory, size_t bytes) {
    void *part = *memory;
    *memory += tile_align(bytes);
    return part;
}

/* ---- Filling and copying --------------------------------------------------------------------- */

static void fill(char *to, const void *value, size_t size, int64_t n) {
    uint32_t word;
    uint64_t wide;
    memcpy(&word, value, size < 4 ? size : 4);
    memcpy(&wide, value, size);
    if (size == 1) {
        memset(to, *(const unsigned char *)value, (size_t)n);
    } else if (size == 4) {
        uint32_t *words = (uint32_t *)(void *)to;
        for (int64_t i = 0; i < n; i++) words[i] = word;
    } else {
        uint64_t *words = (uint64_t *)(void *)to;
        for (int64_t i = 0; i < n; i++) words[i] = wide;
    }
}

/* n elements that lie from_step and to_step bytes apart. */
static void copy(char *to, int64_t to_step, const char *from, int64_t from_step, size_t size,
                 int64_t n) {
    if (to_step == (int64_t)size && from_step == (int64_t)size)
        memmove(to, from, (size_t)n * size);
    else
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, size);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    if (x < low) return low;
    return x > high ? high : x;
}

/* Elements [low, high) of a load into its buffer: padding outside of the array. */
static char *copy_load(const walker *w, const tile_row_op *op, const lie *l, int64_t low,
                       int64_t high) {
    const tile_row_window *window = &w->rows->window[op->window];
    char *to = w->buffers + w->rows->item[op->item].place;
    const size_t size = window->size;
    int64_t first = high, last = high;
    if (l->at) {
        first = clamp(l->x_low, low, high);
        last = clamp(l->x_high, first, high);
    }
    fill(to, &window->pad, size, first - low);
    if (l->step == 0 && last > first)
        fill(to + (size_t)(first - low) * size, l->at, size, last - first);
    else if (last > first)
        copy(to + (size_t)(first - low) * size, (int64_t)size, l->at + first * l->step, l->step,
             size, last - first);
    fill(to + (size_t)(last - low) * size, &window->pad, size, high - last);
    return to;
}

/* ---- Ops on a strip -------------------------------------------------------------------------- */

static void run_load(walker *w, int32_t k, int64_t begin, int64_t end) {
    const tile_row_op *op = &w->rows->op[k];
    const lie *l = &w->lies[k];
    const int64_t size = (int64_t)w->rows->window[op->window].size;
    const int64_t low = begin + op->left, high = end + op->right;
    if (l->at && l->step == size && low >= l->x_low && high <= l->x_high && !w->job->copied[k])
        w->ptr[op->out] = l->at + begin * size;
    else
        w->ptr[op->out] = copy_load(w, op, l, low, high) - op->left * size;
}

static void run_iota(walker *w, const tile_row_op *op, int64_t begin, int64_t n) {
    const tile_row_item *item = &w->rows->item[op->item];
    const tile_program *p = &w->job->run->exe->program;
    const tile_affine *start = &w->job->run->exe->analysis.affine[tile_node_in(p, item->node, 0)];
    const int rank = p->value[item->value].shape.rank, last = w->rows->dims - 1;
    uint64_t value = (uint64_t)start->constant;
    if (start->uniform >= 0) {
        uint64_t uniform;
        memcpy(&uniform, w->job->run->flat + w->job->run->exe->flat.place[start->uniform],
               sizeof uniform);
        value += uniform;
    }
    uint64_t step = 0;
    for (int d = 0; d < rank; d++) {
        const int f = w->rows->dims - rank + d;
        if (!(item->node->attrs.n[0] >> d & 1)) continue;
        value += (uint64_t)(f == last ? begin + op->left : w->place[f] + item->at[f]);
        step = f == last;
    }
    uint64_t *to = (uint64_t *)(void *)(w->ptr[op->out] + op->offset);
    for (int64_t i = 0; i < n; i++) to[i] = value + (uint64_t)i * step;
}

/* Adds or stores a strip that is not in place yet: only what is inside. */
static void write_part(walker *w, const tile_row_op *op, const lie *l, const char *from,
                       int64_t begin, int64_t end) {
    const size_t size = w->rows->window[op->window].size;
    const int64_t first = clamp(l->x_low, begin, end), last = clamp(l->x_high, first, end);
    if (!l->at || last <= first) return;
    const int64_t n = last - first;
    char *to = l->at + first * l->step;
    from += (size_t)(first - begin) * size;
    if (!op->adds) {
        copy(to, l->step, from, (int64_t)size, size, n);
        return;
    }
    char *sum = to;
    if (l->step != (int64_t)size) {
        sum = w->buffers + w->rows->spill +
              tile_align((size_t)(w->rows->strip + w->rows->margin) * size);
        copy(sum, (int64_t)size, to, l->step, size, n);
    }
    op->add((const void *const[]){sum, from}, sum, n);
    if (sum != to) copy(to, l->step, sum, (int64_t)size, size, n);
}

static void run_strip(walker *w, int32_t k, int64_t begin, int64_t end) {
    const tile_row_op *op = &w->rows->op[k];
    const void *in[TILE_ROW_INPUTS];
    for (int i = 0; i < op->n_in; i++) in[i] = w->ptr[op->in[i].slot] + op->in[i].offset;
    if (!op->writes) {
        op->run(in, w->ptr[op->out] + op->offset, end - begin + op->right - op->left);
        return;
    }
    const lie *l = &w->lies[k];
    const int64_t size = (int64_t)w->rows->window[op->window].size;
    const bool whole = l->at && l->step == size && begin >= l->x_low && end <= l->x_high;
    const void *from = in[0];
    if (op->run && whole && !op->adds) {
        op->run(in, l->at + begin * size, end - begin);
        return;
    }
    if (op->run) {
        char *spill = w->buffers + w->rows->spill;
        op->run(in, spill, end - begin);
        from = spill;
    }
    write_part(w, op, l, from, begin, end);
}

static void run_strips(walker *w, int64_t warm) {
    const tile_rows *rows = w->rows;
    const int64_t strip = w->job->strip;
    for (int64_t begin = w->begin; begin < w->end; begin += strip) {
        const int64_t end = w->end - begin < strip ? w->end : begin + strip;
        for (int32_t s = rows->flat_count; s < rows->slot_count; s++)
            if (w->ring[s])
                w->ptr[s] =
                    w->ring[s] + (begin - w->begin) * (int64_t)rows->item[rows->slot[s].item].size;
        for (int32_t k = 0; k < rows->op_count; k++) {
            const tile_row_op *op = &rows->op[k];
            if (op->warm < warm) continue;
            if (op->kind == TILE_ROW_STRIP)
                run_strip(w, k, begin, end);
            else if (op->kind == TILE_ROW_LOAD)
                run_load(w, k, begin, end);
            else
                run_iota(w, op, begin, end - begin + op->right - op->left);
        }
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* An op's window for all rows of a segment: the outer places are fixed. */
static void lay(const walker *w, const tile_row_op *op, lie *l) {
    const tile_row_window *window = &w->rows->window[op->window];
    const resolved *r = &w->job->window[op->window];
    const int rank = window->rank, row = w->rows->dims - 2;
    const tile_row_item *item = op->kind == TILE_ROW_LOAD ? &w->rows->item[op->item] : NULL;
    *l = (lie){.base = (intptr_t)(item ? r->read : r->write),
               .row_low = INT64_MIN,
               .row_high = INT64_MAX,
               .x_low = INT64_MIN,
               .x_high = INT64_MAX};
    bool inside = true;
    for (int d = 0; d < rank; d++) {
        const int f = window->skip + d;
        int64_t place = r->start[d] + (item ? item->at[f] : 0);
        if (f < row && window->moves[d]) place += w->place[f];
        l->base += (intptr_t)(place * r->stride[d]);
        if (f == row && window->moves[d]) {
            l->row_low = r->low[d] - place;
            l->row_high = r->high[d] - place;
            l->row_step = r->stride[d];
        } else if (f > row && window->moves[d]) {
            l->x_low = r->low[d] - place;
            l->x_high = r->high[d] - place;
            l->step = r->stride[d];
        } else {
            inside = inside && place >= r->low[d] && place < r->high[d];
        }
    }
    if (!inside) l->row_high = INT64_MIN;
}

static void begin_row(walker *w, int64_t row, int64_t step) {
    const tile_rows *rows = w->rows;
    w->place[rows->dims - 2] = row;
    for (int32_t k = 0; k < rows->op_count; k++) {
        lie *l = &w->lies[k];
        if (rows->op[k].window < 0) continue;
        const bool inside = row >= l->row_low && row < l->row_high;
        l->at = inside ? (char *)(l->base + (intptr_t)(row * l->row_step)) : NULL;
    }
    for (int32_t s = rows->flat_count; s < rows->slot_count; s++) {
        const tile_row_item *item = &rows->item[rows->slot[s].item];
        if (!item->pitch) continue;
        const int64_t turn = (step + rows->slot[s].row - item->low) % (item->high - item->low + 1);
        w->ring[s] = w->buffers + item->place + (size_t)turn * item->pitch -
                     item->left * (int64_t)item->size;
    }
}

/* Rows [first, last) of the row dimension at fixed outer places. */
static void run_segment(walker *w, int64_t first, int64_t last) {
    const tile_rows *rows = w->rows;
    for (int32_t k = 0; k < rows->op_count; k++)
        if (rows->op[k].window >= 0) lay(w, &rows->op[k], &w->lies[k]);
    for (int64_t row = first - rows->warm; row < last; row++) {
        begin_row(w, row, row - first + rows->warm);
        run_strips(w, row < first ? first - row : 0);
    }
}

static void begin_walk(walker *w, char *memory) {
    const tile_rows *rows = w->rows;
    w->ptr = cut(&memory, (size_t)rows->slot_count * sizeof *w->ptr);
    w->ring = cut(&memory, (size_t)rows->slot_count * sizeof *w->ring);
    w->lies = cut(&memory, (size_t)rows->op_count * sizeof *w->lies);
    w->buffers = memory;
    for (int32_t s = 0; s < rows->slot_count; s++) {
        w->ring[s] = NULL;
        w->ptr[s] = s < rows->flat_count ? w->job->flat[s] : NULL;
        if (s < rows->flat_count) continue;
        const tile_row_item *item = &rows->item[rows->slot[s].item];
        if (item->kind != TILE_ROW_LOAD && !item->pitch)
            w->ptr[s] = w->buffers + item->place - item->left * (int64_t)item->size;
    }
}

static void run_part(int64_t part, int thread, void *arg) {
    const row_job *job = arg;
    walker w = {.job = job, .rows = job->rows};
    const int dims = job->rows->dims;
    begin_walk(&w, job->arenas + (size_t)thread * job->arena_bytes);
    const int64_t band = part / job->panels;
    w.begin = job->low[dims - 1] + (part % job->panels) * job->panel;
    w.end = job->high[dims - 1] - w.begin < job->panel ? job->high[dims - 1] : w.begin + job->panel;
    const int64_t share = job->lines / job->bands, rest = job->lines % job->bands;
    int64_t line = band * share + (band < rest ? band : rest);
    const int64_t last = line + share + (band < rest);
    const int64_t height = job->high[dims - 2] - job->low[dims - 2];
    while (line < last) {
        int64_t left = line / height;
        for (int d = dims - 3; d >= 0; d--) {
            const int64_t extent = job->high[d] - job->low[d];
            w.place[d] = job->low[d] + left % extent;
            left /= extent;
        }
        const int64_t row = line % height;
        const int64_t count = last - line < height - row ? last - line : height - row;
        run_segment(&w, job->low[dims - 2] + row, job->low[dims - 2] + row + count);
        line += count;
    }
}

/* ---- A launch -------------------------------------------------------------------------------- */

static int64_t integer_at(const tile_run_state *run, size_t place) {
    int64_t value;
    memcpy(&value, run->flat + place, sizeof value);
    return value;
}

/* false: a place is too far out to count with. */
static bool resolve_window(const row_job *job, const tile_row_window *window, resolved *r) {
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
        r->low[d] = clamp(integer_at(job->run, window->bound[2 * d]), 0, m->extent[d]);
        r->high[d] = clamp(integer_at(job->run, window->bound[2 * d + 1]), r->low[d], m->extent[d]);
    }
    return true;
}

/* The places where something is written. false: the grid is no field. */
static bool find_domain(row_job *job) {
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
        const resolved *r = &job->window[rows->op[k].window];
        const int skip = rows->window[rows->op[k].window].skip;
        int64_t low[TILE_RANK_MAX] = {0}, high[TILE_RANK_MAX] = {1};
        bool empty = false;
        for (int d = skip; d < rows->dims; d++) {
            low[d] = clamp(r->low[d - skip] - r->start[d - skip], 0, size[d]);
            high[d] = clamp(r->high[d - skip] - r->start[d - skip], 0, size[d]);
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

static bool same_places(const resolved *a, const resolved *b, int rank) {
    for (int d = 0; d < rank; d++)
        if (a->start[d] != b->start[d]) return false;
    return true;
}

/* Whether the load of op k may see what another op writes to the same elements: only in the same
 * window, and copied when it is used after the write. */
static bool check_load(const row_job *job, int32_t k, uint64_t same) {
    const tile_rows *rows = job->rows;
    const tile_row_op *op = &rows->op[k];
    const tile_row_item *item = &rows->item[op->item];
    const tile_row_window *window = &rows->window[op->window];
    for (int32_t j = 0; j < rows->op_count; j++) {
        if (!rows->op[j].writes) continue;
        const tile_row_window *other = &rows->window[rows->op[j].window];
        if (!tile_has_bit(same, other->param)) continue;
        if (window->rank != other->rank || item->right > item->left) return false;
        for (int d = 0; d < rows->dims; d++)
            if (d < rows->dims - 1 ? item->at[d] != 0 : item->left != 0) return false;
        for (int d = 0; d < window->rank; d++)
            if (window->moves[d] != other->moves[d]) return false;
        if (!same_places(&job->window[op->window], &job->window[rows->op[j].window], other->rank))
            return false;
        if (j > k && item->last > j) job->copied[k] = true;
    }
    return true;
}

static bool check_aliases(const row_job *job) {
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
        if (sharing[param] && !check_load(job, k, sharing[param])) return false;
    }
    return true;
}

static void fill_flat(const row_job *job, char *memory) {
    const tile_rows *rows = job->rows;
    const int64_t length = job->high[rows->dims - 1] - job->low[rows->dims - 1];
    const int64_t n = (length < rows->strip ? length : rows->strip) + rows->margin;
    for (int32_t k = 0; k < rows->flat_count; k++) {
        const int32_t value = rows->flat[k];
        const size_t size = tile_dtype_size(job->run->exe->program.value[value].dtype);
        job->flat[k] = cut(&memory, (size_t)(rows->strip + rows->margin) * sizeof(double));
        fill(job->flat[k], job->run->flat + job->run->exe->flat.place[value], size, n);
    }
}

/* Bands of rows for all threads; pieces of rows where there are few rows. */
static void split(row_job *job) {
    enum { PARTS_PER_THREAD = 2, WARM_ROWS = 8, PIECE_STRIPS = 2, STRIP_STEP = 16 };
    const tile_rows *rows = job->rows;
    const int64_t length = job->high[rows->dims - 1] - job->low[rows->dims - 1];
    const int64_t threads = job->run->exe->ctx->threads;
    const int64_t want = threads > 1 ? threads * PARTS_PER_THREAD : 1;
    job->lines = 1;
    for (int d = 0; d < rows->dims - 1; d++) job->lines *= job->high[d] - job->low[d];
    job->panels = (length - 1) / rows->panel + 1;
    job->bands = clamp(job->lines / (1 + WARM_ROWS * rows->warm), 1, want);
    const int64_t pieces = clamp(length / (PIECE_STRIPS * rows->strip), 1, want / job->bands);
    if (pieces > job->panels) job->panels = pieces;
    job->panel = (length - 1) / job->panels + 1;
    if (job->panels > 1) job->panel = (job->panel + rows->strip - 1) / rows->strip * rows->strip;
    job->panels = (length - 1) / job->panel + 1;
    const int64_t strips = (job->panel - 1) / rows->strip + 1;
    job->strip =
        clamp((job->panel / strips + STRIP_STEP) / STRIP_STEP * STRIP_STEP, 1, rows->strip);
}

bool tile_rows_run(const tile_run_state *run, char *shared, char *arenas, size_t arena_bytes) {
    const tile_rows *rows = run->exe->rows;
    row_job job = {.run = run, .rows = rows, .arenas = arenas, .arena_bytes = arena_bytes};
    job.window = cut(&shared, (size_t)rows->window_count * sizeof *job.window);
    job.flat = cut(&shared, (size_t)rows->flat_count * sizeof *job.flat);
    job.copied = cut(&shared, (size_t)rows->op_count);
    for (int32_t k = 0; k < rows->window_count; k++)
        if (!resolve_window(&job, &rows->window[k], &job.window[k])) return false;
    if (!find_domain(&job) || !check_aliases(&job)) return false;
    for (int d = 0; d < rows->dims; d++)
        if (job.high[d] <= job.low[d]) return true;
    fill_flat(&job, shared);
    split(&job);
    double elements = (double)(job.high[rows->dims - 1] - job.low[rows->dims - 1]);
    elements *= (double)job.lines;
    tile_parallel(run->exe->ctx, job.bands * job.panels, elements * rows->element_ns, run_part,
                  &job);
    return true;
}
