/* storage.c: the memory that arrays share, and announcing writes to those who watch it. */
#include "core/array.h"
#include "core/context.h"
#include "core/move.h"
#include "core/status.h"

tile_status tile_storage_create(tile_context *ctx, tile_dtype dtype, size_t bytes,
                                tile_buffer *take, tile_storage **storage) {
    tile_storage *made = tile_alloc(sizeof *made);
    if (!made) return TILE_E_MEMORY;
    tile_buffer *buffer = take;
    tile_status status = take ? TILE_OK : tile_buffer_create(ctx, bytes, &buffer);
    if (!status && !take) {
        status = tile_move_zero(ctx, buffer->data, bytes);
        if (status) tile_buffer_release(buffer);
    }
    if (status) {
        tile_free(made);
        return status;
    }
    *made = (tile_storage){
        .ctx = tile_context_hold(ctx), .refs = 1, .dtype = dtype, .bytes = bytes, .buffer = buffer};
    *storage = made;
    return TILE_OK;
}

tile_storage *tile_storage_hold(tile_storage *storage) {
    __atomic_fetch_add(&storage->refs, 1, __ATOMIC_RELAXED);
    return storage;
}

void tile_storage_release(tile_storage *storage) {
    if (!storage || __atomic_sub_fetch(&storage->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    tile_context *ctx = storage->ctx;
    if (storage->grad) {
        pthread_mutex_lock(&ctx->lock);
        storage->grad->grad_of = NULL;
        pthread_mutex_unlock(&ctx->lock);
        tile_storage_release(storage->grad);
    }
    tile_buffer_release(storage->buffer);
    tile_free(storage);
    tile_context_release(ctx);
}

/* A copy that one watcher made stays when a later one fails: it holds the right values, so that
 * nothing changed for it. */
tile_status tile_storage_will_write(tile_storage *storage, tile_range range) {
    if (range.low >= range.high) return TILE_OK;
    for (tile_watcher *w = storage->watchers; w; w = w->next)
        if (w->needs(w, range)) TILE_TRY(w->save(w, range, NULL));
    return TILE_OK;
}

static bool needed(const tile_storage *storage, tile_range range) {
    for (const tile_watcher *w = storage->watchers; w; w = w->next)
        if (w->needs(w, range)) return true;
    return false;
}

tile_status tile_storage_will_replace(tile_storage *storage) {
    const tile_range all = {0, (int64_t)storage->bytes};
    if (storage->exposed || all.high == 0) return tile_storage_will_write(storage, all);
    if (!needed(storage, all)) return TILE_OK;
    tile_buffer *fresh, *old = storage->buffer;
    TILE_TRY(tile_buffer_create(storage->ctx, storage->bytes, &fresh));
    tile_status status = TILE_OK;
    for (tile_watcher *w = storage->watchers; w && !status; w = w->next)
        if (w->needs(w, all)) status = w->save(w, all, old);
    /* Somebody may have adopted the old buffer already, so that the storage moves even then. */
    tile_status moved = TILE_OK;
    if (status) moved = tile_move_copy(storage->ctx, fresh->data, old->data, storage->bytes);
    storage->buffer = fresh;
    tile_buffer_release(old);
    return moved ? moved : status;
}

tile_status tile_storage_written(tile_storage *storage, const tile_array *array) {
    tile_status first = TILE_OK;
    const tile_range range = tile_array_range(array);
    if (range.low >= range.high) return first;
    for (tile_watcher *w = storage->watchers; w; w = w->next) {
        const tile_status status = w->written(w, array);
        if (!first) first = status;
    }
    return first;
}
