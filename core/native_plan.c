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

/* The item that op k computes, or -1. */
static int32_t item_of(const tile_rows *rows, int32_t k) {
    const tile_row_op *op = &rows->op[k];
    if (op->kind != TILE_ROW_STRIP || op->item < 0 || !op->run) return -1;
    return op->item;
}

/* Kept because of where they are read */

static void keep(planner *b, int32_t item) {
    b->plan->kept[item].stage = 0;
}

static bool is_kept(const planner *b, int32_t item) {
    return b->plan->kept[item].stage >= 0;
}

static void keep_read(planner *b) {
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const tile_row_op *op = &b->rows->op[k];
        const int32_t item = item_of(b->rows, k);
        if (item >= 0 && b->rows->item[item].high > b->rows->item[item].low) keep(b, item);
        for (int32_t i = 0; item >= 0 && i < b->rows->item[item].n_in; i++) {
            const tile_row_operand *in = &b->rows->item[item].in[i];
            if (is_strip(b->rows, in) && in->x) keep(b, in->item);
        }
        if (!op->writes) continue;
        const tile_row_operand in = tile_native_written(b->rows, op);
        if (is_strip(b->rows, &in) && in.x) keep(b, in.item);
    }
}

/* Stages */

static int32_t level_below(const planner *b, const tile_row_operand *in) {
    if (!is_strip(b->rows, in)) return 0;
    return b->level[in->item] + is_kept(b, in->item);
}

static int32_t find_stage(tile_native_plan *plan, const tile_native_loop *want) {
    for (int32_t k = 0; k < plan->stage_count; k++) {
        const tile_native_loop *s = &plan->stage[k];
        if (s->level == want->level && s->left == want->left && s->right == want->right &&
            s->warm == want->warm)
            return k;
    }
    if (plan->stage_count == TILE_STAGES_MAX - 1) return -1;
    plan->stage[plan->stage_count] = *want;
    return plan->stage_count++;
}

/* false: too many. The last stage is the one that writes. */
static bool find_stages(planner *b) {
    tile_native_plan *plan = b->plan;
    plan->stage_count = 0;
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t number = item_of(b->rows, k);
        if (number < 0) continue;
        const tile_row_item *item = &b->rows->item[number];
        b->level[number] = 0;
        for (int32_t i = 0; i < item->n_in; i++) {
            const int32_t level = level_below(b, &item->in[i]);
            if (level > b->level[number]) b->level[number] = level;
        }
        if (!is_kept(b, number)) continue;
        const tile_native_loop want = {
            b->level[number], item->left, item->right, item->warm, 0, 0, 0, 0, 0, 0};
        plan->kept[number].stage = find_stage(plan, &want);
        if (plan->kept[number].stage < 0) return false;
    }
    plan->stage[plan->stage_count++] = (tile_native_loop){.level = INT32_MAX};
    return true;
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
                int32_t *stage = &plan->kept[i].stage;
                if (*stage == j)
                    *stage = j - 1;
                else if (*stage == j - 1)
                    *stage = j;
            }
        }
}

/* Where each item is computed */

static void need(planner *b, const tile_row_operand *in, uint64_t stages) {
    if (is_strip(b->rows, in) && !is_kept(b, in->item)) b->plan->need[in->item] |= stages;
}

static bool is_shared(const planner *b, int32_t item) {
    const uint64_t stages = b->plan->need[item];
    return (stages & (stages - 1)) && b->cost[item] >= SHARED_COST;
}

/* grow: keeps what several stages would compute. true: something was kept that was not. */
static bool find_needs(planner *b, bool grow) {
    tile_native_plan *plan = b->plan;
    bool grown = false;
    for (int32_t k = 0; k < b->rows->item_count; k++) plan->need[k] = 0;
    for (int32_t k = b->rows->op_count - 1; k >= 0; k--) {
        const tile_row_op *op = &b->rows->op[k];
        if (op->writes) {
            const tile_row_operand in = tile_native_written(b->rows, op);
            need(b, &in, (uint64_t)1 << (plan->stage_count - 1));
        }
        const int32_t number = item_of(b->rows, k);
        if (number < 0) continue;
        if (is_kept(b, number)) {
            plan->need[number] = (uint64_t)1 << plan->kept[number].stage;
        } else if (grow && is_shared(b, number)) {
            keep(b, number);
            plan->need[number] = (uint64_t)1 << SOME_STAGE;
            grown = true;
        }
        for (int32_t i = 0; i < b->rows->item[number].n_in; i++)
            need(b, &b->rows->item[number].in[i], plan->need[number]);
    }
    return grown;
}

static void find_costs(planner *b) {
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t number = item_of(b->rows, k);
        if (number < 0) continue;
        const tile_row_item *item = &b->rows->item[number];
        const tile_dtype dtype = b->plan->exe->program.value[item->value].dtype;
        char name[64];
        tile_dtype in[TILE_OP_IN] = {TILE_F32};
        for (int32_t i = 0; i < item->n_in; i++)
            in[i] = b->plan->exe->program.value[tile_node_in(&b->plan->exe->program, item->node, i)]
                        .dtype;
        b->cost[number] =
            tile_native_function(NULL, item->node->op, in, dtype, name) ? 1 : CALL_COST;
        for (int32_t i = 0; i < item->n_in; i++)
            if (is_strip(b->rows, &item->in[i]) && !is_kept(b, item->in[i].item) &&
                b->cost[number] < SHARED_COST)
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
        plan->kept[k].height = item->high - item->low + 1;
        bytes += plan->kept[k].height * (int64_t)item->size;
    }
    plan->panel = INT64_MAX;
    if (bytes) plan->panel = tile_between(RINGS_BYTES / bytes, PANEL_MIN, PANEL_MAX);
    plan->kept_bytes = 0;
    for (int32_t k = 0; k < b->rows->item_count; k++) {
        const tile_row_item *item = &b->rows->item[k];
        tile_native_kept *kept = &plan->kept[k];
        if (!is_kept(b, k)) continue;
        kept->place = plan->kept_bytes;
        kept->pitch = tile_align((size_t)(plan->panel + item->right - item->left) * item->size);
        plan->kept_bytes += kept->pitch * (size_t)kept->height;
    }
}

static bool plan_stages(planner *b) {
    for (int32_t k = 0; k < b->rows->item_count; k++) b->plan->kept[k].stage = -1;
    keep_read(b);
    find_costs(b);
    if (!find_stages(b)) return false;
    if (find_needs(b, true) && !find_stages(b)) return false;
    sort_stages(b);
    find_needs(b, false);
    place_kept(b);
    return true;
}

tile_status tile_native_plan_stages(tile_native_plan *plan) {
    static const double OP_NS = 0.01;
    tile_rows *rows = plan->rows;
    const size_t items = (size_t)rows->item_count + 1;
    plan->need = tile_alloc(items * sizeof *plan->need);
    plan->kept = tile_alloc(items * sizeof *plan->kept);
    planner b = {.plan = plan,
                 .rows = rows,
                 .level = tile_alloc(items * sizeof *b.level),
                 .cost = tile_alloc(items * sizeof *b.cost)};
    const bool there = plan->need && plan->kept && b.level && b.cost;
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
    tile_free(plan->need);
    tile_free(plan->kept);
    tile_free(plan->line);
    tile_free(plan->tap);
    tile_free(plan->iota);
    tile_free(plan->strip);
    tile_free(plan->group);
    tile_text_clear(&plan->source);
    *plan = (tile_native_plan){.rows = NULL};
}
