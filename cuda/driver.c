/* driver.c: the CUDA driver, loaded at run time. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "core/status.h"
#include "cuda/library.h"

#define FUNCTION_ROW(name, symbol, parameters) {offsetof(tile_driver, name), symbol},
static const tile_library_symbol functions[] = {TILE_DRIVER_LIST(FUNCTION_ROW)};
#undef FUNCTION_ROW

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tile_driver loaded; /* under lock until ready is set; stays for the life of the process */
static bool ready;
static const char *only;

void tile_driver_look_in(const char *path) {
    pthread_mutex_lock(&lock);
    only = path;
    ready = false;
    pthread_mutex_unlock(&lock);
}

static tile_status find_functions(void *handle, const char *path) {
    const char *lacks =
        tile_library_find(handle, functions, sizeof functions / sizeof *functions, &loaded);
    TILE_CHECK(!lacks, TILE_E_DEVICE,
               "no CUDA device: %s lacks %s: the driver is older than CUDA 11.4", path, lacks);
    return TILE_OK;
}

static tile_status start(void) {
    int count = 0, result = loaded.init(0);
    if (!result) result = loaded.device_count(&count);
    if (!result && !count) result = TILE_CU_NO_DEVICE;
    return result ? tile_driver_fail(&loaded, result, "no CUDA device") : TILE_OK;
}

static tile_status load(void) {
    const char *path = only ? only : "libcuda.so.1";
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    TILE_CHECK(handle, TILE_E_DEVICE, "no CUDA device: %s not found", path);
    tile_status status = find_functions(handle, path);
    if (!status) status = start();
    if (status) dlclose(handle);
    return status;
}

tile_status tile_driver_get(const tile_driver **driver) {
    pthread_mutex_lock(&lock);
    const tile_status status = ready ? TILE_OK : load();
    ready = !status;
    pthread_mutex_unlock(&lock);
    *driver = &loaded;
    return status;
}

tile_status tile_driver_fail(const tile_driver *d, int result, const char *what) {
    const char *name = NULL, *text = NULL;
    if (d->error_name(result, &name) || !name) name = "an unknown error";
    if (d->error_text(result, &text) || !text) text = "no more is known";
    return tile_fail(result == TILE_CU_OUT_OF_MEMORY ? TILE_E_MEMORY : TILE_E_DEVICE,
                     "%.300s: %s (%s, %d)", what, text, name, result);
}

/* source   CUDA Driver API, CUresult: "the process must be terminated and relaunched" */
bool tile_driver_is_lost(int result) {
    return result == 214 || result == 220 || result == 226 || result == 700 || result == 702 ||
           result == 710 || (result >= 714 && result <= 719) || result == 721 || result == 999;
}
