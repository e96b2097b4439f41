/* exec_blocks.c: runs the steps of a plan, block after block: the obvious executor. */
#include <string.h>

#include "core/native.h"

static const int64_t PLACE_MAX = (int64_t)1 << 62;

/* x + y, held within +-2^62. */
static int64_t add_held(int64_t x, int64_t y) {
    int64_t sum;
    if (__builtin_add_overflow(x, y, &sum)) return x < 0 ? -PLACE_MAX : PLACE_MAX;
    if (sum > PLACE_MAX) return PLACE_MAX;
    return sum < -PLACE_MAX ? -PLACE_MAX : sum;
}

static int64_t integer_at(const char *arena, size_t place) {
    int64_t value;
    memcpy(&value, arena + place, sizeof value);
    return value;
}

/* Elementwise */

static void run_strips(char *arena, const tile_strip_step *strip, int32_t count, int64_t n) {
    for (int64_t start = 0; start < n; start += TILE_CHUNK) {
        const int64_t length = n - start < TILE_CHUNK ? n - start : TILE_CHUNK;
        for (int32_t k = 0; k < count; k++) {
            const tile_strip_step *s = &strip[k];
            const void *in[TILE_OP_IN];
            for (int i = 0; i < s->n_in; i++)
                in[i] = arena + s->in[i] + (size_t)start * s->in_step[i];
            s->run(in, arena + s->out + (size_t)start * s->out_step, length);
        }
    }
}

/* By generated code. false: there is none. */
static bool run_group(const tile_runner *r, const tile_plan *plan, int32_t step) {
    const tile_native *native = r->run->native;
    if (!native || plan != r->run->plan) return false;
    const tile_native_group group = tile_native_group_of(native, step);
    if (group) group(r->arena, native->plan.strip);
    return group != NULL;
}

/* Cooperative */

static void fill_window(const tile_runner *r, const tile_call_step *c, tile_call *call) {
    const tile_memory *memory = &r->run->bound->array[c->node->param];
    call->array = *memory;
    for (int d = 0; d < memory->rank; d++) {
        call->low[d] = 0;
        call->high[d] = memory->extent[d];
        if (!c->bounds) continue;
        const int64_t low = integer_at(r->arena, c->bound[2 * d]);
        const int64_t high = integer_at(r->arena, c->bound[2 * d + 1]);
        if (low > 0) call->low[d] = low < memory->extent[d] ? low : memory->extent[d];
        if (high < memory->extent[d]) call->high[d] = high > call->low[d] ? high : call->low[d];
    }
}

/* A load that is inside of its array, in runs of elements side by side. false: it is another. */
static bool load_runs(const tile_runner *r, const tile_call_step *c) {
    const tile_memory *m = &r->run->bound->array[c->node->param];
    const tile_dims *dims = &c->call.out_dims[0];
    int64_t base = 0, run = 1, runs = 1;
    if (r->no_memory || m->stride[dims->rank - 1] != 1) return false;
    for (int d = 0; d < dims->rank; d++) {
        const int64_t from = d < c->offsets ? integer_at(r->arena, c->offset[d]) : 0;
        const int64_t place = add_held(from, c->call.attrs.shift[d]);
        if (place < 0 || place > m->extent[d] - dims->extent[d]) return false;
        base += place * m->stride[d];
    }
    int outer = dims->rank;
    while (outer > 0 && m->stride[outer - 1] == run) run *= dims->extent[--outer];
    for (int d = 0; d < outer; d++) runs *= dims->extent[d];
    const size_t bytes = (size_t)run * c->copied;
    for (int64_t k = 0; k < runs; k++) {
        int64_t place = base, left = k;
        for (int d = outer - 1; d >= 0; d--) {
            place += left % dims->extent[d] * m->stride[d];
            left /= dims->extent[d];
        }
        memcpy(r->arena + c->out[0] + (size_t)k * bytes,
               (const char *)m->read + place * (int64_t)c->copied, bytes);
    }
    return true;
}

static void run_call(tile_runner *r, const tile_call_step *c) {
    if (c->copied && load_runs(r, c)) return;
    tile_call call = c->call;
    for (int k = 0; k < c->n_in; k++) call.in[k] = r->arena + c->in[k];
    for (int k = 0; k < TILE_CALL_OUT; k++)
        call.out[k] = c->wanted[k] ? r->arena + c->out[k] : NULL;
    for (int d = 0; d < TILE_DIMS; d++) {
        const int64_t shift = call.attrs.shift[d];
        call.offset[d] = add_held(d < c->offsets ? integer_at(r->arena, c->offset[d]) : 0, shift);
    }
    if (c->node->op->access) {
        if (r->no_memory) return;
        fill_window(r, c, &call);
        if (r->log && tile_commit_take(r, c, &call)) return;
    }
    c->run(&call);
}

/* Structure */

static void run_scalar(const tile_runner *r, const tile_step *s) {
    const tile_bound *bound = r->run->bound;
    const int64_t which = s->node->attrs.n[0];
    char *out = r->arena + s->place;
    int64_t value = 0;
    if (s->node->op == &tile_op_param) {
        const tile_param_info *info = &r->run->exe->program.param[which];
        if (info->kind == TILE_PARAM_REAL) {
            tile_dtype_put(info->dtype, bound->scalar[which].real, out);
            return;
        }
        value = bound->scalar[which].integer;
    } else if (s->node->op == &tile_op_block_index) {
        value = r->block[which];
    } else if (s->node->op == &tile_op_extent) {
        value = bound->array[which].extent[s->node->attrs.n[1]];
    } else {
        value = s->node->op == &tile_op_grid_size ? bound->grid[which] : bound->domain[which];
    }
    memcpy(out, &value, sizeof value);
}

static void run_loop(tile_runner *r, const tile_plan *plan, int32_t at) {
    const tile_step *s = &plan->step[at];
    const tile_carry *carry = &plan->carry[s->first];
    const int64_t count = integer_at(r->arena, s->bytes);
    const bool down = s->node->attrs.n[0] == 1, is_while = tile_loop_is_while(s->node);
    char *arena = r->arena;
    for (int32_t k = 0; k < s->count; k++)
        memcpy(arena + carry[k].argument, arena + carry[k].initial, carry[k].bytes);
    const char *go = is_while ? arena + carry[TILE_LOOP_GO].argument : NULL;
    for (int64_t i = 0; i < count && (!is_while || *go); i++) {
        const int64_t index = down ? count - 1 - i : i;
        memcpy(arena + s->place, &index, sizeof index);
        tile_run_steps(r, plan, at + 1, s->body);
        if (r->failed) return;
        for (int32_t k = 0; k < s->count; k++)
            if (carry[k].staged)
                memcpy(arena + carry[k].stage, arena + carry[k].yield, carry[k].bytes);
        for (int32_t k = 0; k < s->count; k++) {
            const size_t from = carry[k].staged ? carry[k].stage : carry[k].yield;
            if (from != carry[k].argument)
                memcpy(arena + carry[k].argument, arena + from, carry[k].bytes);
        }
    }
    if (is_while && *go) tile_run_fail_while(r, s->node, count);
}

/* Where the tile of the current iterations is kept; NULL: nowhere. */
static char *kept_at(const tile_runner *r, const tile_plan *plan, const tile_step *s) {
    const tile_slot_place *slot = &r->run->slot[s->node->attrs.n[0]];
    int64_t entry = 0;
    for (int32_t k = 0; k < s->count; k++) {
        const int64_t iteration = integer_at(r->arena, plan->number[s->first + k]);
        if (iteration < 0 || iteration >= slot->trips[k]) return NULL;
        entry = entry * slot->trips[k] + iteration;
    }
    if (!r->run->bound->stash || entry >= slot->entries) return NULL;
    return (char *)r->run->bound->stash + slot->base +
           (size_t)(r->linear * slot->entries + entry) * slot->bytes;
}

void tile_run_steps(tile_runner *r, const tile_plan *plan, int32_t first, int32_t count) {
    for (int32_t k = first; k < first + count && !r->failed; k++) {
        const tile_step *s = &plan->step[k];
        char *kept;
        switch (s->kind) {
        case TILE_STEP_STRIPS:
            if (!run_group(r, plan, k))
                run_strips(r->arena, &plan->strip[s->first], s->count, s->elements);
            break;
        case TILE_STEP_CALL: run_call(r, &plan->call[s->first]); break;
        case TILE_STEP_SCALAR: run_scalar(r, s); break;
        case TILE_STEP_LOOP:
            run_loop(r, plan, k);
            k += s->body;
            break;
        case TILE_STEP_KEEP:
            kept = kept_at(r, plan, s);
            if (kept) memcpy(kept, r->arena + s->place, s->bytes);
            break;
        case TILE_STEP_KEPT:
            kept = kept_at(r, plan, s);
            if (kept)
                memcpy(r->arena + s->place, kept, s->bytes);
            else
                memset(r->arena + s->place, 0, s->bytes);
            break;
        case TILE_STEP_WITHIN: tile_run_within(r, plan, s); break;
        }
    }
}

/* Blocks */

void tile_run_set_block(tile_runner *r, int64_t number) {
    const int64_t *grid = r->run->bound->grid;
    r->linear = r->run->exe->program.reverse ? r->run->blocks - 1 - number : number;
    int64_t left = r->linear;
    for (int g = TILE_GRID_RANK - 1; g > 0; g--) {
        r->block[g] = left % grid[g];
        left /= grid[g];
    }
    r->block[0] = left;
}

void tile_run_blocks(tile_runner *r, int64_t first, int64_t end) {
    const tile_plan *plan = r->run->plan;
    for (int64_t number = first; number < end; number++) {
        tile_run_set_block(r, number);
        r->failed = false;
        tile_run_steps(r, plan, 0, plan->step_count);
    }
}
