/* elementwise_avx2.c: the strips for x86-64 CPUs with AVX2 and FMA, by any compiler flags. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ops/elementwise/elementwise_strips.h"

#ifdef __x86_64__
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define TILE_STRIPS_AVX2
#define TILE_STRIPS_TABLE tile_strips_avx2
#include "ops/elementwise/elementwise_set.inc"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
