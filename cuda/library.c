/* library.c: libraries of CUDA, opened when they are first needed. */
#include "cuda/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 1024 };

void *tile_library_open(const char *file, const char *const *names, size_t count) {
    const char *home = getenv("CUDA_HOME");
    char path[PATH];
    void *handle = NULL;
    if (home && *home == '/') {
        (void)snprintf(path, sizeof path, "%.900s/lib64/%s", home, file);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t k = 0; k < count && !handle; k++) handle = dlopen(names[k], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

const char *tile_library_find(void *handle, const tile_library_symbol *symbol, size_t count,
                              void *table) {
    for (size_t k = 0; k < count; k++) {
        void *found = dlsym(handle, symbol[k].name);
        if (!found) return symbol[k].name;
        /* a data pointer is no function pointer in C */
        memcpy((char *)table + symbol[k].at, &found, sizeof found);
    }
    return NULL;
}
