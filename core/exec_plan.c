/* exec_plan.c: a program as a list of steps on an arena. */
#include <string.h>

#include "core/exec_internal.h"
#include "core/memory.h"
#include "core/status.h"

#define PUSH(plan, list)                                                         \
    tile_grow(&(plan)->list, &(plan)->list##_capacity, (plan)->list##_count + 1, \
              sizeof *(plan)->list)

void tile_plan_clear(tile_plan *plan) {
    tile_free(plan->step);
    tile_free(plan->strip);
    tile_free(plan->call);
    tile_free(plan->carry);
    tile_free(plan->number);
    tile_free(plan->place);
    *plan = (tile_plan){.bytes = 0};
}

static int64_t count_of(tile_shape shape) {
    int64_t n = 1;
    for (int d = 0; d < shape.rank; d++) n *= shape.extent[d];
    return n;
}

static tile_dims dims_of(tile_shape shape) {
    tile_dims dims = {.rank = shape.rank};
    for (int d = 0; d < shape.rank; d++) dims.extent[d] = (int32_t)shape.extent[d];
    return dims;
}

static size_t value_bytes(const tile_program *p, int32_t value) {
    const tile_value *v = &p->value[value];
    return (size_t)count_of(v->shape) * tile_dtype_size(v->dtype);
}

/* Steps */

static tile_status new_step(tile_plan *plan, tile_step_kind kind, const tile_node *node,
                            tile_step **step) {
    TILE_TRY(PUSH(plan, step));
    *step = &plan->step[plan->step_count++];
    **step = (tile_step){.kind = kind, .node = node, .elements = 1};
    if (node->n_out) (*step)->place = plan->place[node->out];
    return TILE_OK;
}

tile_status tile_plan_strip(tile_plan *plan, const tile_program *p, const tile_node *n,
                            const bool *local) {
    tile_dtype in[TILE_OP_IN] = {TILE_F32};
    tile_strip_step strip = {.node = n, .n_in = n->n_in, .out = plan->place[n->out]};
    for (int k = 0; k < n->n_in; k++) {
        const int32_t v = tile_node_in(p, n, k);
        in[k] = p->value[v].dtype;
        strip.in[k] = plan->place[v];
        strip.in_step[k] = local && local[v] ? 0 : tile_dtype_size(in[k]);
    }
    const tile_dtype out = p->value[n->out].dtype;
    strip.out_step = local && local[n->out] ? 0 : tile_dtype_size(out);
    strip.run = n->op->strip ? n->op->strip(n->op, in, out) : NULL;
    TILE_CHECK(strip.run, TILE_E_DTYPE, "%s: no kernel for %s (%s:%d)", n->op->name,
               tile_dtype_name(in[0]), n->file ? n->file : "", n->line);
    TILE_TRY(PUSH(plan, strip));
    plan->strip[plan->strip_count++] = strip;
    return TILE_OK;
}

static tile_dtype key_dtype(const tile_program *p, const tile_node *n) {
    if (n->op->key == TILE_KEY_OUT0) return p->value[n->out].dtype;
    return p->value[tile_node_in(p, n, n->op->key == TILE_KEY_IN1 ? 1 : 0)].dtype;
}

static void fill_operands(const tile_plan *plan, const tile_program *p, const bool *used,
                          const tile_node *n, tile_call_step *c) {
    const tile_inputs inputs = tile_inputs_of(p, n);
    c->n_in = inputs.tiles;
    for (int k = 0; k < inputs.tiles; k++) {
        const int32_t v = tile_node_in(p, n, k);
        c->in[k] = plan->place[v];
        c->in_bytes[k] = value_bytes(p, v);
        c->call.in_dims[k] = dims_of(p->value[v].shape);
    }
    c->offsets = inputs.offsets;
    c->bounds = inputs.bounds;
    for (int k = 0; k < inputs.offsets; k++)
        c->offset[k] = plan->place[tile_node_in(p, n, inputs.tiles + k)];
    for (int k = 0; k < inputs.bounds; k++)
        c->bound[k] = plan->place[tile_node_in(p, n, inputs.tiles + inputs.offsets + k)];
    for (int k = 0; k < n->n_out; k++) {
        c->out[k] = plan->place[n->out + k];
        c->wanted[k] = used[n->out + k] || (n->op->access <= TILE_ACCESS_LOAD && n->n_out == 1);
        c->call.out_dims[k] = dims_of(p->value[n->out + k].shape);
    }
}

static tile_status plan_call(tile_plan *plan, const tile_program *p, const bool *used,
                             const tile_node *n, bool flat) {
    tile_step *step;
    TILE_TRY(new_step(plan, TILE_STEP_CALL, n, &step));
    TILE_TRY(PUSH(plan, call));
    step->first = plan->call_count;
    tile_call_step *c = &plan->call[plan->call_count++];
    *c = (tile_call_step){.node = n, .call.attrs = n->attrs};
    const tile_dtype key = key_dtype(p, n);
    c->run = n->op->run[key];
    TILE_CHECK(c->run, TILE_E_DTYPE, "%s: no kernel for %s (%s:%d)", n->op->name,
               tile_dtype_name(key), n->file ? n->file : "", n->line);
    fill_operands(plan, p, used, n, c);
    if (n->op == tile_op_find("load") && !c->bounds && p->value[n->out].shape.rank)
        c->copied = tile_dtype_size(key);
    if (flat && !n->n_in) c->call.out_dims[0].rank = 0; /* a constant: one element of it */
    if (n->n_out) step->elements = count_of(p->value[n->out].shape);
    for (int k = 0; k < c->n_in; k++) {
        const int64_t count = count_of(p->value[tile_node_in(p, n, k)].shape);
        if (count > step->elements) step->elements = count;
    }
    return TILE_OK;
}

/* Iteration numbers of keep and kept follow the tile. */
static tile_status plan_kept(tile_plan *plan, const tile_program *p, const tile_node *n) {
    const bool keep = n->op == &tile_op_keep;
    tile_step *step;
    TILE_TRY(new_step(plan, keep ? TILE_STEP_KEEP : TILE_STEP_KEPT, n, &step));
    step->first = plan->number_count;
    const int32_t value = keep ? tile_node_in(p, n, 0) : n->out;
    step->place = plan->place[value];
    step->bytes = value_bytes(p, value);
    step->elements = count_of(p->value[value].shape);
    for (int k = keep ? 1 : 0; k < n->n_in; k++) {
        TILE_TRY(PUSH(plan, number));
        plan->number[plan->number_count++] = plan->place[tile_node_in(p, n, k)];
        step->count++;
    }
    return TILE_OK;
}

static tile_status plan_within(tile_plan *plan, const tile_program *p, const tile_node *n) {
    tile_step *step;
    TILE_TRY(new_step(plan, TILE_STEP_WITHIN, n, &step));
    step->first = plan->number_count;
    for (int k = 0; k < n->n_in; k++) {
        TILE_TRY(PUSH(plan, number));
        plan->number[plan->number_count++] = plan->place[tile_node_in(p, n, k)];
    }
    return TILE_OK;
}

tile_status tile_plan_node(tile_plan *plan, const tile_program *p, const bool *used,
                           const tile_node *n, bool flat) {
    if (n->op == &tile_op_keep || n->op == &tile_op_kept) return plan_kept(plan, p, n);
    if (n->op == &tile_op_within) return plan_within(plan, p, n);
    if (n->op->kind == TILE_OP_COOPERATIVE) return plan_call(plan, p, used, n, flat);
    tile_step *step;
    return new_step(plan, TILE_STEP_SCALAR, n, &step);
}

/* The block plan */

typedef struct planner {
    const tile_program *p;
    tile_plan *plan;
    const int32_t *alias; /* per value: whose place it has; NULL: each its own */
    const bool *member;   /* per node: part of a group; NULL: elementwise ops are */
    const bool *unplaced; /* per value: has no place; NULL: found here */
    int32_t *group;       /* per node */
    bool *local, *used;   /* per value */
    size_t *stage;        /* per value */
} planner;

static bool is_elementwise(const tile_node *n) {
    return n->op->kind == TILE_OP_ELEMENTWISE;
}

/* Whether a node reads what a part of a list makes. */
static bool reads_any(const tile_program *p, const tile_node *n, const int32_t *list, int32_t first,
                      int32_t end) {
    for (int32_t k = first; k < end; k++)
        for (int32_t i = 0; i < n->n_in; i++)
            if (p->value[tile_node_in(p, n, i)].node == list[k]) return true;
    return false;
}

static bool same_count(const tile_program *p, const tile_node *a, const tile_node *b) {
    return count_of(p->value[a->out].shape) == count_of(p->value[b->out].shape);
}

/* Brings elementwise ops together: what stands between two and does not need the first goes before
 * it, unless it has an effect. */
static void bring_together(const tile_program *p, tile_region *r) {
    int32_t group = 0; /* where the last run of elementwise ops begins */
    for (int32_t k = 0; k < r->count; k++) {
        const int32_t node = r->node[k];
        const tile_node *n = &p->node[node];
        if (group < k && is_elementwise(n) && same_count(p, n, &p->node[r->node[group]])) continue;
        const bool stays = tile_node_has_effect(p, n) || n->op == &tile_op_loop ||
                           (is_elementwise(n) && count_of(p->value[n->out].shape) > 1) ||
                           reads_any(p, n, r->node, group, k);
        if (!stays) {
            memmove(&r->node[group + 1], &r->node[group], (size_t)(k - group) * sizeof *r->node);
            r->node[group++] = node;
        } else {
            group = is_elementwise(n) ? k : k + 1;
        }
    }
}

/* The program with its regions in another order; owns the regions' lists. */
static tile_status reorder(const tile_program *from, tile_program *to) {
    *to = *from;
    to->region = tile_alloc((size_t)from->region_count * sizeof *to->region);
    if (!to->region) return TILE_E_MEMORY;
    for (int32_t k = 0; k < from->region_count; k++) {
        tile_region *r = &to->region[k];
        *r = from->region[k];
        r->node = tile_alloc(((size_t)r->count + 1) * sizeof *r->node);
        if (!r->node) return TILE_E_MEMORY;
        if (r->count) memcpy(r->node, from->region[k].node, (size_t)r->count * sizeof *r->node);
        bring_together(from, r);
    }
    return TILE_OK;
}

static void free_order(tile_program *p) {
    for (int32_t k = 0; p->region && k < p->region_count; k++) tile_free(p->region[k].node);
    tile_free(p->region);
}

static void find_groups(planner *b) {
    for (int32_t r = 0; r < b->p->region_count; r++) {
        const tile_region *region = &b->p->region[r];
        for (int32_t k = 0; k < region->count; k++) {
            const tile_node *n = &b->p->node[region->node[k]];
            b->group[region->node[k]] = region->node[k];
            if (!k || !is_elementwise(n)) continue;
            const tile_node *before = &b->p->node[region->node[k - 1]];
            if (is_elementwise(before) && same_count(b->p, before, n))
                b->group[region->node[k]] = b->group[region->node[k - 1]];
        }
    }
}

static int32_t base_of(const planner *b, int32_t value) {
    return b->alias ? b->alias[value] : value;
}

static void find_uses(planner *b) {
    const tile_program *p = b->p;
    for (int32_t v = 0; v < p->value_count; v++) {
        const tile_value *value = &p->value[v];
        b->local[v] = value->result >= 0 && is_elementwise(&p->node[value->node]);
    }
    for (int32_t r = 0; r < p->region_count; r++) {
        const tile_region *region = &p->region[r];
        for (int32_t k = 0; k < region->count; k++) {
            const tile_node *n = &p->node[region->node[k]];
            for (int32_t i = 0; i < n->n_in; i++) {
                const int32_t v = base_of(b, tile_node_in(p, n, i));
                b->used[v] = true;
                if (b->group[region->node[k]] != b->group[p->value[v].node]) b->local[v] = false;
            }
        }
        for (int32_t k = 0; k < region->yield_count; k++) {
            b->used[base_of(b, region->yield[k])] = true;
            b->local[base_of(b, region->yield[k])] = false;
        }
    }
}

static tile_status plan_region(planner *b, int32_t region);

static tile_status plan_carries(planner *b, const tile_node *n) {
    const tile_region *body = &b->p->region[n->region];
    const size_t *place = b->plan->place;
    for (int32_t k = 0; k < body->yield_count; k++) {
        TILE_TRY(PUSH(b->plan, carry));
        const int32_t argument = body->argument + 1 + k, yield = body->yield[k];
        const bool other = yield >= body->argument && yield != argument &&
                           yield <= body->argument + body->yield_count;
        b->plan->carry[b->plan->carry_count++] =
            (tile_carry){.initial = place[tile_node_in(b->p, n, 1 + k)],
                         .argument = place[argument],
                         .yield = place[yield],
                         .bytes = value_bytes(b->p, argument),
                         .staged = other,
                         .stage = b->stage[yield]};
    }
    return TILE_OK;
}

static tile_status plan_loop(planner *b, const tile_node *n) {
    tile_step *step;
    TILE_TRY(new_step(b->plan, TILE_STEP_LOOP, n, &step));
    const int32_t index = b->plan->step_count - 1;
    step->first = b->plan->carry_count;
    step->count = b->p->region[n->region].yield_count;
    step->place = b->plan->place[b->p->region[n->region].argument];
    step->bytes = b->plan->place[tile_node_in(b->p, n, 0)];
    TILE_TRY(plan_carries(b, n));
    TILE_TRY(plan_region(b, n->region));
    b->plan->step[index].body = b->plan->step_count - 1 - index;
    return TILE_OK;
}

static bool is_member(const planner *b, int32_t node) {
    return b->member ? b->member[node] : is_elementwise(&b->p->node[node]);
}

/* An op of a group: elementwise, or in generated code another, which has no strip. */
static tile_status plan_member(planner *b, const tile_node *n) {
    if (!is_elementwise(n)) {
        TILE_TRY(PUSH(b->plan, strip));
        b->plan->strip[b->plan->strip_count++] = (tile_strip_step){
            .node = n, .n_in = n->n_in, .out = n->n_out ? b->plan->place[n->out] : 0};
        return TILE_OK;
    }
    TILE_TRY(tile_plan_strip(b->plan, b->p, n, b->local));
    tile_strip_step *s = &b->plan->strip[b->plan->strip_count - 1];
    for (int i = 0; i < n->n_in; i++)
        if (b->local[base_of(b, tile_node_in(b->p, n, i))]) s->in_step[i] = 0;
    return TILE_OK;
}

static tile_status plan_group(planner *b, const tile_region *r, int32_t *k) {
    tile_step *step;
    const tile_node *n = &b->p->node[r->node[*k]];
    TILE_TRY(new_step(b->plan, TILE_STEP_STRIPS, n, &step));
    if (n->n_out) step->elements = count_of(b->p->value[n->out].shape);
    step->first = b->plan->strip_count;
    for (const int32_t group = r->node[*k]; *k < r->count && b->group[r->node[*k]] == group; ++*k) {
        TILE_TRY(plan_member(b, &b->p->node[r->node[*k]]));
        step->count++;
    }
    --*k;
    return TILE_OK;
}

static tile_status plan_region(planner *b, int32_t region) {
    const tile_region *r = &b->p->region[region];
    for (int32_t k = 0; k < r->count; k++) {
        const tile_node *n = &b->p->node[r->node[k]];
        if (is_member(b, r->node[k]))
            TILE_TRY(plan_group(b, r, &k));
        else if (n->op == &tile_op_loop)
            TILE_TRY(plan_loop(b, n));
        else
            TILE_TRY(tile_plan_node(b->plan, b->p, b->used, n, false));
    }
    return TILE_OK;
}

static tile_status plan_blocks(planner *b) {
    const size_t values = (size_t)b->p->value_count + 1;
    b->local = tile_alloc(values * sizeof *b->local);
    b->used = tile_alloc(values * sizeof *b->used);
    b->stage = tile_alloc(values * sizeof *b->stage);
    b->plan->place = tile_alloc(values * sizeof *b->plan->place);
    if (!b->local || !b->used || !b->stage || !b->plan->place) return TILE_E_MEMORY;
    find_uses(b);
    if (b->unplaced) memcpy(b->local, b->unplaced, values * sizeof *b->local);
    TILE_TRY(tile_place_values(b->p, b->group, b->local, b->alias, b->unplaced != NULL, b->plan,
                               b->stage));
    return plan_region(b, 0);
}

static tile_status plan_with(planner *b) {
    const tile_status status = plan_blocks(b);
    tile_free(b->local);
    tile_free(b->used);
    tile_free(b->stage);
    return status;
}

tile_status tile_plan_ordered(const tile_program *ordered, int32_t *group, const int32_t *alias,
                              const bool *member, const bool *unplaced, tile_plan *plan) {
    *plan = (tile_plan){.bytes = 0};
    planner b = {.p = ordered,
                 .plan = plan,
                 .group = group,
                 .alias = alias,
                 .member = member,
                 .unplaced = unplaced};
    const tile_status status = plan_with(&b);
    if (status) tile_plan_clear(plan);
    return status;
}

tile_status tile_plan_blocks(const tile_program *program, tile_plan *plan) {
    *plan = (tile_plan){.bytes = 0};
    tile_program ordered = {.region = NULL};
    planner b = {.p = &ordered, .plan = plan};
    tile_status status = TILE_OK;
    b.group = tile_alloc(((size_t)program->node_count + 1) * sizeof *b.group);
    if (!b.group) return TILE_E_MEMORY;
    if (program->region_count) status = reorder(program, &ordered);
    if (program->region_count && !status) {
        find_groups(&b);
        status = plan_with(&b);
    }
    free_order(&ordered);
    tile_free(b.group);
    if (status) tile_plan_clear(plan);
    return status;
}

/* The flat plan */

static tile_status plan_flat_node(tile_plan *plan, const tile_program *p, const bool *used,
                                  const tile_node *n) {
    plan->place[n->out] = plan->bytes;
    if (n->op->kind == TILE_OP_ELEMENTWISE) {
        tile_step *step;
        TILE_TRY(new_step(plan, TILE_STEP_STRIPS, n, &step));
        step->first = plan->strip_count;
        step->count = 1;
        TILE_TRY(tile_plan_strip(plan, p, n, NULL));
    } else {
        TILE_TRY(tile_plan_node(plan, p, used, n, true));
    }
    plan->bytes += sizeof(uint64_t);
    return TILE_OK;
}

static tile_status plan_flat(const tile_program *p, const tile_analysis *a, const bool *used,
                             tile_plan *plan) {
    const tile_op *broadcast = tile_op_find("broadcast"), *view = tile_op_find("view");
    plan->place = tile_alloc(((size_t)p->value_count + 1) * sizeof *plan->place);
    if (!plan->place) return TILE_E_MEMORY;
    for (int32_t k = 0; k < a->order_count; k++) {
        const tile_node *n = &p->node[a->order[k]];
        if (n->n_out != 1 || !a->flat[n->out]) continue;
        const int32_t from = n->n_in > 0 ? tile_node_in(p, n, 0) : -1;
        if (from >= 0 && a->flat[from] && (n->op == broadcast || n->op == view)) {
            plan->place[n->out] = plan->place[from];
            continue;
        }
        TILE_TRY(plan_flat_node(plan, p, used, n));
    }
    return TILE_OK;
}

tile_status tile_plan_flat(const tile_program *program, const tile_analysis *analysis,
                           tile_plan *plan) {
    *plan = (tile_plan){.bytes = 0};
    bool *used = tile_alloc((size_t)program->value_count + 1);
    if (!used) return TILE_E_MEMORY;
    for (int32_t v = 0; v < program->value_count; v++) used[v] = true;
    const tile_status status = plan_flat(program, analysis, used, plan);
    tile_free(used);
    if (status) tile_plan_clear(plan);
    return status;
}
