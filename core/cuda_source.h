/* cuda_source.h: a program as CUDA C: one kernel, with the lane functions of the ops inside. */
#ifndef TILE_CORE_CUDA_SOURCE_H
#define TILE_CORE_CUDA_SOURCE_H

#include "core/cuda_abi.h"
#include "core/native_text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_executable tile_executable; /* core/exec.h */

enum { TILE_CUDA_NAME = 48 };

/* The part of a source that is a program's own. The same steps give the same text and name. */
typedef struct tile_cuda_kernel {
    char name[TILE_CUDA_NAME]; /* of the __global__ function */
    uint64_t families;         /* bits of the op families whose lane functions it needs */
    tile_text text;
} tile_cuda_kernel;

/* The block plan as text. A block of any number of threads runs a block of the grid: elementwise
 * ops in registers, element i of a tile by thread i % blockDim.x; tiles that other steps read lie
 * in an arena; a barrier between steps that use the arena. */
tile_status tile_cuda_write(const tile_executable *exe, tile_cuda_kernel *kernel) TILE_MUST_USE;
void tile_cuda_kernel_clear(tile_cuda_kernel *kernel);

/* What stands before the kernels of a source: types, the lane functions of some families. */
void tile_cuda_prelude(uint64_t families, tile_text *text);

/* Bytes of the arena of a block. */
size_t tile_cuda_arena(const tile_executable *exe);

#ifdef __cplusplus
}
#endif

#endif
