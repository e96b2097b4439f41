/* native_rows.c: the C text of the loops over rows.
 *
 *   const float v12 = add_f32(p_3[x + 1], v11);   one line an op
 *
 * A stage that calls an op as a strip (maths functions, whose strips are those of the interpreter)
 * goes by blocks of TILE_BLOCK elements: a loop, the calls that its values allow, the next loop. */
#include "core/native_stage.h"

#include <string.h>

#include "core/dtype.h"
#include "core/memory.h"
#include "core/status.h"

enum { ARGUMENT = TILE_EXPRESSION + 40 };

/* Phases */

static int32_t phase_of_operand(tile_stage_writer *b, tile_native_base base,
                                const tile_row_operand *in, bool to_call) {
    if (!tile_native_is_strip(b->rows, in)) return 0;
    const tile_native_spot at = tile_stage_spot(b, base, in);
    int32_t phase = 0;
    if (b->plan->item[in->item].folded) {
        const tile_row_item *item = &b->rows->item[in->item];
        for (int32_t k = 0; k < item->n_in; k++) {
            const int32_t other = phase_of_operand(b, tile_native_base_at(b->plan, in->item, &at),
                                                   &item->in[k], false);
            if (other > phase) phase = other;
        }
        return phase;
    }
    return at.local ? b->phase[in->item] + (b->called[in->item] && !to_call) : 0;
}

/* A called op comes after the loop of its phase. */
static void find_phases(tile_stage_writer *b) {
    b->phases = 1;
    b->blocks = false;
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t number = tile_native_made(b->rows, k);
        if (number >= 0) b->array[number] = false;
        if (number < 0 || !tile_stage_makes(b, number)) continue;
        const tile_row_item *item = &b->rows->item[number];
        tile_dtype in[TILE_OP_IN];
        char name[64];
        tile_stage_types(b, item, in);
        b->called[number] =
            !tile_native_function(NULL, item->node->op, in, tile_stage_dtype(b, number), name);
        b->phase[number] = 0;
        for (int32_t i = 0; i < item->n_in; i++) {
            const int32_t phase =
                phase_of_operand(b, tile_stage_base(b, number), &item->in[i], b->called[number]);
            if (phase > b->phase[number]) b->phase[number] = phase;
        }
        if (b->called[number]) b->blocks = true;
        if (b->phase[number] + b->called[number] >= b->phases)
            b->phases = b->phase[number] + b->called[number] + 1;
    }
}

static void note_array(tile_stage_writer *b, const tile_row_operand *in, int32_t phase, bool call) {
    if (!tile_native_is_strip(b->rows, in)) return;
    if (b->plan->item[in->item].kept || b->plan->item[in->item].folded) return;
    if (call || b->called[in->item] || b->phase[in->item] != phase) b->array[in->item] = true;
}

static void find_arrays(tile_stage_writer *b) {
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t number = tile_native_made(b->rows, k);
        if (b->rows->op[k].writes && b->stage == b->plan->stage_count - 1) {
            const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
            note_array(b, &in, b->phases - 1, false);
        }
        if (number < 0 || !tile_stage_makes(b, number)) continue;
        const tile_row_item *item = &b->rows->item[number];
        for (int32_t i = 0; i < item->n_in; i++)
            note_array(b, &item->in[i], b->phase[number], b->called[number]);
    }
}

/* Loops */

static const char *indent(const tile_stage_writer *b) {
    return b->blocks ? "            " : "        ";
}

/* Looks at what comes out of a loop without guards. */
static void write_look(tile_stage_writer *b, tile_dtype dtype, const char *value) {
    if (b->tries && tile_is_float(dtype))
        tile_text_add(b->out, "%snan |= %s != %s;\n", indent(b), value, value);
}

static void write_op(tile_stage_writer *b, int32_t number) {
    const tile_row_item *item = &b->rows->item[number];
    const tile_op *op = item->node->op;
    const tile_dtype out = tile_stage_dtype(b, number);
    tile_dtype in[TILE_OP_IN];
    char name[64], operands[TILE_EXPRESSION], value[TILE_STAGE_NAME], array[TILE_STAGE_NAME];
    tile_stage_types(b, item, in);
    (void)tile_native_function(b->w, op, in, out, name);
    const bool tried = b->seen[number] && tile_native_is_guarded(op);
    if (tried) tile_native_try(b->w, name, name);
    b->tried = b->tried || tried;
    b->plain = b->seen[number] && tile_native_shows_nan(op);
    tile_stage_operands(b, tile_stage_base(b, number), item, b->phase[number], operands);
    tile_text_add(b->out, "%sconst %s %s = %s(%s%s); /* %%%d: %s */\n", indent(b),
                  tile_native_type(out), tile_stage_item_name(b, 'v', number, value), name,
                  tried ? "guard, " : "", operands, (int)item->value, op->math);
    if (tile_stage_keeps(b, number)) {
        tile_text_add(b->out, "%skept_%d[%s] = %s;\n", indent(b),
                      (int)tile_stage_tap(b, number, b->plan->stage[b->stage].row),
                      b->blocks ? "from + x" : "x", value);
        write_look(b, out, value);
    } else if (b->array[number])
        tile_text_add(b->out, "%s%s[x] = %s;\n", indent(b),
                      tile_stage_item_name(b, 'a', number, array), value);
}

/* Whether a write of op k changes what the stage reads: then what was there is saved, for the stage
 * may run again. */
static bool is_saved(const tile_stage_writer *b, int32_t k) {
    const tile_native_loop *s = &b->plan->stage[b->stage];
    const int32_t param = b->rows->window[b->rows->op[k].window].param;
    if (!b->tries || b->blocks) return false;
    for (int32_t j = 0; j < b->rows->op_count; j++)
        if (b->rows->op[j].adds && b->rows->window[b->rows->op[j].window].param == param)
            return true;
    for (int32_t j = s->line; j < s->line + s->line_count; j++) {
        const tile_native_line *l = &b->plan->line[j];
        if (!l->writes && b->rows->window[b->rows->op[l->op].window].param == param) return true;
    }
    return false;
}

/* "name[x] = from;", or what adds to it. */
static void write_write(tile_stage_writer *b, int32_t k, const char *margin, const char *from) {
    const tile_row_op *op = &b->rows->op[k];
    char name[64], function[64];
    const int32_t line = tile_stage_line(b, k, 0, 0);
    if (b->status) return;
    tile_stage_line_name(b, line, name);
    const char *index = b->blocks ? "from + x" : "x";
    if (b->plan->line[b->plan->stage[b->stage].line + line].single) index = "0";
    tile_text_add(b->out, "%s%s[%s] = ", margin, name, index);
    const tile_dtype dtype = b->p->param[b->rows->window[op->window].param].dtype;
    const tile_dtype two[TILE_OP_IN] = {dtype, dtype};
    const tile_op *add = tile_op_find("add");
    if (!op->adds)
        tile_text_add(b->out, "%s;\n", from);
    else if (add && tile_native_function(b->w, add, two, dtype, function))
        tile_text_add(b->out, "%s(%s[%s], %s);\n", function, name, index, from);
    else
        tile_stage_fail(b, TILE_E_DTYPE);
}

/* All values first: an array may be read for one write and written by another. */
static void write_writes(tile_stage_writer *b) {
    char operand[TILE_EXPRESSION], value[TILE_STAGE_NAME];
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const tile_row_op *op = &b->rows->op[k];
        if (!op->writes) continue;
        const tile_row_operand in = tile_native_written(b->rows, op);
        b->plain = b->tries;
        tile_stage_operand(b, tile_stage_base(b, -1), &in, b->phases - 1, operand);
        tile_text_add(b->out, "%sconst %s w%d = %s;\n", indent(b),
                      tile_native_type(tile_stage_dtype_read(b, &in)), (int)k, operand);
    }
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        if (!b->rows->op[k].writes) continue;
        const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
        (void)snprintf(value, sizeof value, "w%d", (int)k);
        write_look(b, tile_stage_dtype_read(b, &in), value);
        if (is_saved(b, k)) {
            char name[64];
            tile_stage_line_name(b, tile_stage_line(b, k, 0, 0), name);
            tile_text_add(b->out, "%ssaved_%d[x] = %s[x];\n", indent(b), (int)k, name);
        }
        write_write(b, k, indent(b), value);
    }
}

static bool has_loop(const tile_stage_writer *b, int32_t phase) {
    if (phase == b->phases - 1 && b->stage == b->plan->stage_count - 1) return true;
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t item = tile_native_made(b->rows, k);
        if (item >= 0 && tile_stage_makes(b, item) && b->phase[item] == phase && !b->called[item])
            return true;
    }
    return false;
}

static void write_loop(tile_stage_writer *b, int32_t phase) {
    const char *margin = b->blocks ? "        " : "    ";
    if (!has_loop(b, phase)) return;
    tile_text_add(b->out, "%s%s%sfor (int64_t x = 0; x < %s; x++) {\n", margin, TILE_NATIVE_LOOP,
                  margin, b->blocks ? "m" : "n");
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t item = tile_native_made(b->rows, k);
        if (item >= 0 && tile_stage_makes(b, item) && b->phase[item] == phase && !b->called[item])
            write_op(b, item);
    }
    if (phase == b->phases - 1 && b->stage == b->plan->stage_count - 1) write_writes(b);
    tile_text_add(b->out, "%s}\n", margin);
}

/* Calls */

/* An operand of a call: where it lies, or an array that is filled with it. */
static void write_argument(tile_stage_writer *b, int32_t reader, int32_t i, char to[ARGUMENT]) {
    const tile_row_operand *in = &b->rows->item[reader].in[i];
    char expression[TILE_EXPRESSION];
    const tile_row_item *item = in->item < 0 ? NULL : &b->rows->item[in->item];
    tile_stage_operand(b, tile_stage_base(b, reader), in, -1, expression);
    /* "name[from + x - 2]" is a place in an array, "a7[x]" an array of the block. */
    char *index = strchr(expression, '[');
    const bool folded = in->item >= 0 && b->plan->item[in->item].folded;
    if (index && item && item->kind != TILE_ROW_IOTA && !folded) {
        const bool whole = !strcmp(index, "[x]");
        *index = '\0';
        if (whole)
            (void)snprintf(to, ARGUMENT, "%s", expression);
        else
            (void)snprintf(to, ARGUMENT, "&%s[from + (%lld)]", expression,
                           (long long)tile_stage_spot(b, tile_stage_base(b, reader), in).x);
        return;
    }
    const char *type = tile_native_type(tile_stage_dtype_read(b, in));
    tile_text_add(b->out,
                  "            %s in%d[TILE_BLOCK];\n"
                  "            for (int64_t x = 0; x < m; x++) in%d[x] = %s;\n",
                  type, (int)i, (int)i, expression);
    (void)snprintf(to, TILE_EXPRESSION, "in%d", (int)i);
}

static void write_call(tile_stage_writer *b, int32_t number) {
    const tile_row_item *item = &b->rows->item[number];
    char argument[TILE_OP_IN][ARGUMENT], name[TILE_STAGE_NAME];
    tile_dtype in[TILE_OP_IN];
    int32_t strip;
    tile_stage_types(b, item, in);
    const tile_status status =
        tile_native_strip_of(b->plan, item->node->op, in, tile_stage_dtype(b, number), &strip);
    if (status) {
        tile_stage_fail(b, status);
        return;
    }
    tile_text_add(b->out, "        { /* %%%d = %s: %s */\n", (int)item->value, item->node->op->name,
                  item->node->op->math);
    for (int32_t i = 0; i < item->n_in; i++) write_argument(b, number, i, argument[i]);
    tile_text_add(b->out, "            const void *const in[] = {");
    for (int32_t i = 0; i < item->n_in; i++) tile_text_add(b->out, i ? ", %s" : "%s", argument[i]);
    tile_text_add(b->out, "};\n            c->strip[%d](in, ", (int)strip);
    if (tile_stage_keeps(b, number))
        tile_text_add(b->out, "&kept_%d[from]",
                      (int)tile_stage_tap(b, number, b->plan->stage[b->stage].row));
    else
        tile_text_add(b->out, "%s", tile_stage_item_name(b, 'a', number, name));
    tile_text_add(b->out, ", m);\n        }\n");
}

static void write_calls(tile_stage_writer *b, int32_t phase) {
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t item = tile_native_made(b->rows, k);
        if (item >= 0 && tile_stage_makes(b, item) && b->phase[item] == phase && b->called[item])
            write_call(b, item);
    }
}

/* Stages */

static void write_lines(tile_stage_writer *b, tile_text *out) {
    const tile_native_loop *s = &b->plan->stage[b->stage];
    for (int32_t k = 0; k < s->line_count; k++) {
        const tile_native_line *l = &b->plan->line[s->line + k];
        const tile_row_op *op = &b->rows->op[l->op];
        const tile_param_info *param = &b->p->param[b->rows->window[op->window].param];
        const char *type = tile_native_type(param->dtype);
        char name[64];
        tile_stage_line_name(b, k, name);
        if (l->single && !l->writes) {
            tile_text_add(out, "    const %s %s = *(const %s *)c->line[%d];\n", type, name, type,
                          (int)k);
            continue;
        }
        tile_text_add(out, "    %s%s *const %s = (%s%s *)c->line[%d]%s; /* %s */\n",
                      l->writes ? "" : "const ", type, name, l->writes ? "" : "const ", type,
                      (int)k, l->single ? "" : " + begin",
                      l->adds     ? "added to"
                      : l->writes ? "stored to"
                                  : "loaded from");
    }
}

/* "before type between saved_7 after" for each write that is saved. */
static bool write_saved(const tile_stage_writer *b, tile_text *out, const char *before, bool typed,
                        const char *between, const char *after) {
    bool some = false;
    for (int32_t k = 0; k < b->rows->op_count && b->stage == b->plan->stage_count - 1; k++) {
        if (!b->rows->op[k].writes || !is_saved(b, k)) continue;
        const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
        const char *type = tile_native_type(tile_stage_dtype_read(b, &in));
        tile_text_add(out, "%s%s%ssaved_%d%s", before, typed ? type : "", between, (int)k, after);
        some = true;
    }
    return some;
}

static void write_head(tile_stage_writer *b, tile_text *out) {
    const tile_native_loop *s = &b->plan->stage[b->stage];
    tile_text_add(out, "\n/* Loop %d of %d over a row. */\n", (int)b->stage + 1,
                  (int)b->plan->stage_count);
    if (b->tries) {
        tile_text_add(out,
                      "static inline __attribute__((always_inline)) int stage_%d(\n"
                      "    const tile_native_call *c, int64_t begin, int64_t n, const int guard",
                      (int)b->stage);
        (void)write_saved(b, out, ", ", true, " *", "");
        tile_text_add(out, ") {\n    int nan = 0;\n");
    } else {
        tile_text_add(out,
                      "void tile_stage_%d(const tile_native_call *c) {\n"
                      "    const int64_t begin = c->begin, n = c->n;\n",
                      (int)b->stage);
    }
    write_lines(b, out);
    for (int32_t k = 0; k < s->tap_count; k++) {
        const tile_native_tap *t = &b->plan->tap[s->tap + k];
        const char *type = tile_native_type(tile_stage_dtype(b, t->item));
        tile_text_add(out,
                      "    %s *const kept_%d = (%s *)c->ring[%d] + begin; /* %%%d, row %lld */\n",
                      type, (int)k, type, (int)k, (int)b->rows->item[t->item].value,
                      (long long)t->row);
    }
    for (int32_t k = 0; k < s->iota_count; k++)
        tile_text_add(out, "    const uint64_t start_%d = (uint64_t)c->start[%d]%s;\n", (int)k,
                      (int)k,
                      tile_stage_along(b, &b->rows->item[b->plan->iota[s->iota + k].item])
                          ? " + (uint64_t)begin"
                          : "");
    for (int32_t k = 0; k < b->rows->flat_count; k++) {
        if (!b->flats[k]) continue;
        const char *type = tile_native_type(b->p->value[b->rows->flat[k]].dtype);
        tile_text_add(out, "    const %s flat_%d = *(const %s *)c->flat[%d]; /* %%%d */\n", type,
                      (int)k, type, (int)k, (int)b->rows->flat[k]);
    }
}

static void write_blocks_begin(tile_stage_writer *b) {
    enum { ARRAYS_MAX = 96 };
    int32_t arrays = 0;
    char name[TILE_STAGE_NAME];
    tile_text_add(b->out,
                  "    for (int64_t from = 0; from < n; from += TILE_BLOCK) {\n"
                  "        const int64_t m = n - from < TILE_BLOCK ? n - from : TILE_BLOCK;\n");
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t item = tile_native_made(b->rows, k);
        if (item < 0 || !tile_stage_makes(b, item) || tile_stage_keeps(b, item)) continue;
        if (!b->array[item] && !b->called[item]) continue;
        tile_text_add(b->out, "        %s %s[TILE_BLOCK];\n",
                      tile_native_type(tile_stage_dtype(b, item)),
                      tile_stage_item_name(b, 'a', item, name));
        if (++arrays > ARRAYS_MAX) tile_stage_fail(b, TILE_E_STATE);
    }
}

/* Puts back what writes have changed, the last first. */
static void write_restore(tile_stage_writer *b, tile_text *out) {
    for (int32_t k = b->rows->op_count - 1; k >= 0 && !b->status; k--) {
        if (!b->rows->op[k].writes || !is_saved(b, k)) continue;
        const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
        tile_text_add(out,
                      "            for (int64_t x = 0; x < n; x++)\n"
                      "                ((%s *)c->line[%d] + begin)[x] = saved_%d[x];\n",
                      tile_native_type(tile_stage_dtype_read(b, &in)),
                      (int)tile_stage_line(b, k, 0, 0), (int)k);
    }
}

/* Tries the loop without guards, and with them where a NaN came out. */
static void write_again(tile_stage_writer *b, tile_text *out) {
    tile_text saved = {.data = NULL};
    const int k = (int)b->stage;
    tile_text_add(out, "\nvoid tile_stage_%d(const tile_native_call *c) {\n", k);
    if (!write_saved(b, &saved, ", ", false, "", "")) {
        tile_text_add(out,
                      "    if (!c->again || stage_%d(c, c->begin, c->n, 0))\n"
                      "        (void)stage_%d(c, c->begin, c->n, 1);\n}\n",
                      k, k);
        return;
    }
    const char *names = tile_text_get(&saved);
    (void)write_saved(b, out, "    ", true, " ", "[TILE_SAVED];\n");
    tile_text_add(out,
                  "    for (int64_t from = 0; from < c->n; from += TILE_SAVED) {\n"
                  "        const int64_t begin = c->begin + from;\n"
                  "        const int64_t n = c->n - from < TILE_SAVED ? c->n - from : TILE_SAVED;\n"
                  "        if (c->again) {\n"
                  "            if (!stage_%d(c, begin, n, 0%s)) continue;\n",
                  k, names);
    write_restore(b, out);
    tile_text_add(out, "        }\n        (void)stage_%d(c, begin, n, 1%s);\n    }\n}\n", k,
                  names);
    if (saved.failed) tile_stage_fail(b, TILE_E_MEMORY);
    tile_text_clear(&saved);
}

/* Writes the loops of a stage into a text of their own. */
static void write_loops(tile_stage_writer *b, tile_text *loops) {
    tile_native_loop *s = &b->plan->stage[b->stage];
    tile_text_clear(loops);
    b->plan->line_count = s->line;
    b->plan->tap_count = s->tap;
    b->plan->iota_count = s->iota;
    s->line_count = s->tap_count = s->iota_count = 0;
    memset(b->flats, 0, (size_t)b->rows->flat_count);
    b->out = loops;
    b->tried = b->plain = false;
    tile_stage_find_seen(b);
    if (b->blocks) write_blocks_begin(b);
    for (int32_t phase = 0; phase < b->phases && !b->status; phase++) {
        write_loop(b, phase);
        write_calls(b, phase);
    }
    if (b->blocks) tile_text_add(loops, "    }\n");
}

/* Whether a write puts all elements of a row in one place. */
static bool has_single(const tile_stage_writer *b) {
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const tile_row_window *w = &b->rows->window[b->rows->op[k].window];
        if (b->rows->op[k].writes && (!w->rank || !w->moves[w->rank - 1])) return true;
    }
    return false;
}

static void write_stage(tile_stage_writer *b) {
    tile_native_loop *s = &b->plan->stage[b->stage];
    tile_text loops = {.data = NULL};
    s->line = b->plan->line_count;
    s->tap = b->plan->tap_count;
    s->iota = b->plan->iota_count;
    (void)tile_native_find_places(b->plan, b->stage);
    find_phases(b);
    find_arrays(b);
    b->tries = !b->blocks && !(b->stage == b->plan->stage_count - 1 && has_single(b));
    write_loops(b, &loops);
    if (b->tries && !b->tried) {
        b->tries = false;
        write_loops(b, &loops);
    }
    if (!b->status) write_head(b, &b->w->body);
    tile_text_add(&b->w->body, b->tries ? "%s    return nan;\n}\n" : "%s}\n",
                  tile_text_get(&loops));
    if (b->tries && !b->status) write_again(b, &b->w->body);
    if (loops.failed) tile_stage_fail(b, TILE_E_MEMORY);
    tile_text_clear(&loops);
}

tile_status tile_native_write_stages(tile_native_writer *w) {
    const tile_rows *rows = w->plan->rows;
    const size_t items = (size_t)rows->item_count + 1;
    tile_stage_writer b = {.w = w,
                           .plan = w->plan,
                           .rows = rows,
                           .p = &w->plan->exe->program,
                           .phase = tile_alloc(items * sizeof *b.phase),
                           .called = tile_alloc(items),
                           .array = tile_alloc(items),
                           .several = tile_alloc(items),
                           .seen = tile_alloc(items),
                           .flats = tile_alloc((size_t)rows->flat_count + 1)};
    if (!b.phase || !b.called || !b.array || !b.several || !b.seen || !b.flats)
        b.status = TILE_E_MEMORY;
    for (int32_t k = 0; k < rows->item_count && !b.status; k++)
        for (int32_t j = rows->item[k].next; j >= 0 && rows->item[k].kind == TILE_ROW_STRIP;
             j = rows->item[j].next)
            b.several[k] = b.several[j] = true;
    for (b.stage = 0; b.stage < w->plan->stage_count && !b.status; b.stage++) write_stage(&b);
    tile_free(b.phase);
    tile_free(b.called);
    tile_free(b.array);
    tile_free(b.several);
    tile_free(b.seen);
    tile_free(b.flats);
    return b.status;
}
