/* nvrtc.c: compiling generated CUDA sources with NVRTC, which is loaded at run time. */
#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"
#include "cuda/library.h"

/* What is used of nvrtc.h; programs are opaque, results are numbers and 0 is success. */
typedef void *program;
typedef struct library {
    void *handle;
    int (*create)(program *, const char *source, const char *name, int headers,
                  const char *const *text, const char *const *names);
    int (*destroy)(program *);
    int (*compile)(program, int options, const char *const *option);
    int (*log_size)(program, size_t *);
    int (*log)(program, char *);
    int (*cubin_size)(program, size_t *);
    int (*cubin)(program, char *);
    int (*ptx_size)(program, size_t *);
    int (*ptx)(program, char *);
    int (*version)(int *major, int *minor);
    int (*architecture_count)(int *);
    int (*architectures)(int *);
    const char *(*text)(int result);
} library;

enum { LINE = 160 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static library loaded; /* under lock until handle is set; stays for the life of the process */
static const char *only;

void tile_nvrtc_look_in(const char *path) {
    pthread_mutex_lock(&lock);
    only = path;
    loaded.handle = NULL;
    pthread_mutex_unlock(&lock);
}

#define ROW(field, symbol) \
    { offsetof(library, field), symbol }
static const tile_library_symbol functions[] = {
    ROW(create, "nvrtcCreateProgram"),
    ROW(destroy, "nvrtcDestroyProgram"),
    ROW(compile, "nvrtcCompileProgram"),
    ROW(log_size, "nvrtcGetProgramLogSize"),
    ROW(log, "nvrtcGetProgramLog"),
    ROW(cubin_size, "nvrtcGetCUBINSize"),
    ROW(cubin, "nvrtcGetCUBIN"),
    ROW(ptx_size, "nvrtcGetPTXSize"),
    ROW(ptx, "nvrtcGetPTX"),
    ROW(version, "nvrtcVersion"),
    ROW(architecture_count, "nvrtcGetNumSupportedArchs"),
    ROW(architectures, "nvrtcGetSupportedArchs"),
    ROW(text, "nvrtcGetErrorString"),
};
#undef ROW

static void *open_any(void) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so",
                                        "/usr/local/cuda/targets/x86_64-linux/lib/libnvrtc.so"};
    if (only) return dlopen(only, RTLD_NOW | RTLD_LOCAL);
    return tile_library_open("libnvrtc.so", names, sizeof names / sizeof *names);
}

static tile_status load(library *l) {
    const char *path = only ? only : "libnvrtc.so";
    void *handle = open_any();
    TILE_CHECK(handle, TILE_E_DEVICE,
               "NVRTC: %s not found (CUDA_HOME/lib64, the system's libraries, /usr/local/cuda)",
               path);
    const char *lacks =
        tile_library_find(handle, functions, sizeof functions / sizeof *functions, l);
    if (lacks) dlclose(handle);
    TILE_CHECK(!lacks, TILE_E_DEVICE, "NVRTC: %s lacks %s", path, lacks);
    l->handle = handle;
    return TILE_OK;
}

static tile_status library_of(library *l) {
    pthread_mutex_lock(&lock);
    const tile_status status = loaded.handle ? TILE_OK : load(&loaded);
    *l = loaded;
    pthread_mutex_unlock(&lock);
    return status;
}

/* Errors */

/* The text of a line, without its margin. Lines may be counted anew from a kernel's own text on. */
static void copy_line(const char *source, long number, char to[LINE]) {
    static const char mark[] = "\n#line 1 \"kernel\"\n";
    const char *own = strstr(source, mark);
    if (own) source = own + sizeof mark - 1;
    for (long k = 1; k < number && source; k++) {
        source = strchr(source, '\n');
        if (source) source++;
    }
    if (source) source += strspn(source, " ");
    (void)snprintf(to, LINE, "%.*s", source ? (int)strcspn(source, "\n") : 0, source ? source : "");
}

/* "source(12): error: what" of a log, and line 12. */
static tile_status fail(const char *source, const char *log, const char *result) {
    const char *error = strstr(log, ": error");
    char line[LINE] = "", said[LINE];
    if (!error) return tile_fail(TILE_E_DEVICE, "NVRTC: %s: %.200s", result, log);
    const char *begin = error;
    while (begin > log && begin[-1] != '(' && begin[-1] != '\n') begin--;
    copy_line(source, begin > log && begin[-1] == '(' ? strtol(begin, NULL, 10) : 0, line);
    error += 2;
    (void)snprintf(said, sizeof said, "%.*s", (int)strcspn(error, "\n"), error);
    return tile_fail(TILE_E_DEVICE, "NVRTC: line %ld: %s: %s", strtol(begin, NULL, 10), said, line);
}

static tile_status fail_with_log(const library *l, program p, const char *source, int result) {
    size_t bytes = 0;
    if (l->log_size(p, &bytes)) bytes = 0;
    char *log = tile_alloc(bytes + 1);
    if (!log) return TILE_E_MEMORY;
    if (bytes && l->log(p, log)) log[0] = '\0';
    const tile_status status = fail(source, log, l->text(result));
    tile_free(log);
    return status;
}

/* Compiling */

/* ptx: the driver is to finish it. */
static tile_status take_code(const library *l, program p, bool ptx, tile_cubin *cubin) {
    int result = ptx ? l->ptx_size(p, &cubin->bytes) : l->cubin_size(p, &cubin->bytes);
    if (!result) {
        cubin->data = tile_alloc(cubin->bytes + 1);
        if (!cubin->data) return TILE_E_MEMORY;
        result = ptx ? l->ptx(p, cubin->data) : l->cubin(p, cubin->data);
    }
    if (!result) return TILE_OK;
    tile_cubin_clear(cubin);
    return tile_fail(TILE_E_DEVICE, "NVRTC: %s", l->text(result));
}

static const char *const fixed_options[] = {"--std=c++17", "--fmad=false", "-w"};

tile_status tile_nvrtc_name(const char *architecture, char name[2 * TILE_NVRTC_NAME]) {
    library l;
    int major = 0, minor = 0;
    TILE_TRY(library_of(&l));
    const int result = l.version(&major, &minor);
    if (result) return tile_fail(TILE_E_DEVICE, "NVRTC: %s", l.text(result));
    (void)snprintf(name, 2 * TILE_NVRTC_NAME, "nvrtc %d.%d %.20s %s", major, minor, architecture,
                   fixed_options[1]);
    return TILE_OK;
}

/* Code for one minor version runs on later ones of its major. */
static void choose(const int *known, int count, int wanted, char text[TILE_NVRTC_NAME]) {
    int best = 0;
    for (int k = 0; k < count; k++)
        if (known[k] <= wanted && known[k] > best) best = known[k];
    const bool runs = best / 10 == wanted / 10;
    (void)snprintf(text, TILE_NVRTC_NAME, "%s_%d", runs ? "sm" : "compute", best);
}

tile_status tile_nvrtc_architecture(int major, int minor, char architecture[TILE_NVRTC_NAME]) {
    library l;
    int known[256], count = 0;
    const int room = (int)(sizeof known / sizeof *known), wanted = 10 * major + minor;
    TILE_TRY(library_of(&l));
    int result = l.architecture_count(&count);
    if (!result && count > room) count = 0;
    if (!result && count > 0) result = l.architectures(known);
    if (result) return tile_fail(TILE_E_DEVICE, "NVRTC: %s", l.text(result));
    TILE_CHECK(count > 0 && known[0] <= wanted, TILE_E_DEVICE,
               "NVRTC: it compiles for sm_%d and newer, the device is sm_%d",
               count > 0 ? known[0] : 0, wanted);
    choose(known, count, wanted, architecture);
    return TILE_OK;
}

tile_status tile_nvrtc_compile(const char *source, const char *name, const char *architecture,
                               tile_cubin *cubin) {
    library l;
    program p = NULL;
    char target[64];
    *cubin = (tile_cubin){.data = NULL};
    TILE_TRY(library_of(&l));
    (void)snprintf(target, sizeof target, "--gpu-architecture=%.32s", architecture);
    const char *const options[] = {target, fixed_options[0], fixed_options[1], fixed_options[2]};
    const bool ptx = strncmp(architecture, "compute_", 8) == 0;
    int result = l.create(&p, source, name, 0, NULL, NULL);
    if (result) return tile_fail(TILE_E_DEVICE, "NVRTC: %s", l.text(result));
    result = l.compile(p, sizeof options / sizeof *options, options);
    const tile_status status =
        result ? fail_with_log(&l, p, source, result) : take_code(&l, p, ptx, cubin);
    (void)l.destroy(&p);
    return status;
}

void tile_cubin_clear(tile_cubin *cubin) {
    tile_free(cubin->data);
    *cubin = (tile_cubin){.data = NULL};
}
