/* native_plan.c: which values of a row plan are kept, and in which loop each value is made. */
#include "core/native_plan.h"

#include "core/memory.h"

enum {
    SHARED_COST = 3, /* ops that are worth a kept row rather than a second time */
    CALL_COST = 8,
    PANEL_MIN = 1024,
    PANEL_MAX = 16384,
    SOME_STAGE = TILE_STAGES_MAX /* bit of a value that was just found to be kept */
};
static const int64_t RINGS_BYTES = 256 << 10; /* fit the second-level cache */

typedef struct planner {
    tile_native_plan *plan;
    tile_rows *rows;
    int32_t *level, *cost; /* per item */
} planner;

static bool is_strip(const tile_rows *rows, const tile_row_operand *in) {
    return in->item >= 0 && rows->item[in->item].kind == TILE_ROW_STRIP;
}

tile_row_operand tile_native_written(const tile_rows *rows, const tile_row_op *op) {
    if (!op->run) return op->in[0];
    return (tile_row_operand){
        .item = op->item, .flat = -1, .row = rows->item[op->item].high, .x = op->left};
}

/* Kept because of where they are read */

static bool is_kept(const planner *b, int32_t item) {
    return b->plan->item[item].stage >= 0;
}

static void keep(planner *b, int32_t item) {
    b->plan->item[item].stage = 0;
}

/* Read x elements from the element at hand, or from one that is. */
static void read_at(planner *b, const tile_row_operand *in, int64_t x) {
    if (!is_strip(b->rows, in)) return;
    tile_native_item *item = &b->plan->item[in->item];
    x += in->x;
    if (item->read && item->x != x) keep(b, in->item);
    item->read = true;
    item->x = x;
}

/* What is read at several rows, or beside the element at hand at several distances. */
static void find_reads(planner *b) {
    for (int32_t k = 0; k < b->rows->item_count; k++) b->plan->item[k].read = false;
    for (int32_t k = b->rows->op_count - 1; k >= 0; k--) {
        if (b->rows->op[k].writes) {
            const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
            read_at(b, &in, 0);
        }
        const int32_t number = tile_native_made(b->rows, k);
        if (number < 0) continue;
        const tile_row_item *item = &b->rows->item[number];
        if (item->high > item->low) keep(b, number);
        if (is_kept(b, number)) b->plan->item[number].x = 0;
        for (int32_t i = 0; i < item->n_in; i++) read_at(b, &item->in[i], b->plan->item[number].x);
    }
}

/* Stages */

/* The stage whose kept values an item is computed from, element by element; or -1. */
static int32_t home_of(const planner *b, const tile_row_item *item) {
    int32_t home = -1;
    for (int32_t i = 0; i < item->n_in; i++) {
        const tile_row_operand *in = &item->in[i];
        if (in->item < 0) continue;
        if (!is_strip(b->rows, in) || in->x || in->row != item->high) return -1;
        const tile_native_item *from = &b->plan->item[in->item];
        const int32_t stage = from->stage >= 0 ? from->stage : from->home;
        if (stage < 0 || (home >= 0 && home != stage)) return -1;
        home = stage;
    }
    return home;
}

static int32_t find_stage(tile_native_plan *plan, const tile_native_loop *want) {
    for (int32_t k = 0; k < plan->stage_count; k++) {
        const tile_native_loop *s = &plan->stage[k];
        if (s->level == want->level && s->row == want->row && s->left == want->left &&
            s->right == want->right && s->warm == want->warm)
            return k;
    }
    if (plan->stage_count == TILE_STAGES_MAX - 1) return -1;
    plan->stage[plan->stage_count] = *want;
    return plan->stage_count++;
}

static bool find_stage_of(planner *b, int32_t number) {
    tile_native_plan *plan = b->plan;
    const tile_row_item *item = &b->rows->item[number];
    b->level[number] = 0;
    for (int32_t i = 0; i < item->n_in; i++) {
        if (!is_strip(b->rows, &item->in[i])) continue;
        const int32_t from = item->in[i].item, level = b->level[from] + is_kept(b, from);
        if (level > b->level[number]) b->level[number] = level;
    }
    const int32_t home = plan->item[number].home = home_of(b, item);
    if (!is_kept(b, number)) return true;
    if (home >= 0) {
        b->level[number] = plan->stage[home].level;
        plan->item[number].stage = home;
        return true;
    }
    const tile_native_loop want = {.level = b->level[number],
                                   .row = item->high,
                                   .left = item->left,
                                   .right = item->right,
                                   .warm = item->warm};
    const int32_t stage = find_stage(plan, &want);
    if (stage >= 0) plan->item[number].stage = stage;
    return stage >= 0;
}

/* false: too many. The last stage is the one that writes. */
static bool find_stages(planner *b) {
    b->plan->stage_count = 0;
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t number = tile_native_made(b->rows, k);
        if (number >= 0 && !find_stage_of(b, number)) return false;
    }
    b->plan->stage[b->plan->stage_count++] = (tile_native_loop){.level = INT32_MAX};
    return true;
}

static void swap_numbers(int32_t *stage, int32_t j) {
    if (*stage == j)
        *stage = j - 1;
    else if (*stage == j - 1)
        *stage = j;
}

/* In the order of their levels. */
static void sort_stages(planner *b) {
    tile_native_plan *plan = b->plan;
    for (int32_t k = 1; k < plan->stage_count; k++)
        for (int32_t j = k; j > 0 && plan->stage[j].level < plan->stage[j - 1].level; j--) {
            const tile_native_loop other = plan->stage[j];
            plan->stage[j] = plan->stage[j - 1];
            plan->stage[j - 1] = other;
            for (int32_t i = 0; i < b->rows->item_count; i++) {
                swap_numbers(&plan->item[i].stage, j);
                swap_numbers(&plan->item[i].home, j);
            }
        }
}

/* Where each item is computed */

static void need(planner *b, const tile_row_operand *in, uint64_t stages) {
    if (is_strip(b->rows, in) && !is_kept(b, in->item)) b->plan->item[in->item].need |= stages;
}

static bool is_shared(const planner *b, int32_t item) {
    const uint64_t stages = b->plan->item[item].need;
    return (stages & (stages - 1)) && b->cost[item] >= SHARED_COST;
}

/* grow: keeps what several stages would compute. true: something was kept that was not. */
static bool find_needs(planner *b, bool grow) {
    tile_native_plan *plan = b->plan;
    bool grown = false;
    for (int32_t k = 0; k < b->rows->item_count; k++) plan->item[k].need = 0;
    for (int32_t k = b->rows->op_count - 1; k >= 0; k--) {
        if (b->rows->op[k].writes) {
            const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
            need(b, &in, (uint64_t)1 << (plan->stage_count - 1));
        }
        const int32_t number = tile_native_made(b->rows, k);
        if (number < 0) continue;
        tile_native_item *item = &plan->item[number];
        if (is_kept(b, number)) {
            item->need = (uint64_t)1 << item->stage;
        } else if (grow && is_shared(b, number)) {
            keep(b, number);
            item->need = (uint64_t)1 << SOME_STAGE;
            grown = true;
        }
        for (int32_t i = 0; i < b->rows->item[number].n_in; i++)
            need(b, &b->rows->item[number].in[i], item->need);
    }
    return grown;
}

static void find_costs(planner *b) {
    const tile_program *p = &b->plan->exe->program;
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t number = tile_native_made(b->rows, k);
        if (number < 0) continue;
        const tile_row_item *item = &b->rows->item[number];
        tile_dtype in[TILE_OP_IN] = {TILE_F32};
        char name[64];
        for (int32_t i = 0; i < item->n_in; i++)
            in[i] = p->value[tile_node_in(p, item->node, i)].dtype;
        const bool plain =
            tile_native_function(NULL, item->node->op, in, p->value[item->value].dtype, name);
        b->cost[number] = plain ? 1 : CALL_COST;
        for (int32_t i = 0; i < item->n_in; i++)
            if (is_strip(b->rows, &item->in[i]) && b->cost[number] < SHARED_COST)
                b->cost[number] += b->cost[item->in[i].item];
    }
}

/* Room */

static void place_kept(planner *b) {
    tile_native_plan *plan = b->plan;
    int64_t bytes = 0;
    for (int32_t k = 0; k < b->rows->item_count; k++) {
        const tile_row_item *item = &b->rows->item[k];
        if (!is_kept(b, k)) continue;
        plan->item[k].height = plan->stage[plan->item[k].stage].row - item->low + 1;
        bytes += plan->item[k].height * (int64_t)item->size;
    }
    plan->panel = INT64_MAX;
    if (bytes) plan->panel = tile_between(RINGS_BYTES / bytes, PANEL_MIN, PANEL_MAX);
    plan->kept_bytes = 0;
    for (int32_t k = 0; k < b->rows->item_count; k++) {
        tile_native_item *item = &plan->item[k];
        if (!is_kept(b, k)) continue;
        const tile_native_loop *s = &plan->stage[item->stage];
        item->place = plan->kept_bytes;
        item->pitch =
            tile_align((size_t)(plan->panel + s->right - s->left) * b->rows->item[k].size);
        plan->kept_bytes += item->pitch * (size_t)item->height;
    }
}

static bool plan_stages(planner *b) {
    enum { ROUNDS = 4 };
    bool grown = true;
    for (int32_t k = 0; k < b->rows->item_count; k++) b->plan->item[k].stage = -1;
    find_costs(b);
    for (int round = 0; grown; round++) {
        find_reads(b);
        if (!find_stages(b)) return false;
        grown = find_needs(b, round < ROUNDS);
    }
    sort_stages(b);
    find_needs(b, false);
    place_kept(b);
    return true;
}

tile_status tile_native_plan_stages(tile_native_plan *plan) {
    static const double OP_NS = 0.01;
    tile_rows *rows = plan->rows;
    const size_t items = (size_t)rows->item_count + 1;
    plan->item = tile_alloc(items * sizeof *plan->item);
    planner b = {.plan = plan,
                 .rows = rows,
                 .level = tile_alloc(items * sizeof *b.level),
                 .cost = tile_alloc(items * sizeof *b.cost)};
    const bool there = plan->item && b.level && b.cost;
    if (there && !plan_stages(&b)) {
        tile_rows_destroy(rows);
        plan->rows = NULL;
    }
    tile_free(b.level);
    tile_free(b.cost);
    plan->element_ns = plan->rows ? OP_NS * (double)rows->op_count : 0;
    return there ? TILE_OK : TILE_E_MEMORY;
}

void tile_native_plan_clear(tile_native_plan *plan) {
    tile_rows_destroy(plan->rows);
    tile_free(plan->item);
    tile_free(plan->line);
    tile_free(plan->tap);
    tile_free(plan->iota);
    tile_free(plan->strip);
    tile_free(plan->group);
    tile_text_clear(&plan->source);
    *plan = (tile_native_plan){.rows = NULL};
}
