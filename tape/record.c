/* record.c: the life of tapes and records. */
#include "core/memory.h"
#include "core/move.h"
#include "core/status.h"
#include "tape/tape.h"

tile_status tape_create(tile_context *ctx, const tape_options *options, tape **record) {
    TILE_CHECK(ctx && record, TILE_E_ARGUMENT, "tape_create: %s is NULL", ctx ? "record" : "ctx");
    TILE_CHECK(!options || options->overwrite <= TAPE_OVERWRITE_ERROR, TILE_E_ARGUMENT,
               "tape_create: overwrite is %d, wanted 0 or 1",
               options ? (int)options->overwrite : 0);
    tape *t = tile_alloc(sizeof *t);
    if (!t) return TILE_E_MEMORY;
    t->ctx = tile_context_hold(ctx);
    if (options) t->options = *options;
    *record = t;
    return TILE_OK;
}

/* A chunk with room for bytes in front of the list. */
static bool add_chunk(tape *t, size_t bytes) {
    tape_chunk *chunk = t->spare;
    if (chunk && chunk->bytes >= bytes) {
        t->spare = chunk->next;
    } else {
        const size_t room = bytes > TAPE_CHUNK ? bytes : TAPE_CHUNK;
        chunk = tile_alloc(sizeof *chunk + room);
        if (!chunk) return false;
        chunk->bytes = room;
    }
    chunk->used = 0;
    chunk->next = t->chunks;
    t->chunks = chunk;
    return true;
}

void *tape_take(tape *t, size_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    if (!t->chunks || t->chunks->bytes - t->chunks->used < bytes)
        if (!add_chunk(t, bytes)) return NULL;
    char *memory = (char *)(t->chunks + 1) + t->chunks->used;
    t->chunks->used += bytes;
    return memory;
}

tape_record *tape_record_new(tape *t, tape_kind kind, int32_t operands) {
    if (tile_grow(&t->record, &t->capacity, t->count + 1, sizeof *t->record)) return NULL;
    const size_t bytes =
        sizeof(tape_record) + (size_t)operands * (sizeof(tape_operand) + sizeof(tile_scalar));
    tape_record *r = tape_take(t, bytes);
    if (!r) return NULL;
    *r = (tape_record){.kind = kind, .number = t->count, .count = operands};
    r->operand = (tape_operand *)(r + 1);
    r->scalar = (tile_scalar *)(r->operand + operands);
    for (int32_t k = 0; k < operands; k++) {
        r->operand[k] = (tape_operand){.array = NULL};
        r->scalar[k].integer = 0;
    }
    return r;
}

void tape_record_append(tape *t, tape_record *r) {
    t->record[t->count++] = r;
}

void tape_record_drop_values(tape_record *r) {
    for (int32_t k = 0; k < r->count; k++) {
        tape_need_release(r->operand[k].need);
        r->operand[k].need = NULL;
    }
    tile_buffer_release(r->stash);
    r->stash = NULL;
}

void tape_record_drop(tape_record *r) {
    tape_record_drop_values(r);
    for (int32_t k = 0; k < r->count; k++) tile_array_release(r->operand[k].array);
    tile_array_release(r->retained);
    tile_kernel_destroy(r->kernel);
}

void tape_forget(tape *t, int32_t count) {
    while (t->count > count) tape_record_drop(t->record[--t->count]);
}

static void empty(tape *t) {
    for (int32_t k = t->count - 1; k >= 0; k--) tape_record_drop(t->record[k]);
    t->count = 0;
    tape_spare_uses(t, NULL);
    t->free_needs = NULL;
    while (t->chunks) {
        tape_chunk *chunk = t->chunks;
        t->chunks = chunk->next;
        chunk->next = t->spare;
        t->spare = chunk;
    }
    t->broken = TILE_OK;
    t->failed = NULL;
}

tile_status tape_check_usable(const tape *t, const char *call) {
    TILE_CHECK(!t->broken, TILE_E_STATE, "%s: the tape failed before and must be reset", call);
    TILE_CHECK(
        !t->failed, TILE_E_STATE,
        "%s: record %d, a launch of kernel %s, ended in an execution error: the tape must be "
        "reset",
        call, (int)t->failed->number, tile_executable_program(t->failed->kernel->forward)->name);
    return TILE_OK;
}

tile_status tape_reset(tape *t) {
    TILE_CHECK(t, TILE_E_ARGUMENT, "tape_reset: record is NULL");
    TILE_CHECK(!t->running, TILE_E_STATE, "tape_reset: the tape is running");
    empty(t);
    return TILE_OK;
}

void tape_destroy(tape *t) {
    if (!t) return;
    empty(t);
    tape_free_spare_uses(t);
    tile_buffer_release(t->ones);
    for (int k = 0; k < 2; k++) tile_graph_free(t->ctx, t->graphs[k]);
    tile_free(t->settled);
    while (t->spare) {
        tape_chunk *chunk = t->spare;
        t->spare = chunk->next;
        tile_free(chunk);
    }
    tile_free(t->record);
    tile_context *ctx = t->ctx;
    tile_free(t);
    tile_context_release(ctx);
}

int64_t tape_length(const tape *t) {
    return t ? t->count : 0;
}

tile_status tape_zero(tape *t) {
    TILE_CHECK(t, TILE_E_ARGUMENT, "tape_zero: record is NULL");
    for (tape_use *u = t->uses; u; u = u->next) {
        if (!u->storage->grad) continue;
        TILE_TRY(
            tile_storage_will_write(u->storage->grad, (tile_range){0, (int64_t)u->storage->bytes}));
        TILE_TRY(tape_fill_zero(u->storage->grad->buffer));
        u->storage->grad_invalid = false;
    }
    return TILE_OK;
}

tile_status tape_retain(tape *t, tile_array *array, tile_array **adjoint) {
    TILE_CHECK(t && array && adjoint, TILE_E_ARGUMENT, "tape_retain: %s is NULL",
               !t       ? "record"
               : !array ? "array"
                        : "adjoint");
    TILE_CHECK(tile_is_float(array->dtype), TILE_E_DTYPE,
               "tape_retain: array is %s, wanted a float dtype", tile_dtype_name(array->dtype));
    TILE_CHECK(array->storage->ctx == t->ctx, TILE_E_ARGUMENT,
               "tape_retain: array is of another context");
    tape_use *use = tape_use_of(t, array->storage);
    tape_record *r = use ? tape_record_new(t, TAPE_RETAIN, 1) : NULL;
    if (!r) return TILE_E_MEMORY;
    TILE_TRY(tile_array_create(t->ctx, array->dtype, array->shape, &r->retained));
    r->retained->lent = true;
    r->operand[0] = (tape_operand){.array = tile_array_hold(array), .use = use};
    tape_record_append(t, r);
    use->active = true; /* from here on: somebody asks for its adjoint */
    *adjoint = r->retained;
    return TILE_OK;
}
