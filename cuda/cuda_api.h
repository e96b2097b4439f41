/* cuda_api.h: CUDA devices; included by tiletape.h. Nothing of CUDA is needed to build a program:
 * libcuda and NVRTC are loaded when a context is made. */
#ifndef TILE_CUDA_CUDA_API_H
#define TILE_CUDA_CUDA_API_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tile_cuda_device_count: how many CUDA devices there are.
 *
 * special  none, or no driver: *count is 0, and tile_last_error says why
 * errors   TILE_E_ARGUMENT
 */
TILE_API tile_status tile_cuda_device_count(int *count) TILE_MUST_USE;

/* tile_cuda_context_create: a context on a CUDA device, with a stream and a pool of memory of its
 * own. Kernels are compiled for the device when they are first launched, by NVRTC, and kept in the
 * folder that tile_context_info names.
 *
 * Launches, copies and fills happen in order, later than the calls that ask for them. Arrays are in
 * the device's memory: tile_array_read and tile_array_write move values, tile_array_data and
 * tile_array_wrap, which mean host memory, are errors; see tile_cuda_array_data.
 *
 * in       device from 0; options may be NULL; threads and executor do not matter; shared_bytes 0:
 *          the most that a block of the device can have
 * special  in checked mode (also by TILE_CHECK=1) each launch is waited for, so that a failure of
 *          the device names its kernel
 * repeats  results have the same bits on every run, but for additions of several blocks to one
 *          place that NVIDIA's hardware orders
 * errors   TILE_E_DEVICE "no CUDA device: ..." there is no driver or device, or the device is older
 *          than compute capability 7.5; TILE_E_ARGUMENT device, or those of tile_context_create;
 *          TILE_E_MEMORY
 */
TILE_API tile_status tile_cuda_context_create(int device, const tile_context_options *options,
                                              tile_context **ctx) TILE_MUST_USE;

/* tile_cuda_array_data: the address of an array's first element in the device's memory, for CUDA
 * code of the caller's. From this call on the array keeps its address, and overwriting it on a tape
 * copies. What the context was asked for before has happened when the call returns; later work of
 * the context does not wait for the caller's.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_STATE array is of a CPU context, or the gradient of a backward
 *          that failed; TILE_E_DEVICE
 */
TILE_API tile_status tile_cuda_array_data(tile_array *array, uint64_t *address) TILE_MUST_USE;

/* tile_cuda_array_wrap: an array over memory of the device, which stays the caller's and must
 * outlive the array and every tape that used it.
 *
 * in       strides in elements, one per dimension, not negative; NULL: C order; address of memory
 *          of the context's device
 * errors   TILE_E_ARGUMENT as tile_array_wrap, or address is no device memory, or ctx is of the CPU
 */
TILE_API tile_status tile_cuda_array_wrap(tile_context *ctx, tile_dtype dtype, tile_shape shape,
                                          const int64_t *strides, uint64_t address,
                                          tile_array **array) TILE_MUST_USE;

/* tile_cuda_stream: the context's stream (a CUstream or cudaStream_t), for CUDA code of the
 * caller's that is to run in order with the context's work.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_STATE the context is of the CPU
 */
TILE_API tile_status tile_cuda_stream(tile_context *ctx, void **stream) TILE_MUST_USE;

/* tile_cuda_time_begin, tile_cuda_time_end: seconds that the device took for what the context was
 * asked for between the two calls, by events of the driver. The second one waits.
 *
 * errors   TILE_E_ARGUMENT; TILE_E_STATE the context is of the CPU, or end without begin;
 *          TILE_E_DEVICE
 */
TILE_API tile_status tile_cuda_time_begin(tile_context *ctx) TILE_MUST_USE;
TILE_API tile_status tile_cuda_time_end(tile_context *ctx, double *seconds) TILE_MUST_USE;

/* What a kernel takes of a CUDA device, as the compiler says. */
typedef struct tile_kernel_resources {
    int parts;           /* of the kernel: forward, then what was made for backward so far */
    int registers;       /* of a thread */
    int threads;         /* of a block */
    size_t shared_bytes; /* of a block */
    size_t local_bytes;  /* of a thread, in memory: arrays, and spills of registers */
    int architecture;    /* the code is for: 90 for sm_90 */
} tile_kernel_resources;

/* tile_kernel_info: registers, shared memory and spills of a part of a kernel, compiled now if it
 * was not yet.
 *
 * in       part 0: what tile_launch runs without a tape; from 1 on, below resources->parts: what
 *          runs on a tape and backward, as far as launches have asked for it
 * errors   TILE_E_ARGUMENT; TILE_E_STATE the kernel is of a CPU context; TILE_E_DEVICE it does not
 *          compile, or is too large for the device; TILE_E_MEMORY
 */
TILE_API tile_status tile_kernel_info(tile_kernel *kernel, int part,
                                      tile_kernel_resources *resources) TILE_MUST_USE;

/* tile_cuda_random_uniform, tile_cuda_random_normal: fill a float32 or float64 array with numbers
 * from above 0 to 1, or of a normal distribution, by cuRAND: Philox 4x32-10. Noted by tapes like
 * tile_array_write.
 *
 * in       array is contiguous; deviation 0 or more
 * repeats  the same seed, count and dtype give the same numbers
 * errors   TILE_E_ARGUMENT; TILE_E_DTYPE; TILE_E_STATE the context is of the CPU; TILE_E_DEVICE
 *          there is no libcurand, or it fails; TILE_E_MEMORY
 * source   cuRAND, host API, CURAND_RNG_PSEUDO_PHILOX4_32_10
 */
TILE_API tile_status tile_cuda_random_uniform(tile_array *array, uint64_t seed) TILE_MUST_USE;
TILE_API tile_status tile_cuda_random_normal(tile_array *array, uint64_t seed, double mean,
                                             double deviation) TILE_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
