/* dtype_test.cc: element types: the table, and one element to and from double. */
#include <gtest/gtest.h>

#include <cmath>

#include "core/core_api.h"
#include "core/dtype.h"

namespace {

TEST(DtypeTest, EveryDtypeHasItsNamesAndSize) {
    const struct {
        tile_dtype dtype;
        const char *name, *short_name, *numpy;
        size_t size;
        tile_kind kind;
    } rows[] = {
        {TILE_F32, "float32", "f32", "f4", 4, TILE_KIND_FLOAT},
        {TILE_F64, "float64", "f64", "f8", 8, TILE_KIND_FLOAT},
        {TILE_I32, "int32", "i32", "i4", 4, TILE_KIND_INT},
        {TILE_I64, "int64", "i64", "i8", 8, TILE_KIND_INT},
        {TILE_U8, "uint8", "u8", "u1", 1, TILE_KIND_UINT},
        {TILE_U32, "uint32", "u32", "u4", 4, TILE_KIND_UINT},
        {TILE_U64, "uint64", "u64", "u8", 8, TILE_KIND_UINT},
        {TILE_BOOL, "bool", "b8", "b1", 1, TILE_KIND_BOOL},
        {TILE_F16, "float16", "f16", "f2", 2, TILE_KIND_FLOAT},
        {TILE_BF16, "bfloat16", "bf16", "u2", 2, TILE_KIND_FLOAT},
        {TILE_I8, "int8", "i8", "i1", 1, TILE_KIND_INT},
        {TILE_I16, "int16", "i16", "i2", 2, TILE_KIND_INT},
        {TILE_U16, "uint16", "u16", "u2", 2, TILE_KIND_UINT},
    };
    for (const auto &row : rows) {
        EXPECT_STREQ(row.name, tile_dtype_name(row.dtype));
        EXPECT_STREQ(row.short_name, tile_dtype_short(row.dtype));
        EXPECT_STREQ(row.numpy, tile_dtype_numpy(row.dtype));
        EXPECT_EQ(row.size, tile_dtype_size(row.dtype));
        EXPECT_EQ(row.kind, tile_dtype_kind(row.dtype));
    }
    EXPECT_EQ(13, static_cast<int>(TILE_DTYPES));
    const tile_dtype stable[] = {TILE_F32, TILE_F64, TILE_I32,  TILE_I64, TILE_U8,
                                 TILE_U32, TILE_U64, TILE_BOOL, TILE_F16, TILE_BF16,
                                 TILE_I8,  TILE_I16, TILE_U16};
    for (int k = 0; k < 13; k++) EXPECT_EQ(k, static_cast<int>(stable[k])); /* files hold them */
    for (int bad : {-1, static_cast<int>(TILE_DTYPES), 1 << 30}) {
        EXPECT_FALSE(tile_dtype_valid(static_cast<tile_dtype>(bad)));
        EXPECT_EQ(0u, tile_dtype_size(static_cast<tile_dtype>(bad)));
    }
}

TEST(DtypeTest, IntegersHoldExactlyTheirRange) {
    const double two31 = 2147483648.0, two63 = 9223372036854775808.0;
    EXPECT_TRUE(tile_dtype_holds(TILE_I32, two31 - 1));
    EXPECT_FALSE(tile_dtype_holds(TILE_I32, two31));
    EXPECT_TRUE(tile_dtype_holds(TILE_I32, -two31));
    EXPECT_FALSE(tile_dtype_holds(TILE_I32, -two31 - 1));
    EXPECT_FALSE(tile_dtype_holds(TILE_I32, 0.5));
    EXPECT_FALSE(tile_dtype_holds(TILE_I64, two63));
    EXPECT_TRUE(tile_dtype_holds(TILE_I64, -two63));
    EXPECT_TRUE(tile_dtype_holds(TILE_U64, two63));
    EXPECT_FALSE(tile_dtype_holds(TILE_U64, 2 * two63));
    EXPECT_TRUE(tile_dtype_holds(TILE_U8, 255));
    EXPECT_FALSE(tile_dtype_holds(TILE_U8, 256));
    EXPECT_FALSE(tile_dtype_holds(TILE_U8, -1));
    EXPECT_TRUE(tile_dtype_holds(TILE_BOOL, 1));
    EXPECT_FALSE(tile_dtype_holds(TILE_BOOL, 2));
    EXPECT_TRUE(tile_dtype_holds(TILE_I8, -128));
    EXPECT_FALSE(tile_dtype_holds(TILE_I8, 128));
    EXPECT_TRUE(tile_dtype_holds(TILE_I16, 32767));
    EXPECT_FALSE(tile_dtype_holds(TILE_I16, -32769));
    EXPECT_TRUE(tile_dtype_holds(TILE_U16, 65535));
    EXPECT_FALSE(tile_dtype_holds(TILE_U16, 65536));
    for (tile_dtype d :
         {TILE_I8, TILE_I16, TILE_I32, TILE_I64, TILE_U8, TILE_U16, TILE_U32, TILE_U64, TILE_BOOL})
        for (double x : {std::nan(""), HUGE_VAL, -HUGE_VAL}) EXPECT_FALSE(tile_dtype_holds(d, x));
    EXPECT_TRUE(tile_dtype_holds(TILE_F32, std::nan("")));
}

template <typename T> T put(tile_dtype dtype, double value) {
    T x = T(99);
    tile_dtype_put(dtype, value, &x);
    return x;
}

TEST(DtypeTest, PutRoundsToNearestEvenAndStaysInRange) {
    EXPECT_EQ(0.1f, put<float>(TILE_F32, 0.1));
    EXPECT_EQ(2, put<int32_t>(TILE_I32, 2.5));
    EXPECT_EQ(4, put<int32_t>(TILE_I32, 3.5));
    EXPECT_EQ(-2, put<int32_t>(TILE_I32, -2.5));
    EXPECT_EQ(INT32_MAX, put<int32_t>(TILE_I32, 1e300));
    EXPECT_EQ(INT32_MIN, put<int32_t>(TILE_I32, -HUGE_VAL));
    EXPECT_EQ(INT64_MAX, put<int64_t>(TILE_I64, 9223372036854775808.0));
    EXPECT_EQ(INT64_MIN, put<int64_t>(TILE_I64, -1e300));
    EXPECT_EQ(UINT64_MAX, put<uint64_t>(TILE_U64, 1e300));
    EXPECT_EQ(255, put<uint8_t>(TILE_U8, 255.6));
    EXPECT_EQ(0u, put<uint32_t>(TILE_U32, -3));
    EXPECT_EQ(127, put<int8_t>(TILE_I8, 127.5));
    EXPECT_EQ(-128, put<int8_t>(TILE_I8, -1e9));
    EXPECT_EQ(-2, put<int16_t>(TILE_I16, -2.5));
    EXPECT_EQ(INT16_MAX, put<int16_t>(TILE_I16, 40000));
    EXPECT_EQ(65535, put<uint16_t>(TILE_U16, 65535.4));
    EXPECT_EQ(4294967295u, put<uint32_t>(TILE_U32, 4294967295.0));
    EXPECT_EQ(0, put<int32_t>(TILE_I32, std::nan("")));
    EXPECT_EQ(1, put<uint8_t>(TILE_BOOL, 0.25));
    const uint64_t big = 1ull << 63;
    EXPECT_EQ(9223372036854775808.0, tile_dtype_get(TILE_U64, &big));
    const int32_t minus = -5;
    EXPECT_EQ(-5.0, tile_dtype_get(TILE_I32, &minus));
}

} // namespace
