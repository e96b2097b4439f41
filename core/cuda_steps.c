/* cuda_steps.c: the CUDA C text of parameters, loops, kept values and checks. */
#include "core/cuda_writer.h"

static const tile_value *value_of(const tile_cuda_writer *w, int32_t value) {
    return &w->p->value[value];
}

void tile_cuda_write_scalar(tile_cuda_writer *w, const tile_step *step) {
    const tile_node *n = step->node;
    const tile_value *v = value_of(w, n->out);
    const int which = (int)n->attrs.n[0];
    if (w->placed[n->out]) tile_cuda_use_arena(w);
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

/* The next carried tiles; those that are other arguments go by a stage. */
static void write_yields(tile_cuda_writer *w, const tile_carry *carry, int32_t count) {
    bool staged = false;
    tile_cuda_use_arena(w);
    for (int32_t k = 0; k < count; k++) {
        if (!carry[k].staged) continue;
        staged = true;
        write_copy(w, carry[k].stage, carry[k].yield, carry[k].bytes);
    }
    if (staged) tile_cuda_use_arena(w);
    for (int32_t k = 0; k < count; k++) {
        const size_t from = carry[k].staged ? carry[k].stage : carry[k].yield;
        if (from != carry[k].argument) write_copy(w, carry[k].argument, from, carry[k].bytes);
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

void tile_cuda_write_loop(tile_cuda_writer *w, int32_t at) {
    const tile_step *step = &w->plan->step[at];
    const tile_node *n = step->node;
    const tile_carry *carry = &w->plan->carry[step->first];
    const int32_t index = w->p->region[n->region].argument;
    const bool down = n->attrs.n[0] == 1, is_while = tile_loop_is_while(n);
    char count[TILE_CUDA_OPERAND], go[TILE_CUDA_OPERAND] = "";
    tile_cuda_use_arena(w);
    tile_cuda_single(w, tile_node_in(w->p, n, 0), count);
    tile_cuda_margin(w);
    tile_text_add(w->out, "const int64_t n%d = %s;\n", (int)index, count);
    for (int32_t k = 0; k < step->count; k++)
        write_copy(w, carry[k].argument, carry[k].initial, carry[k].bytes);
    tile_cuda_use_arena(w);
    if (is_while) (void)snprintf(go, sizeof go, "arena[%zu] != 0", carry[TILE_LOOP_GO].argument);
    tile_cuda_margin(w);
    tile_text_add(w->out, "for (int64_t k%d = 0; k%d < n%d%s%s; k%d++) {\n", (int)index, (int)index,
                  (int)index, is_while ? " && " : "", go, (int)index);
    w->depth++;
    tile_cuda_margin(w);
    tile_text_add(w->out, "const int64_t v%d = ", (int)index);
    if (down) tile_text_add(w->out, "n%d - 1 - ", (int)index);
    tile_text_add(w->out, "k%d;\n", (int)index);
    if (w->placed[index]) tile_cuda_use_arena(w);
    tile_cuda_place_lone(w, index);
    tile_cuda_write_steps(w, at + 1, step->body);
    write_yields(w, carry, step->count);
    tile_cuda_use_arena(w);
    w->depth--;
    tile_cuda_margin(w);
    tile_text_add(w->out, "}\n");
    if (!is_while) return;
    tile_cuda_margin(w);
    tile_text_add(w->out, "if (%s) {\n", go);
    char most[TILE_CUDA_OPERAND];
    (void)snprintf(most, sizeof most, "n%d", (int)index);
    write_end(w, n, most, "0", "0");
}

/* keep and kept */
void tile_cuda_write_kept(tile_cuda_writer *w, const tile_step *step) {
    const tile_node *n = step->node;
    const bool keep = n->op == &tile_op_keep;
    const int slot = (int)n->attrs.n[0];
    tile_cuda_use_arena(w);
    tile_cuda_margin(w);
    tile_text_add(w->out, "{\n");
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
    bool arena = false;
    for (int k = 0; k < 3; k++) {
        const int32_t v = tile_node_in(w->p, n, k);
        tile_cuda_single(w, v, number[k]);
        arena = arena || !w->lone[v];
    }
    if (arena) tile_cuda_use_arena(w);
    tile_cuda_margin(w);
    tile_text_add(w->out, "if (%s < %s || %s >= %s) {\n", number[0], number[1], number[0],
                  number[2]);
    write_end(w, n, number[0], number[1], number[2]);
}
