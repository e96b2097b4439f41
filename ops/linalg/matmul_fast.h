/* matmul_fast.h: matrix products in vector registers, for CPUs that have wide ones.
 *
 * Each result is one accumulator over ascending k, as in linalg_kernel.inc: the same bits. */
#ifndef TILE_OPS_LINALG_MATMUL_FAST_H
#define TILE_OPS_LINALG_MATMUL_FAST_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = a b, a of m x k, b of k x n. false: nothing was written, the sizes are none for vectors. */
typedef struct tile_matmul_fast {
    bool (*f32)(const float *a, const float *b, float *y, int64_t m, int64_t k, int64_t n);
    bool (*f64)(const double *a, const double *b, double *y, int64_t m, int64_t k, int64_t n);
} tile_matmul_fast;

#ifdef __x86_64__
extern const tile_matmul_fast tile_matmul_avx2, tile_matmul_avx512;
#endif

#ifdef __cplusplus
}
#endif

#endif
