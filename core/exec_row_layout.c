/* exec_row_layout.c: pointer table, buffers and strip length of a row plan. */
#include "core/exec_rows.h"
#include "core/memory.h"
#include "core/status.h"

#define PUSH(rows, list)                                                         \
    tile_grow(&(rows)->list, &(rows)->list##_capacity, (rows)->list##_count + 1, \
              sizeof *(rows)->list)

enum { STRIP_MIN = 128, STRIP_MAX = 1024, STRIP_STEP = 64, PANEL_MIN = 1024, PANEL_MAX = 16384 };
/* Strips in use together fit the first-level cache, rings the second. */
static const int64_t STRIPS_BYTES = 12 << 10, RINGS_BYTES = 256 << 10;

static bool is_ring(const tile_row_item *item) {
    return item->kind == TILE_ROW_STRIP && item->high > item->low;
}

/* Slots */

static tile_status add_slot(tile_rows *rows, int32_t item, int64_t row, int32_t *slot) {
    TILE_TRY(PUSH(rows, slot));
    *slot = rows->slot_count++;
    rows->slot[*slot] = (tile_row_slot){item, row};
    return TILE_OK;
}

/* The slot of an item, of a ring at a row. */
static tile_status slot_of(tile_rows *rows, int32_t item, int64_t row, int32_t *slot) {
    const bool ring = is_ring(&rows->item[item]);
    for (*slot = rows->flat_count; *slot < rows->slot_count; ++*slot)
        if (rows->slot[*slot].item == item && (!ring || rows->slot[*slot].row == row))
            return TILE_OK;
    return add_slot(rows, item, row, slot);
}

static tile_status assign_slots(tile_rows *rows) {
    int32_t slot;
    for (int32_t k = 0; k < rows->flat_count; k++) TILE_TRY(add_slot(rows, -1, 0, &slot));
    for (int32_t k = 0; k < rows->op_count; k++) {
        tile_row_op *op = &rows->op[k];
        for (int32_t i = 0; i < op->n_in; i++) {
            tile_row_operand *in = &op->in[i];
            in->slot = in->flat;
            if (in->item < 0) continue;
            TILE_TRY(slot_of(rows, in->item, in->row, &in->slot));
            in->offset = (op->left + in->x) * (int64_t)rows->item[in->item].size;
        }
        if (op->item < 0 || op->writes) continue;
        const tile_row_item *item = &rows->item[op->item];
        TILE_TRY(slot_of(rows, op->item, item->high, &op->out));
        op->offset = op->left * (int64_t)item->size;
    }
    return TILE_OK;
}

/* Buffers */

static size_t strip_bytes(const tile_rows *rows, size_t size) {
    return tile_align((size_t)(rows->strip + rows->margin) * size);
}

static bool is_buffered(const tile_row_op *op) {
    return op->item >= 0 && !op->writes && op->kind != TILE_ROW_LOAD;
}

static bool is_read_shifted(const tile_row_op *op, int32_t item) {
    for (int32_t i = 0; i < op->n_in; i++)
        if (op->in[i].item == item && op->in[i].x) return true;
    return false;
}

/* Whether the strip of op k can go where an operand lies that ends there, element on element. */
static bool take_over(tile_rows *rows, int32_t k) {
    const tile_row_op *op = &rows->op[k];
    tile_row_item *item = &rows->item[op->item];
    for (int32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].item < 0 || is_read_shifted(op, op->in[i].item)) continue;
        const tile_row_item *from = &rows->item[op->in[i].item];
        if (from->kind == TILE_ROW_LOAD || is_ring(from) || from->last != k) continue;
        if (from->size != item->size || from->left != item->left) continue;
        item->place = from->place;
        return true;
    }
    return false;
}

/* First place that is free from op k on. */
static size_t find_place(const tile_rows *rows, int32_t k, size_t bytes) {
    size_t place = 0;
    for (int32_t j = 0; j < k;) {
        const tile_row_op *other = &rows->op[j++];
        if (!is_buffered(other) || is_ring(&rows->item[other->item])) continue;
        const tile_row_item *item = &rows->item[other->item];
        const size_t end = item->place + strip_bytes(rows, item->size);
        if (item->last < k || end <= place || place + bytes <= item->place) continue;
        place = end;
        j = 0;
    }
    return place;
}

/* Strips by lifetime, then what is rarely used, then rings. Returns the bytes of the first. */
static size_t place_buffers(tile_rows *rows) {
    size_t live = 0, size_max = 1;
    for (int32_t k = 0; k < rows->op_count; k++) {
        if (!is_buffered(&rows->op[k]) || is_ring(&rows->item[rows->op[k].item])) continue;
        tile_row_item *item = &rows->item[rows->op[k].item];
        const size_t bytes = strip_bytes(rows, item->size);
        if (!take_over(rows, k)) item->place = find_place(rows, k, bytes);
        if (item->place + bytes > live) live = item->place + bytes;
    }
    rows->buffers = live;
    for (int32_t k = 0; k < rows->window_count; k++)
        if (rows->window[k].size > size_max) size_max = rows->window[k].size;
    rows->spill = rows->buffers;
    rows->buffers += 2 * strip_bytes(rows, size_max);
    for (int32_t k = 0; k < rows->item_count; k++) {
        tile_row_item *item = &rows->item[k];
        if (item->kind == TILE_ROW_LOAD) {
            item->place = rows->buffers;
            rows->buffers += strip_bytes(rows, item->size);
        } else if (is_ring(item)) {
            item->place = rows->buffers;
            item->pitch = tile_align((size_t)(rows->panel + rows->margin) * item->size);
            rows->buffers += item->pitch * (size_t)(item->high - item->low + 1);
        }
    }
    return live;
}

/* Lengths */

static void measure_items(tile_rows *rows, int64_t *read_bytes, int64_t *ring_bytes) {
    *ring_bytes = 0;
    *read_bytes = 4 * rows->flat_count;
    for (int32_t k = 0; k < rows->item_count; k++) {
        const tile_row_item *item = &rows->item[k];
        if (item->right - item->left > rows->margin) rows->margin = item->right - item->left;
        if (item->warm > rows->warm) rows->warm = item->warm;
        const int64_t height = is_ring(item) ? item->high - item->low + 1 : 0;
        *ring_bytes += height * (int64_t)item->size;
        if (item->kind == TILE_ROW_LOAD) *read_bytes += (int64_t)item->size;
    }
}

tile_status tile_rows_lay_out(tile_rows *rows) {
    static const double OP_NS = 0.07;
    int64_t read_bytes, ring_bytes;
    TILE_TRY(assign_slots(rows));
    measure_items(rows, &read_bytes, &ring_bytes);
    rows->strip = STRIP_MAX;
    rows->panel = INT64_MAX;
    if (ring_bytes) rows->panel = tile_between(RINGS_BYTES / ring_bytes, PANEL_MIN, PANEL_MAX);
    const int64_t live_bytes = (int64_t)place_buffers(rows) / STRIP_MAX + 1;
    const int64_t strip = STRIPS_BYTES / (read_bytes + live_bytes + 1);
    rows->strip = tile_between(strip / STRIP_STEP * STRIP_STEP, STRIP_MIN, STRIP_MAX);
    if (ring_bytes) rows->panel = rows->panel / rows->strip * rows->strip;
    if (rows->panel < rows->strip) rows->panel = rows->strip;
    place_buffers(rows);
    rows->element_ns = OP_NS * (double)rows->op_count;
    return TILE_OK;
}
