/* exec_device.c: a launch by the context's device: its argument, and what an error says. */
#include "core/device.h"

#include <string.h>

#include "core/exec_internal.h"
#include "core/status.h"

/* CUDA blocks of a launch whose blocks may run in any order; each runs several of them. */
enum { BLOCKS_MAX = 4096 };

typedef struct layout {
    size_t array, scalar, slot, bytes;
} layout;

static layout lay_out(const tile_program *p) {
    const size_t params = p->param_count ? (size_t)p->param_count : 1;
    const size_t slots = p->slot_count ? (size_t)p->slot_count : 1;
    layout at = {.array = sizeof(tile_cuda_head)};
    at.scalar = at.array + params * sizeof(tile_memory);
    at.slot = at.scalar + params * sizeof(uint64_t);
    at.bytes = at.slot + slots * sizeof(tile_cuda_slot);
    return at;
}

/* Which parameters are one array, element for element. false: some overlap in another way. */
static bool find_same(const tile_run_state *run, int8_t same[TILE_PROGRAM_PARAMS]) {
    tile_aliases aliases = {.folded = 0};
    tile_find_aliases(run, &aliases);
    for (int k = 0; k < TILE_PROGRAM_PARAMS; k++) same[k] = (int8_t)k;
    bool clear = !aliases.folded;
    for (int k = 0; k < TILE_PROGRAM_PARAMS; k++) {
        clear = clear && aliases.meets[k] == aliases.same[k];
        for (int j = 0; j < TILE_PROGRAM_PARAMS; j++) {
            if (!tile_has_bit(aliases.same[k], j)) continue;
            const int8_t first = same[j] < same[k] ? same[j] : same[k];
            same[j] = same[k] = first;
        }
    }
    return clear;
}

/* Which kernel a launch runs; the first one where there is no room for another. */
static tile_device_kernel *kernel_of(tile_executable *exe, const tile_run_state *run) {
    int8_t same[TILE_PROGRAM_PARAMS];
    tile_device_kernel *kernel = exe->device_kernel;
    if (!find_same(run, same)) return kernel;
    for (int k = 1; k < TILE_DEVICE_KERNELS; k++) {
        if (kernel[k].kernel && memcmp(kernel[k].same, same, sizeof same) != 0) continue;
        memcpy(kernel[k].same, same, sizeof same);
        return &kernel[k];
    }
    return kernel;
}

static unsigned mode_of(const tile_executable *exe, const tile_device_kernel *kernel) {
    return (kernel == exe->device_kernel ? TILE_CUDA_MIXED : 0) |
           (exe->ctx->deterministic ? TILE_CUDA_DETERMINISTIC : 0);
}

static tile_status load(tile_executable *exe, tile_device_kernel *kernel) {
    tile_cuda_kernel source;
    tile_device *device = exe->ctx->device;
    if (kernel->kernel) return TILE_OK;
    if (!exe->argument) exe->argument = tile_alloc(lay_out(&exe->program).bytes);
    if (!exe->argument) return TILE_E_MEMORY;
    if (kernel == exe->device_kernel)
        for (int k = 0; k < TILE_PROGRAM_PARAMS; k++) kernel->same[k] = (int8_t)k;
    TILE_TRY(tile_cuda_write(exe, mode_of(exe, kernel), kernel->same, &source));
    kernel->arena_bytes = source.arena_bytes;
    kernel->threads = source.threads;
    const tile_status status = device->load(device, &source, &kernel->kernel);
    tile_cuda_kernel_clear(&source);
    return status ? tile_fail(status, "kernel %s: %s", exe->program.name, tile_last_error())
                  : status;
}

void tile_device_drop(tile_executable *exe) {
    for (int k = 0; k < TILE_DEVICE_KERNELS; k++)
        if (exe->device_kernel[k].kernel)
            exe->ctx->device->unload(exe->ctx->device, exe->device_kernel[k].kernel);
    tile_free(exe->argument);
}

/* The argument */

static void fill_slots(const tile_run_state *run, tile_cuda_slot *slot) {
    for (int32_t k = 0; k < run->exe->program.slot_count; k++) {
        const tile_slot_place *place = &run->slot[k];
        slot[k] = (tile_cuda_slot){.base = (int64_t)place->base,
                                   .bytes = (int64_t)place->bytes,
                                   .entries = place->entries};
        memcpy(slot[k].trips, place->trips, sizeof slot[k].trips);
    }
}

/* What a rank has no dimensions for stays zero, as allocated: a device compares arguments. */
static void fill_array(const tile_memory *from, tile_memory *to) {
    const size_t bytes = (size_t)from->rank * sizeof *to->extent;
    to->read = from->read;
    to->write = from->write;
    to->rank = from->rank;
    memcpy(to->extent, from->extent, bytes);
    memcpy(to->stride, from->stride, bytes);
}

static void fill(const tile_run_state *run, char *argument) {
    const tile_program *p = &run->exe->program;
    const layout at = lay_out(p);
    tile_cuda_head head = {
        .blocks = run->blocks, .stash = run->bound->stash, .error = NULL, .arena = NULL};
    memcpy(head.grid, run->bound->grid, sizeof head.grid);
    memcpy(head.domain, run->bound->domain, sizeof head.domain);
    memcpy(argument, &head, sizeof head);
    for (int32_t k = 0; k < p->param_count; k++) {
        uint64_t scalar = 0;
        if (p->param[k].kind == TILE_PARAM_ARRAY)
            fill_array(&run->bound->array[k], (tile_memory *)(void *)(argument + at.array) + k);
        if (p->param[k].kind == TILE_PARAM_REAL)
            tile_dtype_put(p->param[k].dtype, run->bound->scalar[k].real, &scalar);
        else if (p->param[k].kind == TILE_PARAM_INT)
            memcpy(&scalar, &run->bound->scalar[k].integer, sizeof scalar);
        memcpy(argument + at.scalar + (size_t)k * sizeof scalar, &scalar, sizeof scalar);
    }
    fill_slots(run, (tile_cuda_slot *)(void *)(argument + at.slot));
}

/* Running */

static void note_error(const tile_run_state *run, const tile_cuda_error *e) {
    const tile_node *n = &run->exe->program.node[e->node];
    tile_runner r = {.run = run};
    if (!e->set) return;
    tile_run_set_block(&r, e->order);
    if (n->op == &tile_op_loop)
        tile_run_fail_while(&r, n, e->value);
    else
        tile_run_fail_within(&r, n, e->value, e->low, e->high);
}

/* Whether nothing but additions go to an array, and nobody reads previous values. */
static bool only_adds(const tile_executable *exe, int param) {
    return exe->analysis.reads[param] == 1u << TILE_ACCESS_ADD &&
           !tile_has_bit(exe->analysis.answered, param);
}

/* Where blocks meet in memory, one CUDA block runs them all, in order. Additions are atomic and the
 * same in any order but for their rounding, so they meet freely, unless that is to be the same from
 * run to run. */
static bool is_ordered(const tile_run_state *run) {
    const uint64_t met = run->logged | run->summed;
    if (run->serial || !met) return run->serial;
    if (run->exe->ctx->deterministic) return true;
    for (int k = 0; k < TILE_PROGRAM_PARAMS; k++)
        if (tile_has_bit(met, k) && !only_adds(run->exe, k)) return true;
    return false;
}

static tile_device_launch describe(const tile_run_state *run, const tile_device_kernel *kernel) {
    const tile_executable *exe = run->exe;
    const int64_t blocks = run->blocks < BLOCKS_MAX ? run->blocks : BLOCKS_MAX;
    return (tile_device_launch){.argument = (tile_cuda_head *)(void *)exe->argument,
                                .bytes = lay_out(&exe->program).bytes,
                                .arena_bytes = kernel->arena_bytes,
                                .blocks = is_ordered(run) ? 1 : blocks,
                                .threads = kernel->threads,
                                .name = exe->program.name};
}

tile_status tile_device_reserve(tile_executable *exe, const tile_run_state *run) {
    tile_device *device = exe->ctx->device;
    tile_device_kernel *kernel = kernel_of(exe, run);
    TILE_TRY(load(exe, kernel));
    if (!device->reserve || !run->blocks) return TILE_OK;
    const tile_device_launch launch = describe(run, kernel);
    return device->reserve(device, kernel->kernel, &launch);
}

tile_status tile_device_run(tile_executable *exe, const tile_run_state *run) {
    tile_cuda_error error = {.set = 0};
    tile_device *device = exe->ctx->device;
    tile_device_kernel *kernel = kernel_of(exe, run);
    TILE_TRY(load(exe, kernel));
    exe->device_last = kernel;
    fill(run, exe->argument);
    tile_device_launch launch = describe(run, kernel);
    if (run->may_fail) launch.error = &error;
    launch.wait = exe->ctx->check;
    TILE_TRY(device->launch(device, kernel->kernel, &launch));
    note_error(run, &error);
    return TILE_OK;
}

tile_status tile_executable_resources(tile_executable *exe, tile_device_resources *resources) {
    tile_device *device = exe->ctx->device;
    tile_device_kernel *kernel = exe->device_last ? exe->device_last : exe->device_kernel;
    TILE_TRY(load(exe, kernel));
    TILE_TRY(device->resources(device, kernel->kernel, kernel->arena_bytes, resources));
    if (kernel->threads && kernel->threads < resources->threads)
        resources->threads = kernel->threads;
    return TILE_OK;
}
