/* native_operand.c: operands in the loops over rows, as C: arrays, kept values, iotas, locals. */
#include <ctype.h>
#include <string.h>

#include "core/dtype.h"
#include "core/memory.h"
#include "core/native_stage.h"
#include "core/status.h"

#define PUSH(plan, list)                                                         \
    tile_grow(&(plan)->list, &(plan)->list##_capacity, (plan)->list##_count + 1, \
              sizeof *(plan)->list)

tile_dtype tile_stage_dtype(const tile_stage_writer *b, int32_t item) {
    const tile_row_item *i = &b->rows->item[item];
    if (i->kind == TILE_ROW_LOAD) return b->p->param[b->rows->window[i->value].param].dtype;
    return b->p->value[i->value].dtype;
}

tile_dtype tile_stage_dtype_read(const tile_stage_writer *b, const tile_row_operand *in) {
    if (in->item >= 0) return tile_stage_dtype(b, in->item);
    return b->p->value[b->rows->flat[in->flat]].dtype;
}

void tile_stage_fail(tile_stage_writer *b, tile_status status) {
    if (!b->status) b->status = status;
}

/* Lists of the stage */

int32_t tile_stage_line(tile_stage_writer *b, int32_t op, int64_t ahead, int64_t x) {
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
        tile_stage_fail(b, status);
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

int32_t tile_stage_tap(tile_stage_writer *b, int32_t item, int64_t row) {
    tile_native_loop *s = &b->plan->stage[b->stage];
    for (int32_t k = 0; k < s->tap_count; k++) {
        const tile_native_tap *t = &b->plan->tap[s->tap + k];
        if (t->item == item && t->row == row) return k;
    }
    const tile_status status = PUSH(b->plan, tap);
    if (status) {
        tile_stage_fail(b, status);
        return 0;
    }
    b->plan->tap[b->plan->tap_count++] = (tile_native_tap){item, row};
    return s->tap_count++;
}

static int32_t add_iota(tile_stage_writer *b, int32_t item, int64_t ahead) {
    tile_native_loop *s = &b->plan->stage[b->stage];
    for (int32_t k = 0; k < s->iota_count; k++)
        if (b->plan->iota[s->iota + k].item == item && b->plan->iota[s->iota + k].ahead == ahead)
            return k;
    const tile_status status = PUSH(b->plan, iota);
    if (status) {
        tile_stage_fail(b, status);
        return 0;
    }
    b->plan->iota[b->plan->iota_count++] = (tile_native_iota){item, ahead};
    return s->iota_count++;
}

/* Names */

static int32_t op_of_load(const tile_stage_writer *b, int32_t item) {
    int32_t k = 0;
    while (b->rows->op[k].kind != TILE_ROW_LOAD || b->rows->op[k].item != item) k++;
    return k;
}

/* An identifier: the parameter's name and the line's number. */
void tile_stage_line_name(const tile_stage_writer *b, int32_t line, char name[64]) {
    const tile_native_line *l = &b->plan->line[b->plan->stage[b->stage].line + line];
    const tile_row_window *window = &b->rows->window[b->rows->op[l->op].window];
    int n = 0;
    for (const char *c = b->p->param[window->param].name; *c && n < 40; c++)
        name[n++] = isalnum((unsigned char)*c) ? *c : '_';
    name[n] = '\0';
    (void)snprintf(name + n, (size_t)(64 - n), "_%d", (int)line);
}

/* "x", "x - 1", "from + x + 2": the index of an element beside the one at hand. */
static void print_index(const tile_stage_writer *b, int64_t x, char to[40]) {
    const char *begin = b->blocks ? "from + x" : "x";
    if (x)
        (void)snprintf(to, 40, "%s %c %lld", begin, x < 0 ? '-' : '+', (long long)(x < 0 ? -x : x));
    else
        (void)snprintf(to, 40, "%s", begin);
}

bool tile_stage_along(const tile_stage_writer *b, const tile_row_item *item) {
    const int rank = b->p->value[item->value].shape.rank;
    return rank > 0 && (item->node->attrs.n[0] >> (rank - 1) & 1);
}

/* v12: the value's number, and the item's where there are several of the value. */
const char *tile_stage_item_name(const tile_stage_writer *b, char kind, int32_t item,
                                 char name[TILE_STAGE_NAME]) {
    if (b->several[item])
        (void)snprintf(name, TILE_STAGE_NAME, "%c%d_%d", kind, (int)b->rows->item[item].value,
                       (int)item);
    else
        (void)snprintf(name, TILE_STAGE_NAME, "%c%d", kind, (int)b->rows->item[item].value);
    return name;
}

/* Operands */

bool tile_stage_makes(const tile_stage_writer *b, int32_t item) {
    return b->plan->item[item].need >> b->stage & 1;
}

static bool is_kept(const tile_stage_writer *b, int32_t item) {
    return b->plan->item[item].kept;
}

bool tile_stage_keeps(const tile_stage_writer *b, int32_t item) {
    return is_kept(b, item) && b->plan->item[item].level == b->stage;
}

/* Checks what the plan promises: a value is read where it is. */
tile_native_spot tile_stage_spot(tile_stage_writer *b, tile_native_base base,
                                 const tile_row_operand *in) {
    const tile_native_spot at = tile_native_spot_of(b->plan, b->stage, base, in);
    if (!tile_native_is_strip(b->rows, in)) return at;
    const tile_native_item *item = &b->plan->item[in->item];
    if (item->folded) return at;
    const bool there = item->kept ? at.local || item->level < b->stage
                                  : tile_stage_makes(b, in->item) && at.x == item->x &&
                                        at.row == b->rows->item[in->item].high + item->ahead;
    if (!there) tile_stage_fail(b, TILE_E_STATE);
    return at;
}

static void print_strip(tile_stage_writer *b, int32_t item, const tile_native_spot *at,
                        int32_t phase, char to[TILE_EXPRESSION]) {
    char index[40], name[TILE_STAGE_NAME];
    print_index(b, at->x, index);
    if (at->local && b->phase[item] == phase && !b->called[item])
        (void)snprintf(to, TILE_EXPRESSION, "%s", tile_stage_item_name(b, 'v', item, name));
    else if (is_kept(b, item))
        (void)snprintf(to, TILE_EXPRESSION, "kept_%d[%s]", (int)tile_stage_tap(b, item, at->row),
                       index);
    else
        (void)snprintf(to, TILE_EXPRESSION, "%s[x]", tile_stage_item_name(b, 'a', item, name));
}

static void print_load(tile_stage_writer *b, int32_t item, const tile_native_spot *at,
                       char to[TILE_EXPRESSION]) {
    char index[40], name[64];
    print_index(b, at->x, index);
    const int32_t line = tile_stage_line(b, op_of_load(b, item), at->ahead, at->x);
    if (b->status) return;
    tile_stage_line_name(b, line, name);
    if (b->plan->line[b->plan->stage[b->stage].line + line].single)
        (void)snprintf(to, TILE_EXPRESSION, "%s", name);
    else
        (void)snprintf(to, TILE_EXPRESSION, "%s[%s]", name, index);
}

void tile_stage_types(const tile_stage_writer *b, const tile_row_item *item,
                      tile_dtype in[TILE_OP_IN]) {
    for (int32_t i = 0; i < TILE_OP_IN; i++) in[i] = TILE_F32;
    for (int32_t i = 0; i < item->n_in; i++)
        in[i] = b->p->value[tile_node_in(b->p, item->node, i)].dtype;
}

/* Whether an operand is the negative of what another is, there where it is used. */
static bool is_negative(tile_stage_writer *b, tile_native_base *base, tile_row_operand *in) {
    if (!tile_native_is_strip(b->rows, in)) return false;
    const tile_row_item *item = &b->rows->item[in->item];
    const tile_native_spot at = tile_stage_spot(b, *base, in);
    if (strcmp(item->node->op->name, "neg") || b->blocks || is_kept(b, in->item)) return false;
    if (!tile_is_float(tile_stage_dtype(b, in->item))) return false;
    *base = tile_native_base_at(b->plan, in->item, &at);
    *in = item->in[0];
    return true;
}

/* The operands of a call; -a by a value that is the same everywhere is a by -value: a loop negates
 * that only once. */
void tile_stage_operands(tile_stage_writer *b, tile_native_base base, const tile_row_item *item,
                         int32_t phase, char to[TILE_EXPRESSION]) {
    char operand[TILE_EXPRESSION];
    int length = 0;
    tile_native_base first = base;
    tile_row_operand in = item->in[0];
    const bool negative = tile_native_is_product(item->node->op) && item->in[1].item < 0 &&
                          is_negative(b, &first, &in);
    to[0] = '\0';
    for (int32_t k = 0; k < item->n_in && length < TILE_EXPRESSION; k++) {
        if (negative && k == 0)
            tile_stage_operand(b, first, &in, phase, operand);
        else
            tile_stage_operand(b, base, &item->in[k], phase, operand);
        length += snprintf(to + length, (size_t)(TILE_EXPRESSION - length), "%s%s%s", k ? ", " : "",
                           negative && k == 1 ? "-" : "", operand);
    }
    if (length >= TILE_EXPRESSION) tile_stage_fail(b, TILE_E_STATE);
}

/* A folded item, as an expression. */
static void print_folded(tile_stage_writer *b, int32_t item, const tile_native_spot *at,
                         int32_t phase, char to[TILE_EXPRESSION]) {
    const tile_row_item *i = &b->rows->item[item];
    const tile_op *op = i->node->op;
    tile_dtype in[TILE_OP_IN];
    char operands[TILE_EXPRESSION], name[64];
    tile_stage_types(b, i, in);
    (void)tile_native_function(b->w, op, in, tile_stage_dtype(b, item), name);
    const bool plain = b->plain, tried = plain && tile_native_is_guarded(op);
    if (tried) tile_native_try(b->w, name, name);
    b->tried = b->tried || tried;
    b->plain = plain && tile_native_shows_nan(op);
    tile_stage_operands(b, tile_native_base_at(b->plan, item, at), i, phase, operands);
    b->plain = plain;
    const int length =
        snprintf(to, TILE_EXPRESSION, "%s(%s%s)", name, tried ? "guard, " : "", operands);
    if (length >= TILE_EXPRESSION) tile_stage_fail(b, TILE_E_STATE);
}

/* An operand as an expression in the loop of a phase (-1: for a call). */
void tile_stage_operand(tile_stage_writer *b, tile_native_base base, const tile_row_operand *in,
                        int32_t phase, char to[TILE_EXPRESSION]) {
    const tile_native_spot at = tile_stage_spot(b, base, in);
    char index[40];
    to[0] = '\0';
    if (in->item < 0) {
        b->flats[in->flat] = true;
        (void)snprintf(to, TILE_EXPRESSION, "flat_%d", (int)in->flat);
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
    else if (tile_stage_along(b, item))
        (void)snprintf(to, TILE_EXPRESSION, "(int64_t)(start_%d + (uint64_t)(%s))",
                       (int)add_iota(b, in->item, at.ahead), index);
    else
        (void)snprintf(to, TILE_EXPRESSION, "(int64_t)start_%d",
                       (int)add_iota(b, in->item, at.ahead));
}

tile_native_base tile_stage_base(const tile_stage_writer *b, int32_t reader) {
    return tile_native_base_of(b->plan, b->stage, reader);
}
