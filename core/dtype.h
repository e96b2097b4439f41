/* dtype.h: what is known of each element type. */
#ifndef TILE_CORE_DTYPE_H
#define TILE_CORE_DTYPE_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tile_kind {
    TILE_KIND_FLOAT,
    TILE_KIND_INT,
    TILE_KIND_UINT,
    TILE_KIND_BOOL,
    TILE_KIND_STRUCT
} tile_kind;

/* size: one row per dtype. */
/* X(enum, short name, stored type, type sums are kept in, kind, numpy code). */
#define TILE_DTYPE_LIST(X)                           \
    X(TILE_F32, f32, float, float, FLOAT, "f4")      \
    X(TILE_F64, f64, double, double, FLOAT, "f8")    \
    X(TILE_I32, i32, int32_t, int32_t, INT, "i4")    \
    X(TILE_I64, i64, int64_t, int64_t, INT, "i8")    \
    X(TILE_U8, u8, uint8_t, uint8_t, UINT, "u1")     \
    X(TILE_U32, u32, uint32_t, uint32_t, UINT, "u4") \
    X(TILE_U64, u64, uint64_t, uint64_t, UINT, "u8") \
    X(TILE_BOOL, b8, uint8_t, uint8_t, BOOL, "b1")

/* "f32": the name in the text form. */
const char *tile_dtype_short(tile_dtype dtype);

/* "f4": the code in a .npy header, without the byte order. */
const char *tile_dtype_numpy(tile_dtype dtype);

tile_kind tile_dtype_kind(tile_dtype dtype);
/* One of the enum's types, no struct. */
bool tile_dtype_valid(tile_dtype dtype);

/* What the address of an element is a multiple of. */
size_t tile_dtype_align(tile_dtype dtype);

/* Whether an array of it can have a gradient: a float, or a struct with a float member. */
bool tile_has_gradient(tile_dtype dtype);

static inline bool tile_is_float(tile_dtype dtype) {
    return tile_dtype_kind(dtype) == TILE_KIND_FLOAT;
}

/* Writes value, rounded to dtype, as one element at to. Integers: to nearest, ties to even; outside
 * the range the nearest end; NaN is 0. Bool: whether value is not 0. */
void tile_dtype_put(tile_dtype dtype, double value, void *to);

/* Reads one element. */
double tile_dtype_get(tile_dtype dtype, const void *from);

/* Whether an integer dtype (bool: 0 or 1) holds the value exactly; any value fits a float dtype. */
bool tile_dtype_holds(tile_dtype dtype, double value);

#ifdef __cplusplus
}
#endif

#endif
