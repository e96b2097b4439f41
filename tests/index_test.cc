/* index_test.cc: gathers, scatters and running sums: lane functions against a plain loop over
 * coordinates, then gradients at duplicates and the errors. */
#include <cmath>

#include "tests/kernel_run.h"

namespace {

template <typename T> std::vector<T> counting(int64_t n, int first) {
    std::vector<T> v(static_cast<size_t>(n));
    for (size_t k = 0; k < v.size(); k++)
        v[k] = static_cast<T>((static_cast<int>(k) * 7 + first) % 13);
    return v;
}

int64_t number_of(const Ints &shape, const Ints &at) {
    int64_t e = 0;
    for (size_t d = 0; d < shape.size(); d++) e = e * shape[d] + at[d];
    return e;
}

const std::vector<Ints> SHAPES = {{1}, {5}, {40}, {3, 4}, {1, 7}, {7, 1}, {2, 3, 4}, {2, 1, 3, 2}};
const int64_t FAR = INT64_MAX;
const std::vector<Ints> INDICES = {
    {0}, {2, 0, 1}, {4, 3, 2, 1, 0}, {0, 0, 2, -1, 2, 7, 0, FAR, -FAR - 1}};

/* Calls f with a shape, an axis, indices, and the shape as long as the indices along the axis. */
template <class F> void each(F f) {
    for (const Ints &shape : SHAPES)
        for (size_t axis = 0; axis < shape.size(); axis++)
            for (const Ints &indices : INDICES) {
                Ints picked = shape;
                picked[axis] = static_cast<int64_t>(indices.size());
                f(shape, axis, indices, picked);
            }
}

/* Where coordinate at of the picked shape lies in the tile; -1: outside. */
int64_t place_of(const Ints &shape, size_t axis, const Ints &indices, Ints at) {
    at[axis] = indices[static_cast<size_t>(at[axis])];
    return at[axis] < 0 || at[axis] >= shape[axis] ? -1 : number_of(shape, at);
}

bool is_last(const Ints &indices, int64_t k) {
    for (size_t j = static_cast<size_t>(k) + 1; j < indices.size(); j++)
        if (indices[j] == indices[static_cast<size_t>(k)]) return false;
    return true;
}

template <typename T> void set_indices(TileCall<T> *call, int k, const Ints &indices) {
    call->call.in_dims[k] = dims_of({static_cast<int64_t>(indices.size())});
    call->call.in[k] = indices.data();
}

template <typename T> class IndexTest : public testing::Test {};
typedef testing::Types<float, double, int32_t, int64_t, uint8_t, uint32_t, uint64_t> AllTypes;
TYPED_TEST_SUITE(IndexTest, AllTypes);

TYPED_TEST(IndexTest, Gather) {
    typedef TypeParam T;
    each([](const Ints &shape, size_t axis, const Ints &indices, const Ints &picked) {
        const std::vector<T> x = counting<T>(count_of(shape), 1);
        for (bool last : {false, true}) {
            TileCall<T> call;
            call.add(shape, x);
            set_indices(&call, 1, indices);
            call.call.attrs.n[0] = static_cast<int64_t>(axis);
            std::vector<T> want;
            for (int64_t e = 0; e < count_of(picked); e++) {
                const Ints at = coordinates(picked, e);
                const int64_t place = place_of(shape, axis, indices, at);
                const bool takes = place >= 0 && (!last || is_last(indices, at[axis]));
                want.push_back(takes ? x[static_cast<size_t>(place)] : T(0));
            }
            expect_bits(want, call.run(last ? "gather_last" : "gather", picked), "gather");
        }
    });
}

TYPED_TEST(IndexTest, Scatter) {
    typedef TypeParam T;
    each([](const Ints &shape, size_t axis, const Ints &indices, const Ints &picked) {
        for (bool add : {false, true}) {
            const std::vector<T> src = counting<T>(count_of(picked), 2);
            std::vector<T> want = counting<T>(count_of(shape), 5);
            TileCall<T> call;
            call.add(shape, want);
            call.add(picked, src);
            set_indices(&call, 2, indices);
            call.call.attrs.n[0] = static_cast<int64_t>(axis);
            for (int64_t e = 0; e < count_of(picked); e++) {
                const int64_t place = place_of(shape, axis, indices, coordinates(picked, e));
                if (place < 0) continue;
                T &to = want[static_cast<size_t>(place)];
                const T from = src[static_cast<size_t>(e)];
                to = add ? static_cast<T>(to + from) : from;
            }
            expect_bits(want, call.run(add ? "scatter_add" : "scatter", shape), "scatter");
        }
    });
}

TYPED_TEST(IndexTest, Cumsum) {
    typedef TypeParam T;
    for (const Ints &shape : SHAPES) {
        for (size_t axis = 0; axis < shape.size(); axis++) {
            for (int how = 0; how < 4; how++) {
                const std::vector<T> x = counting<T>(count_of(shape), 3);
                TileCall<T> call;
                call.add(shape, x);
                call.call.attrs.n[0] = static_cast<int64_t>(axis);
                call.call.attrs.n[1] = how;
                std::vector<T> want;
                for (int64_t e = 0; e < count_of(shape); e++) {
                    const Ints at = coordinates(shape, e);
                    T sum = 0;
                    for (int64_t j = 0; j < shape[axis]; j++) {
                        Ints other = at;
                        other[axis] = j;
                        const bool before = how & 2 ? j > at[axis] : j < at[axis];
                        if (!before && (how & 1 || j != at[axis])) continue;
                        sum = static_cast<T>(sum + x[static_cast<size_t>(number_of(shape, other))]);
                    }
                    want.push_back(sum);
                }
                expect_bits(want, call.run("cumsum", shape), "cumsum");
            }
        }
    }
}

/* A long sum of float32 is the one of float64, rounded; integers wrap. */
TEST(CumsumTest, RoundsOnceAndWraps) {
    TileCall<float> call;
    std::vector<float> x(100000, 0.1f), want;
    double sum = 0;
    for (float v : x) want.push_back(static_cast<float>(sum += static_cast<double>(v)));
    call.add({100000}, x);
    expect_bits(want, call.run("cumsum", {100000}), "float32");
    TileCall<int32_t> integers;
    integers.add({3}, {INT32_MAX, 1, 1});
    expect_bits(std::vector<int32_t>{INT32_MAX, INT32_MIN, INT32_MIN + 1},
                integers.run("cumsum", {3}), "int32");
}

/* Two elements at one place: of a gather both add, of a scatter the last one gets all. */
TEST(IndexGradientTest, Duplicates) {
    Field x = Field(Ints{3}, {1, 2, 3}), s = Field(Ints{4}, {10, 20, 30, 40});
    Field y = Field::zeros({4}), z = Field::zeros({3});
    Field i = Field::of_integers({4}, {1, 0, 1, -1});
    KernelRun run({&x, &s, &y, &z, &i}, [](tile_builder *, const std::vector<tile_param> &p) {
        const tile index = tile_load(p[4], TILE_SHAPE(4), TILE_AT_ZERO);
        const tile dst = tile_load(p[0], TILE_SHAPE(3), TILE_AT_ZERO);
        const tile src = tile_load(p[1], TILE_SHAPE(4), TILE_AT_ZERO);
        tile_store(p[2], tile_gather(dst, index, 0), TILE_AT_ZERO);
        tile_store(p[3], tile_scatter(dst, index, src, 0), TILE_AT_ZERO);
    });
    y.grad = {1, 10, 100, 1000};
    z.grad = {0.25, 0.5, 0.125};
    run.backward({1});
    EXPECT_EQ((std::vector<double>{2, 1, 2, 0}), y.value);
    EXPECT_EQ((std::vector<double>{20, 30, 3}), z.value);
    EXPECT_EQ((std::vector<double>{10, 101, 0.125}), x.grad);
    EXPECT_EQ((std::vector<double>{0, 0.25, 0.5, 0}), s.grad);
}

/* The same with int32 indices; what is put over an infinity gets it out of the gradient. */
TEST(IndexGradientTest, SelectsAndNeverMultiplies) {
    Field x = Field(Ints{2}, {INFINITY, NAN}), y = Field::zeros({2});
    KernelRun run({&x, &y}, [](tile_builder *b, const std::vector<tile_param> &p) {
        const tile dst = tile_load(p[0], TILE_SHAPE(2), TILE_AT_ZERO);
        const tile index =
            tile_cast(tile_iota(b, TILE_I64, TILE_SHAPE(2), 0, tile_int(b, 0)), TILE_I32);
        tile_store(p[1], tile_scatter(dst, index, tile_ones(b, TILE_F64, TILE_SHAPE(2)), 0),
                   TILE_AT_ZERO);
    });
    y.grad = {3, 4};
    run.backward({1});
    EXPECT_EQ((std::vector<double>{1, 1}), y.value);
    EXPECT_EQ((std::vector<double>{0, 0}), x.grad);
}

TEST(IndexErrorTest, OneSentenceEach) {
    const auto indices = [](tile t, tile_dtype dtype, int64_t n) {
        return tile_zeros(t.builder, dtype, TILE_SHAPE(n));
    };
    expect_error(TILE_E_ARGUMENT, "gather: axis is 2, the rank is 2",
                 [&](tile t) { tile_gather(t, indices(t, TILE_I64, 3), 2); });
    expect_error(TILE_E_ARGUMENT, "gather: axis is -1, the rank is 2",
                 [&](tile t) { tile_gather(t, indices(t, TILE_I64, 3), -1); });
    expect_error(TILE_E_DTYPE, "tile_gather: indices are float64, expected int32 or int64",
                 [&](tile t) { tile_gather(t, indices(t, TILE_F64, 3), 0); });
    expect_error(TILE_E_DTYPE, "tile_scatter: indices are bool, expected int32 or int64",
                 [&](tile t) { tile_scatter(t, indices(t, TILE_BOOL, 3), t, 0); });
    expect_error(TILE_E_SHAPE, "gather: indices are [], expected rank 1",
                 [&](tile t) { tile_gather(t, tile_int(t.builder, 0), 0); });
    expect_error(TILE_E_SHAPE, "scatter: src is [3, 4], expected [5, 4]",
                 [&](tile t) { tile_scatter(t, indices(t, TILE_I64, 5), t, 0); });
    expect_error(TILE_E_DTYPE, "scatter_add: dst is float64, src is float32", [&](tile t) {
        tile_scatter_add(t, indices(t, TILE_I32, 3), tile_cast(t, TILE_F32), 0);
    });
    expect_error(TILE_E_DTYPE, "scatter_add: not defined for bool", [&](tile t) {
        const tile mask = tile_cast(t, TILE_BOOL);
        tile_scatter_add(mask, indices(t, TILE_I64, 3), mask, 0);
    });
    expect_error(TILE_E_DTYPE, "cumsum: not defined for bool",
                 [&](tile t) { tile_cumsum(tile_cast(t, TILE_BOOL), 0, 0); });
    expect_error(TILE_E_ARGUMENT, "cumsum: how is 4, expected TILE_EXCLUSIVE, TILE_REVERSE",
                 [&](tile t) { tile_cumsum(t, 0, 4); });
    expect_error(TILE_E_ARGUMENT, "cumsum: axis is 0, the rank is 0",
                 [&](tile t) { tile_cumsum(tile_int(t.builder, 3), 0, 0); });
}

} // namespace
