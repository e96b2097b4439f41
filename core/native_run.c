/* native_run.c: a launch by generated loops over rows: bands of rows over threads.
 *
 * Where every array of a stage is inside and its elements lie side by side, the stage runs on the
 * row in place. A piece that reaches over an edge goes by padded copies of what it reads. */
#include <string.h>

#include "core/native.h"

enum {
    PIECE = 512, /* elements of a row that go by copies at a time */
    RIM = 16     /* elements at a row's end that do */
};

/* A stage on the rows of a segment. */
typedef struct reach {
    int64_t row_low, row_high; /* rows where every array is inside */
    int64_t first, last;       /* elements where every array is inside */
    bool direct;               /* the inside of such a row runs in place */
} reach;

typedef struct walker {
    const tile_row_job *job;
    const tile_native *native;
    const tile_native_plan *plan;
    const tile_rows *rows;
    tile_row_lie *lies; /* per op */
    reach *reach;       /* per stage */
    char **line, **ring;
    int64_t *start;
    const void **flat; /* the same for all threads */
    char *copies, *kept;
    int64_t place[TILE_RANK_MAX];
    int64_t begin, end; /* of the panel */
} walker;

typedef struct native_job {
    tile_row_job rows;
    const tile_native *native;
    const void **flat;
} native_job;

/* Memory */

static size_t copy_bytes(const tile_native_plan *plan, const tile_native_line *line) {
    const size_t size = plan->rows->window[plan->rows->op[line->op].window].size;
    return tile_align((size_t)(PIECE + line->high - line->low) * size);
}

static size_t copies_bytes(const tile_native_plan *plan) {
    size_t most = 0;
    for (int32_t s = 0; s < plan->stage_count; s++) {
        size_t bytes = 0;
        for (int32_t k = 0; k < plan->stage[s].line_count; k++)
            bytes += copy_bytes(plan, &plan->line[plan->stage[s].line + k]);
        if (bytes > most) most = bytes;
    }
    return most;
}

static size_t thread_bytes(const tile_native_plan *plan) {
    return tile_align((size_t)plan->rows->op_count * sizeof(tile_row_lie)) +
           tile_align((size_t)plan->stage_count * sizeof(reach)) +
           tile_align((size_t)plan->line_count * sizeof(char *)) +
           tile_align((size_t)plan->tap_count * sizeof(char *)) +
           tile_align((size_t)plan->iota_count * sizeof(int64_t)) + copies_bytes(plan) +
           plan->kept_bytes;
}

static size_t shared_bytes(const tile_native_plan *plan) {
    return tile_align((size_t)plan->rows->window_count * sizeof(tile_row_place)) +
           tile_align((size_t)plan->rows->op_count) +
           tile_align((size_t)plan->rows->flat_count * sizeof(void *));
}

size_t tile_native_bytes(const tile_native *native, int threads) {
    const tile_native_plan *plan = &native->plan;
    if (!plan->rows) return 0;
    return shared_bytes(plan) + (size_t)threads * thread_bytes(plan);
}

/* Copies */

static void copy(char *to, int64_t to_step, const char *from, int64_t from_step, size_t size,
                 int64_t n) {
    if (to_step == (int64_t)size && from_step == (int64_t)size)
        memcpy(to, from, (size_t)n * size);
    else
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, size);
}

/* Elements [low, high) of a row, padding where there are none. */
static void copy_in(const tile_row_lie *l, const tile_row_window *window, int64_t low, int64_t high,
                    char *to) {
    const int64_t size = (int64_t)window->size;
    int64_t first = high, last = high;
    if (l->at) {
        first = tile_between(l->x_low, low, high);
        last = tile_between(l->x_high, first, high);
    }
    tile_fill_elements(to, &window->pad, window->size, first - low);
    if (last > first)
        copy(to + (first - low) * size, size, l->at + first * l->step, l->step, window->size,
             last - first);
    tile_fill_elements(to + (last - low) * size, &window->pad, window->size, high - last);
}

static void copy_out(const tile_row_lie *l, size_t size, int64_t low, int64_t high,
                     const char *from) {
    if (!l->at) return;
    const int64_t first = tile_between(l->x_low, low, high),
                  last = tile_between(l->x_high, first, high);
    if (last > first)
        copy(l->at + first * l->step, l->step, from + (first - low) * (int64_t)size, (int64_t)size,
             size, last - first);
}

/* Pieces of a row */

static bool lies_within(const tile_row_lie *l, const tile_row_window *window, int64_t low,
                        int64_t high) {
    return l->at && l->step == (int64_t)window->size && low >= l->x_low && high <= l->x_high;
}

/* Where a line's element 0 lies for elements [begin, end). */
static char *line_at(const walker *w, const tile_native_line *line, int64_t begin, int64_t end,
                     char **copies) {
    const tile_row_window *window = &w->rows->window[w->rows->op[line->op].window];
    const tile_row_lie *l = &w->lies[line->op];
    const int64_t low = begin + line->low, high = end + line->high;
    if (line->single) return l->at ? l->at : (char *)(uintptr_t)&window->pad;
    if (lies_within(l, window, low, high)) return l->at;
    char *to = *copies;
    *copies += copy_bytes(w->plan, line);
    if (!line->writes || line->adds) copy_in(l, window, low, high, to);
    return to - low * (int64_t)window->size;
}

/* Puts copies of what was written where they belong. */
static void write_back(const walker *w, const tile_native_loop *s, int64_t begin, int64_t end) {
    for (int32_t k = 0; k < s->line_count; k++) {
        const tile_native_line *line = &w->plan->line[s->line + k];
        const tile_row_window *window = &w->rows->window[w->rows->op[line->op].window];
        const tile_row_lie *l = &w->lies[line->op];
        if (!line->writes || lies_within(l, window, begin, end)) continue;
        copy_out(l, window->size, begin, end, w->line[s->line + k] + begin * (int64_t)window->size);
    }
}

static void call(const walker *w, int32_t stage, int64_t begin, int64_t end) {
    const tile_native_loop *s = &w->plan->stage[stage];
    const tile_native_call c = {.line = w->line + s->line,
                                .ring = w->ring + s->tap,
                                .flat = w->flat,
                                .start = w->start + s->iota,
                                .strip = w->plan->strip,
                                .begin = begin,
                                .n = end - begin};
    w->native->stage[stage](&c);
}

static void run_pieces(const walker *w, int32_t stage, int64_t begin, int64_t end) {
    const tile_native_loop *s = &w->plan->stage[stage];
    for (; begin < end; begin += PIECE) {
        const int64_t last = end - begin < PIECE ? end : begin + PIECE;
        char *copies = w->copies;
        for (int32_t k = 0; k < s->line_count; k++)
            w->line[s->line + k] = line_at(w, &w->plan->line[s->line + k], begin, last, &copies);
        call(w, stage, begin, last);
        if (stage == w->plan->stage_count - 1) write_back(w, s, begin, last);
    }
}

/* Rows */

static void find_rings(const walker *w, const tile_native_loop *s, int64_t step) {
    for (int32_t k = 0; k < s->tap_count; k++) {
        const tile_native_tap *t = &w->plan->tap[s->tap + k];
        const tile_row_item *item = &w->rows->item[t->item];
        const tile_native_item *kept = &w->plan->item[t->item];
        const int64_t left = w->begin + w->plan->stage[kept->stage].left;
        const int64_t turn = kept->height == 1 ? 0 : (step + t->row - item->low) % kept->height;
        w->ring[s->tap + k] =
            w->kept + kept->place + (size_t)turn * kept->pitch - left * (int64_t)item->size;
    }
}

static void find_lines(const walker *w, const tile_native_loop *s, int64_t row) {
    for (int32_t k = 0; k < s->line_count; k++) {
        tile_row_lie *l = &w->lies[w->plan->line[s->line + k].op];
        const bool inside = row >= l->row_low && row < l->row_high;
        l->at = inside ? (char *)(l->base + (intptr_t)(row * l->row_step)) : NULL;
        w->line[s->line + k] = l->at;
    }
}

static void find_starts(const walker *w, const tile_native_loop *s) {
    for (int32_t k = 0; k < s->iota_count; k++) {
        uint64_t step;
        const tile_row_item *item = &w->rows->item[w->plan->iota[s->iota + k]];
        w->start[s->iota + k] = (int64_t)tile_rows_iota(w->job, item, w->place, &step);
    }
}

static void run_row(const walker *w, int32_t stage, int64_t row, int64_t step) {
    const tile_native_loop *s = &w->plan->stage[stage];
    const reach *r = &w->reach[stage];
    const int64_t begin = w->begin + s->left, end = w->end + s->right;
    find_rings(w, s, step);
    find_lines(w, s, row);
    find_starts(w, s);
    if (!r->direct || row < r->row_low || row >= r->row_high) {
        run_pieces(w, stage, begin, end);
        return;
    }
    const int64_t first = r->first > begin ? begin + RIM : begin;
    const int64_t last = r->last < end ? end - RIM : end;
    call(w, stage, first, last);
    if (first > begin) run_pieces(w, stage, begin, first);
    if (last < end) run_pieces(w, stage, last, end);
}

/* Segments */

static void find_reach(const walker *w, int32_t stage, reach *r) {
    const tile_native_loop *s = &w->plan->stage[stage];
    const int64_t begin = w->begin + s->left, end = w->end + s->right;
    *r = (reach){INT64_MIN, INT64_MAX, begin, end, true};
    for (int32_t k = 0; k < s->line_count; k++) {
        const tile_native_line *line = &w->plan->line[s->line + k];
        const tile_row_lie *l = &w->lies[line->op];
        const tile_row_window *window = &w->rows->window[w->rows->op[line->op].window];
        if (l->row_low > r->row_low) r->row_low = l->row_low;
        if (l->row_high < r->row_high) r->row_high = l->row_high;
        if (line->single) continue;
        if (l->step != (int64_t)window->size) r->direct = false;
        if (l->x_low > r->first + line->low) r->first = l->x_low - line->low;
        if (l->x_high < r->last + line->high) r->last = l->x_high - line->high;
    }
    if (r->first > begin + RIM || r->last < end - RIM || end - begin < 4 * RIM) r->direct = false;
}

/* Rows [first, last) of the row dimension at fixed places of those before it. */
static void run_segment(walker *w, int64_t first, int64_t last) {
    const int64_t warm = w->rows->warm;
    for (int32_t k = 0; k < w->rows->op_count; k++)
        if (w->rows->op[k].window >= 0)
            tile_rows_lay(w->job, &w->rows->op[k], w->place, &w->lies[k]);
    for (int32_t s = 0; s < w->plan->stage_count; s++) find_reach(w, s, &w->reach[s]);
    for (int64_t row = first - warm; row < last; row++) {
        w->place[w->rows->dims - 2] = row;
        for (int32_t s = 0; s < w->plan->stage_count; s++)
            if (w->plan->stage[s].warm >= first - row) run_row(w, s, row, row - first + warm);
    }
}

static void begin_walk(walker *w, char *memory) {
    const tile_native_plan *plan = w->plan;
    w->lies = tile_cut(&memory, (size_t)plan->rows->op_count * sizeof *w->lies);
    w->reach = tile_cut(&memory, (size_t)plan->stage_count * sizeof *w->reach);
    w->line = tile_cut(&memory, (size_t)plan->line_count * sizeof *w->line);
    w->ring = tile_cut(&memory, (size_t)plan->tap_count * sizeof *w->ring);
    w->start = tile_cut(&memory, (size_t)plan->iota_count * sizeof *w->start);
    w->copies = tile_cut(&memory, copies_bytes(plan));
    w->kept = memory;
}

static void run_part(int64_t part, int thread, void *arg) {
    const native_job *n = arg;
    const tile_row_job *job = &n->rows;
    walker w = {.job = job,
                .native = n->native,
                .plan = &n->native->plan,
                .rows = job->rows,
                .flat = n->flat};
    const int dims = job->rows->dims;
    begin_walk(&w, job->arenas + (size_t)thread * job->arena_bytes);
    const int64_t band = part / job->panels;
    w.begin = job->low[dims - 1] + (part % job->panels) * job->panel;
    w.end = job->high[dims - 1] - w.begin < job->panel ? job->high[dims - 1] : w.begin + job->panel;
    int64_t line = tile_share(job->lines, band, job->bands);
    const int64_t last = tile_share(job->lines, band + 1, job->bands);
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

/* Launches */

/* Bands of rows for all threads; pieces of rows where there are few rows. */
static void split(tile_row_job *job, int64_t panel, double ns) {
    enum { PARTS_PER_THREAD = 2, WARM_ROWS = 8, PIECE_MIN = 2048, STEP = 64 };
    static const double SMALL_NS = 2e3;
    const tile_rows *rows = job->rows;
    const int64_t length = job->high[rows->dims - 1] - job->low[rows->dims - 1];
    const int64_t threads = ns < SMALL_NS ? 1 : job->run->exe->ctx->threads;
    const int64_t want = threads > 1 ? threads * PARTS_PER_THREAD : 1;
    job->bands = tile_between(job->lines / (1 + WARM_ROWS * rows->warm), 1, want);
    job->panels = (length - 1) / panel + 1;
    const int64_t pieces = tile_between(length / PIECE_MIN, 1, want / job->bands);
    if (pieces > job->panels) job->panels = pieces;
    job->panel = (length - 1) / job->panels + 1;
    if (job->panels > 1) job->panel = (job->panel + STEP - 1) / STEP * STEP;
    if (job->panel > panel) job->panel = panel;
    job->panels = (length - 1) / job->panel + 1;
}

bool tile_native_run(const tile_run_state *run, const tile_native *native, char *memory) {
    const tile_native_plan *plan = &native->plan;
    const tile_rows *rows = plan->rows;
    if (!rows) return false;
    native_job n = {.rows = {.run = run, .rows = rows}, .native = native};
    tile_row_job *job = &n.rows;
    job->window = tile_cut(&memory, (size_t)rows->window_count * sizeof *job->window);
    job->copied = tile_cut(&memory, (size_t)rows->op_count);
    n.flat = tile_cut(&memory, (size_t)rows->flat_count * sizeof *n.flat);
    job->arenas = memory;
    job->arena_bytes = thread_bytes(plan);
    if (!tile_rows_begin(job) || job->reread) return false;
    for (int32_t k = 0; k < rows->flat_count; k++)
        n.flat[k] = run->flat + run->exe->flat.place[rows->flat[k]];
    double elements = 1;
    job->lines = 1;
    for (int d = 0; d < rows->dims; d++) {
        const int64_t extent = job->high[d] - job->low[d];
        if (extent <= 0) return true;
        if (d < rows->dims - 1) job->lines *= extent;
        elements *= (double)extent;
    }
    split(job, plan->panel, elements * plan->element_ns);
    tile_parallel(run->exe->ctx, job->bands * job->panels, elements * plan->element_ns, run_part,
                  &n);
    return true;
}
