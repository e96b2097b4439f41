/* native_guard.c: guarded products of generated code, tried without their guards. */
#include <string.h>

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
    static const char *const names[] = {"add", "sub",  "mul", "div", "guarded_mul", "guarded_div",
                                        "neg", "sqrt", NULL};
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
