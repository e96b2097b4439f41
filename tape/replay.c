/* replay.c: running a recording again. */
#include "core/move.h"
#include "core/status.h"
#include "tape/tape.h"

/* Whether a replay can restore what somebody else's launch wrote: every byte, or nothing the tape
 * itself writes. */
static tile_status check_foreign(const tape *t) {
    for (int32_t i = 0; i < t->count; i++) {
        const tape_record *r = t->record[i];
        if (r->kind != TAPE_LAUNCH || !r->foreign) continue;
        for (int32_t k = 0; k < r->count; k++)
            TILE_CHECK(!r->operand[k].written || !tape_use_restarts(r->operand[k].use),
                       TILE_E_STATE,
                       "tape_replay: record %d (%s) was launched outside of the tape on an array "
                       "that the tape writes or uses afterwards",
                       (int)i, tile_executable_program(r->kernel->forward)->name);
    }
    return TILE_OK;
}

/* Arrays that the tape writes, or others wrote in between, begin as at their first use. */
static tile_status restore_initial(tape *t) {
    for (tape_use *u = t->uses; u; u = u->next) {
        if (!tape_use_restarts(u) || !u->initial->buffer) continue;
        tile_storage *s = u->storage;
        TILE_TRY(tile_storage_will_write(s, (tile_range){0, (int64_t)s->bytes}));
        TILE_TRY(tile_move_copy(t->ctx, s->buffer->data, u->initial->buffer->data, s->bytes));
    }
    return TILE_OK;
}

/* What the host wrote in between is written again; what it wrote after all uses of an array that
 * the tape only reads is its new input. */
static tile_status rerun_outside(tape_record *r, const void *values) {
    tape_operand *o = &r->operand[0];
    tile_array *a = o->array;
    const bool again = tape_use_restarts(o->use);
    if (again) TILE_TRY(tile_storage_will_write(a->storage, tile_array_range(a)));
    for (int k = 0; again && k < tile_array_part_count(a); k++) {
        const tile_array part = tile_array_part(a, k);
        const tape_elements to = tape_elements_of(&part);
        tape_elements from = to;
        from.at = (char *)(uintptr_t)values + (tile_array_byte(&part) - tile_array_byte(a));
        TILE_TRY(tape_copy_elements(a->storage->ctx, part.shape, to, from));
    }
    o->need = tape_need_for_replay(o->use, tile_array_range(a), r->number);
    return o->need ? TILE_OK : TILE_E_MEMORY;
}

/* A need on its own, apart from the record, while the record is run again. */
static tile_status rerun(tape *t, tape_record *r) {
    if (r->kind == TAPE_RETAIN || r->foreign) return TILE_OK;
    tape_need *values = NULL;
    if (r->kind == TAPE_OUTSIDE) {
        values = r->operand[0].need;
        r->operand[0].need = NULL;
    }
    if (r->kind == TAPE_CALL) return tape_call_run(t, r);
    if (r->kind == TAPE_LAUNCH) return tape_launch_run(t, r);
    const tile_status status =
        rerun_outside(r, values ? tape_need_address(values, r->operand[0].array) : NULL);
    tape_need_release(values);
    return status;
}

static bool is_free_to_move(const tape_use *u) {
    const tile_storage *s = u->storage;
    return !s->exposed && s->buffer->refs == 1 && s->buffer->capacity;
}

/* What the host wrote as a whole may be in another buffer than the last time. */
static tile_status bring_home(tape *t) {
    for (tape_use *u = t->uses; u; u = u->next) {
        if (tape_use_restarts(u) || !is_free_to_move(u)) continue;
        tile_buffer **held = &u->storage->buffer;
        if (u->home && u->home != (*held)->data) TILE_TRY(tile_move_home(t->ctx, held, u->home));
        u->home = (*held)->data;
    }
    return TILE_OK;
}

/* The same buffers in every replay, so that a device sees the same launches. The content of those
 * that restore_initial fills is not needed. */
static tile_status settle(tape *t) {
    int32_t count = 0;
    TILE_TRY(bring_home(t));
    for (tape_use *u = t->uses; u; u = u->next) {
        tile_storage *s = u->storage;
        if (!tape_use_restarts(u) || !u->initial->buffer || s->exposed) continue;
        TILE_TRY(tile_storage_will_write(s, (tile_range){0, (int64_t)s->bytes}));
        if (!is_free_to_move(u)) continue;
        TILE_TRY(tile_grow(&t->settled, &t->settled_capacity, count + 1, sizeof *t->settled));
        t->settled[count++] = &s->buffer;
    }
    tile_pool_settle(t->ctx, count, t->settled);
    return TILE_OK;
}

static tile_status run_all(tape *t) {
    TILE_TRY(restore_initial(t));
    for (int32_t i = 0; i < t->count; i++) TILE_TRY(rerun(t, t->record[i]));
    return TILE_OK;
}

static tile_status replay(tape *t) {
    for (int32_t i = 0; i < t->count; i++)
        if (t->record[i]->kind != TAPE_OUTSIDE && !t->record[i]->foreign)
            tape_record_drop_values(t->record[i]);
    if (tile_has_graphs(t->ctx)) TILE_TRY(settle(t));
    TILE_TRY(tile_graph_begin(t->ctx, &t->graphs[0]));
    const tile_status status = run_all(t), ended = tile_graph_end(t->ctx);
    return status ? status : ended;
}

tile_status tape_replay(tape *t) {
    TILE_CHECK(t, TILE_E_ARGUMENT, "tape_replay: record is NULL");
    TILE_TRY(tape_check_usable(t, "tape_replay"));
    TILE_CHECK(!t->running, TILE_E_STATE, "tape_replay: the tape is running");
    TILE_TRY(check_foreign(t));
    t->running = true;
    const tile_status status = replay(t);
    t->running = false;
    if (status) t->broken = status;
    return status;
}

static const void *initial_address(const tape *t, const tile_array *a) {
    const tape_use *u = tape_find_use(t, a->storage);
    if (!u || !tape_use_restarts(u)) return tile_array_address(a);
    return tape_need_address(u->initial, a);
}

tile_status tape_initial_read(tape *t, tile_array *a, void *host, size_t bytes) {
    const size_t size = tile_dtype_size(a->dtype);
    TILE_CHECK(bytes == (size_t)tile_array_count(a) * size, TILE_E_ARGUMENT,
               "tape_initial_read: %zu bytes", bytes);
    return tile_move_out(t->ctx, a->dtype, a->shape, host, initial_address(t, a), a->stride);
}

/* The initial need of a written storage is kept already or is copied now; it is the tape's alone
 * unless a record needs the same version, so it gets a buffer of its own first. */
static tile_status own_initial(tape_use *u) {
    tape_need *need = u->initial;
    if (need->buffer && need->buffer->refs == 1) return TILE_OK;
    tile_buffer *copy;
    TILE_TRY(tile_buffer_create(u->storage->ctx, u->storage->bytes, &copy));
    const char *from = need->buffer ? need->buffer->data : u->storage->buffer->data;
    const tile_status status = tile_move_copy(u->storage->ctx, copy->data, from, u->storage->bytes);
    if (status) {
        tile_buffer_release(copy);
        return status;
    }
    if (need->buffer) {
        tile_buffer_release(need->buffer);
        need->buffer = copy;
        return TILE_OK;
    }
    tape_need_unlive(need);
    need->buffer = copy;
    need->base = 0;
    return TILE_OK;
}

tile_status tape_initial_write(tape *t, tile_array *a, const void *host, size_t bytes) {
    tape_use *u = tape_find_use(t, a->storage);
    const size_t size = tile_dtype_size(a->dtype);
    TILE_CHECK(bytes == (size_t)tile_array_count(a) * size, TILE_E_ARGUMENT,
               "tape_initial_write: %zu bytes", bytes);
    char *to;
    if (u && tape_use_restarts(u)) {
        TILE_TRY(own_initial(u));
        to = (char *)u->initial->buffer->data + (size_t)a->offset * size;
    } else {
        TILE_TRY(tile_storage_will_write(a->storage, tile_array_range(a)));
        to = tile_array_address(a);
    }
    return tile_move_in(t->ctx, a->dtype, a->shape, to, a->stride, host, NULL);
}

/* One more into out, where there is room. false: no memory. */
static bool add_part(const tile_array *part, tile_array **out, int most, int *count) {
    if (*count < most && tile_array_over(part->storage, part->dtype, part->shape, part->stride,
                                         part->offset, &out[*count]))
        return false;
    ++*count;
    return true;
}

int tape_grad_arrays(tape *t, tile_array **out, int most) {
    int count = 0;
    for (tape_use *u = t->uses; u; u = u->next) {
        if (!u->storage->grad) continue;
        const tile_array all = tape_whole(u->storage);
        for (int k = tile_array_part_count(&all) - 1; k >= 0; k--) { /* listed last first */
            const tile_array part = tile_array_part(&all, k);
            if (!tile_is_float(part.dtype) || add_part(&part, out, most, &count)) continue;
            while (count > 0) tile_array_destroy(out[--count]);
            return -1;
        }
    }
    return count;
}
