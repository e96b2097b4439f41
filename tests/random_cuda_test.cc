/* random_cuda_test.cc: random numbers against cuRAND's own header compiled for the host: bits and
 * uniforms equal, normals within rounding. */
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

#define __device__
#define __host__
#define __forceinline__ inline
#include <vector_functions.h>
#include <vector_types.h>
#define QUALIFIERS [[maybe_unused]] static inline
#include <curand_kernel.h>

namespace {

typedef curandStatePhilox4_32_10_t State;

/* Draws 0..9 of one seed and number by calling cuRAND so often. */
template <typename T> void check(int row, tile_dtype dtype, T (*call)(State *), double tolerance) {
    constexpr int draws = 10;
    std::mt19937_64 random(row + 10 * dtype);
    for (int i = 0; i < 3000; i++) {
        const uint64_t seed = i % 3 ? random() : i, number = i % 2 ? random() : i;
        State state;
        curand_init(seed, number, 0, &state);
        std::vector<int64_t> a(draws, (int64_t)seed), b(draws, (int64_t)number), c(draws);
        for (int k = 0; k < draws; k++) c[k] = k;
        std::vector<T> y(draws);
        const void *in[] = {a.data(), b.data(), c.data()};
        const tile_op *op = &tile_ops_random.ops[row];
        const tile_dtype types[] = {TILE_I64, TILE_I64, TILE_I64};
        op->strip(op, types, dtype)(in, y.data(), draws);
        for (int k = 0; k < draws; k++) {
            const T wanted = call(&state);
            ASSERT_LE(std::fabs((double)y[k] - (double)wanted), tolerance)
                << "seed " << seed << " number " << number << " draw " << k << ": " << y[k]
                << ", wanted " << wanted;
        }
    }
}

TEST(Curand, BitsAreEqual) {
    check<unsigned>(TILE_RANDOM_BITS, TILE_U32, curand, 0);
}

TEST(Curand, UniformsAreEqual) {
    check<float>(TILE_RANDOM_UNIFORM, TILE_F32, curand_uniform, 0);
    check<double>(TILE_RANDOM_UNIFORM, TILE_F64, curand_uniform_double, 0);
}

/* Up to sqrt(64 log 2) = 6.7 and sqrt(108 log 2) = 8.7, an ulp or two of each factor. */
TEST(Curand, NormalsAreEqualWithinRounding) {
    check<float>(TILE_RANDOM_NORMAL, TILE_F32, curand_normal, 6.7 * 4 * 0x1p-23);
    check<double>(TILE_RANDOM_NORMAL, TILE_F64, curand_normal_double, 8.7 * 4 * 0x1p-52);
}

TEST(Curand, LaterDrawsAreReachedDirectly) {
    for (uint64_t offset : {5ull, 1ull << 33, (1ull << 62) + 7}) {
        State state;
        curand_init(99, 7, offset, &state);
        const int64_t a = 99, b = 7, c = (int64_t)offset;
        const void *in[] = {&a, &b, &c};
        const tile_op *op = &tile_ops_random.ops[TILE_RANDOM_BITS];
        const tile_dtype types[] = {TILE_I64, TILE_I64, TILE_I64};
        uint32_t y = 0;
        op->strip(op, types, TILE_U32)(in, &y, 1);
        EXPECT_EQ(y, curand(&state)) << offset;
    }
}

} // namespace
