/* sweep.c: backward: the reverse sweep over the records. */
#include <string.h>

#include "core/dtype.h"
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
        tile_buffer_release(u->adjoint);
        u->adjoint = NULL;
    }
}

static tile_status take_adjoints(tape *t) {
    for (tape_use *u = t->uses; u; u = u->next) {
        tile_storage *grad = u->storage->grad;
        if (grad) TILE_TRY(tile_storage_will_write(grad, (tile_range){0, (int64_t)grad->bytes}));
        if (u->direct) {
            u->adjoint = tile_buffer_hold(grad->buffer);
        } else if (u->turned ? u->apart : u->wanted) {
            TILE_TRY(tile_buffer_create(t->ctx, tape_adjoint_bytes(u->storage), &u->adjoint));
        }
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

/* The seed of a loss, which has one element. */
static tape_elements one_of(const tape_elements *like) {
    static const float one32 = 1;
    static const double one64 = 1;
    tape_elements e = {.dtype = tile_wide_dtype(like->dtype)};
    e.at = (void *)(uintptr_t)(e.dtype == TILE_F32 ? (const void *)&one32 : (const void *)&one64);
    return e;
}

/* The first seed of a storage is all there is; what it does not cover is zero. true: it does. */
static bool begin_adjoint(tape_use *u, const tile_array *a, const tile_array *seed) {
    if (seed && tile_array_is_whole(a) && !tile_holds_half(a->dtype)) {
        const tape_elements to = tape_adjoint_of(u, a), from = tape_elements_of(seed);
        tile_copy_strided(a->dtype, a->shape, to.at, to.stride, from.at, from.stride);
        return true;
    }
    tape_fill_zero(u->adjoint);
    return false;
}

static bool is_first(int k, tile_array *const *array) {
    for (int j = 0; j < k; j++)
        if (array[j]->storage == array[k]->storage) return false;
    return true;
}

static void plant_seeds(tape *t, int count, tile_array *const *array, tile_array *const *seed) {
    for (int k = 0; k < count; k++) {
        const tile_array *a = array[k];
        tape_use *u = tape_find_use(t, a->storage);
        if (u && !u->direct && is_first(k, array) && begin_adjoint(u, a, seed ? seed[k] : NULL))
            continue;
        tape_elements to = u ? tape_adjoint_of(u, a) : gradient_of(a);
        if (to.at) tape_add_elements(a->shape, to, seed ? tape_elements_of(seed[k]) : one_of(&to));
    }
}

static tile_status sweep_launch(tape_record *r) {
    tile_bound bound;
    for (int k = 0; k < r->count; k++)
        if (r->zero >> k & 1u) tape_fill_zero(r->operand[k].use->adjoint);
    for (int i = 0; i < r->sweep->count; i++) {
        if (r->skip >> i & 1u) continue;
        tape_bind_step(r, &r->sweep->step[i], &bound);
        TILE_TRY(tile_execute(r->sweep->step[i].exe, &bound));
    }
    for (int k = 0; k < r->count; k++) {
        if (!(r->turn >> k & 1u)) continue;
        tape_use *u = r->operand[k].use;
        tile_buffer_release(u->adjoint);
        u->adjoint = tile_buffer_hold(u->storage->grad->buffer);
    }
    return TILE_OK;
}

static void sweep_retain(const tape_record *r) {
    const tile_array *a = r->operand[0].array;
    const tape_elements from = tape_adjoint_of(r->operand[0].use, a);
    if (r->skip || from.dtype != a->dtype) tape_fill_zero(r->retained->storage->buffer);
    if (r->skip) return;
    if (from.dtype != a->dtype)
        tape_add_elements(a->shape, tape_elements_of(r->retained), from);
    else
        tile_copy_strided(from.dtype, a->shape, tile_array_address(r->retained), NULL, from.at,
                          from.stride);
}

static tile_status sweep_record(tape *t, tape_record *r) {
    switch (r->kind) {
    case TAPE_LAUNCH: return r->sweep ? sweep_launch(r) : TILE_OK;
    case TAPE_CALL: return r->skip ? TILE_OK : tape_call_backward(t, r);
    case TAPE_OUTSIDE:
        if (!r->skip) tape_zero_adjoint(r->operand[0].use, r->operand[0].array);
        return TILE_OK;
    case TAPE_RETAIN: sweep_retain(r); return TILE_OK;
    }
    return TILE_OK;
}

/* The rest of the requested gradients: what is left at the first version is added. */
static void add_gradients(tape *t) {
    for (tape_use *u = t->uses; u; u = u->next) {
        if (!u->storage->grad || u->direct || u->turned || !u->planned || !u->wanted) continue;
        const tile_array all = tape_whole(u->storage);
        for (int k = 0; k < tile_array_part_count(&all); k++) {
            tile_array part = tile_array_part(&all, k);
            if (!tile_is_float(part.dtype)) continue;
            const tape_elements from = tape_adjoint_of(u, &part);
            part.storage = u->storage->grad;
            tape_add_elements(part.shape, tape_elements_of(&part), from);
        }
    }
}

static tile_status sweep(tape *t, int count, tile_array *const *array, tile_array *const *seed) {
    TILE_TRY(tape_plan_sweep(t, count, array));
    TILE_TRY(take_adjoints(t));
    for (int k = 0; k < count; k++) {
        tile_storage *grad = tape_find_use(t, array[k]->storage) ? NULL : array[k]->storage->grad;
        if (grad) TILE_TRY(tile_storage_will_write(grad, (tile_range){0, (int64_t)grad->bytes}));
    }
    plant_seeds(t, count, array, seed);
    for (int32_t i = t->count - 1; i >= 0; i--) {
        const tile_status status = sweep_record(t, t->record[i]);
        if (!status) continue;
        for (tape_use *u = t->uses; u; u = u->next)
            if ((u->direct || u->turned) && u->wanted) u->storage->grad_invalid = true;
        return status;
    }
    add_gradients(t);
    return TILE_OK;
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
    TILE_CHECK(t->count > 0, TILE_E_STATE, "%s: the tape is empty", call);
    TILE_CHECK(!t->running, TILE_E_STATE, "%s: the tape is running", call);
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
