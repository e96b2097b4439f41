/* dtype.c: the table of element types and the conversions between one element and double. */
#include "core/dtype.h"

#include <math.h>

#include "core/struct_dtype.h"

/* Names for people, by short name; a dtype without one does not compile. */
#define LONG_NAME_f32 "float32"
#define LONG_NAME_f64 "float64"
#define LONG_NAME_i32 "int32"
#define LONG_NAME_i64 "int64"
#define LONG_NAME_u8 "uint8"
#define LONG_NAME_u32 "uint32"
#define LONG_NAME_u64 "uint64"
#define LONG_NAME_b8 "bool"
#define LONG_NAME_f16 "float16"
#define LONG_NAME_bf16 "bfloat16"
#define LONG_NAME_i8 "int8"
#define LONG_NAME_i16 "int16"
#define LONG_NAME_u16 "uint16"

/* The nearest integer of `bytes` bytes. */
static int64_t signed_nearest(double value, size_t bytes) {
    const double end = ldexp(1.0, (int)(8 * bytes) - 1);
    const int64_t high = (int64_t)(UINT64_MAX >> (65 - 8 * bytes));
    if (isnan(value)) return 0;
    value = rint(value);
    if (value >= end) return high;
    return value < -end ? -high - 1 : (int64_t)value;
}

static uint64_t unsigned_nearest(double value, size_t bytes) {
    if (isnan(value)) return 0;
    value = rint(value);
    if (value >= ldexp(1.0, (int)(8 * bytes))) return UINT64_MAX >> (64 - 8 * bytes);
    return value < 0 ? 0 : (uint64_t)value;
}

#define ROUND_FLOAT(T, value) ((T)(value))
#define ROUND_INT(T, value) ((T)signed_nearest(value, sizeof(T)))
#define ROUND_UINT(T, value) ((T)unsigned_nearest(value, sizeof(T)))
#define ROUND_BOOL(T, value) ((T)((value) != 0))

/* Pastes put_<short name> and get_<short name>. */
#define DEFINE_CONVERSIONS(id, name, T, A, kind, code) \
    static void put_##name(double value, void *to) {   \
        *(T *)to = ROUND_##kind(T, value);             \
    }                                                  \
    static double get_##name(const void *from) {       \
        return (double)*(const T *)from;               \
    }
TILE_DTYPE_PLAIN(DEFINE_CONVERSIONS)

#define DEFINE_HALF_CONVERSIONS(id, name, T, A, kind, code)  \
    static void put_##name(double value, void *to) {         \
        *(T *)to = T##_of_f64(value);                        \
    }                                                        \
    static double get_##name(const void *from) {             \
        return (double)tile_f32_of_##name(*(const T *)from); \
    }
TILE_DTYPE_HALVES(DEFINE_HALF_CONVERSIONS)

typedef struct row {
    const char *name, *short_name, *numpy;
    size_t size, align;
    tile_kind kind;
    void (*put)(double value, void *to);
    double (*get)(const void *from);
} row;

#define ROW(id, name, T, A, kind, code)                                      \
    [id] = {LONG_NAME_##name, #name,      code,      sizeof(T), _Alignof(T), \
            TILE_KIND_##kind, put_##name, get_##name},
static const row table[] = {TILE_DTYPE_LIST(ROW)};

_Static_assert(sizeof table / sizeof *table == TILE_DTYPES, "one row per dtype");

bool tile_dtype_valid(tile_dtype dtype) {
    return (int)dtype >= 0 && (int)dtype < (int)TILE_DTYPES;
}

const char *tile_dtype_name(tile_dtype dtype) {
    const tile_struct_info *info = tile_struct_of(dtype);
    if (info) return info->name;
    return tile_dtype_valid(dtype) ? table[dtype].name : "unknown dtype";
}

const char *tile_dtype_short(tile_dtype dtype) {
    return tile_dtype_valid(dtype) ? table[dtype].short_name : "unknown";
}

const char *tile_dtype_numpy(tile_dtype dtype) {
    return tile_dtype_valid(dtype) ? table[dtype].numpy : "";
}

size_t tile_dtype_size(tile_dtype dtype) {
    const tile_struct_info *info = tile_struct_of(dtype);
    if (info) return info->size;
    return tile_dtype_valid(dtype) ? table[dtype].size : 0;
}

size_t tile_dtype_align(tile_dtype dtype) {
    const tile_struct_info *info = tile_struct_of(dtype);
    if (info) return info->align;
    return tile_dtype_valid(dtype) ? table[dtype].align : 1;
}

tile_kind tile_dtype_kind(tile_dtype dtype) {
    if (tile_struct_of(dtype)) return TILE_KIND_STRUCT;
    return tile_dtype_valid(dtype) ? table[dtype].kind : TILE_KIND_UINT;
}

void tile_dtype_put(tile_dtype dtype, double value, void *to) {
    table[dtype].put(value, to);
}

double tile_dtype_get(tile_dtype dtype, const void *from) {
    return table[dtype].get(from);
}

bool tile_dtype_holds(tile_dtype dtype, double value) {
    const int bits = 8 * (int)tile_dtype_size(dtype);
    switch (tile_dtype_kind(dtype)) {
    case TILE_KIND_FLOAT: return true;
    case TILE_KIND_BOOL: return value == 0 || value == 1;
    case TILE_KIND_INT:
        return rint(value) == value && value >= -ldexp(1.0, bits - 1) &&
               value < ldexp(1.0, bits - 1);
    case TILE_KIND_UINT: return rint(value) == value && value >= 0 && value < ldexp(1.0, bits);
    case TILE_KIND_STRUCT: return false;
    }
    return false;
}
