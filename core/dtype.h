/* dtype.h: what is known of each element type. */
#ifndef TILE_CORE_DTYPE_H
#define TILE_CORE_DTYPE_H

#include "core/core_api.h"
#include "core/half.h"

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
#define TILE_DTYPE_PLAIN(X)                          \
    X(TILE_F32, f32, float, float, FLOAT, "f4")      \
    X(TILE_F64, f64, double, double, FLOAT, "f8")    \
    X(TILE_I32, i32, int32_t, int32_t, INT, "i4")    \
    X(TILE_I64, i64, int64_t, int64_t, INT, "i8")    \
    X(TILE_U8, u8, uint8_t, uint8_t, UINT, "u1")     \
    X(TILE_U32, u32, uint32_t, uint32_t, UINT, "u4") \
    X(TILE_U64, u64, uint64_t, uint64_t, UINT, "u8") \
    X(TILE_BOOL, b8, uint8_t, uint8_t, BOOL, "b1")   \
    X(TILE_I8, i8, int8_t, int8_t, INT, "i1")        \
    X(TILE_I16, i16, int16_t, int16_t, INT, "i2")    \
    X(TILE_U16, u16, uint16_t, uint16_t, UINT, "u2")

/* The 16-bit floats, whose stored type is no number of C. bfloat16 has no numpy code: its bits. */
#define TILE_DTYPE_HALVES(X)                       \
    X(TILE_F16, f16, tile_f16, float, FLOAT, "f2") \
    X(TILE_BF16, bf16, tile_bf16, float, FLOAT, "u2")

#define TILE_DTYPE_LIST(X) TILE_DTYPE_PLAIN(X) TILE_DTYPE_HALVES(X)

/* "f32": the name in the text form. */
const char *tile_dtype_short(tile_dtype dtype);

/* "f4": the code in a .npy header, without the byte order. */
const char *tile_dtype_numpy(tile_dtype dtype);

tile_kind tile_dtype_kind(tile_dtype dtype);
/* One of the enum's types, no struct. */
bool tile_dtype_valid(tile_dtype dtype);

/* What the address of an element is a multiple of. */
size_t tile_dtype_align(tile_dtype dtype);

/* Whether it is a 16-bit float, or a struct with one. */
bool tile_holds_half(tile_dtype dtype);

/* Whether an array of it can have a gradient: a float, or a struct with a float member. */
bool tile_has_gradient(tile_dtype dtype);

static inline bool tile_is_float(tile_dtype dtype) {
    return tile_dtype_kind(dtype) == TILE_KIND_FLOAT;
}

static inline bool tile_is_half(tile_dtype dtype) {
    return dtype == TILE_F16 || dtype == TILE_BF16;
}

/* What elements of a dtype are computed in, and what their adjoints are: float32 for the 16-bit
 * floats, else the dtype itself. */
static inline tile_dtype tile_wide_dtype(tile_dtype dtype) {
    return tile_is_half(dtype) ? TILE_F32 : dtype;
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
