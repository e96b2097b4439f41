/* exec_place.c: where tiles lie in the arena: lifetimes, then first fit. */
#include <stdlib.h>

#include "core/exec_internal.h"
#include "core/memory.h"
#include "core/status.h"

/* Something that needs room from start to end, both counted in. */
typedef struct item {
    int32_t start, end;
    size_t bytes;
    size_t *place;
} item;

typedef struct placer {
    const tile_program *p;
    const int32_t *group;
    const bool *local;
    const int32_t *alias; /* per value: whose place it has; NULL: each its own */
    int32_t clock;
    int32_t *begin, *end;  /* per node; of the first of a group: the whole group */
    int32_t *first, *last; /* per value */
    item *items;
    int32_t count;
    int32_t *active, active_count;
    bool shared_only;
    bool registers; /* local values have no place */
} placer;

/* Lifetimes */

static void walk(placer *w, int32_t region) {
    const tile_region *r = &w->p->region[region];
    for (int32_t k = 0; k < r->count; k++) {
        const int32_t node = r->node[k];
        w->begin[node] = w->end[node] = ++w->clock;
        w->end[w->group[node]] = w->clock;
        if (w->p->node[node].op != &tile_op_loop) continue;
        walk(w, w->p->node[node].region);
        w->end[node] = ++w->clock;
    }
}

static int32_t base_of(const placer *w, int32_t value) {
    return w->alias ? w->alias[value] : value;
}

/* The loop's result and its argument are one place. */
static int32_t root_of(const placer *w, int32_t value) {
    const tile_program *p = w->p;
    value = base_of(w, value);
    const tile_value *v = &p->value[value];
    const tile_node *n = &p->node[v->node];
    if (n->op != &tile_op_loop || v->result < 0) return value;
    return p->region[n->region].argument + 1 + v->result;
}

/* A value from outside a loop lives until the loop ends. */
static void use(placer *w, int32_t value, int32_t region, int32_t time) {
    const int32_t home = w->p->value[base_of(w, value)].region;
    while (region != home && region > 0) {
        const int32_t loop = w->p->region[region].owner;
        time = w->end[loop];
        region = w->p->node[loop].parent;
    }
    const int32_t root = root_of(w, value);
    if (w->last[root] < time) w->last[root] = time;
}

static void use_inputs(placer *w, int32_t node) {
    const tile_node *n = &w->p->node[node];
    for (int32_t k = 0; k < n->n_in; k++) {
        const int32_t v = tile_node_in(w->p, n, k);
        const bool whole = n->op != &tile_op_loop && !w->local[base_of(w, v)];
        use(w, v, n->parent, whole ? w->end[w->group[node]] : w->begin[node]);
    }
}

static void find_lifetimes(placer *w) {
    const tile_program *p = w->p;
    walk(w, 0);
    for (int32_t v = 0; v < p->value_count; v++) {
        const int32_t node = p->value[v].node;
        w->first[v] = w->begin[w->local[v] ? node : w->group[node]];
        w->last[v] = p->node[node].op == &tile_op_loop ? w->end[node] : w->first[v];
    }
    for (int32_t r = 0; r < p->region_count; r++)
        for (int32_t k = 0; k < p->region[r].count; k++) use_inputs(w, p->region[r].node[k]);
    for (int32_t r = 1; r < p->region_count; r++)
        for (int32_t k = 0; k < p->region[r].yield_count; k++)
            use(w, p->region[r].yield[k], r, w->end[p->region[r].owner]);
}

/* Items */

static size_t bytes_of(const placer *w, int32_t value) {
    const tile_value *v = &w->p->value[value];
    int64_t n = 1;
    if (w->local[value] && w->registers) return 0;
    for (int d = 0; d < v->shape.rank; d++) n *= v->shape.extent[d];
    if (w->local[value] && n > TILE_CHUNK) n = TILE_CHUNK;
    return tile_align((size_t)n * tile_dtype_size(v->dtype));
}

static void add_item(placer *w, int32_t start, int32_t end, size_t bytes, size_t *place) {
    w->items[w->count++] = (item){start, end, bytes, place};
}

static void add_stages(placer *w, const tile_region *r, size_t *stage) {
    const int32_t time = w->end[r->owner];
    for (int32_t k = 0; k < r->yield_count; k++) {
        const int32_t v = r->yield[k];
        const bool other =
            v >= r->argument && v <= r->argument + r->yield_count && v != r->argument + 1 + k;
        if (!other || stage[v] != TILE_NO_PLACE) continue;
        stage[v] = 0;
        add_item(w, time, time, bytes_of(w, v), &stage[v]);
    }
}

static int by_start(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

/* First fit */

static size_t first_fit(const placer *w, const item *want) {
    size_t place = 0;
    for (int32_t k = 0; k < w->active_count;) {
        const item *other = &w->items[w->active[k]];
        if (place < *other->place + other->bytes && *other->place < place + want->bytes) {
            place = *other->place + other->bytes;
            k = 0;
        } else {
            k++;
        }
    }
    return place;
}

static void forget_ended(placer *w, int32_t time) {
    int32_t kept = 0;
    for (int32_t k = 0; k < w->active_count; k++)
        if (w->items[w->active[k]].end >= time) w->active[kept++] = w->active[k];
    w->active_count = kept;
}

static size_t place_items(placer *w) {
    size_t bytes = 0;
    qsort(w->items, (size_t)w->count, sizeof *w->items, by_start);
    for (int32_t k = 0; k < w->count; k++) {
        item *next = &w->items[k];
        forget_ended(w, next->start);
        *next->place = first_fit(w, next);
        w->active[w->active_count++] = k;
        if (*next->place + next->bytes > bytes) bytes = *next->place + next->bytes;
    }
    return bytes;
}

static tile_status place(placer *w, tile_plan *plan, size_t *stage) {
    const size_t values = (size_t)w->p->value_count + 1, nodes = (size_t)w->p->node_count + 1;
    w->begin = tile_alloc(nodes * sizeof *w->begin);
    w->end = tile_alloc(nodes * sizeof *w->end);
    w->first = tile_alloc(values * sizeof *w->first);
    w->last = tile_alloc(values * sizeof *w->last);
    w->items = tile_alloc(2 * values * sizeof *w->items);
    w->active = tile_alloc(2 * values * sizeof *w->active);
    if (!w->begin || !w->end || !w->first || !w->last || !w->items || !w->active)
        return TILE_E_MEMORY;
    find_lifetimes(w);
    for (int32_t v = 0; v < w->p->value_count; v++) {
        stage[v] = TILE_NO_PLACE;
        if (root_of(w, v) == v && (w->p->value[v].shared || !w->shared_only))
            add_item(w, w->first[v], w->last[v], bytes_of(w, v), &plan->place[v]);
    }
    for (int32_t r = 1; r < w->p->region_count && !w->shared_only; r++)
        add_stages(w, &w->p->region[r], stage);
    plan->bytes = place_items(w);
    for (int32_t v = 0; v < w->p->value_count; v++) plan->place[v] = plan->place[root_of(w, v)];
    return TILE_OK;
}

static tile_status place_with(placer *w, tile_plan *plan, size_t *stage) {
    const tile_status status = place(w, plan, stage);
    tile_free(w->begin);
    tile_free(w->end);
    tile_free(w->first);
    tile_free(w->last);
    tile_free(w->items);
    tile_free(w->active);
    return status;
}

tile_status tile_place_values(const tile_program *program, const int32_t *group, const bool *local,
                              const int32_t *alias, bool registers, tile_plan *plan,
                              size_t *stage) {
    placer w = {
        .p = program, .group = group, .local = local, .alias = alias, .registers = registers};
    return place_with(&w, plan, stage);
}

static tile_status measure_shared(const tile_program *p, int32_t *group, const bool *local,
                                  size_t *place, size_t *stage, size_t *bytes) {
    tile_plan plan = {.place = place};
    placer w = {.p = p, .group = group, .local = local, .shared_only = true};
    if (!group || !local || !place || !stage) return TILE_E_MEMORY;
    for (int32_t k = 0; k < p->node_count; k++) group[k] = k;
    TILE_TRY(place_with(&w, &plan, stage));
    *bytes = plan.bytes;
    return TILE_OK;
}

tile_status tile_shared_bytes(const tile_program *p, size_t *bytes) {
    bool some = false;
    *bytes = 0;
    for (int32_t v = 0; v < p->value_count; v++) some |= p->value[v].shared;
    if (!some) return TILE_OK;
    const size_t values = (size_t)p->value_count + 1;
    int32_t *group = tile_alloc(((size_t)p->node_count + 1) * sizeof *group);
    bool *local = tile_alloc(values);
    size_t *place = tile_alloc(values * sizeof *place), *stage = tile_alloc(values * sizeof *stage);
    const tile_status status = measure_shared(p, group, local, place, stage, bytes);
    tile_free(group);
    tile_free(local);
    tile_free(place);
    tile_free(stage);
    return status;
}
