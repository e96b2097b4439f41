/* elementwise_names.h: the functions that the rows of elementwise.def may use, by upper-case name.
 *
 * Whoever includes elementwise_types.inc defines for both float types what a name becomes:
 * TILE_MATHS_F32(f), TILE_MATHS_F64(f) for maths functions, TILE_EXACT_F32(f), TILE_EXACT_F64(f)
 * for functions with one right answer (sqrt, floor, fma). On CUDA both are the device's own. */
#ifndef TILE_OPS_ELEMENTWISE_NAMES_H
#define TILE_OPS_ELEMENTWISE_NAMES_H

#ifdef __CUDACC__
#define TILE_MATHS_F32(fn) fn##f
#define TILE_MATHS_F64(fn) fn
#define TILE_ISNAN(x) ((x) != (x))
#else
#define TILE_ISNAN(x) __builtin_isnan(x)
#endif
#define TILE_EXACT_F32(fn) fn##f
#define TILE_EXACT_F64(fn) fn

#define EXP(x) MATHS(exp)(x)
#define EXP2(x) MATHS(exp2)(x)
#define EXPM1(x) MATHS(expm1)(x)
#define LOG(x) MATHS(log)(x)
#define LOG2(x) MATHS(log2)(x)
#define LOG1P(x) MATHS(log1p)(x)
#define SIN(x) MATHS(sin)(x)
#define COS(x) MATHS(cos)(x)
#define TAN(x) MATHS(tan)(x)
#define ASIN(x) MATHS(asin)(x)
#define ACOS(x) MATHS(acos)(x)
#define ATAN(x) MATHS(atan)(x)
#define ATAN2(y, x) MATHS(atan2)(y, x)
#define HYPOT(x, y) MATHS(hypot)(x, y)
#define SINH(x) MATHS(sinh)(x)
#define COSH(x) MATHS(cosh)(x)
#define TANH(x) MATHS(tanh)(x)
#define ERF(x) MATHS(erf)(x)
#define CBRT(x) MATHS(cbrt)(x)
#define POW(x, y) MATHS(pow)(x, y)

#define SQRT(x) EXACT(sqrt)(x)
#define FLOOR(x) EXACT(floor)(x)
#define CEIL(x) EXACT(ceil)(x)
#define FMA(x, y, z) EXACT(fma)(x, y, z)
#define ROUND(x) NAME(round_away)(x)
#define SIGN(x) NAME(sign_of)(x)
#define ABS(x) NAME(magnitude)(x)
#define FLOOR_DIV(x, y) NAME(divide_down)(x, y)
#define MOD(x, y) NAME(remainder_down)(x, y)

#endif
