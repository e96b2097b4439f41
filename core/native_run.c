/* native_run.c: a launch by generated loops over rows: bands of rows over threads.
 *
 * Where every array of a stage is inside and its elements lie side by side, the stage runs on the
 * row in place. A few elements at a row's ends that reach over an edge go by padded copies of what
 * they read, of fixed length; so do, in longer pieces, rows that are not all inside. */
#include <string.h>

#include "core/native.h"

enum {
    PIECE = 512, /* elements of a row that go by copies at a time */
    RIM = 16,    /* elements at a row's end that do, at most */
    RIM_COPY = 32,
    RIM_SPREAD = 16, /* most elements that a line is read beside the one at hand */
    RIM_BYTES = (RIM + RIM_COPY) * 8
};

/* A line at a row's end: elements x and on are copied, with padding before or after them. */
typedef struct rim {
    int32_t line;
    int64_t x;
    size_t size;
    char *to;
} rim;

/* A stage on the rows of a segment. */
typedef struct reach {
    tile_native_call call;
    int64_t row_low, row_high; /* rows where every array is inside */
    int64_t first, last;       /* elements where every array is inside, or that go by rims */
    bool direct;               /* the inside of such a row runs in place */
    rim *left, *right;
    int32_t left_count, right_count;
    int64_t rim;      /* elements of a rim: what leaves the stores of kept rows aligned */
    int64_t from, to; /* where the part between overlapping rims may begin */
} reach;

/* Rows of a kept value in a thread's memory. */
typedef struct ring {
    size_t place, pitch;
} ring;

typedef struct walker {
    const tile_row_job *job;
    const tile_native *native;
    const tile_native_plan *plan;
    const tile_rows *rows;
    tile_row_lie *lies; /* per line */
    reach *reach;       /* per stage */
    char **line, **ring;
    int64_t *turn; /* per tap: the row of its ring */
    int64_t *start;
    const void **flat; /* the same for all threads */
    const ring *rings; /* likewise: per item */
    rim *rims;         /* two per line */
    char *rim_copies, *copies, *kept;
    int64_t place[TILE_RANK_MAX];
    int64_t begin, end; /* of the panel */
    bool twice;         /* elements may be computed twice: nothing that is written is read */
} walker;

typedef struct native_job {
    tile_row_job rows;
    const tile_native *native;
    const void **flat;
    ring *rings; /* per item */
    bool twice;  /* see walker */
} native_job;

/* Memory */

static size_t size_of(const tile_native_plan *plan, const tile_native_line *line) {
    return plan->rows->window[plan->rows->op[line->op].window].size;
}

static size_t copy_bytes(const tile_native_plan *plan, const tile_native_line *line) {
    return tile_align((size_t)(PIECE + line->high - line->low) * size_of(plan, line));
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

/* Lays out a thread's memory. Returns its bytes. */
static size_t begin_walk(walker *w, const tile_native_plan *plan, char *memory) {
    char *at = memory;
    const size_t lines = (size_t)plan->line_count, taps = (size_t)plan->tap_count;
    w->lies = tile_cut(&at, lines * sizeof *w->lies);
    w->reach = tile_cut(&at, (size_t)plan->stage_count * sizeof *w->reach);
    w->line = tile_cut(&at, lines * sizeof *w->line);
    w->ring = tile_cut(&at, taps * sizeof *w->ring);
    w->turn = tile_cut(&at, taps * sizeof *w->turn);
    w->start = tile_cut(&at, (size_t)plan->iota_count * sizeof *w->start);
    w->rims = tile_cut(&at, 2 * lines * sizeof *w->rims);
    w->rim_copies = tile_cut(&at, 2 * lines * RIM_BYTES);
    w->copies = tile_cut(&at, copies_bytes(plan));
    w->kept = tile_cut(&at, plan->kept_bytes);
    return (size_t)(at - memory);
}

static size_t thread_bytes(const tile_native_plan *plan) {
    static char none[1];
    walker w;
    return begin_walk(&w, plan, none);
}

static size_t shared_bytes(const tile_native_plan *plan) {
    return tile_align((size_t)plan->rows->window_count * sizeof(tile_row_place)) +
           2 * tile_align((size_t)plan->rows->op_count) +
           tile_align((size_t)plan->rows->flat_count * sizeof(void *)) +
           tile_align((size_t)plan->rows->item_count * sizeof(ring));
}

size_t tile_native_bytes(const tile_native *native, int threads) {
    const tile_native_plan *plan = &native->plan;
    if (!plan->rows) return 0;
    return shared_bytes(plan) + (size_t)threads * thread_bytes(plan);
}

/* Pieces of a row */

static bool lies_within(const tile_row_lie *l, size_t size, int64_t low, int64_t high) {
    return l->at && l->step == (int64_t)size && low >= l->x_low && high <= l->x_high;
}

/* Where a line's element 0 lies for elements [begin, end). */
static char *line_at(const walker *w, int32_t number, int64_t begin, int64_t end, char **copies) {
    const tile_native_line *line = &w->plan->line[number];
    const tile_row_window *window = &w->rows->window[w->rows->op[line->op].window];
    const tile_row_lie *l = &w->lies[number];
    const int64_t low = begin + line->low, high = end + line->high;
    if (line->single) return l->at ? l->at : (char *)(uintptr_t)&window->pad;
    if (lies_within(l, window->size, low, high)) return l->at;
    char *to = *copies;
    *copies += copy_bytes(w->plan, line);
    if (!line->writes || line->adds) tile_native_copy_in(l, window, low, high, to);
    return to - low * (int64_t)window->size;
}

/* Puts copies of what was written where they belong. */
static void write_back(const walker *w, const tile_native_loop *s, int64_t begin, int64_t end) {
    for (int32_t k = s->line; k < s->line + s->line_count; k++) {
        const size_t size = size_of(w->plan, &w->plan->line[k]);
        if (!w->plan->line[k].writes || lies_within(&w->lies[k], size, begin, end)) continue;
        tile_native_copy_out(&w->lies[k], size, begin, end, w->line[k] + begin * (int64_t)size);
    }
}

static void call(const walker *w, int32_t stage, int64_t begin, int64_t end) {
    tile_native_call *c = &w->reach[stage].call;
    c->begin = begin;
    c->n = end - begin;
    w->native->stage[stage](c);
}

static void run_pieces(const walker *w, int32_t stage, int64_t begin, int64_t end) {
    const tile_native_loop *s = &w->plan->stage[stage];
    for (; begin < end; begin += PIECE) {
        const int64_t last = end - begin < PIECE ? end : begin + PIECE;
        char *copies = w->copies;
        for (int32_t k = s->line; k < s->line + s->line_count; k++)
            w->line[k] = line_at(w, k, begin, last, &copies);
        call(w, stage, begin, last);
        if (stage == w->plan->stage_count - 1) write_back(w, s, begin, last);
    }
}

/* Fixed lengths are a few moves. Copies are made long before they are read: a load of what has just
 * been stored in other pieces waits for it. */
static void fill_rims(const walker *w, const rim *rims, int32_t count) {
    for (int32_t k = 0; k < count; k++) {
        const rim *r = &rims[k];
        const char *from = w->line[r->line] + r->x * (int64_t)r->size;
        switch (r->size) {
        case 1: memcpy(r->to, from, RIM_COPY); break;
        case 2: memcpy(r->to, from, RIM_COPY * 2); break;
        case 4: memcpy(r->to, from, RIM_COPY * 4); break;
        default: memcpy(r->to, from, RIM_COPY * 8); break;
        }
    }
}

/* The elements of a rim, of which some lines are copies. */
static void run_rim(const walker *w, int32_t stage, const rim *rims, int32_t count, int64_t begin) {
    char *before[TILE_NATIVE_RIMS];
    for (int32_t k = 0; k < count; k++) {
        const rim *r = &rims[k];
        before[k] = w->line[r->line];
        w->line[r->line] = r->to - r->x * (int64_t)r->size;
    }
    call(w, stage, begin, begin + w->reach[stage].rim);
    for (int32_t k = 0; k < count; k++) w->line[rims[k].line] = before[k];
}

/* Rows */

static void find_starts(walker *w, const tile_native_loop *s, int64_t row) {
    for (int32_t k = s->iota; k < s->iota + s->iota_count; k++) {
        uint64_t step;
        const tile_native_iota *iota = &w->plan->iota[k];
        w->place[w->rows->dims - 2] = row + iota->ahead;
        w->start[k] = (int64_t)tile_rows_iota(w->job, &w->rows->item[iota->item], w->place, &step);
    }
}

/* How much further left the part between overlapping rims begins so that what a row writes begins
 * on a cache line: rows need not. */
static int64_t find_shift(const walker *w, const tile_native_loop *s, const reach *r) {
    for (int32_t k = s->line; k < s->line + s->line_count; k++) {
        if (!w->plan->line[k].writes || w->plan->line[k].single) continue;
        const size_t size = size_of(w->plan, &w->plan->line[k]);
        const uintptr_t at = (uintptr_t)w->line[k] + (uintptr_t)r->to * size;
        const int64_t over = (int64_t)(at % TILE_LINE / size);
        return over <= r->to - r->from ? over : 0;
    }
    return 0;
}

static void run_row(walker *w, int32_t stage, int64_t row) {
    const tile_native_loop *s = &w->plan->stage[stage];
    const reach *r = &w->reach[stage];
    const int64_t begin = w->begin + s->left, end = w->end + s->right;
    find_starts(w, s, row);
    if (!r->direct || row < r->row_low || row >= r->row_high) {
        for (int32_t k = s->line; k < s->line + s->line_count; k++) {
            tile_row_lie *l = &w->lies[k];
            const bool inside = row >= l->row_low && row < l->row_high;
            l->at = inside ? (char *)(l->base + (intptr_t)(row * l->row_step)) : NULL;
        }
        run_pieces(w, stage, begin, end);
        return;
    }
    for (int32_t k = s->line; k < s->line + s->line_count; k++)
        w->line[k] = (char *)(w->lies[k].base + (intptr_t)(row * w->lies[k].row_step));
    fill_rims(w, r->left, r->left_count);
    fill_rims(w, r->right, r->right_count);
    const int64_t shift = r->from < r->to ? find_shift(w, s, r) : 0;
    call(w, stage, r->first - shift, r->last - shift);
    if (r->first > begin) run_rim(w, stage, r->left, r->left_count, begin);
    if (r->last < end) run_rim(w, stage, r->right, r->right_count, end - r->rim);
}

static void turn_rings(const walker *w) {
    for (int32_t k = 0; k < w->plan->tap_count; k++) {
        const int32_t item = w->plan->tap[k].item;
        const int64_t pitch = (int64_t)w->rings[item].pitch, height = w->plan->item[item].height;
        const bool around = ++w->turn[k] == height;
        w->ring[k] += around ? -pitch * (height - 1) : pitch;
        if (around) w->turn[k] = 0;
    }
}

/* Segments */

static void begin_rings(const walker *w) {
    for (int32_t k = 0; k < w->plan->tap_count; k++) {
        const tile_native_tap *t = &w->plan->tap[k];
        const tile_native_item *kept = &w->plan->item[t->item];
        const int64_t left = w->begin + w->plan->stage[kept->level].left;
        w->turn[k] = (t->row - kept->low) % kept->height;
        const ring *r = &w->rings[t->item];
        w->ring[k] = w->kept + r->place + (size_t)w->turn[k] * r->pitch -
                     left * (int64_t)w->rows->item[t->item].size;
    }
}

static void lay_lines(const walker *w) {
    for (int32_t k = 0; k < w->plan->line_count; k++) {
        const tile_native_line *line = &w->plan->line[k];
        tile_row_lie *l = &w->lies[k];
        tile_rows_lay(w->job, &w->rows->op[line->op], w->place, l);
        l->base += (intptr_t)(line->ahead * l->row_step);
        if (l->row_low != INT64_MIN) l->row_low -= line->ahead;
        if (l->row_high != INT64_MAX && l->row_high != INT64_MIN) l->row_high -= line->ahead;
    }
}

/* A rim of a line; pads: elements before (left) or after the copied ones. */
static void begin_rim(const walker *w, int32_t line, bool left, rim *r) {
    const tile_row_window *window = &w->rows->window[w->rows->op[w->plan->line[line].op].window];
    const tile_row_lie *l = &w->lies[line];
    char *copy = w->rim_copies + (size_t)(2 * line + !left) * RIM_BYTES;
    *r = (rim){.line = line,
               .x = left ? l->x_low : l->x_high - RIM_COPY,
               .size = window->size,
               .to = left ? copy + RIM * window->size : copy};
    tile_fill_elements(left ? copy : copy + RIM_COPY * window->size, &window->pad, window->size,
                       RIM);
}

/* Where elements may be computed twice, rims of fixed length take in some of the inside, so that
 * all three parts are whole vectors. */
static bool overlap_rims(const walker *w, const tile_native_loop *s, int64_t begin, int64_t end,
                         reach *r) {
    const bool last = s == &w->plan->stage[w->plan->stage_count - 1];
    if ((last && !w->twice) || r->first == begin || r->last == end) return false;
    const int64_t spare = (r->last - r->first) % RIM, left = r->first - begin;
    if (left + (end - r->last) + spare > 2 * RIM) return false;
    const int64_t n = r->last - r->first - spare;
    r->from = tile_between(end - RIM - n, r->first, r->first + spare);
    r->to = r->first + tile_between(RIM - left, 0, spare);
    r->first = r->to;
    r->last = r->first + n;
    r->rim = RIM;
    return true;
}

/* The rims of a stage whose inside is [r->first, r->last). false: they are none for copies. */
static bool begin_rims(const walker *w, const tile_native_loop *s, int64_t begin, int64_t end,
                       reach *r) {
    r->left = w->rims + 2 * s->line;
    r->right = r->left + s->line_count;
    r->rim = s->tap_count ? RIM : RIM / 2;
    if (end - begin < 4 * RIM || r->first > begin + r->rim || r->last < end - r->rim) return false;
    for (int32_t k = s->line; k < s->line + s->line_count; k++) {
        const tile_native_line *line = &w->plan->line[k];
        const tile_row_lie *l = &w->lies[k];
        const bool left = !line->single && l->x_low > begin + line->low;
        const bool right = !line->single && l->x_high < end + line->high;
        if (!left && !right) continue;
        if (line->writes || l->x_high < l->x_low + RIM_COPY || line->high - line->low > RIM_SPREAD)
            return false;
        if (r->left_count == TILE_NATIVE_RIMS || r->right_count == TILE_NATIVE_RIMS) return false;
        if (left) begin_rim(w, k, true, &r->left[r->left_count++]);
        if (right) begin_rim(w, k, false, &r->right[r->right_count++]);
    }
    if (!overlap_rims(w, s, begin, end, r)) {
        if (r->first > begin) r->first = begin + r->rim;
        if (r->last < end) r->last = end - r->rim;
    }
    return true;
}

static void find_reach(const walker *w, int32_t stage, reach *r) {
    const tile_native_loop *s = &w->plan->stage[stage];
    const int64_t begin = w->begin + s->left, end = w->end + s->right;
    *r = (reach){.call = {.line = w->line + s->line,
                          .ring = w->ring + s->tap,
                          .flat = w->flat,
                          .start = w->start + s->iota,
                          .strip = w->plan->strip,
                          .again = !w->job->crossed},
                 .row_low = INT64_MIN,
                 .row_high = INT64_MAX,
                 .first = begin,
                 .last = end,
                 .direct = true};
    for (int32_t k = s->line; k < s->line + s->line_count; k++) {
        const tile_native_line *line = &w->plan->line[k];
        const tile_row_lie *l = &w->lies[k];
        if (l->row_low > r->row_low) r->row_low = l->row_low;
        if (l->row_high < r->row_high) r->row_high = l->row_high;
        if (line->single) continue;
        if (l->step != (int64_t)size_of(w->plan, line)) r->direct = false;
        if (l->x_low > r->first + line->low) r->first = l->x_low - line->low;
        if (l->x_high < r->last + line->high) r->last = l->x_high - line->high;
    }
    if (r->direct && (r->first > begin || r->last < end))
        r->direct = begin_rims(w, s, begin, end, r);
}

/* Rows [first, last) of the row dimension at fixed places of those before it. */
static void run_segment(walker *w, int64_t first, int64_t last) {
    lay_lines(w);
    begin_rings(w);
    for (int32_t s = 0; s < w->plan->stage_count; s++) find_reach(w, s, &w->reach[s]);
    for (int64_t row = first - w->plan->warm; row < last; row++) {
        for (int32_t s = 0; s < w->plan->stage_count; s++)
            if (w->plan->stage[s].warm >= first - row) run_row(w, s, row);
        turn_rings(w);
    }
}

static void run_part(int64_t part, int thread, void *arg) {
    const native_job *n = arg;
    const tile_row_job *job = &n->rows;
    walker w = {.job = job,
                .native = n->native,
                .plan = &n->native->plan,
                .rows = job->rows,
                .flat = n->flat,
                .rings = n->rings,
                .twice = n->twice};
    const int dims = job->rows->dims;
    (void)begin_walk(&w, w.plan, job->arenas + (size_t)thread * job->arena_bytes);
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
static void split(tile_row_job *job, int64_t panel, int64_t warm, double ns) {
    enum { PARTS_PER_THREAD = 2, WARM_ROWS = 8, PIECE_MIN = 2048, STEP = 64 };
    static const double SMALL_NS = 2e3;
    const tile_rows *rows = job->rows;
    const int64_t length = job->high[rows->dims - 1] - job->low[rows->dims - 1];
    const int64_t threads = ns < SMALL_NS ? 1 : job->run->exe->ctx->threads;
    const int64_t want = threads > 1 ? threads * PARTS_PER_THREAD : 1;
    job->bands = tile_between(job->lines / (1 + WARM_ROWS * warm), 1, want);
    job->panels = (length - 1) / panel + 1;
    const int64_t pieces = tile_between(length / PIECE_MIN, 1, want / job->bands);
    if (pieces > job->panels) job->panels = pieces;
    job->panel = (length - 1) / job->panels + 1;
    if (job->panels > 1) job->panel = (job->panel + STEP - 1) / STEP * STEP;
    if (job->panel > panel) job->panel = panel;
    job->panels = (length - 1) / job->panel + 1;
}

/* Rows of kept values lie close together, and not at one place of each page, where they would drive
 * each other out of the first-level cache. */
static void place_rings(const tile_native_plan *plan, int64_t panel, ring *rings) {
    size_t place = 0;
    for (int32_t k = 0; k < plan->rows->item_count; k++) {
        const tile_native_item *item = &plan->item[k];
        if (!item->kept) continue;
        rings[k] = (ring){place, tile_native_pitch(plan, k, panel)};
        place += rings[k].pitch * (size_t)item->height;
    }
}

/* A band makes kept values of rows that another may be writing: only the last stage may read what
 * is written. */
static bool reads_apart(const tile_native_plan *plan, const tile_row_job *job) {
    for (int32_t s = 0; s < plan->stage_count - 1; s++)
        for (int32_t k = plan->stage[s].line; k < plan->stage[s].line + plan->stage[s].line_count;
             k++)
            if (job->shared[plan->line[k].op]) return false;
    return true;
}

static bool writes_apart(const tile_row_job *job) {
    for (int32_t k = 0; k < job->rows->op_count; k++) {
        const tile_row_op *op = &job->rows->op[k];
        if (op->adds || (op->kind == TILE_ROW_LOAD && job->shared[k])) return false;
    }
    return true;
}

bool tile_native_run(const tile_run_state *run, const tile_native *native, char *memory) {
    const tile_native_plan *plan = &native->plan;
    const tile_rows *rows = plan->rows;
    if (!rows) return false;
    native_job n = {.rows = {.run = run, .rows = rows}, .native = native};
    tile_row_job *job = &n.rows;
    job->window = tile_cut(&memory, (size_t)rows->window_count * sizeof *job->window);
    job->copied = tile_cut(&memory, (size_t)rows->op_count);
    job->shared = tile_cut(&memory, (size_t)rows->op_count);
    n.flat = tile_cut(&memory, (size_t)rows->flat_count * sizeof *n.flat);
    n.rings = tile_cut(&memory, (size_t)rows->item_count * sizeof *n.rings);
    job->arenas = memory;
    job->arena_bytes = thread_bytes(plan);
    if (!tile_rows_begin(job) || job->reread || !reads_apart(plan, job)) return false;
    n.twice = writes_apart(job);
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
    split(job, plan->panel, plan->warm, elements * plan->element_ns);
    place_rings(plan, job->panel, n.rings);
    tile_parallel(run->exe->ctx, job->bands * job->panels, elements * plan->element_ns, run_part,
                  &n);
    return true;
}
