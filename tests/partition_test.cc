/* partition_test.cc: partition views: the worked examples of their page, what is refused, indices
 * that do not exist, gradients. */
#include <algorithm>

#include "tests/tape_fixture.h"

namespace {

typedef tile (*Update)(tile_partition, tile, tile_offset, tile_memory_order, tile_thread_scope);

const tile_memory_order RELAXED = TILE_ORDER_RELAXED;
const tile_thread_scope DEVICE = TILE_SCOPE_DEVICE;

class PartitionTest : public TapeTest {
  protected:
    explicit PartitionTest(int threads = 1, bool check = false) : TapeTest(threads, check) {}

    template <typename T>
    tile_array *of(tile_dtype dtype, tile_shape shape, const std::vector<T> &values) {
        tile_array *a = array(dtype, shape);
        EXPECT_EQ(TILE_OK, tile_array_write(a, values.data(), values.size() * sizeof(T)));
        return a;
    }
    template <typename T> static std::vector<T> values_of(tile_array *a) {
        std::vector<T> v(static_cast<size_t>(tile_array_count(a)));
        EXPECT_EQ(TILE_OK, tile_array_read(a, v.data(), v.size() * sizeof(T))) << tile_last_error();
        return v;
    }
    static tile_offset index(tile_builder *b, const std::vector<int64_t> &i) {
        tile_offset at = {};
        for (int64_t x : i) at.at[at.rank++] = tile_int(b, x);
        return at;
    }
    /* One block that does something with a view of an array. */
    typedef std::function<void(tile_builder *, tile_partition)> Use;
    tile_kernel *view_kernel(tile_dtype dtype, tile_shape shape, const Use &use) {
        return kernel("view", [&](tile_builder *b) {
            use(b, tile_partition_view(tile_array_param(b, "a", dtype, shape.rank), shape));
        });
    }
    /* An update of tile i by a constant, on a copy of values; what the array holds then. */
    template <typename T>
    std::vector<T> updated(tile_dtype dtype, tile_shape array_shape, const std::vector<T> &values,
                           tile_shape shape, Update update, double by,
                           const std::vector<int64_t> &i) {
        tile_array *a = of(dtype, array_shape, values);
        tile_kernel *k = view_kernel(dtype, shape, [&](tile_builder *b, tile_partition p) {
            update(p, tile_full(b, dtype, shape, by), index(b, i), RELAXED, DEVICE);
        });
        EXPECT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a)));
        EXPECT_EQ(TILE_OK, tile_context_sync(ctx)) << tile_last_error();
        return values_of<T>(a);
    }
    typedef std::vector<int32_t> Ints32;
    typedef std::vector<uint32_t> Uints32;

    Ints32 bits_1d(Update update, int32_t by) {
        return updated<int32_t>(TILE_I32, TILE_SHAPE(4), {1, 2, 0xAA, 0x55}, TILE_SHAPE(2), update,
                                by, {1});
    }
    Ints32 bits_2d(Update update, int32_t by) {
        return updated<int32_t>(TILE_I32, TILE_SHAPE(4, 3),
                                {1, 2, 0xAA, 3, 4, 0xCC, 5, 6, 0xF0, 7, 8, 0x33}, TILE_SHAPE(2, 2),
                                update, by, {0, 1});
    }
    Uints32 words(const Uints32 &values, Update update, double by) {
        return updated<uint32_t>(TILE_U32, TILE_SHAPE(4), values, TILE_SHAPE(2), update, by, {1});
    }
    Uints32 words_2d(const Uints32 &values, Update update, double by) {
        return updated<uint32_t>(TILE_U32, TILE_SHAPE(4, 3), values, TILE_SHAPE(2, 2), update, by,
                                 {0, 1});
    }
};

/* The page's examples */

Reals numbers(size_t n) {
    Reals v(n);
    for (size_t k = 0; k < n; k++) v[k] = static_cast<double>(k);
    return v;
}

TEST_F(PartitionTest, PageLoad) {
    std::vector<int32_t> x(32);
    for (int k = 0; k < 32; k++) x[static_cast<size_t>(k)] = k;
    tile_array *a = of(TILE_I32, TILE_SHAPE(4, 8), x), *out = array(TILE_I32, TILE_SHAPE(2, 2));
    tile_kernel *k = view_kernel(TILE_I32, TILE_SHAPE(2, 2), [](tile_builder *b, tile_partition p) {
        const tile_param out = tile_array_param(b, "out", TILE_I32, 2);
        tile_store(out, tile_partition_load(p, index(b, {1, 2})), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a, out)));
    EXPECT_EQ((Ints32{20, 21, 28, 29}), values_of<int32_t>(out));
}

TEST_F(PartitionTest, PageLoadMasked) {
    Floats32 x(44);
    for (size_t k = 0; k < x.size(); k++) x[k] = static_cast<float>(k);
    tile_array *a = of(TILE_F32, TILE_SHAPE(4, 11), x), *out = array(TILE_F32, TILE_SHAPE(2, 4));
    tile_kernel *k = view_kernel(TILE_F32, TILE_SHAPE(2, 4), [](tile_builder *b, tile_partition p) {
        const tile_param out = tile_array_param(b, "out", TILE_F32, 2);
        const tile t = tile_partition_load_masked(p, index(b, {0, 2}), TILE_PAD_NAN);
        tile_store(out, t, TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a, out)));
    Floats32 y = values_of<float>(out);
    EXPECT_TRUE(std::isnan(y[3]) && std::isnan(y[7]));
    y[3] = y[7] = -1;
    EXPECT_EQ((Floats32{8, 9, 10, -1, 19, 20, 21, -1}), y);
}

TEST_F(PartitionTest, PageStore) {
    std::vector<int32_t> x(32);
    for (int k = 0; k < 32; k++) x[static_cast<size_t>(k)] = k;
    tile_array *a = of(TILE_I32, TILE_SHAPE(4, 8), x);
    tile_kernel *k = view_kernel(TILE_I32, TILE_SHAPE(2, 2), [](tile_builder *b, tile_partition p) {
        const tile n = tile_reshape(tile_iota(b, TILE_I32, TILE_SHAPE(4), 0, tile_int(b, 0)),
                                    TILE_SHAPE(2, 2));
        tile_partition_store(p, tile_expr("100 * n", n), index(b, {1, 3}));
    });
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a)));
    x[22] = 0, x[23] = 100, x[30] = 200, x[31] = 300;
    EXPECT_EQ(x, values_of<int32_t>(a));
}

TEST_F(PartitionTest, PageBits) {
    EXPECT_EQ((Ints32{1, 2, 0x0A, 0x05}), bits_1d((tile_partition_atomic_and), 0x0F));
    EXPECT_EQ((Ints32{1, 2, 0xAF, 0x5F}), bits_1d((tile_partition_atomic_or), 0x0F));
    EXPECT_EQ((Ints32{1, 2, 0x55, 0xAA}), bits_1d((tile_partition_atomic_xor), 0xFF));
    EXPECT_EQ((Ints32{1, 2, 0x0A, 3, 4, 0x0C, 5, 6, 0xF0, 7, 8, 0x33}),
              bits_2d((tile_partition_atomic_and_masked), 0x0F));
    EXPECT_EQ((Ints32{1, 2, 0xAF, 3, 4, 0xCF, 5, 6, 0xF0, 7, 8, 0x33}),
              bits_2d((tile_partition_atomic_or_masked), 0x0F));
    EXPECT_EQ((Ints32{1, 2, 0x55, 3, 4, 0x33, 5, 6, 0xF0, 7, 8, 0x33}),
              bits_2d((tile_partition_atomic_xor_masked), 0xFF));
}

TEST_F(PartitionTest, PageMaxAndMin) {
    const Uints32 grid = {1, 2, 3, 3, 4, 6, 5, 6, 2, 7, 8, 8};
    EXPECT_EQ((Uints32{1, 2, 4, 6}), words({1, 2, 3, 6}, (tile_partition_atomic_max), 4));
    EXPECT_EQ((Uints32{1, 2, 3, 4}), words({1, 2, 3, 6}, (tile_partition_atomic_min), 4));
    EXPECT_EQ((Uints32{1, 2, 4, 3, 4, 6, 5, 6, 2, 7, 8, 8}),
              words_2d(grid, (tile_partition_atomic_max_masked), 4));
    EXPECT_EQ((Uints32{1, 2, 3, 3, 4, 4, 5, 6, 2, 7, 8, 8}),
              words_2d(grid, (tile_partition_atomic_min_masked), 4));
}

TEST_F(PartitionTest, PageAddAndSub) {
    EXPECT_EQ((Uints32{1, 2, 13, 14}), words({1, 2, 3, 4}, (tile_partition_atomic_add), 10));
    EXPECT_EQ((Uints32{1, 2, 0, 1}), words({1, 2, 3, 4}, (tile_partition_atomic_sub), 3));
    EXPECT_EQ((Uints32{1, 2, 11, 3, 4, 12, 5, 6, 3, 7, 8, 4}),
              words_2d({1, 2, 1, 3, 4, 2, 5, 6, 3, 7, 8, 4}, (tile_partition_atomic_add_masked),
                       10));
    EXPECT_EQ((Uints32{1, 2, 2, 3, 4, 5, 5, 6, 6, 7, 8, 9}),
              words_2d({1, 2, 5, 3, 4, 8, 5, 6, 6, 7, 8, 9}, (tile_partition_atomic_sub_masked),
                       3));
}

/* Beyond the page */

TEST_F(PartitionTest, PreviousValuesComeBack) {
    tile_array *a = of<int64_t>(TILE_I64, TILE_SHAPE(5), {10, 20, 30, 40, 50});
    tile_array *out = array(TILE_I64, TILE_SHAPE(3, 2));
    tile_kernel *k = view_kernel(TILE_I64, TILE_SHAPE(2), [](tile_builder *b, tile_partition p) {
        const tile_param out = tile_array_param(b, "out", TILE_I64, 2);
        const tile i = tile_block_index(b, 0), v = tile_full(b, TILE_I64, TILE_SCALAR, 35);
        const tile was = tile_partition_atomic_max_masked(p, v, TILE_AT(i), RELAXED, DEVICE);
        tile_store(out, tile_reshape(was, TILE_SHAPE(1, 2)), TILE_AT(i, tile_int(b, 0)));
    });
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(3), TILE_ARGS(a, out)));
    EXPECT_EQ((std::vector<int64_t>{35, 35, 35, 40, 50}), values_of<int64_t>(a));
    EXPECT_EQ((std::vector<int64_t>{10, 20, 30, 40, 50, 0}), values_of<int64_t>(out));
}

TEST_F(PartitionTest, TheLowestIntegerIsSubtracted) {
    EXPECT_EQ((Ints32{1, 2, INT32_MIN + 3, INT32_MAX - 3}),
              updated<int32_t>(TILE_I32, TILE_SHAPE(4), {1, 2, 3, -4}, TILE_SHAPE(2),
                               (tile_partition_atomic_sub), INT32_MIN, {1}));
    EXPECT_EQ((std::vector<int64_t>{INT64_MAX, 0}),
              updated<int64_t>(TILE_I64, TILE_SHAPE(2), {-1, INT64_MIN}, TILE_SHAPE(2),
                               (tile_partition_atomic_sub), -0x1p63, {0}));
}

TEST_F(PartitionTest, PaddingOfEveryKind) {
    const double pads[] = {TILE_PAD_ZERO,         TILE_PAD_NEGATIVE_ZERO, TILE_PAD_NAN,
                           TILE_PAD_POSITIVE_INF, TILE_PAD_NEGATIVE_INF,  2.5};
    tile_array *a = reals({1, 2, 3}), *out = zeros(4);
    for (double pad : pads) {
        tile_kernel *k =
            view_kernel(TILE_F64, TILE_SHAPE(2), [&](tile_builder *b, tile_partition p) {
                const tile_param out = tile_array_param(b, "out", TILE_F64, 1);
                const tile_offset i = TILE_AT(tile_block_index(b, 0));
                tile_partition_store(tile_partition_view(out, TILE_SHAPE(2)),
                                     tile_partition_load_masked(p, i, pad), i);
            });
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(2), TILE_ARGS(a, out)));
        const Reals y = read(out);
        EXPECT_EQ((Reals{1, 2, 3}), Reals(y.begin(), y.begin() + 3));
        EXPECT_TRUE(std::isnan(pad) ? std::isnan(y[3]) : y[3] == pad) << pad;
        EXPECT_EQ(std::signbit(pad), std::signbit(y[3])) << pad;
    }
}

TEST_F(PartitionTest, CountsAndGrids) {
    tile_array *a = array(TILE_F32, TILE_SHAPE(7, 8, 1));
    const tile_shape n = tile_partition_counts(a, TILE_SHAPE(3, 4, 5));
    EXPECT_EQ(3, n.rank);
    EXPECT_EQ(3, n.extent[0]);
    EXPECT_EQ(2, n.extent[1]);
    EXPECT_EQ(1, n.extent[2]);
    EXPECT_EQ(-1, tile_partition_counts(nullptr, TILE_SHAPE(3)).rank);
    EXPECT_STREQ("tile_partition_counts: a is NULL", tile_last_error());
    EXPECT_EQ(-1, tile_partition_counts(a, TILE_SHAPE(3, 4)).rank);
    EXPECT_STREQ("tile_partition_counts: the step is [3, 4], the array [7, 8, 1]",
                 tile_last_error());
    EXPECT_EQ(-1, tile_partition_counts(a, TILE_SHAPE(3, 0, 1)).rank);
}

/* Tiles of 3 a step of 1 apart: a stencil; tiles of 2 a step of 3 apart: gaps. */
TEST_F(PartitionTest, StepsOfTheirOwn) {
    tile_array *a = active({1, 2, 3, 4, 5}), *y = zeros(5), *n = array(TILE_I64, TILE_SHAPE(2));
    tile_kernel *k = kernel("steps", [](tile_builder *b) {
        const tile_param a = tile_array_param(b, "a", TILE_F64, 1);
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        const tile_param n = tile_array_param(b, "n", TILE_I64, 1);
        const tile_offset i = TILE_AT(tile_block_index(b, 0));
        const tile_partition p = tile_partition_view_stepped(a, TILE_SHAPE(3), TILE_SHAPE(1));
        const tile_partition q = tile_partition_view_stepped(a, TILE_SHAPE(2), TILE_SHAPE(3));
        tile_store(y, tile_sum(tile_partition_load_masked(p, i, 0), TILE_ALL_AXES), i);
        tile_store(n, tile_partition_count(p, 0), TILE_AT(tile_int(b, 0)));
        tile_store(n, tile_partition_count(q, 0), TILE_AT(tile_int(b, 1)));
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(5), TILE_ARGS(a, y, n)));
    EXPECT_EQ((Reals{6, 9, 12, 9, 5}), read(y));
    EXPECT_EQ((std::vector<int64_t>{5, 2}), values_of<int64_t>(n));
    backward(sum(y));
    EXPECT_EQ((Reals{1, 2, 3, 3, 3}), grad(a));
    /* whole tiles: 3 of the first view, and one more is an error */
    for (int64_t last : {2, 3}) {
        tile_kernel *whole = kernel("whole", [&](tile_builder *b) {
            const tile_param a = tile_array_param(b, "a", TILE_F64, 1);
            const tile_partition p = tile_partition_view_stepped(a, TILE_SHAPE(3), TILE_SHAPE(1));
            tile_partition_store(p, tile_real(b, TILE_F64, 0), index(b, {last}));
        });
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, whole, TILE_GRID(1), TILE_ARGS(reals(numbers(5)))));
        EXPECT_EQ(last == 2 ? TILE_OK : TILE_E_EXECUTION, tile_context_sync(ctx));
    }
}

/* Where tiles overlap the last block's store stays and takes the gradient; additions add up. */
TEST_F(PartitionTest, WritesThroughTilesThatOverlap) {
    tile_array *t = active({1, 2, 3}), *y = active({0, 0, 0, 0}), *z = active({0, 0, 0, 0});
    tile_kernel *k = kernel("overlap", [](tile_builder *b) {
        const tile_param t = tile_array_param(b, "t", TILE_F64, 1);
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        const tile_param z = tile_array_param(b, "z", TILE_F64, 1);
        const tile_offset i = TILE_AT(tile_block_index(b, 0));
        const tile v = tile_load(t, TILE_SCALAR, i);
        const tile_shape two = TILE_SHAPE(2), one = TILE_SHAPE(1);
        tile_partition_store(tile_partition_view_stepped(y, two, one), v, i);
        tile_partition_atomic_add(tile_partition_view_stepped(z, two, one), v, i, RELAXED, DEVICE);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(3), TILE_ARGS(t, y, z)));
    EXPECT_EQ((Reals{1, 2, 3, 3}), read(y));
    EXPECT_EQ((Reals{1, 3, 5, 3}), read(z));
    tile_array *seeded[] = {y, z},
               *seeds[] = {reals({1, 10, 100, 1000}), reals({.5, .25, .125, 2})};
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 2, seeded, seeds)) << tile_last_error();
    EXPECT_EQ((Reals{1.75, 10.375, 1102.125}), grad(t));
    EXPECT_EQ((Reals{0, 0, 0, 0}), grad(y));
    EXPECT_EQ((Reals{.5, .25, .125, 2}), grad(z));
}

TEST_F(PartitionTest, ANarrowValueIsConvertedAndSpread) {
    tile_array *a = active(TILE_SHAPE(2, 3), {0, 0, 0, 0, 0, 0}), *v = floats({1.5f, 2.5f}, true);
    tile_kernel *k = view_kernel(TILE_F64, TILE_SHAPE(2, 4), [](tile_builder *b, tile_partition p) {
        const tile_param v = tile_array_param(b, "v", TILE_F32, 1);
        const tile t = tile_reshape(tile_load(v, TILE_SHAPE(2), TILE_AT_ZERO), TILE_SHAPE(2, 1));
        tile_partition_store_masked(p, t, TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(a, v)));
    EXPECT_EQ((Reals{1.5, 1.5, 1.5, 2.5, 2.5, 2.5}), read(a));
    tile_array *seed = reals(TILE_SHAPE(2, 3), {1, 2, 3, 10, 20, 30});
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &a, &seed));
    EXPECT_EQ((Reals{6, 60}), grad(v));
    EXPECT_EQ((Reals(6)), grad(a));
}

/* Indices that do not exist */

/* An element in front, five of the array, one behind. */
struct Guards {
    Reals before = {-1, 1, 2, 3, 4, 5, -2};
};

TEST_F(PartitionTest, AnIndexOutsideTouchesNothing) {
    const int64_t far[] = {
        -1, 3, INT64_MAX, INT64_MIN, (int64_t)1 << 62, INT64_MIN / 2, ((int64_t)1 << 62) + 1};
    tile_kernel *k = view_kernel(TILE_F64, TILE_SHAPE(2), [](tile_builder *b, tile_partition p) {
        const tile_offset i = TILE_AT(tile_int_param(b, "i"));
        const tile_param out = tile_array_param(b, "out", TILE_F64, 1);
        tile_partition_store_masked(p, tile_real(b, TILE_F64, 9), i);
        tile_store(out, tile_real(b, TILE_F64, 1), TILE_AT_ZERO);
    });
    for (int64_t i : far) {
        tile_array *base = reals(Guards().before), *out = zeros(1);
        tile_array *a = slice(base, {1}, TILE_SHAPE(5));
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a, i, out)));
        const std::string part = "tile_partition_store_masked: the index along dimension 0 is " +
                                 std::to_string(i) + ", wanted at least 0 and below 3";
        expect_error(TILE_E_EXECUTION, part.c_str(), tile_context_sync(ctx));
        EXPECT_EQ(Guards().before, read(base)) << i;
        EXPECT_EQ((Reals{0}), read(out)) << "the block goes no further";
    }
    tile_array *base = reals(Guards().before), *out = zeros(1);
    tile_array *a = slice(base, {1}, TILE_SHAPE(5));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a, 2, out)));
    ASSERT_EQ(TILE_OK, tile_context_sync(ctx));
    EXPECT_EQ((Reals{-1, 1, 2, 3, 4, 9, -2}), read(base));
}

TEST_F(PartitionTest, AShiftedIndexDoesNotWrapIntoTheArray) {
    tile_kernel *k = view_kernel(TILE_F64, TILE_SHAPE(2), [](tile_builder *b, tile_partition p) {
        tile_offset i = TILE_AT(tile_int_param(b, "i"));
        i.shift[0] = (int64_t)1 << 62;
        tile_partition_store(p, tile_real(b, TILE_F64, 9), i);
    });
    for (int64_t i : {INT64_MAX, INT64_MAX - 1, (int64_t)0, INT64_MIN}) {
        tile_array *a = reals(numbers(6));
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a, i)));
        EXPECT_EQ(TILE_E_EXECUTION, tile_context_sync(ctx)) << i;
        EXPECT_EQ(numbers(6), read(a));
    }
    tile_array *a = reals(numbers(6));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a, 1 - ((int64_t)1 << 62))));
    ASSERT_EQ(TILE_OK, tile_context_sync(ctx));
    EXPECT_EQ((Reals{0, 1, 9, 9, 4, 5}), read(a));
}

TEST_F(PartitionTest, ATileThatSticksOutNeedsTheMaskedForm) {
    const struct {
        const char *name;
        Update plain, masked;
        int32_t last; /* of 7 and 6 */
    } all[] = {{"add", (tile_partition_atomic_add), (tile_partition_atomic_add_masked), 13},
               {"sub", (tile_partition_atomic_sub), (tile_partition_atomic_sub_masked), 1},
               {"min", (tile_partition_atomic_min), (tile_partition_atomic_min_masked), 6},
               {"max", (tile_partition_atomic_max), (tile_partition_atomic_max_masked), 7},
               {"and", (tile_partition_atomic_and), (tile_partition_atomic_and_masked), 6},
               {"or", (tile_partition_atomic_or), (tile_partition_atomic_or_masked), 7},
               {"xor", (tile_partition_atomic_xor), (tile_partition_atomic_xor_masked), 1}};
    for (const auto &op : all)
        for (bool masked : {false, true}) {
            tile_array *a = of<int32_t>(TILE_I32, TILE_SHAPE(3), {5, 6, 7});
            tile_kernel *k =
                view_kernel(TILE_I32, TILE_SHAPE(2), [&](tile_builder *b, tile_partition p) {
                    (masked ? op.masked : op.plain)(p, tile_full(b, TILE_I32, TILE_SCALAR, 6),
                                                    index(b, {1}), RELAXED, DEVICE);
                });
            ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a)));
            const tile_status status = tile_context_sync(ctx);
            EXPECT_EQ(masked ? TILE_OK : TILE_E_EXECUTION, status);
            const std::string part = "tile_partition_atomic_" + std::string(op.name) +
                                     ": the index of a whole tile along dimension 0 is 1, wanted "
                                     "at least 0 and below 1";
            if (!masked) {
                EXPECT_NE(nullptr, strstr(tile_last_error(), part.c_str())) << tile_last_error();
                EXPECT_EQ((Ints32{5, 6, 7}), values_of<int32_t>(a));
            } else {
                EXPECT_EQ((Ints32{5, 6, op.last}), values_of<int32_t>(a)) << op.name;
            }
        }
}

TEST_F(PartitionTest, AnEmptyArrayHasNoTile) {
    tile_kernel *k = view_kernel(TILE_F64, TILE_SHAPE(2), [](tile_builder *b, tile_partition p) {
        tile_partition_store_masked(p, tile_real(b, TILE_F64, 9), TILE_AT(tile_block_index(b, 0)));
    });
    tile_array *a = array(TILE_F64, TILE_SHAPE(0));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(0), TILE_ARGS(a)));
    EXPECT_EQ(TILE_OK, tile_context_sync(ctx));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(a)));
    expect_error(TILE_E_EXECUTION, "is 0, wanted at least 0 and below 0", tile_context_sync(ctx));
}

/* Threads: one sentence, and the guards stay, whichever block finds it first. */
class Crowd : public PartitionTest {
  public:
    Crowd(int threads, bool check) : PartitionTest(threads, check) {}
    void TestBody() override {}
    std::string run(bool check) {
        tile_kernel *k =
            view_kernel(TILE_F64, TILE_SHAPE(3), [](tile_builder *b, tile_partition p) {
                const tile_param which = tile_array_param(b, "which", TILE_I32, 1);
                const tile i = tile_load(which, TILE_SCALAR, TILE_AT(tile_block_index(b, 0)));
                const tile was = tile_partition_load_masked(p, TILE_AT(i), 0);
                tile_partition_store_masked(p, tile_expr("was + 1", was), TILE_AT(i));
            });
        std::vector<int32_t> which;
        Reals want(702, -5);
        for (int i = 0; i < 233; i++) {
            const bool bad = i == 50 || i == 51 || i == 200;
            which.push_back(bad ? 1000 + i : i);
            for (int j = 3 * i; !bad && !check && j < 3 * i + 3 && j < 700; j++)
                want[static_cast<size_t>(j + 1)] = -4;
        }
        which.push_back(233);
        if (!check) want[700] = -4;
        tile_array *base = reals(Reals(702, -5)), *a = slice(base, {1}, TILE_SHAPE(700));
        tile_status status = tile_launch(nullptr, k, TILE_GRID(234), TILE_ARGS(a, integers(which)));
        EXPECT_EQ(check ? TILE_E_EXECUTION : TILE_OK, status);
        if (!status) status = tile_context_sync(ctx);
        EXPECT_EQ(TILE_E_EXECUTION, status);
        const std::string message = tile_last_error();
        EXPECT_EQ(want, read(base));
        return message;
    }
};

TEST(PartitionThreadsTest, OneSentenceForAnyNumberOfThreads) {
    for (bool check : {false, true})
        for (int threads : {1, 2, 4}) {
            const std::string message = Crowd(threads, check).run(check);
            EXPECT_NE(std::string::npos,
                      message.find("block (50, 0, 0): tile_partition_load_masked: the index along "
                                   "dimension 0 is 1050, wanted at least 0 and below 234"))
                << message;
            EXPECT_EQ(0u, message.find("kernel view, partition_test.cc:")) << message;
        }
}

/* Refusals */

class PartitionErrorsTest : public PartitionTest {
  protected:
    void refused(tile_status status, const std::string &text, tile_dtype dtype, const Use &use) {
        tile_builder *b = tile_kernel_begin(ctx, "bad");
        tile_kernel *k = nullptr;
        use(b, tile_partition_view(tile_array_param(b, "a", dtype, 2), TILE_SHAPE(2, 3)));
        expect_error(status, text.c_str(), tile_kernel_end(b, &k));
        EXPECT_EQ(0, strncmp(tile_last_error(), "kernel bad, partition_test.cc:", 30))
            << tile_last_error();
    }
};

TEST_F(PartitionErrorsTest, MemoryOrdersAndScopes) {
    const auto order = static_cast<tile_memory_order>(7);
    const auto scope = static_cast<tile_thread_scope>(9);
    const std::string load = "tile_partition_atomic_load: the memory order is ";
    const std::string add = "tile_partition_atomic_add: the ";
    refused(TILE_E_ARGUMENT, load + "release, expected relaxed or acquire", TILE_F64,
            [](tile_builder *, tile_partition p) {
                tile_partition_atomic_load(p, TILE_AT_ZERO, TILE_ORDER_RELEASE, DEVICE);
            });
    refused(TILE_E_ARGUMENT, load + "none of the enum, expected relaxed or acquire", TILE_F64,
            [&](tile_builder *, tile_partition p) {
                tile_partition_atomic_load(p, TILE_AT_ZERO, order, DEVICE);
            });
    refused(TILE_E_ARGUMENT,
            "tile_partition_atomic_load_masked: the thread scope is none of the enum, expected "
            "block, device or system",
            TILE_F64, [&](tile_builder *, tile_partition p) {
                tile_partition_atomic_load_masked(p, TILE_AT_ZERO, 0, RELAXED, scope);
            });
    refused(TILE_E_ARGUMENT,
            "tile_partition_atomic_store_masked: the memory order is acquire, expected relaxed or "
            "release",
            TILE_F64, [](tile_builder *b, tile_partition p) {
                tile_partition_atomic_store_masked(p, tile_real(b, TILE_F64, 1), TILE_AT_ZERO,
                                                   TILE_ORDER_ACQUIRE, TILE_SCOPE_SYSTEM);
            });
    refused(TILE_E_ARGUMENT, add + "memory order is acquire, expected relaxed", TILE_F64,
            [](tile_builder *b, tile_partition p) {
                tile_partition_atomic_add(p, tile_real(b, TILE_F64, 1), TILE_AT_ZERO,
                                          TILE_ORDER_ACQUIRE, DEVICE);
            });
    refused(TILE_E_ARGUMENT, add + "thread scope is system, expected block or device", TILE_F64,
            [](tile_builder *b, tile_partition p) {
                tile_partition_atomic_add(p, tile_real(b, TILE_F64, 1), TILE_AT_ZERO, RELAXED,
                                          TILE_SCOPE_SYSTEM);
            });
    /* what is allowed */
    for (tile_thread_scope s : {TILE_SCOPE_BLOCK, TILE_SCOPE_DEVICE, TILE_SCOPE_SYSTEM})
        kernel("good", [&](tile_builder *b) {
            const tile_partition p =
                tile_partition_view(tile_array_param(b, "a", TILE_F64, 1), TILE_SHAPE(2));
            const tile t = tile_partition_atomic_load(p, TILE_AT_ZERO, TILE_ORDER_ACQUIRE, s);
            tile_partition_atomic_store(p, t, TILE_AT_ZERO, TILE_ORDER_RELEASE, s);
            if (s != TILE_SCOPE_SYSTEM) tile_partition_atomic_sub(p, t, TILE_AT_ZERO, RELAXED, s);
        });
}

TEST_F(PartitionErrorsTest, Padding) {
    const auto pads = [&](double pad, const std::string &text) {
        refused(TILE_E_ARGUMENT, "tile_partition_load_masked: pad is " + text, TILE_I32,
                [&](tile_builder *, tile_partition p) {
                    tile_partition_load_masked(p, TILE_AT_ZERO, pad);
                });
    };
    pads(TILE_PAD_NEGATIVE_ZERO, "-0, which int32 does not hold");
    pads(TILE_PAD_NAN, "nan, which int32 does not hold");
    pads(TILE_PAD_POSITIVE_INF, "inf, which int32 does not hold");
    pads(TILE_PAD_NEGATIVE_INF, "-inf, which int32 does not hold");
    pads(0.5, "0.5, which int32 does not hold");
    pads(0x1p31, "2147483648, which int32 does not hold");
}

TEST_F(PartitionErrorsTest, ValuesAndIndices) {
    const std::string store = "tile_partition_store: ";
    const auto stores = [&](tile_status status, const char *text, tile_dtype dtype,
                            const std::function<tile(tile_builder *)> &value) {
        refused(status, store + text, dtype, [&](tile_builder *b, tile_partition p) {
            tile_partition_store(p, value(b), TILE_AT_ZERO);
        });
    };
    stores(TILE_E_DTYPE, "the value is float64, which array a of float32 does not hold", TILE_F32,
           [](tile_builder *b) { return tile_real(b, TILE_F64, 1); });
    stores(TILE_E_DTYPE, "the value is int64, which array a of int32 does not hold", TILE_I32,
           [](tile_builder *b) { return tile_int(b, 1); });
    stores(TILE_E_DTYPE, "the value is int64, which array a of float64 does not hold", TILE_F64,
           [](tile_builder *b) { return tile_int(b, 1); });
    stores(TILE_E_DTYPE, "the value is int32, which array a of uint64 does not hold", TILE_U64,
           [](tile_builder *b) { return tile_full(b, TILE_I32, TILE_SCALAR, 1); });
    stores(TILE_E_DTYPE, "the value is float32, which array a of int64 does not hold", TILE_I64,
           [](tile_builder *b) { return tile_real(b, TILE_F32, 1); });
    stores(TILE_E_SHAPE, "the value is [3, 1], the view's tiles are [2, 3]", TILE_F64,
           [](tile_builder *b) { return tile_zeros(b, TILE_F64, TILE_SHAPE(3, 1)); });
    stores(TILE_E_SHAPE, "the value is [1, 2, 3], the view's tiles are [2, 3]", TILE_F64,
           [](tile_builder *b) { return tile_zeros(b, TILE_F64, TILE_SHAPE(1, 2, 3)); });
    stores(TILE_E_ARGUMENT, "the value is not a tile of this kernel", TILE_F64, [](tile_builder *) {
        return tile{nullptr, -1};
    });
    refused(TILE_E_SHAPE, "tile_partition_load: the index has 1 dimensions, expected 2", TILE_F64,
            [](tile_builder *b, tile_partition p) { tile_partition_load(p, index(b, {0})); });
    refused(TILE_E_DTYPE,
            "tile_partition_load: an index is float64 of rank 0, expected a rank-0 integer tile",
            TILE_F64, [](tile_builder *b, tile_partition p) {
                tile_partition_load(p, TILE_AT(tile_int(b, 0), tile_real(b, TILE_F64, 0)));
            });
    refused(TILE_E_ARGUMENT, "tile_partition_load: the index is shifted by 9223372036854775807",
            TILE_F64, [](tile_builder *b, tile_partition p) {
                tile_offset i = index(b, {0, 0});
                i.shift[1] = INT64_MAX;
                tile_partition_load(p, i);
            });
    refused(TILE_E_ARGUMENT, "tile_partition_count: dimension 2 of a view of rank 2", TILE_F64,
            [](tile_builder *, tile_partition p) { tile_partition_count(p, 2); });
}

TEST_F(PartitionErrorsTest, DtypesThatAnUpdateDoesNotKnow) {
    const auto updates = [&](const std::string &text, tile_dtype dtype, Update update) {
        refused(TILE_E_DTYPE, text, dtype, [&](tile_builder *b, tile_partition p) {
            update(p, tile_zeros(b, dtype, TILE_SCALAR), TILE_AT_ZERO, RELAXED, DEVICE);
        });
    };
    const std::string bits = ", expected int32, int64, uint32 or uint64";
    const std::string any = ", expected a float dtype, int32, int64, uint32 or uint64";
    updates("atomic_and: the array is float64" + bits, TILE_F64, (tile_partition_atomic_and));
    updates("atomic_or: the array is uint8" + bits, TILE_U8, (tile_partition_atomic_or_masked));
    updates("atomic_xor: the array is bool" + bits, TILE_BOOL, (tile_partition_atomic_xor));
    updates("atomic_max: the array is uint8" + any, TILE_U8, (tile_partition_atomic_max));
    updates("atomic_min: the array is bool" + any, TILE_BOOL, (tile_partition_atomic_min_masked));
    updates("atomic_add: bool has no atomic addition", TILE_BOOL, (tile_partition_atomic_add));
}

TEST_F(PartitionErrorsTest, Views) {
    const auto view = [&](tile_status status, const char *text,
                          const std::function<void(tile_builder *, tile_param)> &make) {
        tile_builder *b = tile_kernel_begin(ctx, "bad");
        tile_kernel *k = nullptr;
        make(b, tile_array_param(b, "a", TILE_F64, 2));
        expect_error(status, text, tile_kernel_end(b, &k));
    };
    const char *rank =
        "tile_partition_view: the shape is [3], array a has rank 2, expected as many "
        "extents from 1";
    view(TILE_E_SHAPE, rank,
         [](tile_builder *, tile_param a) { tile_partition_view(a, TILE_SHAPE(3)); });
    view(TILE_E_SHAPE, "the shape is [3, 0], array a has rank 2",
         [](tile_builder *, tile_param a) { tile_partition_view(a, TILE_SHAPE(3, 0)); });
    view(TILE_E_SHAPE, "the step is [3, -1], array a has rank 2", [](tile_builder *, tile_param a) {
        tile_partition_view_stepped(a, TILE_SHAPE(3, 2), TILE_SHAPE(3, -1));
    });
    view(TILE_E_ARGUMENT, "tile_partition_view: not an array parameter of this kernel",
         [](tile_builder *b, tile_param) {
             tile_partition_view(tile_param{b, 5}, TILE_SHAPE(3, 2));
         });
}

/* A load sums in its adjoint what an array that overlaps itself is read by; a write is refused. */
TEST_F(PartitionTest, AnArrayThatOverlapsItself) {
    tile_array *base = active({1, 2, 3});
    tile_array *rows = strided(base, 0, TILE_SHAPE(2, 3), {0, 1});
    tile_array *shifted = strided(base, 0, TILE_SHAPE(2, 2), {1, 1}), *y = zeros(1);
    tile_kernel *loads =
        view_kernel(TILE_F64, TILE_SHAPE(2, 3), [](tile_builder *b, tile_partition p) {
            const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
            const tile t = tile_partition_load_masked(p, TILE_AT_ZERO, 0);
            tile_store(y, tile_sum(t, TILE_ALL_AXES), TILE_AT_ZERO);
        });
    ASSERT_EQ(TILE_OK, tile_launch(record, loads, TILE_GRID(1), TILE_ARGS(rows, y)));
    EXPECT_EQ((Reals{12}), read(y));
    backward(y);
    EXPECT_EQ((Reals{2, 2, 2}), grad(base));
    ASSERT_EQ(TILE_OK, tape_reset(record));
    tile_kernel *stores =
        view_kernel(TILE_F64, TILE_SHAPE(2, 2), [](tile_builder *b, tile_partition p) {
            tile_partition_store_masked(p, tile_real(b, TILE_F64, 1), TILE_AT_ZERO);
        });
    for (tile_array *a : {rows, shifted}) {
        expect_error(TILE_E_ARGUMENT, "tile_launch: view: array a overlaps itself",
                     tile_launch(record, stores, TILE_GRID(1), TILE_ARGS(a)));
        EXPECT_EQ((Reals{1, 2, 3}), read(base));
    }
    EXPECT_EQ(0, tape_length(record));
}

TEST_F(PartitionTest, ABitwiseUpdateHasNoGradient) {
    tile_array *a = integers({1, 2, 3, 4});
    tile_kernel *k = view_kernel(TILE_I32, TILE_SHAPE(2), [](tile_builder *b, tile_partition p) {
        tile_partition_atomic_xor(p, tile_full(b, TILE_I32, TILE_SCALAR, 1), TILE_AT_ZERO, RELAXED,
                                  DEVICE);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(a)));
    EXPECT_EQ((Ints32{0, 3, 3, 4}), values_of<int32_t>(a));
    tile_array *seed = integers({1, 1, 1, 1});
    expect_error(TILE_E_NO_ADJOINT, "kernel view: op atomic_xor, made at partition_test.cc:",
                 tape_backward_seeds(record, 1, &a, &seed));
    expect_error(TILE_E_DTYPE, "float", tile_array_request_grad(a));
    tile_array *other = integers({1});
    expect_error(TILE_E_DTYPE, "array 0 is int32, wanted a float",
                 tape_backward_seeds(record, 1, &other, &seed));
}

} // namespace
