/* exec_row_run.c: runs a row plan: bands of rows over threads, strips along a row. */
#include <string.h>

#include "core/exec_rows.h"

typedef struct walker {
    const tile_row_job *job;
    const tile_rows *rows;
    char *buffers;
    char **ptr;                   /* per slot */
    char **ring;                  /* per slot of a ring: the row at hand */
    tile_row_lie *lies;           /* per op */
    int64_t place[TILE_RANK_MAX]; /* of the row at hand */
    int64_t begin, end;           /* of the panel */
} walker;

/* Memory */

size_t tile_rows_thread_bytes(const tile_rows *rows) {
    if (!rows) return 0;
    return 2 * tile_align((size_t)rows->slot_count * sizeof(char *)) +
           tile_align((size_t)rows->op_count * sizeof(tile_row_lie)) + tile_align(rows->buffers);
}

/* Filling and copying */

void tile_fill_elements(char *to, const void *value, size_t size, int64_t n) {
    uint16_t half;
    uint32_t word;
    uint64_t wide;
    memcpy(&half, value, size < 2 ? size : 2);
    memcpy(&word, value, size < 4 ? size : 4);
    memcpy(&wide, value, size);
    if (size == 1) {
        memset(to, *(const unsigned char *)value, (size_t)n);
    } else if (size == 2) {
        uint16_t *halves = (uint16_t *)(void *)to;
        for (int64_t i = 0; i < n; i++) halves[i] = half;
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

/* Elements [low, high) of a load into its buffer: padding outside of the array. */
static char *copy_load(const walker *w, const tile_row_op *op, const tile_row_lie *l, int64_t low,
                       int64_t high) {
    const tile_row_window *window = &w->rows->window[op->window];
    char *to = w->buffers + w->rows->item[op->item].place;
    const size_t size = window->size;
    int64_t first = high, last = high;
    if (l->at) {
        first = tile_between(l->x_low, low, high);
        last = tile_between(l->x_high, first, high);
    }
    tile_fill_elements(to, &window->pad, size, first - low);
    if (l->step == 0 && last > first)
        tile_fill_elements(to + (size_t)(first - low) * size, l->at, size, last - first);
    else if (last > first)
        copy(to + (size_t)(first - low) * size, (int64_t)size, l->at + first * l->step, l->step,
             size, last - first);
    tile_fill_elements(to + (size_t)(last - low) * size, &window->pad, size, high - last);
    return to;
}

/* Ops on a strip */

static void run_load(walker *w, int32_t k, int64_t begin, int64_t end) {
    const tile_row_op *op = &w->rows->op[k];
    const tile_row_lie *l = &w->lies[k];
    const int64_t size = (int64_t)w->rows->window[op->window].size;
    const int64_t low = begin + op->left, high = end + op->right;
    if (l->at && l->step == size && low >= l->x_low && high <= l->x_high && !w->job->copied[k])
        w->ptr[op->out] = l->at + begin * size;
    else
        w->ptr[op->out] = copy_load(w, op, l, low, high) - op->left * size;
}

uint64_t tile_rows_iota(const tile_row_job *job, const tile_row_item *item, const int64_t *place,
                        uint64_t *step) {
    const tile_executable *exe = job->run->exe;
    const tile_program *p = &exe->program;
    const tile_affine *start = &exe->analysis.affine[tile_node_in(p, item->node, 0)];
    const int rank = p->value[item->value].shape.rank, last = job->rows->dims - 1;
    uint64_t value = (uint64_t)start->constant;
    if (start->uniform >= 0) {
        uint64_t uniform;
        memcpy(&uniform, job->run->flat + exe->flat.place[start->uniform], sizeof uniform);
        value += uniform;
    }
    *step = 0;
    for (int d = 0; d < rank; d++) {
        const int f = job->rows->dims - rank + d;
        if (!(item->node->attrs.n[0] >> d & 1)) continue;
        if (f == last)
            *step = 1;
        else
            value += (uint64_t)(place[f] + item->at[f]);
    }
    return value;
}

static void run_iota(walker *w, const tile_row_op *op, int64_t begin, int64_t n) {
    uint64_t step, value = tile_rows_iota(w->job, &w->rows->item[op->item], w->place, &step);
    uint64_t *to = (uint64_t *)(void *)(w->ptr[op->out] + op->offset);
    value += step * (uint64_t)(begin + op->left);
    for (int64_t i = 0; i < n; i++) to[i] = value + (uint64_t)i * step;
}

/* Adds or stores a strip that is not in place yet: only what is inside. */
static void write_part(walker *w, const tile_row_op *op, const tile_row_lie *l, const char *from,
                       int64_t begin, int64_t end) {
    const size_t size = w->rows->window[op->window].size;
    const int64_t first = tile_between(l->x_low, begin, end),
                  last = tile_between(l->x_high, first, end);
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
    const tile_row_lie *l = &w->lies[k];
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

/* Rows */

void tile_rows_lay(const tile_row_job *job, const tile_row_op *op, const int64_t *outer,
                   tile_row_lie *l) {
    const tile_row_window *window = &job->rows->window[op->window];
    const tile_row_place *r = &job->window[op->window];
    const int rank = window->rank, row = job->rows->dims - 2;
    const tile_row_item *item = op->kind == TILE_ROW_LOAD ? &job->rows->item[op->item] : NULL;
    *l = (tile_row_lie){.base = (intptr_t)(item ? r->read : r->write),
                        .row_low = INT64_MIN,
                        .row_high = INT64_MAX,
                        .x_low = INT64_MIN,
                        .x_high = INT64_MAX};
    bool inside = true;
    for (int d = 0; d < rank; d++) {
        const int f = window->skip + d;
        int64_t place = r->start[d] + (item ? item->at[f] : 0);
        if (f < row && window->moves[d]) place += outer[f];
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
        tile_row_lie *l = &w->lies[k];
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
        if (rows->op[k].window >= 0) tile_rows_lay(w->job, &rows->op[k], w->place, &w->lies[k]);
    for (int64_t row = first - rows->warm; row < last; row++) {
        begin_row(w, row, row - first + rows->warm);
        run_strips(w, row < first ? first - row : 0);
    }
}

static void begin_walk(walker *w, char *memory) {
    const tile_rows *rows = w->rows;
    w->ptr = tile_cut(&memory, (size_t)rows->slot_count * sizeof *w->ptr);
    w->ring = tile_cut(&memory, (size_t)rows->slot_count * sizeof *w->ring);
    w->lies = tile_cut(&memory, (size_t)rows->op_count * sizeof *w->lies);
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

void tile_rows_part(int64_t part, int thread, void *arg) {
    const tile_row_job *job = arg;
    walker w = {.job = job, .rows = job->rows};
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
