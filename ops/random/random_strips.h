/* random_strips.h: the strips of the random ops, of each instruction set. */
#ifndef TILE_OPS_RANDOM_STRIPS_H
#define TILE_OPS_RANDOM_STRIPS_H

#include "core/op.h"

enum { TILE_RANDOM_BITS, TILE_RANDOM_UNIFORM, TILE_RANDOM_NORMAL, TILE_RANDOM_OPS };

extern const tile_family tile_ops_random;

/* By op and type of the result. */
typedef struct tile_random_strips {
    tile_strip row[TILE_RANDOM_OPS][TILE_DTYPES];
} tile_random_strips;

extern const tile_random_strips tile_random_base; /* runs on any CPU */
#ifdef __x86_64__
extern const tile_random_strips tile_random_avx2; /* needs AVX2 and FMA */
#endif

#endif
