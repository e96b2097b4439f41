/* sweep.c: backward: the reverse sweep over the records. */
#include <string.h>

#include "core/dtype.h"
#include "core/move.h"
#include "core/status.h"
#include "tape/sweep.h"

void tape_bind_step(const tape_record *r, const tile_adjoint_step *step, tile_bound *bound) {
    for (int g = 0; g < TILE_GRID_RANK; g++) {
        bound->domain[g] = r->grid[g];
        bound->grid[g] = r->grid[g] + step->margin[g];
    }
    bound->stash = r->stash ? r->stash->data : NULL;
    int grad = r->count;
    for (int k = 0; k < r->count; k++) {
        const tape_operand *o = &r->operand[k];
        bound->scalar[k] = r->scalar[k];
        if (!o->array) continue;
        const void *values = o->need ? tape_need_address(o->need, o->array) : NULL;
        tape_memory(o->array, values, NULL, &bound->array[k]);
    }
    for (int k = 0; k < r->count; k++) {
        const tape_operand *o = &r->operand[k];
        if (!(step->grads >> k & 1u)) continue;
        const tape_elements adjoint = tape_adjoint_of(o->use, o->array);
        tape_memory(o->array, adjoint.at, adjoint.at, &bound->array[grad]);
        memcpy(bound->array[grad++].stride, adjoint.stride, sizeof adjoint.stride);
    }
}

static void release_adjoints(tape *t) {
    for (tape_use *u = t->uses; u; u = u->next) {
        tile_buffer_release(u->apart_buffer);
        tile_buffer_release(u->grad_buffer);
        u->apart_buffer = u->grad_buffer = u->adjoint = NULL;
    }
}

static tile_status take_adjoints(tape *t) {
    for (tape_use *u = t->uses; u; u = u->next) {
        tile_storage *grad = u->storage->grad;
        if (grad) TILE_TRY(tile_storage_will_write(grad, (tile_range){0, (int64_t)grad->bytes}));
        if (u->direct || u->turned) u->grad_buffer = tile_buffer_hold(grad->buffer);
        if (!u->direct && (u->turned ? u->apart : u->wanted))
            TILE_TRY(tile_buffer_create(t->ctx, tape_adjoint_bytes(u->storage), &u->apart_buffer));
    }
    return TILE_OK;
}

/* An array that the tape has not used is its own derivative. At NULL: it has no gradient. */
static tape_elements gradient_of(const tile_array *a) {
    tape_elements e = {.dtype = a->dtype};
    if (!a->storage->grad) return e;
    tile_array grad = *a;
    grad.storage = a->storage->grad;
    return tape_elements_of(&grad);
}

static const struct {
    double wide;
    float narrow;
} ones = {1, 1};

/* The seed of a loss, which has one element. */
static tape_elements one_of(const tape *t, const tape_elements *like) {
    const char *from = t->ones ? t->ones->data : (const void *)&ones;
    tape_elements e = {.dtype = tile_wide_dtype(like->dtype)};
    if (e.dtype == TILE_F32) from += sizeof ones.wide;
    e.at = (void *)(uintptr_t)from;
    return e;
}

/* What a seed of 1 is added from, where the memory is a device's. */
static tile_status need_ones(tape *t) {
    if (t->ones || !tile_is_remote(t->ctx)) return TILE_OK;
    TILE_TRY(tile_buffer_create(t->ctx, sizeof ones, &t->ones));
    const tile_shape bytes = {1, {sizeof ones}};
    const tile_status status =
        tile_move_in(t->ctx, TILE_U8, bytes, t->ones->data, NULL, &ones, NULL);
    if (!status) return TILE_OK;
    tile_buffer_release(t->ones);
    t->ones = NULL;
    return status;
}

static bool is_first(int k, tile_array *const *array) {
    for (int j = 0; j < k; j++)
        if (array[j]->storage == array[k]->storage) return false;
    return true;
}

/* A seed that covers its storage is all there is so far. */
static bool begins(int k, tile_array *const *array, tile_array *const *seed) {
    return seed && is_first(k, array) && tile_array_is_whole(array[k]) &&
           !tile_holds_half(array[k]->dtype);
}

static tile_status plant_seed(tape *t, int k, tile_array *const *array, tile_array *const *seed) {
    const tile_array *a = array[k];
    const tape_use *u = tape_find_use(t, a->storage);
    const tape_elements to = u ? tape_adjoint_of(u, a) : gradient_of(a);
    if (!to.at) return TILE_OK;
    const tape_elements from = seed ? tape_elements_of(seed[k]) : one_of(t, &to);
    if (u && !u->direct) {
        if (begins(k, array, seed)) return tape_copy_elements(t->ctx, a->shape, to, from);
        if (is_first(k, array)) TILE_TRY(tape_fill_zero(u->adjoint));
    }
    return tape_add_elements(t->ctx, a->shape, to, from);
}

static tile_status plant_seeds(tape *t, int count, tile_array *const *array,
                               tile_array *const *seed) {
    for (int k = 0; k < count; k++) TILE_TRY(plant_seed(t, k, array, seed));
    return TILE_OK;
}

static tile_status sweep_launch(tape_record *r) {
    tile_bound bound;
    for (int k = 0; k < r->count; k++)
        if (r->zero >> k & 1u) TILE_TRY(tape_fill_zero(r->operand[k].use->adjoint));
    for (int i = 0; i < r->sweep->count; i++) {
        if (r->skip >> i & 1u) continue;
        tape_bind_step(r, &r->sweep->step[i], &bound);
        TILE_TRY(tile_execute(r->sweep->step[i].exe, &bound));
    }
    for (int k = 0; k < r->count; k++) {
        if (!(r->turn >> k & 1u)) continue;
        r->operand[k].use->adjoint = r->operand[k].use->grad_buffer;
    }
    return TILE_OK;
}

static tile_status sweep_retain(tile_context *ctx, const tape_record *r) {
    const tile_array *a = r->operand[0].array;
    const tape_elements from = tape_adjoint_of(r->operand[0].use, a),
                        to = tape_elements_of(r->retained);
    if (!r->skip && from.dtype == a->dtype) return tape_copy_elements(ctx, a->shape, to, from);
    TILE_TRY(tape_fill_zero(r->retained->storage->buffer));
    return r->skip ? TILE_OK : tape_add_elements(ctx, a->shape, to, from);
}

static tile_status sweep_record(tape *t, tape_record *r) {
    switch (r->kind) {
    case TAPE_LAUNCH: return r->sweep ? sweep_launch(r) : TILE_OK;
    case TAPE_CALL: return r->skip || t->ctx->rehearsal ? TILE_OK : tape_call_backward(t, r);
    case TAPE_OUTSIDE:
        return r->skip ? TILE_OK : tape_zero_adjoint(r->operand[0].use, r->operand[0].array);
    case TAPE_RETAIN: return sweep_retain(t->ctx, r);
    }
    return TILE_OK;
}

/* The rest of the requested gradients: what is left at the first version is added. */
static tile_status add_gradients(tape *t) {
    for (tape_use *u = t->uses; u; u = u->next) {
        if (!u->storage->grad || u->direct || u->turned || !u->planned || !u->wanted) continue;
        const tile_array all = tape_whole(u->storage);
        for (int k = 0; k < tile_array_part_count(&all); k++) {
            tile_array part = tile_array_part(&all, k);
            if (!tile_is_float(part.dtype)) continue;
            const tape_elements from = tape_adjoint_of(u, &part);
            part.storage = u->storage->grad;
            TILE_TRY(tape_add_elements(t->ctx, part.shape, tape_elements_of(&part), from));
        }
    }
    return TILE_OK;
}

/* All that changes gradients. */
static tile_status run_sweep(tape *t, int count, tile_array *const *array,
                             tile_array *const *seed) {
    for (tape_use *u = t->uses; u; u = u->next)
        u->adjoint = u->direct ? u->grad_buffer : u->apart_buffer;
    TILE_TRY(plant_seeds(t, count, array, seed));
    for (int32_t i = t->count - 1; i >= 0; i--) TILE_TRY(sweep_record(t, t->record[i]));
    return add_gradients(t);
}

/* The same walk, which only reserves: whatever can run out does so here. */
static tile_status rehearse(tape *t, int count, tile_array *const *array, tile_array *const *seed) {
    t->ctx->rehearsal = true;
    const tile_status status = run_sweep(t, count, array, seed);
    t->ctx->rehearsal = false;
    return status;
}

/* A sweep that failed half-way. */
static void mark_invalid(const tape *t, int count, tile_array *const *array) {
    const bool remote = tile_is_remote(t->ctx); /* sums into the others may have failed too */
    for (tape_use *u = t->uses; u; u = u->next)
        if (u->wanted && (u->direct || u->turned || (remote && u->planned)))
            u->storage->grad_invalid = true;
    for (int k = 0; k < count && remote; k++) array[k]->storage->grad_invalid = true;
}

static tile_status sweep(tape *t, int count, tile_array *const *array, tile_array *const *seed) {
    TILE_TRY(tape_plan_sweep(t, count, array));
    TILE_TRY(take_adjoints(t));
    for (int k = 0; k < count; k++) {
        tile_storage *grad = tape_find_use(t, array[k]->storage) ? NULL : array[k]->storage->grad;
        if (grad) TILE_TRY(tile_storage_will_write(grad, (tile_range){0, (int64_t)grad->bytes}));
    }
    TILE_TRY(need_ones(t));
    TILE_TRY(rehearse(t, count, array, seed));
    TILE_TRY(tile_graph_begin(t->ctx, &t->graphs[1]));
    tile_status status = run_sweep(t, count, array, seed);
    const tile_status ended = tile_graph_end(t->ctx);
    if (!status) status = ended;
    if (status) mark_invalid(t, count, array);
    return status;
}

/* The last op of a kernel that writes a parameter. */
static const tile_node *last_write(const tile_kernel *kernel, int param) {
    const tile_program *p = tile_executable_program(kernel->forward);
    const tile_analysis *a = tile_executable_analysis(kernel->forward);
    for (int32_t i = a->order_count - 1; i >= 0; i--) {
        const tile_node *n = &p->node[a->order[i]];
        if (n->op->access > TILE_ACCESS_LOAD && n->param == param) return n;
    }
    return NULL;
}

/* An array whose dtype has no gradient: what wrote it last says where. */
static tile_status no_gradient(const tape *t, const char *call, int k, const tile_array *a) {
    TILE_CHECK(tile_dtype_valid(a->dtype), TILE_E_DTYPE,
               "%s: array %d is %s: seed its float members, see tile_array_field", call, k,
               tile_dtype_name(a->dtype));
    for (int32_t i = t->count - 1; i >= 0; i--) {
        const tape_record *r = t->record[i];
        for (int j = 0; r->kind == TAPE_LAUNCH && j < r->count; j++) {
            if (!r->operand[j].written || r->operand[j].array->storage != a->storage) continue;
            const tile_node *n = last_write(r->kernel, j);
            const char *file = n->file ? n->file : "?", *slash = strrchr(file, '/');
            return tile_fail(TILE_E_NO_ADJOINT,
                             "%s: array %d is %s, wanted a float: kernel %s: op %s, made at "
                             "%s:%d, wrote it and has no adjoint for it",
                             call, k, tile_dtype_name(a->dtype),
                             tile_executable_program(r->kernel->forward)->name, n->op->name,
                             slash ? slash + 1 : file, n->line);
        }
    }
    return tile_fail(TILE_E_DTYPE, "%s: array %d is %s, wanted a float", call, k,
                     tile_dtype_name(a->dtype));
}

static tile_status check_one(const tape *t, const char *call, int k, const tile_array *a,
                             const tile_array *seed, bool seeded) {
    TILE_CHECK(a, TILE_E_ARGUMENT, "%s: array %d is NULL", call, k);
    TILE_CHECK(a->storage->ctx == t->ctx, TILE_E_ARGUMENT, "%s: array %d is of another context",
               call, k);
    if (!tile_is_float(a->dtype)) return no_gradient(t, call, k, a);
    if (!seeded) {
        TILE_CHECK(tile_array_count(a) == 1, TILE_E_SHAPE, "%s: loss has %lld elements, expected 1",
                   call, (long long)tile_array_count(a));
        return TILE_OK;
    }
    char text[2][TILE_SHAPE_TEXT];
    TILE_CHECK(seed, TILE_E_ARGUMENT, "%s: seed %d is NULL", call, k);
    TILE_CHECK(seed->storage->ctx == t->ctx, TILE_E_ARGUMENT, "%s: seed %d is of another context",
               call, k);
    TILE_CHECK(seed->dtype == a->dtype, TILE_E_DTYPE, "%s: seed %d is %s, its array is %s", call, k,
               tile_dtype_name(seed->dtype), tile_dtype_name(a->dtype));
    TILE_CHECK(tile_shape_equal(seed->shape, a->shape), TILE_E_SHAPE,
               "%s: seed %d is %s, its array is %s", call, k, tile_shape_text(seed->shape, text[0]),
               tile_shape_text(a->shape, text[1]));
    return TILE_OK;
}

static tile_status backward(tape *t, const char *call, int count, tile_array *const *array,
                            tile_array *const *seed) {
    TILE_CHECK(t, TILE_E_ARGUMENT, "%s: record is NULL", call);
    TILE_CHECK(count >= 1 && array, TILE_E_ARGUMENT, "%s: no arrays are given", call);
    TILE_CHECK(!t->running, TILE_E_STATE, "%s: the tape is running", call);
    TILE_CHECK(t->count > 0, TILE_E_STATE, "%s: the tape is empty", call);
    TILE_TRY(tile_context_sync(t->ctx));
    TILE_TRY(tape_check_usable(t, call));
    for (int k = 0; k < count; k++)
        TILE_TRY(check_one(t, call, k, array[k], seed ? seed[k] : NULL, seed != NULL));
    t->running = true;
    const tile_status status = sweep(t, count, array, seed);
    t->running = false;
    release_adjoints(t);
    return status;
}

tile_status tape_backward(tape *record, tile_array *loss) {
    return backward(record, "tape_backward", 1, &loss, NULL);
}

tile_status tape_backward_seeds(tape *record, int count, tile_array *const *array,
                                tile_array *const *seed) {
    TILE_CHECK(seed, TILE_E_ARGUMENT, "tape_backward_seeds: seed is NULL");
    return backward(record, "tape_backward_seeds", count, array, seed);
}
