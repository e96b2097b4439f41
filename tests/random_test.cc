/* random_test.cc: random numbers: published words, the same bits for every length and instruction
 * set, moments. The comparison with cuRAND itself is random_cuda_test.cc. */
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/core_api.h"
#include "core/dtype.h"
#include "core/lane.h"
extern "C" {
#include "ops/random/random_strips.h"
}

namespace {

struct Operands {
    std::vector<int64_t> seed, number, draw;
    explicit Operands(int n) : seed(n), number(n), draw(n) {}
};

Operands arbitrary(int n, uint64_t key) {
    Operands in(n);
    std::mt19937_64 random(key);
    for (int i = 0; i < n; i++) {
        in.seed[i] = (int64_t)random();
        in.number[i] = i % 2 ? (int64_t)random() : i;
        in.draw[i] = (int64_t)(random() % (i % 5 ? 9 : UINT64_MAX));
    }
    return in;
}

template <typename T> std::vector<T> run(tile_strip strip, const Operands &in, int first, int n) {
    std::vector<T> y(n);
    const void *at[] = {&in.seed[first], &in.number[first], &in.draw[first]};
    strip(at, y.data(), n);
    return y;
}

std::vector<const tile_random_strips *> sets() {
    std::vector<const tile_random_strips *> list = {&tile_random_base};
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        list.push_back(&tile_random_avx2);
#endif
    return list;
}

TEST(Random, GivesThePublishedWordsOfPhilox) {
    Operands in(4);
    in.draw = {0, 1, 2, 3};
    for (const auto *set : sets())
        EXPECT_EQ((run<uint32_t>(set->row[TILE_RANDOM_BITS][TILE_U32], in, 0, 4)),
                  (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

/* Whole strips against strips of one element. */
template <typename T>
void check_lengths(tile_strip strip, const tile_random_strips *set, int row, tile_dtype dtype) {
    const Operands in = arbitrary(300, 3);
    std::vector<T> wanted;
    for (int i = 0; i < 300; i++) wanted.push_back(run<T>(strip, in, i, 1)[0]);
    for (int n = 0; n <= 200; n += n < 70 ? 1 : 13) {
        const auto y = run<T>(strip, in, n % 7, n);
        ASSERT_FALSE(n && std::memcmp(y.data(), &wanted[n % 7], n * sizeof(T))) << n;
    }
    if (row == TILE_RANDOM_NORMAL) return;
    const auto other = run<T>(tile_random_base.row[row][dtype], in, 0, 300);
    ASSERT_FALSE(std::memcmp(other.data(), wanted.data(), 300 * sizeof(T))) << set;
}

TEST(Random, GivesTheSameBitsForEveryLengthAndPlace) {
    for (const auto *set : sets())
        for (int row = 0; row < TILE_RANDOM_OPS; row++)
            for (int d = 0; d < TILE_DTYPES; d++) {
                const tile_strip strip = set->row[row][d];
                if (!strip) continue;
                if (d == TILE_F64) {
                    check_lengths<double>(strip, set, row, TILE_F64);
                } else {
                    check_lengths<uint32_t>(strip, set, row, (tile_dtype)d);
                }
            }
}

TEST(Random, MayWriteOverAnOperand) {
    Operands in = arbitrary(150, 4);
    for (const auto *set : sets()) {
        const tile_strip strip = set->row[TILE_RANDOM_NORMAL][TILE_F64];
        const auto wanted = run<double>(strip, in, 0, 150);
        Operands copy = in;
        const void *at[] = {copy.seed.data(), copy.number.data(), copy.draw.data()};
        strip(at, copy.number.data(), 150);
        EXPECT_FALSE(std::memcmp(copy.number.data(), wanted.data(), 150 * sizeof(double)));
    }
}

template <typename T> void check_moments(tile_dtype dtype) {
    constexpr int n = 200000;
    Operands in(n);
    for (int i = 0; i < n; i++) in.seed[i] = 42, in.number[i] = i, in.draw[i] = 0;
    for (const auto *set : sets()) {
        double mean = 0, square = 0;
        for (T u : run<T>(set->row[TILE_RANDOM_UNIFORM][dtype], in, 0, n)) {
            ASSERT_TRUE(u > 0 && u <= 1);
            mean += u / n;
        }
        EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(1 / 12. / n));
        mean = 0;
        for (T x : run<T>(set->row[TILE_RANDOM_NORMAL][dtype], in, 0, n)) {
            mean += x / n;
            square += x * x / n;
        }
        EXPECT_NEAR(mean, 0, 5 / std::sqrt(n));
        EXPECT_NEAR(square, 1, 5 * std::sqrt(2. / n));
    }
}

TEST(Random, HasTheMomentsOfItsDistributions) {
    check_moments<float>(TILE_F32);
    check_moments<double>(TILE_F64);
}

} // namespace
