/* elementwise_test.cc: the strips of every row and type: same bits for every length, place and
 * instruction set; integers at their ends; casts; descriptors. */
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/strips_scalar.h"

namespace {

constexpr int kLongest = 70;
constexpr unsigned char kGuard = 0xA5;

struct Set {
    const char *name;
    const tile_strips *strips, *scalar;
};

/* The instruction sets that this machine runs. */
std::vector<Set> sets() {
    std::vector<Set> list = {{"base", &tile_strips_base, &strips_scalar}};
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        list.push_back({"avx2", &tile_strips_avx2, &strips_scalar_fma});
#endif
    return list;
}

const tile_op &op_of(int row) {
    return tile_ops_elementwise.ops[row];
}

bool is_maths(int row) {
    static const int rows[] = {
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define COMPARE(...)
#define SELECT(...)
#define CAST(...)
#define MATH1(name, ...) TILE_ROW_##name,
#define MATH2(name, ...) TILE_ROW_##name,
#include "ops/elementwise/elementwise.def"
#undef UNARY
#undef BINARY
#undef TERNARY
#undef COMPARE
#undef SELECT
#undef CAST
#undef MATH1
#undef MATH2
    };
    for (int r : rows)
        if (r == row) return true;
    return false;
}

/* Types of operand k and of the result when the row's kernel is chosen by dtype. */
tile_dtype in_dtype(int row, int k, tile_dtype dtype) {
    return row == TILE_ROW_select && k == 0 ? TILE_BOOL : dtype;
}
tile_dtype out_dtype(int row, tile_dtype dtype) {
    return row >= TILE_ROW_less && row <= TILE_ROW_not_equal ? TILE_BOOL : dtype;
}

/* Bytes of n elements: plain numbers, then ends of the range, special and random bits. */
std::vector<unsigned char> numbers(tile_dtype dtype, int n, std::mt19937_64 &random) {
    static const double special[] = {0.0,   -0.0, 1.0,    -1.0,    INFINITY, -INFINITY,
                                     NAN,   0.5,  1e-310, -1e-310, 1e-45,    710.,
                                     -710., 89.,  1e38,   1e308};
    const size_t size = tile_dtype_size(dtype);
    std::vector<unsigned char> bytes(n * size);
    for (int i = 0; i < n; i++) {
        unsigned char *at = bytes.data() + i * size;
        const uint64_t bits = random();
        if (dtype == TILE_BOOL) {
            *at = bits & 1;
        } else if (!tile_is_float(dtype)) {
            const uint64_t shown = i % 3 ? bits >> (random() % 64) : bits;
            const uint64_t value = i % 3 == 1 ? ~shown : shown;
            std::memcpy(at, &value, size);
        } else if (i % 4 == 3) {
            std::memcpy(at, &bits, size);
        } else {
            const double plain = std::ldexp((double)bits, -62) * 3 - 6;
            tile_dtype_put(dtype, i % 4 == 2 ? special[bits % 16] : plain, at);
        }
    }
    return bytes;
}

/* Bits equal, but a NaN equals a NaN. */
bool same(tile_dtype dtype, const unsigned char *x, const unsigned char *y) {
    if (!std::memcmp(x, y, tile_dtype_size(dtype))) return true;
    return tile_is_float(dtype) && std::isnan(tile_dtype_get(dtype, x)) &&
           std::isnan(tile_dtype_get(dtype, y));
}

std::vector<unsigned char> run(tile_strip strip, const std::vector<std::vector<unsigned char>> &in,
                               size_t size, int n) {
    std::vector<unsigned char> y(n * size, kGuard);
    const void *at[4] = {};
    for (size_t k = 0; k < in.size(); k++) at[k] = in[k].data();
    strip(at, y.data(), n);
    return y;
}

std::string where(const Set &set, const std::string &name, tile_dtype dtype, int i) {
    return std::string(set.name) + " " + name + " " + tile_dtype_name(dtype) + " element " +
           std::to_string(i);
}

/* Every length from 0 to kLongest, from every offset within a vector, between guard bytes. */
void check_lengths(const Set &set, const std::string &name, tile_strip strip,
                   const std::vector<tile_dtype> &types, tile_dtype out,
                   const std::vector<std::vector<unsigned char>> &in,
                   const std::vector<unsigned char> &wanted) {
    const size_t size = tile_dtype_size(out);
    for (int n = 0; n <= kLongest; n++) {
        const int first = n % 9;
        std::vector<unsigned char> y((kLongest + 20) * size, kGuard);
        const void *at[4] = {};
        for (size_t k = 0; k < in.size(); k++)
            at[k] = in[k].data() + first * tile_dtype_size(types[k]);
        strip(at, y.data() + 3 * size, n);
        for (int i = 0; i < n; i++)
            ASSERT_TRUE(same(out, &y[(3 + i) * size], &wanted[(first + i) * size]))
                << where(set, name, out, i) << " of " << n;
        for (size_t i = 0; i < y.size(); i++) {
            const bool written = i >= 3 * size && i < (3 + n) * size;
            ASSERT_TRUE(written || y[i] == kGuard) << where(set, name, out, n);
        }
    }
}

TEST(Strips, GiveTheScalarBitsForEveryLengthAndPlace) {
    std::mt19937_64 random(7);
    for (const Set &set : sets())
        for (int row = 0; row < TILE_ROWS; row++)
            for (int d = 0; d < TILE_DTYPES; d++) {
                const tile_dtype dtype = (tile_dtype)d, out = out_dtype(row, dtype);
                const tile_strip strip = set.strips->row[row][d];
                ASSERT_EQ(!strip, !set.scalar->row[row][d]);
                if (!strip) continue;
                std::vector<std::vector<unsigned char>> in;
                std::vector<tile_dtype> types;
                for (int k = 0; k < op_of(row).n_in; k++) {
                    types.push_back(in_dtype(row, k, dtype));
                    in.push_back(numbers(types[k], kLongest + 9, random));
                }
                const auto wanted =
                    run(set.scalar->row[row][d], in, tile_dtype_size(out), kLongest + 9);
                check_lengths(set, op_of(row).name, strip, types, out, in, wanted);
            }
}

TEST(Strips, MayWriteOverAnOperand) {
    std::mt19937_64 random(8);
    for (const Set &set : sets())
        for (int row = 0; row < TILE_ROWS; row++)
            for (int d = 0; d < TILE_DTYPES; d++) {
                const tile_dtype dtype = (tile_dtype)d, out = out_dtype(row, dtype);
                const tile_strip strip = set.strips->row[row][d];
                if (!strip) continue;
                std::vector<std::vector<unsigned char>> in;
                for (int k = 0; k < op_of(row).n_in; k++)
                    in.push_back(numbers(in_dtype(row, k, dtype), kLongest, random));
                const auto wanted = run(strip, in, tile_dtype_size(out), kLongest);
                for (int over = 0; over < op_of(row).n_in; over++) {
                    if (tile_dtype_size(in_dtype(row, over, dtype)) != tile_dtype_size(out))
                        continue;
                    auto copy = in;
                    const void *at[4] = {};
                    for (size_t k = 0; k < copy.size(); k++) at[k] = copy[k].data();
                    strip(at, copy[over].data(), kLongest);
                    for (int i = 0; i < kLongest; i++)
                        ASSERT_TRUE(same(out, &copy[over][i * tile_dtype_size(out)],
                                         &wanted[i * tile_dtype_size(out)]))
                            << where(set, op_of(row).name, dtype, i) << " over " << over;
                }
            }
}

TEST(Strips, OfRowsWithoutMathsAreTheSameInEveryInstructionSet) {
    std::mt19937_64 random(9);
    for (const Set &set : sets())
        for (int row = 0; row < TILE_ROWS; row++)
            for (int d = 0; d < TILE_DTYPES; d++) {
                const tile_dtype dtype = (tile_dtype)d, out = out_dtype(row, dtype);
                if (is_maths(row) || !set.strips->row[row][d]) continue;
                std::vector<std::vector<unsigned char>> in;
                for (int k = 0; k < op_of(row).n_in; k++)
                    in.push_back(numbers(in_dtype(row, k, dtype), 999, random));
                const size_t size = tile_dtype_size(out);
                const auto y = run(set.strips->row[row][d], in, size, 999);
                const auto wanted = run(tile_strips_base.row[row][d], in, size, 999);
                for (int i = 0; i < 999; i++)
                    ASSERT_TRUE(same(out, &y[i * size], &wanted[i * size]))
                        << where(set, op_of(row).name, dtype, i);
            }
}

/* Units in the last place between two floats, as counts of ordered bit patterns. */
int64_t ulps(float x, float y) {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y) ? 0 : INT64_MAX;
    int32_t i, j;
    std::memcpy(&i, &x, 4);
    std::memcpy(&j, &y, 4);
    const int64_t p = i < 0 ? (int64_t)INT32_MIN - i : i, q = j < 0 ? (int64_t)INT32_MIN - j : j;
    return p > q ? p - q : q - p;
}

/* SLEEF promises 1 ulp; the float64 value is right in all of float32's bits. sigmoid has three
 * roundings more. */
TEST(Strips, OfMathsInFloat32AreWithinThreeUlpOfFloat64) {
    std::mt19937_64 random(10);
    constexpr int n = 4000;
    for (const Set &set : sets())
        for (int row = 0; row < TILE_ROWS; row++) {
            if (!is_maths(row)) continue;
            std::vector<std::vector<unsigned char>> in, wide;
            for (int k = 0; k < op_of(row).n_in; k++) {
                in.push_back(numbers(TILE_F32, n, random));
                std::vector<unsigned char> w(n * sizeof(double));
                for (int i = 0; i < n; i++)
                    tile_dtype_put(TILE_F64, tile_dtype_get(TILE_F32, &in[k][i * 4]), &w[i * 8]);
                wide.push_back(w);
            }
            const auto y = run(set.strips->row[row][TILE_F32], in, 4, n);
            const auto wanted = run(set.strips->row[row][TILE_F64], wide, 8, n);
            for (int i = 0; i < n; i++) {
                const float got = (float)tile_dtype_get(TILE_F32, &y[i * 4]);
                const float right = (float)tile_dtype_get(TILE_F64, &wanted[i * 8]);
                ASSERT_LE(ulps(got, right), 3) << where(set, op_of(row).name, TILE_F32, i) << ": "
                                               << tile_dtype_get(TILE_F32, &in[0][i * 4])
                                               << " gives " << got << ", wanted " << right;
            }
        }
}

template <typename T> T one(int row, tile_dtype dtype, T a, T b) {
    T y[2];
    const T a2[2] = {a, a}, b2[2] = {b, b};
    const void *in[] = {a2, b2};
    const tile_dtype types[] = {dtype, dtype};
    op_of(row).strip(&op_of(row), types, dtype)(in, y, 2);
    EXPECT_EQ(std::memcmp(y, y + 1, sizeof(T)), 0);
    return y[0];
}

template <typename T> void check_integers(tile_dtype dtype) {
    using Wide = __int128;
    const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    const T ends[] = {low, (T)(low + 1), (T)-7, (T)-2, (T)-1, 0, 1, 2, 3, 7, (T)(high - 1), high};
    for (T a : ends)
        for (T b : ends) {
            const Wide x = a, y = b;
            EXPECT_EQ(one<T>(TILE_ROW_add, dtype, a, b), (T)(x + y));
            EXPECT_EQ(one<T>(TILE_ROW_sub, dtype, a, b), (T)(x - y));
            EXPECT_EQ(one<T>(TILE_ROW_mul, dtype, a, b), (T)((unsigned __int128)x * y));
            EXPECT_EQ(one<T>(TILE_ROW_min, dtype, a, b), a < b ? a : b);
            EXPECT_EQ(one<T>(TILE_ROW_max, dtype, a, b), a < b ? b : a);
            EXPECT_EQ(one<T>(TILE_ROW_neg, dtype, a, b), (T)-x);
            EXPECT_EQ(one<T>(TILE_ROW_abs, dtype, a, b), (T)(x < 0 ? -x : x));
            EXPECT_EQ(one<T>(TILE_ROW_sign, dtype, a, b), (T)((x > 0) - (x < 0)));
            Wide floor = y ? x / y : 0;
            if (y && floor * y != x && (x < 0) != (y < 0)) floor--;
            EXPECT_EQ(one<T>(TILE_ROW_floor_div, dtype, a, b), (T)floor) << +a << " " << +b;
            EXPECT_EQ(one<T>(TILE_ROW_mod, dtype, a, b), (T)(y ? x - floor * y : 0))
                << +a << " " << +b;
        }
}

TEST(Integers, WrapAndDivideDownAtTheirEnds) {
    check_integers<int8_t>(TILE_I8);
    check_integers<int16_t>(TILE_I16);
    check_integers<uint16_t>(TILE_U16);
    check_integers<int32_t>(TILE_I32);
    check_integers<int64_t>(TILE_I64);
    check_integers<uint8_t>(TILE_U8);
    check_integers<uint32_t>(TILE_U32);
    check_integers<uint64_t>(TILE_U64);
}

template <typename From, typename To> To cast(tile_dtype from, tile_dtype to, From a) {
    To y;
    const void *in[] = {&a};
    const tile_op *op = &op_of(TILE_ROW_cast);
    op->strip(op, &from, to)(in, &y, 1);
    return y;
}

TEST(Casts, FromRealsGoTowardsZeroAndStayWithinTheEnds) {
    const auto i32 = [](double a) { return cast<double, int32_t>(TILE_F64, TILE_I32, a); };
    EXPECT_EQ(i32(2.9), 2);
    EXPECT_EQ(i32(-2.9), -2);
    EXPECT_EQ(i32(2147483647.5), INT32_MAX);
    EXPECT_EQ(i32(-2147483648.9), INT32_MIN);
    EXPECT_EQ(i32(1e300), INT32_MAX);
    EXPECT_EQ(i32(-INFINITY), INT32_MIN);
    EXPECT_EQ(i32(NAN), 0);
    const auto u8 = [](float a) { return cast<float, uint8_t>(TILE_F32, TILE_U8, a); };
    EXPECT_EQ(u8(255.9f), 255);
    EXPECT_EQ(u8(256), 255);
    EXPECT_EQ(u8(-0.5f), 0);
    EXPECT_EQ(u8(-3), 0);
    const auto i64 = [](float a) { return cast<float, int64_t>(TILE_F32, TILE_I64, a); };
    EXPECT_EQ(i64(9.2233715e18f), 9223371487098961920);
    EXPECT_EQ(i64(9.2233720e18f), INT64_MAX);
    const auto u64 = [](double a) { return cast<double, uint64_t>(TILE_F64, TILE_U64, a); };
    EXPECT_EQ(u64(18446744073709549568.0), 18446744073709549568u);
    EXPECT_EQ(u64(1e20), UINT64_MAX);
}

TEST(Casts, FromIntegersWrapAndRoundToNearest) {
    EXPECT_EQ((cast<int64_t, int32_t>(TILE_I64, TILE_I32, (int64_t)1 << 32 | 5)), 5);
    EXPECT_EQ((cast<int32_t, uint8_t>(TILE_I32, TILE_U8, -1)), 255);
    EXPECT_EQ((cast<int32_t, float>(TILE_I32, TILE_F32, 16777217)), 16777216.0f);
    EXPECT_EQ((cast<uint64_t, float>(TILE_U64, TILE_F32, UINT64_MAX)), 0x1p64f);
    EXPECT_EQ((cast<double, float>(TILE_F64, TILE_F32, 1e300)), INFINITY);
}

TEST(Casts, ToBoolAskWhetherItIsNotZero) {
    EXPECT_EQ((cast<double, uint8_t>(TILE_F64, TILE_BOOL, 0.25)), 1);
    EXPECT_EQ((cast<double, uint8_t>(TILE_F64, TILE_BOOL, -0.0)), 0);
    EXPECT_EQ((cast<double, uint8_t>(TILE_F64, TILE_BOOL, NAN)), 1);
    EXPECT_EQ((cast<int64_t, uint8_t>(TILE_I64, TILE_BOOL, (int64_t)1 << 40)), 1);
    EXPECT_EQ((cast<uint8_t, float>(TILE_BOOL, TILE_F32, 1)), 1.0f);
}

TEST(Casts, GiveTheScalarBitsForEveryLengthAndPairOfTypes) {
    std::mt19937_64 random(11);
    for (const Set &set : sets())
        for (int from = 0; from < TILE_DTYPES; from++)
            for (int to = 0; to < TILE_DTYPES; to++) {
                const std::vector<tile_dtype> types = {(tile_dtype)from};
                const tile_dtype out = (tile_dtype)to;
                const std::vector<std::vector<unsigned char>> in = {
                    numbers(types[0], kLongest + 9, random)};
                std::vector<unsigned char> wanted;
                for (int i = 0; i < kLongest + 9; i++) {
                    const size_t size = tile_dtype_size(types[0]);
                    const auto y =
                        run(set.scalar->cast[from][to],
                            {{&in[0][i * size], &in[0][i * size] + size}}, tile_dtype_size(out), 1);
                    wanted.insert(wanted.end(), y.begin(), y.end());
                }
                check_lengths(set, std::string("cast ") + tile_dtype_name(types[0]),
                              set.strips->cast[from][to], types, out, in, wanted);
            }
}

TEST(Guarded, AreZeroWhereTheFirstOperandIs) {
    EXPECT_EQ(one<double>(TILE_ROW_guarded_mul, TILE_F64, 0, INFINITY), 0);
    EXPECT_EQ(one<double>(TILE_ROW_guarded_mul, TILE_F64, -0.0, NAN), 0);
    EXPECT_EQ(one<double>(TILE_ROW_guarded_mul, TILE_F64, 2, 3), 6);
    EXPECT_TRUE(std::isnan(one<double>(TILE_ROW_guarded_mul, TILE_F64, NAN, 3)));
    EXPECT_EQ(one<double>(TILE_ROW_guarded_div, TILE_F64, 0, 0), 0);
    EXPECT_EQ(one<double>(TILE_ROW_guarded_div, TILE_F64, 3, 2), 1.5);
}

TEST(Descriptors, SayADerivativeWhereTheySayThatThereIsOne) {
    for (int row = 0; row < TILE_ROWS; row++) {
        const tile_op &op = op_of(row);
        EXPECT_EQ(op.kind, TILE_OP_ELEMENTWISE) << op.name;
        EXPECT_TRUE(op.math && op.infer && op.strip) << op.name;
        EXPECT_EQ(tile_op_find(op.name), &op);
        for (int k = 0; k < TILE_OP_IN; k++) {
            EXPECT_EQ(op.grad[k] == TILE_GRAD_FULL, op.derivative[k] != nullptr) << op.name;
            EXPECT_EQ(op.grad[k] != TILE_GRAD_ABSENT, k < op.n_in) << op.name;
            EXPECT_EQ(op.low[k] < op.high[k], k < op.n_in) << op.name;
        }
    }
}

TEST(Registry, FindsEachOpByNameAndNoOther) {
    int count = 0;
    for (const tile_op *op; (op = tile_op_at(count)); count++)
        EXPECT_EQ(tile_op_find(op->name), op);
    EXPECT_GT(count, TILE_ROWS);
    EXPECT_EQ(tile_op_at(-1), nullptr);
    EXPECT_EQ(tile_op_find("sine"), nullptr);
    EXPECT_EQ(tile_op_find(""), nullptr);
}

} // namespace
