/* curand.c: arrays of random numbers by cuRAND's host functions, loaded at run time. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/array.h"
#include "core/move.h"
#include "core/status.h"
#include "cuda/cuda_api.h"
#include "cuda/cuda_device.h"
#include "cuda/library.h"

/* What is used of curand.h; generators are opaque, results are numbers and 0 is success.
 *
 * source   cuRAND, curand.h */
typedef struct library {
    void *handle;
    int (*create)(void **generator, int kind);
    int (*destroy)(void *generator);
    int (*set_stream)(void *generator, void *stream);
    int (*set_seed)(void *generator, unsigned long long seed);
    int (*set_offset)(void *generator, unsigned long long offset);
    int (*uniform)(void *generator, float *to, size_t count);
    int (*uniform64)(void *generator, double *to, size_t count);
    int (*normal)(void *generator, float *to, size_t count, float mean, float deviation);
    int (*normal64)(void *generator, double *to, size_t count, double mean, double deviation);
} library;

enum { PHILOX = 161 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static library loaded; /* under lock until handle is set; stays for the life of the process */
static const char *only;

void tile_curand_look_in(const char *path) {
    pthread_mutex_lock(&lock);
    only = path;
    loaded.handle = NULL;
    pthread_mutex_unlock(&lock);
}

#define ROW(field, symbol) \
    { offsetof(library, field), symbol }
static const tile_library_symbol functions[] = {
    ROW(create, "curandCreateGenerator"),
    ROW(destroy, "curandDestroyGenerator"),
    ROW(set_stream, "curandSetStream"),
    ROW(set_seed, "curandSetPseudoRandomGeneratorSeed"),
    ROW(set_offset, "curandSetGeneratorOffset"),
    ROW(uniform, "curandGenerateUniform"),
    ROW(uniform64, "curandGenerateUniformDouble"),
    ROW(normal, "curandGenerateNormal"),
    ROW(normal64, "curandGenerateNormalDouble"),
};
#undef ROW

static void *open_any(void) {
    static const char *const names[] = {"libcurand.so.10", "libcurand.so",
                                        "/usr/local/cuda/lib64/libcurand.so"};
    if (only) return dlopen(only, RTLD_NOW | RTLD_LOCAL);
    return tile_library_open("libcurand.so", names, sizeof names / sizeof *names);
}

static tile_status load(library *l) {
    const char *path = only ? only : "libcurand.so";
    void *handle = open_any();
    TILE_CHECK(handle, TILE_E_DEVICE,
               "cuRAND: %s not found (CUDA_HOME/lib64, the system's libraries, /usr/local/cuda)",
               path);
    const char *lacks =
        tile_library_find(handle, functions, sizeof functions / sizeof *functions, l);
    if (lacks) dlclose(handle);
    TILE_CHECK(!lacks, TILE_E_DEVICE, "cuRAND: %s lacks %s", path, lacks);
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

/* What is wanted. */
typedef struct wish {
    const char *call;
    uint64_t seed;
    bool normal;
    double mean, deviation;
} wish;

static tile_status check_result(const wish *w, int result, const char *what) {
    TILE_CHECK(!result, TILE_E_DEVICE, "%s: cuRAND: %s: status %d", w->call, what, result);
    return TILE_OK;
}

static int make_generator(const library *l, tile_cuda_device *d) {
    if (d->generator) return 0;
    int result = l->create(&d->generator, PHILOX);
    if (result) {
        d->generator = NULL;
        return result;
    }
    d->drop_generator = l->destroy;
    return l->set_stream(d->generator, d->stream);
}

/* From the beginning of the seed's sequence. */
static tile_status generate(const library *l, tile_cuda_device *d, const wish *w, tile_dtype dtype,
                            void *to, size_t count) {
    TILE_TRY(check_result(w, make_generator(l, d), "a generator"));
    void *g = d->generator;
    int result = l->set_seed(g, w->seed);
    if (!result) result = l->set_offset(g, 0);
    TILE_TRY(check_result(w, result, "the seed"));
    if (w->normal && dtype == TILE_F32)
        result = l->normal(g, to, count, (float)w->mean, (float)w->deviation);
    else if (w->normal)
        result = l->normal64(g, to, count, w->mean, w->deviation);
    else
        result = dtype == TILE_F32 ? l->uniform(g, to, count) : l->uniform64(g, to, count);
    return check_result(w, result, "the numbers");
}

static tile_status generate_entered(const library *l, tile_cuda_device *d, const wish *w,
                                    tile_dtype dtype, void *to, size_t count) {
    TILE_TRY(tile_cuda_enter(d));
    tile_status status = tile_cuda_flush(d);
    if (!status) status = generate(l, d, w, dtype, to, count);
    tile_cuda_leave(d);
    return status;
}

/* Normal numbers come in pairs: an odd count by way of memory for one more. */
static tile_status generate_odd(const library *l, tile_cuda_device *d, const wish *w,
                                const tile_array *a) {
    const size_t count = (size_t)a->count, size = tile_dtype_size(a->dtype);
    tile_buffer *pairs;
    TILE_TRY(tile_buffer_create(a->storage->ctx, (count + 1) * size, &pairs));
    tile_status status = generate_entered(l, d, w, a->dtype, pairs->data, count + 1);
    if (!status)
        status = tile_move_copy(a->storage->ctx, tile_array_address(a), pairs->data, count * size);
    tile_buffer_release(pairs);
    return status;
}

static tile_status check(const wish *w, const tile_array *a, tile_cuda_device **d) {
    TILE_CHECK(a, TILE_E_ARGUMENT, "%s: array is NULL", w->call);
    TILE_CHECK(a->dtype == TILE_F32 || a->dtype == TILE_F64, TILE_E_DTYPE,
               "%s: array is %s, wanted float32 or float64", w->call, tile_dtype_name(a->dtype));
    TILE_CHECK(tile_array_is_contiguous(a), TILE_E_ARGUMENT,
               "%s: array has gaps, wanted a contiguous one", w->call);
    TILE_CHECK(isfinite(w->mean) && isfinite(w->deviation) && w->deviation >= 0, TILE_E_ARGUMENT,
               "%s: mean is %g and deviation %g, wanted finite ones, the latter from 0", w->call,
               w->mean, w->deviation);
    return tile_cuda_find(w->call, a->storage->ctx, "array", d);
}

static tile_status fill(tile_array *a, const wish *w) {
    library l;
    tile_cuda_device *d;
    TILE_TRY(check(w, a, &d));
    TILE_TRY(library_of(&l));
    if (a->count == 0) return TILE_OK;
    TILE_TRY(tile_array_is_whole(a) ? tile_storage_will_replace(a->storage)
                                    : tile_storage_will_write(a->storage, tile_array_range(a)));
    TILE_TRY(w->normal && a->count % 2
                 ? generate_odd(&l, d, w, a)
                 : generate_entered(&l, d, w, a->dtype, tile_array_address(a), (size_t)a->count));
    return tile_storage_written(a->storage, a);
}

tile_status tile_cuda_random_uniform(tile_array *array, uint64_t seed) {
    return fill(array, &(wish){.call = "tile_cuda_random_uniform", .seed = seed});
}

tile_status tile_cuda_random_normal(tile_array *array, uint64_t seed, double mean,
                                    double deviation) {
    return fill(array, &(wish){.call = "tile_cuda_random_normal",
                               .seed = seed,
                               .normal = true,
                               .mean = mean,
                               .deviation = deviation});
}
