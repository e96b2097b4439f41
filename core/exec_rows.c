/* exec_rows.c: makes the row plan of a field-form kernel: which strips, in which order. */
#include "core/exec_rows.h"

#include <string.h>

#include "core/dtype.h"
#include "core/memory.h"
#include "core/status.h"

#define PUSH(rows, list)                                                         \
    tile_grow(&(rows)->list, &(rows)->list##_capacity, (rows)->list##_count + 1, \
              sizeof *(rows)->list)

enum {
    FAR = 64,         /* loads this far apart along a row do not share a window */
    MARGIN_MAX = 512, /* a strip this much longer than what it is for is not worth it */
    RING_MAX = 64     /* rows of a ring */
};

typedef struct planner {
    const tile_executable *exe;
    const tile_program *p;
    const tile_analysis *a;
    tile_rows *rows;
    int32_t *window; /* per node: its window, or -1 */
    int32_t *items;  /* per value; of a load: per node of its window: first item, or -1 */
    int32_t *flat;   /* per value: its number among the flat ones that are read, or -1 */
    bool joined;     /* ops are joined where that is quicker */
    bool fits;       /* false: the program is no case for rows */
    const tile_op *broadcast, *view, *iota;
} planner;

static int last_dim(const planner *b) {
    return b->rows->dims - 1;
}

/* Windows */

static void fill_pad(const planner *b, const tile_node *n, uint64_t *pad) {
    const tile_dtype dtype = b->p->param[n->param].dtype;
    if (tile_is_float(dtype))
        tile_dtype_put(dtype, n->attrs.real, pad);
    else
        memcpy(pad, &n->attrs.n[1], sizeof *pad); /* little endian: the low bytes come first */
}

static tile_row_window make_window(const planner *b, const tile_node *n) {
    const tile_access_window w = tile_window_of_node(b->p, b->a, n);
    const tile_inputs inputs = tile_inputs_of(b->p, n);
    tile_row_window made = {.node = n,
                            .param = n->param,
                            .size = tile_dtype_size(b->p->param[n->param].dtype),
                            .rank = w.rank,
                            .skip = b->rows->dims - w.rank,
                            .bounded = inputs.bounds > 0};
    for (int d = 0; d < w.rank; d++) {
        const tile_affine *at = &w.at[d];
        const int axis = b->rows->axis[made.skip + d];
        made.constant[d] = at->constant;
        made.uniform[d] = at->uniform < 0 ? TILE_NO_PLACE : b->exe->flat.place[at->uniform];
        made.moves[d] = axis >= 0 ? at->coefficient[axis] != 0
                                  : w.extent[d] > 1 || b->rows->core[made.skip + d] == 1;
    }
    for (int k = 0; k < inputs.bounds; k++)
        made.bound[k] =
            b->exe->flat.place[tile_node_in(b->p, n, inputs.tiles + inputs.offsets + k)];
    fill_pad(b, n, &made.pad);
    return made;
}

/* Whether two loads differ by a constant shift only, which is not far along a row. */
static bool share_window(const planner *b, const tile_row_window *v, const tile_row_window *w) {
    if (v->param != w->param || tile_has_bit(b->a->written, v->param)) return false;
    if (v->node->op->access != w->node->op->access || v->bounded != w->bounded) return false;
    if (v->pad != w->pad) return false;
    if (memcmp(v->bound, w->bound, sizeof v->bound)) return false;
    for (int d = 0; d < v->rank; d++) {
        int64_t gap;
        if (v->uniform[d] != w->uniform[d] || v->moves[d] != w->moves[d]) return false;
        if (__builtin_sub_overflow(v->constant[d], w->constant[d], &gap)) return false;
        if (gap && !v->moves[d]) return false;
        if (d == v->rank - 1 && (gap > FAR || gap < -FAR)) return false;
    }
    return true;
}

static tile_status find_windows(planner *b) {
    tile_rows *rows = b->rows;
    for (int32_t k = 0; k < b->a->order_count; k++) {
        const int32_t node = b->a->order[k];
        const tile_node *n = &b->p->node[node];
        b->window[node] = -1;
        if (!n->op->access || (n->n_out && b->a->flat[n->out])) continue;
        const tile_row_window w = make_window(b, n);
        for (int32_t i = 0; i < rows->window_count && b->window[node] < 0; i++)
            if (share_window(b, &rows->window[i], &w)) b->window[node] = i;
        if (b->window[node] >= 0) continue;
        TILE_TRY(PUSH(rows, window));
        b->window[node] = rows->window_count;
        rows->window[rows->window_count++] = w;
    }
    return TILE_OK;
}

/* Items */

/* Follows views and broadcasts to the value that is read, and where. */
static int32_t resolve(const planner *b, int32_t value, int64_t shift[TILE_RANK_MAX]) {
    for (;;) {
        const tile_node *n = &b->p->node[b->p->value[value].node];
        if (b->a->flat[value] || (n->op != b->view && n->op != b->broadcast)) return value;
        const int32_t from = tile_node_in(b->p, n, 0);
        int64_t moved[TILE_RANK_MAX] = {0};
        if (n->op == b->view) tile_view_shift(b->p, n, moved);
        const tile_shape x = b->p->value[from].shape, y = b->p->value[value].shape;
        for (int d = 0; d < y.rank; d++) {
            const int f = b->rows->dims - y.rank + d, e = d - (y.rank - x.rank);
            shift[f] += moved[d];
            if (n->op == b->broadcast && (e < 0 || x.extent[e] == 1) && y.extent[d] > 1)
                shift[f] = 0;
        }
        value = from;
    }
}

static tile_status flat_operand(planner *b, int32_t value, tile_row_operand *in) {
    *in = (tile_row_operand){.item = -1, .flat = b->flat[value]};
    if (in->flat >= 0) return TILE_OK;
    TILE_TRY(PUSH(b->rows, flat));
    in->flat = b->flat[value] = b->rows->flat_count;
    b->rows->flat[b->rows->flat_count++] = value;
    return TILE_OK;
}

/* The part of a place that makes a difference to a load or an iota: where it moves. */
static bool matters(const planner *b, const tile_node *n, const tile_row_window *w, int d) {
    if (w) return d >= w->skip && w->moves[d - w->skip];
    const tile_shape shape = b->p->value[n->out].shape;
    const int e = d - (b->rows->dims - shape.rank);
    return e >= 0 && (n->attrs.n[0] >> e & 1);
}

static bool same_place(const planner *b, const tile_row_item *item, const int64_t *at) {
    const int dims = item->kind == TILE_ROW_STRIP ? last_dim(b) - 1 : last_dim(b);
    for (int d = 0; d < dims; d++)
        if (item->at[d] != at[d]) return false;
    return true;
}

static tile_status find_item(planner *b, int32_t value, const int64_t *at, int32_t *found) {
    const tile_node *n = &b->p->node[b->p->value[value].node];
    const int32_t window = n->op->access ? b->window[b->p->value[value].node] : -1;
    const int32_t home = window < 0 ? value : b->rows->window[window].node->out;
    for (*found = b->items[home]; *found >= 0; *found = b->rows->item[*found].next)
        if (same_place(b, &b->rows->item[*found], at)) return TILE_OK;
    TILE_TRY(PUSH(b->rows, item));
    *found = b->rows->item_count++;
    tile_row_item *item = &b->rows->item[*found];
    *item = (tile_row_item){.kind = window >= 0        ? TILE_ROW_LOAD
                                    : n->op == b->iota ? TILE_ROW_IOTA
                                                       : TILE_ROW_STRIP,
                            .node = n,
                            .value = window >= 0 ? window : value,
                            .low = INT64_MAX,
                            .high = INT64_MIN,
                            .left = INT64_MAX,
                            .right = INT64_MIN,
                            .last = -1,
                            .size = tile_dtype_size(b->p->value[value].dtype),
                            .next = b->items[home]};
    memcpy(item->at, at, sizeof item->at);
    b->items[home] = *found;
    return TILE_OK;
}

static int64_t least(int64_t x, int64_t y) {
    return x < y ? x : y;
}

static int64_t most(int64_t x, int64_t y) {
    return x > y ? x : y;
}

/* Where and how far ahead a consumer works. */
typedef struct consumer {
    int64_t at[TILE_RANK_MAX];
    int64_t left, right, warm;
} consumer;

/* Notes that a value is read by a consumer, and says from where. */
static tile_status request(planner *b, int32_t value, const consumer *by, tile_row_operand *in) {
    int64_t at[TILE_RANK_MAX];
    memcpy(at, by->at, sizeof at);
    at[last_dim(b)] = 0;
    value = resolve(b, value, at);
    if (b->a->flat[value]) return flat_operand(b, value, in);
    const tile_node *n = &b->p->node[b->p->value[value].node];
    const int32_t number = b->window[b->p->value[value].node];
    const tile_row_window *w = n->op->access ? &b->rows->window[number] : NULL;
    if (w) {
        const tile_row_window own = make_window(b, n);
        for (int d = 0; d < w->rank; d++) at[w->skip + d] += own.constant[d] - w->constant[d];
    }
    if (w || n->op == b->iota)
        for (int d = 0; d < b->rows->dims; d++)
            if (!matters(b, n, w, d)) at[d] = 0;
    const int64_t x = at[last_dim(b)], row = at[last_dim(b) - 1];
    at[last_dim(b)] = 0;
    *in = (tile_row_operand){.flat = -1, .row = row, .x = x};
    TILE_TRY(find_item(b, value, at, &in->item));
    tile_row_item *item = &b->rows->item[in->item];
    item->low = least(item->low, row);
    item->high = most(item->high, row);
    item->left = least(item->left, by->left + x);
    item->right = most(item->right, by->right + x);
    item->uses++;
    if (item->kind != TILE_ROW_STRIP) item->low = item->high = row;
    item->warm = most(item->warm, by->warm);
    return TILE_OK;
}

/* All consumers of an item are known: its own operands. */
static tile_status request_operands(planner *b, int32_t number) {
    tile_row_item item = b->rows->item[number];
    const int64_t height = item.high - item.low + 1;
    if (height > RING_MAX || item.right - item.left > MARGIN_MAX) {
        b->fits = false;
        return TILE_OK;
    }
    item.warm += height - 1;
    consumer by = {.left = item.left, .right = item.right, .warm = item.warm};
    memcpy(by.at, item.at, sizeof by.at);
    by.at[last_dim(b) - 1] = item.high;
    item.n_in = item.node->n_in;
    for (int32_t k = 0; k < item.n_in; k++)
        TILE_TRY(request(b, tile_node_in(b->p, item.node, k), &by, &item.in[k]));
    b->rows->item[number] = item;
    return TILE_OK;
}

/* Order */

static tile_status push_op(planner *b, const tile_row_op *op) {
    TILE_TRY(PUSH(b->rows, op));
    const int32_t position = b->rows->op_count++;
    b->rows->op[position] = *op;
    for (int32_t k = 0; k < op->n_in; k++)
        if (op->in[k].item >= 0) b->rows->item[op->in[k].item].last = position;
    return TILE_OK;
}

static tile_status item_op(planner *b, int32_t number, tile_row_op *op) {
    const tile_row_item *item = &b->rows->item[number];
    *op = (tile_row_op){.kind = item->kind,
                        .item = number,
                        .n_in = item->n_in,
                        .left = item->left,
                        .right = item->right,
                        .warm = item->warm,
                        .window = item->kind == TILE_ROW_LOAD ? item->value : -1};
    memcpy(op->in, item->in, sizeof item->in);
    if (item->kind != TILE_ROW_STRIP) return TILE_OK;
    tile_dtype in[TILE_OP_IN] = {TILE_F32};
    for (int32_t k = 0; k < item->n_in; k++)
        in[k] = b->p->value[tile_node_in(b->p, item->node, k)].dtype;
    op->run = item->node->op->strip(item->node->op, in, b->p->value[item->value].dtype);
    TILE_CHECK(op->run, TILE_E_DTYPE, "%s: no kernel for %s", item->node->op->name,
               tile_dtype_name(in[0]));
    return TILE_OK;
}

/* A write; the strip that only it reads is computed straight into the array. */
static tile_status push_write(planner *b, const tile_node *n, int32_t node,
                              const tile_row_operand *from) {
    tile_row_op op = {.kind = TILE_ROW_STRIP, .item = -1, .n_in = 1, .in = {*from}};
    const tile_row_item *item = from->item < 0 ? NULL : &b->rows->item[from->item];
    if (item && item->kind == TILE_ROW_STRIP && item->uses == 1)
        TILE_TRY(item_op(b, from->item, &op));
    op.writes = true;
    op.adds = n->op->access == TILE_ACCESS_ADD;
    op.window = b->window[node];
    if (op.adds) {
        const tile_op *add = tile_op_find("add");
        const tile_dtype dtype = b->p->param[n->param].dtype;
        op.add = add ? add->strip(add, (const tile_dtype[]){dtype, dtype}, dtype) : NULL;
        if (!op.add) b->fits = false; /* 16-bit floats: block by block */
    }
    return push_op(b, &op);
}

static tile_status push_items(planner *b, int32_t value) {
    for (int32_t k = b->items[value]; k >= 0; k = b->rows->item[k].next) {
        const tile_row_item *item = &b->rows->item[k];
        if (item->last == -2) continue; /* computed where it is written */
        tile_row_op op;
        TILE_TRY(item_op(b, k, &op));
        TILE_TRY(push_op(b, &op));
    }
    return TILE_OK;
}

static bool is_write(const tile_node *n) {
    return n->op->access > TILE_ACCESS_LOAD;
}

/* Requests, from the last node to the first; then ops in the program's order. */
static tile_status plan_ops(planner *b, tile_row_operand *written) {
    const consumer row = {.warm = 0};
    for (int32_t k = b->a->order_count - 1; k >= 0; k--) {
        const tile_node *n = &b->p->node[b->a->order[k]];
        if (is_write(n)) TILE_TRY(request(b, tile_node_in(b->p, n, 0), &row, &written[k]));
        if (n->n_out != 1 || n->op->kind != TILE_OP_ELEMENTWISE) continue;
        for (int32_t i = b->items[n->out]; i >= 0; i = b->rows->item[i].next)
            TILE_TRY(request_operands(b, i));
        if (!b->fits) return TILE_OK;
    }
    for (int32_t k = 0; k < b->a->order_count; k++)
        if (is_write(&b->p->node[b->a->order[k]]) && written[k].item >= 0 &&
            b->rows->item[written[k].item].kind == TILE_ROW_STRIP &&
            b->rows->item[written[k].item].uses == 1)
            b->rows->item[written[k].item].last = -2;
    for (int32_t k = 0; k < b->a->order_count; k++) {
        const tile_node *n = &b->p->node[b->a->order[k]];
        if (is_write(n))
            TILE_TRY(push_write(b, n, b->a->order[k], &written[k]));
        else if (n->n_out == 1)
            TILE_TRY(push_items(b, n->out));
    }
    return TILE_OK;
}

/* The plan */

static void copy_field(planner *b) {
    const tile_field_form *field = &b->a->field;
    tile_rows *rows = b->rows;
    rows->dims = field->rank < 2 ? 2 : field->rank;
    for (int d = 0; d < rows->dims; d++) {
        const int f = d - (rows->dims - field->rank);
        rows->core[d] = f < 0 ? 1 : field->core[f];
        rows->axis[d] = f < 0 ? -1 : field->axis[f];
    }
}

static tile_status plan_with(planner *b) {
    const size_t values = (size_t)b->p->value_count + 1, nodes = (size_t)b->p->node_count + 1;
    b->window = tile_alloc(nodes * sizeof *b->window);
    b->items = tile_alloc(values * sizeof *b->items);
    b->flat = tile_alloc(values * sizeof *b->flat);
    tile_row_operand *written = tile_alloc(nodes * sizeof *written);
    tile_status status = TILE_OK;
    if (!b->window || !b->items || !b->flat || !written) {
        status = TILE_E_MEMORY;
    } else {
        for (int32_t v = 0; v < b->p->value_count; v++) b->items[v] = b->flat[v] = -1;
        copy_field(b);
        status = find_windows(b);
        if (!status) status = plan_ops(b, written);
        if (!status && b->fits) {
            if (b->joined) tile_rows_fuse(b->rows, b->p);
            status = tile_rows_lay_out(b->rows);
        }
    }
    tile_free(b->window);
    tile_free(b->items);
    tile_free(b->flat);
    tile_free(written);
    return status;
}

tile_status tile_rows_plan(const tile_executable *exe, tile_rows **rows) {
    return tile_rows_plan_ops(exe, true, rows);
}

tile_status tile_rows_plan_ops(const tile_executable *exe, bool joined, tile_rows **rows) {
    *rows = NULL;
    if (!exe->analysis.field.ok) return TILE_OK;
    tile_rows *made = tile_alloc(sizeof *made);
    if (!made) return TILE_E_MEMORY;
    planner b = {.exe = exe,
                 .p = &exe->program,
                 .a = &exe->analysis,
                 .rows = made,
                 .joined = joined,
                 .fits = true,
                 .broadcast = tile_op_find("broadcast"),
                 .view = tile_op_find("view"),
                 .iota = tile_op_find("iota")};
    const tile_status status = plan_with(&b);
    if (status || !b.fits) {
        tile_rows_destroy(made);
        return status;
    }
    *rows = made;
    return TILE_OK;
}

void tile_rows_destroy(tile_rows *rows) {
    if (!rows) return;
    tile_free(rows->window);
    tile_free(rows->item);
    tile_free(rows->op);
    tile_free(rows->slot);
    tile_free(rows->flat);
    tile_free(rows);
}
