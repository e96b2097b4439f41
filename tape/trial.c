/* trial.c: in checked mode, what a launch is about to write is kept and put back when it fails. */
#include "core/move.h"
#include "core/status.h"
#include "tape/tape.h"

static char *written_bytes(const tile_array *a) {
    return (char *)a->storage->buffer->data + tile_array_range(a).low;
}

tile_status tape_trial_end(const tape_trial *t, int count, tile_array *const *array,
                           bool put_back) {
    tile_status first = TILE_OK;
    for (int k = 0; k < count; k++) {
        tile_status status = TILE_OK;
        if (put_back && t->old[k])
            status = tile_move_copy(array[k]->storage->ctx, written_bytes(array[k]),
                                    t->old[k]->data, t->bytes[k]);
        if (!first) first = status;
        tile_buffer_release(t->old[k]);
    }
    return first;
}

tile_status tape_trial_begin(tape_trial *t, tile_context *ctx, int count, tile_array *const *array,
                             uint32_t writes) {
    *t = (tape_trial){.old = {NULL}};
    for (int k = 0; k < count; k++) {
        if (!(writes >> k & 1u) || array[k]->count == 0) continue;
        const tile_range range = tile_array_range(array[k]);
        t->bytes[k] = (size_t)(range.high - range.low);
        tile_status status = tile_buffer_create(ctx, t->bytes[k], &t->old[k]);
        if (status) t->old[k] = NULL;
        if (!status)
            status = tile_move_copy(ctx, t->old[k]->data, written_bytes(array[k]), t->bytes[k]);
        if (status) {
            for (int i = 0; i <= k; i++) tile_buffer_release(t->old[i]);
            return status;
        }
    }
    return TILE_OK;
}
