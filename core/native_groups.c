/* native_groups.c: the C text of the groups of a block plan: a function each. */
#include "core/memory.h"
#include "core/native_group.h"
#include "core/status.h"

enum { ELEMENTS_MIN = 8, OPS_MIN = 2 };

void tile_group_types(const tile_group_writer *b, int32_t k, tile_dtype in[TILE_OP_IN]) {
    for (int i = 0; i < TILE_OP_IN; i++) in[i] = TILE_F32;
    for (int i = 0; i < b->strip[k].n_in; i++)
        in[i] = b->p->value[tile_node_in(b->p, b->strip[k].node, i)].dtype;
}

void tile_group_write_op(tile_group_writer *b, int32_t k, const char *margin,
                         tile_group_operand operand) {
    const tile_strip_step *s = &b->strip[k];
    tile_text *out = &b->w->body;
    tile_dtype in[TILE_OP_IN];
    char name[64], expression[TILE_GROUP_EXPRESSION];
    tile_group_types(b, k, in);
    (void)tile_native_function(b->w, s->node->op, in, tile_group_dtype(b, k), name);
    const bool tried = b->tried && b->seen[k] && tile_native_is_guarded(s->node->op);
    if (tried) tile_native_try(b->w, name, name);
    tile_text_add(out, "%sconst %s v%d = %s(%s", margin, tile_native_type(tile_group_dtype(b, k)),
                  (int)s->node->out, name, tried ? "guard, " : "");
    for (int i = 0; i < s->n_in; i++) {
        operand(b, k, i, expression);
        tile_text_add(out, i ? ", %s" : "%s", expression);
    }
    tile_text_add(out, "); /* %s */\n", s->node->op->math);
}

/* Finds what the group makes, and whether maths functions are called. */
static bool find_called(tile_group_writer *b) {
    bool some = false;
    for (int32_t k = 0; k < b->step->count; k++) {
        tile_dtype in[TILE_OP_IN];
        char name[64];
        tile_group_types(b, k, in);
        b->made[b->strip[k].node->out] = k;
        b->called[k] =
            !tile_group_is_sum(b, k) &&
            !tile_native_function(NULL, b->strip[k].node->op, in, tile_group_dtype(b, k), name);
        some = some || b->called[k];
    }
    return some;
}

/* Whether the interpreter has no strips for it, or would be slower. */
static bool is_worth(const tile_group_writer *b) {
    int32_t plain = 0;
    for (int32_t k = 0; k < b->step->count; k++) plain += !b->called[k];
    for (int32_t k = 0; k < b->read_count; k++)
        if (b->read[k].kind != TILE_READ_SAME) return true;
    return b->sum_count || (plain >= OPS_MIN && b->step->elements >= ELEMENTS_MIN);
}

static tile_status write_group(tile_group_writer *b, int32_t step) {
    tile_native_plan *plan = b->w->plan;
    const bool called = find_called(b);
    TILE_TRY(tile_group_find_nest(b));
    if (!is_worth(b)) return TILE_OK;
    bool moved = false;
    for (int32_t k = 0; k < b->read_count; k++) moved = moved || b->read[k].kind == TILE_READ_MOVED;
    b->pieces = called || (moved && !b->sum_count && b->rank > 1 &&
                           b->extent[b->rank - 1] < TILE_NEST_ROW_MIN);
    plan->group[step] = plan->group_count++;
    const int number = (int)plan->group[step];
    tile_group_find_seen(b);
    tile_text_add(&b->w->body, "\n/* Elementwise ops of a block, on %lld elements. */\n",
                  (long long)b->step->elements);
    if (b->tried)
        tile_text_add(&b->w->body,
                      "static inline __attribute__((always_inline)) void group_%d(\n"
                      "    char *arena, const int guard) {\n",
                      number);
    else
        tile_text_add(&b->w->body,
                      "void tile_group_%d(char *arena, const tile_native_strip *strip) {\n",
                      number);
    if (b->pieces)
        TILE_TRY(tile_group_write_pieces(b));
    else
        tile_group_write_rows(b);
    tile_text_add(&b->w->body, "}\n");
    if (b->tried) tile_group_write_again(b, number);
    return TILE_OK;
}

static tile_status write_groups(tile_group_writer *b) {
    tile_native_plan *plan = b->w->plan;
    for (int32_t k = 0; k < plan->blocks.step_count; k++) {
        plan->group[k] = -1;
        b->step = &plan->blocks.step[k];
        if (b->step->kind != TILE_STEP_STRIPS) continue;
        b->strip = &plan->blocks.strip[b->step->first];
        TILE_TRY(write_group(b, k));
        for (int32_t i = 0; i < b->step->count; i++) b->made[b->strip[i].node->out] = -1;
        for (int32_t i = 0; i < b->read_count; i++) b->read_of[b->read[i].value] = -1;
    }
    return TILE_OK;
}

/* Folds as the interpreter has them (ops/reduce/reduce_fold.inc, one block of it). */
static void write_folds(tile_text *to, const char *name, const char *type) {
    static const struct {
        const char *name, *formula, *first;
    } fold[] = {{"sum", "a + b", "0"},
                {"least", "b < a || __builtin_isnan(a) ? b : a", "x[0]"},
                {"most", "b > a || __builtin_isnan(a) ? b : a", "x[0]"}};
    for (int f = 0; f < TILE_FOLDS; f++)
        tile_text_add(
            to,
            "\nstatic inline %s fold_%s_%s(%s a, %s b) {\n    return %s;\n}\n"
            "/* Of a row of at most 1024 elements, in the interpreter's order. */\n"
            "static inline %s row_%s_%s(const %s *x, int64_t n) {\n"
            "    %s fold[32];\n    int64_t i = 0;\n"
            "    for (int k = 0; k < 32; k++) fold[k] = %s;\n"
            "    for (; i + 32 <= n; i += 32)\n"
            "        for (int k = 0; k < 32; k++) fold[k] = fold_%s_%s(fold[k], x[i + k]);\n"
            "    for (int k = 0; i + k < n; k++) fold[k] = fold_%s_%s(fold[k], x[i + k]);\n"
            "    for (int k = 0; k < 16; k++) fold[k] = fold_%s_%s(fold[k], fold[k + 16]);\n"
            "    for (int k = 0; k < 8; k++) fold[k] = fold_%s_%s(fold[k], fold[k + 8]);\n"
            "    for (int k = 0; k < 4; k++) fold[k] = fold_%s_%s(fold[k], fold[k + 4]);\n"
            "    for (int k = 0; k < 2; k++) fold[k] = fold_%s_%s(fold[k], fold[k + 2]);\n"
            "    fold[0] = fold_%s_%s(fold[0], fold[1]);\n"
            "    return fold[0];\n}\n",
            type, fold[f].name, name, type, type, fold[f].formula, type, fold[f].name, name, type,
            type, fold[f].first, fold[f].name, name, fold[f].name, name, fold[f].name, name,
            fold[f].name, name, fold[f].name, name, fold[f].name, name, fold[f].name, name);
}

tile_status tile_native_write_groups(tile_native_writer *w) {
    tile_native_plan *plan = w->plan;
    const tile_program *p = &plan->exe->program;
    const size_t strips = (size_t)plan->blocks.strip_count + 1;
    const size_t values = (size_t)p->value_count + 1;
    tile_group_writer b = {.w = w,
                           .p = p,
                           .view = plan->view,
                           .made = tile_alloc(values * sizeof *b.made),
                           .read_of = tile_alloc(values * sizeof *b.read_of),
                           .phase = tile_alloc(strips * sizeof *b.phase),
                           .called = tile_alloc(strips),
                           .seen = tile_alloc(strips),
                           .array = tile_alloc(strips)};
    plan->group = tile_alloc(((size_t)plan->blocks.step_count + 1) * sizeof *plan->group);
    tile_status status = TILE_E_MEMORY;
    if (b.made && b.read_of && b.phase && b.called && b.seen && b.array && plan->group) {
        for (int32_t v = 0; v < p->value_count; v++) b.made[v] = b.read_of[v] = -1;
        write_folds(&w->body, "f32", "float");
        write_folds(&w->body, "f64", "double");
        status = write_groups(&b);
    }
    tile_free(b.made);
    tile_free(b.read_of);
    tile_free(b.phase);
    tile_free(b.called);
    tile_free(b.seen);
    tile_free(b.array);
    tile_free(b.read);
    tile_free(b.sum);
    return status;
}
