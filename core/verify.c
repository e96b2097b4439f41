/* verify.c: the rules that every finished program keeps, whoever made it. */
#include "core/analysis.h"
#include "core/array.h"
#include "core/builder.h"
#include "core/memory.h"
#include "core/status.h"

typedef struct verifier {
    const tile_program *p;
    bool *made; /* per value: made by now */
} verifier;

static const char *name_of(const verifier *v) {
    return v->p->name;
}

/* Operands exist, are made before, and can be seen from the node's region. */
static tile_status check_inputs(const verifier *v, const tile_node *n) {
    for (int32_t k = 0; k < n->n_in; k++) {
        const int32_t in = tile_node_in(v->p, n, k);
        TILE_CHECK(in >= 0 && in < v->p->value_count && v->made[in] &&
                       tile_region_within(v->p, n->parent, v->p->value[in].region),
                   TILE_E_STATE, "kernel %s: operand %d of %s is used before it is made",
                   name_of(v), (int)k + 1, n->op->name);
    }
    return TILE_OK;
}

static tile_status check_access(const verifier *v, const tile_node *n) {
    TILE_CHECK(n->param >= 0 && n->param < v->p->param_count &&
                   v->p->param[n->param].kind == TILE_PARAM_ARRAY,
               TILE_E_STATE, "kernel %s: %s has no array parameter", name_of(v), n->op->name);
    const int rank = v->p->param[n->param].rank;
    const tile_inputs inputs = tile_inputs_of(v->p, n);
    TILE_CHECK(inputs.offsets == rank && (!n->bounded || inputs.bounds == 2 * rank), TILE_E_STATE,
               "kernel %s: %s has %d offsets, expected %d", name_of(v), n->op->name, inputs.offsets,
               rank);
    for (int k = inputs.tiles; k < n->n_in; k++) {
        const tile_value *at = &v->p->value[tile_node_in(v->p, n, k)];
        TILE_CHECK(at->dtype == TILE_I64 && at->shape.rank == 0, TILE_E_STATE,
                   "kernel %s: an offset of %s is not a rank-0 int64", name_of(v), n->op->name);
    }
    return TILE_OK;
}

/* The shape rule gives what the program says. */
static tile_status check_types(const verifier *v, const tile_node *n) {
    tile_attrs attrs = n->attrs;
    tile_infer infer = {.op = n->op, .attrs = &attrs, .n_out = n->op->n_out};
    infer.n_in = tile_inputs_of(v->p, n).tiles;
    infer.want_shape.rank = -1;
    infer.want_dtype = TILE_DTYPES;
    for (int k = 0; k < infer.n_in && k < TILE_OP_IN; k++) {
        const tile_value *in = &v->p->value[tile_node_in(v->p, n, k)];
        infer.in_shape[k] = in->shape;
        infer.in_dtype[k] = in->dtype;
    }
    if (n->n_out) {
        if (n->op->kind != TILE_OP_ELEMENTWISE) infer.want_shape = tile_node_out(v->p, n, 0)->shape;
        infer.want_dtype = tile_node_out(v->p, n, 0)->dtype;
    }
    if (n->op->access) {
        infer.array_rank = v->p->param[n->param].rank;
        infer.array_dtype = v->p->param[n->param].dtype;
    }
    TILE_TRY(n->op->infer(&infer));
    for (int k = 0; k < n->n_out; k++) {
        const tile_value *out = tile_node_out(v->p, n, k);
        TILE_CHECK(out->dtype == infer.out_dtype[k] &&
                       tile_shape_equal(out->shape, infer.out_shape[k]),
                   TILE_E_STATE, "kernel %s: result %d of %s is not of the type its rule gives",
                   name_of(v), k + 1, n->op->name);
    }
    return TILE_OK;
}

static tile_status check_region(verifier *v, int32_t region);

/* What a while carries of its own. */
static tile_status check_own(const verifier *v, const tile_node *n) {
    static const tile_dtype own[TILE_LOOP_OWN] = {TILE_BOOL, TILE_I64};
    for (int32_t k = 0; k < tile_loop_own(n); k++) {
        const bool there = k + 1 < n->n_in;
        const tile_value *in = there ? &v->p->value[tile_node_in(v->p, n, 1 + k)] : NULL;
        TILE_CHECK(in && in->dtype == own[k] && in->shape.rank == 0, TILE_E_STATE,
                   "kernel %s: a while does not carry go and trips first", name_of(v));
    }
    return TILE_OK;
}

static tile_status check_loop(verifier *v, const tile_node *n) {
    const tile_region *body = &v->p->region[n->region];
    TILE_CHECK(n->n_in == 1 + body->yield_count && n->n_out == body->yield_count, TILE_E_STATE,
               "kernel %s: a loop carries %d tiles and yields %d", name_of(v), (int)n->n_in - 1,
               (int)body->yield_count);
    TILE_TRY(check_own(v, n));
    for (int32_t k = 0; k <= body->yield_count; k++) v->made[body->argument + k] = true;
    TILE_TRY(check_region(v, n->region));
    for (int32_t k = 0; k < body->yield_count; k++) {
        const tile_value *y = &v->p->value[body->yield[k]];
        const tile_value *in = &v->p->value[tile_node_in(v->p, n, 1 + k)];
        TILE_CHECK(v->made[body->yield[k]] && y->dtype == in->dtype &&
                       tile_shape_equal(y->shape, in->shape),
                   TILE_E_STATE, "kernel %s: carried tile %d of a loop changes its type",
                   name_of(v), (int)k + 1);
    }
    return TILE_OK;
}

static tile_status check_region(verifier *v, int32_t region) {
    const tile_region *r = &v->p->region[region];
    for (int32_t i = 0; i < r->count; i++) {
        const tile_node *n = &v->p->node[r->node[i]];
        TILE_TRY(check_inputs(v, n));
        if (n->op->access) TILE_TRY(check_access(v, n));
        if (n->op == &tile_op_loop) TILE_TRY(check_loop(v, n));
        if (n->op->kind != TILE_OP_STRUCTURE) TILE_TRY(check_types(v, n));
        for (int32_t k = 0; k < n->n_out; k++) v->made[n->out + k] = true;
    }
    return TILE_OK;
}

tile_status tile_program_verify(const tile_program *program) {
    verifier v = {program, tile_alloc((size_t)program->value_count + 1)};
    if (!v.made) return TILE_E_MEMORY;
    const tile_status status = check_region(&v, 0);
    tile_free(v.made);
    return status;
}
