/* kernel.c: the public builder calls of the structure, and the life of a kernel. */
#include "core/kernel.h"

#include <stdio.h>
#include <string.h>

#include "core/builder.h"
#include "core/memory.h"
#include "core/status.h"
#include "core/struct_tile.h"

static const tile_shape scalar = {.rank = 0};

tile_builder *tile_kernel_begin(tile_context *ctx, const char *name) {
    if (!ctx || !name) {
        (void)tile_fail(TILE_E_ARGUMENT, "tile_kernel_begin: %s is NULL", ctx ? "name" : "ctx");
        return NULL;
    }
    return tile_builder_create(ctx, name);
}

int32_t tile_builder_add_param(tile_builder *b, const char *call, const tile_param_info *info,
                               const char *name, int count) {
    if (!b || b->status) return -1;
    tile_program *p = &b->program;
    if (!tile_is_name(name)) {
        tile_builder_fail(b, TILE_E_ARGUMENT,
                          "%s: the name %s is not an identifier of 1 to %d letters", call,
                          name ? name : "NULL", TILE_NAME_BYTES - 1);
        return -1;
    }
    if (p->param_count + count > TILE_PARAMS_MAX) {
        tile_builder_fail(b, TILE_E_ARGUMENT,
                          "%s: parameter %s is over the limit of %d, members of structs counted",
                          call, name, TILE_PARAMS_MAX);
        return -1;
    }
    for (int32_t k = 0; k < b->arg_count; k++) {
        if (strcmp(b->arg[k].name, name)) continue;
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: there is a parameter %s already", call, name);
        return -1;
    }
    tile_launch_arg *arg = &b->arg[b->arg_count++];
    *arg = (tile_launch_arg){.first = p->param_count, .dtype = info->dtype, .rank = info->rank};
    snprintf(arg->name, sizeof arg->name, "%s", name);
    for (int k = 0; k < count; k++) {
        tile_param_info *param = &p->param[p->param_count++];
        *param = *info;
        snprintf(param->name, sizeof param->name, "%s", name);
    }
    return arg->first;
}

tile_launch_arg *tile_builder_array(tile_builder *b, tile_param a) {
    for (int32_t k = 0; b && a.builder == b && k < b->arg_count; k++) {
        tile_launch_arg *arg = &b->arg[k];
        const bool is_struct = tile_struct_of(arg->dtype) != NULL;
        if (a.index != (is_struct ? TILE_STRUCT_PARAM + k : arg->first)) continue;
        return b->program.param[arg->first].kind == TILE_PARAM_ARRAY ? arg : NULL;
    }
    return NULL;
}

tile_param(tile_array_param)(tile_builder *b, const char *name, tile_dtype dtype, int rank) {
    const tile_param_info info = {
        .kind = TILE_PARAM_ARRAY, .dtype = dtype, .rank = rank, .value = -1};
    if (b && tile_struct_of(dtype)) return tile_struct_param(b, name, dtype, rank);
    if (b && !tile_dtype_valid(dtype))
        tile_builder_fail(b, TILE_E_DTYPE,
                          "tile_array_param: %s has dtype %d, wanted 0 to %d or a struct's",
                          name ? name : "", (int)dtype, (int)TILE_DTYPES - 1);
    if (b && (rank < 0 || rank > TILE_RANK_MAX))
        tile_builder_fail(b, TILE_E_ARGUMENT, "tile_array_param: %s has rank %d, wanted 0 to %d",
                          name ? name : "", rank, (int)TILE_RANK_MAX);
    return (tile_param){b, tile_builder_add_param(b, "tile_array_param", &info, name, 1)};
}

tile tile_builder_scalar_param(tile_builder *b, int32_t index) {
    const tile_node node = {.op = &tile_op_param,
                            .param = -1,
                            .region = -1,
                            .n_out = 1,
                            .attrs.n[0] = index,
                            .epoch = b->epoch};
    const tile t = tile_builder_add_structure(b, &node, b->program.param[index].dtype);
    b->program.param[index].value = t.id;
    return t;
}

static tile add_scalar(tile_builder *b, const char *call, const tile_param_info *info,
                       const char *name) {
    const int32_t index = tile_builder_add_param(b, call, info, name, 1);
    if (index < 0) return (tile){b, -1};
    return tile_builder_scalar_param(b, index);
}

tile(tile_int_param)(tile_builder *b, const char *name) {
    const tile_param_info info = {.kind = TILE_PARAM_INT, .dtype = TILE_I64, .value = -1};
    return add_scalar(b, "tile_int_param", &info, name);
}

tile(tile_real_param)(tile_builder *b, const char *name, tile_dtype dtype) {
    const tile_param_info info = {.kind = TILE_PARAM_REAL, .dtype = dtype, .value = -1};
    if (b && (!tile_dtype_valid(dtype) || !tile_is_float(dtype)))
        return tile_builder_fail(b, TILE_E_DTYPE, "tile_real_param: %s is not of a float dtype",
                                 name ? name : "");
    return add_scalar(b, "tile_real_param", &info, name);
}

tile(tile_block_index)(tile_builder *b, int axis) {
    return tile_builder_axis_value(b, &tile_op_block_index, axis);
}

tile(tile_grid_size)(tile_builder *b, int axis) {
    return tile_builder_axis_value(b, &tile_op_grid_size, axis);
}

tile(tile_int)(tile_builder *b, int64_t value) {
    const tile_emission e = {.op = tile_op_find("full"),
                             .attrs.n[0] = value,
                             .has_shape = true,
                             .shape = scalar,
                             .has_dtype = true,
                             .dtype = TILE_I64};
    return tile_emit(b, &e);
}

tile(tile_real)(tile_builder *b, tile_dtype dtype, double value) {
    if (b && (!tile_dtype_valid(dtype) || !tile_is_float(dtype)))
        return tile_builder_fail(b, TILE_E_DTYPE, "tile_real: dtype %d is not a float", (int)dtype);
    return tile_constant(b, dtype, scalar, value);
}

tile(tile_block_start)(tile_builder *b, int axis, int64_t step) {
    const tile both[] = {(tile_block_index)(b, axis), (tile_int)(b, step)};
    return tile_emit_elementwise(b, "mul", 2, both);
}

tile_offset tile_offset_shift(tile_offset at, tile_shape by) {
    for (int d = 0; d < TILE_RANK_MAX && d < by.rank; d++) at.shift[d] += by.extent[d];
    return at;
}

/* Grid axes that move a store's window; all where that is not known. Blocks that differ along the
 * others store the same places again, and the last one wins. */
static unsigned axes_of_store(const tile_program *p, const tile_analysis *a, const tile_node *n) {
    const tile_access_window w = tile_window_of_node(p, a, n);
    unsigned axes = 0;
    if (n->op->indexed) return ~0u;
    for (int d = 0; d < w.rank; d++) {
        if (!w.at[d].known) return ~0u;
        for (int g = 0; g < TILE_GRID_RANK; g++)
            if (w.at[d].coefficient[g]) axes |= 1u << g;
    }
    return axes;
}

/* What the executable's analysis says of whole arrays. */
static void note_accesses(tile_kernel *k) {
    const tile_program *p = tile_executable_program(k->forward);
    const tile_analysis *a = tile_executable_analysis(k->forward);
    uint32_t written = 0;
    unsigned moving = ~0u;
    for (int32_t i = 0; i < a->order_count; i++) {
        const tile_node *n = &p->node[a->order[i]];
        if (n->op == &tile_op_block_index) k->axes |= 1u << n->attrs.n[0];
        if (!n->op->access) continue;
        const uint32_t bit = (uint32_t)1 << n->param;
        if (n->op->access != TILE_ACCESS_STORE) k->reads |= bit;
        if (n->op->access != TILE_ACCESS_STORE && (written & bit)) k->reads_after_write |= bit;
        if (n->op->access >= TILE_ACCESS_TAKE)
            k->reads_after_write |= bit; /* they read where they write */
        if (n->op->access != TILE_ACCESS_LOAD) written |= bit;
        if (n->op->access != TILE_ACCESS_STORE) continue;
        tile_cover_of_store(p, a, n, &k->stores[n->param]);
        moving &= axes_of_store(p, a, n);
    }
    k->axes &= moving;
    k->writes = written;
    for (int i = 0; i < p->param_count; i++) {
        const uint32_t bit = (uint32_t)1 << i;
        if (p->param[i].kind == TILE_PARAM_ARRAY && tile_is_float(p->param[i].dtype))
            k->floats |= bit;
        const bool both = (k->reads & bit) && (k->writes & bit);
        if (both && !tile_blocks_apart(p, a, bit)) k->reads_after_write |= bit;
        if (both && tile_program_has_loop(p)) k->reads_after_write |= bit;
    }
}

/* Makes a kernel of a program, which is taken also on failure. */
static tile_status kernel_of(tile_context *ctx, tile_program *program, tile_kernel **kernel) {
    tile_kernel *k = tile_alloc(sizeof *k);
    if (!k) {
        tile_program_clear(program);
        return TILE_E_MEMORY;
    }
    const tile_status status = tile_executable_create(ctx, program, &k->forward);
    if (status) {
        tile_free(k);
        return status;
    }
    k->refs = 1;
    k->ctx = tile_context_hold(ctx);
    note_accesses(k);
    *kernel = k;
    return TILE_OK;
}

static tile_status end_with(tile_builder *b, tile_kernel **kernel) {
    if (b->status) return tile_fail(b->status, "%s", b->message);
    TILE_CHECK(kernel, TILE_E_ARGUMENT, "tile_kernel_end: kernel is NULL");
    TILE_CHECK(b->region == 0, TILE_E_STATE, "tile_kernel_end: a loop of kernel %s has not ended",
               b->program.name);
    TILE_TRY(tile_program_prune(&b->program));
    TILE_TRY(tile_program_verify(&b->program));
    tile_program program = b->program;
    b->program = (tile_program){.param_count = 0};
    size_t shared;
    tile_status status = tile_shared_bytes(&program, &shared);
    if (!status && shared > b->ctx->shared_bytes)
        status = tile_fail(TILE_E_MEMORY,
                           "tile_kernel_end: kernel %s: tiles in shared memory need %zu bytes at "
                           "one time, a block has %zu",
                           program.name, shared, b->ctx->shared_bytes);
    if (status) {
        tile_program_clear(&program);
        return status;
    }
    TILE_TRY(kernel_of(b->ctx, &program, kernel));
    (*kernel)->shared_bytes = shared;
    (*kernel)->arg_count = b->arg_count;
    memcpy((*kernel)->arg, b->arg, sizeof b->arg);
    return TILE_OK;
}

tile_status(tile_kernel_end)(tile_builder *b, tile_kernel **kernel) {
    TILE_CHECK(b, TILE_E_ARGUMENT, "tile_kernel_end: b is NULL: tile_kernel_begin gave no builder");
    const tile_status status = end_with(b, kernel);
    tile_builder_destroy(b);
    return status;
}

size_t tile_kernel_shared_bytes(const tile_kernel *kernel) {
    return kernel ? kernel->shared_bytes : 0;
}

tile(tile_set_space)(tile t, tile_space space) {
    tile part[TILE_MEMBERS_MAX];
    if (!tile_is_good(t) || t.builder->status) return t;
    if (space != TILE_REGISTER && space != TILE_SHARED)
        return tile_builder_fail(t.builder, TILE_E_ARGUMENT,
                                 "tile_set_space: space is %d, wanted 0 or 1", (int)space);
    for (int k = tile_parts(t, part) - 1; k >= 0; k--)
        t.builder->program.value[part[k].id].shared = space == TILE_SHARED;
    return t;
}

tile_space tile_space_of(tile t) {
    tile part[TILE_MEMBERS_MAX];
    if (!tile_is_good(t)) return TILE_REGISTER;
    (void)tile_parts(t, part);
    return t.builder->program.value[part[0].id].shared ? TILE_SHARED : TILE_REGISTER;
}

tile_kernel *tile_kernel_hold(tile_kernel *kernel) {
    kernel->refs++;
    return kernel;
}

void tile_kernel_destroy(tile_kernel *kernel) {
    if (!kernel || --kernel->refs > 0) return;
    while (kernel->plans) {
        tile_adjoint_plan *plan = kernel->plans;
        kernel->plans = plan->next;
        tile_adjoint_plan_destroy(plan);
    }
    tile_executable_destroy(kernel->forward);
    tile_kernel_destroy(kernel->own_adjoint);
    tile_context *ctx = kernel->ctx;
    tile_free(kernel);
    tile_context_release(ctx);
}

tile_status tile_kernel_print(const tile_kernel *kernel, FILE *out) {
    TILE_CHECK(kernel && out, TILE_E_ARGUMENT, "tile_kernel_print: %s is NULL",
               kernel ? "out" : "kernel");
    return tile_program_print(tile_executable_program(kernel->forward), out);
}

void tile_cover_of_store(const tile_program *p, const tile_analysis *a, const tile_node *n,
                         tile_cover *cover) {
    const tile_access_window w = tile_window_of_node(p, a, n);
    if (n->parent != 0 || n->op->indexed) return;
    tile_cover c = {.known = true, .rank = w.rank};
    unsigned used = 0;
    for (int d = 0; d < w.rank; d++) {
        c.low[d] = w.at[d].constant;
        c.extent[d] = w.extent[d];
        c.axis[d] = -1;
        if (!w.at[d].known || w.at[d].uniform >= 0) return;
        for (int g = 0; g < TILE_GRID_RANK; g++) {
            if (!w.at[d].coefficient[g]) continue;
            if (c.axis[d] >= 0 || (used >> g & 1u)) return;
            used |= 1u << g;
            c.axis[d] = g;
            c.step[d] = w.at[d].coefficient[g];
        }
        if (c.axis[d] >= 0 && (c.step[d] < 1 || c.step[d] > c.extent[d])) return;
    }
    *cover = c;
}

bool tile_cover_is_whole(const tile_cover *c, const int64_t *grid, const int64_t *extent) {
    if (!c->known) return false;
    for (int g = 0; g < TILE_GRID_RANK; g++)
        if (grid[g] < 1) return false;
    for (int d = 0; d < c->rank; d++) {
        const int64_t blocks = c->axis[d] < 0 ? 1 : grid[c->axis[d]] + c->margin[c->axis[d]];
        int64_t end;
        if (c->low[d] > 0) return false;
        if (__builtin_mul_overflow(blocks - 1, c->step[d], &end)) continue;
        if (__builtin_add_overflow(end, c->low[d] + c->extent[d], &end)) continue;
        if (end < extent[d]) return false;
    }
    return true;
}
