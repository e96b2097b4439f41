/* native_rows.c: the C text of the loops over rows.
 *
 *   const float v12 = add_f32(p_3[x + 1], v11);   one line an op
 *
 * A stage that calls an op as a strip (maths functions, whose strips are those of the interpreter)
 * goes by blocks of TILE_BLOCK elements: a loop, the calls that its values allow, the next loop. */
#include "core/native_plan.h"

#include <ctype.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"

#define PUSH(plan, list)                                                         \
    tile_grow(&(plan)->list, &(plan)->list##_capacity, (plan)->list##_count + 1, \
              sizeof *(plan)->list)

enum { EXPRESSION = 400, ARGUMENT = EXPRESSION + 40, NAME = 32 };

typedef struct writer {
    tile_native_writer *w;
    tile_native_plan *plan;
    const tile_rows *rows;
    const tile_program *p;
    tile_text *out; /* the loops; what stands before them is written later */
    int32_t stage;
    int32_t *phase; /* per item: of the stage that is written, the loop after which it is there */
    bool *called;   /* per item: by a strip */
    bool *array;    /* per item: it is used in another loop than its own */
    bool *several;  /* per item: others are the same value at other places */
    bool *flats;    /* per flat value: used */
    int32_t phases;
    bool blocks; /* the stage goes by blocks */
    tile_status status;
} writer;

static tile_dtype dtype_of(const writer *b, int32_t item) {
    const tile_row_item *i = &b->rows->item[item];
    if (i->kind == TILE_ROW_LOAD) return b->p->param[b->rows->window[i->value].param].dtype;
    return b->p->value[i->value].dtype;
}

static tile_dtype dtype_read(const writer *b, const tile_row_operand *in) {
    if (in->item >= 0) return dtype_of(b, in->item);
    return b->p->value[b->rows->flat[in->flat]].dtype;
}

static void fail_with(writer *b, tile_status status) {
    if (!b->status) b->status = status;
}

/* Lists of the stage */

static int32_t add_line(writer *b, int32_t op, int64_t ahead, int64_t x) {
    tile_native_loop *s = &b->plan->stage[b->stage];
    const tile_row_op *o = &b->rows->op[op];
    const tile_row_window *window = &b->rows->window[o->window];
    for (int32_t k = 0; k < s->line_count; k++) {
        tile_native_line *l = &b->plan->line[s->line + k];
        if (l->op != op || l->ahead != ahead) continue;
        if (x < l->low) l->low = x;
        if (x > l->high) l->high = x;
        return k;
    }
    const tile_status status = PUSH(b->plan, line);
    if (status) {
        fail_with(b, status);
        return 0;
    }
    b->plan->line[b->plan->line_count++] =
        (tile_native_line){.op = op,
                           .ahead = ahead,
                           .low = x,
                           .high = x,
                           .writes = o->writes,
                           .adds = o->adds,
                           .single = !window->rank || !window->moves[window->rank - 1]};
    return s->line_count++;
}

static int32_t add_tap(writer *b, int32_t item, int64_t row) {
    tile_native_loop *s = &b->plan->stage[b->stage];
    for (int32_t k = 0; k < s->tap_count; k++) {
        const tile_native_tap *t = &b->plan->tap[s->tap + k];
        if (t->item == item && t->row == row) return k;
    }
    const tile_status status = PUSH(b->plan, tap);
    if (status) {
        fail_with(b, status);
        return 0;
    }
    b->plan->tap[b->plan->tap_count++] = (tile_native_tap){item, row};
    return s->tap_count++;
}

static int32_t add_iota(writer *b, int32_t item, int64_t ahead) {
    tile_native_loop *s = &b->plan->stage[b->stage];
    for (int32_t k = 0; k < s->iota_count; k++)
        if (b->plan->iota[s->iota + k].item == item && b->plan->iota[s->iota + k].ahead == ahead)
            return k;
    const tile_status status = PUSH(b->plan, iota);
    if (status) {
        fail_with(b, status);
        return 0;
    }
    b->plan->iota[b->plan->iota_count++] = (tile_native_iota){item, ahead};
    return s->iota_count++;
}

/* Names */

static int32_t op_of_load(const writer *b, int32_t item) {
    int32_t k = 0;
    while (b->rows->op[k].kind != TILE_ROW_LOAD || b->rows->op[k].item != item) k++;
    return k;
}

/* An identifier: the parameter's name and the line's number. */
static void name_line(const writer *b, int32_t line, char name[64]) {
    const tile_native_line *l = &b->plan->line[b->plan->stage[b->stage].line + line];
    const tile_row_window *window = &b->rows->window[b->rows->op[l->op].window];
    int n = 0;
    for (const char *c = b->p->param[window->param].name; *c && n < 40; c++)
        name[n++] = isalnum((unsigned char)*c) ? *c : '_';
    name[n] = '\0';
    (void)snprintf(name + n, (size_t)(64 - n), "_%d", (int)line);
}

/* "x", "x - 1", "from + x + 2": the index of an element beside the one at hand. */
static void print_index(const writer *b, int64_t x, char to[40]) {
    const char *begin = b->blocks ? "from + x" : "x";
    if (x)
        (void)snprintf(to, 40, "%s %c %lld", begin, x < 0 ? '-' : '+', (long long)(x < 0 ? -x : x));
    else
        (void)snprintf(to, 40, "%s", begin);
}

static bool is_along(const writer *b, const tile_row_item *item) {
    const int rank = b->p->value[item->value].shape.rank;
    return rank > 0 && (item->node->attrs.n[0] >> (rank - 1) & 1);
}

/* v12: the value's number, and the item's where there are several of the value. */
static const char *name_item(const writer *b, char kind, int32_t item, char name[NAME]) {
    if (b->several[item])
        (void)snprintf(name, NAME, "%c%d_%d", kind, (int)b->rows->item[item].value, (int)item);
    else
        (void)snprintf(name, NAME, "%c%d", kind, (int)b->rows->item[item].value);
    return name;
}

/* Operands */

static bool is_made(const writer *b, int32_t item) {
    return b->plan->item[item].need >> b->stage & 1;
}

static bool is_kept(const writer *b, int32_t item) {
    return b->plan->item[item].kept;
}

static bool is_kept_here(const writer *b, int32_t item) {
    return is_kept(b, item) && b->plan->item[item].level == b->stage;
}

/* Checks what the plan promises: a value is read where it is. */
static tile_native_spot spot_of(writer *b, tile_native_base base, const tile_row_operand *in) {
    const tile_native_spot at = tile_native_spot_of(b->plan, b->stage, base, in);
    if (!tile_native_is_strip(b->rows, in)) return at;
    const tile_native_item *item = &b->plan->item[in->item];
    if (item->folded) return at;
    const bool there = item->kept ? at.local || item->level < b->stage
                                  : is_made(b, in->item) && at.x == item->x &&
                                        at.row == b->rows->item[in->item].high + item->ahead;
    if (!there) fail_with(b, TILE_E_STATE);
    return at;
}

static void print_strip(writer *b, int32_t item, const tile_native_spot *at, int32_t phase,
                        char to[EXPRESSION]) {
    char index[40], name[NAME];
    print_index(b, at->x, index);
    if (at->local && b->phase[item] == phase && !b->called[item])
        (void)snprintf(to, EXPRESSION, "%s", name_item(b, 'v', item, name));
    else if (is_kept(b, item))
        (void)snprintf(to, EXPRESSION, "kept_%d[%s]", (int)add_tap(b, item, at->row), index);
    else
        (void)snprintf(to, EXPRESSION, "%s[x]", name_item(b, 'a', item, name));
}

static void print_load(writer *b, int32_t item, const tile_native_spot *at, char to[EXPRESSION]) {
    char index[40], name[64];
    print_index(b, at->x, index);
    const int32_t line = add_line(b, op_of_load(b, item), at->ahead, at->x);
    if (b->status) return;
    name_line(b, line, name);
    if (b->plan->line[b->plan->stage[b->stage].line + line].single)
        (void)snprintf(to, EXPRESSION, "%s", name);
    else
        (void)snprintf(to, EXPRESSION, "%s[%s]", name, index);
}

static void types_of(const writer *b, const tile_row_item *item, tile_dtype in[TILE_OP_IN]) {
    for (int32_t i = 0; i < TILE_OP_IN; i++) in[i] = TILE_F32;
    for (int32_t i = 0; i < item->n_in; i++)
        in[i] = b->p->value[tile_node_in(b->p, item->node, i)].dtype;
}

static void print_operand(writer *b, tile_native_base base, const tile_row_operand *in,
                          int32_t phase, char to[EXPRESSION]);

/* A folded item, as an expression. */
static void print_folded(writer *b, int32_t item, const tile_native_spot *at, int32_t phase,
                         char to[EXPRESSION]) {
    const tile_row_item *i = &b->rows->item[item];
    const tile_native_base base = tile_native_base_at(b->plan, item, at);
    tile_dtype in[TILE_OP_IN];
    char operand[EXPRESSION], name[64];
    types_of(b, i, in);
    (void)tile_native_function(b->w, i->node->op, in, dtype_of(b, item), name);
    int length = snprintf(to, EXPRESSION, "%s(", name);
    for (int32_t k = 0; k < i->n_in && length < EXPRESSION; k++) {
        print_operand(b, base, &i->in[k], phase, operand);
        length += snprintf(to + length, (size_t)(EXPRESSION - length), k ? ", %s" : "%s", operand);
    }
    if (length < EXPRESSION - 1)
        memcpy(to + length, ")", sizeof ")");
    else
        fail_with(b, TILE_E_STATE);
}

/* An operand as an expression in the loop of a phase (-1: for a call). */
static void print_operand(writer *b, tile_native_base base, const tile_row_operand *in,
                          int32_t phase, char to[EXPRESSION]) {
    const tile_native_spot at = spot_of(b, base, in);
    char index[40];
    to[0] = '\0';
    if (in->item < 0) {
        b->flats[in->flat] = true;
        (void)snprintf(to, EXPRESSION, "flat_%d", (int)in->flat);
        return;
    }
    const tile_row_item *item = &b->rows->item[in->item];
    print_index(b, at.x, index);
    if (item->kind == TILE_ROW_STRIP && b->plan->item[in->item].folded)
        print_folded(b, in->item, &at, phase, to);
    else if (item->kind == TILE_ROW_STRIP)
        print_strip(b, in->item, &at, phase, to);
    else if (item->kind == TILE_ROW_LOAD)
        print_load(b, in->item, &at, to);
    else if (is_along(b, item))
        (void)snprintf(to, EXPRESSION, "(int64_t)(start_%d + (uint64_t)(%s))",
                       (int)add_iota(b, in->item, at.ahead), index);
    else
        (void)snprintf(to, EXPRESSION, "(int64_t)start_%d", (int)add_iota(b, in->item, at.ahead));
}

static tile_native_base base_of(const writer *b, int32_t reader) {
    return tile_native_base_of(b->plan, b->stage, reader);
}

/* Phases */

static int32_t phase_of_operand(writer *b, tile_native_base base, const tile_row_operand *in,
                                bool to_call) {
    if (!tile_native_is_strip(b->rows, in)) return 0;
    const tile_native_spot at = spot_of(b, base, in);
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
static void find_phases(writer *b) {
    b->phases = 1;
    b->blocks = false;
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t number = tile_native_made(b->rows, k);
        if (number >= 0) b->array[number] = false;
        if (number < 0 || !is_made(b, number)) continue;
        const tile_row_item *item = &b->rows->item[number];
        tile_dtype in[TILE_OP_IN];
        char name[64];
        types_of(b, item, in);
        b->called[number] =
            !tile_native_function(NULL, item->node->op, in, dtype_of(b, number), name);
        b->phase[number] = 0;
        for (int32_t i = 0; i < item->n_in; i++) {
            const int32_t phase =
                phase_of_operand(b, base_of(b, number), &item->in[i], b->called[number]);
            if (phase > b->phase[number]) b->phase[number] = phase;
        }
        if (b->called[number]) b->blocks = true;
        if (b->phase[number] + b->called[number] >= b->phases)
            b->phases = b->phase[number] + b->called[number] + 1;
    }
}

static void note_array(writer *b, const tile_row_operand *in, int32_t phase, bool call) {
    if (!tile_native_is_strip(b->rows, in)) return;
    if (is_kept(b, in->item) || b->plan->item[in->item].folded) return;
    if (call || b->called[in->item] || b->phase[in->item] != phase) b->array[in->item] = true;
}

static void find_arrays(writer *b) {
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t number = tile_native_made(b->rows, k);
        if (b->rows->op[k].writes && b->stage == b->plan->stage_count - 1) {
            const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
            note_array(b, &in, b->phases - 1, false);
        }
        if (number < 0 || !is_made(b, number)) continue;
        const tile_row_item *item = &b->rows->item[number];
        for (int32_t i = 0; i < item->n_in; i++)
            note_array(b, &item->in[i], b->phase[number], b->called[number]);
    }
}

/* Loops */

static const char *indent(const writer *b) {
    return b->blocks ? "            " : "        ";
}

static void write_op(writer *b, int32_t number) {
    const tile_row_item *item = &b->rows->item[number];
    const tile_dtype out = dtype_of(b, number);
    tile_dtype in[TILE_OP_IN];
    char name[64], operand[EXPRESSION], value[NAME], array[NAME];
    types_of(b, item, in);
    (void)tile_native_function(b->w, item->node->op, in, out, name);
    tile_text_add(b->out, "%sconst %s %s = %s(", indent(b), tile_native_type(out),
                  name_item(b, 'v', number, value), name);
    for (int32_t i = 0; i < item->n_in; i++) {
        print_operand(b, base_of(b, number), &item->in[i], b->phase[number], operand);
        tile_text_add(b->out, i ? ", %s" : "%s", operand);
    }
    tile_text_add(b->out, "); /* %%%d: %s */\n", (int)item->value, item->node->op->math);
    if (is_kept_here(b, number))
        tile_text_add(b->out, "%skept_%d[%s] = %s;\n", indent(b),
                      (int)add_tap(b, number, b->plan->stage[b->stage].row),
                      b->blocks ? "from + x" : "x", value);
    else if (b->array[number])
        tile_text_add(b->out, "%s%s[x] = %s;\n", indent(b), name_item(b, 'a', number, array),
                      value);
}

/* All values first: an array may be read for one write and written by another. */
static void write_writes(writer *b) {
    char operand[EXPRESSION], name[64];
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const tile_row_op *op = &b->rows->op[k];
        if (!op->writes) continue;
        const tile_row_operand in = tile_native_written(b->rows, op);
        print_operand(b, base_of(b, -1), &in, b->phases - 1, operand);
        tile_text_add(b->out, "%sconst %s w%d = %s;\n", indent(b),
                      tile_native_type(dtype_read(b, &in)), (int)k, operand);
    }
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const tile_row_op *op = &b->rows->op[k];
        if (!op->writes) continue;
        const int32_t line = add_line(b, k, 0, 0);
        if (b->status) return;
        name_line(b, line, name);
        const char *index = b->blocks ? "from + x" : "x";
        if (b->plan->line[b->plan->stage[b->stage].line + line].single) index = "0";
        tile_text_add(b->out, "%s%s[%s] = ", indent(b), name, index);
        const tile_dtype dtype = b->p->param[b->rows->window[op->window].param].dtype;
        const tile_dtype two[TILE_OP_IN] = {dtype, dtype};
        const tile_op *add = tile_op_find("add");
        char function[64];
        if (!op->adds)
            tile_text_add(b->out, "w%d;\n", (int)k);
        else if (add && tile_native_function(b->w, add, two, dtype, function))
            tile_text_add(b->out, "%s(%s[%s], w%d);\n", function, name, index, (int)k);
        else
            fail_with(b, TILE_E_DTYPE);
    }
}

static bool has_loop(const writer *b, int32_t phase) {
    if (phase == b->phases - 1 && b->stage == b->plan->stage_count - 1) return true;
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t item = tile_native_made(b->rows, k);
        if (item >= 0 && is_made(b, item) && b->phase[item] == phase && !b->called[item])
            return true;
    }
    return false;
}

static void write_loop(writer *b, int32_t phase) {
    const char *margin = b->blocks ? "        " : "    ";
    if (!has_loop(b, phase)) return;
    tile_text_add(b->out, "%s%s%sfor (int64_t x = 0; x < %s; x++) {\n", margin, TILE_NATIVE_LOOP,
                  margin, b->blocks ? "m" : "n");
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t item = tile_native_made(b->rows, k);
        if (item >= 0 && is_made(b, item) && b->phase[item] == phase && !b->called[item])
            write_op(b, item);
    }
    if (phase == b->phases - 1 && b->stage == b->plan->stage_count - 1) write_writes(b);
    tile_text_add(b->out, "%s}\n", margin);
}

/* Calls */

/* An operand of a call: where it lies, or an array that is filled with it. */
static void write_argument(writer *b, int32_t reader, int32_t i, char to[ARGUMENT]) {
    const tile_row_operand *in = &b->rows->item[reader].in[i];
    char expression[EXPRESSION];
    const tile_row_item *item = in->item < 0 ? NULL : &b->rows->item[in->item];
    print_operand(b, base_of(b, reader), in, -1, expression);
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
                           (long long)spot_of(b, base_of(b, reader), in).x);
        return;
    }
    const char *type = tile_native_type(dtype_read(b, in));
    tile_text_add(b->out,
                  "            %s in%d[TILE_BLOCK];\n"
                  "            for (int64_t x = 0; x < m; x++) in%d[x] = %s;\n",
                  type, (int)i, (int)i, expression);
    (void)snprintf(to, EXPRESSION, "in%d", (int)i);
}

static void write_call(writer *b, int32_t number) {
    const tile_row_item *item = &b->rows->item[number];
    char argument[TILE_OP_IN][ARGUMENT], name[NAME];
    tile_dtype in[TILE_OP_IN];
    int32_t strip;
    types_of(b, item, in);
    const tile_status status =
        tile_native_strip_of(b->plan, item->node->op, in, dtype_of(b, number), &strip);
    if (status) {
        fail_with(b, status);
        return;
    }
    tile_text_add(b->out, "        { /* %%%d = %s: %s */\n", (int)item->value, item->node->op->name,
                  item->node->op->math);
    for (int32_t i = 0; i < item->n_in; i++) write_argument(b, number, i, argument[i]);
    tile_text_add(b->out, "            const void *const in[] = {");
    for (int32_t i = 0; i < item->n_in; i++) tile_text_add(b->out, i ? ", %s" : "%s", argument[i]);
    tile_text_add(b->out, "};\n            c->strip[%d](in, ", (int)strip);
    if (is_kept_here(b, number))
        tile_text_add(b->out, "&kept_%d[from]",
                      (int)add_tap(b, number, b->plan->stage[b->stage].row));
    else
        tile_text_add(b->out, "%s", name_item(b, 'a', number, name));
    tile_text_add(b->out, ", m);\n        }\n");
}

static void write_calls(writer *b, int32_t phase) {
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t item = tile_native_made(b->rows, k);
        if (item >= 0 && is_made(b, item) && b->phase[item] == phase && b->called[item])
            write_call(b, item);
    }
}

/* Stages */

static void write_lines(writer *b, tile_text *out) {
    const tile_native_loop *s = &b->plan->stage[b->stage];
    for (int32_t k = 0; k < s->line_count; k++) {
        const tile_native_line *l = &b->plan->line[s->line + k];
        const tile_row_op *op = &b->rows->op[l->op];
        const tile_param_info *param = &b->p->param[b->rows->window[op->window].param];
        const char *type = tile_native_type(param->dtype);
        char name[64];
        name_line(b, k, name);
        if (l->single && !l->writes) {
            tile_text_add(out, "    const %s %s = *(const %s *)c->line[%d];\n", type, name, type,
                          (int)k);
            continue;
        }
        tile_text_add(out, "    %s%s *const %s = (%s%s *)c->line[%d]%s; /* %s */\n",
                      l->writes ? "" : "const ", type, name, l->writes ? "" : "const ", type,
                      (int)k, l->single ? "" : " + c->begin",
                      l->adds     ? "added to"
                      : l->writes ? "stored to"
                                  : "loaded from");
    }
}

static void write_head(writer *b, tile_text *out) {
    const tile_native_loop *s = &b->plan->stage[b->stage];
    tile_text_add(
        out, "\n/* Loop %d of %d over a row. */\nvoid tile_stage_%d(const tile_native_call *c) {\n",
        (int)b->stage + 1, (int)b->plan->stage_count, (int)b->stage);
    tile_text_add(out, "    const int64_t n = c->n;\n");
    write_lines(b, out);
    for (int32_t k = 0; k < s->tap_count; k++) {
        const tile_native_tap *t = &b->plan->tap[s->tap + k];
        const char *type = tile_native_type(dtype_of(b, t->item));
        tile_text_add(
            out, "    %s *const kept_%d = (%s *)c->ring[%d] + c->begin; /* %%%d, row %lld */\n",
            type, (int)k, type, (int)k, (int)b->rows->item[t->item].value, (long long)t->row);
    }
    for (int32_t k = 0; k < s->iota_count; k++)
        tile_text_add(out, "    const uint64_t start_%d = (uint64_t)c->start[%d]%s;\n", (int)k,
                      (int)k,
                      is_along(b, &b->rows->item[b->plan->iota[s->iota + k].item])
                          ? " + (uint64_t)c->begin"
                          : "");
    for (int32_t k = 0; k < b->rows->flat_count; k++) {
        if (!b->flats[k]) continue;
        const char *type = tile_native_type(b->p->value[b->rows->flat[k]].dtype);
        tile_text_add(out, "    const %s flat_%d = *(const %s *)c->flat[%d]; /* %%%d */\n", type,
                      (int)k, type, (int)k, (int)b->rows->flat[k]);
    }
}

static void write_blocks_begin(writer *b) {
    enum { ARRAYS_MAX = 96 };
    int32_t arrays = 0;
    char name[NAME];
    tile_text_add(b->out,
                  "    for (int64_t from = 0; from < n; from += TILE_BLOCK) {\n"
                  "        const int64_t m = n - from < TILE_BLOCK ? n - from : TILE_BLOCK;\n");
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t item = tile_native_made(b->rows, k);
        if (item < 0 || !is_made(b, item) || is_kept_here(b, item)) continue;
        if (!b->array[item] && !b->called[item]) continue;
        tile_text_add(b->out, "        %s %s[TILE_BLOCK];\n", tile_native_type(dtype_of(b, item)),
                      name_item(b, 'a', item, name));
        if (++arrays > ARRAYS_MAX) fail_with(b, TILE_E_STATE);
    }
}

static void write_stage(writer *b) {
    tile_native_loop *s = &b->plan->stage[b->stage];
    tile_text loops = {.data = NULL};
    s->line = b->plan->line_count;
    s->tap = b->plan->tap_count;
    s->iota = b->plan->iota_count;
    memset(b->flats, 0, (size_t)b->rows->flat_count);
    b->out = &loops;
    (void)tile_native_find_places(b->plan, b->stage);
    find_phases(b);
    find_arrays(b);
    if (b->blocks) write_blocks_begin(b);
    for (int32_t phase = 0; phase < b->phases && !b->status; phase++) {
        write_loop(b, phase);
        write_calls(b, phase);
    }
    if (b->blocks) tile_text_add(&loops, "    }\n");
    if (!b->status) write_head(b, &b->w->body);
    tile_text_add(&b->w->body, "%s}\n", tile_text_get(&loops));
    if (loops.failed) fail_with(b, TILE_E_MEMORY);
    tile_text_clear(&loops);
}

tile_status tile_native_write_stages(tile_native_writer *w) {
    const tile_rows *rows = w->plan->rows;
    const size_t items = (size_t)rows->item_count + 1;
    writer b = {.w = w,
                .plan = w->plan,
                .rows = rows,
                .p = &w->plan->exe->program,
                .phase = tile_alloc(items * sizeof *b.phase),
                .called = tile_alloc(items),
                .array = tile_alloc(items),
                .several = tile_alloc(items),
                .flats = tile_alloc((size_t)rows->flat_count + 1)};
    if (!b.phase || !b.called || !b.array || !b.several || !b.flats) b.status = TILE_E_MEMORY;
    for (int32_t k = 0; k < rows->item_count && !b.status; k++)
        for (int32_t j = rows->item[k].next; j >= 0 && rows->item[k].kind == TILE_ROW_STRIP;
             j = rows->item[j].next)
            b.several[k] = b.several[j] = true;
    for (b.stage = 0; b.stage < w->plan->stage_count && !b.status; b.stage++) write_stage(&b);
    tile_free(b.phase);
    tile_free(b.called);
    tile_free(b.array);
    tile_free(b.several);
    tile_free(b.flats);
    return b.status;
}
