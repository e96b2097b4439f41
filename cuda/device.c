/* device.c: a CUDA device: memory, copies, launches, and what a failure says. */
#include <string.h>

#include "core/memory.h"
#include "core/status.h"
#include "cuda/cuda_device.h"

enum {
    ARENA_ALIGN = 256,
    SHARED_UNASKED = 48 << 10,
    ARGUMENT_OLD = 4096,
    STAGE = 1 << 20,
    STAGED_MOST = 1 << 16, /* of one copy */
    STAGE_ALIGN = 64,
    WHAT = 160
};
static const size_t arena_most = (size_t)256 << 20;

static tile_cuda_device *self(tile_device *device) {
    return (tile_cuda_device *)(void *)device;
}

static tile_cu_address address_of(const void *memory) {
    return (tile_cu_address)(uintptr_t)memory;
}

/* Failures */

tile_status tile_cuda_enter(tile_cuda_device *d) {
    TILE_CHECK(!d->lost, TILE_E_DEVICE, "%s", d->lost_why);
    return tile_cuda_check(d, d->driver->context_push(d->context), "CUDA: the device's context");
}

void tile_cuda_leave(const tile_cuda_device *d) {
    tile_cu_handle context;
    (void)d->driver->context_pop(&context);
}

/* Which launches a failure that comes out now may be of. */
static void say_launches(const tile_cuda_device *d, char *text, size_t room) {
    const long long first = (long long)d->synced + 1, last = (long long)d->launches;
    if (first > last)
        (void)snprintf(text, room, "no launch is waited for");
    else if (first == last)
        (void)snprintf(text, room, "launch %lld, of kernel %s", first, d->first);
    else
        (void)snprintf(text, room, "one of launches %lld to %lld, kernels %s to %s", first, last,
                       d->first, d->last);
}

tile_status tile_cuda_check(tile_cuda_device *d, int result, const char *what) {
    char where[2 * TILE_CUDA_NAME_SHOWN + 80];
    if (!result) return TILE_OK;
    const tile_status status = tile_driver_fail(d->driver, result, what);
    if (!tile_driver_is_lost(result)) return status;
    say_launches(d, where, sizeof where);
    (void)snprintf(d->lost_why, sizeof d->lost_why, "%.230s; %s; the context is lost",
                   tile_last_error(), where);
    d->lost = true;
    return tile_fail(status, "%s", d->lost_why);
}

tile_status tile_cuda_wait(tile_cuda_device *d) {
    TILE_TRY(tile_cuda_flush(d));
    TILE_TRY(tile_cuda_check(d, d->driver->stream_sync(d->stream), "CUDA: synchronisation"));
    d->synced = d->launches;
    d->staged = 0;
    return TILE_OK;
}

static tile_status device_sync(tile_device *device) {
    tile_cuda_device *d = self(device);
    TILE_TRY(tile_cuda_enter(d));
    const tile_status status = tile_cuda_wait(d);
    tile_cuda_leave(d);
    return status;
}

/* Memory */

static int allocate(const tile_cuda_device *d, size_t bytes, tile_cu_address *memory) {
    return d->pools ? d->driver->alloc_async(memory, bytes, d->stream)
                    : d->driver->alloc(memory, bytes);
}

/* Without pools the driver waits for the device first. */
static void give_back(const tile_cuda_device *d, tile_cu_address memory) {
    (void)(d->pools ? d->driver->free_async(memory, d->stream) : d->driver->free(memory));
}

/* What earlier work holds comes back when it has happened. */
static tile_status allocate_or_wait(tile_cuda_device *d, size_t bytes, tile_cu_address *memory) {
    char what[64];
    int result = allocate(d, bytes, memory);
    if (result == TILE_CU_OUT_OF_MEMORY) {
        TILE_TRY(tile_cuda_wait(d));
        result = allocate(d, bytes, memory);
    }
    (void)snprintf(what, sizeof what, "CUDA: %zu bytes of device memory", bytes);
    return tile_cuda_check(d, result, what);
}

static tile_status device_alloc(tile_device *device, size_t bytes, void **memory) {
    tile_cuda_device *d = self(device);
    tile_cu_address made = 0;
    TILE_TRY(tile_cuda_enter(d));
    const tile_status status = allocate_or_wait(d, bytes, &made);
    tile_cuda_leave(d);
    *memory = (void *)(uintptr_t)made;
    return status;
}

static void device_free(tile_device *device, void *memory) {
    tile_cuda_device *d = self(device);
    if (tile_cuda_enter(d)) return;
    if (!tile_cuda_flush(d)) give_back(d, address_of(memory));
    tile_cuda_leave(d);
}

/* Commands */

static int fill(const tile_cuda_device *d, const tile_cuda_command *c) {
    const tile_driver *driver = d->driver;
    const unsigned low = (unsigned)c->value, high = (unsigned)(c->value >> 32);
    if (c->size == 1) return driver->set8(c->to, (unsigned char)low, c->count, d->stream);
    if (c->size == 2) return driver->set16(c->to, (unsigned short)low, c->count, d->stream);
    if (c->size == 4) return driver->set32(c->to, low, c->count, d->stream);
    if (low == high) return driver->set32(c->to, low, 2 * c->count, d->stream);
    const int result = driver->set32_rows(c->to, 8, low, 1, c->count, d->stream);
    return result ? result : driver->set32_rows(c->to + 4, 8, high, 1, c->count, d->stream);
}

int tile_cuda_perform(const tile_cuda_device *d, const tile_cuda_command *c, const char *argument) {
    void *parameters[] = {(void *)(uintptr_t)argument};
    switch (c->kind) {
    case TILE_CUDA_COPY: return d->driver->copy(c->to, c->from, c->bytes, d->stream);
    case TILE_CUDA_FILL: return fill(d, c);
    case TILE_CUDA_LAUNCH:
        return d->driver->launch(c->function, c->blocks, 1, 1, c->threads, 1, 1, c->shared,
                                 d->stream, parameters, NULL);
    }
    return TILE_CU_INVALID_VALUE;
}

/* Names what failed, only when something did. */
typedef void (*tell)(const tile_cuda_device *d, const tile_cuda_command *c, const char *name,
                     char text[WHAT]);

static tile_status perform(tile_cuda_device *d, const tile_cuda_command *c, const void *argument,
                           const char *name, tell what) {
    char text[WHAT];
    TILE_TRY(tile_cuda_enter(d));
    const int result = tile_cuda_perform(d, c, argument);
    if (result) what(d, c, name, text);
    const tile_status status = result ? tile_cuda_check(d, result, text) : TILE_OK;
    tile_cuda_leave(d);
    return status;
}

static tile_status issue(tile_cuda_device *d, const tile_cuda_command *c, const void *argument,
                         const char *name, tell what) {
    bool taken = false;
    TILE_CHECK(!d->lost, TILE_E_DEVICE, "%s", d->lost_why);
    if (d->graph) {
        TILE_TRY(tile_cuda_enter(d));
        const tile_status status = tile_cuda_take(d, c, argument, &taken);
        tile_cuda_leave(d);
        if (status || taken) return status;
    }
    return perform(d, c, argument, name, what);
}

static void tell_move(const tile_cuda_device *d, const tile_cuda_command *c, const char *name,
                      char text[WHAT]) {
    (void)d;
    (void)name;
    (void)snprintf(text, WHAT, "CUDA: a %s on the device",
                   c->kind == TILE_CUDA_COPY ? "copy" : "fill");
}

static void tell_launch(const tile_cuda_device *d, const tile_cuda_command *c, const char *name,
                        char text[WHAT]) {
    (void)snprintf(text, WHAT, "CUDA: kernel %.48s, launch %lld of %u blocks of %u threads", name,
                   (long long)d->launches, c->blocks, c->threads);
}

static tile_status device_copy(tile_device *device, void *to, const void *from, size_t bytes) {
    const tile_cuda_command c = {
        .kind = TILE_CUDA_COPY, .to = address_of(to), .from = address_of(from), .bytes = bytes};
    return issue(self(device), &c, NULL, NULL, tell_move);
}

static tile_status device_fill(tile_device *device, void *to, const void *element, size_t size,
                               size_t count) {
    tile_cuda_command c = {
        .kind = TILE_CUDA_FILL, .to = address_of(to), .size = size, .count = count};
    memcpy(&c.value, element, size);
    return issue(self(device), &c, NULL, NULL, tell_move);
}

/* Small ones from pinned memory of our own, so that nobody waits until it is used up. */
static tile_status copy_staged(tile_cuda_device *d, tile_cu_address to, const void *host,
                               size_t bytes) {
    if (d->staged + bytes > STAGE) TILE_TRY(tile_cuda_wait(d));
    char *from = d->stage + d->staged;
    memcpy(from, host, bytes);
    d->staged += (bytes + STAGE_ALIGN - 1) / STAGE_ALIGN * STAGE_ALIGN;
    return tile_cuda_check(d, d->driver->copy_in(to, from, bytes, d->stream),
                           "CUDA: a copy to the device");
}

/* The caller's memory may be pinned or not: the copy is waited for. */
static tile_status copy_in(tile_cuda_device *d, tile_cu_address to, const void *host,
                           size_t bytes) {
    TILE_TRY(tile_cuda_flush(d));
    if (bytes <= STAGED_MOST) return copy_staged(d, to, host, bytes);
    TILE_TRY(tile_cuda_check(d, d->driver->copy_in(to, host, bytes, d->stream),
                             "CUDA: a copy to the device"));
    return tile_cuda_wait(d);
}

static tile_status device_copy_in(tile_device *device, void *to, const void *host, size_t bytes) {
    tile_cuda_device *d = self(device);
    TILE_TRY(tile_cuda_enter(d));
    const tile_status status = copy_in(d, address_of(to), host, bytes);
    tile_cuda_leave(d);
    return status;
}

static tile_status device_copy_out(tile_device *device, void *host, const void *from,
                                   size_t bytes) {
    tile_cuda_device *d = self(device);
    TILE_TRY(tile_cuda_enter(d));
    tile_status status = tile_cuda_flush(d);
    if (!status)
        status = tile_cuda_check(d, d->driver->copy_out(host, address_of(from), bytes, d->stream),
                                 "CUDA: a copy from the device");
    if (!status) status = tile_cuda_wait(d);
    tile_cuda_leave(d);
    return status;
}

/* Launches */

static size_t arena_stride(const tile_device_launch *l) {
    return (l->arena_bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

static bool fits_shared(const tile_cuda_device *d, const tile_cuda_module *m, size_t arena) {
    return arena + m->fixed_shared <= d->shared_most;
}

/* Fewer blocks do the same where their arenas together would take too much. */
static int64_t block_count(const tile_cuda_device *d, const tile_cuda_module *m,
                           const tile_device_launch *l) {
    if (fits_shared(d, m, l->arena_bytes)) return l->blocks;
    const int64_t most = (int64_t)(arena_most / arena_stride(l));
    return l->blocks <= most ? l->blocks : most > 0 ? most : 1;
}

static tile_status need_arena(tile_cuda_device *d, size_t bytes) {
    tile_cu_address grown;
    if (bytes <= d->arena_bytes) return TILE_OK;
    TILE_TRY(allocate_or_wait(d, bytes, &grown));
    if (d->arena) give_back(d, d->arena);
    d->arena = grown;
    d->arena_bytes = bytes;
    return TILE_OK;
}

/* Shared memory beyond 48 KiB is asked for. */
static tile_status need_shared(tile_cuda_device *d, tile_cuda_module *m,
                               const tile_device_launch *l) {
    char what[160];
    if (l->arena_bytes <= SHARED_UNASKED || l->arena_bytes <= m->raised_shared) return TILE_OK;
    const int result =
        d->driver->function_set(m->function, TILE_CU_FUNC_DYNAMIC_SHARED, (int)l->arena_bytes);
    (void)snprintf(what, sizeof what, "CUDA: kernel %.48s: %zu bytes of shared memory", l->name,
                   l->arena_bytes);
    TILE_TRY(tile_cuda_check(d, result, what));
    m->raised_shared = l->arena_bytes;
    return TILE_OK;
}

/* Whether the last launch, or the one before it, has seen to all that this one needs. */
static bool is_prepared(const tile_cuda_device *d, const tile_cuda_module *m,
                        const tile_device_launch *l) {
    if (d->lost || l->bytes > ARGUMENT_OLD || l->blocks > d->blocks_most) return false;
    if (fits_shared(d, m, l->arena_bytes))
        return l->arena_bytes <= SHARED_UNASKED || l->arena_bytes <= m->raised_shared;
    return arena_stride(l) * (size_t)block_count(d, m, l) <= d->arena_bytes;
}

static tile_status prepare(tile_cuda_device *d, tile_cuda_module *m, const tile_device_launch *l) {
    TILE_CHECK(l->bytes <= ARGUMENT_OLD || d->version >= 12010, TILE_E_DEVICE,
               "CUDA: kernel %s takes an argument of %zu bytes, this driver (CUDA %d.%d) has room "
               "for %d: CUDA 12.1 has more",
               l->name, l->bytes, d->version / 1000, d->version % 1000 / 10, (int)ARGUMENT_OLD);
    TILE_CHECK(l->blocks <= d->blocks_most, TILE_E_DEVICE,
               "CUDA: kernel %s: a launch of %lld blocks, the device takes %lld", l->name,
               (long long)l->blocks, (long long)d->blocks_most);
    if (fits_shared(d, m, l->arena_bytes)) return need_shared(d, m, l);
    return need_arena(d, arena_stride(l) * (size_t)block_count(d, m, l));
}

static tile_status device_reserve(tile_device *device, void *kernel, const tile_device_launch *l) {
    tile_cuda_device *d = self(device);
    if (is_prepared(d, kernel, l)) return TILE_OK;
    TILE_TRY(tile_cuda_enter(d));
    const tile_status status = prepare(d, kernel, l);
    tile_cuda_leave(d);
    return status;
}

static void note_launch(tile_cuda_device *d, const char *name) {
    size_t n = 0;
    for (; n + 1 < sizeof d->last && name[n]; n++) d->last[n] = name[n];
    d->last[n] = '\0';
    if (d->launches++ == d->synced) memcpy(d->first, d->last, sizeof d->first);
}

/* Registers limit the threads of a block. */
static int thread_count(const tile_cuda_module *m, int wanted) {
    if (!wanted) wanted = TILE_CUDA_THREADS;
    return wanted < m->threads ? wanted : m->threads;
}

static tile_cuda_command describe(tile_cuda_device *d, tile_cuda_module *m,
                                  const tile_device_launch *l) {
    const bool shared = fits_shared(d, m, l->arena_bytes);
    l->argument->arena = shared ? NULL : (unsigned char *)(uintptr_t)d->arena;
    l->argument->arena_stride = shared ? 0 : (int64_t)arena_stride(l);
    l->argument->error = (tile_cuda_error *)(uintptr_t)d->error;
    return (tile_cuda_command){.kind = TILE_CUDA_LAUNCH,
                               .function = m->function,
                               .blocks = (unsigned)block_count(d, m, l),
                               .threads = (unsigned)thread_count(m, l->threads),
                               .shared = shared ? (unsigned)l->arena_bytes : 0,
                               .bytes = l->bytes};
}

/* A launch that may end in an execution error is waited for: what it says is a part of the call. */
static tile_status launch_and_read(tile_cuda_device *d, const tile_device_launch *l) {
    if (!l->error) return l->wait ? device_sync(&d->device) : TILE_OK;
    return device_copy_out(&d->device, l->error, (const void *)(uintptr_t)d->error,
                           sizeof *l->error);
}

static tile_status device_launch(tile_device *device, void *kernel, const tile_device_launch *l) {
    tile_cuda_device *d = self(device);
    static const char zero;
    TILE_TRY(device_reserve(device, kernel, l));
    const tile_cuda_command c = describe(d, kernel, l);
    if (l->error)
        TILE_TRY(device_fill(device, (void *)(uintptr_t)d->error, &zero, 1, sizeof *l->error));
    note_launch(d, l->name);
    TILE_TRY(issue(d, &c, l->argument, l->name, tell_launch));
    return launch_and_read(d, l);
}

static tile_status device_resources(tile_device *device, void *kernel, size_t arena_bytes,
                                    tile_device_resources *r) {
    tile_cuda_device *d = self(device);
    const tile_cuda_module *m = kernel;
    int local = 0, result;
    *r = (tile_device_resources){.threads = thread_count(m, 0), .shared_bytes = m->fixed_shared};
    if (fits_shared(d, m, arena_bytes)) r->shared_bytes += arena_bytes;
    TILE_TRY(tile_cuda_enter(d));
    result = d->driver->function_get(&r->registers, TILE_CU_FUNC_REGISTERS, m->function);
    if (!result) result = d->driver->function_get(&local, TILE_CU_FUNC_LOCAL, m->function);
    if (!result)
        result = d->driver->function_get(&r->binary_version, TILE_CU_FUNC_BINARY, m->function);
    const tile_status status = tile_cuda_check(d, result, "CUDA: a kernel's resources");
    tile_cuda_leave(d);
    r->local_bytes = (size_t)local;
    return status;
}

/* Making */

static void device_info(tile_device *device, tile_executor_info *info) {
    tile_cuda_device *d = self(device);
    size_t all;
    (void)snprintf(info->device, sizeof info->device, "%s", d->name);
    info->device_bytes = d->memory;
    info->driver = d->version;
    info->compiled = d->compiled;
    info->reused = d->reused;
    info->failed = d->failed;
    (void)snprintf(info->why, sizeof info->why, "%s", d->why);
    if (tile_cuda_enter(d)) return;
    if (d->driver->memory_info(&info->device_unused, &all)) info->device_unused = 0;
    tile_cuda_leave(d);
}

static void device_destroy(tile_device *device) {
    tile_cuda_device *d = self(device);
    if (d->context) {
        const bool entered = !d->driver->context_push(d->context);
        if (d->stream) (void)d->driver->stream_sync(d->stream);
        if (d->generator) (void)d->drop_generator(d->generator);
        for (int k = 0; k < 2; k++)
            if (d->timer[k]) (void)d->driver->event_destroy(d->timer[k]);
        if (d->stage) (void)d->driver->free_host(d->stage);
        if (d->error) give_back(d, d->error);
        if (d->arena) give_back(d, d->arena);
        if (d->stream) (void)d->driver->stream_destroy(d->stream);
        if (entered) tile_cuda_leave(d);
        (void)d->driver->context_release(d->number);
    }
    tile_free(d);
}

/* What the driver knows of a device. */
static int look_up(tile_cuda_device *d, int number) {
    const tile_driver *driver = d->driver;
    int shared = 0, pools = 0, grid = 0;
    int result = driver->version(&d->version);
    if (!result) result = driver->device_get(&d->number, number);
    if (!result) result = driver->device_name(d->name, (int)sizeof d->name, d->number);
    if (!result) result = driver->device_memory(&d->memory, d->number);
    const struct {
        int *to, attribute;
    } wanted[] = {{&d->major, TILE_CU_ATTRIBUTE_MAJOR},
                  {&d->minor, TILE_CU_ATTRIBUTE_MINOR},
                  {&shared, TILE_CU_ATTRIBUTE_SHARED_MOST},
                  {&pools, TILE_CU_ATTRIBUTE_POOLS},
                  {&grid, TILE_CU_ATTRIBUTE_GRID_X}};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted && !result; k++)
        result = driver->device_attribute(wanted[k].to, wanted[k].attribute, d->number);
    d->shared_most = (size_t)shared;
    d->blocks_most = grid;
    d->pools = pools != 0;
    return result;
}

static tile_status start(tile_cuda_device *d, int number) {
    TILE_TRY(tile_cuda_check(d, look_up(d, number), "CUDA: the device"));
    TILE_CHECK(d->major > 7 || (d->major == 7 && d->minor >= 5), TILE_E_DEVICE,
               "no CUDA device: device %d (%s) has compute capability %d.%d, wanted 7.5 or newer",
               number, d->name, d->major, d->minor);
    TILE_TRY(tile_cuda_check(d, d->driver->context_retain(&d->context, d->number),
                             "CUDA: the device's context"));
    TILE_TRY(tile_cuda_enter(d));
    int result = d->driver->stream_create(&d->stream, TILE_CU_STREAM_NON_BLOCKING);
    if (!result) result = allocate(d, sizeof(tile_cuda_error), &d->error);
    void *stage = NULL;
    if (!result) result = d->driver->alloc_host(&stage, STAGE);
    d->stage = stage;
    const tile_status status = tile_cuda_check(d, result, "CUDA: the context's stream");
    tile_cuda_leave(d);
    return status;
}

static const tile_device calls = {.load = tile_cuda_load,
                                  .unload = tile_cuda_unload,
                                  .launch = device_launch,
                                  .reserve = device_reserve,
                                  .resources = device_resources,
                                  .alloc = device_alloc,
                                  .free = device_free,
                                  .copy_in = device_copy_in,
                                  .copy_out = device_copy_out,
                                  .copy = device_copy,
                                  .fill = device_fill,
                                  .sync = device_sync,
                                  .graph_begin = tile_cuda_graph_begin,
                                  .graph_end = tile_cuda_graph_end,
                                  .graph_cut = tile_cuda_graph_cut,
                                  .graph_free = tile_cuda_graph_free,
                                  .info = device_info,
                                  .destroy = device_destroy};

tile_status tile_cuda_device_create(int number, tile_device **device) {
    const tile_driver *driver;
    TILE_TRY(tile_driver_get(&driver));
    tile_cuda_device *d = tile_alloc(sizeof *d);
    if (!d) return TILE_E_MEMORY;
    d->device = calls;
    d->driver = driver;
    const tile_status status = start(d, number);
    if (status) {
        device_destroy(&d->device);
        return status;
    }
    *device = &d->device;
    return TILE_OK;
}

tile_cuda_device *tile_cuda_device_of(const tile_context *ctx) {
    return ctx->device && ctx->device->destroy == device_destroy ? self(ctx->device) : NULL;
}

tile_status tile_cuda_find(const char *call, const tile_context *ctx, const char *whose,
                           tile_cuda_device **device) {
    *device = tile_cuda_device_of(ctx);
    TILE_CHECK(*device, TILE_E_STATE, "%s: %s is of a CPU context, expected one of a CUDA device",
               call, whose);
    return TILE_OK;
}
