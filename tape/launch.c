/* launch.c: launches, recorded or not: checks, what must be kept, the run. */
#include <string.h>

#include "core/move.h"
#include "core/status.h"
#include "tape/launch.h"

typedef tape_launch launch;

static tile_status begin(launch *l, tile_kernel *kernel, tile_grid grid) {
    l->kernel = kernel;
    l->program = tile_executable_program(kernel->forward);
    l->count = l->program->param_count;
    int64_t blocks = 1;
    for (int g = 0; g < TILE_GRID_RANK; g++) {
        l->grid[g] = grid.blocks[g];
        TILE_CHECK(grid.blocks[g] >= 0, TILE_E_ARGUMENT,
                   "tile_launch: %s: the grid has %lld blocks along axis %d", l->program->name,
                   (long long)grid.blocks[g], g);
        TILE_CHECK(!__builtin_mul_overflow(blocks, grid.blocks[g], &blocks) && blocks <= (int64_t)1
                                                                                             << 40,
                   TILE_E_ARGUMENT, "tile_launch: %s: the grid has more than 2^40 blocks",
                   l->program->name);
    }
    return TILE_OK;
}

static bool is_empty(const launch *l) {
    return l->grid[0] == 0 || l->grid[1] == 0 || l->grid[2] == 0;
}

/* Fills only what the program has: the struct is large and this is the hot path. */
static void bind(const launch *l, tile_buffer *stash, tile_bound *bound) {
    memcpy(bound->grid, l->grid, sizeof bound->grid);
    memcpy(bound->domain, l->grid, sizeof bound->domain);
    bound->stash = stash ? stash->data : NULL;
    for (int k = 0; k < l->count; k++) {
        if (!l->array[k]) {
            bound->scalar[k] = l->scalar[k];
            continue;
        }
        void *address = tile_array_address(l->array[k]);
        tape_memory(l->array[k], address, address, &bound->array[k]);
    }
}

static bool someone_needs(const tile_storage *s, tile_range range) {
    for (const tile_watcher *w = s->watchers; w; w = w->next)
        if (w->needs(w, range)) return true;
    return false;
}

/* Whether blocks differ along an axis that the kernel does not ask for: they do the same again. */
static bool repeats(const tile_kernel *kernel, const int64_t *grid) {
    for (int g = 0; g < TILE_GRID_RANK; g++)
        if (grid[g] > 1 && !(kernel->axes >> g & 1u)) return true;
    return false;
}

/* Whether parameter k alone overwrites every byte of its storage, after its own reads. A block that
 * fails overwrites nothing. */
static bool replaces(const launch *l, int k) {
    const tile_array *a = l->array[k];
    if (l->may_fail || a->storage->exposed || (l->kernel->reads_after_write >> k & 1u))
        return false;
    if ((l->kernel->reads >> k & 1u) && repeats(l->kernel, l->grid)) return false;
    if (!tile_array_is_whole(a)) return false;
    if (!tile_cover_is_whole(&l->kernel->stores[k], l->grid, a->shape.extent)) return false;
    for (int j = 0; j < l->count; j++)
        if (j != k && l->array[j] && l->array[j]->storage == a->storage) return false;
    return true;
}

/* A watcher that refuses names who needs the values; the launch says who would destroy them. */
static tile_status refused_by(const launch *l, int k, tile_status status) {
    if (status != TILE_E_STATE) return status;
    return tile_fail(status, "tile_launch: %s would overwrite %s: %s", l->program->name,
                     l->program->param[k].name, tile_last_error());
}

/* Before anything is written: old values that are needed are copied, or their buffer is replaced by
 * a fresh one. Nothing is lost when it fails: a copy made for a record holds the right values. */
static tile_status keep_old_values(launch *l) {
    for (int k = 0; k < l->count; k++) {
        if (!(l->kernel->writes >> k & 1u)) continue;
        tile_storage *s = l->array[k]->storage;
        if (!s->watchers || l->array[k]->count == 0) continue;
        const tile_range range = tile_array_range(l->array[k]);
        if (!someone_needs(s, range)) continue;
        if (replaces(l, k)) {
            TILE_TRY(tile_buffer_create(s->ctx, s->bytes, &l->fresh[k]));
        } else {
            TILE_TRY(refused_by(l, k, tile_storage_will_write(s, range)));
        }
    }
    return TILE_OK;
}

static void drop_fresh(launch *l) {
    for (int k = 0; k < l->count; k++) {
        tile_buffer_release(l->fresh[k]);
        l->fresh[k] = NULL;
    }
}

/* The watchers take the old buffers; the storages go on with the fresh ones. Reads still see the
 * old ones. l->fresh holds the old buffers afterwards. */
static tile_status replace_buffers(launch *l, tile_bound *bound) {
    for (int k = 0; k < l->count; k++) {
        if (!l->fresh[k]) continue;
        tile_storage *s = l->array[k]->storage;
        const tile_range all = {0, (int64_t)s->bytes};
        for (tile_watcher *w = s->watchers; w; w = w->next)
            if (w->needs(w, all)) TILE_TRY(refused_by(l, k, w->save(w, all, s->buffer)));
        tile_buffer *old = s->buffer;
        s->buffer = l->fresh[k];
        l->fresh[k] = old;
        bound->array[k].write = tile_array_address(l->array[k]);
    }
    return TILE_OK;
}

/* In checked mode a launch that fails changes nothing. */
static tile_status execute(const launch *l, tile_executable *exe, const tile_bound *bound) {
    tape_trial t;
    tile_context *ctx = l->kernel->ctx;
    if (!l->may_fail || !ctx->check) return tile_execute(exe, bound);
    TILE_TRY(tape_trial_begin(&t, ctx, l->count, l->array, l->kernel->writes));
    const tile_status status = tile_execute(exe, bound);
    const tile_status back = tape_trial_end(&t, l->count, l->array, status != TILE_OK);
    return back ? back : status;
}

/* A launch that a device refused has not happened: what it was to replace is put back. The old
 * buffers may be the watchers' by now. */
static tile_status put_back(const launch *l, tile_status failed) {
    tile_status status = failed;
    for (int k = 0; k < l->count; k++) {
        if (!l->fresh[k]) continue;
        const tile_storage *s = l->array[k]->storage;
        const tile_status moved =
            tile_move_copy(s->ctx, s->buffer->data, l->fresh[k]->data, s->bytes);
        if (moved) status = moved;
    }
    return status;
}

static tile_status run(launch *l, tile_executable *exe, tile_buffer *stash) {
    tile_bound bound;
    bind(l, stash, &bound);
    TILE_TRY(tile_executable_reserve(exe, &bound));
    l->may_fail = tile_executable_may_fail(exe, &bound);
    tile_status status = keep_old_values(l);
    if (!status) status = replace_buffers(l, &bound);
    if (!status) {
        status = execute(l, exe, &bound);
        if (status && status != TILE_E_EXECUTION) status = put_back(l, status);
    }
    drop_fresh(l);
    return status;
}

/* Whether a launch has happened, though some of its blocks failed: its arrays may have changed. */
static bool happened(const launch *l, tile_status status) {
    return !status || (status == TILE_E_EXECUTION && !l->kernel->ctx->check);
}

static tile_places places_of(const tile_array *a) {
    return (tile_places){a->shape.rank, a->shape.extent, a->stride,
                         (int64_t)tile_dtype_size(a->dtype)};
}

static bool arrays_meet(const tile_array *a, const tile_array *b) {
    if (a->count == 0 || b->count == 0) return false;
    const tile_range x = tile_array_range(a), y = tile_array_range(b);
    if (x.low >= y.high || y.low >= x.high) return false;
    const tile_places p = places_of(a), q = places_of(b);
    return !tile_places_interleave(&p, &q, y.low - x.low);
}

/* Which parameters are the same array, and whether the others stay out of each other's way. */
static void find_classes(const tape_record *r, tile_adjoint_key *key) {
    key->apart = true;
    if (repeats(r->kernel, r->grid)) key->apart = false;
    for (int k = 0; k < r->count; k++) {
        const tile_array *a = r->operand[k].array;
        key->same[k] = (int8_t)k;
        if (!a) continue;
        if (tile_array_overlaps_itself(a)) key->apart = false;
        for (int j = 0; j < k; j++) {
            const tile_array *b = r->operand[j].array;
            if (!b || b->storage != a->storage || key->same[j] != j) continue;
            if (tape_same_elements(a, b)) {
                key->same[k] = (int8_t)j;
                break;
            }
            if (arrays_meet(a, b)) key->apart = false;
        }
    }
}

/* Bits of the operands that are read where another one may be written: what one block writes there
 * may carry a gradient to the next, whatever the array held before. */
static uint32_t reads_of_written(const tape_record *r) {
    uint32_t bits = 0;
    for (int k = 0; k < r->count; k++)
        for (int j = 0; j < r->count && r->operand[k].read; j++)
            if (r->operand[j].written && r->operand[j].use == r->operand[k].use)
                bits |= (uint32_t)1 << k;
    return bits;
}

/* Bits of the operands that carry a gradient in, and of those that bring one back. */
static void find_active(const tape_record *r, tile_adjoint_key *key) {
    const uint32_t floats = r->kernel->floats;
    for (int k = 0; k < r->count; k++)
        if ((floats >> k & 1u) && r->operand[k].use && r->operand[k].use->active)
            key->active |= (uint32_t)1 << k;
    const bool carries = !r->foreign && (key->active & r->kernel->reads);
    for (int k = 0; k < r->count; k++)
        if ((floats & r->kernel->writes) >> k & 1u)
            if (carries || r->operand[k].use->active)
                key->upstream |= (uint32_t)1 << k | (uint32_t)1 << key->same[k];
    if (carries && !key->apart) key->active |= floats & reads_of_written(r);
    for (int k = 0; k < r->count; k++) /* a class goes by its first member */
        if (key->active >> k & 1u) key->active |= (uint32_t)1 << key->same[k];
    if (r->foreign) key->active = 0;
}

static tile_status ask_for_values(tape_record *r) {
    for (int k = 0; r->plan && k < r->count; k++) {
        tape_operand *o = &r->operand[k];
        if (!(r->plan->values >> k & 1u) || o->array->count == 0) continue;
        o->need = tape_need_now(o->use, tile_array_range(o->array), r->number);
        if (!o->need) return TILE_E_MEMORY;
    }
    return TILE_OK;
}

static tile_status find_plan(tape_record *r) {
    tile_adjoint_key key;
    memset(&key, 0, sizeof key);
    find_classes(r, &key);
    find_active(r, &key);
    if (!(key.active & r->kernel->reads) && !key.upstream) return TILE_OK;
    return tile_kernel_adjoint(r->kernel, &key, &r->plan);
}

static tile_status make_operand(tape *t, const launch *l, tape_record *r, int k) {
    tape_operand *o = &r->operand[k];
    o->use = tape_use_of(t, l->array[k]->storage);
    if (!o->use) return TILE_E_MEMORY;
    o->array = l->array[k];
    o->read = l->kernel->reads >> k & 1u;
    o->written = l->kernel->writes >> k & 1u;
    return TILE_OK;
}

/* Somebody else's launch that reads an array is no first use of it. */
static bool is_bystander(const tape *t, const launch *l, int k) {
    return !(l->kernel->writes >> k & 1u) && !tape_find_use(t, l->array[k]->storage);
}

static tile_status plan_foreign(tape *t, const launch *l, tape_record *r) {
    TILE_CHECK(!r->plan || !r->plan->augmented, TILE_E_STATE,
               "tile_launch: %s overwrites arrays of a tape in places that only a recorded launch "
               "can tell: record it on that tape",
               l->program->name);
    for (int k = 0; r->plan && k < l->count; k++) /* what says which places were overwritten */
        if (((r->plan->values | r->plan->sized) >> k & 1u) && !r->operand[k].array)
            TILE_TRY(make_operand(t, l, r, k));
    return TILE_OK;
}

/* A record of a launch, with what its adjoint will need held. Not on the tape yet. */
static tile_status make_record(tape *t, const launch *l, bool foreign, tape_record **record) {
    tape_record *r = tape_record_new(t, TAPE_LAUNCH, l->count);
    if (!r) return TILE_E_MEMORY;
    r->foreign = foreign;
    memcpy(r->grid, l->grid, sizeof r->grid);
    for (int k = 0; k < l->count; k++) {
        r->scalar[k] = l->scalar[k];
        if (l->array[k] && !(foreign && is_bystander(t, l, k))) TILE_TRY(make_operand(t, l, r, k));
    }
    r->kernel = l->kernel;
    tile_status status = find_plan(r);
    if (!status && foreign) status = plan_foreign(t, l, r);
    /* From here on the record holds what it names. */
    for (int k = 0; k < l->count; k++)
        if (r->operand[k].array) tile_array_hold(r->operand[k].array);
    tile_kernel_hold(r->kernel);
    *record = r;
    return status;
}

static void note_written(tape_record *r) {
    for (int k = 0; k < r->count; k++) {
        tape_operand *o = &r->operand[k];
        if (o->use && o->use->outside && !r->foreign) o->use->between = true;
        if (!o->written) continue;
        if (r->foreign) {
            o->use->outside = true;
        } else {
            o->use->written = true;
        }
        if (r->plan && (r->plan->key.upstream >> k & 1u)) o->use->active = true;
    }
}

static tile_status make_stash(tape_record *r, const launch *l) {
    tile_bound bound;
    size_t bytes;
    bind(l, NULL, &bound);
    TILE_TRY(tile_stash_bytes(r->plan->augmented, &bound, &bytes));
    return tile_buffer_create(l->kernel->ctx, bytes, &r->stash);
}

static tile_status run_record(tape_record *r, launch *l) {
    const bool keeps = r->plan && r->plan->augmented && !r->foreign;
    TILE_TRY(ask_for_values(r));
    if (keeps) TILE_TRY(make_stash(r, l));
    return run(l, keeps ? r->plan->augmented : l->kernel->forward, r->stash);
}

typedef struct foreign_records {
    int count;
    tape *tape[TILE_PARAMS_MAX];
    tape_record *record[TILE_PARAMS_MAX];
} foreign_records;

static bool is_known(const foreign_records *f, const tape *t) {
    for (int k = 0; k < f->count; k++)
        if (f->tape[k] == t) return true;
    return false;
}

/* A record on each tape, other than own, that uses an array which the launch writes. */
static tile_status make_foreign(const launch *l, const tape *own, foreign_records *f) {
    for (int k = 0; k < l->count; k++) {
        if (!(l->kernel->writes >> k & 1u)) continue;
        for (tile_watcher *w = l->array[k]->storage->watchers; w; w = w->next) {
            tape *t = ((tape_use *)w)->record;
            if (t == own || t->running || is_known(f, t) || f->count == TILE_PARAMS_MAX) continue;
            f->tape[f->count] = t;
            f->record[f->count] = NULL;
            f->count++;
            tape_record **r = &f->record[f->count - 1];
            TILE_TRY(make_record(t, l, true, r));
            TILE_TRY(ask_for_values(*r));
        }
    }
    return TILE_OK;
}

/* A record goes on its tape. Nobody can tell what a launch that failed has written: the tape
 * refuses backward. */
static void append(tape *t, tape_record *r, tile_status status) {
    note_written(r);
    tape_record_append(t, r);
    if (status && !t->failed) t->failed = r;
}

static void finish_foreign(foreign_records *f, const launch *l, tile_status status) {
    for (int k = 0; k < f->count; k++) {
        if (!f->record[k]) continue;
        if (happened(l, status))
            append(f->tape[k], f->record[k], status);
        else
            tape_record_drop(f->record[k]);
    }
}

static bool is_watched(const launch *l) {
    for (int k = 0; k < l->count; k++)
        if ((l->kernel->writes >> k & 1u) && l->array[k]->storage->watchers) return true;
    return false;
}

/* Runs a launch; tapes that watch what it writes note it. */
static tile_status run_noted(launch *l, tape *own, tape_record *r) {
    foreign_records foreign;
    foreign.count = 0;
    tile_status status = is_watched(l) ? make_foreign(l, own, &foreign) : TILE_OK;
    if (!status) status = r ? run_record(r, l) : run(l, l->kernel->forward, NULL);
    finish_foreign(&foreign, l, status);
    return status;
}

tile_status tape_launch_run(tape *t, tape_record *r) {
    launch l;
    const tile_grid grid = {{r->grid[0], r->grid[1], r->grid[2]}};
    TILE_TRY(begin(&l, r->kernel, grid));
    for (int k = 0; k < l.count; k++) {
        l.array[k] = r->operand[k].array;
        l.scalar[k] = r->scalar[k];
        l.fresh[k] = NULL;
    }
    return run_noted(&l, t, r);
}

static tile_status launch_recorded(tape *t, launch *l) {
    tape_record *r = NULL;
    const tape_use *older = t->uses;
    tile_status status = make_record(t, l, false, &r);
    const bool ready = !status;
    if (ready) status = run_noted(l, t, r);
    if (!ready || !happened(l, status)) {
        if (r) tape_record_drop(r);
        tape_spare_uses(t, older);
        return status;
    }
    append(t, r, status);
    return status;
}

/* A launch may still be queued when tile_launch returns: an execution error comes out at the next
 * synchronisation. In checked mode it has been tried. */
static tile_status pend(tile_context *ctx, tile_status status) {
    if (status != TILE_E_EXECUTION || ctx->check) return status;
    tile_context_pend(ctx, status, "%s", tile_last_error());
    return TILE_OK;
}

tile_status tile_launch(tape *record, tile_kernel *kernel, tile_grid grid, tile_args args) {
    launch l;
    TILE_CHECK(kernel, TILE_E_ARGUMENT, "tile_launch: kernel is NULL");
    TILE_TRY(begin(&l, kernel, grid));
    TILE_TRY(tape_take_arguments(&l, args));
    TILE_CHECK(!record || record->ctx == kernel->ctx, TILE_E_ARGUMENT,
               "tile_launch: %s: the tape is of another context", l.program->name);
    TILE_CHECK(!record || !record->broken, TILE_E_STATE,
               "tile_launch: %s: the tape failed before and must be reset", l.program->name);
    TILE_CHECK(!record || !record->running, TILE_E_STATE,
               "tile_launch: %s: the tape is running a call of its own", l.program->name);
    if (is_empty(&l)) return TILE_OK;
    return pend(kernel->ctx, record ? launch_recorded(record, &l) : run_noted(&l, NULL, NULL));
}
