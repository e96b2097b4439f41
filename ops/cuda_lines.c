/* cuda_lines.c: the text of the lane functions as CUDA C, for generated CUDA sources. */
#include <stddef.h>

#include "core/op.h"

#include "ops/cuda_lines.inc"

static const char *const *const sections[] = {
#define TILE_FAMILY(f) cuda_##f,
#include "ops/families.inc"
#undef TILE_FAMILY
};

enum { SECTIONS = sizeof sections / sizeof *sections };

const char *const *tile_cuda_lines(int family) {
    if (family < 0) return cuda_base;
    return family < SECTIONS ? sections[family] : NULL;
}
