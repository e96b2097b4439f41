/* strips_scalar.h: the strips of elementwise rows with scalar maths, in the form for any CPU and in
 * the form for CPUs with FMA: what the vector code must give in every bit. */
#ifndef TILE_TESTS_STRIPS_SCALAR_H
#define TILE_TESTS_STRIPS_SCALAR_H

#include "core/core_api.h"
#include "core/dtype.h"
#include "core/lane.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "ops/elementwise/elementwise_strips.h"

extern const tile_strips strips_scalar;
#ifdef __x86_64__
extern const tile_strips strips_scalar_fma;
#endif
#ifdef __cplusplus
}
#endif

#endif
