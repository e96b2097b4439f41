/* exec_fail.c: execution errors: how a block notes one. */
#include <stdarg.h>
#include <string.h>

#include "core/context.h"
#include "core/exec_internal.h"

/* "kernel K, FILE:LINE, block (i, j, k): ", and where it ends. */
static size_t write_place(const tile_runner *r, const tile_node *n, char *text, size_t room) {
    const char *file = n->file ? n->file : "?", *slash = strrchr(file, '/');
    const int length =
        snprintf(text, room,
                 "kernel %s, %s:%d, block (%lld, %lld, %lld): ", r->run->exe->program.name,
                 slash ? slash + 1 : file, n->line, (long long)r->block[0], (long long)r->block[1],
                 (long long)r->block[2]);
    return length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

void tile_run_fail(tile_runner *r, const tile_node *n, const char *format, ...) {
    tile_run_error *e = r->run->error;
    const int64_t order = r->run->exe->program.reverse ? r->run->blocks - 1 - r->linear : r->linear;
    tile_context *ctx = r->run->exe->ctx;
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&ctx->lock);
    if (!e->set || order < e->order) {
        const size_t at = write_place(r, n, e->message, sizeof e->message);
        if (vsnprintf(e->message + at, sizeof e->message - at, format, args) < 0)
            e->message[at] = '\0';
        e->set = true;
        e->order = order;
    }
    pthread_mutex_unlock(&ctx->lock);
    va_end(args);
}

void tile_run_report(const tile_run_state *run) {
    if (run->error->set)
        tile_context_pend(run->exe->ctx, TILE_E_EXECUTION, "%s", run->error->message);
}
