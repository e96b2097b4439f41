/* adjoint_plan.c: which kernels make a kernel's adjoint, by what a launch is like. */
#include <string.h>

#include "core/adjoint_state.h"
#include "core/memory.h"
#include "core/status.h"

/* Parameters of a step's program from first on: the gradients; before: the forward values. */
void tile_adjoint_plan_add(tile_adjoint_plan *plan, const tile_adjoint *a, tile_adjoint_kind kind,
                           tile_executable *exe) {
    tile_adjoint_step *step = &plan->step[plan->count++];
    const tile_analysis *analysis = tile_executable_analysis(exe);
    const int first = a->forward->param_count;
    *step = (tile_adjoint_step){.kind = kind, .exe = exe, .grads = a->grads};
    for (int k = 0; k < first; k++)
        if (analysis->reads[k]) plan->values |= (uint32_t)1 << k;
    plan->sized |= (uint32_t)analysis->sized;
    int grad = first;
    for (int k = 0; k < first; k++) {
        if (!(a->grads >> k & 1u)) continue;
        const uint32_t bit = (uint32_t)1 << k;
        const unsigned used = analysis->reads[grad];
        if (used) step->uses |= bit;
        if (used & ~(1u << TILE_ACCESS_LOAD)) step->targets |= bit;
        grad++;
    }
}

/* Keep nodes go right behind what they keep; an argument of a body is kept when the body begins. */
static tile_status insert_keep(tile_program *p, int32_t value, int32_t slot) {
    const tile_value v = p->value[value];
    int32_t in[1 + TILE_RANK_MAX] = {value}, loops = 0;
    for (int32_t r = v.region; r > 0; r = p->node[p->region[r].owner].parent) loops++;
    int32_t k = loops;
    for (int32_t r = v.region; r > 0; r = p->node[p->region[r].owner].parent)
        in[k--] = p->region[r].argument;
    const tile_node node = {
        .op = &tile_op_keep, .n_in = 1 + loops, .param = -1, .region = -1, .attrs.n[0] = slot};
    const int32_t id = tile_program_add_node(p, &node, in);
    if (id < 0) return TILE_E_MEMORY;
    TILE_TRY(tile_region_append(p, v.region, id));
    tile_region *r = &p->region[v.region];
    int32_t at = 0;
    while (v.result >= 0 && r->node[at] != v.node) at++;
    if (v.result >= 0) at++;
    memmove(&r->node[at + 1], &r->node[at], (size_t)(r->count - 1 - at) * sizeof *r->node);
    r->node[at] = id;
    return TILE_OK;
}

/* Trip counts of the loops around a value, outer first, as values of the forward program. */
static void slot_counts(const tile_program *p, int32_t region, tile_slot *slot) {
    int k = slot->loops;
    for (int32_t r = region; r > 0; r = p->node[p->region[r].owner].parent)
        slot->count_value[--k] = tile_node_in(p, &p->node[p->region[r].owner], 0);
}

static tile_status augment(const tile_adjoint *a, const tile_program *adjoint,
                           tile_program *augmented) {
    TILE_TRY(tile_program_copy(a->forward, augmented));
    for (int32_t s = 0; s < a->kept_count; s++) {
        TILE_TRY(
            tile_grow(&augmented->slot, &augmented->slot_capacity, s + 1, sizeof *augmented->slot));
        tile_slot slot = adjoint->slot[s];
        slot_counts(augmented, augmented->value[a->kept[s]].region, &slot);
        augmented->slot[augmented->slot_count++] = slot;
        TILE_TRY(insert_keep(augmented, a->kept[s], s));
    }
    return TILE_OK;
}

static tile_status make_augmented(tile_kernel *kernel, const tile_adjoint *a,
                                  const tile_program *adjoint, tile_adjoint_plan *plan) {
    tile_program augmented;
    if (!a->kept_count) return TILE_OK;
    const tile_status status = augment(a, adjoint, &augmented);
    if (status) {
        tile_program_clear(&augmented);
        return status;
    }
    return tile_executable_create(kernel->ctx, &augmented, &plan->augmented);
}

/* Classes of float arrays that can hold an adjoint at some point of the kernel. */
static uint32_t grad_classes(const tile_kernel *kernel, const tile_program *p,
                             const tile_adjoint_key *key) {
    uint32_t classes = 0;
    for (int k = 0; k < p->param_count; k++) {
        const uint32_t bit = (uint32_t)1 << k;
        const bool holds = ((key->active | key->upstream) & bit) ||
                           ((kernel->writes & bit) && (kernel->reads & bit));
        if (p->param[k].kind == TILE_PARAM_ARRAY && tile_is_float(p->param[k].dtype) && holds)
            classes |= (uint32_t)1 << tile_class_of(key, k);
    }
    return classes;
}

static tile_status scatter_with(tile_kernel *kernel, tile_adjoint *a, tile_adjoint_plan *plan) {
    tile_executable *exe;
    a->clears = true;
    a->b->program.reverse = true;
    tile_adjoint_walk(a);
    TILE_TRY(tile_adjoint_finish(a, &exe));
    tile_adjoint_plan_add(plan, a, TILE_ADJOINT_SCATTER, exe);
    return make_augmented(kernel, a, tile_executable_program(exe), plan);
}

static tile_status plan_scatter(tile_kernel *kernel, tile_adjoint_plan *plan) {
    const tile_program *p = tile_executable_program(kernel->forward);
    tile_adjoint a;
    uint32_t targets = 0;
    for (int k = 0; k < p->param_count; k++)
        if (plan->key.active >> tile_class_of(&plan->key, k) & 1u) targets |= (uint32_t)1 << k;
    tile_status status =
        tile_adjoint_begin(&a, kernel, p, tile_executable_analysis(kernel->forward), &plan->key,
                           targets, grad_classes(kernel, p, &plan->key));
    if (!status) status = scatter_with(kernel, &a, plan);
    tile_adjoint_end(&a);
    return status;
}

/* The user's own adjoint: one scatter step with a gradient for each float array. */
static void plan_own(tile_kernel *kernel, tile_adjoint_plan *plan) {
    const tile_program *p = tile_executable_program(kernel->forward);
    tile_adjoint a = {.forward = p};
    for (int k = 0; k < p->param_count; k++)
        if (p->param[k].kind == TILE_PARAM_ARRAY && tile_is_float(p->param[k].dtype))
            a.grads |= (uint32_t)1 << k;
    tile_adjoint_plan_add(plan, &a, TILE_ADJOINT_SCATTER, kernel->own_adjoint->forward);
    plan->own = true;
}

static void drop_steps(tile_adjoint_plan *plan) {
    for (int k = 0; k < plan->count && !plan->own; k++) tile_executable_destroy(plan->step[k].exe);
    tile_executable_destroy(plan->augmented);
    const tile_adjoint_key key = plan->key;
    *plan = (tile_adjoint_plan){.key = key};
}

void tile_adjoint_plan_destroy(tile_adjoint_plan *plan) {
    if (!plan) return;
    drop_steps(plan);
    tile_free(plan);
}

/* A user's adjoint has a gradient for each parameter: two of one array would be the same memory. */
static tile_status check_own(const tile_kernel *kernel, const tile_adjoint_key *key) {
    const tile_program *p = tile_executable_program(kernel->forward);
    for (int k = 0; k < p->param_count; k++) {
        const int first = key->same[k];
        const uint32_t both = (uint32_t)1 << k | (uint32_t)1 << first;
        if (first == k || !(kernel->floats >> k & 1u)) continue;
        TILE_CHECK(!(kernel->writes & both), TILE_E_ARGUMENT,
                   "tile_launch: %s has an adjoint of its own and writes %s: %s and %s are one "
                   "array, expected two",
                   p->name, p->param[kernel->writes >> k & 1u ? k : first].name,
                   p->param[first].name, p->param[k].name);
    }
    return TILE_OK;
}

static tile_status make_plan(tile_kernel *kernel, tile_adjoint_plan *plan) {
    bool made = false;
    if (kernel->own_adjoint && plan->key.active) { /* else there is only clearing to do */
        TILE_TRY(check_own(kernel, &plan->key));
        plan_own(kernel, plan);
        return TILE_OK;
    }
    TILE_TRY(tile_adjoint_plan_field(kernel, plan, &made));
    if (made) return TILE_OK;
    drop_steps(plan);
    return plan_scatter(kernel, plan);
}

static bool same_key(const tile_adjoint_key *a, const tile_adjoint_key *b) {
    return a->active == b->active && a->upstream == b->upstream && a->accumulate == b->accumulate &&
           a->apart == b->apart && !memcmp(a->same, b->same, sizeof a->same);
}

tile_status tile_kernel_adjoint(tile_kernel *kernel, const tile_adjoint_key *key,
                                const tile_adjoint_plan **plan) {
    for (tile_adjoint_plan *p = kernel->plans; p; p = p->next) {
        if (!same_key(&p->key, key)) continue;
        *plan = p;
        return TILE_OK;
    }
    tile_adjoint_plan *p = tile_alloc(sizeof *p);
    if (!p) return TILE_E_MEMORY;
    p->key = *key;
    const tile_status status = make_plan(kernel, p);
    if (status) {
        tile_adjoint_plan_destroy(p);
        return status;
    }
    p->next = kernel->plans;
    kernel->plans = p;
    *plan = p;
    return TILE_OK;
}

static tile_adjoint_key full_key(const tile_kernel *kernel) {
    const tile_program *p = tile_executable_program(kernel->forward);
    tile_adjoint_key key = {.apart = true};
    for (int k = 0; k < p->param_count; k++) {
        key.same[k] = (int8_t)k;
        if (p->param[k].kind != TILE_PARAM_ARRAY || !tile_is_float(p->param[k].dtype)) continue;
        key.active |= (uint32_t)1 << k;
        if (kernel->writes >> k & 1u) key.upstream |= (uint32_t)1 << k;
    }
    return key;
}

tile_status tile_kernel_print_adjoint(tile_kernel *kernel, FILE *out) {
    static const char *const names[] = {"gather", "reduce", "in place", "clear", "scatter"};
    const tile_adjoint_plan *plan;
    TILE_CHECK(kernel && out, TILE_E_ARGUMENT, "tile_kernel_print_adjoint: %s is NULL",
               kernel ? "out" : "kernel");
    const tile_adjoint_key key = full_key(kernel);
    TILE_TRY(tile_kernel_adjoint(kernel, &key, &plan));
    for (int k = 0; k < plan->count; k++) {
        TILE_CHECK(fprintf(out, "# %s\n", names[plan->step[k].kind]) > 0, TILE_E_FILE,
                   "tile_kernel_print_adjoint: the file does not take it");
        TILE_TRY(tile_program_print(tile_executable_program(plan->step[k].exe), out));
    }
    return TILE_OK;
}

tile_status tile_kernel_set_adjoint(tile_kernel *kernel, tile_kernel *adjoint) {
    TILE_CHECK(kernel && adjoint, TILE_E_ARGUMENT, "tile_kernel_set_adjoint: %s is NULL",
               kernel ? "adjoint" : "kernel");
    const tile_program *p = tile_executable_program(kernel->forward);
    const tile_program *q = tile_executable_program(adjoint->forward);
    TILE_CHECK(!kernel->plans, TILE_E_STATE,
               "tile_kernel_set_adjoint: kernel %s has been recorded already", p->name);
    int at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < p->param_count; k++) {
            const tile_param_info *want = &p->param[k], *got = &q->param[at];
            if (pass && (want->kind != TILE_PARAM_ARRAY || !tile_is_float(want->dtype))) continue;
            const tile_dtype dtype = pass ? tile_wide_dtype(want->dtype) : want->dtype;
            TILE_CHECK(at < q->param_count && got->kind == want->kind && got->dtype == dtype &&
                           got->rank == want->rank,
                       TILE_E_ARGUMENT,
                       "tile_kernel_set_adjoint: parameter %d of %s is not like %s%s of %s", at + 1,
                       q->name, pass ? "the gradient of " : "", want->name, p->name);
            at++;
        }
    }
    TILE_CHECK(at == q->param_count, TILE_E_ARGUMENT,
               "tile_kernel_set_adjoint: %s has %d parameters, expected %d", q->name,
               (int)q->param_count, at);
    tile_kernel_destroy(kernel->own_adjoint);
    kernel->own_adjoint = tile_kernel_hold(adjoint);
    return TILE_OK;
}
