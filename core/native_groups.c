/* native_groups.c: the C text of the groups of elementwise ops of a block plan: one loop each. */
#include "core/memory.h"
#include "core/native_plan.h"
#include "core/status.h"

enum { ELEMENTS_MIN = 8, OPS_MIN = 2, EXPRESSION = 64, ARRAYS_MAX = 96 };

typedef struct writer {
    tile_native_writer *w;
    const tile_program *p;
    const tile_step *step;
    const tile_strip_step *strip; /* of the step */
    int32_t *made;                /* per value: the strip of the step that makes it, or -1 */
    int32_t *phase;               /* per strip: it is there after the loop of this number */
    bool *called, *array;
    int32_t phases;
    bool blocks;
} writer;

static tile_dtype out_dtype(const writer *b, int32_t k) {
    return b->p->value[b->strip[k].node->out].dtype;
}

static void types_of(const writer *b, int32_t k, tile_dtype in[TILE_OP_IN]) {
    for (int i = 0; i < TILE_OP_IN; i++) in[i] = TILE_F32;
    for (int i = 0; i < b->strip[k].n_in; i++)
        in[i] = b->p->value[tile_node_in(b->p, b->strip[k].node, i)].dtype;
}

static int32_t maker_of(const writer *b, int32_t k, int i) {
    return b->made[tile_node_in(b->p, b->strip[k].node, i)];
}

/* Whether the step is worth a function. */
static bool is_worth(writer *b) {
    int32_t plain = 0;
    for (int32_t k = 0; k < b->step->count; k++) {
        tile_dtype in[TILE_OP_IN];
        char name[64];
        types_of(b, k, in);
        b->called[k] = !tile_native_function(NULL, b->strip[k].node->op, in, out_dtype(b, k), name);
        plain += !b->called[k];
    }
    return plain >= OPS_MIN && b->step->elements >= ELEMENTS_MIN;
}

static void find_phases(writer *b) {
    b->phases = 1;
    b->blocks = false;
    for (int32_t k = 0; k < b->step->count; k++) {
        b->made[b->strip[k].node->out] = k;
        b->phase[k] = 0;
        b->array[k] = b->called[k];
        b->blocks = b->blocks || b->called[k];
        for (int i = 0; i < b->strip[k].n_in; i++) {
            const int32_t j = maker_of(b, k, i);
            if (j < 0) continue;
            const int32_t phase = b->phase[j] + (b->called[j] && !b->called[k]);
            if (phase > b->phase[k]) b->phase[k] = phase;
        }
        for (int i = 0; i < b->strip[k].n_in; i++) {
            const int32_t j = maker_of(b, k, i);
            if (j >= 0 && (b->called[k] || b->phase[j] != b->phase[k])) b->array[j] = true;
        }
        const int32_t after = b->phase[k] + b->called[k] + 1;
        if (after > b->phases) b->phases = after;
    }
}

/* An operand: in the loop of a phase; as an argument of a call (phase -1): where it lies. */
static void print_operand(const writer *b, int32_t k, int i, int32_t phase, char to[EXPRESSION]) {
    const int32_t value = tile_node_in(b->p, b->strip[k].node, i);
    const int32_t j = b->made[value];
    const char *type = tile_native_type(b->p->value[value].dtype);
    if (j >= 0 && b->phase[j] == phase && !b->called[j])
        (void)snprintf(to, EXPRESSION, "v%d", (int)value);
    else if (j >= 0)
        (void)snprintf(to, EXPRESSION, phase < 0 ? "a%d" : "a%d[x]", (int)value);
    else if (phase < 0)
        (void)snprintf(to, EXPRESSION, "(const %s *)(arena + %zu) + from", type, b->strip[k].in[i]);
    else
        (void)snprintf(to, EXPRESSION, "((const %s *)(arena + %zu))[%sx]", type, b->strip[k].in[i],
                       b->blocks ? "from + " : "");
}

static void write_op(writer *b, int32_t k) {
    const tile_strip_step *s = &b->strip[k];
    const char *margin = b->blocks ? "            " : "        ";
    const char *type = tile_native_type(out_dtype(b, k));
    tile_text *out = &b->w->body;
    tile_dtype in[TILE_OP_IN];
    char name[64], operand[EXPRESSION];
    types_of(b, k, in);
    (void)tile_native_function(b->w, s->node->op, in, out_dtype(b, k), name);
    tile_text_add(out, "%sconst %s v%d = %s(", margin, type, (int)s->node->out, name);
    for (int i = 0; i < s->n_in; i++) {
        print_operand(b, k, i, b->phase[k], operand);
        tile_text_add(out, i ? ", %s" : "%s", operand);
    }
    tile_text_add(out, "); /* %s */\n", s->node->op->math);
    if (s->out_step)
        tile_text_add(out, "%s((%s *)(arena + %zu))[%sx] = v%d;\n", margin, type, s->out,
                      b->blocks ? "from + " : "", (int)s->node->out);
    if (b->array[k])
        tile_text_add(out, "%sa%d[x] = v%d;\n", margin, (int)s->node->out, (int)s->node->out);
}

static void write_loop(writer *b, int32_t phase) {
    const char *margin = b->blocks ? "        " : "    ";
    bool begun = false;
    for (int32_t k = 0; k < b->step->count; k++) {
        if (b->phase[k] != phase || b->called[k]) continue;
        if (!begun)
            tile_text_add(&b->w->body, "%s%s%sfor (int64_t x = 0; x < %s; x++) {\n", margin,
                          TILE_NATIVE_LOOP, margin, b->blocks ? "m" : "n");
        begun = true;
        write_op(b, k);
    }
    if (begun) tile_text_add(&b->w->body, "%s}\n", margin);
}

static tile_status write_call(writer *b, int32_t k) {
    const tile_strip_step *s = &b->strip[k];
    tile_text *out = &b->w->body;
    char operand[EXPRESSION];
    tile_dtype in[TILE_OP_IN];
    int32_t strip;
    types_of(b, k, in);
    TILE_TRY(tile_native_strip_of(b->w->plan, s->node->op, in, out_dtype(b, k), &strip));
    tile_text_add(out, "        { /* %%%d = %s: %s */\n            const void *const in[] = {",
                  (int)s->node->out, s->node->op->name, s->node->op->math);
    for (int i = 0; i < s->n_in; i++) {
        print_operand(b, k, i, -1, operand);
        tile_text_add(out, i ? ", %s" : "%s", operand);
    }
    const char *type = tile_native_type(out_dtype(b, k));
    tile_text_add(out, "};\n            strip[%d](in, a%d, m);\n", (int)strip, (int)s->node->out);
    if (s->out_step)
        tile_text_add(out,
                      "            %s *to = (%s *)(arena + %zu) + from;\n"
                      "            for (int64_t x = 0; x < m; x++) to[x] = a%d[x];\n",
                      type, type, s->out, (int)s->node->out);
    tile_text_add(out, "        }\n");
    return TILE_OK;
}

static tile_status write_group(writer *b, int32_t number) {
    tile_text *out = &b->w->body;
    int32_t arrays = 0;
    for (int32_t k = 0; k < b->step->count; k++) arrays += b->array[k];
    TILE_CHECK(arrays <= ARRAYS_MAX, TILE_E_STATE, "%s: a group of too many calls", b->p->name);
    tile_text_add(out,
                  "\n/* Elementwise ops of a block, on %lld elements. */\n"
                  "void tile_group_%d(char *arena, const tile_native_strip *strip) {\n"
                  "    const int64_t n = %lld;\n    (void)strip;\n",
                  (long long)b->step->elements, (int)number, (long long)b->step->elements);
    if (b->blocks)
        tile_text_add(out,
                      "    for (int64_t from = 0; from < n; from += TILE_BLOCK) {\n"
                      "        const int64_t m = n - from < TILE_BLOCK ? n - from : TILE_BLOCK;\n");
    for (int32_t k = 0; k < b->step->count; k++)
        if (b->array[k])
            tile_text_add(out, "        %s a%d[TILE_BLOCK];\n", tile_native_type(out_dtype(b, k)),
                          (int)b->strip[k].node->out);
    for (int32_t phase = 0; phase < b->phases; phase++) {
        write_loop(b, phase);
        for (int32_t k = 0; k < b->step->count; k++)
            if (b->phase[k] == phase && b->called[k]) TILE_TRY(write_call(b, k));
    }
    tile_text_add(out, "%s}\n", b->blocks ? "    }\n" : "");
    return TILE_OK;
}

static tile_status write_groups(writer *b) {
    tile_native_plan *plan = b->w->plan;
    const tile_plan *blocks = &plan->exe->blocks;
    for (int32_t k = 0; k < blocks->step_count; k++) {
        plan->group[k] = -1;
        b->step = &blocks->step[k];
        if (b->step->kind != TILE_STEP_STRIPS) continue;
        b->strip = &blocks->strip[b->step->first];
        if (!is_worth(b)) continue;
        find_phases(b);
        plan->group[k] = plan->group_count++;
        TILE_TRY(write_group(b, plan->group[k]));
        for (int32_t i = 0; i < b->step->count; i++) b->made[b->strip[i].node->out] = -1;
    }
    return TILE_OK;
}

tile_status tile_native_write_groups(tile_native_writer *w) {
    const tile_program *p = &w->plan->exe->program;
    const tile_plan *blocks = &w->plan->exe->blocks;
    const size_t strips = (size_t)blocks->strip_count + 1;
    writer b = {.w = w,
                .p = p,
                .made = tile_alloc(((size_t)p->value_count + 1) * sizeof *b.made),
                .phase = tile_alloc(strips * sizeof *b.phase),
                .called = tile_alloc(strips),
                .array = tile_alloc(strips)};
    w->plan->group = tile_alloc(((size_t)blocks->step_count + 1) * sizeof *w->plan->group);
    tile_status status = TILE_E_MEMORY;
    if (b.made && b.phase && b.called && b.array && w->plan->group) {
        for (int32_t v = 0; v < p->value_count; v++) b.made[v] = -1;
        status = write_groups(&b);
    }
    tile_free(b.made);
    tile_free(b.phase);
    tile_free(b.called);
    tile_free(b.array);
    return status;
}
