/* program.c: storage of a kernel program, and the structure's own ops. */
#include "core/program.h"

#include <string.h>

#include "core/memory.h"
#include "core/status.h"

#define STRUCTURE_OP(id, text) \
    const tile_op tile_op_##id = {.name = text, .kind = TILE_OP_STRUCTURE}

STRUCTURE_OP(param, "param");
STRUCTURE_OP(block_index, "block_index");
STRUCTURE_OP(grid_size, "grid_size");
STRUCTURE_OP(domain_size, "domain_size");
STRUCTURE_OP(extent, "extent");
STRUCTURE_OP(within, "within");
STRUCTURE_OP(loop, "loop");
STRUCTURE_OP(keep, "keep");
STRUCTURE_OP(kept, "kept");

void tile_program_clear(tile_program *p) {
    for (int32_t r = 0; r < p->region_count; r++) {
        tile_free(p->region[r].node);
        tile_free(p->region[r].yield);
    }
    tile_free(p->value);
    tile_free(p->node);
    tile_free(p->input);
    tile_free(p->region);
    tile_free(p->slot);
    *p = (tile_program){.param_count = 0};
}

int32_t tile_program_add_value(tile_program *p, tile_dtype dtype, tile_shape shape, int32_t node,
                               int32_t result, int32_t region) {
    if (tile_grow(&p->value, &p->value_capacity, p->value_count + 1, sizeof *p->value)) return -1;
    p->value[p->value_count] = (tile_value){
        .dtype = dtype, .shape = shape, .node = node, .result = result, .region = region};
    return p->value_count++;
}

int32_t tile_program_add_node(tile_program *p, const tile_node *node, const int32_t *in) {
    if (tile_grow(&p->node, &p->node_capacity, p->node_count + 1, sizeof *p->node)) return -1;
    if (tile_grow(&p->input, &p->input_capacity, p->input_count + node->n_in, sizeof *p->input))
        return -1;
    tile_node *n = &p->node[p->node_count];
    *n = *node;
    n->in = p->input_count;
    for (int32_t k = 0; k < node->n_in; k++) p->input[p->input_count + k] = in[k];
    p->input_count += node->n_in;
    return p->node_count++;
}

int32_t tile_program_add_region(tile_program *p, int32_t owner) {
    if (tile_grow(&p->region, &p->region_capacity, p->region_count + 1, sizeof *p->region))
        return -1;
    p->region[p->region_count] = (tile_region){.owner = owner, .argument = -1};
    return p->region_count++;
}

tile_status tile_region_append(tile_program *p, int32_t region, int32_t node) {
    tile_region *r = &p->region[region];
    TILE_TRY(tile_grow(&r->node, &r->capacity, r->count + 1, sizeof *r->node));
    r->node[r->count++] = node;
    p->node[node].parent = region;
    return TILE_OK;
}

bool tile_region_within(const tile_program *p, int32_t inner, int32_t outer) {
    while (inner != outer) {
        if (inner <= 0) return false;
        inner = p->node[p->region[inner].owner].parent;
    }
    return true;
}

bool tile_program_has_loop(const tile_program *p) {
    for (int32_t k = 0; k < p->node_count; k++)
        if (p->node[k].op == &tile_op_loop) return true;
    return false;
}

bool tile_node_is_launch_leaf(const tile_node *n) {
    return n->op == &tile_op_param || n->op == &tile_op_grid_size ||
           n->op == &tile_op_domain_size || n->op == &tile_op_extent;
}

bool tile_value_is_launch_known(const tile_program *p, int32_t value) {
    const tile_value *v = &p->value[value];
    if (v->result < 0) return false;
    const tile_node *n = &p->node[v->node];
    const bool leaf = tile_node_is_launch_leaf(n);
    const bool maths = n->op->kind == TILE_OP_ELEMENTWISE ||
                       (n->op->kind == TILE_OP_COOPERATIVE && !n->op->access);
    if (!leaf && !maths) return false;
    for (int32_t k = 0; k < n->n_in; k++)
        if (!tile_value_is_launch_known(p, tile_node_in(p, n, k))) return false;
    return true;
}

bool tile_node_has_effect(const tile_program *p, const tile_node *n) {
    if (n->op == &tile_op_keep || n->op == &tile_op_within || n->op->access > TILE_ACCESS_LOAD)
        return true;
    if (n->op != &tile_op_loop) return false;
    const tile_region *body = &p->region[n->region];
    for (int32_t k = 0; k < body->count; k++)
        if (tile_node_has_effect(p, &p->node[body->node[k]])) return true;
    return false;
}

static tile_status copy_array(void *to, const void *from, int32_t count, size_t size) {
    if (!count) return TILE_OK;
    void *memory = tile_alloc((size_t)count * size);
    if (!memory) return TILE_E_MEMORY;
    memcpy(memory, from, (size_t)count * size);
    memcpy(to, &memory, sizeof memory);
    return TILE_OK;
}

static tile_status copy_regions(const tile_program *from, tile_program *to) {
    if (!from->region_count) return TILE_OK;
    to->region = tile_alloc((size_t)from->region_count * sizeof *to->region);
    if (!to->region) return TILE_E_MEMORY;
    to->region_count = to->region_capacity = from->region_count;
    for (int32_t r = 0; r < from->region_count; r++) {
        const tile_region *source = &from->region[r];
        tile_region *target = &to->region[r];
        *target = (tile_region){.owner = source->owner, .argument = source->argument};
        TILE_TRY(copy_array(&target->node, source->node, source->count, sizeof *source->node));
        target->count = target->capacity = source->count;
        TILE_TRY(
            copy_array(&target->yield, source->yield, source->yield_count, sizeof *source->yield));
        target->yield_count = source->yield_count;
    }
    return TILE_OK;
}

static tile_status copy_all(const tile_program *from, tile_program *to) {
    TILE_TRY(copy_array(&to->value, from->value, from->value_count, sizeof *from->value));
    to->value_count = to->value_capacity = from->value_count;
    TILE_TRY(copy_array(&to->node, from->node, from->node_count, sizeof *from->node));
    to->node_count = to->node_capacity = from->node_count;
    TILE_TRY(copy_array(&to->input, from->input, from->input_count, sizeof *from->input));
    to->input_count = to->input_capacity = from->input_count;
    TILE_TRY(copy_array(&to->slot, from->slot, from->slot_count, sizeof *from->slot));
    to->slot_count = to->slot_capacity = from->slot_count;
    return copy_regions(from, to);
}

tile_status tile_program_copy(const tile_program *from, tile_program *to) {
    *to = (tile_program){.param_count = from->param_count, .reverse = from->reverse};
    memcpy(to->name, from->name, sizeof to->name);
    memcpy(to->param, from->param, sizeof to->param);
    const tile_status status = copy_all(from, to);
    if (status) tile_program_clear(to);
    return status;
}
