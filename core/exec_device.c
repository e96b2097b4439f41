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

tile_status tile_device_load(tile_executable *exe) {
    tile_cuda_kernel source;
    tile_device *device = exe->ctx->device;
    if (exe->device_kernel) return TILE_OK;
    if (!exe->argument) exe->argument = tile_alloc(lay_out(&exe->program).bytes);
    if (!exe->argument) return TILE_E_MEMORY;
    TILE_TRY(tile_cuda_write(exe, &source));
    const tile_status status = device->load(device, &source, &exe->device_kernel);
    tile_cuda_kernel_clear(&source);
    return status ? tile_fail(status, "kernel %s: %s", exe->program.name, tile_last_error())
                  : status;
}

void tile_device_drop(tile_executable *exe) {
    if (exe->device_kernel) exe->ctx->device->unload(exe->ctx->device, exe->device_kernel);
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

/* Where blocks meet in memory, one CUDA block runs them all, in order. Sums into one place are the
 * same in any order but for their rounding. */
static tile_device_launch describe(const tile_executable *exe, const tile_run_state *run) {
    const bool ordered = run->serial || run->logged || run->summed;
    const int64_t blocks = run->blocks < BLOCKS_MAX ? run->blocks : BLOCKS_MAX;
    return (tile_device_launch){.argument = (tile_cuda_head *)(void *)exe->argument,
                                .bytes = lay_out(&exe->program).bytes,
                                .arena_bytes = tile_cuda_arena(exe),
                                .blocks = ordered ? 1 : blocks,
                                .name = exe->program.name};
}

tile_status tile_device_reserve(tile_executable *exe, const tile_run_state *run) {
    tile_device *device = exe->ctx->device;
    TILE_TRY(tile_device_load(exe));
    if (!device->reserve || !run->blocks) return TILE_OK;
    const tile_device_launch launch = describe(exe, run);
    return device->reserve(device, exe->device_kernel, &launch);
}

tile_status tile_device_run(tile_executable *exe, const tile_run_state *run) {
    tile_cuda_error error = {.set = 0};
    tile_device *device = exe->ctx->device;
    TILE_TRY(tile_device_load(exe));
    fill(run, exe->argument);
    tile_device_launch launch = describe(exe, run);
    if (run->may_fail) launch.error = &error;
    launch.wait = exe->ctx->check;
    TILE_TRY(device->launch(device, exe->device_kernel, &launch));
    note_error(run, &error);
    return TILE_OK;
}

tile_status tile_executable_resources(tile_executable *exe, tile_device_resources *resources) {
    tile_device *device = exe->ctx->device;
    TILE_TRY(tile_device_load(exe));
    return device->resources(device, exe->device_kernel, tile_cuda_arena(exe), resources);
}
