/* sweep_plan.c: what each record of a reverse sweep will do, before any of it is done. */
#include <string.h>

#include "core/status.h"
#include "tape/sweep.h"

static void start_uses(tape *t) {
    for (tape_use *u = t->uses; u; u = u->next) {
        u->retained = u->turned = u->apart = false;
        u->first = NULL;
    }
    for (int32_t i = t->count - 1; i >= 0; i--) {
        const tape_record *r = t->record[i];
        for (int k = 0; k < r->count; k++) {
            if (!r->operand[k].use) continue;
            if (r->kind == TAPE_RETAIN) r->operand[k].use->retained = true;
            if (r->operand[k].written || r->kind == TAPE_OUTSIDE) r->operand[k].use->first = r;
        }
    }
    for (tape_use *u = t->uses; u; u = u->next) {
        const bool half = tile_holds_half(u->storage->dtype); /* summed in float32 */
        u->direct = u->storage->grad && !half && !u->retained && !u->written && !u->outside;
        u->planned = u->direct;
        u->wanted = false;
    }
}

static tile_status plan_seeds(tape *t, int count, tile_array *const *array) {
    for (int k = 0; k < count; k++) {
        tape_use *u = tape_find_use(t, array[k]->storage);
        if (!u) continue;
        u->planned = u->wanted = true;
    }
    return TILE_OK;
}

/* Which upstream adjoints are there; of a launch that keeps values the plan must stay the same. */
static tile_adjoint_key sweep_key(const tape_record *r) {
    tile_adjoint_key key = r->plan->key;
    uint32_t planned = 0;
    for (int k = 0; k < r->count; k++)
        if (r->operand[k].use && r->operand[k].use->planned) planned |= (uint32_t)1 << k;
    if (!r->plan->augmented) key.upstream &= planned;
    key.accumulate = r->plan->gather & planned;
    return key;
}

static bool covers_whole(const tape_record *r, int k, const tile_cover *cover) {
    const tile_array *a = r->operand[k].array;
    return tile_array_is_whole(a) && tile_cover_is_whole(cover, r->grid, a->shape.extent);
}

/* Whether some parameter of the class overwrites the whole storage. */
static bool stores_whole(const tape_record *r, int cls) {
    for (int k = 0; k < r->count; k++)
        if (r->operand[k].array && r->sweep->key.same[k] == cls &&
            covers_whole(r, k, &r->kernel->stores[k]))
            return true;
    return false;
}

static void need_zero(tape_record *r, int k) {
    tape_use *u = r->operand[k].use;
    if (!u->planned) r->zero |= (uint32_t)1 << k;
    u->planned = true;
}

/* An adjoint that a record clears, the first that wrote the storage: what comes from the records
 * ahead of it goes to the gradient at once. */
static void turn(tape_record *r, int index, int k) {
    tape_use *u = r->operand[k].use;
    if (!u->storage->grad || tile_holds_half(u->storage->dtype)) return;
    if (u->first != r || u->retained || r->foreign) return;
    for (int j = 0; j < r->count; j++) {
        if (r->operand[j].use != u) continue;
        if (r->operand[j].read) return;
        for (int i = index + 1; i < r->sweep->count; i++)
            if (r->sweep->step[i].uses >> j & 1u) return;
    }
    r->turn |= (uint32_t)1 << k;
    u->turned = u->planned = true;
    u->apart = u->wanted;
    u->wanted = false;
}

static void plan_step(tape_record *r, int index) {
    const tile_adjoint_step *step = &r->sweep->step[index];
    for (int k = 0; k < r->count; k++) {
        const uint32_t bit = (uint32_t)1 << k;
        if (!(step->uses & bit)) continue;
        tape_use *u = r->operand[k].use;
        const bool target = (step->targets & bit) != 0;
        if (step->kind == TILE_ADJOINT_CLEAR) {
            if (!u->planned) {
                r->skip |= (uint32_t)1 << index;
            } else if (tile_array_is_whole(r->operand[k].array) && stores_whole(r, k)) {
                r->skip |= (uint32_t)1 << index;
                u->planned = false;
                turn(r, index, k);
            }
            continue;
        }
        u->wanted = true;
        if (step->kind == TILE_ADJOINT_GATHER && target && !u->planned &&
            covers_whole(r, k, &r->sweep->cover[k])) {
            u->planned = true;
        } else {
            need_zero(r, k);
        }
    }
}

static tile_status plan_launch(tape_record *r) {
    if (!r->plan) return TILE_OK;
    const tile_adjoint_key key = sweep_key(r);
    bool reached = false;
    for (int k = 0; k < r->count; k++)
        if ((key.upstream >> k & 1u) && r->operand[k].use->planned) reached = true;
    if (!reached) return TILE_OK;
    TILE_TRY(tile_kernel_adjoint(r->kernel, &key, &r->sweep));
    for (int i = 0; i < r->sweep->count; i++) plan_step(r, i);
    return TILE_OK;
}

/* A call's reads get their adjoints; what it wrote is cleared. */
static tile_status plan_call(tape_record *r) {
    bool reached = false, carries = false;
    for (int k = 0; k < r->count; k++) {
        const tape_operand *o = &r->operand[k];
        if (o->written && o->use->planned && o->use->active) reached = true;
        if (o->read && o->use->active) carries = true;
    }
    r->skip = !reached;
    if (!reached) return TILE_OK;
    TILE_CHECK(!carries || r->call->backward, TILE_E_NO_ADJOINT,
               "tape_backward: a recorded call without a backward function stands on a path that "
               "carries a gradient");
    for (int k = 0; k < r->count; k++) {
        const tape_operand *o = &r->operand[k];
        if (!o->use->active || !tile_has_gradient(o->array->dtype)) continue;
        need_zero(r, k);
        o->use->wanted = true;
    }
    return TILE_OK;
}

static void plan_outside(tape_record *r) {
    tape_use *u = r->operand[0].use;
    r->skip = !u->planned;
    if (!u->planned || !tile_array_is_whole(r->operand[0].array)) return;
    u->planned = false;
    r->skip = 1;
}

static tile_status plan_record(tape_record *r) {
    r->sweep = NULL;
    r->zero = r->skip = r->turn = 0;
    switch (r->kind) {
    case TAPE_LAUNCH: return plan_launch(r);
    case TAPE_CALL: return plan_call(r);
    case TAPE_OUTSIDE: plan_outside(r); return TILE_OK;
    case TAPE_RETAIN: r->skip = !r->operand[0].use->planned; return TILE_OK;
    }
    return TILE_OK;
}

/* A requested gradient, or a retained adjoint, that the seeds do not reach is not an error; that
 * none is reached is. */
static tile_status check_reached(const tape *t, int count, tile_array *const *array) {
    bool requested = false;
    for (int32_t i = 0; i < t->count; i++) {
        if (t->record[i]->kind != TAPE_RETAIN) continue;
        requested = true;
        if (!t->record[i]->skip) return TILE_OK;
    }
    for (int k = 0; k < count; k++)
        if (array[k]->storage->grad && !tape_find_use(t, array[k]->storage)) return TILE_OK;
    for (const tape_use *u = t->uses; u; u = u->next) {
        if (!u->storage->grad) continue;
        requested = true;
        if (u->planned && u->wanted) return TILE_OK;
    }
    return tile_fail(TILE_E_STATE, requested
                                       ? "tape_backward: no requested gradient is reached"
                                       : "tape_backward: no array on the tape has a gradient");
}

tile_status tape_plan_sweep(tape *t, int count, tile_array *const *array) {
    start_uses(t);
    TILE_TRY(plan_seeds(t, count, array));
    for (int32_t i = t->count - 1; i >= 0; i--) TILE_TRY(plan_record(t->record[i]));
    return check_reached(t, count, array);
}
