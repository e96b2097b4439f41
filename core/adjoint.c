/* adjoint.c: the walk backwards over a program, and what op rules may ask. */
#include "core/adjoint.h"

#include <ctype.h>
#include <string.h>

#include "core/adjoint_state.h"
#include "core/array.h"
#include "core/memory.h"
#include "core/status.h"

tile_builder *tile_adjoint_builder(tile_adjoint *a) {
    return a->b;
}

const tile_attrs *tile_adjoint_attrs(const tile_adjoint *a) {
    return &a->node->attrs;
}

static int32_t input(const tile_adjoint *a, int k) {
    return tile_node_in(a->forward, a->node, k);
}

tile_shape tile_adjoint_in_shape(const tile_adjoint *a, int k) {
    return a->forward->value[input(a, k)].shape;
}

tile_dtype tile_adjoint_in_dtype(const tile_adjoint *a, int k) {
    return tile_wide_dtype(a->forward->value[input(a, k)].dtype);
}

tile tile_adjoint_in(tile_adjoint *a, int k) {
    return tile_widened(tile_adjoint_primal(a, input(a, k)));
}

tile tile_adjoint_out(tile_adjoint *a, int k) {
    return tile_widened(tile_adjoint_primal(a, a->node->out + k));
}

tile tile_adjoint_dy(tile_adjoint *a, int k) {
    if (k >= a->node->n_out) return (tile){a->b, -1};
    return a->adjoint[a->node->out + k];
}

bool tile_adjoint_wants(const tile_adjoint *a, int k) {
    return a->wants[input(a, k)];
}

void tile_adjoint_add(tile_adjoint *a, int k, tile contribution) {
    tile_adjoint_add_to(a, input(a, k), contribution);
}

tile_param tile_adjoint_grad(tile_adjoint *a) {
    return a->grad[tile_class_of(a->key, a->node->param)];
}

tile_offset tile_adjoint_offset(tile_adjoint *a) {
    tile_offset at = tile_adjoint_window(a, a->node);
    memcpy(at.shift, a->node->attrs.shift, sizeof at.shift);
    return at;
}

bool tile_adjoint_bounds(tile_adjoint *a, tile *bounds) {
    const tile_inputs inputs = tile_inputs_of(a->forward, a->node);
    for (int k = 0; k < inputs.bounds; k++)
        bounds[k] = tile_adjoint_primal(a, tile_node_in(a->forward, a->node,
                                                        inputs.tiles + inputs.offsets + k));
    return inputs.bounds > 0;
}

tile tile_adjoint_zero(tile_adjoint *a, int32_t value) {
    const tile_value *v = &a->forward->value[value];
    return tile_constant(a->b, tile_wide_dtype(v->dtype), v->shape, 0);
}

/* In gather form every wanted value has the widened shape; a smaller contribution is spread. */
static tile spread(tile_adjoint *a, tile t, tile like) {
    tile_shape shape = tile_shape_of_tile(like);
    if (tile_shape_equal(tile_shape_of_tile(t), shape)) return t;
    const tile_emission e = {
        .op = tile_op_find("broadcast"), .n_in = 1, .in = {t}, .has_shape = true, .shape = shape};
    return tile_emit(a->b, &e);
}

void tile_adjoint_add_to(tile_adjoint *a, int32_t value, tile contribution) {
    /* A value that no gradient passes may be seen from places that its sum may not be. */
    if (a->b->status || !tile_is_good(contribution) || !a->wants[value]) return;
    tile *sum = &a->adjoint[value];
    if (!tile_is_good(*sum)) {
        *sum = contribution;
        return;
    }
    if (a->wide.on) contribution = spread(a, contribution, *sum);
    *sum = tile_emit_elementwise(a->b, "add", 2, (const tile[]){*sum, contribution});
}

static bool node_wants(const tile_adjoint *a, const tile_node *n, const tile_value *out) {
    if (!tile_is_float(out->dtype)) return false;
    if (n->op->access == TILE_ACCESS_LOAD || n->op->access == TILE_ACCESS_TAKE)
        return (a->targets >> n->param & 1u) != 0;
    if (n->op->access) return false;
    const int tiles = tile_inputs_of(a->forward, n).tiles;
    for (int k = 0; k < tiles; k++)
        if (a->wants[tile_node_in(a->forward, n, k)] && n->op->grad[k] != TILE_GRAD_ZERO)
            return true;
    return false;
}

/* Stores of wanted values make what is loaded from there wanted. */
static bool note_store(tile_adjoint *a, const tile_node *n) {
    if (n->op->access <= TILE_ACCESS_LOAD || n->op->access == TILE_ACCESS_TAKE) return false;
    if (!a->wants[tile_node_in(a->forward, n, n->op->indexed ? 1 : 0)]) return false;
    const int cls = tile_class_of(a->key, n->param);
    if (!(a->grads >> cls & 1u)) return false;
    const uint32_t members = tile_class_members(a->forward, a->key, cls);
    if ((a->targets & members) == members || a->wide.on || !a->clears) return false;
    a->targets |= members;
    return true;
}

static bool loop_wants(tile_adjoint *a, const tile_node *n) {
    const tile_region *body = &a->forward->region[n->region];
    bool changed = false;
    for (int32_t k = 0; k < body->yield_count; k++) {
        const int32_t argument = body->argument + 1 + k, result = n->out + k;
        const bool wants = a->wants[tile_node_in(a->forward, n, 1 + k)] || a->wants[body->yield[k]];
        if (!wants || a->wants[argument]) continue;
        a->wants[argument] = true;
        if (k < n->n_out) a->wants[result] = true;
        changed = true;
    }
    return changed;
}

static void find_wants(tile_adjoint *a) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (int32_t i = 0; i < a->analysis->order_count; i++) {
            const tile_node *n = &a->forward->node[a->analysis->order[i]];
            if (n->op == &tile_op_loop) {
                changed |= loop_wants(a, n);
                continue;
            }
            changed |= note_store(a, n);
            for (int32_t k = 0; k < n->n_out; k++) {
                if (a->wants[n->out + k] || !node_wants(a, n, tile_node_out(a->forward, n, k)))
                    continue;
                a->wants[n->out + k] = true;
                changed = true;
            }
        }
    }
}

static void no_adjoint(tile_adjoint *a, int k) {
    const tile_node *n = a->node;
    const char *slash = n->file ? strrchr(n->file, '/') : NULL;
    if (a->b->status) return;
    tile_builder_fail(a->b, TILE_E_NO_ADJOINT, "%s", "no adjoint");
    snprintf(a->b->message, sizeof a->b->message,
             "kernel %s: op %s, made at %s:%d, has no adjoint for operand %d, which carries a "
             "gradient",
             a->forward->name, n->op->name,
             slash     ? slash + 1
             : n->file ? n->file
                       : "?",
             n->line, k + 1);
}

/* Whether a formula mentions a name. */
static bool mentions(const char *formula, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = strstr(formula, name); at; at = strstr(at + 1, name)) {
        const bool starts = at == formula || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        const bool ends = !(isalnum((unsigned char)at[n]) || at[n] == '_');
        if (starts && ends) return true;
    }
    return false;
}

/* One derivative formula over a, b, c, d, y, dy; operands that it does not name cost nothing. */
static tile derivative(tile_adjoint *a, const char *formula) {
    static const char *const letter[] = {"a", "b", "c", "d"};
    const char *names[TILE_OP_IN + 2] = {"dy"};
    tile operands[TILE_OP_IN + 2] = {a->adjoint[a->node->out]};
    int n = 1;
    for (int k = 0; k < a->inputs.tiles; k++) {
        if (!mentions(formula, letter[k])) continue;
        names[n] = letter[k];
        operands[n++] = tile_adjoint_in(a, k);
    }
    if (mentions(formula, "y")) {
        names[n] = "y";
        operands[n++] = tile_adjoint_out(a, 0);
    }
    return tile_formula_emit(a->b, formula, n, names, operands, "dy");
}

/* A cast between floats: the adjoint has the operand's dtype. */
static tile as_dtype(tile t, tile_dtype dtype) {
    if (!tile_is_good(t) || tile_dtype_of(t) == dtype) return t;
    const tile_emission e = {
        .op = tile_op_find("cast"), .n_in = 1, .in = {t}, .has_dtype = true, .dtype = dtype};
    return tile_emit(t.builder, &e);
}

static void elementwise_rule(tile_adjoint *a) {
    for (int k = 0; k < a->inputs.tiles; k++) {
        if (!tile_adjoint_wants(a, k) || a->node->op->grad[k] != TILE_GRAD_FULL) continue;
        const tile dx = derivative(a, a->node->op->derivative[k]);
        tile_adjoint_add(a, k, as_dtype(dx, tile_adjoint_in_dtype(a, k)));
    }
}

bool tile_adjoint_any(const tile_adjoint *a, const tile_node *n) {
    for (int32_t k = 0; k < n->n_out; k++)
        if (tile_is_good(a->adjoint[n->out + k])) return true;
    return false;
}

/* Asking for a gradient that does not exist is an error, never a zero. */
static bool gradients_exist(tile_adjoint *a) {
    for (int k = 0; k < a->inputs.tiles; k++) {
        if (!tile_adjoint_wants(a, k) || a->node->op->grad[k] != TILE_GRAD_ABSENT) continue;
        no_adjoint(a, k);
        return false;
    }
    return true;
}

/* What came in for a stored tile, read without clearing: other kernels still read it. In gather
 * form it is widened, and zero outside of what the launch stored. */
static void read_upstream(tile_adjoint *a, const tile_node *n) {
    const int32_t stored = tile_node_in(a->forward, n, n->op->indexed ? 1 : 0);
    if (!a->wants[stored]) return;
    const tile_access_window w = tile_window_of_node(a->forward, a->analysis, n);
    tile bounds[2 * TILE_RANK_MAX];
    tile_emission e = {.op = tile_op_find("load"),
                       .array = a->grad[tile_class_of(a->key, n->param)],
                       .at = tile_adjoint_offset(a),
                       .has_shape = true,
                       .shape = a->forward->value[stored].shape,
                       .has_dtype = true,
                       .dtype = tile_wide_dtype(a->forward->value[stored].dtype)};
    for (int d = 0; a->wide.on && d < w.rank; d++) {
        tile low = (tile_int)(a->b, w.at[d].constant);
        if (w.at[d].uniform >= 0)
            low =
                tile_emit_elementwise(a->b, "add", 2,
                                      (const tile[]){low, tile_adjoint_primal(a, w.at[d].uniform)});
        tile size = (tile_int)(a->b, a->wide.core[d]);
        const int axis = a->wide.axis[d];
        if (axis >= 0) {
            const tile blocks = tile_builder_axis_value(a->b, &tile_op_domain_size, axis);
            size = tile_emit_elementwise(a->b, "mul", 2, (const tile[]){size, blocks});
            e.shape.extent[d] += a->wide.high[d] - a->wide.low[d];
            e.at.shift[d] += a->wide.low[d] - a->wide.high[d];
        }
        bounds[2 * d] = low;
        bounds[2 * d + 1] = tile_emit_elementwise(a->b, "add", 2, (const tile[]){low, size});
        e.bounds = bounds;
    }
    tile_adjoint_add_to(a, stored, tile_emit(a->b, &e));
}

static void collect(tile_adjoint *a, int32_t node) {
    const tile_node *n = &a->forward->node[node];
    if (!a->wants[n->out] || !tile_is_good(a->adjoint[n->out])) return;
    if (tile_grow(&a->collected, &a->collected_capacity, a->collected_count + 1,
                  sizeof *a->collected)) {
        tile_builder_fail(a->b, TILE_E_MEMORY, "%s", tile_last_error());
        return;
    }
    a->collected[a->collected_count++] = (tile_collected){node, a->adjoint[n->out]};
}

static void access_rule(tile_adjoint *a, int32_t node) {
    const tile_node *n = a->node;
    const bool has_grad = (a->grads >> tile_class_of(a->key, n->param) & 1u) != 0;
    const bool load = n->op->access == TILE_ACCESS_LOAD;
    if (load && a->wide.on) {
        collect(a, node);
    } else if (load) {
        if (!a->wants[n->out] || !tile_is_good(a->adjoint[n->out])) return;
        if (gradients_exist(a)) n->op->adjoint(a);
    } else if (has_grad && !a->clears) {
        read_upstream(a, n);
    } else if (has_grad) {
        if (!n->op->adjoint) {
            no_adjoint(a, 0);
        } else if (gradients_exist(a)) {
            n->op->adjoint(a);
        }
    }
}

static void walk_node(tile_adjoint *a, int32_t node) {
    const tile_node *n = &a->forward->node[node];
    if (n->op == &tile_op_loop) {
        tile_adjoint_walk_loop(a, n);
        return;
    }
    a->node = n;
    a->inputs = tile_inputs_of(a->forward, n);
    a->b->file = n->file;
    a->b->line = n->line;
    if (n->op->access) {
        access_rule(a, node);
    } else if (tile_adjoint_any(a, n) && gradients_exist(a)) {
        if (n->op->kind == TILE_OP_ELEMENTWISE) {
            elementwise_rule(a);
        } else if (n->op->adjoint) {
            n->op->adjoint(a);
        }
    }
}

void tile_adjoint_walk_region(tile_adjoint *a, int32_t region) {
    const tile_region *r = &a->forward->region[region];
    for (int32_t k = r->count - 1; k >= 0 && !a->b->status; k--) walk_node(a, r->node[k]);
}

void tile_adjoint_walk(tile_adjoint *a) {
    find_wants(a);
    tile_adjoint_walk_region(a, 0);
}

static tile_status copy_params(tile_adjoint *a) {
    tile_program *p = &a->b->program;
    for (int32_t k = 0; k < a->forward->param_count; k++) {
        p->param[k] = a->forward->param[k];
        p->param_count++;
        if (p->param[k].kind != TILE_PARAM_ARRAY) tile_builder_scalar_param(a->b, k);
    }
    for (int32_t k = 0; k < a->forward->param_count; k++) {
        if (!(a->grads >> k & 1u)) continue;
        tile_param_info *info = &p->param[p->param_count];
        *info = a->forward->param[k];
        info->dtype = tile_wide_dtype(info->dtype);
        snprintf(info->name, sizeof info->name, "d%.40s", a->forward->param[k].name);
        a->grad[k] = (tile_param){a->b, p->param_count++};
    }
    return a->b->status;
}

tile_status tile_adjoint_begin(tile_adjoint *a, const tile_kernel *kernel,
                               const tile_program *forward, const tile_analysis *analysis,
                               const tile_adjoint_key *key, uint32_t targets, uint32_t grads) {
    const size_t values = (size_t)forward->value_count + 1;
    char name[80];
    *a = (tile_adjoint){.kernel = kernel,
                        .forward = forward,
                        .analysis = analysis,
                        .key = key,
                        .targets = targets,
                        .grads = grads};
    snprintf(name, sizeof name, "%.50s_adjoint", forward->name);
    a->b = tile_builder_create(kernel->ctx, name);
    a->primal = tile_alloc(values * sizeof *a->primal);
    a->adjoint = tile_alloc(values * sizeof *a->adjoint);
    a->wants = tile_alloc(values * sizeof *a->wants);
    a->slot = tile_alloc(values * sizeof *a->slot);
    a->region = tile_alloc(((size_t)forward->region_count + 1) * sizeof *a->region);
    if (!a->b || !a->primal || !a->adjoint || !a->wants || !a->slot || !a->region)
        return TILE_E_MEMORY;
    for (int32_t k = 0; k < forward->value_count; k++) {
        a->primal[k].id = a->adjoint[k].id = -1;
        a->slot[k] = -1;
    }
    for (int32_t k = 1; k < forward->region_count; k++) a->region[k] = -1;
    return copy_params(a);
}

void tile_adjoint_end(tile_adjoint *a) {
    tile_builder_destroy(a->b);
    tile_free(a->primal);
    tile_free(a->adjoint);
    tile_free(a->wants);
    tile_free(a->slot);
    tile_free(a->region);
    tile_free(a->collected);
    tile_free(a->kept);
}

tile_status tile_adjoint_finish(tile_adjoint *a, tile_executable **exe) {
    if (a->b->status) return tile_fail(a->b->status, "%s", a->b->message);
    TILE_TRY(tile_program_prune(&a->b->program));
    TILE_TRY(tile_program_verify(&a->b->program));
    tile_program program = a->b->program;
    a->b->program = (tile_program){.param_count = 0};
    return tile_executable_create(a->kernel->ctx, &program, exe);
}
