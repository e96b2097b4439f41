/* memory_test.cc: loads, stores, atomic additions and takes: lane functions against a plain loop
 * over elements with 128-bit places, and the worked examples. */
#include <map>
#include <random>

#include "tests/lane_call.h"

namespace {

const int64_t LOWEST = INT64_MIN, HIGHEST = INT64_MAX;

/* An array, a window, indices. */
struct Window {
    Ints extent, stride; /* of the array */
    Ints shape;          /* of the tile */
    Ints offset, low, high;
    int axis = -1;
    Ints indices;

    int64_t storage() const {
        int64_t last = 0;
        for (size_t d = 0; d < extent.size(); d++) {
            if (!extent[d]) return 0;
            last += (extent[d] - 1) * stride[d];
        }
        return last + 1;
    }
    /* Where element e lies, or -1. */
    int64_t address(int64_t e) const {
        const Ints c = shape.empty() ? Ints(extent.size(), 0) : coordinates(shape, e);
        int64_t at = 0;
        for (size_t d = 0; d < extent.size(); d++) {
            const int64_t moved =
                static_cast<int>(d) == axis ? indices[static_cast<size_t>(c[d])] : c[d];
            const __int128 place = static_cast<__int128>(offset[d]) + moved;
            if (place < low[d] || place >= high[d]) return -1;
            at += static_cast<int64_t>(place) * stride[d];
        }
        return at;
    }
    std::string text() const {
        std::string s;
        auto list = [&s](const char *name, const Ints &v) {
            s += std::string(" ") + name + "=";
            for (int64_t n : v) s += std::to_string(n) + ",";
        };
        list("array", extent), list("stride", stride), list("tile", shape), list("offset", offset);
        list("low", low), list("high", high), list("indices", indices);
        return s + " axis=" + std::to_string(axis);
    }
};

Window dense(const Ints &extent, const Ints &shape, const Ints &offset) {
    Window w;
    w.extent = extent;
    w.stride = strides_of(extent);
    w.shape = shape;
    w.offset = offset;
    w.low = Ints(extent.size(), 0);
    w.high = extent;
    return w;
}

Window indexed(const Ints &extent, const Ints &shape, const Ints &offset, int axis,
               const Ints &indices) {
    Window w = dense(extent, shape, offset);
    w.axis = axis;
    w.indices = indices;
    return w;
}

template <typename T> struct Outcome { std::vector<T> memory, result; };

template <typename T> T some_value(std::mt19937_64 &rng) {
    return static_cast<T>(static_cast<int>(rng() % 200) + 1);
}

/* The op by its lane function. t: what is written; result false: nobody wants it. */
template <typename T>
Outcome<T> by_lanes(const std::string &name, const Window &w, const std::vector<T> &memory,
                    const std::vector<T> &t, double pad, bool result = true) {
    Guarded<T> array(memory), written(t), out(count_of(w.shape), T(99));
    Guarded<int64_t> indices(w.indices);
    const bool writes = name == "store" || name == "atomic_add";
    tile_call c = {};
    int n = 0;
    if (w.axis >= 0) {
        c.in_dims[n] = dims_of({static_cast<int64_t>(w.indices.size())});
        c.in[n++] = indices.data();
        c.attrs.n[0] = w.axis;
    }
    if (writes) {
        c.in_dims[n] = dims_of(w.shape);
        c.in[n++] = written.data();
    }
    c.out_dims[0] = dims_of(w.shape);
    if (result && name != "store") c.out[0] = out.data();
    c.attrs.real = pad;
    c.attrs.n[1] = static_cast<int64_t>(pad);
    c.array.read = c.array.write = array.data();
    c.array.rank = static_cast<int32_t>(w.extent.size());
    for (size_t d = 0; d < w.extent.size(); d++) {
        c.array.extent[d] = w.extent[d];
        c.array.stride[d] = w.stride[d];
        c.offset[d] = w.offset[d];
        c.low[d] = w.low[d];
        c.high[d] = w.high[d];
    }
    run_of((name + (w.axis >= 0 ? "_indexed" : "")).c_str(), DtypeOf<T>::value)(&c);
    expect_bits(t, written.values(), "the tile that is written");
    return {array.values(), out.values()};
}

/* The same, element by element. */
template <typename T>
Outcome<T> by_elements(const std::string &name, const Window &w, const std::vector<T> &memory,
                       const std::vector<T> &t, double pad, bool result = true) {
    Outcome<T> o = {memory, std::vector<T>(static_cast<size_t>(count_of(w.shape)), T(99))};
    std::map<int64_t, size_t> last;
    for (size_t e = 0; e < o.result.size(); e++) {
        const int64_t at = w.address(static_cast<int64_t>(e));
        if (at >= 0) last[at] = e;
        T *place = at >= 0 ? &o.memory[static_cast<size_t>(at)] : nullptr;
        T &y = o.result[e];
        if (name == "load") y = place ? *place : static_cast<T>(pad);
        if (name == "store" && place) *place = t[e];
        if (name == "atomic_add") {
            y = place ? *place : T(0);
            if (place) *place = static_cast<T>(*place + t[e]);
        }
    }
    if (name == "take") {
        for (size_t e = 0; e < o.result.size(); e++) {
            const int64_t at = w.address(static_cast<int64_t>(e));
            o.result[e] = at >= 0 && last[at] == e ? memory[static_cast<size_t>(at)] : T(0);
            if (at >= 0) o.memory[static_cast<size_t>(at)] = 0;
        }
    }
    if (!result || name == "store") o.result.assign(o.result.size(), T(99));
    return o;
}

template <typename T> void compare(const Window &w, std::mt19937_64 &rng) {
    std::vector<T> memory(static_cast<size_t>(w.storage())),
        t(static_cast<size_t>(count_of(w.shape)));
    for (T &v : memory) v = some_value<T>(rng);
    for (T &v : t) v = some_value<T>(rng);
    const double pad = static_cast<double>(some_value<T>(rng));
    for (const char *name : {"load", "store", "atomic_add", "take"}) {
        if (sizeof(T) < 4 && !std::strcmp(name, "atomic_add")) continue;
        const bool result = rng() % 4 != 0 || !std::strcmp(name, "load");
        const Outcome<T> want = by_elements(name, w, memory, t, pad, result);
        const Outcome<T> got = by_lanes(name, w, memory, t, pad, result);
        expect_bits(want.memory, got.memory, std::string(name) + " array" + w.text());
        expect_bits(want.result, got.result, std::string(name) + " result" + w.text());
    }
}

template <typename T> class MemoryTest : public testing::Test {};
typedef testing::Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                       uint32_t, uint64_t>
    AllTypes;
TYPED_TEST_SUITE(MemoryTest, AllTypes);

TYPED_TEST(MemoryTest, WindowsInsideAcrossBothEdgesAndOutside) {
    std::mt19937_64 rng(1);
    for (int64_t n : {0, 1, 2, 5})
        for (int64_t size : {1, 2, 4, 7})
            for (int64_t offset :
                 {LOWEST, LOWEST + 1, -size - 1, -size, 1 - size, int64_t(-1), int64_t(0),
                  int64_t(1), n - size, n - 1, n, n + 1, HIGHEST - 3, HIGHEST})
                compare<TypeParam>(dense({n}, {size}, {offset}), rng);
}

TYPED_TEST(MemoryTest, OneElementOfAnArrayOfAnyRank) {
    std::mt19937_64 rng(2);
    compare<TypeParam>(dense({}, {}, {}), rng);
    compare<TypeParam>(dense({4}, {}, {3}), rng);
    compare<TypeParam>(dense({4}, {}, {-1}), rng);
    compare<TypeParam>(dense({3, 4}, {}, {2, 1}), rng);
    compare<TypeParam>(dense({3, 4}, {}, {3, 1}), rng);
    compare<TypeParam>(dense({2, 1, 3, 1, 2, 2}, {}, {1, 0, 2, 0, 1, 1}), rng);
}

TYPED_TEST(MemoryTest, IndicesTwiceDiscardedPastTheEndAndExtreme) {
    std::mt19937_64 rng(3);
    const Ints all = {2, 2, -1, 0, 4, 5, 2, LOWEST, HIGHEST, 1, 0};
    const int64_t n = static_cast<int64_t>(all.size());
    for (int64_t offset : {LOWEST, int64_t(-3), int64_t(-1), int64_t(0), int64_t(1), HIGHEST}) {
        compare<TypeParam>(indexed({5}, {n}, {offset}, 0, all), rng);
        compare<TypeParam>(indexed({5, 3}, {n, 4}, {offset, -1}, 0, all), rng);
        compare<TypeParam>(indexed({3, 5}, {4, n}, {1, offset}, 1, all), rng);
        compare<TypeParam>(indexed({2, 5, 3}, {2, n, 2}, {0, offset, 1}, 1, all), rng);
    }
}

TYPED_TEST(MemoryTest, OffsetPlusIndexNeverWraps) {
    std::mt19937_64 rng(4);
    /* 2^63 - 1 - (2^63 - 3) = 2 is inside; 2^63 - 1 + 2 would wrap to a negative place. */
    const Window w = indexed({5}, {3}, {HIGHEST}, 0, {-HIGHEST + 2, 2, HIGHEST});
    EXPECT_EQ(2, w.address(0));
    EXPECT_EQ(-1, w.address(1));
    compare<TypeParam>(w, rng);
}

int64_t pick(std::mt19937_64 &rng, int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
}

Window random_window(std::mt19937_64 &rng) {
    const int rank = static_cast<int>(pick(rng, 1, 6));
    Window w;
    for (int d = 0; d < rank; d++) {
        const int64_t top = d == rank - 1 && rank < 4 ? 40 : rank < 4 ? 5 : 3;
        w.extent.push_back(pick(rng, rng() % 8 ? 1 : 0, top));
        w.shape.push_back(pick(rng, 1, top));
        const int64_t n = w.extent[static_cast<size_t>(d)], size = w.shape[static_cast<size_t>(d)];
        w.offset.push_back(rng() % 3 ? pick(rng, -size - 1, n + 1)
                                     : pick(rng, 0, n > size ? n - size : 0));
        w.low.push_back(rng() % 4 ? 0 : pick(rng, 0, n));
        w.high.push_back(rng() % 4 ? n : pick(rng, w.low.back(), n));
    }
    w.stride = strides_of(w.extent);
    const uint64_t kind = rng() % 5; /* dense twice, gaps, permuted, overlapping */
    if (kind == 2)
        for (int64_t &s : w.stride) s = s * 2 + 1;
    if (kind == 3) {
        int64_t n = 1;
        for (size_t d = 0; d < w.extent.size(); n *= w.extent[d], d++) w.stride[d] = n;
    }
    if (kind == 4)
        for (int64_t &s : w.stride) s = pick(rng, 0, 2);
    if (rng() % 2) {
        w.axis = static_cast<int>(pick(rng, 0, rank - 1));
        const size_t axis = static_cast<size_t>(w.axis);
        for (int64_t k = 0; k < w.shape[axis]; k++)
            w.indices.push_back(pick(rng, -2, w.extent[axis] + 1) -
                                (rng() % 2 ? w.offset[axis] : 0));
    }
    return w;
}

TYPED_TEST(MemoryTest, RandomWindowsOfRandomArrays) {
    std::mt19937_64 rng(5);
    for (int k = 0; k < 3000; k++) {
        compare<TypeParam>(random_window(rng), rng);
        if (testing::Test::HasFatalFailure()) FAIL() << "window " << k << " of seed 5";
    }
}

TEST(Memory, WhatIsSkippedMayHoldAnything) {
    const float inf = INFINITY;
    const Window w = indexed({2}, {4}, {0}, 0, {1, -1, 2, 0});
    /* a = 10, 20; t goes to 1, nowhere, nowhere, 0 */
    const Outcome<float> added = by_lanes<float>("atomic_add", w, {10, 20}, {1, inf, -inf, 2}, 0);
    expect_bits<float>({12, 21}, added.memory, "array");
    expect_bits<float>({20, 0, 0, 10}, added.result, "previous");
    const Outcome<float> stored = by_lanes<float>("store", w, {10, 20}, {1, inf, NAN, 2}, 0);
    expect_bits<float>({2, 1}, stored.memory, "array");
}

TEST(Memory, ReadAndWriteAddressesMayDiffer) {
    std::vector<float> old = {1, 2, 3}, now = {7, 8, 9}, t = {4};
    float y[1] = {0};
    tile_call c = {};
    c.in_dims[0] = c.out_dims[0] = dims_of({1});
    c.in[0] = t.data();
    c.out[0] = y;
    c.array.read = old.data();
    c.array.write = now.data();
    c.array.rank = 1;
    c.array.extent[0] = 3;
    c.array.stride[0] = 1;
    c.offset[0] = 1;
    c.high[0] = 3;
    run_of("load", TILE_F32)(&c);
    EXPECT_EQ(2, y[0]);
    run_of("store", TILE_F32)(&c);
    EXPECT_EQ((std::vector<float>{7, 4, 9}), now);
    run_of("atomic_add", TILE_F32)(&c);
    EXPECT_EQ(4, y[0]);
    EXPECT_EQ((std::vector<float>{7, 8, 9}), now);
    run_of("take", TILE_F32)(&c);
    EXPECT_EQ(8, y[0]);
    EXPECT_EQ((std::vector<float>{7, 0, 9}), now);
    EXPECT_EQ((std::vector<float>{1, 2, 3}), old);
}

TEST(Memory, IntegersWrapInAtomicAdd) {
    const Window w = dense({1}, {1}, {0});
    EXPECT_EQ(INT32_MIN, by_lanes<int32_t>("atomic_add", w, {INT32_MAX}, {1}, 0).memory[0]);
    EXPECT_EQ(INT64_MIN, by_lanes<int64_t>("atomic_add", w, {INT64_MAX}, {1}, 0).memory[0]);
    EXPECT_EQ(4u, by_lanes<uint32_t>("atomic_add", w, {UINT32_MAX - 5}, {10}, 0).memory[0]);
    EXPECT_EQ(0u, by_lanes<uint64_t>("atomic_add", w, {UINT64_MAX}, {1}, 0).memory[0]);
}

TEST(Memory, NarrowIntegersAndBoolAreLoadedStoredAndTakenButNotAdded) {
    for (tile_dtype d : {TILE_BOOL, TILE_I8, TILE_I16, TILE_U8, TILE_U16}) {
        EXPECT_NE(nullptr, tile_op_find("load")->run[d]);
        EXPECT_NE(nullptr, tile_op_find("store")->run[d]);
        EXPECT_NE(nullptr, tile_op_find("take_indexed")->run[d]);
        EXPECT_EQ(nullptr, tile_op_find("atomic_add")->run[d]);
        EXPECT_EQ(nullptr, tile_op_find("atomic_add_indexed")->run[d]);
    }
    for (tile_dtype d :
         {TILE_F16, TILE_BF16, TILE_F32, TILE_F64, TILE_I32, TILE_I64, TILE_U32, TILE_U64})
        EXPECT_NE(nullptr, tile_op_find("atomic_add")->run[d]);
}

const std::vector<float> one_to_eight = {1, 2, 3, 4, 5, 6, 7, 8};

TEST(Memory, StoreIndexedWritesTheEvenRows) {
    const Window w = indexed({4, 4}, {2, 4}, {0, 0}, 0, {0, 2});
    const Outcome<float> o = by_lanes<float>("store", w, std::vector<float>(16), one_to_eight, 0);
    expect_bits<float>({1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0}, o.memory, "y");
}

TEST(Memory, AtomicAddIndexedAddsToTheEvenRows) {
    const Window w = indexed({4, 4}, {2, 4}, {0, 0}, 0, {0, 2});
    std::vector<float> y(16);
    for (size_t k = 0; k < 16; k++) y[k] = static_cast<float>(k);
    const Outcome<float> o = by_lanes<float>("atomic_add", w, y, one_to_eight, 0);
    expect_bits<float>({1, 3, 5, 7, 4, 5, 6, 7, 13, 15, 17, 19, 12, 13, 14, 15}, o.memory, "y");
    expect_bits<float>({0, 1, 2, 3, 8, 9, 10, 11}, o.result, "previous");
}

} // namespace
