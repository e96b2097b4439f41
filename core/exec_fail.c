/* exec_fail.c: execution errors: how a block notes one, and whether a launch can have one. */
#include <stdarg.h>
#include <string.h>

#include "core/context.h"
#include "core/exec_internal.h"

/* Noting */

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
    r->failed = true;
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

static int64_t integer_at(const char *arena, size_t place) {
    int64_t value;
    memcpy(&value, arena + place, sizeof value);
    return value;
}

void tile_run_fail_within(tile_runner *r, const tile_node *n, int64_t value, int64_t low,
                          int64_t high) {
    const int64_t dimension = n->attrs.n[0] - 1;
    char where[40] = "";
    if (dimension >= 0)
        snprintf(where, sizeof where, " along dimension %lld", (long long)dimension);
    tile_run_fail(r, n, "%s%s is %lld, wanted at least %lld and below %lld", n->what, where,
                  (long long)value, (long long)low, (long long)high);
}

void tile_run_fail_while(tile_runner *r, const tile_node *n, int64_t most) {
    tile_run_fail(r, n, "a while would go on after %lld iterations, the most it may run",
                  (long long)(most > 0 ? most : 0));
}

void tile_run_within(tile_runner *r, const tile_plan *plan, const tile_step *s) {
    const size_t *number = &plan->number[s->first];
    const int64_t value = integer_at(r->arena, number[0]);
    const int64_t low = integer_at(r->arena, number[1]), high = integer_at(r->arena, number[2]);
    if (value < low || value >= high) tile_run_fail_within(r, s->node, value, low, high);
}

/* Ruling out */

/* Where a value that a launch fixes is found. false: it is none. */
static bool find_fixed(const tile_executable *exe, int32_t value, size_t *place) {
    if (!exe->analysis.flat[value] || !tile_value_is_launch_known(&exe->program, value))
        return false;
    *place = exe->flat.place[value];
    return true;
}

static bool find_check(const tile_executable *exe, const tile_node *n, tile_check *check) {
    const tile_program *p = &exe->program;
    check->value = exe->analysis.affine[tile_node_in(p, n, 0)];
    check->uniform = TILE_NO_PLACE;
    if (!check->value.known) return false;
    if (check->value.uniform >= 0 && !find_fixed(exe, check->value.uniform, &check->uniform))
        return false;
    return find_fixed(exe, tile_node_in(p, n, 1), &check->low) &&
           find_fixed(exe, tile_node_in(p, n, 2), &check->high);
}

tile_status tile_find_checks(tile_executable *exe) {
    for (int32_t k = 0; k < exe->analysis.order_count; k++) {
        const tile_node *n = &exe->program.node[exe->analysis.order[k]];
        if (tile_loop_is_while(n)) exe->unproven = true; /* it may run too often */
        if (n->op != &tile_op_within) continue;
        if (tile_grow(&exe->check, &exe->check_capacity, exe->check_count + 1, sizeof *exe->check))
            return TILE_E_MEMORY;
        if (find_check(exe, n, &exe->check[exe->check_count]))
            exe->check_count++;
        else
            exe->unproven = true;
    }
    return TILE_OK;
}

/* Whether an affine value is within [low, high) for every block. */
static bool holds(const tile_run_state *run, const tile_check *c) {
    int64_t least = c->value.constant, most;
    if (c->uniform != TILE_NO_PLACE &&
        __builtin_add_overflow(least, integer_at(run->flat, c->uniform), &least))
        return false;
    most = least;
    for (int g = 0; g < TILE_GRID_RANK; g++) {
        int64_t reach;
        if (__builtin_mul_overflow(c->value.coefficient[g], run->bound->grid[g] - 1, &reach))
            return false;
        if (__builtin_add_overflow(reach < 0 ? least : most, reach, reach < 0 ? &least : &most))
            return false;
    }
    return least >= integer_at(run->flat, c->low) && most < integer_at(run->flat, c->high);
}

bool tile_run_may_fail(const tile_run_state *run) {
    if (!run->blocks) return false;
    if (run->exe->unproven) return true;
    for (int32_t k = 0; k < run->exe->check_count; k++)
        if (!holds(run, &run->exe->check[k])) return true;
    return false;
}
