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
    tile_cuda_head *argument; /* bytes of it; the device fills arena and arena_stride */
    size_t bytes;
    size_t arena_bytes; /* of a CUDA block */
    int64_t blocks;
    int threads; /* of a CUDA block, at most TILE_CUDA_THREADS_MAX; 0: the device's choice. Any
                    number is right, this one has work */
} tile_device_launch;

/* Memory of the context's arrays is memory that the device works on. */
struct tile_device {
    /* Makes a kernel of what tile_cuda_write wrote.
     *
     * errors   TILE_E_DEVICE the text does not compile, or there is no compiler; TILE_E_MEMORY */
    tile_status (*load)(tile_device *device, const tile_cuda_kernel *source, void **kernel);
    void (*unload)(tile_device *device, void *kernel);
    /* errors   TILE_E_DEVICE the launch failed */
    tile_status (*launch)(tile_device *device, void *kernel, const tile_device_launch *launch);
};

/* Contexts that are made from now on run every launch by the device; NULL: on the CPU. Those that
 * ask for an executor of the CPU do not. */
void tile_device_use(tile_device *device);

#ifdef __cplusplus
}
#endif

#endif
