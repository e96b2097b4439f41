/* strips_scalar.c: the scalar strips for any CPU. */
#include "tests/strips_scalar.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TILE_SCALAR_ONLY
#define TILE_STRIPS_TABLE strips_scalar
#include "ops/elementwise/elementwise_set.inc"
