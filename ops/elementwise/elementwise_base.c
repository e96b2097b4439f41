/* elementwise_base.c: the strips for any CPU: the compiler's flags decide on instructions. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "ops/elementwise/elementwise_strips.h"

#define TILE_STRIPS_TABLE tile_strips_base
#include "ops/elementwise/elementwise_set.inc"
