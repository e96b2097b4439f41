/* matmul_avx2.c: matrix products for x86-64 CPUs with AVX2, whatever the compiler's flags. */
#include <string.h>

#include "ops/linalg/matmul_fast.h"

#ifdef __x86_64__
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define VECTOR_BYTES 32
#define T float
#define NAME(f) f##_f32
#include "ops/linalg/matmul_fast.inc"
#undef T
#undef NAME
#define T double
#define NAME(f) f##_f64
#include "ops/linalg/matmul_fast.inc"

const tile_matmul_fast tile_matmul_avx2 = {matmul_f32, matmul_f64};

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
