/* linalg_test.cc: dot and matmul against plain loops, the order of sums, gradients, errors. */
#include <cmath>
#include <random>

#include "tests/kernel_run.h"

namespace {

template <typename T> std::vector<T> draw(std::mt19937_64 &rng, int64_t n) {
    std::vector<T> v(static_cast<size_t>(n));
    for (T &x : v) {
        if (std::is_floating_point<T>::value)
            x = static_cast<T>(static_cast<double>(rng() % 2000001) / 1e6 - 1);
        else
            x = static_cast<T>(rng());
    }
    return v;
}

template <typename T> T multiply_add(T sum, T a, T b) {
    if (std::is_floating_point<T>::value) {
        const T product = a * b;
        return sum + product;
    }
    return static_cast<T>(static_cast<uint64_t>(sum) +
                          static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <typename T> class LinalgTest : public testing::Test {};
typedef testing::Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                       uint32_t, uint64_t>
    AllTypes;
TYPED_TEST_SUITE(LinalgTest, AllTypes);

/* Every bit: one accumulator per element, k ascending, at sizes around the blocks of 64
 * columns. */
TYPED_TEST(LinalgTest, MatmulSumsInOneAccumulatorInOrder) {
    typedef TypeParam T;
    std::mt19937_64 rng(1);
    for (int64_t m : {1, 3, 4, 5, 9})
        for (int64_t k : {1, 2, 7, 64})
            for (int64_t n : {1, 17, 63, 64, 65}) {
                const std::vector<T> a = draw<T>(rng, 2 * m * k), b = draw<T>(rng, 2 * k * n);
                std::vector<T> want;
                for (int64_t e = 0; e < 2 * m * n; e++) {
                    const int64_t z = e / (m * n), i = e / n % m, j = e % n;
                    T sum = 0;
                    for (int64_t p = 0; p < k; p++)
                        sum = multiply_add(sum, a[static_cast<size_t>((z * m + i) * k + p)],
                                           b[static_cast<size_t>((z * k + p) * n + j)]);
                    want.push_back(sum);
                }
                TileCall<T> c;
                c.add({2, m, k}, a);
                c.add({2, k, n}, b);
                expect_bits(want, c.run("matmul", {2, m, n}), "matmul");
            }
}

TYPED_TEST(LinalgTest, DotOfSmallWholeNumbersIsExact) {
    typedef TypeParam T;
    std::mt19937_64 rng(2);
    for (const Ints &shape : {Ints{}, Ints{1}, Ints{31}, Ints{32}, Ints{33}, Ints{1025}, Ints{5000},
                              Ints{3, 5}, Ints{2, 3, 4}}) {
        std::vector<T> a(static_cast<size_t>(count_of(shape))), b = a;
        uint64_t want = 0;
        for (size_t k = 0; k < a.size(); k++) {
            a[k] = static_cast<T>(rng() % 10);
            b[k] = static_cast<T>(rng() % 10);
            want += static_cast<uint64_t>(a[k]) * static_cast<uint64_t>(b[k]);
        }
        TileCall<T> c;
        c.add(shape, a);
        c.add(shape, b);
        expect_bits(std::vector<T>{static_cast<T>(want)}, c.run("dot", {}), "dot");
    }
}

/* 32 additions to an accumulator, 5 to combine, one rounding of each product; then float64. */
TEST(Linalg, FloatDotIsWithinTheBoundOfItsOrder) {
    std::mt19937_64 rng(3);
    const std::vector<float> a = draw<float>(rng, 100000), b = draw<float>(rng, 100000);
    double want = 0, size = 0;
    for (size_t k = 0; k < a.size(); k++) {
        const double product = static_cast<double>(a[k]) * static_cast<double>(b[k]);
        want += product;
        size += std::fabs(product);
    }
    TileCall<float> c;
    c.add({100000}, a);
    c.add({100000}, b);
    const double error = std::fabs(static_cast<double>(c.run("dot", {})[0]) - want);
    if (!(error <= 39 * 0x1p-24 * size)) FAIL() << error;
}

/* y = f(a, b) with upstream gradients 1, 2, 3, ... */
void expect_program(Field a, Field b, const Ints &y_shape, const std::function<tile(tile, tile)> &f,
                    const std::vector<double> &y, const std::vector<double> &da,
                    const std::vector<double> &db) {
    Field out = Field::zeros(y_shape);
    KernelRun run({&a, &b, &out}, [&](tile_builder *, const std::vector<tile_param> &p) {
        const tile x = tile_load(p[0], shape_of(a.shape), TILE_AT_ZERO);
        const tile z = tile_load(p[1], shape_of(b.shape), TILE_AT_ZERO);
        tile_store(p[2], f(x, z), TILE_AT_ZERO);
    });
    for (size_t k = 0; k < out.grad.size(); k++) out.grad[k] = static_cast<double>(k + 1);
    run.backward({1});
    EXPECT_EQ(y, out.value);
    EXPECT_EQ(da, a.grad);
    EXPECT_EQ(db, b.grad);
}

TEST(Linalg, MatmulInAKernel) {
    /* a = [[1, 2], [3, 4]], b = [[5, 6], [7, 8]], dy = [[1, 2], [3, 4]]:
     * da = dy b^T = [[17, 23], [39, 53]], db = a^T dy = [[10, 14], [14, 20]] */
    expect_program(Field({2, 2}, {1, 2, 3, 4}), Field({2, 2}, {5, 6, 7, 8}), {2, 2},
                   [](tile a, tile b) { return tile_matmul(a, b); }, {19, 22, 43, 50},
                   {17, 23, 39, 53}, {10, 14, 14, 20});
    /* a [1, 1, 2], b [1, 2, 3], dy = 1, 2, 3 */
    expect_program(Field({1, 1, 2}, {1, 2}), Field({1, 2, 3}, {1, 2, 3, 4, 5, 6}), {1, 1, 3},
                   [](tile a, tile b) { return tile_matmul(a, b); }, {9, 12, 15}, {14, 32},
                   {1, 2, 3, 2, 4, 6});
}

TEST(Linalg, DotInAKernel) {
    expect_program(Field({3}, {1, 2, 3}), Field({3}, {4, 5, 6}), {},
                   [](tile a, tile b) { return tile_dot(a, b); }, {32}, {4, 5, 6}, {1, 2, 3});
}

TEST(Linalg, DotOfATileWithItselfDoublesTheGradient) {
    expect_program(Field({2}, {3, 4}), Field({1}, {0}), {},
                   [](tile a, tile) { return tile_dot(a, a); }, {25}, {6, 8}, {0});
}

TEST(Linalg, ErrorsNameBothOperands) {
    expect_error(TILE_E_SHAPE, "matmul: a is [3, 4], b is [3, 4]",
                 [](tile x) { tile_matmul(x, x); });
    expect_error(TILE_E_SHAPE, "dot: a is [3, 4], b is [4, 3]",
                 [](tile x) { tile_dot(x, tile_transpose(x)); });
    expect_error(TILE_E_DTYPE, "matmul: a is float64, b is float32",
                 [](tile x) { tile_matmul(x, tile_zeros(x.builder, TILE_F32, TILE_SHAPE(4, 2))); });
}

} // namespace
