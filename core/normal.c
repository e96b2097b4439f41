/* normal.c: a field-form program without sub-tiles.
 *
 * A sub-tile at a constant offset of something elementwise is the same thing on a moved window:
 * view(f(x, y), s) = f(view(x, s), view(y, s)), down to loads, whose windows move by s. In this
 * form every tile has the core's extents (or 1 where it is spread), and a load's adjoint is one
 * field. */
#include <string.h>

#include "core/adjoint_state.h"
#include "core/array.h"
#include "core/memory.h"
#include "core/status.h"

/* A value at a displacement, made already. */
typedef struct moved {
    int32_t value;
    int64_t by[TILE_RANK_MAX];
    tile t;
} moved;

typedef struct normaliser {
    const tile_program *p;
    const tile_analysis *a;
    tile_builder *b;
    moved *made;
    int32_t count, capacity;
    const tile_op *view, *broadcast, *iota;
} normaliser;

static tile value_at(normaliser *n, int32_t value, const int64_t *by);

/* Extents without the halo. */
static tile_shape core_shape(const normaliser *n, tile_shape shape) {
    const tile_field_form *f = &n->a->field;
    for (int d = 0; d < shape.rank; d++)
        if (shape.extent[d] != 1) shape.extent[d] = f->core[f->rank - shape.rank + d];
    return shape;
}

/* Displacements of an operand of lower rank or with dimensions that are spread. */
static void align(tile_shape to, tile_shape from, const int64_t *by, int64_t *out) {
    memset(out, 0, TILE_RANK_MAX * sizeof *out);
    for (int d = 0; d < from.rank; d++) {
        const int e = to.rank - from.rank + d;
        if (from.extent[d] != 1 || to.extent[e] == 1) out[d] = by[e];
    }
}

static tile spread_to(normaliser *n, tile t, tile_shape shape) {
    if (!tile_is_good(t) || tile_shape_equal(tile_shape_of_tile(t), shape)) return t;
    const tile_emission e = {
        .op = n->broadcast, .n_in = 1, .in = {t}, .has_shape = true, .shape = shape};
    return tile_emit(n->b, &e);
}

/* What is emitted next comes from a node: said after its operands, which come from other places. */
static void come_from(normaliser *n, const tile_node *node) {
    n->b->file = node->file;
    n->b->line = node->line;
}

static tile make(normaliser *n, const tile_node *node, const int64_t *by) {
    static const int64_t still[TILE_RANK_MAX];
    const tile_program *p = n->p;
    const tile_inputs inputs = tile_inputs_of(p, node);
    const tile_value *v = tile_node_out(p, node, 0);
    int64_t inner[TILE_RANK_MAX];
    if (node->op == n->view) {
        const tile_shape from = p->value[tile_node_in(p, node, 0)].shape;
        int64_t shift[TILE_RANK_MAX];
        tile_view_shift(p, node, shift); /* constant and inside, as in every field */
        for (int d = 0; d < TILE_RANK_MAX; d++) inner[d] = d < from.rank ? by[d] + shift[d] : 0;
        const tile t = value_at(n, tile_node_in(p, node, 0), inner);
        come_from(n, node);
        return spread_to(n, t, core_shape(n, v->shape));
    }
    tile bounds[2 * TILE_RANK_MAX];
    tile_emission e = {.op = node->op,
                       .n_in = inputs.tiles,
                       .attrs = node->attrs,
                       .has_shape = node->op->kind != TILE_OP_ELEMENTWISE && node->n_out,
                       .has_dtype = node->n_out > 0};
    if (node->n_out) {
        e.shape = core_shape(n, v->shape);
        e.dtype = v->dtype;
    }
    for (int k = 0; k < inputs.tiles; k++) {
        const int32_t in = tile_node_in(p, node, k);
        align(node->n_out ? v->shape : p->value[in].shape, p->value[in].shape, by, inner);
        e.in[k] = value_at(n, in, inner);
    }
    e.at.rank = inputs.offsets;
    for (int k = 0; k < inputs.offsets; k++)
        e.at.at[k] = value_at(n, tile_node_in(p, node, inputs.tiles + k), still);
    for (int k = 0; k < inputs.bounds; k++)
        bounds[k] = value_at(n, tile_node_in(p, node, inputs.tiles + inputs.offsets + k), still);
    if (inputs.bounds) e.bounds = bounds;
    if (node->op->access) {
        e.array = (tile_param){n->b, node->param};
        for (int d = 0; d < TILE_RANK_MAX; d++) e.attrs.shift[d] += by[d];
    }
    come_from(n, node);
    for (int d = 0; node->op == n->iota && d < v->shape.rank; d++) {
        if (!(node->attrs.n[0] >> d & 1) || !by[d]) continue;
        const tile by_tile = tile_constant(n->b, v->dtype, (tile_shape){.rank = 0}, (double)by[d]);
        e.in[0] = tile_emit_elementwise(n->b, "add", 2, (const tile[]){e.in[0], by_tile});
    }
    return tile_emit(n->b, &e);
}

static tile structure(normaliser *n, const tile_node *node) {
    if (node->op == &tile_op_param)
        return (tile){n->b, n->b->program.param[node->attrs.n[0]].value};
    if (node->op == &tile_op_extent)
        return tile_builder_extent(n->b, (int32_t)node->attrs.n[0], (int)node->attrs.n[1]);
    return tile_builder_axis_value(n->b, node->op, (int)node->attrs.n[0]);
}

static tile value_at(normaliser *n, int32_t value, const int64_t *by) {
    const tile_value *v = &n->p->value[value];
    const tile_node *node = &n->p->node[v->node];
    for (int32_t k = 0; k < n->count; k++)
        if (n->made[k].value == value && !memcmp(n->made[k].by, by, sizeof n->made[k].by))
            return n->made[k].t;
    const tile t =
        tile_result(node->op->kind == TILE_OP_STRUCTURE ? structure(n, node) : make(n, node, by),
                    v->result);
    if (tile_grow(&n->made, &n->capacity, n->count + 1, sizeof *n->made))
        return tile_builder_fail(n->b, TILE_E_MEMORY, "%s", tile_last_error());
    moved *m = &n->made[n->count++];
    m->value = value;
    m->t = t;
    memcpy(m->by, by, sizeof m->by);
    return t;
}

static tile_status normalise(normaliser *n) {
    static const int64_t still[TILE_RANK_MAX];
    tile_program *p = &n->b->program;
    for (int32_t k = 0; k < n->p->param_count; k++) {
        p->param[k] = n->p->param[k];
        p->param_count++;
        if (p->param[k].kind != TILE_PARAM_ARRAY) tile_builder_scalar_param(n->b, k);
    }
    for (int32_t k = 0; k < n->a->order_count; k++) {
        const tile_node *node = &n->p->node[n->a->order[k]];
        if (node->op->access <= TILE_ACCESS_LOAD) continue;
        make(n, node, still);
    }
    if (n->b->status) return tile_fail(n->b->status, "%s", n->b->message);
    return tile_program_prune(p);
}

tile_status tile_program_normalise(tile_context *ctx, const tile_program *program,
                                   const tile_analysis *analysis, tile_program *normal) {
    normaliser n = {.p = program,
                    .a = analysis,
                    .b = tile_builder_create(ctx, program->name),
                    .view = tile_op_find("view"),
                    .broadcast = tile_op_find("broadcast"),
                    .iota = tile_op_find("iota")};
    if (!n.b) return TILE_E_MEMORY;
    const tile_status status = normalise(&n);
    if (!status) {
        *normal = n.b->program;
        n.b->program = (tile_program){.param_count = 0};
    }
    tile_free(n.made);
    tile_builder_destroy(n.b);
    return status;
}
