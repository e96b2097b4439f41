/* trial.c: in checked mode, what a launch is about to write is kept and put back when it fails. */
#include <string.h>

#include "tape/tape.h"

static char *written_bytes(const tile_array *a) {
    return (char *)a->storage->buffer->data + tile_array_range(a).low;
}

void tape_trial_end(const tape_trial *t, int count, tile_array *const *array, bool put_back) {
    for (int k = 0; k < count; k++) {
        if (put_back && t->old[k]) memcpy(written_bytes(array[k]), t->old[k]->data, t->bytes[k]);
        tile_buffer_release(t->old[k]);
    }
}

tile_status tape_trial_begin(tape_trial *t, tile_context *ctx, int count, tile_array *const *array,
                             uint32_t writes) {
    *t = (tape_trial){.old = {NULL}};
    for (int k = 0; k < count; k++) {
        if (!(writes >> k & 1u) || array[k]->count == 0) continue;
        const tile_range range = tile_array_range(array[k]);
        t->bytes[k] = (size_t)(range.high - range.low);
        const tile_status status = tile_buffer_create(ctx, t->bytes[k], &t->old[k]);
        if (status) {
            t->old[k] = NULL;
            tape_trial_end(t, count, array, false);
            return status;
        }
        memcpy(t->old[k]->data, written_bytes(array[k]), t->bytes[k]);
    }
    return TILE_OK;
}
