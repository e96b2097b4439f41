/* module.c: generated kernels on a device: compiled by NVRTC, kept on disk, loaded once. */
#include <string.h>

#include "core/memory.h"
#include "core/native.h"
#include "core/status.h"
#include "cuda/cuda_device.h"
#include "cuda/nvrtc.h"

static const char ending[] = ".cubin";

/* The source, and what it is compiled for. */
typedef struct work {
    const tile_cuda_kernel *kernel;
    tile_text source;
    char architecture[TILE_NVRTC_NAME];
    char id[40], folder[TILE_NATIVE_PATH];
    bool kept; /* there is a folder */
} work;

/* Lines are counted from where the kernel's own text begins: the prelude has no errors. */
static tile_status begin(tile_cuda_device *d, const tile_cuda_kernel *kernel, work *w) {
    char compiler[2 * TILE_NVRTC_NAME];
    *w = (work){.kernel = kernel};
    TILE_TRY(tile_nvrtc_architecture(d->major, d->minor, w->architecture));
    TILE_TRY(tile_nvrtc_name(w->architecture, compiler));
    tile_cuda_prelude(kernel->families, &w->source);
    tile_text_add(&w->source, "\n#line 1 \"kernel\"\n%s", tile_text_get(&kernel->text));
    if (w->source.failed) {
        tile_text_clear(&w->source);
        return TILE_E_MEMORY;
    }
    tile_native_name(tile_text_get(&w->source), compiler, w->id);
    w->kept = tile_native_folder(w->folder, d->why);
    return TILE_OK;
}

/* Loads a cubin and finds the kernel in it. The driver's result. */
static int load_image(tile_cuda_device *d, tile_cuda_module *m, const void *image) {
    int result = d->driver->module_load(&m->module, image);
    if (result) {
        m->module = NULL;
        return result;
    }
    result = d->driver->module_function(&m->function, m->module, m->name);
    if (!result) return result;
    (void)d->driver->module_unload(m->module);
    m->module = NULL;
    return result;
}

static bool is_no_image(int result) {
    return result == TILE_CU_INVALID_IMAGE || result == TILE_CU_NO_BINARY_FOR_GPU ||
           result == TILE_CU_INVALID_SOURCE || result == TILE_CU_NOT_FOUND ||
           result == TILE_CU_UNSUPPORTED_PTX;
}

/* What is kept on disk, unless the driver does not take it: then it is removed. */
static tile_status load_kept(tile_cuda_device *d, const work *w, tile_cuda_module *m, bool *found) {
    void *image;
    *found = w->kept && tile_native_get(w->folder, w->id, ending, &image);
    if (!*found) return TILE_OK;
    const int result = load_image(d, m, image);
    tile_free(image);
    if (result && is_no_image(result)) {
        tile_native_remove(w->folder, w->id, ending);
        *found = false;
        return TILE_OK;
    }
    if (!result) d->reused++;
    return tile_cuda_check(d, result, "CUDA: loading a kernel");
}

static tile_status compile(tile_cuda_device *d, const work *w, tile_cuda_module *m) {
    tile_cubin cubin;
    TILE_TRY(
        tile_nvrtc_compile(tile_text_get(&w->source), w->kernel->name, w->architecture, &cubin));
    const tile_status status =
        tile_cuda_check(d, load_image(d, m, cubin.data), "CUDA: loading a kernel");
    if (!status) d->compiled++;
    if (!status && w->kept)
        (void)tile_native_put(w->folder, w->id, ending, cubin.data, cubin.bytes, d->why);
    tile_cubin_clear(&cubin);
    return status;
}

/* Registers limit the threads of a block. */
static tile_status measure(tile_cuda_device *d, tile_cuda_module *m) {
    int threads = 0, shared = 0;
    int result = d->driver->function_get(&threads, TILE_CU_FUNC_THREADS, m->function);
    if (!result) result = d->driver->function_get(&shared, TILE_CU_FUNC_SHARED, m->function);
    TILE_TRY(tile_cuda_check(d, result, "CUDA: a kernel's resources"));
    TILE_CHECK(threads > 0, TILE_E_DEVICE, "CUDA: no thread of it fits into the registers");
    m->threads = threads;
    m->fixed_shared = (size_t)shared;
    return TILE_OK;
}

static tile_status make(tile_cuda_device *d, const tile_cuda_kernel *source, tile_cuda_module *m) {
    work w;
    bool found;
    TILE_TRY(begin(d, source, &w));
    tile_status status = load_kept(d, &w, m, &found);
    if (!status && !found) status = compile(d, &w, m);
    tile_text_clear(&w.source);
    if (!status) status = measure(d, m);
    if (status && m->module) (void)d->driver->module_unload(m->module);
    return status;
}

static tile_status make_entered(tile_cuda_device *d, const tile_cuda_kernel *source,
                                tile_cuda_module *m) {
    TILE_TRY(tile_cuda_enter(d));
    const tile_status status = make(d, source, m);
    tile_cuda_leave(d);
    return status;
}

tile_status tile_cuda_load(tile_device *device, const tile_cuda_kernel *source, void **kernel) {
    tile_cuda_device *d = (tile_cuda_device *)(void *)device;
    tile_cuda_module *m = d->modules;
    while (m && strcmp(m->name, source->name) != 0) m = m->next;
    if (!m) {
        m = tile_alloc(sizeof *m);
        if (!m) return TILE_E_MEMORY;
        memcpy(m->name, source->name, sizeof m->name);
        const tile_status status = make_entered(d, source, m);
        if (status) {
            d->failed++;
            tile_free(m);
            return status;
        }
        m->next = d->modules;
        d->modules = m;
    }
    m->refs++;
    *kernel = m;
    return TILE_OK;
}

/* A launch may still be waiting: the driver unloads when it is done. */
void tile_cuda_unload(tile_device *device, void *kernel) {
    tile_cuda_device *d = (tile_cuda_device *)(void *)device;
    tile_cuda_module *m = kernel, **link = &d->modules;
    if (--m->refs > 0) return;
    while (*link != m) link = &(*link)->next;
    *link = m->next;
    d->unloaded++;
    if (!tile_cuda_enter(d)) {
        if (!tile_cuda_flush(d)) (void)d->driver->stream_sync(d->stream);
        (void)d->driver->module_unload(m->module);
        tile_cuda_leave(d);
    }
    tile_free(m);
}
