/* cuda_context.c: the public calls on CUDA devices. */
#include <string.h>

#include "core/array.h"
#include "core/kernel.h"
#include "core/status.h"
#include "cuda/cuda_api.h"
#include "cuda/cuda_device.h"

tile_status tile_cuda_device_count(int *count) {
    const tile_driver *driver;
    TILE_CHECK(count, TILE_E_ARGUMENT, "tile_cuda_device_count: count is NULL");
    *count = 0;
    if (tile_driver_get(&driver)) return TILE_OK;
    const int result = driver->device_count(count);
    return result ? tile_driver_fail(driver, result, "tile_cuda_device_count") : TILE_OK;
}

tile_status tile_cuda_context_create(int number, const tile_context_options *options,
                                     tile_context **ctx) {
    static const char call[] = "tile_cuda_context_create";
    tile_device *device;
    int count;
    const tile_driver *driver;
    TILE_CHECK(ctx, TILE_E_ARGUMENT, "%s: ctx is NULL", call);
    TILE_TRY(tile_driver_get(&driver));
    TILE_TRY(tile_cuda_device_count(&count));
    TILE_CHECK(number >= 0 && number < count, TILE_E_ARGUMENT, "%s: device is %d, wanted 0 to %d",
               call, number, count - 1);
    TILE_TRY(tile_cuda_device_create(number, &device));
    const tile_cuda_device *d = (const tile_cuda_device *)(const void *)device;
    tile_context_options chosen = {.threads = 1};
    if (options) chosen = *options;
    if (!chosen.shared_bytes) chosen.shared_bytes = d->shared_most;
    return tile_context_make(call, &chosen, device, ctx);
}

tile_status tile_cuda_array_data(tile_array *array, uint64_t *address) {
    static const char call[] = "tile_cuda_array_data";
    tile_cuda_device *d;
    TILE_CHECK(array && address, TILE_E_ARGUMENT, "%s: %s is NULL", call,
               array ? "address" : "array");
    TILE_TRY(tile_cuda_find(call, array->storage->ctx, "array", &d));
    TILE_TRY(tile_array_check_readable(array, call));
    array->storage->exposed = true;
    *address = (uint64_t)(uintptr_t)tile_array_address(array);
    return TILE_OK;
}

/* Whether the driver knows an address as memory of a device. */
static tile_status check_address(tile_cuda_device *d, const char *call, uint64_t address) {
    unsigned kind = 0;
    TILE_TRY(tile_cuda_enter(d));
    const int result = d->driver->pointer_attribute(&kind, TILE_CU_POINTER_MEMORY_TYPE, address);
    tile_cuda_leave(d);
    TILE_CHECK(!result && kind == TILE_CU_MEMORY_DEVICE, TILE_E_ARGUMENT,
               "%s: address 0x%llx is no memory of a CUDA device", call,
               (unsigned long long)address);
    return TILE_OK;
}

tile_status tile_cuda_array_wrap(tile_context *ctx, tile_dtype dtype, tile_shape shape,
                                 const int64_t *strides, uint64_t address, tile_array **array) {
    static const char call[] = "tile_cuda_array_wrap";
    tile_cuda_device *d;
    TILE_CHECK(ctx, TILE_E_ARGUMENT, "%s: ctx is NULL", call);
    TILE_TRY(tile_cuda_find(call, ctx, "ctx", &d));
    if (tile_shape_count(shape) > 0) TILE_TRY(check_address(d, call, address));
    return tile_array_borrow(call, ctx, dtype, shape, strides, (void *)(uintptr_t)address, array);
}

tile_status tile_cuda_stream(tile_context *ctx, void **stream) {
    static const char call[] = "tile_cuda_stream";
    tile_cuda_device *d;
    TILE_CHECK(ctx && stream, TILE_E_ARGUMENT, "%s: %s is NULL", call, ctx ? "stream" : "ctx");
    TILE_TRY(tile_cuda_find(call, ctx, "ctx", &d));
    *stream = d->stream;
    return TILE_OK;
}

/* Timing */

static tile_status record(tile_cuda_device *d, int which) {
    TILE_TRY(tile_cuda_flush(d));
    int result = d->timer[which] ? 0 : d->driver->event_create(&d->timer[which], 0);
    if (!result) result = d->driver->event_record(d->timer[which], d->stream);
    return tile_cuda_check(d, result, "CUDA: an event");
}

tile_status tile_cuda_time_begin(tile_context *ctx) {
    static const char call[] = "tile_cuda_time_begin";
    tile_cuda_device *d;
    TILE_CHECK(ctx, TILE_E_ARGUMENT, "%s: ctx is NULL", call);
    TILE_TRY(tile_cuda_find(call, ctx, "ctx", &d));
    TILE_TRY(tile_cuda_enter(d));
    const tile_status status = record(d, 0);
    tile_cuda_leave(d);
    return status;
}

static tile_status end_time(tile_cuda_device *d, double *seconds) {
    float milliseconds = 0;
    TILE_TRY(record(d, 1));
    int result = d->driver->event_sync(d->timer[1]);
    if (!result) result = d->driver->event_elapsed(&milliseconds, d->timer[0], d->timer[1]);
    *seconds = 1e-3 * (double)milliseconds;
    return tile_cuda_check(d, result, "CUDA: an event");
}

tile_status tile_cuda_time_end(tile_context *ctx, double *seconds) {
    static const char call[] = "tile_cuda_time_end";
    tile_cuda_device *d;
    TILE_CHECK(ctx && seconds, TILE_E_ARGUMENT, "%s: %s is NULL", call, ctx ? "seconds" : "ctx");
    TILE_TRY(tile_cuda_find(call, ctx, "ctx", &d));
    TILE_CHECK(d->timer[0], TILE_E_STATE, "%s: tile_cuda_time_begin was not called", call);
    TILE_TRY(tile_cuda_enter(d));
    const tile_status status = end_time(d, seconds);
    tile_cuda_leave(d);
    return status;
}

/* What runs of a kernel: forward, what runs on a tape, each part of its adjoints. Returns how many;
 * exe: the one of a number. */
static int find_part(const tile_kernel *kernel, int wanted, tile_executable **exe) {
    int count = 0;
    if (count++ == wanted) *exe = kernel->forward;
    for (const tile_adjoint_plan *p = kernel->plans; p; p = p->next) {
        if (p->augmented && count++ == wanted) *exe = p->augmented;
        for (int k = 0; k < p->count; k++)
            if (count++ == wanted) *exe = p->step[k].exe;
    }
    return count;
}

tile_status tile_kernel_info(tile_kernel *kernel, int part, tile_kernel_resources *resources) {
    static const char call[] = "tile_kernel_info";
    tile_device_resources found;
    tile_executable *exe = NULL;
    tile_cuda_device *d;
    TILE_CHECK(kernel && resources, TILE_E_ARGUMENT, "%s: %s is NULL", call,
               kernel ? "resources" : "kernel");
    TILE_TRY(tile_cuda_find(call, kernel->ctx, "kernel", &d));
    const int parts = find_part(kernel, part, &exe);
    TILE_CHECK(exe, TILE_E_ARGUMENT, "%s: part is %d, wanted 0 to %d", call, part, parts - 1);
    TILE_TRY(tile_executable_resources(exe, &found));
    *resources = (tile_kernel_resources){.parts = parts,
                                         .registers = found.registers,
                                         .threads = found.threads,
                                         .shared_bytes = found.shared_bytes,
                                         .local_bytes = found.local_bytes,
                                         .architecture = found.binary_version};
    return TILE_OK;
}
