/* random_base.c: the random strips for any CPU: the compiler's flags decide on instructions. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "ops/random/random_strips.h"

#define TILE_STRIPS_TABLE tile_random_base
#include "ops/random/random_set.inc"
