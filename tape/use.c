/* use.c: the storages of a tape, and the values that records need of them. */
#include <string.h>

#include "core/move.h"
#include "core/status.h"
#include "tape/tape.h"

/* First live need whose range begins at low or later. */
static int32_t lower_bound(const tape_use *u, int64_t low) {
    int32_t first = 0, count = u->live_count;
    while (count > 0) {
        const int32_t half = count / 2;
        if (u->live[first + half]->range.low < low) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}

/* The next live need from index on that meets a range, or NULL. */
static tape_need *next_meeting(const tape_use *u, tile_range range, int32_t *index) {
    for (; *index < u->live_count; ++*index) {
        tape_need *need = u->live[*index];
        if (need->range.low >= range.high) return NULL;
        if (need->range.high > range.low) return need;
    }
    return NULL;
}

static int32_t first_candidate(const tape_use *u, tile_range range) {
    return lower_bound(u, range.low > u->longest ? range.low - u->longest : 0);
}

void tape_need_unlive(tape_need *need) {
    tape_use *u = need->use;
    int32_t k = lower_bound(u, need->range.low);
    while (u->live[k] != need) k++;
    memmove(&u->live[k], &u->live[k + 1], (size_t)(u->live_count - k - 1) * sizeof *u->live);
    u->live_count--;
}

static bool watcher_needs(const tile_watcher *self, tile_range range) {
    const tape_use *u = (const tape_use *)self;
    int32_t k = first_candidate(u, range);
    return next_meeting(u, range, &k) != NULL;
}

static tile_status refuse(const tape_use *u, const tape_need *need) {
    const bool known = need->reader < u->record->count;
    const tape_record *r = known ? u->record->record[need->reader] : NULL;
    const char *name = "a call", *array = "array";
    if (!r) return tile_fail(TILE_E_STATE, "its own adjoint needs the values before");
    for (int32_t k = 0; r->kernel && k < r->count; k++) {
        const tile_program *p = tile_executable_program(r->kernel->forward);
        name = p->name;
        if (r->operand[k].need == need) array = p->param[k].name;
    }
    return tile_fail(TILE_E_STATE, "the adjoint of record %lld (%s) needs the values of its %s",
                     (long long)need->reader, name, array);
}

/* Copies [range] of the storage to a buffer of its own. */
static tile_status copy_values(tape_need *need) {
    const tile_storage *s = need->use->storage;
    tile_buffer *copy;
    const size_t bytes = (size_t)(need->range.high - need->range.low);
    TILE_TRY(tile_buffer_create(s->ctx, bytes, &copy));
    const tile_status status =
        tile_move_copy(s->ctx, copy->data, (const char *)s->buffer->data + need->range.low, bytes);
    if (status) {
        tile_buffer_release(copy);
        return status;
    }
    need->buffer = copy;
    need->base = need->range.low;
    return TILE_OK;
}

static tile_status watcher_save(tile_watcher *self, tile_range range, tile_buffer *adopt) {
    tape_use *u = (tape_use *)self;
    int32_t k = first_candidate(u, range);
    for (tape_need *need = next_meeting(u, range, &k); need; need = next_meeting(u, range, &k)) {
        if (u->record->options.overwrite == TAPE_OVERWRITE_ERROR && !need->initial)
            return refuse(u, need);
        if (adopt) {
            need->buffer = tile_buffer_hold(adopt);
            need->base = 0;
        } else {
            TILE_TRY(copy_values(need));
        }
        tape_need_unlive(need);
    }
    return TILE_OK;
}

/* A note at the end of the tape that a write of the same elements makes obsolete, or NULL. So
 * inputs that are written before every replay do not fill the tape. */
static tape_record *obsolete_note(const tape_use *u, const tile_array *array) {
    const tape *t = u->record;
    for (int32_t i = t->count - 1; i >= 0 && t->record[i]->kind == TAPE_OUTSIDE; i--) {
        const tape_operand *o = &t->record[i]->operand[0];
        if (o->use != u) continue;
        return tape_same_elements(o->array, array) ? t->record[i] : NULL;
    }
    return NULL;
}

static tile_status note_write(tape_use *u, const tile_array *array) {
    tape *t = u->record;
    tape_record *r = obsolete_note(u, array);
    const bool fresh = !r;
    if (fresh) r = tape_record_new(t, TAPE_OUTSIDE, 1);
    if (!r) return TILE_E_MEMORY;
    tape_operand *o = &r->operand[0];
    tape_need *need = tape_need_for_replay(u, tile_array_range(array), r->number);
    if (!need) return TILE_E_MEMORY;
    tape_need_release(o->need);
    *o = (tape_operand){.array = o->array, .use = u, .need = need, .written = true};
    if (!fresh) return TILE_OK;
    tile_array *copy;
    const tile_status status = tile_array_over(u->storage, array->dtype, array->shape,
                                               array->stride, array->offset, &copy);
    if (status) {
        tape_need_release(need);
        return status;
    }
    o->array = copy;
    u->outside = true;
    tape_record_append(t, r);
    return TILE_OK;
}

/* Somebody else wrote: noted as a record of the values as they are now. */
static tile_status watcher_written(tile_watcher *self, const tile_array *array) {
    tape_use *u = (tape_use *)self;
    tape *t = u->record;
    if (t->running || !note_write(u, array)) return TILE_OK;
    t->broken = TILE_E_MEMORY;
    return tile_fail(TILE_E_MEMORY, "memory ran out when a tape noted a write");
}

tape_use *tape_find_use(const tape *t, const tile_storage *storage) {
    for (tile_watcher *w = storage->watchers; w; w = w->next) {
        tape_use *u = (tape_use *)w;
        if (w->needs == watcher_needs && u->record == t) return u;
    }
    return NULL;
}

/* A use of nothing yet; one that served before brings its list along. */
static tape_use *new_use(tape *t) {
    tape_use *u = t->spare_uses;
    if (!u) return tile_alloc(sizeof *u);
    t->spare_uses = u->next;
    *u = (tape_use){.live = u->live, .live_capacity = u->live_capacity};
    return u;
}

static void spare_use(tape *t, tape_use *u) {
    u->next = t->spare_uses;
    t->spare_uses = u;
}

tape_use *tape_use_of(tape *t, tile_storage *storage) {
    tape_use *u = tape_find_use(t, storage);
    if (u) return u;
    u = new_use(t);
    if (!u) return NULL;
    u->record = t;
    u->storage = storage;
    u->active = storage->grad != NULL;
    u->initial = tape_need_for_replay(u, (tile_range){0, (int64_t)storage->bytes}, t->count);
    if (!u->initial) {
        spare_use(t, u);
        return NULL;
    }
    u->watcher = (tile_watcher){.next = storage->watchers,
                                .needs = watcher_needs,
                                .save = watcher_save,
                                .written = watcher_written};
    tile_storage_hold(storage);
    storage->watchers = &u->watcher;
    u->next = t->uses;
    t->uses = u;
    return u;
}

static void let_go(tape_use *u) {
    tile_watcher **link = &u->storage->watchers;
    while (*link != &u->watcher) link = &(*link)->next;
    *link = u->watcher.next;
    tape_need_release(u->initial);
    tile_storage_release(u->storage);
}

void tape_spare_uses(tape *t, const tape_use *older) {
    while (t->uses != older) {
        tape_use *u = t->uses;
        t->uses = u->next;
        let_go(u);
        spare_use(t, u);
    }
}

void tape_free_spare_uses(tape *t) {
    while (t->spare_uses) {
        tape_use *u = t->spare_uses;
        t->spare_uses = u->next;
        tile_free(u->live);
        tile_free(u);
    }
}

static tape_need *need_memory(tape *t) {
    tape_need *need = t->free_needs;
    if (need) {
        t->free_needs = need->next;
        return need;
    }
    return tape_take(t, sizeof *need);
}

/* A need at its place among the live ones. */
static tape_need *add_need(tape_use *u, int32_t at, const tape_need *like) {
    if (tile_grow(&u->live, &u->live_capacity, u->live_count + 1, sizeof *u->live)) return NULL;
    tape_need *need = need_memory(u->record);
    if (!need) return NULL;
    *need = *like;
    memmove(&u->live[at + 1], &u->live[at], (size_t)(u->live_count - at) * sizeof *u->live);
    u->live[at] = need;
    u->live_count++;
    const int64_t length = like->range.high - like->range.low;
    if (length > u->longest) u->longest = length;
    return need;
}

tape_need *tape_need_now(tape_use *u, tile_range range, int64_t reader) {
    int32_t k = lower_bound(u, range.low);
    for (; k < u->live_count && u->live[k]->range.low == range.low; k++) {
        if (u->live[k]->range.high != range.high || u->live[k]->initial) continue;
        u->live[k]->refs++;
        return u->live[k];
    }
    return add_need(u, k, &(tape_need){.use = u, .refs = 1, .range = range, .reader = reader});
}

tape_need *tape_need_for_replay(tape_use *u, tile_range range, int64_t reader) {
    const tape_need like = {.use = u, .refs = 1, .range = range, .initial = true, .reader = reader};
    return add_need(u, lower_bound(u, range.low), &like);
}

void tape_need_release(tape_need *need) {
    if (!need || --need->refs > 0) return;
    if (need->buffer) {
        tile_buffer_release(need->buffer);
    } else {
        tape_need_unlive(need);
    }
    tape *t = need->use->record;
    need->next = t->free_needs;
    t->free_needs = need;
}

const void *tape_need_address(const tape_need *need, const tile_array *array) {
    const tile_storage *s = array->storage;
    const int64_t byte = tile_array_byte(array);
    if (!need->buffer) return (const char *)s->buffer->data + byte;
    return (const char *)need->buffer->data + byte - need->base;
}
