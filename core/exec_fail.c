/* exec_fail.c: what goes wrong while blocks run: the first in block order is told. */
#include <stdarg.h>
#include <string.h>

#include "core/exec_internal.h"

void tile_run_fail(const tile_runner *r, const tile_node *node, const char *format, ...) {
    const tile_run_state *run = r->run;
    tile_run_error *error = run->error;
    const bool reverse = run->exe->program.reverse;
    const int64_t number = reverse ? run->blocks - 1 - r->linear : r->linear;
    pthread_mutex_lock(&run->exe->ctx->lock);
    if (!error->node || number < error->number) {
        va_list args;
        *error = (tile_run_error){.node = node, .number = number};
        memcpy(error->block, r->block, sizeof error->block);
        va_start(args, format);
        vsnprintf(error->reason, sizeof error->reason, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&run->exe->ctx->lock);
}

void tile_run_report(const tile_run_state *run) {
    const tile_run_error *e = run->error;
    if (!e->node) return;
    const char *file = e->node->file ? e->node->file : "?", *slash = strrchr(file, '/');
    tile_context_pend(run->exe->ctx, TILE_E_EXECUTION,
                      "kernel %s, %s:%d, block (%lld, %lld, %lld): %s", run->exe->program.name,
                      slash ? slash + 1 : file, e->node->line, (long long)e->block[0],
                      (long long)e->block[1], (long long)e->block[2], e->reason);
}
