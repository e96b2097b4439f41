/* native_pieces.c: a group of a block by pieces of its elements: where maths functions are called,
 * or rows are short. */
#include "core/native_group.h"
#include "core/status.h"

enum { ARRAYS_MAX = 512 };

static void find_phase(tile_group_writer *b, int32_t k) {
    b->phase[k] = 0;
    b->array[k] = b->called[k];
    for (int i = 0; i < b->strip[k].n_in; i++) {
        const int32_t j = tile_group_maker(b, k, i);
        if (j < 0) continue;
        const int32_t phase = b->phase[j] + (b->called[j] && !b->called[k]);
        if (phase > b->phase[k]) b->phase[k] = phase;
    }
    for (int i = 0; i < b->strip[k].n_in; i++) {
        const int32_t j = tile_group_maker(b, k, i);
        if (j >= 0 && (b->called[k] || b->phase[j] != b->phase[k])) b->array[j] = true;
    }
    const int32_t after = b->phase[k] + b->called[k] + 1;
    if (after > b->phases) b->phases = after;
}

/* In the loop of the op's phase. */
static void print_operand(const tile_group_writer *b, int32_t k, int i,
                          char to[TILE_GROUP_EXPRESSION]) {
    const int32_t value = tile_node_in(b->p, b->strip[k].node, i);
    const int32_t j = tile_group_maker(b, k, i);
    if (j >= 0) {
        const bool local = b->phase[j] == b->phase[k] && !b->called[j];
        (void)snprintf(to, TILE_GROUP_EXPRESSION, local ? "v%d" : "a%d[x]",
                       (int)b->strip[j].node->out);
        return;
    }
    const tile_group_read *r = &b->read[b->read_of[value]];
    if (r->kind == TILE_READ_SAME)
        (void)snprintf(to, TILE_GROUP_EXPRESSION, "((const %s *)(arena + %zu))[from + x]",
                       tile_native_type(b->p->value[value].dtype), r->place);
    else
        (void)snprintf(to, TILE_GROUP_EXPRESSION, r->kind == TILE_READ_SCALAR ? "r%d" : "r%d[x]",
                       (int)value);
}

/* As an argument of a call: where it lies. */
static void print_argument(const tile_group_writer *b, int32_t k, int i,
                           char to[TILE_GROUP_EXPRESSION]) {
    const int32_t value = tile_node_in(b->p, b->strip[k].node, i);
    const int32_t j = tile_group_maker(b, k, i);
    const tile_group_read *r = j < 0 ? &b->read[b->read_of[value]] : NULL;
    if (j >= 0)
        (void)snprintf(to, TILE_GROUP_EXPRESSION, "a%d", (int)b->strip[j].node->out);
    else if (r->kind == TILE_READ_SAME)
        (void)snprintf(to, TILE_GROUP_EXPRESSION, "(const %s *)(arena + %zu) + from",
                       tile_native_type(b->p->value[value].dtype), r->place);
    else
        (void)snprintf(to, TILE_GROUP_EXPRESSION, "r%d", (int)value);
}

static void write_element(tile_group_writer *b, int32_t k) {
    const tile_strip_step *s = &b->strip[k];
    const char *type = tile_native_type(tile_group_dtype(b, k));
    tile_group_write_op(b, k, "            ", print_operand);
    if (s->out_step)
        tile_text_add(&b->w->body, "            ((%s *)(arena + %zu))[from + x] = v%d;\n", type,
                      s->out, (int)s->node->out);
    if (b->array[k])
        tile_text_add(&b->w->body, "            a%d[x] = v%d;\n", (int)s->node->out,
                      (int)s->node->out);
}

static void write_loop(tile_group_writer *b, int32_t phase) {
    bool begun = false;
    for (int32_t k = 0; k < b->step->count; k++) {
        if (b->phase[k] != phase || b->called[k]) continue;
        if (!begun)
            tile_text_add(&b->w->body, "        %s        for (int64_t x = 0; x < m; x++) {\n",
                          TILE_NATIVE_LOOP);
        begun = true;
        write_element(b, k);
    }
    if (begun) tile_text_add(&b->w->body, "        }\n");
}

static tile_status write_call(tile_group_writer *b, int32_t k) {
    const tile_strip_step *s = &b->strip[k];
    tile_text *out = &b->w->body;
    char operand[TILE_GROUP_EXPRESSION];
    tile_dtype in[TILE_OP_IN];
    int32_t strip;
    tile_group_types(b, k, in);
    TILE_TRY(tile_native_strip_of(b->w->plan, s->node->op, in, tile_group_dtype(b, k), &strip));
    tile_text_add(out, "        { /* %%%d = %s: %s */\n            const void *const in[] = {",
                  (int)s->node->out, s->node->op->name, s->node->op->math);
    for (int i = 0; i < s->n_in; i++) {
        print_argument(b, k, i, operand);
        tile_text_add(out, i ? ", %s" : "%s", operand);
    }
    const char *type = tile_native_type(tile_group_dtype(b, k));
    tile_text_add(out, "};\n            strip[%d](in, a%d, m);\n", (int)strip, (int)s->node->out);
    if (s->out_step)
        tile_text_add(out,
                      "            %s *to = (%s *)(arena + %zu) + from;\n"
                      "            for (int64_t x = 0; x < m; x++) to[x] = a%d[x];\n",
                      type, type, s->out, (int)s->node->out);
    tile_text_add(out, "        }\n");
    return TILE_OK;
}

/* Before the pieces: what is one element. */
static void write_scalars(tile_group_writer *b) {
    for (int32_t k = 0; k < b->read_count; k++) {
        const tile_group_read *r = &b->read[k];
        const char *type = tile_native_type(b->p->value[r->value].dtype);
        const int value = (int)r->value;
        if (r->kind == TILE_READ_SCALAR)
            tile_text_add(&b->w->body, "    const %s r%d = ((const %s *)(arena + %zu))[%lld];\n",
                          type, value, type, r->place, (long long)r->first);
        if (r->kind == TILE_READ_FILLED)
            tile_text_add(&b->w->body,
                          "    %s r%d[TILE_BLOCK];\n"
                          "    for (int64_t x = 0; x < TILE_BLOCK; x++)\n"
                          "        r%d[x] = ((const %s *)(arena + %zu))[%lld];\n",
                          type, value, value, type, r->place, (long long)r->first);
    }
}

/* An operand that is read in another order: a piece of it, row by row. */
static void write_moved(tile_group_writer *b, const tile_group_read *r) {
    tile_text *out = &b->w->body;
    const char *type = tile_native_type(b->p->value[r->value].dtype);
    const long long row = (long long)b->extent[b->rank - 1];
    const int64_t step = r->stride[b->rank - 1];
    int64_t rows = 1;
    tile_text_add(out,
                  "        %s r%d[TILE_BLOCK];\n"
                  "        for (int64_t x = 0; x < m;) {\n"
                  "            const int64_t row = (from + x) / %lld, at = (from + x) %% %lld;\n"
                  "            const int64_t left = %lld - at < m - x ? %lld - at : m - x;\n"
                  "            const %s *const r = (const %s *)(arena + %zu) + %lld",
                  type, (int)r->value, row, row, row, row, type, type, r->place,
                  (long long)r->first);
    for (int d = b->rank - 2; d >= 0; d--) {
        if (r->stride[d])
            tile_text_add(out, " + row / %lld %% %lld * %lld", (long long)rows,
                          (long long)b->extent[d], (long long)r->stride[d]);
        rows *= b->extent[d];
    }
    tile_text_add(out,
                  ";\n            for (int64_t j = 0; j < left; j++) r%d[x + j] = r[(at + j) * "
                  "%lld];\n            x += left;\n        }\n",
                  (int)r->value, (long long)step);
}

tile_status tile_group_write_pieces(tile_group_writer *b) {
    tile_text *out = &b->w->body;
    int32_t arrays = 0;
    b->phases = 1;
    for (int32_t k = 0; k < b->read_count; k++)
        arrays += b->read[k].kind != TILE_READ_SAME && b->read[k].kind != TILE_READ_SCALAR;
    for (int32_t k = 0; k < b->step->count; k++) find_phase(b, k);
    for (int32_t k = 0; k < b->step->count; k++) arrays += b->array[k];
    TILE_CHECK(arrays <= ARRAYS_MAX, TILE_E_STATE, "%s: a group of too many calls", b->p->name);
    write_scalars(b);
    tile_text_add(out,
                  "    const int64_t n = %lld;\n"
                  "    for (int64_t from = 0; from < n; from += TILE_BLOCK) {\n"
                  "        const int64_t m = n - from < TILE_BLOCK ? n - from : TILE_BLOCK;\n",
                  (long long)b->step->elements);
    for (int32_t k = 0; k < b->read_count; k++)
        if (b->read[k].kind == TILE_READ_MOVED) write_moved(b, &b->read[k]);
    for (int32_t k = 0; k < b->step->count; k++)
        if (b->array[k])
            tile_text_add(out, "        %s a%d[TILE_BLOCK];\n",
                          tile_native_type(tile_group_dtype(b, k)), (int)b->strip[k].node->out);
    for (int32_t phase = 0; phase < b->phases; phase++) {
        write_loop(b, phase);
        for (int32_t k = 0; k < b->step->count; k++)
            if (b->phase[k] == phase && b->called[k]) TILE_TRY(write_call(b, k));
    }
    tile_text_add(out, "    }\n");
    return TILE_OK;
}
