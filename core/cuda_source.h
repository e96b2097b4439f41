/* cuda_source.h: a program as CUDA C: one kernel, with the lane functions of the ops inside. */
#ifndef TILE_CORE_CUDA_SOURCE_H
#define TILE_CORE_CUDA_SOURCE_H

#include "core/cuda_abi.h"
#include "core/native_text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_executable tile_executable; /* core/exec.h */

enum {
    TILE_CUDA_NAME = 48,
    TILE_CUDA_THREADS_MAX = 256,       /* of a block */
    TILE_CUDA_SHARED_LEAST = 64 * 1024 /* what every device has; an arena of so much is there */
};

/* How a program is written. */
typedef enum tile_cuda_mode {
    TILE_CUDA_MIXED = 1,        /* array parameters may share memory */
    TILE_CUDA_DETERMINISTIC = 2 /* additions to one place by several threads go in order */
} tile_cuda_mode;

/* The part of a source that is a program's own. The same steps give the same text and name. */
typedef struct tile_cuda_kernel {
    char name[TILE_CUDA_NAME]; /* of the __global__ function */
    uint64_t families;         /* bits of the op families whose lane functions it needs */
    size_t arena_bytes;        /* of a block */
    int threads; /* of a block: as many as have work; a block of any number is right */
    tile_text text;
} tile_cuda_kernel;

/* The block plan of cuda_order.h as text; mode: bits of tile_cuda_mode. A block of any number of
 * threads runs a block of the grid. Tiles that several steps read lie in an arena, which is shared
 * memory where it is at most TILE_CUDA_SHARED_LEAST; a barrier stands between steps where the later
 * one meets what was touched since the last barrier. */
tile_status tile_cuda_write(
    const tile_executable *exe, unsigned mode,
    const int8_t *same /* per parameter: the first that is the same array */,
    tile_cuda_kernel *kernel) TILE_MUST_USE;
void tile_cuda_kernel_clear(tile_cuda_kernel *kernel);

/* What stands before the kernels of a source: types, the lane functions of some families. */
void tile_cuda_prelude(uint64_t families, tile_text *text);

#ifdef __cplusplus
}
#endif

#endif
