/* native_guard.c: guarded products of generated code, tried without their guards. */
#include <string.h>

#include "core/dtype.h"
#include "core/native_group.h"
#include "core/native_stage.h"

static bool is_one_of(const tile_op *op, const char *const *names) {
    for (int k = 0; names[k]; k++)
        if (!strcmp(op->name, names[k])) return true;
    return false;
}

bool tile_native_is_guarded(const tile_op *op) {
    static const char *const names[] = {"guarded_mul", "guarded_div", NULL};
    return op->kind == TILE_OP_ELEMENTWISE && is_one_of(op, names);
}

/* Of reals alone: the elements of anything else are never NaN. */
bool tile_native_shows_nan(const tile_op *op) {
    static const char *const names[] = {"add",         "sub", "mul",  "div", "guarded_mul",
                                        "guarded_div", "neg", "sqrt", NULL};
    return op->kind == TILE_OP_ELEMENTWISE && is_one_of(op, names);
}

bool tile_native_is_product(const tile_op *op) {
    static const char *const names[] = {"mul", "div", "guarded_mul", "guarded_div", NULL};
    return op->kind == TILE_OP_ELEMENTWISE && is_one_of(op, names);
}

/* The functions */

typedef struct guarded {
    const char *function, *type;
    char sign;
} guarded;

static const guarded functions[] = {{"guarded_mul_f32", "float", '*'},
                                    {"guarded_div_f32", "float", '/'},
                                    {"guarded_mul_f64", "double", '*'},
                                    {"guarded_div_f64", "double", '/'}};

void tile_native_try(tile_native_writer *w, const char *function, char name[64]) {
    char spaced[72];
    (void)snprintf(spaced, sizeof spaced, " try_%.50s ", function);
    memcpy(name, spaced + 1, strlen(spaced) - 2);
    name[strlen(spaced) - 2] = '\0';
    if (!strstr(tile_text_get(&w->uses), spaced)) tile_text_add(&w->uses, "%s", spaced);
}

void tile_native_write_tries(const tile_native_writer *w, tile_text *out) {
    bool begun = false;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        const guarded *g = &functions[k];
        char spaced[72];
        (void)snprintf(spaced, sizeof spaced, " try_%s ", g->function);
        if (!strstr(tile_text_get(&w->uses), spaced)) continue;
        if (!begun)
            tile_text_add(out, "/* Without its guard it is the same where no NaN comes out. */\n");
        begun = true;
        tile_text_add(out,
                      "static inline %s try_%s(int guard, %s a, %s b) {\n"
                      "    return guard ? %s(a, b) : a %c b;\n}\n",
                      g->type, g->function, g->type, g->type, g->function, g->sign);
    }
    for (int k = 0; k < 2 && begun; k++) {
        const char *type = k ? "double" : "float";
        tile_text_add(out,
                      "static inline int is_nan_%s(const %s *x, int64_t n) {\n"
                      "    int nan = 0;\n"
                      "    for (int64_t i = 0; i < n; i++) nan |= x[i] != x[i];\n"
                      "    return nan;\n}\n",
                      type, type);
    }
}

/* What shows in a stage */

static void see(tile_stage_writer *b, const tile_row_operand *in) {
    if (!tile_native_is_strip(b->rows, in)) return;
    const tile_native_item *item = &b->plan->item[in->item];
    if (!item->kept && !item->folded && tile_stage_makes(b, in->item)) b->seen[in->item] = true;
}

void tile_stage_find_seen(tile_stage_writer *b) {
    memset(b->seen, 0, (size_t)b->rows->item_count);
    if (!b->tries || b->blocks) return;
    for (int32_t k = b->rows->op_count - 1; k >= 0; k--) {
        const int32_t number = tile_native_made(b->rows, k);
        if (b->rows->op[k].writes && b->stage == b->plan->stage_count - 1) {
            const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
            see(b, &in);
        }
        if (number < 0 || !tile_stage_makes(b, number)) continue;
        const tile_row_item *item = &b->rows->item[number];
        if (tile_stage_keeps(b, number)) b->seen[number] = true;
        if (!b->seen[number] || !tile_native_shows_nan(item->node->op)) continue;
        for (int32_t i = 0; i < item->n_in; i++) see(b, &item->in[i]);
    }
}

/* What shows in a group */

static int64_t count_of(tile_shape shape) {
    int64_t n = 1;
    for (int d = 0; d < shape.rank; d++) n *= shape.extent[d];
    return n;
}

/* Whether a strip's result has a place in the arena. */
static bool is_output(const tile_group_writer *b, int32_t k) {
    return tile_group_is_sum(b, k) || b->strip[k].out_step;
}

/* Whether a place in the arena meets what the group reads: then it cannot run again. */
static bool meets_reads(const tile_group_writer *b, size_t place, int32_t value) {
    const tile_value *made = &b->p->value[value];
    const size_t end = place + (size_t)count_of(made->shape) * tile_dtype_size(made->dtype);
    for (int32_t k = 0; k < b->read_count; k++) {
        const tile_value *read = &b->p->value[b->view[b->read[k].value].base];
        const size_t bytes = (size_t)count_of(read->shape) * tile_dtype_size(read->dtype);
        if (b->read[k].place < end && place < b->read[k].place + bytes) return true;
    }
    return false;
}

void tile_group_find_seen(tile_group_writer *b) {
    b->tried = false;
    memset(b->seen, 0, (size_t)b->step->count);
    if (b->pieces) return;
    for (int32_t k = b->step->count - 1; k >= 0; k--) {
        const tile_node *n = b->strip[k].node;
        if (is_output(b, k) && meets_reads(b, b->strip[k].out, n->out)) return;
    }
    bool some = false;
    for (int32_t k = b->step->count - 1; k >= 0; k--) {
        const tile_node *n = b->strip[k].node;
        b->seen[k] = b->seen[k] || is_output(b, k);
        some = some || (b->seen[k] && tile_native_is_guarded(n->op));
        if (!b->seen[k]) continue;
        if (!tile_native_shows_nan(n->op) && n->op != tile_native_fold_op(TILE_FOLD_SUM)) continue;
        for (int i = 0; i < b->strip[k].n_in; i++) {
            const int32_t maker = tile_group_maker(b, k, i);
            if (maker >= 0) b->seen[maker] = true;
        }
    }
    b->tried = some;
}

void tile_group_write_again(tile_group_writer *b, int32_t number) {
    tile_text *out = &b->w->body;
    const char *before = "    if (";
    tile_text_add(out,
                  "void tile_group_%d(char *arena, const tile_native_strip *strip) {\n"
                  "    group_%d(arena, 0);\n",
                  (int)number, (int)number);
    for (int32_t k = 0; k < b->step->count; k++) {
        const tile_dtype dtype = tile_group_dtype(b, k);
        const char *type = tile_native_type(dtype);
        if (!is_output(b, k) || !tile_is_float(dtype)) continue;
        tile_text_add(out, "%sis_nan_%s((const %s *)(arena + %zu), %lld)", before, type, type,
                      b->strip[k].out,
                      (long long)count_of(b->p->value[b->strip[k].node->out].shape));
        before = " ||\n        ";
    }
    tile_text_add(out, ")\n        group_%d(arena, 1);\n}\n", (int)number);
}
