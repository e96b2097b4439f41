/* random_ops.h: random numbers indexed by (seed, number, draw), constants for gradients.
 *
 * Philox 4x32-10 exactly as cuRAND defines it: what call number draw, from 0, of the named cuRAND
 * function gives after curand_init with seed, number as subsequence and offset 0. The number is
 * usually the element's index in the whole field, so neither tiling nor device matters. Operands
 * broadcast as in NumPy. */
#ifndef TILE_OPS_RANDOM_OPS_H
#define TILE_OPS_RANDOM_OPS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tile_random_bits: 32 random bits, u32; curand().
 *
 * in       seed, number, draw i64; each taken modulo 2^64
 * repeats  same bits everywhere
 * errors   TILE_E_SHAPE; TILE_E_DTYPE
 * source   Salmon et al., SC 2011; curand_philox4x32_x.h
 */
TILE_API tile tile_random_bits(tile seed, tile number, tile draw);

/* tile_random_uniform: uniform above 0 and at most 1; curand_uniform(), curand_uniform_double().
 *
 *   f32: bits / 2^32 + 2^-33, rounded; f64: bits / 2^32 + 2^-32
 *
 * in       seed, number, draw i64; dtype a float, 16-bit ones are those of f32 rounded
 * repeats  same bits everywhere
 * errors   TILE_E_SHAPE; TILE_E_DTYPE
 * source   curand_uniform.h
 */
TILE_API tile tile_random_uniform(tile seed, tile number, tile draw, tile_dtype dtype);

/* tile_random_normal: mean 0, deviation 1; curand_normal(), curand_normal_double().
 *
 *   draws 2k and 2k + 1 are sin(v) and cos(v) times sqrt(-2 log u), u and v from the same words
 *
 * in       seed, number, draw i64; dtype a float, 16-bit ones are those of f32 rounded
 * repeats  same bits on CPUs of one kind, within a few ulp on others and CUDA
 * errors   TILE_E_SHAPE; TILE_E_DTYPE
 * source   Box and Muller 1958; curand_normal.h
 */
TILE_API tile tile_random_normal(tile seed, tile number, tile draw, tile_dtype dtype);

#ifdef __cplusplus
}
#endif

/* The calls note their place in the program's source. */
#define tile_random_bits(...) (tile_here(__FILE__, __LINE__), tile_random_bits(__VA_ARGS__))
#define tile_random_uniform(...) (tile_here(__FILE__, __LINE__), tile_random_uniform(__VA_ARGS__))
#define tile_random_normal(...) (tile_here(__FILE__, __LINE__), tile_random_normal(__VA_ARGS__))

#endif
