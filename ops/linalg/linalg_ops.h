/* linalg_ops.h: products of vectors and matrices; included by tiletape.h. */
#ifndef TILE_OPS_LINALG_OPS_H
#define TILE_OPS_LINALG_OPS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tile_dot: sum of products of all elements.
 *
 *   y = sum over c of a[c] * b[c]
 *   da[c] += dy * b[c]; db[c] += dy * a[c]
 *
 * in       a, b of one shape and dtype;
 *          gives y rank-0 tile
 * special  integers wrap
 * repeats  one order of sums, fixed by the shape; block results of float32 are summed in float64
 * errors   TILE_E_SHAPE; TILE_E_DTYPE dtypes differ or are bool
 */
TILE_API tile tile_dot(tile a, tile b);

/* tile_matmul: matrix product over the last two dimensions; earlier ones are a batch.
 *
 *   y[.., i, j] = sum over p of a[.., i, p] * b[.., p, j]
 *   da += dy b^T; db += a^T dy
 *
 * in       a [.., m, k], b [.., k, n] of one dtype, batch dimensions equal;
 *          gives y tile [.., m, n]
 * special  integers wrap
 * repeats  each element is summed in one accumulator, p ascending
 * errors   TILE_E_SHAPE; TILE_E_DTYPE dtypes differ or are bool
 */
TILE_API tile tile_matmul(tile a, tile b);

#ifdef __cplusplus
}
#endif

#define tile_dot(...) (tile_here(__FILE__, __LINE__), tile_dot(__VA_ARGS__))
#define tile_matmul(...) (tile_here(__FILE__, __LINE__), tile_matmul(__VA_ARGS__))
#endif
