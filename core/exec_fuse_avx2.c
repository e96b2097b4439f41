/* exec_fuse_avx2.c: fused strips for x86-64 CPUs with AVX2, whatever the compiler's flags. */
#include <stddef.h>
#include <stdint.h>

#include "core/exec_fuse.h"

#ifdef __x86_64__
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define FUSED_TABLE tile_fused_avx2
#include "core/exec_fuse_set.inc"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
