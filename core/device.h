/* device.h: what runs generated CUDA kernels: a CUDA device, or an emulator of one. */
#ifndef TILE_CORE_DEVICE_H
#define TILE_CORE_DEVICE_H

#include "core/context.h"
#include "core/cuda_abi.h"
#include "core/cuda_source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One launch. The device runs CUDA blocks 0 .. blocks - 1 of any number of threads. */
typedef struct tile_device_launch {
    tile_cuda_head *argument; /* bytes of it; the device fills arena, arena_stride and error */
    size_t bytes;
    size_t arena_bytes; /* of a CUDA block */
    int64_t blocks;
    int threads;      /* of a CUDA block, at most TILE_CUDA_THREADS_MAX; 0: the device's choice */
    const char *name; /* of the program, for messages */
    tile_cuda_error *error; /* filled before the launch returns; NULL: it cannot end in one */
    bool wait;              /* until it has happened, so that its failure is this call's */
} tile_device_launch;

/* What a compiler made of a kernel. */
typedef struct tile_device_resources {
    int registers;       /* of a thread */
    int threads;         /* of a block, at most */
    size_t shared_bytes; /* of a block: what the compiler placed, and what a launch asks for */
    size_t local_bytes;  /* of a thread: what does not fit registers */
    int binary_version;  /* 75 for sm_75 */
} tile_device_resources;

/* Where alloc is NULL, the memory of the context's arrays is the host's, and nothing after launch
 * is there. Else it is the device's: the host never touches it, and moves values by the calls below
 * (core/move.h). What the calls do happens in their order, later than the host does what follows;
 * copies between host and device are over when the call returns. A call that finds that an earlier
 * one failed says so: TILE_E_DEVICE. */
struct tile_device {
    /* Makes a kernel of what tile_cuda_write wrote.
     *
     * errors   TILE_E_DEVICE the text does not compile, or there is no compiler; TILE_E_MEMORY */
    tile_status (*load)(tile_device *device, const tile_cuda_kernel *source, void **kernel);
    void (*unload)(tile_device *device, void *kernel);
    /* errors   TILE_E_DEVICE the launch failed */
    tile_status (*launch)(tile_device *device, void *kernel, const tile_device_launch *launch);

    /* Sees to it that a launch cannot fail for want of memory; NULL: nothing is needed. */
    tile_status (*reserve)(tile_device *device, void *kernel, const tile_device_launch *launch);
    /* arena_bytes: of a CUDA block. */
    tile_status (*resources)(tile_device *device, void *kernel, size_t arena_bytes,
                             tile_device_resources *resources);

    /* errors   TILE_E_MEMORY */
    tile_status (*alloc)(tile_device *device, size_t bytes, void **memory);
    void (*free)(tile_device *device, void *memory);
    tile_status (*copy_in)(tile_device *device, void *to, const void *host, size_t bytes);
    tile_status (*copy_out)(tile_device *device, void *host, const void *from, size_t bytes);
    tile_status (*copy)(tile_device *device, void *to, const void *from, size_t bytes);
    /* count times an element of size 1, 2, 4 or 8 bytes. */
    tile_status (*fill)(tile_device *device, void *to, const void *element, size_t size,
                        size_t count);
    /* Waits for all that was asked for. */
    tile_status (*sync)(tile_device *device);

    /* Between begin and end launches, copies within the device and fills are taken down rather than
     * done, and done as a graph at the end, or before anything else is asked for. The graph is kept
     * and used again when the same things are taken down. NULL: none are.
     *
     * special  *graph NULL: a new one */
    tile_status (*graph_begin)(tile_device *device, tile_device_graph **graph);
    tile_status (*graph_end)(tile_device *device);
    /* Has done what was taken down so far: somebody else is about to use the device. */
    tile_status (*graph_cut)(tile_device *device);
    void (*graph_free)(tile_device *device, tile_device_graph *graph);

    /* Fills what the device knows of itself. */
    void (*info)(tile_device *device, tile_executor_info *info);
    /* The last call: no memory, kernel or graph of it is left. NULL: it is not the context's. */
    void (*destroy)(tile_device *device);
};

/* What the compiler made of a program, compiled now if it was not. The context has a device that
 * can tell. */
tile_status tile_executable_resources(tile_executable *exe,
                                      tile_device_resources *resources) TILE_MUST_USE;

/* A context whose launches a device runs; the device is the context's from then on, also when it
 * fails. call: the public function, for messages. */
tile_status tile_context_make(const char *call, const tile_context_options *options,
                              tile_device *device, tile_context **ctx) TILE_MUST_USE;

/* Contexts that tile_context_create makes from now on run every launch by the device; NULL: on the
 * CPU. Those that ask for an executor of the CPU do not. */
void tile_device_use(tile_device *device);

/* The same where each context has a device of its own. NULL: none has. */
typedef tile_status (*tile_device_maker)(tile_device **device);
void tile_device_make_with(tile_device_maker make);

#ifdef __cplusplus
}
#endif

#endif
