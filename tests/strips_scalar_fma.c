/* strips_scalar_fma.c: the scalar strips for CPUs with FMA. */
#include "tests/strips_scalar.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __x86_64__
#define TILE_SCALAR_ONLY
#define TILE_STRIPS_AVX2
#define TILE_STRIPS_TABLE strips_scalar_fma
#include "ops/elementwise/elementwise_set.inc"
#endif
