/* driver.h: the functions of the CUDA driver that are used, from libcuda, loaded at run time. */
#ifndef TILE_CUDA_DRIVER_H
#define TILE_CUDA_DRIVER_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is used of cuda.h: results are numbers and 0 is success, handles are pointers, addresses of
 * device memory 64-bit numbers.
 *
 * source   CUDA Driver API, cuda.h */
typedef unsigned long long tile_cu_address;
typedef void *tile_cu_handle;

enum {
    TILE_CU_INVALID_VALUE = 1,
    TILE_CU_OUT_OF_MEMORY = 2,
    TILE_CU_NO_DEVICE = 100,
    TILE_CU_INVALID_IMAGE = 200,
    TILE_CU_NO_BINARY_FOR_GPU = 209,
    TILE_CU_UNSUPPORTED_PTX = 222,
    TILE_CU_INVALID_SOURCE = 300,
    TILE_CU_NOT_FOUND = 500,
    TILE_CU_LAUNCH_OUT_OF_RESOURCES = 701,

    TILE_CU_ATTRIBUTE_GRID_X = 5,
    TILE_CU_ATTRIBUTE_MAJOR = 75,
    TILE_CU_ATTRIBUTE_MINOR = 76,
    TILE_CU_ATTRIBUTE_SHARED_MOST = 97, /* of a block, when asked for */
    TILE_CU_ATTRIBUTE_POOLS = 115,

    TILE_CU_FUNC_THREADS = 0,
    TILE_CU_FUNC_SHARED = 1,
    TILE_CU_FUNC_LOCAL = 3,
    TILE_CU_FUNC_REGISTERS = 4,
    TILE_CU_FUNC_BINARY = 6,
    TILE_CU_FUNC_DYNAMIC_SHARED = 8,

    TILE_CU_POINTER_MEMORY_TYPE = 2,
    TILE_CU_MEMORY_DEVICE = 2,

    TILE_CU_STREAM_NON_BLOCKING = 1,
    TILE_CU_CAPTURE_RELAXED = 2
};

/* size: a table, one row a function: our name, the driver's, its parameters. */
#define TILE_DRIVER_LIST(X)                                                                      \
    X(init, "cuInit", (unsigned flags))                                                          \
    X(version, "cuDriverGetVersion", (int *version))                                             \
    X(device_count, "cuDeviceGetCount", (int *count))                                            \
    X(device_get, "cuDeviceGet", (int *device, int number))                                      \
    X(device_name, "cuDeviceGetName", (char *name, int room, int device))                        \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                        \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))         \
    X(context_retain, "cuDevicePrimaryCtxRetain", (tile_cu_handle * context, int device))        \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                             \
    X(context_push, "cuCtxPushCurrent_v2", (tile_cu_handle context))                             \
    X(context_pop, "cuCtxPopCurrent_v2", (tile_cu_handle * context))                             \
    X(memory_info, "cuMemGetInfo_v2", (size_t * unused, size_t * all))                           \
    X(stream_create, "cuStreamCreate", (tile_cu_handle * stream, unsigned flags))                \
    X(stream_destroy, "cuStreamDestroy_v2", (tile_cu_handle stream))                             \
    X(stream_sync, "cuStreamSynchronize", (tile_cu_handle stream))                               \
    X(capture_begin, "cuStreamBeginCapture_v2", (tile_cu_handle stream, int mode))               \
    X(capture_end, "cuStreamEndCapture", (tile_cu_handle stream, tile_cu_handle * graph))        \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                          \
      (tile_cu_handle * exec, tile_cu_handle graph, unsigned long long flags))                   \
    X(graph_launch, "cuGraphLaunch", (tile_cu_handle exec, tile_cu_handle stream))               \
    X(graph_exec_destroy, "cuGraphExecDestroy", (tile_cu_handle exec))                           \
    X(graph_destroy, "cuGraphDestroy", (tile_cu_handle graph))                                   \
    X(alloc, "cuMemAlloc_v2", (tile_cu_address * memory, size_t bytes))                          \
    X(free, "cuMemFree_v2", (tile_cu_address memory))                                            \
    X(alloc_async, "cuMemAllocAsync",                                                            \
      (tile_cu_address * memory, size_t bytes, tile_cu_handle stream))                           \
    X(free_async, "cuMemFreeAsync", (tile_cu_address memory, tile_cu_handle stream))             \
    X(alloc_host, "cuMemAllocHost_v2", (void **memory, size_t bytes))                            \
    X(free_host, "cuMemFreeHost", (void *memory))                                                \
    X(copy_in, "cuMemcpyHtoDAsync_v2",                                                           \
      (tile_cu_address to, const void *from, size_t bytes, tile_cu_handle stream))               \
    X(copy_out, "cuMemcpyDtoHAsync_v2",                                                          \
      (void *to, tile_cu_address from, size_t bytes, tile_cu_handle stream))                     \
    X(copy, "cuMemcpyDtoDAsync_v2",                                                              \
      (tile_cu_address to, tile_cu_address from, size_t bytes, tile_cu_handle stream))           \
    X(set8, "cuMemsetD8Async",                                                                   \
      (tile_cu_address to, unsigned char value, size_t count, tile_cu_handle stream))            \
    X(set16, "cuMemsetD16Async",                                                                 \
      (tile_cu_address to, unsigned short value, size_t count, tile_cu_handle stream))           \
    X(set32, "cuMemsetD32Async",                                                                 \
      (tile_cu_address to, unsigned value, size_t count, tile_cu_handle stream))                 \
    X(set32_rows, "cuMemsetD2D32Async",                                                          \
      (tile_cu_address to, size_t pitch, unsigned value, size_t width, size_t height,            \
       tile_cu_handle stream))                                                                   \
    X(pointer_attribute, "cuPointerGetAttribute", (void *to, int attribute, tile_cu_address at)) \
    X(module_load, "cuModuleLoadData", (tile_cu_handle * module, const void *image))             \
    X(module_unload, "cuModuleUnload", (tile_cu_handle module))                                  \
    X(module_function, "cuModuleGetFunction",                                                    \
      (tile_cu_handle * function, tile_cu_handle module, const char *name))                      \
    X(function_get, "cuFuncGetAttribute", (int *value, int attribute, tile_cu_handle function))  \
    X(function_set, "cuFuncSetAttribute", (tile_cu_handle function, int attribute, int value))   \
    X(launch, "cuLaunchKernel",                                                                  \
      (tile_cu_handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,               \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,                    \
       tile_cu_handle stream, void **parameters, void **extra))                                  \
    X(event_create, "cuEventCreate", (tile_cu_handle * event, unsigned flags))                   \
    X(event_record, "cuEventRecord", (tile_cu_handle event, tile_cu_handle stream))              \
    X(event_sync, "cuEventSynchronize", (tile_cu_handle event))                                  \
    X(event_elapsed, "cuEventElapsedTime",                                                       \
      (float *milliseconds, tile_cu_handle from, tile_cu_handle to))                             \
    X(event_destroy, "cuEventDestroy_v2", (tile_cu_handle event))                                \
    X(error_name, "cuGetErrorName", (int result, const char **text))                             \
    X(error_text, "cuGetErrorString", (int result, const char **text))

#define TILE_DRIVER_FIELD(name, symbol, parameters) int(*name) parameters;
typedef struct tile_driver {
    TILE_DRIVER_LIST(TILE_DRIVER_FIELD)
} tile_driver;
#undef TILE_DRIVER_FIELD

/* The driver, loaded and started when first asked for. Any thread.
 *
 * errors   TILE_E_DEVICE "no CUDA device: ...": there is no libcuda, it is too old, or it finds no
 *          device */
tile_status tile_driver_get(const tile_driver **driver) TILE_MUST_USE;

/* Begins an error: what failed, and what the driver says of the result. */
tile_status tile_driver_fail(const tile_driver *driver, int result, const char *what);

/* Whether a result means that the driver's context is lost: every later call fails as well. */
bool tile_driver_is_lost(int result);

/* Loads this file instead of libcuda.so.1, or no longer; for tests. Not while a context lives. */
void tile_driver_look_in(const char *path);

#ifdef __cplusplus
}
#endif

#endif
