/* reduce_test.cc: reductions: lane functions against a plain loop over groups, then conventions at
 * NaN, ties and zeros, then gradients through kernels. */
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/kernel_run.h"

namespace {

const float NaN = std::numeric_limits<float>::quiet_NaN();

/* For each result its elements of x, in row-major order. */
struct Groups {
    Ints shape; /* of the result */
    std::vector<std::vector<size_t>> members;
};

Groups groups_of(const Ints &x, int64_t mask) {
    Groups g;
    for (size_t d = 0; d < x.size(); d++)
        if (!(mask >> d & 1)) g.shape.push_back(x[d]);
    g.members.resize(static_cast<size_t>(count_of(g.shape)));
    for (int64_t e = 0; e < count_of(x); e++) {
        const Ints at = coordinates(x, e);
        int64_t o = 0;
        for (size_t d = 0; d < x.size(); d++)
            if (!(mask >> d & 1)) o = o * x[d] + at[d];
        g.members[static_cast<size_t>(o)].push_back(static_cast<size_t>(e));
    }
    return g;
}

template <typename T, typename R = T>
std::vector<R> reduce(const char *op, const Ints &shape, int64_t mask, const std::vector<T> &x) {
    TileCall<T, R> c;
    c.add(shape, x);
    c.call.attrs.n[0] = mask;
    return c.run(op, groups_of(shape, mask).shape);
}

const std::vector<Ints> SHAPES = {
    {},
    {1},
    {7},
    {31},
    {32},
    {33},
    {1024},
    {1025},
    {5000},
    {3, 5},
    {5, 1},
    {70, 35},
    {2, 1500},
    {1500, 2},
    {2, 3, 4},
    {40, 3, 33},
    {2, 3, 2, 3},
    {1, 4, 1},
    {2, 2, 3, 2, 2},
    {2, 1, 2, 3, 1, 2},
};

template <typename T> class ReduceTest : public testing::Test {};
typedef testing::Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                       uint32_t, uint64_t>
    AllTypes;
TYPED_TEST_SUITE(ReduceTest, AllTypes);

/* Small whole numbers: sums are exact in any order, or wrap. */
TYPED_TEST(ReduceTest, EveryAxisSetOfEveryShape) {
    typedef TypeParam T;
    std::mt19937_64 rng(1);
    for (const Ints &shape : SHAPES) {
        std::vector<T> x(static_cast<size_t>(count_of(shape)));
        for (T &v : x) v = static_cast<T>(rng() % 100);
        for (int64_t mask = 0; mask < 1 << shape.size(); mask++) {
            const Groups g = groups_of(shape, mask);
            std::vector<T> sum, least, most;
            Ints first_least, first_most;
            for (const std::vector<size_t> &group : g.members) {
                uint64_t s = 0;
                size_t low = 0, high = 0;
                for (size_t k = 0; k < group.size(); k++) {
                    s += static_cast<uint64_t>(x[group[k]]);
                    if (x[group[k]] < x[group[low]]) low = k;
                    if (x[group[k]] > x[group[high]]) high = k;
                }
                sum.push_back(static_cast<T>(s));
                least.push_back(x[group[low]]);
                most.push_back(x[group[high]]);
                first_least.push_back(static_cast<int64_t>(low));
                first_most.push_back(static_cast<int64_t>(high));
            }
            expect_bits(sum, reduce("sum", shape, mask, x), "sum");
            expect_bits(least, reduce("reduce_min", shape, mask, x), "reduce_min");
            expect_bits(most, reduce("reduce_max", shape, mask, x), "reduce_max");
            expect_bits(first_least, reduce<T, int64_t>("argmin", shape, mask, x), "argmin");
            expect_bits(first_most, reduce<T, int64_t>("argmax", shape, mask, x), "argmax");
            ASSERT_FALSE(testing::Test::HasFatalFailure());
        }
    }
}

/* Ones and a few twos: products are exact, and wrap for integers. */
TYPED_TEST(ReduceTest, ProductsOfEveryAxisSet) {
    typedef TypeParam T;
    std::mt19937_64 rng(2);
    for (const Ints &shape : SHAPES) {
        std::vector<T> x(static_cast<size_t>(count_of(shape)));
        for (T &v : x) v = static_cast<T>(rng() % 64 ? 1 : 2);
        for (int64_t mask = 0; mask < 1 << shape.size(); mask++) {
            std::vector<T> want;
            for (const std::vector<size_t> &group : groups_of(shape, mask).members) {
                double p = 1;
                uint64_t wrapped = 1;
                for (size_t e : group)
                    p *= static_cast<double>(x[e]), wrapped *= x[e] == T(2) ? 2 : 1;
                want.push_back(std::is_floating_point<T>::value ? static_cast<T>(p)
                                                                : static_cast<T>(wrapped));
            }
            expect_bits(want, reduce("prod", shape, mask, x), "prod");
        }
    }
}

/* A sum in k steps, each rounded to eps, is within k * eps * (sum of absolute values). The longest
 * chain: 32 additions to an accumulator (1024 / 32), 5 to combine them, the rest in float64. */
TEST(Reduce, FloatSumsAreWithinTheBoundOfTheirOrder) {
    std::mt19937_64 rng(3);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (const Ints &shape : {Ints{100000}, Ints{3000, 40}}) {
        std::vector<float> x(static_cast<size_t>(count_of(shape)));
        for (float &v : x) v = draw(rng);
        const Groups g = groups_of(shape, 1);
        const std::vector<float> y = reduce("sum", shape, 1, x);
        for (size_t o = 0; o < y.size(); o++) {
            double want = 0, size = 0;
            for (size_t e : g.members[o])
                want += static_cast<double>(x[e]), size += std::fabs(static_cast<double>(x[e]));
            const double bound = 38 * 0x1p-24 * size;
            const double error = std::fabs(static_cast<double>(y[o]) - want);
            if (!(error <= bound)) FAIL() << error << " > " << bound;
        }
    }
}

TEST(Reduce, IntegerSumsAndProductsWrap) {
    EXPECT_EQ(INT32_MIN, reduce<int32_t>("sum", {2}, 1, {INT32_MAX, 1})[0]);
    EXPECT_EQ(44, reduce<uint8_t>("sum", {3}, 1, {100, 100, 100})[0]);
    EXPECT_EQ(-2, reduce<int64_t>("prod", {2}, 1, {INT64_MAX, 2})[0]);
}

TEST(Reduce, ANumberWinsOverNaNAndTheFirstOfEqualsIsTaken) {
    const std::vector<float> x = {NaN, 2, 1, 1, NaN, 3, 3};
    EXPECT_EQ(1, reduce("reduce_min", {7}, 1, x)[0]);
    EXPECT_EQ(3, reduce("reduce_max", {7}, 1, x)[0]);
    EXPECT_EQ(2, (reduce<float, int64_t>("argmin", {7}, 1, x)[0]));
    EXPECT_EQ(5, (reduce<float, int64_t>("argmax", {7}, 1, x)[0]));
    const std::vector<float> nothing(40, NaN);
    EXPECT_TRUE(std::isnan(reduce("reduce_min", {40}, 1, nothing)[0]));
    EXPECT_EQ(0, (reduce<float, int64_t>("argmax", {40}, 1, nothing)[0]));
    std::vector<float> one(40, NaN);
    one[37] = INFINITY;
    EXPECT_EQ(INFINITY, reduce("reduce_min", {40}, 1, one)[0]);
    EXPECT_EQ(37, (reduce<float, int64_t>("argmin", {40}, 1, one)[0]));
    /* columns */
    EXPECT_EQ(2, reduce<float>("reduce_min", {3, 1}, 1, {NaN, 3, 2})[0]);
}

TEST(Reduce, ProductOfTheOthersWithNoOneAndSeveralZeros) {
    expect_bits<double>(
        {15, 10, 6},
        [] {
            TileCall<double> c;
            c.add({3}, {2, 3, 5});
            c.call.attrs.n[0] = 1;
            return c.run("prod_others", {3});
        }(),
        "no zero");
    TileCall<double> rows;
    rows.add({2, 3}, {2, 0, 5, 0, 3, 0});
    rows.call.attrs.n[0] = 2;
    expect_bits<double>({0, 10, 0, 0, 0, 0}, rows.run("prod_others", {2, 3}),
                        "one zero, two zeros");
}

/* The same by the definition, over every axis set of some shapes. */
TEST(Reduce, ProductOfTheOthersAndItsDerivativeByDefinition) {
    std::mt19937_64 rng(4);
    for (const Ints &shape : {Ints{6}, Ints{3, 4}, Ints{2, 3, 4}, Ints{2, 3, 2, 2}}) {
        std::vector<double> x(static_cast<size_t>(count_of(shape))), v = x;
        for (double &e : x) e = static_cast<double>(rng() % 4); /* a quarter are zero */
        for (double &e : v) e = static_cast<double>(rng() % 5) - 2;
        for (int64_t mask = 0; mask < 1 << shape.size(); mask++) {
            std::vector<double> others(x.size()), along(x.size());
            for (const std::vector<size_t> &group : groups_of(shape, mask).members)
                for (size_t k : group) {
                    others[k] = 1;
                    for (size_t i : group) {
                        if (i == k) continue;
                        others[k] *= x[i];
                        double p = v[i];
                        for (size_t j : group)
                            if (j != i && j != k) p *= x[j];
                        along[k] += p;
                    }
                }
            TileCall<double> first, second;
            first.add(shape, x);
            second.add(shape, x);
            second.add(shape, v);
            first.call.attrs.n[0] = second.call.attrs.n[0] = mask;
            expect_bits(others, first.run("prod_others", shape), "prod_others");
            const std::vector<double> got = second.run("prod_others_along", shape);
            for (size_t k = 0; k < along.size(); k++) ASSERT_EQ(along[k], got[k]) << k;
        }
    }
}

/* y = f(x) with upstream gradients 1, 2, 3, ... */
void expect_program(const std::vector<double> &x, const Ints &x_shape, const Ints &y_shape,
                    const std::function<tile(tile)> &f, const std::vector<double> &y,
                    const std::vector<double> &dx) {
    Field in(x_shape, x), out = Field::zeros(y_shape);
    KernelRun run({&in, &out}, [&](tile_builder *, const std::vector<tile_param> &p) {
        tile_store(p[1], f(tile_load(p[0], shape_of(x_shape), TILE_AT_ZERO)), TILE_AT_ZERO);
    });
    for (size_t k = 0; k < out.grad.size(); k++) out.grad[k] = static_cast<double>(k + 1);
    run.backward({1});
    for (size_t k = 0; k < y.size(); k++) EXPECT_EQ(y[k], out.value[k]) << k;
    for (size_t k = 0; k < dx.size(); k++) EXPECT_EQ(dx[k], in.grad[k]) << k;
}

const std::vector<double> one_to_six = {1, 2, 3, 4, 5, 6};

TEST(Reduce, SumAndMeanSpreadTheGradient) {
    expect_program(one_to_six, {2, 3}, {3}, [](tile x) { return tile_sum(x, TILE_AXES(0)); },
                   {5, 7, 9}, {1, 2, 3, 1, 2, 3});
    expect_program(one_to_six, {2, 3}, {2}, [](tile x) { return tile_sum(x, TILE_AXES(1)); },
                   {6, 15}, {1, 1, 1, 2, 2, 2});
    expect_program(one_to_six, {2, 3}, {}, [](tile x) { return tile_sum(x, TILE_ALL_AXES); }, {21},
                   {1, 1, 1, 1, 1, 1});
    expect_program(one_to_six, {2, 3}, {3}, [](tile x) { return tile_mean(x, TILE_AXES(0)); },
                   {2.5, 3.5, 4.5}, {0.5, 1, 1.5, 0.5, 1, 1.5});
}

TEST(Reduce, ProductGivesEachElementTheProductOfTheOthers) {
    expect_program(one_to_six, {2, 3}, {2}, [](tile x) { return tile_prod(x, TILE_AXES(1)); },
                   {6, 120}, {6, 3, 2, 60, 48, 40});
    /* one zero in the first row, two in the second */
    expect_program({2, 0, 5, 0, 3, 0}, {2, 3}, {2},
                   [](tile x) { return tile_prod(x, TILE_AXES(1)); }, {0, 0}, {0, 10, 0, 0, 0, 0});
}

TEST(Reduce, TiesGiveTheWholeGradientToTheFirst) {
    expect_program({3, 1, 1, 2, 5, 5}, {2, 3}, {2},
                   [](tile x) { return tile_reduce_min(x, TILE_AXES(1)); }, {1, 2},
                   {0, 1, 0, 2, 0, 0});
    expect_program({3, 1, 1, 2, 5, 5}, {2, 3}, {},
                   [](tile x) { return tile_reduce_max(x, TILE_ALL_AXES); }, {5},
                   {0, 0, 0, 0, 1, 0});
    expect_program({7, 7, 7, 7, 7, 7}, {2, 3}, {3},
                   [](tile x) { return tile_reduce_max(x, TILE_AXES(0)); }, {7, 7, 7},
                   {1, 2, 3, 0, 0, 0});
}

TEST(Reduce, AxesAndTypesThatDoNotExistAreErrors) {
    expect_error(TILE_E_ARGUMENT, "sum: an axis is outside of the rank 2",
                 [](tile x) { tile_sum(x, TILE_AXES(2)); });
    expect_error(TILE_E_ARGUMENT, "argmin: an axis", [](tile x) { tile_argmin(x, TILE_AXES(-1)); });
    expect_error(TILE_E_ARGUMENT, "prod: an axis", [](tile x) { tile_prod(x, TILE_AXES(0, 99)); });
    expect_error(TILE_E_DTYPE, "sum: not defined for bool", [](tile x) {
        tile_sum(tile_zeros(x.builder, TILE_BOOL, TILE_SHAPE(2)), TILE_ALL_AXES);
    });
    expect_error(TILE_E_DTYPE, "tile_mean: x is int32", [](tile x) {
        tile_mean(tile_zeros(x.builder, TILE_I32, TILE_SHAPE(2)), TILE_ALL_AXES);
    });
}

} // namespace
