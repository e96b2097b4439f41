/* half_test.cc: the 16-bit floats' conversions, over all 65536 patterns of each: values, rounding
 * at and around every midpoint, specials. What they should be is worked out from exponent and
 * mantissa with ldexp and rint. */
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/core_api.h"
#include "core/dtype.h"

namespace {

/* A format: how many bits the exponent and the mantissa have. */
struct Format {
    tile_dtype dtype;
    int exponent, mantissa;
    int bias() const {
        return (1 << (exponent - 1)) - 1;
    }
};
const Format kFormats[] = {{TILE_F16, 5, 10}, {TILE_BF16, 8, 7}};

/* The number of a pattern. */
double value_of(const Format &f, unsigned bits) {
    const int e = static_cast<int>(bits >> f.mantissa) & ((1 << f.exponent) - 1);
    const int m = static_cast<int>(bits) & ((1 << f.mantissa) - 1);
    const double sign = bits >> 15 ? -1 : 1;
    if (e == (1 << f.exponent) - 1) return m ? std::nan("") : sign * HUGE_VAL;
    if (e == 0) return sign * std::ldexp(m, 1 - f.bias() - f.mantissa);
    return sign * std::ldexp(m + (1 << f.mantissa), e - f.bias() - f.mantissa);
}

/* The nearest number of the format, ties to even, by its steps. */
double nearest(const Format &f, double x) {
    if (x == 0 || !std::isfinite(x)) return x;
    const int least = 1 - f.bias(), e = std::max(std::ilogb(x), least);
    const double step = std::ldexp(1, e - f.mantissa), y = std::rint(x / step) * step;
    return std::fabs(y) >= std::ldexp(1, f.bias() + 1) ? std::copysign(HUGE_VAL, x) : y;
}

unsigned put(const Format &f, double x) {
    uint16_t bits = 0xA5A5;
    tile_dtype_put(f.dtype, x, &bits);
    return bits;
}

unsigned put_single(const Format &f, float x) {
    return f.dtype == TILE_F16 ? tile_f16_of_f32(x).bits : tile_bf16_of_f32(x).bits;
}

float single(const Format &f, unsigned bits) {
    const uint16_t b = static_cast<uint16_t>(bits);
    return f.dtype == TILE_F16 ? tile_f32_of_f16({b}) : tile_f32_of_bf16({b});
}

bool same(double x, double y) {
    return std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
}

TEST(HalfTest, EveryPatternIsItsNumberAndComesBack) {
    for (const Format &f : kFormats)
        for (unsigned bits = 0; bits < 65536; bits++) {
            const uint16_t b = static_cast<uint16_t>(bits);
            const double x = tile_dtype_get(f.dtype, &b);
            ASSERT_TRUE(same(x, value_of(f, bits))) << tile_dtype_name(f.dtype) << " " << bits;
            ASSERT_TRUE(same(static_cast<double>(single(f, bits)), x)) << bits;
            const unsigned wide = put(f, x), narrow = put_single(f, single(f, bits));
            if (std::isnan(x)) { /* quiet, sign and payload kept */
                const unsigned quiet = bits | 1u << (f.mantissa - 1);
                ASSERT_EQ(quiet, narrow) << bits;
                ASSERT_EQ(quiet, wide) << bits;
            } else {
                ASSERT_EQ(bits, narrow);
                ASSERT_EQ(bits, wide);
            }
        }
}

/* Between each two neighbours: the middle goes to the even one, what is beside it to the nearer. */
TEST(HalfTest, EveryMidpointGoesToEvenAndItsNeighboursToTheNearer) {
    for (const Format &f : kFormats) {
        const unsigned infinity = ((1u << f.exponent) - 1) << f.mantissa;
        for (unsigned low = 0; low < infinity; low++)
            for (unsigned sign : {0u, 0x8000u}) {
                const double x = value_of(f, low);
                /* above the largest number the middle is where the next step would be */
                const double y =
                    low + 1 < infinity ? value_of(f, low + 1) : std::ldexp(1, f.bias() + 1);
                const double middle = (x + y) / 2, s = sign ? -1 : 1;
                const unsigned even = low & 1 ? low + 1 : low;
                ASSERT_EQ(even | sign, put(f, s * middle)) << tile_dtype_name(f.dtype) << low;
                ASSERT_EQ(low | sign, put(f, s * std::nextafter(middle, 0)));
                ASSERT_EQ((low + 1) | sign, put(f, s * std::nextafter(middle, HUGE_VAL)));
                const float m = static_cast<float>(s * middle);
                ASSERT_EQ(s * middle, static_cast<double>(m)); /* float32 holds it */
                ASSERT_EQ(even | sign, put_single(f, m));
                ASSERT_EQ(low | sign, put_single(f, std::nextafterf(m, 0)));
                ASSERT_EQ((low + 1) | sign,
                          put_single(f, std::nextafterf(m, static_cast<float>(s * HUGE_VAL))));
            }
    }
}

/* A float32 between would round these twice, to the wrong side. */
TEST(HalfTest, ADoubleIsRoundedOnce) {
    for (const Format &f : kFormats) {
        const double up = 1 + std::ldexp(1, -f.mantissa - 1) + std::ldexp(1, -40);
        EXPECT_EQ(1 + std::ldexp(1, -f.mantissa), value_of(f, put(f, up)));
        EXPECT_EQ(1, value_of(f, put_single(f, static_cast<float>(up)))); /* so it matters */
        const double down = 1 + std::ldexp(3, -f.mantissa - 1) - std::ldexp(1, -40);
        EXPECT_EQ(1 + std::ldexp(1, -f.mantissa), value_of(f, put(f, down)));
    }
}

TEST(HalfTest, RandomDoublesAndFloatsAgreeWithSteps) {
    uint64_t state = 88172645463325252u;
    for (const Format &f : kFormats)
        for (int k = 0; k < 400000; k++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            double x;
            float y;
            const uint32_t low = static_cast<uint32_t>(state);
            /* exponents around the format's own */
            const uint64_t e = 1023 - 40 + (state >> 20) % 80;
            const uint64_t bits = (state & 0x800fffffffffffffu) | e << 52;
            std::memcpy(&x, f.dtype == TILE_F16 ? &bits : &state, 8);
            std::memcpy(&y, &low, 4);
            const double wide = static_cast<double>(y);
            ASSERT_TRUE(std::isnan(x) || same(nearest(f, x), value_of(f, put(f, x)))) << x;
            ASSERT_TRUE(std::isnan(y) || same(nearest(f, wide), value_of(f, put_single(f, y))))
                << y;
        }
}

TEST(HalfTest, SpecialNumbers) {
    EXPECT_EQ(0x7c00u, put(kFormats[0], 65520)); /* the middle between the largest and 65536 */
    EXPECT_EQ(0x7bffu, put(kFormats[0], std::nextafter(65520, 0)));
    EXPECT_EQ(0x0001u, put(kFormats[0], std::ldexp(1, -24)));
    EXPECT_EQ(0x0000u, put(kFormats[0], std::ldexp(1, -25)));
    EXPECT_EQ(0x8000u, put(kFormats[0], -std::ldexp(1, -25)));
    EXPECT_EQ(0x8000u, put(kFormats[0], -std::numeric_limits<double>::denorm_min()));
    EXPECT_EQ(0x3c00u, put(kFormats[0], 1));
    EXPECT_EQ(0x3f80u, put(kFormats[1], 1));
    EXPECT_EQ(0x7f80u, put(kFormats[1], 3.4e38)); /* past the largest, within float32 */
    EXPECT_EQ(0x7f80u, put(kFormats[1], 1e300));
    EXPECT_EQ(0x0001u, put(kFormats[1], std::ldexp(1, -133)));
    EXPECT_EQ(0x0000u, put(kFormats[1], std::ldexp(1, -134)));
    EXPECT_EQ(0xfc00u, put(kFormats[0], -HUGE_VAL));
    EXPECT_EQ(0xff80u, put(kFormats[1], -HUGE_VAL));
    for (const Format &f : kFormats) {
        EXPECT_TRUE(std::isnan(value_of(f, put(f, std::nan("")))));
        EXPECT_TRUE(std::isnan(value_of(f, put_single(f, std::nanf("")))));
        /* a NaN whose payload lies below what is kept is no infinity */
        float x;
        const uint32_t low = 0xff800001u;
        std::memcpy(&x, &low, 4);
        EXPECT_TRUE(std::isnan(value_of(f, put_single(f, x))));
        EXPECT_TRUE(put_single(f, x) >> 15);
    }
}

/* An integer that float64 has no room for, beside a midpoint of bfloat16. */
TEST(HalfTest, IntegersOf64BitsAreRoundedOnce) {
    const uint64_t one = 1, middle = (one << 62) + (one << 54);
    const auto bf16 = [](double x) { return tile_bf16_of_f64(x).bits; };
    const unsigned at = bf16(std::ldexp(1, 62));
    EXPECT_EQ(at, bf16(tile_f64_of_u64_odd(middle)));
    EXPECT_EQ(at + 1, bf16(tile_f64_of_u64_odd(middle + 1)));
    EXPECT_EQ(at, bf16(static_cast<double>(middle + 1))); /* so it matters */
    EXPECT_EQ(at, bf16(tile_f64_of_u64_odd(middle - 1)));
    EXPECT_EQ(0x8000u | (at + 1), bf16(tile_f64_of_i64_odd(-static_cast<int64_t>(middle + 1))));
    EXPECT_EQ(bf16(std::ldexp(-1, 63)), bf16(tile_f64_of_i64_odd(INT64_MIN)));
    EXPECT_EQ(bf16(std::ldexp(1, 64)), bf16(tile_f64_of_u64_odd(UINT64_MAX)));
    for (uint64_t x : {one, one << 52, (one << 53) - 1, (one << 53) + 3})
        EXPECT_NEAR(static_cast<double>(x), tile_f64_of_u64_odd(x), 2048);
    EXPECT_EQ(9007199254740991.0, tile_f64_of_u64_odd((one << 53) - 1));
}

} // namespace
