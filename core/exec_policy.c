/* exec_policy.c: which arrays meet at a launch, and what that means for the order of blocks.
 *
 *   blocks apart                                   at once
 *   only added to, all blocks in one window        at once, summed in a fixed tree, added once
 *   added to, updated or stored, never read        at once, writes committed in block order
 *   anything else                                  one block after the other
 */
#include "core/exec_internal.h"

/* Aliases */

/* Bytes from the first to the last element. */
typedef struct span {
    uintptr_t low, high;
} span;

static span span_of(const void *memory, const tile_memory *m, size_t size) {
    uintptr_t last = 0;
    for (int d = 0; d < m->rank; d++) {
        if (!m->extent[d]) return (span){0, 0};
        last += (uintptr_t)(m->extent[d] - 1) * (uintptr_t)m->stride[d];
    }
    const uintptr_t low = (uintptr_t)memory;
    return (span){low, low + (last + 1) * size};
}

static tile_places places_of(const tile_memory *m, tile_dtype dtype) {
    return (tile_places){m->rank, m->extent, m->stride, (int64_t)tile_dtype_size(dtype)};
}

static bool meet(span a, span b, const tile_places *p, const tile_places *q) {
    if (a.low >= b.high || b.low >= a.high) return false;
    return !tile_places_interleave(p, q, (int64_t)(b.low - a.low));
}

static bool same_elements(const tile_memory *a, const tile_memory *b) {
    if (a->read != b->read || a->write != b->write || a->rank != b->rank) return false;
    for (int d = 0; d < a->rank; d++)
        if (a->extent[d] != b->extent[d] || a->stride[d] != b->stride[d]) return false;
    return true;
}

/* Whether two places can be one element: taken from the smallest stride up, each dimension must
 * step over all that the ones before reach. */
static bool is_folded(const tile_memory *m) {
    bool done[TILE_DIMS] = {false};
    int64_t reach = 0;
    for (int k = 0; k < m->rank; k++) {
        int next = -1;
        for (int d = 0; d < m->rank; d++)
            if (!done[d] && (next < 0 || m->stride[d] < m->stride[next])) next = d;
        done[next] = true;
        if (m->extent[next] < 2) continue;
        if (m->stride[next] <= reach) return true;
        reach += (m->extent[next] - 1) * m->stride[next];
    }
    return false;
}

void tile_find_aliases(const tile_run_state *run, tile_aliases *aliases) {
    const tile_program *p = &run->exe->program;
    const tile_analysis *a = &run->exe->analysis;
    span read[TILE_PROGRAM_PARAMS], write[TILE_PROGRAM_PARAMS];
    for (int k = 0; k < p->param_count; k++) {
        aliases->meets[k] = aliases->same[k] = 0;
        if (!a->reads[k]) continue;
        const tile_memory *m = &run->bound->array[k];
        const size_t size = tile_dtype_size(p->param[k].dtype);
        read[k] = span_of(m->read, m, size);
        write[k] = span_of(m->write, m, size);
    }
    aliases->folded = 0;
    for (int k = 0; k < p->param_count; k++) {
        if (!tile_has_bit(a->written, k)) continue;
        const tile_memory *m = &run->bound->array[k];
        if (is_folded(m)) aliases->folded |= (uint64_t)1 << k;
        for (int j = 0; j < p->param_count; j++) {
            if (j == k || !a->reads[j]) continue;
            const bool writes = tile_has_bit(a->written, j);
            const tile_places to = places_of(m, p->param[k].dtype),
                              other = places_of(&run->bound->array[j], p->param[j].dtype);
            if (!meet(write[k], read[j], &to, &other) &&
                !(writes && meet(write[k], write[j], &to, &other)))
                continue;
            aliases->meets[k] |= (uint64_t)1 << j;
            if (p->param[k].dtype == p->param[j].dtype && same_elements(m, &run->bound->array[j]))
                aliases->same[k] |= (uint64_t)1 << j;
        }
    }
}

/* Policy */

/* All parameters that a written one meets, directly or by others. */
static uint64_t class_of(const tile_aliases *aliases, int param) {
    uint64_t members = (uint64_t)1 << param, before;
    do {
        before = members;
        for (int k = 0; k < TILE_PROGRAM_PARAMS; k++)
            if (tile_has_bit(before, k)) members |= aliases->meets[k];
    } while (members != before);
    return members;
}

/* Whether every block's window is the same one. */
static bool is_one_window(const tile_run_state *run, const tile_node *n) {
    const tile_program *p = &run->exe->program;
    const tile_analysis *a = &run->exe->analysis;
    const tile_access_window w = tile_window_of_node(p, a, n);
    const tile_inputs inputs = tile_inputs_of(p, n);
    for (int k = 0; k < inputs.bounds; k++)
        if (!a->flat[tile_node_in(p, n, inputs.tiles + inputs.offsets + k)]) return false;
    for (int d = 0; d < w.rank; d++) {
        if (!w.at[d].known) return false;
        for (int g = 0; g < TILE_GRID_RANK; g++)
            if (run->bound->grid[g] > 1 && w.at[d].coefficient[g]) return false;
    }
    return true;
}

/* Whether additions to a parameter can be summed over all blocks before they meet memory. */
static bool is_sum(const tile_run_state *run, int param) {
    const tile_program *p = &run->exe->program;
    const tile_analysis *a = &run->exe->analysis;
    const tile_dtype dtype = p->param[param].dtype; /* 16-bit ones round after each addition */
    if (run->may_fail || !tile_is_float(dtype) || tile_is_half(dtype)) return false;
    for (int32_t k = 0; k < a->order_count; k++) {
        const tile_node *n = &p->node[a->order[k]];
        if (!n->op->access || n->param != param) continue;
        if (n->op->indexed || n->parent != 0 || !is_one_window(run, n)) return false;
    }
    return true;
}

static void choose_class(tile_run_state *run, const tile_aliases *aliases, uint64_t members,
                         int param) {
    const tile_analysis *a = &run->exe->analysis;
    const uint64_t self = (uint64_t)1 << param;
    const bool same = (members & ~self) == aliases->same[param];
    if (same && !(aliases->folded & members) &&
        tile_blocks_apart_on(&run->exe->program, a, members, run->bound->grid))
        return;
    unsigned accesses = 0;
    for (int k = 0; k < TILE_PROGRAM_PARAMS; k++)
        if (tile_has_bit(members, k)) accesses |= a->reads[k];
    const unsigned reads = 1u << TILE_ACCESS_LOAD | 1u << TILE_ACCESS_TAKE;
    if ((accesses & reads) || (a->answered & members)) {
        run->serial = true;
    } else if (members == self && accesses == 1u << TILE_ACCESS_ADD && is_sum(run, param)) {
        run->summed |= self;
    } else {
        run->logged |= members;
    }
}

/* An affine offset that comes from an array that is written too says nothing. */
static bool is_trusted(const tile_run_state *run, const tile_aliases *aliases) {
    for (int k = 0; k < TILE_PROGRAM_PARAMS; k++)
        if (aliases->meets[k] & run->exe->analysis.uniform) return false;
    return true;
}

void tile_choose_policy(tile_run_state *run) {
    tile_aliases aliases = {.folded = 0};
    uint64_t left = run->exe->analysis.written;
    tile_find_aliases(run, &aliases);
    run->serial = !is_trusted(run, &aliases);
    if (run->serial) return;
    for (int k = 0; left && k < TILE_PROGRAM_PARAMS; k++) {
        if (!tile_has_bit(left, k)) continue;
        const uint64_t members = class_of(&aliases, k);
        left &= ~members;
        choose_class(run, &aliases, members, k);
    }
    /* In one thread blocks come in order anyway; but sums have the same chunks for any threads. */
    const tile_context *ctx = run->exe->ctx;
    if (ctx->threads < 2 && !ctx->device && !run->summed) run->serial = true;
    if (run->serial) run->logged = 0;
}
