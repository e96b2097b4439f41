/* lane.h: what a cooperative op's kernel is given, on the CPU and on CUDA.
 *
 * A lane function is written once, in the subset that C (gcc, clang), nvcc and NVRTC accept.
 * Element i of a tile belongs to lane i % TILE_LANES. On the CPU there is one lane and barriers
 * vanish.
 *
 *   TILE_LANE_FN void NAME(load)(const tile_call *c) { ... }
 *
 * T is the stored type, A the type sums are kept in, NAME(f) is f_<dtype>. */
#ifndef TILE_CORE_LANE_H
#define TILE_CORE_LANE_H

#ifndef __CUDACC_RTC__
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#endif

#ifdef __CUDACC__
#define TILE_LANE_FN static __device__ __forceinline__
#define TILE_RESTRICT __restrict__
#define TILE_LANE ((int)threadIdx.x)
#define TILE_LANES ((int)blockDim.x)
#define TILE_BARRIER() __syncthreads()
#else
#define TILE_LANE_FN static inline
#define TILE_RESTRICT restrict
#define TILE_LANE 0
#define TILE_LANES 1
#define TILE_BARRIER() ((void)0)
#endif

/* The first index >= low that belongs to this lane when index 0 is element `start` of the tile. */
#if defined(__CUDACC__)
#define TILE_FIRST(low, start) \
    ((low) + ((TILE_LANE - (int)(((start) + (low)) % TILE_LANES)) + TILE_LANES) % TILE_LANES)
#else
#define TILE_FIRST(low, start) (low)
#endif

/* size: a loop in a macro, the one that all lane functions walk their elements by. */
/* for each j in [low, high) of this lane; element j of the row is element start + j of the tile. */
#define TILE_EACH(j, low, high, start) \
    for (int64_t j = TILE_FIRST(low, start); j < (high); j += TILE_LANES)

/* size: as TILE_EACH, for what must go in order. */
/* The same where not ordered; else the first lane takes every element, in order. */
#define TILE_EACH_ORDERED(j, low, high, start, ordered)        \
    for (int64_t j = !(ordered)       ? TILE_FIRST(low, start) \
                     : TILE_LANE == 0 ? (low)                  \
                                      : (high);                \
         j < (high); j += (ordered) ? 1 : TILE_LANES)

enum { TILE_DIMS = 6, TILE_CALL_IN = 4, TILE_CALL_OUT = 2 };

/* A tile's shape inside a kernel. */
typedef struct tile_dims {
    int32_t rank;
    int32_t extent[TILE_DIMS];
} tile_dims;

/* An array bound to a parameter. Strides in elements. read and write differ while a launch
 * overwrites an array whose old values are kept. */
typedef struct tile_memory {
    const void *read;
    void *write;
    int32_t rank;
    int64_t extent[TILE_DIMS];
    int64_t stride[TILE_DIMS];
} tile_memory;

/* Constants of an op, meaning by op: axis, permutation, padding value, ... */
typedef struct tile_attrs {
    int64_t shift[TILE_DIMS]; /* constant part of a window's offset; sub-tile offset */
    int64_t n[TILE_DIMS];
    double real;
} tile_attrs;

/* One op of one block. Tiles are contiguous in C order. */
typedef struct tile_call {
    const void *in[TILE_CALL_IN];
    void *out[TILE_CALL_OUT]; /* NULL: not wanted */
    tile_dims in_dims[TILE_CALL_IN];
    tile_dims out_dims[TILE_CALL_OUT];
    tile_memory array;         /* ops with an access */
    int64_t offset[TILE_DIMS]; /* where the window begins, shift included, within +-2^62 */
    int64_t low[TILE_DIMS];    /* places outside [low, high) do not take part; within the array */
    int64_t high[TILE_DIMS];
    tile_attrs attrs;
} tile_call;

typedef void (*tile_run)(const tile_call *call);

#endif
