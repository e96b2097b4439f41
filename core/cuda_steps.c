/* cuda_steps.c: the CUDA C text of parameters, loops, kept values and checks. */
#include "core/cuda_writer.h"

static const tile_value *value_of(const tile_cuda_writer *w, int32_t value) {
    return &w->p->value[value];
}

void tile_cuda_write_scalar(tile_cuda_writer *w, const tile_step *step) {
    const tile_node *n = step->node;
    const tile_value *v = value_of(w, n->out);
    const int which = (int)n->attrs.n[0];
    tile_cuda_will_place(w, n->out);
    tile_cuda_begin(w);
    tile_cuda_margin(w);
    tile_text_add(w->out, "const %s v%d = ", tile_cuda_type(v->dtype), (int)n->out);
    if (n->op == &tile_op_param)
        tile_text_add(w->out, "*(const %s *)&l.scalar[%d];\n", tile_cuda_type(v->dtype), which);
    else if (n->op == &tile_op_block_index)
        tile_text_add(w->out, "block%d;\n", which);
    else if (n->op == &tile_op_extent)
        tile_text_add(w->out, "l.array[%d].extent[%d];\n", which, (int)n->attrs.n[1]);
    else
        tile_text_add(w->out, "l.head.%s[%d];\n", n->op == &tile_op_grid_size ? "grid" : "domain",
                      which);
    tile_cuda_place_lone(w, n->out);
}

static void write_copy(tile_cuda_writer *w, size_t to, size_t from, size_t bytes) {
    tile_cuda_margin(w);
    tile_text_add(w->out, "tile_cuda_copy(arena + %zu, arena + %zu, %zu);\n", to, from, bytes);
}

/* Carried tiles: those of one element are variables, the others are copied in the arena. */

static bool is_variable(const tile_cuda_writer *w, const tile_region *body, int32_t k) {
    return w->order->lone[body->argument + 1 + k];
}

static void touch_copy(tile_cuda_writer *w, size_t to, size_t from, size_t bytes) {
    tile_cuda_touch(w, to, bytes, true);
    tile_cuda_touch(w, from, bytes, false);
}

static void begin_variables(tile_cuda_writer *w, const tile_node *n, const tile_region *body) {
    for (int32_t k = 0; k < body->yield_count; k++) {
        const int32_t v = body->argument + 1 + k;
        char from[TILE_CUDA_OPERAND];
        if (!is_variable(w, body, k)) continue;
        tile_cuda_needs(w, tile_node_in(w->p, n, 1 + k));
        tile_cuda_begin(w);
        tile_cuda_single(w, tile_node_in(w->p, n, 1 + k), from);
        TILE_CUDA_LINE(w, "%s v%d = %s;\n", tile_cuda_type(value_of(w, v)->dtype), (int)v, from);
    }
}

static void next_variables(tile_cuda_writer *w, const tile_region *body) {
    for (int32_t k = 0; k < body->yield_count; k++) {
        const int32_t v = body->argument + 1 + k;
        char from[TILE_CUDA_OPERAND];
        if (!is_variable(w, body, k)) continue;
        tile_cuda_needs(w, body->yield[k]);
        tile_cuda_begin(w);
        tile_cuda_single(w, body->yield[k], from);
        TILE_CUDA_LINE(w, "const %s t%d = %s;\n", tile_cuda_type(value_of(w, v)->dtype), (int)v,
                       from);
    }
    for (int32_t k = 0; k < body->yield_count; k++)
        if (is_variable(w, body, k))
            TILE_CUDA_LINE(w, "v%d = t%d;\n", (int)(body->argument + 1 + k),
                           (int)(body->argument + 1 + k));
}

/* The next carried tiles; those that are other arguments go by a stage. */
static void write_yields(tile_cuda_writer *w, const tile_carry *carry, const tile_region *body) {
    next_variables(w, body);
    for (int32_t k = 0; k < body->yield_count; k++) {
        if (is_variable(w, body, k) || !carry[k].staged) continue;
        touch_copy(w, carry[k].stage, carry[k].yield, carry[k].bytes);
        tile_cuda_begin(w);
        write_copy(w, carry[k].stage, carry[k].yield, carry[k].bytes);
    }
    for (int32_t k = 0; k < body->yield_count; k++) {
        const size_t from = carry[k].staged ? carry[k].stage : carry[k].yield;
        if (is_variable(w, body, k) || from == carry[k].argument) continue;
        touch_copy(w, carry[k].argument, from, carry[k].bytes);
        tile_cuda_begin(w);
        write_copy(w, carry[k].argument, from, carry[k].bytes);
    }
}

static void write_end(tile_cuda_writer *w, const tile_node *n, const char *value, const char *low,
                      const char *high) {
    w->depth++;
    tile_cuda_margin(w);
    tile_text_add(w->out, "tile_cuda_fail(&l.head, order, %d, %s, %s, %s);\n",
                  (int)(n - w->p->node), value, low, high);
    tile_cuda_margin(w);
    tile_text_add(w->out, "return;\n");
    w->depth--;
    tile_cuda_margin(w);
    tile_text_add(w->out, "}\n");
}

/* What the arena holds of variables. */
static void place_variables(tile_cuda_writer *w, int32_t first, int32_t count) {
    for (int32_t v = first; v < first + count; v++) {
        if (!w->order->lone[v]) continue;
        tile_cuda_will_place(w, v);
        tile_cuda_begin(w);
        tile_cuda_place_lone(w, v);
    }
}

static void begin_loop(tile_cuda_writer *w, const tile_step *step, const tile_region *body) {
    const tile_node *n = step->node;
    const tile_carry *carry = &w->plan->carry[step->first];
    char count[TILE_CUDA_OPERAND];
    tile_cuda_needs(w, tile_node_in(w->p, n, 0));
    tile_cuda_begin(w);
    tile_cuda_single(w, tile_node_in(w->p, n, 0), count);
    TILE_CUDA_LINE(w, "const int64_t n%d = %s;\n", (int)body->argument, count);
    begin_variables(w, n, body);
    for (int32_t k = 0; k < body->yield_count; k++) {
        if (is_variable(w, body, k)) continue;
        touch_copy(w, carry[k].argument, carry[k].initial, carry[k].bytes);
        tile_cuda_begin(w);
        write_copy(w, carry[k].argument, carry[k].initial, carry[k].bytes);
    }
    tile_cuda_fence(w);
}

static void end_loop(tile_cuda_writer *w, const tile_node *n, const tile_region *body) {
    const int index = (int)body->argument;
    if (tile_loop_is_while(n)) {
        char most[TILE_CUDA_OPERAND];
        (void)snprintf(most, sizeof most, "n%d", index);
        TILE_CUDA_LINE(w, "if (v%d) {\n", index + 1 + TILE_LOOP_GO);
        write_end(w, n, most, "0", "0");
    }
    for (int32_t k = 0; k < n->n_out; k++)
        if (w->order->lone[n->out + k])
            TILE_CUDA_LINE(w, "const %s v%d = v%d;\n",
                           tile_cuda_type(value_of(w, n->out + k)->dtype), (int)(n->out + k),
                           (int)(index + 1 + k));
    place_variables(w, n->out, n->n_out);
}

/* Before a loop, and at the end of each turn, all that was touched is done. */
void tile_cuda_write_loop(tile_cuda_writer *w, int32_t at) {
    const tile_step *step = &w->plan->step[at];
    const tile_node *n = step->node;
    const tile_region *body = &w->p->region[n->region];
    const int index = (int)body->argument;
    const bool down = n->attrs.n[0] == 1;
    begin_loop(w, step, body);
    TILE_CUDA_LINE(w, "for (int64_t k%d = 0; k%d < n%d", index, index, index);
    if (tile_loop_is_while(n)) tile_text_add(w->out, " && v%d", index + 1 + TILE_LOOP_GO);
    tile_text_add(w->out, "; k%d++) {\n", index);
    w->depth++;
    TILE_CUDA_LINE(w, "const int64_t v%d = ", index);
    if (down) tile_text_add(w->out, "n%d - 1 - ", index);
    tile_text_add(w->out, "k%d;\n", index);
    place_variables(w, index, 1 + body->yield_count);
    tile_cuda_write_steps(w, at + 1, step->body);
    write_yields(w, &w->plan->carry[step->first], body);
    tile_cuda_fence(w);
    w->depth--;
    TILE_CUDA_LINE(w, "}\n");
    end_loop(w, n, body);
}

/* keep and kept */
void tile_cuda_write_kept(tile_cuda_writer *w, const tile_step *step) {
    const tile_node *n = step->node;
    const bool keep = n->op == &tile_op_keep;
    const int slot = (int)n->attrs.n[0];
    for (int32_t k = keep ? 1 : 0; k < n->n_in; k++) tile_cuda_needs(w, tile_node_in(w->p, n, k));
    tile_cuda_touch(w, step->place, step->bytes, !keep);
    tile_cuda_begin(w);
    TILE_CUDA_LINE(w, "{\n");
    w->depth++;
    tile_cuda_margin(w);
    tile_text_add(w->out, "const int64_t at[] = {0");
    for (int32_t k = keep ? 1 : 0; k < n->n_in; k++) {
        char number[TILE_CUDA_OPERAND];
        tile_cuda_single(w, tile_node_in(w->p, n, k), number);
        tile_text_add(w->out, ", %s", number);
    }
    tile_text_add(w->out, "};\n");
    tile_cuda_margin(w);
    tile_text_add(
        w->out, "unsigned char *kept = tile_cuda_kept(&l.head, &l.slot[%d], linear, at + 1, %d);\n",
        slot, (int)step->count);
    tile_cuda_margin(w);
    if (keep)
        tile_text_add(w->out, "if (kept) tile_cuda_copy(kept, arena + %zu, %zu);\n", step->place,
                      step->bytes);
    else
        tile_text_add(w->out,
                      "if (kept) tile_cuda_copy(arena + %zu, kept, %zu); else "
                      "tile_cuda_clear(arena + %zu, %zu);\n",
                      step->place, step->bytes, step->place, step->bytes);
    w->depth--;
    tile_cuda_margin(w);
    tile_text_add(w->out, "}\n");
}

void tile_cuda_write_within(tile_cuda_writer *w, const tile_step *step) {
    const tile_node *n = step->node;
    char number[3][TILE_CUDA_OPERAND];
    for (int k = 0; k < 3; k++) {
        tile_cuda_needs(w, tile_node_in(w->p, n, k));
        tile_cuda_single(w, tile_node_in(w->p, n, k), number[k]);
    }
    tile_cuda_begin(w);
    tile_cuda_margin(w);
    tile_text_add(w->out, "if (%s < %s || %s >= %s) {\n", number[0], number[1], number[0],
                  number[2]);
    write_end(w, n, number[0], number[1], number[2]);
}
