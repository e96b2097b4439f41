/* native_nest.c: a group of a block as a nest of loops over a tile's rows. */
#include <string.h>

#include "core/memory.h"
#include "core/native_group.h"
#include "core/status.h"

/* Dimensions */

static void set_contiguous(const tile_group_writer *b, int64_t *stride) {
    int64_t n = 1;
    for (int d = b->rank - 1; d >= 0; d--) {
        stride[d] = n;
        n *= b->extent[d];
    }
}

static void set_shape(tile_group_writer *b, tile_shape shape) {
    b->rank = shape.rank;
    for (int d = 0; d < shape.rank; d++) b->extent[d] = shape.extent[d];
}

static bool is_moved(const tile_group_writer *b, int32_t value) {
    const tile_native_view *view = &b->view[value];
    return !view->same && !tile_native_is_uniform(b->p->value[value].shape, view);
}

/* The shape that operands and sums go by; a row when none does. */
static void find_shape(tile_group_writer *b) {
    b->rank = 1;
    b->extent[0] = b->step->elements;
    for (int32_t k = 0; k < b->step->count; k++) {
        const tile_strip_step *s = &b->strip[k];
        for (int i = 0; i < s->n_in; i++) {
            const int32_t value = tile_node_in(b->p, s->node, i);
            const bool outside = tile_group_maker(b, k, i) < 0;
            if (tile_group_is_sum(b, k) || (outside && is_moved(b, value)))
                set_shape(b, tile_native_squeeze(b->p->value[value].shape, NULL, NULL));
        }
    }
}

static tile_status add_read(tile_group_writer *b, int32_t k, int i) {
    const int32_t value = tile_node_in(b->p, b->strip[k].node, i);
    const tile_native_view *view = &b->view[value];
    const tile_shape shape = b->p->value[value].shape;
    if (b->read_of[value] < 0) {
        TILE_TRY(tile_grow(&b->read, &b->read_capacity, b->read_count + 1, sizeof *b->read));
        tile_group_read *made = &b->read[b->read_count];
        *made = (tile_group_read){.value = value, .place = b->strip[k].in[i], .first = view->first};
        b->read_of[value] = b->read_count++;
        if (view->same) {
            set_contiguous(b, made->stride);
        } else if (tile_native_is_uniform(shape, view)) {
            made->kind = TILE_READ_SCALAR;
        } else {
            made->kind = TILE_READ_MOVED;
            (void)tile_native_squeeze(shape, view->stride, made->stride);
        }
    }
    tile_group_read *read = &b->read[b->read_of[value]];
    if (read->kind == TILE_READ_SCALAR && b->called[k]) read->kind = TILE_READ_FILLED;
    return TILE_OK;
}

/* axes: of the tile that is summed, with its dimensions of one element. */
static tile_status add_sum(tile_group_writer *b, int32_t k) {
    const tile_node *n = b->strip[k].node;
    const tile_shape shape = b->p->value[tile_node_in(b->p, n, 0)].shape;
    tile_group_sum sum = {.strip = k, .count = 1};
    while (tile_native_fold_op(sum.fold) != n->op) sum.fold++;
    int nest = b->rank;
    for (int d = shape.rank - 1; d >= 0; d--) {
        const bool summed = n->attrs.n[0] >> d & 1;
        if (shape.extent[d] == 1) continue;
        nest--;
        sum.row = sum.row || (summed && nest == b->rank - 1);
        sum.stride[nest] = summed ? 0 : sum.count;
        if (!summed) sum.count *= shape.extent[d];
    }
    TILE_TRY(tile_grow(&b->sum, &b->sum_capacity, b->sum_count + 1, sizeof *b->sum));
    b->sum[b->sum_count++] = sum;
    return TILE_OK;
}

static bool merge(const int64_t *stride, const int64_t *extent, int d) {
    return stride[d] == stride[d + 1] * extent[d + 1];
}

/* Makes one dimension of two that everything goes through as through one. */
static void merge_dimensions(tile_group_writer *b) {
    for (int d = b->rank - 2; d >= 0; d--) {
        bool can = true;
        for (int32_t k = 0; k < b->read_count; k++)
            can = can && merge(b->read[k].stride, b->extent, d);
        for (int32_t k = 0; k < b->sum_count; k++)
            can = can && merge(b->sum[k].stride, b->extent, d);
        if (!can) continue;
        const size_t after = (size_t)(b->rank - d - 2) * sizeof(int64_t);
        for (int32_t k = 0; k < b->read_count; k++)
            memmove(&b->read[k].stride[d], &b->read[k].stride[d + 1], after + sizeof(int64_t));
        for (int32_t k = 0; k < b->sum_count; k++)
            memmove(&b->sum[k].stride[d], &b->sum[k].stride[d + 1], after + sizeof(int64_t));
        b->extent[d] *= b->extent[d + 1];
        memmove(&b->extent[d + 1], &b->extent[d + 2], after);
        b->rank--;
    }
}

tile_status tile_group_find_nest(tile_group_writer *b) {
    b->read_count = b->sum_count = 0;
    find_shape(b);
    for (int32_t k = 0; k < b->step->count; k++) {
        if (tile_group_is_sum(b, k)) {
            TILE_TRY(add_sum(b, k));
            continue;
        }
        for (int i = 0; i < b->strip[k].n_in; i++)
            if (tile_group_maker(b, k, i) < 0) TILE_TRY(add_read(b, k, i));
    }
    merge_dimensions(b);
    return TILE_OK;
}

/* Text */

static void print_operand(const tile_group_writer *b, int32_t k, int i,
                          char to[TILE_GROUP_EXPRESSION]) {
    const int32_t value = tile_node_in(b->p, b->strip[k].node, i);
    const int32_t j = tile_group_maker(b, k, i);
    if (j >= 0) {
        (void)snprintf(to, TILE_GROUP_EXPRESSION, "v%d", (int)b->strip[j].node->out);
        return;
    }
    const int64_t step = b->read[b->read_of[value]].stride[b->rank - 1];
    if (!step)
        (void)snprintf(to, TILE_GROUP_EXPRESSION, "r%d", (int)value);
    else if (step == 1)
        (void)snprintf(to, TILE_GROUP_EXPRESSION, "r%d[x]", (int)value);
    else
        (void)snprintf(to, TILE_GROUP_EXPRESSION, "r%d[x * %lld]", (int)value, (long long)step);
}

/* Where a row begins, as an index, "7 + i0 * 512", or as what is added to a pointer. */
static void write_place(tile_group_writer *b, bool index, int64_t first, const int64_t *stride) {
    tile_text *out = &b->w->body;
    const char *before = index ? "" : " + ";
    if (first) {
        tile_text_add(out, "%s%lld", before, (long long)first);
        before = " + ";
    }
    for (int d = 0; d < b->rank - 1; d++) {
        if (!stride[d]) continue;
        tile_text_add(out, "%si%d", before, d);
        if (stride[d] != 1) tile_text_add(out, " * %lld", (long long)stride[d]);
        before = " + ";
    }
    if (!*before) tile_text_add(out, "0");
}

/* What a row reads and writes. */
static void write_row_head(tile_group_writer *b, const char *margin) {
    tile_text *out = &b->w->body;
    int64_t own[TILE_RANK_MAX];
    set_contiguous(b, own);
    for (int32_t k = 0; k < b->read_count; k++) {
        const tile_group_read *r = &b->read[k];
        const char *type = tile_native_type(b->p->value[r->value].dtype);
        const bool one = !r->stride[b->rank - 1];
        tile_text_add(out, "%sconst %s %sr%d = %s(const %s *)(arena + %zu)%s", margin, type,
                      one ? "" : "*const ", (int)r->value, one ? "(" : "", type, r->place,
                      one ? ")[" : "");
        write_place(b, one, r->first, r->stride);
        tile_text_add(out, one ? "];\n" : ";\n");
    }
    for (int32_t k = 0; k < b->step->count; k++) {
        const tile_strip_step *s = &b->strip[k];
        const char *type = tile_native_type(tile_group_dtype(b, k));
        if (tile_group_is_sum(b, k) || !s->out_step) continue;
        tile_text_add(out, "%s%s *const w%d = (%s *)(arena + %zu)", margin, type, (int)s->node->out,
                      type, s->out);
        write_place(b, false, 0, own);
        tile_text_add(out, ";\n");
    }
    for (int32_t k = 0; k < b->sum_count; k++) {
        const tile_strip_step *s = &b->strip[b->sum[k].strip];
        const char *type = tile_native_type(tile_group_dtype(b, b->sum[k].strip));
        if (b->sum[k].row) {
            tile_text_add(out, "%s%s s%d[%lld];\n", margin, type, (int)s->node->out,
                          (long long)b->extent[b->rank - 1]);
            continue;
        }
        tile_text_add(out, "%s%s *const s%d = (%s *)(arena + %zu)", margin, type, (int)s->node->out,
                      type, s->out);
        write_place(b, false, 0, b->sum[k].stride);
        tile_text_add(out, ";\n");
    }
}

static const char *const fold_name[] = {"sum", "least", "most"};

static const char *type_name(tile_dtype dtype) {
    return dtype == TILE_F32 ? "f32" : "f64";
}

/* What is folded along a row is folded when the row is there. */
static void write_fold(tile_group_writer *b, int32_t k, const char *margin) {
    const int to = (int)b->strip[k].node->out;
    const tile_group_sum *sum = b->sum;
    char in[TILE_GROUP_EXPRESSION];
    while (sum->strip != k) sum++;
    print_operand(b, k, 0, in);
    if (sum->row)
        tile_text_add(&b->w->body, "%ss%d[x] = %s;\n", margin, to, in);
    else
        tile_text_add(&b->w->body, "%ss%d[x] = fold_%s_%s(s%d[x], %s);\n", margin, to,
                      fold_name[sum->fold], type_name(tile_group_dtype(b, k)), to, in);
}

static void write_element(tile_group_writer *b, int32_t k, const char *margin) {
    const tile_strip_step *s = &b->strip[k];
    if (tile_group_is_sum(b, k)) {
        write_fold(b, k, margin);
        return;
    }
    tile_group_write_op(b, k, margin, print_operand);
    if (s->out_step)
        tile_text_add(&b->w->body, "%sw%d[x] = v%d;\n", margin, (int)s->node->out,
                      (int)s->node->out);
}

static void write_row_sums(tile_group_writer *b, const char *margin) {
    for (int32_t k = 0; k < b->sum_count; k++) {
        const tile_strip_step *s = &b->strip[b->sum[k].strip];
        const tile_dtype dtype = tile_group_dtype(b, b->sum[k].strip);
        if (!b->sum[k].row) continue;
        tile_text_add(&b->w->body, "%s((%s *)(arena + %zu))[", margin, tile_native_type(dtype),
                      s->out);
        write_place(b, true, 0, b->sum[k].stride);
        tile_text_add(&b->w->body, "] = row_%s_%s(s%d, %lld);\n", fold_name[b->sum[k].fold],
                      type_name(dtype), (int)s->node->out, (long long)b->extent[b->rank - 1]);
    }
}

void tile_group_write_rows(tile_group_writer *b) {
    static const char SPACES[] = "                                            ";
    const char *end = SPACES + sizeof SPACES - 1;
    const char *margin = end - 4 * b->rank; /* of what stands in a row */
    tile_text *out = &b->w->body;
    for (int32_t k = 0; k < b->sum_count; k++) {
        const tile_strip_step *s = &b->strip[b->sum[k].strip];
        if (!b->sum[k].row) /* NaN: any number wins */
            tile_text_add(out,
                          "    for (int64_t x = 0; x < %lld; x++) ((%s *)(arena + %zu))[x] = %s;\n",
                          (long long)b->sum[k].count,
                          tile_native_type(tile_group_dtype(b, b->sum[k].strip)), s->out,
                          b->sum[k].fold ? "__builtin_nan(\"\")" : "0");
    }
    for (int d = 0; d < b->rank - 1; d++)
        tile_text_add(out, "%sfor (int64_t i%d = 0; i%d < %lld; i%d++) {\n", end - 4 * (d + 1), d,
                      d, (long long)b->extent[d], d);
    write_row_head(b, margin);
    tile_text_add(out, "%s%s%sfor (int64_t x = 0; x < %lld; x++) {\n", margin, TILE_NATIVE_LOOP,
                  margin, (long long)b->extent[b->rank - 1]);
    for (int32_t k = 0; k < b->step->count; k++) write_element(b, k, margin - 4);
    tile_text_add(out, "%s}\n", margin);
    write_row_sums(b, margin);
    for (int d = b->rank - 2; d >= 0; d--) tile_text_add(out, "%s}\n", end - 4 * (d + 1));
}
