/* adjoint_primal.c: forward values in the adjoint program: recomputed where the arrays as they were
 * before the launch allow it, else kept by the forward launch. */
#include "core/adjoint_state.h"
#include "core/memory.h"
#include "core/status.h"

uint32_t tile_class_members(const tile_program *f, const tile_adjoint_key *key, int cls) {
    uint32_t members = 0;
    for (int k = 0; k < f->param_count; k++)
        if (f->param[k].kind == TILE_PARAM_ARRAY && key->same[k] == cls)
            members |= (uint32_t)1 << k;
    return members;
}

/* Whether a loop around the node writes one of the parameters. */
static bool loop_writes(const tile_program *f, const tile_analysis *fa, const tile_node *node,
                        uint32_t params) {
    if (node->parent <= 0) return false;
    for (int32_t k = 0; k < fa->order_count; k++) {
        const tile_node *n = &f->node[fa->order[k]];
        if (n->op->access > TILE_ACCESS_LOAD && (params >> n->param & 1u) && n->parent > 0)
            return true;
    }
    return false;
}

/* Whether the parameters are written before the node, in program order. */
static bool written_before(const tile_program *f, const tile_analysis *fa, const tile_node *node,
                           uint32_t params) {
    for (int32_t k = 0; k < fa->order_count; k++) {
        const tile_node *n = &f->node[fa->order[k]];
        if (n == node) return false;
        if (n->op->access > TILE_ACCESS_LOAD && (params >> n->param & 1u)) return true;
    }
    return false;
}

static uint32_t arrays_of_dtype(const tile_program *f, tile_dtype dtype) {
    uint32_t params = 0;
    for (int k = 0; k < f->param_count; k++)
        if (f->param[k].kind == TILE_PARAM_ARRAY && f->param[k].dtype == dtype)
            params |= (uint32_t)1 << k;
    return params;
}

bool tile_load_must_be_kept(const tile_program *f, const tile_analysis *fa,
                            const tile_adjoint_key *key, const tile_node *load) {
    const uint32_t members = key->apart ? tile_class_members(f, key, key->same[load->param])
                                        : arrays_of_dtype(f, f->param[load->param].dtype);
    if (!(fa->written & members)) return false;
    if (!key->apart) return true;
    return written_before(f, fa, load, members) || loop_writes(f, fa, load, members) ||
           !tile_blocks_apart(f, fa, members);
}

static bool must_keep(const tile_adjoint *a, const tile_value *v) {
    const tile_node *n = &a->forward->node[v->node];
    if (n->op == &tile_op_loop) return v->result != -1;
    if (n->op->access > TILE_ACCESS_LOAD) return true;
    return n->op->access && tile_load_must_be_kept(a->forward, a->analysis, a->key, n);
}

/* A launch-known value, made in the kernel's body whatever the place. */
static tile known_at_launch(tile_adjoint *a, int32_t value) {
    const tile_node *n = &a->forward->node[a->forward->value[value].node];
    if (n->op == &tile_op_param) return (tile){a->b, a->b->program.param[n->attrs.n[0]].value};
    if (n->op == &tile_op_grid_size || n->op == &tile_op_domain_size)
        return tile_builder_axis_value(a->b, &tile_op_domain_size, (int)n->attrs.n[0]);
    if (n->op == &tile_op_extent)
        return tile_builder_extent(a->b, (int32_t)n->attrs.n[0], (int)n->attrs.n[1]);
    tile_emission e = {.op = n->op,
                       .n_in = n->n_in,
                       .attrs = n->attrs,
                       .has_shape = n->op->kind != TILE_OP_ELEMENTWISE,
                       .shape = a->forward->value[value].shape,
                       .has_dtype = true,
                       .dtype = a->forward->value[value].dtype};
    for (int32_t k = 0; k < n->n_in && k < TILE_OP_IN; k++)
        e.in[k] = known_at_launch(a, tile_node_in(a->forward, n, k));
    return tile_emit(a->b, &e);
}

static bool new_slot(tile_adjoint *a, int32_t value, int32_t region) {
    tile_program *p = &a->b->program;
    const tile_value *v = &a->forward->value[value];
    if (tile_grow(&a->kept, &a->kept_capacity, a->kept_count + 1, sizeof *a->kept) ||
        tile_grow(&p->slot, &p->slot_capacity, p->slot_count + 1, sizeof *p->slot)) {
        tile_builder_fail(a->b, TILE_E_MEMORY, "%s", tile_last_error());
        return false;
    }
    tile_slot slot = {.dtype = v->dtype, .shape = v->shape};
    int32_t loops[TILE_RANK_MAX];
    for (int32_t r = region; r > 0; r = a->forward->node[loops[slot.loops - 1]].parent) {
        if (slot.loops == TILE_RANK_MAX) {
            tile_builder_fail(a->b, TILE_E_ARGUMENT, "more than %d loops inside each other",
                              TILE_RANK_MAX);
            return false;
        }
        loops[slot.loops++] = a->forward->region[r].owner;
    }
    const int32_t inside = a->b->region;
    a->b->region = 0;
    for (int k = 0; k < slot.loops; k++) {
        const tile_node *loop = &a->forward->node[loops[slot.loops - 1 - k]];
        slot.count_value[k] = known_at_launch(a, tile_node_in(a->forward, loop, 0)).id;
    }
    a->b->region = inside;
    a->kept[a->kept_count++] = value;
    a->slot[value] = p->slot_count;
    p->slot[p->slot_count++] = slot;
    return true;
}

/* Reads a kept value back: inputs are the iteration numbers of the loops around, outer first. */
static tile emit_kept(tile_adjoint *a, int32_t value) {
    const tile_value *v = &a->forward->value[value];
    if (a->wide.on) return tile_builder_fail(a->b, TILE_E_STATE, "a kept value in gather form");
    if (a->slot[value] < 0 && !new_slot(a, value, v->region)) return (tile){a->b, -1};
    int32_t in[TILE_RANK_MAX], count = 0;
    for (int32_t r = v->region; r > 0; r = a->forward->node[a->forward->region[r].owner].parent)
        count++;
    int32_t k = count;
    for (int32_t r = v->region; r > 0; r = a->forward->node[a->forward->region[r].owner].parent)
        in[--k] = tile_adjoint_primal(a, a->forward->region[r].argument).id;
    const tile_node node = {.op = &tile_op_kept,
                            .n_in = count,
                            .n_out = 1,
                            .param = -1,
                            .region = -1,
                            .attrs.n[0] = a->slot[value],
                            .epoch = a->b->epoch};
    tile_program *p = &a->b->program;
    const int32_t region = a->region[v->region];
    const int32_t id = tile_program_add_node(p, &node, in);
    int32_t out = -1;
    if (id >= 0 && !tile_region_append(p, region, id))
        out = tile_program_add_value(p, v->dtype, v->shape, id, 0, region);
    if (out < 0) return tile_builder_fail(a->b, TILE_E_MEMORY, "%s", tile_last_error());
    p->node[id].out = out;
    return (tile){a->b, out};
}

tile_offset tile_adjoint_window(tile_adjoint *a, const tile_node *n) {
    const tile_inputs inputs = tile_inputs_of(a->forward, n);
    tile_offset at = {.rank = inputs.offsets};
    for (int k = 0; k < inputs.offsets; k++)
        at.at[k] = tile_adjoint_primal(a, tile_node_in(a->forward, n, inputs.tiles + k));
    return at;
}

/* Widens the window of a field load along the dimensions in which it moves with the blocks. */
static void widen_load(const tile_adjoint *a, const tile_node *n, tile_emission *e) {
    const tile_access_window w = tile_window_of_node(a->forward, a->analysis, n);
    for (int d = 0; d < w.rank; d++) {
        const int field = a->wide.rank - w.rank + d, axis = a->wide.axis[field];
        if (axis < 0 || !w.at[d].coefficient[axis]) continue;
        e->shape.extent[d] += a->wide.high[field] - a->wide.low[field];
        e->attrs.shift[d] += a->wide.low[field] - a->wide.high[field];
    }
}

/* Indices of a field, widened; other dimensions have extent 1 and broadcast. */
static tile widen_iota(tile_adjoint *a, const tile_node *n, tile_emission *e) {
    const tile_value *v = tile_node_out(a->forward, n, 0);
    for (int d = 0; d < v->shape.rank; d++) {
        const int field = a->wide.rank - v->shape.rank + d;
        if (!(n->attrs.n[0] >> d & 1)) {
            e->shape.extent[d] = 1;
        } else if (a->wide.axis[field] >= 0) {
            const int64_t delta = a->wide.low[field] - a->wide.high[field];
            tile start = tile_constant(a->b, v->dtype, (tile_shape){.rank = 0}, (double)delta);
            if (e->n_in)
                start = tile_emit_elementwise(a->b, "add", 2, (const tile[]){e->in[0], start});
            e->in[0] = start;
            e->n_in = 1;
            e->shape.extent[d] -= delta;
        }
    }
    return tile_emit(a->b, e);
}

static tile clone_widened(tile_adjoint *a, const tile_node *n, tile_emission *e) {
    const tile_op *op = n->op;
    if (op->access) {
        widen_load(a, n, e);
        return tile_emit(a->b, e);
    }
    if (op->kind == TILE_OP_ELEMENTWISE) {
        e->has_shape = false;
        return tile_emit(a->b, e);
    }
    if (op == tile_op_find("iota") && e->shape.rank) return widen_iota(a, n, e);
    if (op == tile_op_find("broadcast")) return e->in[0];
    if (op == tile_op_find("full")) e->shape = (tile_shape){.rank = 0};
    return tile_emit(a->b, e);
}

tile tile_adjoint_clone(tile_adjoint *a, const tile_node *n) {
    const tile_inputs inputs = tile_inputs_of(a->forward, n);
    const tile_value *v = tile_node_out(a->forward, n, 0);
    tile bounds[2 * TILE_RANK_MAX];
    tile_emission e = {.op = n->op,
                       .n_in = inputs.tiles,
                       .attrs = n->attrs,
                       .has_shape = n->op->kind != TILE_OP_ELEMENTWISE,
                       .shape = v->shape,
                       .has_dtype = true,
                       .dtype = v->dtype};
    for (int k = 0; k < inputs.tiles; k++)
        e.in[k] = tile_adjoint_primal(a, tile_node_in(a->forward, n, k));
    e.at = tile_adjoint_window(a, n);
    if (n->op->access) e.array = (tile_param){a->b, n->param};
    for (int k = 0; k < inputs.bounds; k++)
        bounds[k] =
            tile_adjoint_primal(a, tile_node_in(a->forward, n, inputs.tiles + inputs.offsets + k));
    if (inputs.bounds) e.bounds = bounds;
    return a->wide.on ? clone_widened(a, n, &e) : tile_emit(a->b, &e);
}

static tile recompute(tile_adjoint *a, const tile_value *v) {
    const tile_node *n = &a->forward->node[v->node];
    if (n->op == &tile_op_param) return (tile){a->b, a->b->program.param[n->attrs.n[0]].value};
    if (n->op == &tile_op_grid_size || n->op == &tile_op_domain_size)
        return tile_builder_axis_value(a->b, &tile_op_domain_size, (int)n->attrs.n[0]);
    if (n->op == &tile_op_extent)
        return tile_builder_extent(a->b, (int32_t)n->attrs.n[0], (int)n->attrs.n[1]);
    if (n->op == &tile_op_block_index)
        return tile_builder_axis_value(a->b, &tile_op_block_index, (int)n->attrs.n[0]);
    return tile_result(tile_adjoint_clone(a, n), v->result);
}

tile tile_adjoint_primal(tile_adjoint *a, int32_t value) {
    if (a->b->status) return (tile){a->b, -1};
    if (tile_is_good(a->primal[value])) return a->primal[value];
    const tile_value *v = &a->forward->value[value];
    const int32_t region = a->b->region, target = a->region[v->region];
    const char *file = a->b->file;
    const int line = a->b->line;
    if (target < 0) return tile_builder_fail(a->b, TILE_E_STATE, "a value of a loop that is over");
    a->b->region = target;
    a->b->file = a->forward->node[v->node].file;
    a->b->line = a->forward->node[v->node].line;
    const tile t = must_keep(a, v) ? emit_kept(a, value) : recompute(a, v);
    a->b->region = region;
    a->b->file = file;
    a->b->line = line;
    a->primal[value] = t;
    return t;
}
