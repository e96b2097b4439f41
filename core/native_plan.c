/* native_plan.c: which values of a row plan are kept, and in which loop each value is made. */
#include "core/native_plan.h"

#include "core/memory.h"

enum {
    FOLD_COST = 3,   /* ops that are better written out than kept */
    SHARED_COST = 3, /* ops that are worth a kept row rather than a second time */
    CALL_COST = 8,
    PANEL_MIN = 1024,
    PANEL_MAX = 16384,
    ROUNDS = 400
};
static const int64_t RINGS_BYTES = 256 << 10; /* fit the second-level cache */

typedef struct planner {
    tile_native_plan *plan;
    const tile_rows *rows;
    int32_t *cost; /* per item */
    bool *called;  /* per item: by a strip */
    bool grown;    /* something was kept that was not */
} planner;

tile_row_operand tile_native_written(const tile_rows *rows, const tile_row_op *op) {
    if (!op->run) return op->in[0];
    return (tile_row_operand){
        .item = op->item, .flat = -1, .row = rows->item[op->item].high, .x = op->left};
}

/* Levels */

/* A kept operand that is read at the reader's own element may be made in the same loop; but not
 * when the reader itself is read beside its element. apart: the level in that case. */
static void raise_levels(planner *b, int32_t number, const tile_row_operand *in) {
    if (!tile_native_is_strip(b->rows, in)) return;
    tile_native_item *item = &b->plan->item[number];
    const tile_native_item *from = &b->plan->item[in->item];
    const bool beside = in->x || in->row != b->rows->item[number].high;
    const int32_t apart = from->kept ? from->level + 1 : from->apart;
    const int32_t level = beside ? apart : from->level;
    if (level > item->level) item->level = level;
    if (apart > item->apart) item->apart = apart;
}

static void find_levels(planner *b) {
    tile_native_plan *plan = b->plan;
    int32_t levels = 0;
    for (int32_t k = 0; k < b->rows->op_count; k++) {
        const int32_t number = tile_native_made(b->rows, k);
        if (number < 0) continue;
        tile_native_item *item = &plan->item[number];
        item->level = item->apart = 0;
        for (int32_t i = 0; i < b->rows->item[number].n_in; i++)
            raise_levels(b, number, &b->rows->item[number].in[i]);
        if (item->kept && item->level >= levels) levels = item->level + 1;
    }
    plan->stage_count = levels + 1;
    if (plan->stage_count > TILE_STAGES_MAX) return;
    for (int32_t s = 0; s <= levels; s++)
        plan->stage[s] = (tile_native_loop){.row = s < levels ? INT64_MIN : 0};
    for (int32_t k = 0; k < b->rows->item_count; k++) {
        if (!plan->item[k].kept) continue;
        tile_native_loop *s = &plan->stage[plan->item[k].level];
        if (b->rows->item[k].high > s->row) s->row = b->rows->item[k].high;
    }
}

/* Needs: which stages compute an item */

static void need(planner *b, const tile_row_operand *in, uint64_t stages) {
    if (!tile_native_is_strip(b->rows, in)) return;
    tile_native_item *item = &b->plan->item[in->item];
    if (!item->kept && !item->folded) item->need |= stages;
}

static void find_needs(planner *b) {
    tile_native_plan *plan = b->plan;
    for (int32_t k = 0; k < b->rows->item_count; k++) {
        tile_native_item *item = &plan->item[k];
        item->need = item->kept ? (uint64_t)1 << item->level : 0;
    }
    for (int32_t k = b->rows->op_count - 1; k >= 0; k--) {
        if (b->rows->op[k].writes) {
            const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
            need(b, &in, (uint64_t)1 << (plan->stage_count - 1));
        }
        const int32_t number = tile_native_made(b->rows, k);
        for (int32_t i = 0; number >= 0 && i < b->rows->item[number].n_in; i++)
            need(b, &b->rows->item[number].in[i], plan->item[number].need);
    }
}

/* Places */

tile_native_base tile_native_base_of(const tile_native_plan *plan, int32_t stage, int32_t reader) {
    if (reader < 0) return (tile_native_base){0, 0};
    const tile_native_item *by = &plan->item[reader];
    if (!by->kept) return (tile_native_base){by->x, by->ahead};
    return (tile_native_base){0, plan->stage[stage].row - plan->rows->item[reader].high};
}

tile_native_spot tile_native_spot_of(const tile_native_plan *plan, int32_t stage,
                                     tile_native_base base, const tile_row_operand *in) {
    tile_native_spot at = {
        .row = in->row + base.ahead, .x = in->x + base.x, .ahead = base.ahead, .local = false};
    if (!tile_native_is_strip(plan->rows, in)) return at;
    const tile_native_item *from = &plan->item[in->item];
    at.local = !from->kept || (from->level == stage && !at.x && at.row == plan->stage[stage].row);
    return at;
}

bool tile_native_find_places(tile_native_plan *plan, int32_t stage) {
    const tile_rows *rows = plan->rows;
    bool single = true;
    for (int32_t k = 0; k < rows->item_count; k++) plan->item[k].x = INT64_MIN;
    for (int32_t k = rows->op_count - 1; k >= 0; k--) {
        const int32_t number = tile_native_made(rows, k);
        const bool computed = number >= 0 && (plan->item[number].need >> stage & 1);
        tile_row_operand written = {.item = -1};
        if (rows->op[k].writes && stage == plan->stage_count - 1)
            written = tile_native_written(rows, &rows->op[k]);
        for (int32_t i = -1; i < (computed ? rows->item[number].n_in : 0); i++) {
            const tile_row_operand *in = i < 0 ? &written : &rows->item[number].in[i];
            if (!tile_native_is_strip(rows, in)) continue;
            tile_native_item *item = &plan->item[in->item];
            if (item->kept || item->folded) continue;
            const tile_native_base base = tile_native_base_of(plan, stage, i < 0 ? -1 : number);
            const tile_native_spot at = tile_native_spot_of(plan, stage, base, in);
            const int64_t ahead = at.row - rows->item[in->item].high;
            if (item->x != INT64_MIN && (item->x != at.x || item->ahead != ahead)) {
                item->level = -1; /* for keep_conflicts */
                single = false;
            }
            item->x = at.x;
            item->ahead = ahead;
        }
    }
    return single;
}

/* What is kept */

static void keep(planner *b, int32_t item) {
    b->grown = b->grown || !b->plan->item[item].kept;
    b->plan->item[item].kept = true;
}

/* Ops of an item and of what it would fold; more than FOLD_COST: too many, or none may be. */
static int32_t fold_cost(const planner *b, int32_t number) {
    const tile_row_item *item = &b->rows->item[number];
    int32_t cost = b->called[number] ? FOLD_COST + 1 : 1;
    for (int32_t i = 0; i < item->n_in && cost <= FOLD_COST; i++)
        if (tile_native_is_strip(b->rows, &item->in[i]) && !b->plan->item[item->in[i].item].kept)
            cost += fold_cost(b, item->in[i].item);
    return cost;
}

static void fold(planner *b, int32_t number) {
    const tile_row_item *item = &b->rows->item[number];
    b->grown = b->grown || !b->plan->item[number].folded;
    b->plan->item[number].folded = true;
    for (int32_t i = 0; i < item->n_in; i++)
        if (tile_native_is_strip(b->rows, &item->in[i]) && !b->plan->item[item->in[i].item].kept)
            fold(b, item->in[i].item);
}

/* What a stage would compute at two places: what others are made of first, for what is cheap once
 * that is kept. */
static void keep_conflicts(planner *b) {
    for (int32_t s = 0; s < b->plan->stage_count; s++) {
        if (tile_native_find_places(b->plan, s)) continue;
        for (int32_t k = 0; k < b->rows->op_count; k++) {
            const int32_t number = tile_native_made(b->rows, k);
            if (number < 0 || b->plan->item[number].level >= 0) continue;
            if (fold_cost(b, number) <= FOLD_COST)
                fold(b, number);
            else
                keep(b, number);
        }
        return; /* levels are to be found again */
    }
}

/* What several stages would compute, when that is dear; the outermost of it first. */
static void keep_shared(planner *b) {
    for (int32_t k = b->rows->op_count - 1; k >= 0 && !b->grown; k--) {
        const int32_t number = tile_native_made(b->rows, k);
        if (number < 0 || b->plan->item[number].kept || b->plan->item[number].folded) continue;
        const uint64_t stages = b->plan->item[number].need;
        if ((stages & (stages - 1)) && b->cost[number] >= SHARED_COST) keep(b, number);
    }
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
        b->called[number] = !plain;
        b->cost[number] = plain ? 1 : CALL_COST;
        for (int32_t i = 0; i < item->n_in; i++)
            if (tile_native_is_strip(b->rows, &item->in[i]) && b->cost[number] < SHARED_COST)
                b->cost[number] += b->cost[item->in[i].item];
    }
}

/* Ranges and room */

/* The rows and elements of a kept value that stage s reads. */
static void reach_for(planner *b, int32_t stage, tile_native_base base,
                      const tile_row_operand *in) {
    tile_native_plan *plan = b->plan;
    if (!tile_native_is_strip(b->rows, in)) return;
    const tile_native_spot at = tile_native_spot_of(plan, stage, base, in);
    if (plan->item[in->item].folded)
        for (int32_t i = 0; i < b->rows->item[in->item].n_in; i++)
            reach_for(b, stage, tile_native_base_at(plan, in->item, &at),
                      &b->rows->item[in->item].in[i]);
    if (!plan->item[in->item].kept) return;
    const tile_native_loop *by = &plan->stage[stage];
    tile_native_item *item = &plan->item[in->item];
    tile_native_loop *s = &plan->stage[item->level];
    if (at.row < item->low) item->low = at.row;
    if (at.local) return;
    if (by->left + at.x < s->left) s->left = by->left + at.x;
    if (by->right + at.x > s->right) s->right = by->right + at.x;
    if (by->warm + s->row - at.row > s->warm) s->warm = by->warm + s->row - at.row;
}

static void find_ranges(planner *b) {
    tile_native_plan *plan = b->plan;
    for (int32_t k = 0; k < b->rows->item_count; k++) plan->item[k].low = INT64_MAX;
    for (int32_t s = 0; s < plan->stage_count - 1; s++) {
        plan->stage[s].left = INT64_MAX;
        plan->stage[s].right = INT64_MIN;
    }
    for (int32_t s = plan->stage_count - 1; s >= 0; s--) {
        (void)tile_native_find_places(plan, s);
        for (int32_t k = 0; k < b->rows->op_count; k++) {
            const int32_t number = tile_native_made(b->rows, k);
            if (b->rows->op[k].writes && s == plan->stage_count - 1) {
                const tile_row_operand in = tile_native_written(b->rows, &b->rows->op[k]);
                reach_for(b, s, tile_native_base_of(plan, s, -1), &in);
            }
            if (number < 0 || !(plan->item[number].need >> s & 1)) continue;
            for (int32_t i = 0; i < b->rows->item[number].n_in; i++)
                reach_for(b, s, tile_native_base_of(plan, s, number), &b->rows->item[number].in[i]);
        }
        if (plan->stage[s].left > plan->stage[s].right)
            plan->stage[s].left = plan->stage[s].right = 0;
        if (plan->stage[s].warm > plan->warm) plan->warm = plan->stage[s].warm;
    }
}

enum { PAGE = 4096, NEAR = 512, APART = NEAR + TILE_LINE };

size_t tile_native_pitch(const tile_native_plan *plan, int32_t item, int64_t panel) {
    const tile_native_loop *s = &plan->stage[plan->item[item].level];
    const size_t size = plan->rows->item[item].size;
    const size_t pitch = tile_align((size_t)(panel + s->right - s->left) * size);
    return pitch + (pitch % PAGE < NEAR ? APART : 0);
}

static void place_kept(planner *b) {
    tile_native_plan *plan = b->plan;
    int64_t bytes = 0;
    for (int32_t k = 0; k < b->rows->item_count; k++) {
        tile_native_item *item = &plan->item[k];
        if (!item->kept) continue;
        item->height = plan->stage[item->level].row - item->low + 1;
        bytes += item->height * (int64_t)b->rows->item[k].size;
    }
    plan->panel = INT64_MAX;
    if (bytes) plan->panel = tile_between(RINGS_BYTES / bytes, PANEL_MIN, PANEL_MAX);
    plan->kept_bytes = 0;
    for (int32_t k = 0; k < b->rows->item_count; k++)
        if (plan->item[k].kept)
            plan->kept_bytes +=
                (tile_native_pitch(plan, k, plan->panel) + APART) * (size_t)plan->item[k].height;
}

static bool plan_stages(planner *b) {
    find_costs(b);
    b->grown = true;
    for (int round = 0; b->grown; round++) {
        b->grown = false;
        find_levels(b);
        if (round == ROUNDS || b->plan->stage_count > TILE_STAGES_MAX) return false;
        find_needs(b);
        keep_conflicts(b);
        if (!b->grown) keep_shared(b);
    }
    find_ranges(b);
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
                 .cost = tile_alloc(items * sizeof *b.cost),
                 .called = tile_alloc(items)};
    const bool there = plan->item && b.cost && b.called;
    plan->element_ns = OP_NS * (double)rows->op_count;
    if (there && !plan_stages(&b)) {
        tile_rows_destroy(rows);
        plan->rows = NULL;
    }
    tile_free(b.cost);
    tile_free(b.called);
    return there ? TILE_OK : TILE_E_MEMORY;
}

void tile_native_plan_clear(tile_native_plan *plan) {
    tile_rows_destroy(plan->rows);
    tile_free(plan->item);
    tile_free(plan->line);
    tile_free(plan->tap);
    tile_free(plan->iota);
    tile_free(plan->strip);
    tile_plan_clear(&plan->blocks);
    tile_free(plan->view);
    tile_free(plan->group);
    tile_text_clear(&plan->source);
    *plan = (tile_native_plan){.rows = NULL};
}
