/* cuda_abi.h: what a launch hands to a generated CUDA kernel; C, C++, nvcc and NVRTC.
 *
 * The argument, by value: a head, then arrays (tile_memory), scalars (8 bytes each, the value at
 * their beginning) and slots of kept values (tile_cuda_slot), one after the other: as many arrays
 * and scalars as the program has parameters, and at least one of each. */
#ifndef TILE_CORE_CUDA_ABI_H
#define TILE_CORE_CUDA_ABI_H

#include "core/lane.h"

/* The execution error of the first block that failed, in the order of effects. */
typedef struct tile_cuda_error {
    uint32_t lock; /* 0: free */
    uint32_t set;  /* 0: there is none */
    int64_t order; /* of the block */
    int64_t node;  /* of the program */
    int64_t value, low, high;
} tile_cuda_error;

typedef struct tile_cuda_slot {
    int64_t base, bytes; /* of the first tile; of a tile */
    int64_t entries;     /* of a block */
    int64_t trips[TILE_DIMS];
} tile_cuda_slot;

typedef struct tile_cuda_head {
    int64_t grid[3], domain[3];
    int64_t blocks;       /* of the grid; a CUDA block runs every gridDim.x-th of them */
    unsigned char *arena; /* arena_stride bytes for each CUDA block; NULL: dynamic shared memory */
    int64_t arena_stride;
    unsigned char *stash;
    tile_cuda_error *error;
} tile_cuda_head;

#endif
