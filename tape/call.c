/* call.c: host code on a tape. */
#include <string.h>

#include "core/dtype.h"
#include "core/move.h"
#include "core/status.h"
#include "tape/tape.h"

/* Arrays handed to a user's function: the declared ones or stand-ins, by operand. */
typedef struct handed {
    tile_array *reads[TILE_PARAMS_MAX], *writes[TILE_PARAMS_MAX], *dreads[TILE_PARAMS_MAX];
    tile_array *own[3 * TILE_PARAMS_MAX]; /* to be destroyed */
    int own_count;
} handed;

static void destroy_handed(handed *h) {
    for (int k = 0; k < h->own_count; k++) tile_array_destroy(h->own[k]);
}

static tile_status keep_old_values(const tape_record *r) {
    for (int32_t k = 0; k < r->count; k++)
        if (r->operand[k].written && tile_array_count(r->operand[k].array) > 0) {
            const tile_array *a = r->operand[k].array;
            const tile_status kept = tile_storage_will_write(a->storage, tile_array_range(a));
            if (kept == TILE_E_STATE)
                return tile_fail(kept,
                                 "tape_record_call: array %d of writes would be overwritten: "
                                 "%s",
                                 (int)k - r->call->read_count, tile_last_error());
            TILE_TRY(kept);
        }
    return TILE_OK;
}

/* Other tapes note what the call wrote. */
static tile_status tell_others(const tape *t, const tape_record *r) {
    for (int32_t k = r->call->read_count; k < r->count; k++) {
        const tile_array *a = r->operand[k].array;
        for (tile_watcher *w = a->storage->watchers; w && tile_array_count(a) > 0; w = w->next)
            if (((tape_use *)w)->record != t) TILE_TRY(w->written(w, a));
    }
    return TILE_OK;
}

tile_status tape_call_run(tape *t, tape_record *r) {
    handed h = {.own_count = 0};
    for (int32_t k = 0; k < r->count; k++) {
        tape_operand *o = &r->operand[k];
        if (k < r->call->read_count) {
            h.reads[k] = o->array;
            if (tile_array_count(o->array) == 0) continue;
            o->need = tape_need_now(o->use, tile_array_range(o->array), r->number);
            if (!o->need) return TILE_E_MEMORY;
        } else {
            h.writes[k - r->call->read_count] = o->array;
        }
    }
    TILE_TRY(keep_old_values(r));
    TILE_TRY(tile_graph_cut(t->ctx));
    const bool running = t->running;
    t->running = true;
    const tile_status status = r->call->forward(r->call->user, h.reads, h.writes);
    t->running = running;
    return status ? status : tell_others(t, r);
}

static tile_status hand(handed *h, tile_status status, tile_array **place) {
    if (!status) h->own[h->own_count++] = *place;
    return status;
}

/* The values that an operand's need stands for, as an array. */
static tile_status hand_values(tape *t, handed *h, const tape_operand *o, tile_array **place) {
    const bool kept = o->need && o->need->buffer;
    tape_elements e = tape_elements_of(o->array);
    if (kept) e.at = (char *)o->need->buffer->data + (tile_array_byte(o->array) - o->need->base);
    return hand(h,
                tape_stand_in(t->ctx, o->array->shape, &e,
                              kept ? o->need->buffer : o->array->storage->buffer, place),
                place);
}

/* A copy of what came in for a written array, which is then cleared. */
static tile_status hand_upstream(tape *t, handed *h, const tape_operand *o, tile_array **place) {
    const tile_array *a = o->array;
    const tile_dtype dtype = tile_wide_dtype(a->dtype);
    TILE_TRY(hand(h, tile_array_create(t->ctx, dtype, a->shape, place), place));
    if (!o->use->adjoint || !o->use->active) return TILE_OK;
    for (int k = 0; k < tile_array_part_count(a); k++) {
        const tile_array part = tile_array_part(a, k), copy = tile_array_part(*place, k);
        TILE_TRY(tape_copy_elements(t->ctx, part.shape, tape_elements_of(&copy),
                                    tape_adjoint_of(o->use, &part)));
    }
    return tape_zero_adjoint(o->use, a);
}

static tile_status hand_all(tape *t, const tape_record *r, handed *h) {
    const int reads = r->call->read_count;
    for (int32_t k = 0; k < reads; k++) TILE_TRY(hand_values(t, h, &r->operand[k], &h->reads[k]));
    for (int32_t k = reads; k < r->count; k++)
        TILE_TRY(hand_upstream(t, h, &r->operand[k], &h->writes[k - reads]));
    for (int32_t k = 0; k < reads; k++) {
        const tape_operand *o = &r->operand[k];
        h->dreads[k] = NULL;
        if (!o->use->adjoint || !o->use->active) continue;
        const tape_elements e = tape_adjoint_of(o->use, o->array);
        TILE_TRY(hand(h, tape_stand_in(t->ctx, o->array->shape, &e, o->use->adjoint, &h->dreads[k]),
                      &h->dreads[k]));
    }
    return TILE_OK;
}

tile_status tape_call_backward(tape *t, tape_record *r) {
    handed h = {.own_count = 0};
    for (int32_t k = 0; k < r->count; k++)
        if (r->zero >> k & 1u) TILE_TRY(tape_fill_zero(r->operand[k].use->adjoint));
    tile_status status = hand_all(t, r, &h);
    if (!status) status = tile_graph_cut(t->ctx);
    if (!status && r->call->backward)
        status = r->call->backward(r->call->user, h.reads, h.writes, h.dreads);
    destroy_handed(&h);
    return status;
}

static tile_status check(const tape *t, const tape_call *call) {
    TILE_CHECK(t && call && call->forward, TILE_E_ARGUMENT, "tape_record_call: %s is NULL",
               !t      ? "record"
               : !call ? "call"
                       : "forward");
    TILE_CHECK(!t->broken && !t->running, TILE_E_STATE,
               "tape_record_call: the tape is running or failed before");
    const int count = call->read_count + call->write_count;
    TILE_CHECK(call->read_count >= 0 && call->write_count >= 0 && count <= TILE_PARAMS_MAX,
               TILE_E_ARGUMENT, "tape_record_call: %d reads and %d writes, at most %d together",
               call->read_count, call->write_count, TILE_PARAMS_MAX);
    TILE_CHECK((call->reads || !call->read_count) && (call->writes || !call->write_count),
               TILE_E_ARGUMENT, "tape_record_call: %s is NULL",
               call->reads || !call->read_count ? "writes" : "reads");
    for (int k = 0; k < count; k++) {
        const tile_array *a =
            k < call->read_count ? call->reads[k] : call->writes[k - call->read_count];
        TILE_CHECK(a, TILE_E_ARGUMENT, "tape_record_call: array %d is NULL", k);
        TILE_CHECK(a->storage->ctx == t->ctx, TILE_E_ARGUMENT,
                   "tape_record_call: array %d is of another context", k);
        TILE_CHECK(tile_dtype_valid(a->dtype) || !tile_holds_half(a->dtype), TILE_E_DTYPE,
                   "tape_record_call: array %d is %s with 16-bit floats: hand views of its members",
                   k, tile_dtype_name(a->dtype));
    }
    return TILE_OK;
}

static void note(tape_record *r) {
    bool carries = false;
    for (int32_t k = 0; k < r->count; k++)
        if (r->operand[k].read && r->operand[k].use->active) carries = true;
    for (int32_t k = 0; k < r->count; k++) {
        tape_operand *o = &r->operand[k];
        if (o->use->outside) o->use->between = true;
        if (!o->written) continue;
        o->use->written = true;
        if (carries && tile_has_gradient(o->array->dtype)) o->use->active = true;
    }
}

static tile_status record_call(tape *t, const tape_call *call) {
    const int count = call->read_count + call->write_count;
    tape_record *r = tape_record_new(t, TAPE_CALL, count);
    if (r) r->call = tape_take(t, sizeof *r->call);
    if (!r || !r->call) return TILE_E_MEMORY;
    *r->call = *call;
    for (int k = 0; k < count; k++) {
        const bool read = k < call->read_count;
        tile_array *a = read ? call->reads[k] : call->writes[k - call->read_count];
        tape_use *use = tape_use_of(t, a->storage);
        if (!use) return TILE_E_MEMORY;
        r->operand[k] = (tape_operand){.array = a, .use = use, .read = read, .written = !read};
    }
    for (int k = 0; k < count; k++) tile_array_hold(r->operand[k].array);
    const tile_status status = tape_call_run(t, r);
    if (status) {
        tape_record_drop(r);
        return status;
    }
    note(r);
    tape_record_append(t, r);
    return TILE_OK;
}

tile_status tape_record_call(tape *t, const tape_call *call) {
    TILE_TRY(check(t, call));
    const tape_use *older = t->uses;
    const tile_status status = record_call(t, call);
    if (status) tape_spare_uses(t, older);
    return status;
}
