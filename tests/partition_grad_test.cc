/* partition_grad_test.cc: gradients of partition views, of atomic minima and maxima, of chosen
 * stores: against differences, and where there are ties, who wins. */
#include <algorithm>
#include <numeric>
#include <random>

#include "tests/kernel_run.h"
#include "tests/tape_fixture.h"

namespace {

const tile_memory_order RELAXED = TILE_ORDER_RELAXED;
const tile_thread_scope DEVICE = TILE_SCOPE_DEVICE;

double total(const Reals &v) {
    return std::accumulate(v.begin(), v.end(), 0.0);
}

class PartitionGradTest : public TapeTest {
  protected:
    explicit PartitionGradTest(int threads = 1) : TapeTest(threads) {}

    /* Numbers of which no two are near one another, so that differences pass no tie. */
    Reals apart(size_t n) {
        std::vector<size_t> order(n);
        std::iota(order.begin(), order.end(), size_t{0});
        std::shuffle(order.begin(), order.end(), random_);
        Reals v;
        for (size_t k : order)
            v.push_back(-2 + 4 * static_cast<double>(k) / static_cast<double>(n));
        return v;
    }
    /* A weighted sum of an array, so that every element has an upstream gradient of its own. */
    tile_array *weighted(tile_array *a) {
        const tile_shape shape = tile_array_shape(a);
        tile_array *w = reals(shape, apart(static_cast<size_t>(tile_array_count(a))));
        tile_array *loss = zeros(1);
        EXPECT_EQ(TILE_OK, tape_dot(record, a, w, loss)) << tile_last_error();
        return loss;
    }
    void check(tile_array *loss) {
        tape_check_report report;
        ASSERT_EQ(TILE_OK, tape_gradcheck(record, loss, TAPE_CHECK_ALL, &report))
            << tile_last_error();
        if (!report.passed) tape_check_print(&report, stdout);
        EXPECT_TRUE(report.passed);
        for (int k = 0; k < report.rows; k++) EXPECT_EQ(TAPE_CHECK_OK, report.row[k].verdict);
    }

  private:
    std::mt19937_64 random_{7};
};

/* Tiles of 2 x 3 of arrays of 5 x 7: some stick out. */
struct Views {
    tile_partition a, t;
    tile_offset at;
};
Views views(tile_builder *b) {
    const tile_param a = tile_array_param(b, "a", TILE_F64, 2);
    const tile_param t = tile_array_param(b, "t", TILE_F64, 2);
    return {tile_partition_view(a, TILE_SHAPE(2, 3)), tile_partition_view(t, TILE_SHAPE(2, 3)),
            TILE_AT(tile_block_index(b, 0), tile_block_index(b, 1))};
}

const tile_shape SHAPE = TILE_SHAPE(5, 7);
const tile_grid GRID = TILE_GRID(3, 3);

TEST_F(PartitionGradTest, LoadsAndStores) {
    tile_array *a = active(SHAPE, apart(35)), *t = active(SHAPE, apart(35));
    tile_kernel *k = kernel("load_store", [](tile_builder *b) {
        const Views v = views(b);
        const tile x = tile_partition_load_masked(v.t, v.at, TILE_PAD_NAN);
        const tile y = tile_partition_atomic_load_masked(v.a, v.at, 3, TILE_ORDER_ACQUIRE, DEVICE);
        tile_partition_store_masked(v.a, tile_expr("x * x * y + y", x, y), v.at);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, GRID, TILE_ARGS(a, t)));
    check(weighted(a));
}

/* What a view stored is loaded by it again, in one kernel; then stored over. */
TEST_F(PartitionGradTest, ALoadAfterAStoreThroughOneView) {
    tile_array *a = active(SHAPE, apart(35)), *t = active(SHAPE, apart(35));
    tile_kernel *k = kernel("again", [](tile_builder *b) {
        const Views v = views(b);
        const tile x = tile_partition_load_masked(v.t, v.at, 0);
        tile_partition_store_masked(v.a, tile_expr("x * x", x), v.at);
        const tile y = tile_partition_load_masked(v.a, v.at, 0);
        tile_partition_store_masked(v.a, tile_expr("y * x", y, x), v.at);
        tile_partition_atomic_add_masked(v.a, y, v.at, RELAXED, DEVICE);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, GRID, TILE_ARGS(a, t)));
    check(weighted(a)); /* t^3 + t^2 */
    EXPECT_EQ(Reals(35), grad(a));
}

TEST_F(PartitionGradTest, TheFirstOfTwoStoresGetsNothing) {
    tile_array *y = active({0, 0, 0}), *t = active({1, 2}), *u = active({3, 4});
    tile_kernel *k = kernel("stores", [](tile_builder *b) {
        const tile_partition y =
            tile_partition_view(tile_array_param(b, "y", TILE_F64, 1), TILE_SHAPE(2));
        const tile_param t = tile_array_param(b, "t", TILE_F64, 1);
        const tile_param u = tile_array_param(b, "u", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_int(b, 1));
        tile_partition_store_masked(y, tile_load(t, TILE_SHAPE(2), TILE_AT_ZERO), at);
        tile_partition_store_masked(y, tile_load(u, TILE_SHAPE(2), TILE_AT_ZERO), at);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(y, t, u)));
    EXPECT_EQ((Reals{0, 0, 3}), read(y));
    tile_array *seed = reals({1, 10, 100});
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &y, &seed));
    EXPECT_EQ((Reals{0, 0}), grad(t));
    EXPECT_EQ((Reals{100, 0}), grad(u));
    EXPECT_EQ((Reals{1, 10, 0}), grad(y));
}

TEST_F(PartitionGradTest, AdditionsThatMeet) {
    tile_array *a = active(TILE_SHAPE(4, 5), apart(20)), *t = active(SHAPE, apart(35));
    tile_kernel *k = kernel("meet", [](tile_builder *b) {
        const tile_param a = tile_array_param(b, "a", TILE_F64, 2);
        const tile_param t = tile_array_param(b, "t", TILE_F64, 2);
        const tile_offset at = TILE_AT(tile_block_index(b, 0), tile_block_index(b, 1));
        const tile_partition from = tile_partition_view(t, TILE_SHAPE(2, 3));
        const tile_partition to =
            tile_partition_view_stepped(a, TILE_SHAPE(2, 3), TILE_SHAPE(1, 2));
        const tile x = tile_partition_load_masked(from, at, 0);
        tile_partition_atomic_add_masked(to, tile_expr("x * x", x), at, RELAXED, DEVICE);
        tile_partition_atomic_sub_masked(to, tile_expr("x * x * x", x), at, RELAXED, DEVICE);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, GRID, TILE_ARGS(a, t)));
    ASSERT_EQ(TILE_OK, tile_context_sync(ctx)) << tile_last_error();
    check(weighted(a));
}

/* Nine blocks on one tile: the winner of each place takes all. */
TEST_F(PartitionGradTest, MinimaAndMaximaOfManyBlocks) {
    for (bool max : {false, true}) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        const Reals all = apart(41);
        tile_array *a = active(TILE_SHAPE(2, 3), Reals(all.begin(), all.begin() + 6));
        tile_array *t = active(SHAPE, Reals(all.begin() + 6, all.end()));
        tile_kernel *k = kernel("extreme", [&](tile_builder *b) {
            const Views v = views(b);
            const tile x = tile_partition_load_masked(v.t, v.at, 0);
            /* monotone, so that nothing comes near a tie */
            const tile y = tile_expr("x * (1 + x * x / 100)", x);
            (max ? (tile_partition_atomic_max_masked)
                 : (tile_partition_atomic_min_masked))(v.a, y, TILE_AT_ZERO, RELAXED, DEVICE);
        });
        ASSERT_EQ(TILE_OK, tile_launch(record, k, GRID, TILE_ARGS(a, t)));
        ASSERT_EQ(TILE_OK, tile_context_sync(ctx)) << tile_last_error();
        check(weighted(a));
    }
}

/* Ties */

/* out = max over blocks of t's rows and what a held; gradients of a and t for seeds. */
class Ties : public PartitionGradTest {
  public:
    explicit Ties(int threads) : PartitionGradTest(threads) {}
    void TestBody() override {}
    struct Result {
        Reals a, da, dt;
    };
    Result run(bool max, const Reals &a0, const Reals &t0, const Reals &seeds) {
        const int64_t n = static_cast<int64_t>(a0.size());
        const int64_t blocks = static_cast<int64_t>(t0.size()) / n;
        tile_array *a = active(a0), *t = active(TILE_SHAPE(blocks, n), t0), *seed = reals(seeds);
        tile_kernel *k = kernel("ties", [&](tile_builder *b) {
            const tile_partition to =
                tile_partition_view(tile_array_param(b, "a", TILE_F64, 1), TILE_SHAPE(n));
            const tile_partition from =
                tile_partition_view(tile_array_param(b, "t", TILE_F64, 2), TILE_SHAPE(1, n));
            const tile_offset row = TILE_AT(tile_block_index(b, 0), tile_int(b, 0));
            const tile v = tile_reshape(tile_partition_load(from, row), TILE_SHAPE(n));
            (max ? (tile_partition_atomic_max) : (tile_partition_atomic_min))(to, v, TILE_AT_ZERO,
                                                                              RELAXED, DEVICE);
        });
        EXPECT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(blocks), TILE_ARGS(a, t)));
        EXPECT_EQ(TILE_OK, tape_backward_seeds(record, 1, &a, &seed)) << tile_last_error();
        return {read(a), grad(a), grad(t)};
    }
};

TEST(PartitionTiesTest, TheFirstThatHoldsTheFinalValueWinsAndTheArrayBeforeAll) {
    /* place 0: block 1 is the first with 5; place 1: the array has 5; place 2: block 0, then
     * block 2 is better; place 3: nobody beats the array */
    const Reals a0 = {1, 5, 0, 9}, t0 = {4, 5, 2, 1, 5, 5, 2, 1, 5, 4, 3, 9},
                seeds = {1, 10, 100, 1000};
    for (int threads : {1, 2, 4}) {
        const Ties::Result r = Ties(threads).run(true, a0, t0, seeds);
        EXPECT_EQ((Reals{5, 5, 3, 9}), r.a);
        EXPECT_EQ((Reals{0, 10, 0, 1000}), r.da);
        EXPECT_EQ((Reals{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 100, 0}), r.dt);
        EXPECT_EQ(total(seeds), total(r.da) + total(r.dt));
    }
}

/* Few values, many blocks: a plain loop says who wins. */
TEST(PartitionTiesTest, GradientsAreConservedInACrowd) {
    std::mt19937_64 random(11);
    enum { PLACES = 37, BLOCKS = 300 };
    for (bool max : {false, true}) {
        Reals a0(PLACES), t0(PLACES * BLOCKS), seeds(PLACES);
        for (double &x : a0) x = static_cast<double>(random() % 9);
        for (double &x : t0) x = static_cast<double>(random() % 9);
        for (double &x : seeds) x = static_cast<double>(1 + random() % 100);
        Reals want = a0, da = seeds, dt(t0.size());
        std::vector<int> owner(PLACES, -1);
        for (size_t k = 0; k < t0.size(); k++) {
            const size_t p = k % PLACES;
            if (max ? !(t0[k] > want[p]) : !(t0[k] < want[p])) continue;
            want[p] = t0[k];
            owner[p] = static_cast<int>(k);
        }
        for (size_t p = 0; p < PLACES; p++)
            if (owner[p] >= 0) dt[static_cast<size_t>(owner[p])] = seeds[p], da[p] = 0;
        for (int threads : {1, 3}) {
            const Ties::Result r = Ties(threads).run(max, a0, t0, seeds);
            EXPECT_EQ(want, r.a);
            EXPECT_EQ(da, r.da);
            EXPECT_EQ(dt, r.dt);
        }
    }
}

TEST(PartitionTiesTest, NaNLeavesEverythingAsItIs) {
    const Ties::Result r = Ties(1).run(true, {1, NAN, 2}, {NAN, 5, 3}, {1, 10, 100});
    EXPECT_EQ(1, r.a[0]);
    EXPECT_TRUE(std::isnan(r.a[1]));
    EXPECT_EQ(3, r.a[2]);
    EXPECT_EQ((Reals{1, 10, 0}), r.da);
    EXPECT_EQ((Reals{0, 0, 100}), r.dt);
}

/* Other atomics */

typedef const std::vector<tile_param> Params;

tile all_of(tile_param p, const Ints &shape) {
    return tile_load(p, shape_of(shape), TILE_AT_ZERO);
}

TEST(AtomicTest, DuplicatesOfAnIndexedMaximum) {
    /* place 1: 4, 6, 6, 5 come to 3: the first 6 wins; place 0: 2 loses to 7; -1 goes nowhere */
    Field t({6}, {4, 2, 6, 6, 5, 99}), a({3}, {7, 3, 8}),
        was = Field::zeros({6}), at = Field::of_integers({6}, {1, 0, 1, 1, 1, -1});
    KernelRun run({&t, &a, &was, &at}, [](tile_builder *, Params &p) {
        tile_store(p[2],
                   tile_atomic_max_indexed(p[1], all_of(p[3], {6}), all_of(p[0], {6}), TILE_AT_ZERO,
                                           0),
                   TILE_AT_ZERO);
    });
    a.grad = {1, 10, 100};
    was.grad = {5, 5, 5, 5, 5, 5}; /* constants: goes nowhere */
    run.backward({1});
    EXPECT_EQ((Reals{7, 6, 8}), a.value);
    EXPECT_EQ((Reals{3, 7, 4, 6, 6, 0}), was.value);
    EXPECT_EQ((Reals{0, 0, 10, 0, 0, 0}), t.grad);
    EXPECT_EQ((Reals{1, 0, 100}), a.grad);
}

TEST(AtomicTest, DuplicatesOfAnIndexedMinimum) {
    Field t({4}, {4, 2, 2, -1}), a({2}, {3, 3}), at = Field::of_integers({4}, {0, 0, 0, 1});
    KernelRun run({&t, &a, &at}, [](tile_builder *, Params &p) {
        tile_atomic_min_indexed(p[1], all_of(p[2], {4}), all_of(p[0], {4}), TILE_AT_ZERO, 0);
    });
    a.grad = {1, 10};
    run.backward({1});
    EXPECT_EQ((Reals{2, -1}), a.value);
    EXPECT_EQ((Reals{0, 1, 0, 10}), t.grad);
    EXPECT_EQ((Reals{0, 0}), a.grad);
}

TEST(AtomicTest, IndexedSubtraction) {
    Field t({3}, {1, 2, 4}), a({2}, {10, 20}), at = Field::of_integers({3}, {1, 1, 0});
    KernelRun run({&t, &a, &at}, [](tile_builder *, Params &p) {
        tile_atomic_sub_indexed(p[1], all_of(p[2], {3}), all_of(p[0], {3}), TILE_AT_ZERO, 0);
    });
    a.grad = {1, 10};
    run.backward({1});
    EXPECT_EQ((Reals{6, 17}), a.value);
    EXPECT_EQ((Reals{-10, -10, -1}), t.grad);
    EXPECT_EQ((Reals{1, 10}), a.grad);
}

template <typename T>
std::vector<T> update(const char *op, std::vector<T> a, std::vector<T> t, std::vector<T> *was) {
    Guarded<T> memory(a), tile(t), out(static_cast<int64_t>(t.size()), T());
    tile_call call = {};
    const int64_t n = static_cast<int64_t>(a.size());
    call.in[0] = tile.data();
    call.in_dims[0] = call.out_dims[0] = dims_of({n});
    call.out[0] = out.data();
    call.array.read = call.array.write = memory.data();
    call.array.rank = 1;
    call.array.extent[0] = call.high[0] = n;
    call.array.stride[0] = 1;
    run_of(op, DtypeOf<T>::value)(&call);
    *was = out.values();
    return memory.values();
}

/* Signed and unsigned types compare as what they are; bits are bits. */
TEST(AtomicTest, IntegersOfEachType) {
    std::vector<uint32_t> u;
    std::vector<int32_t> i;
    std::vector<uint64_t> ul;
    std::vector<int64_t> l;
    const uint32_t high = 0x80000000u;
    EXPECT_EQ((std::vector<uint32_t>{high, 7}),
              update<uint32_t>("atomic_max", {5, 7}, {high, 6}, &u));
    EXPECT_EQ((std::vector<uint32_t>{5, 7}), u);
    EXPECT_EQ((std::vector<uint32_t>{5, 6}), update<uint32_t>("atomic_min", {5, 7}, {high, 6}, &u));
    EXPECT_EQ((std::vector<int32_t>{5, -6}),
              update<int32_t>("atomic_max", {5, -7}, {INT32_MIN, -6}, &i));
    EXPECT_EQ((std::vector<int32_t>{INT32_MIN, -7}),
              update<int32_t>("atomic_min", {5, -7}, {INT32_MIN, -6}, &i));
    EXPECT_EQ((std::vector<uint64_t>{UINT64_MAX}),
              update<uint64_t>("atomic_max", {1}, {UINT64_MAX}, &ul));
    EXPECT_EQ((std::vector<int64_t>{1}), update<int64_t>("atomic_max", {1}, {-1}, &l));
    EXPECT_EQ((std::vector<int64_t>{INT64_MIN}),
              update<int64_t>("atomic_and", {-1}, {INT64_MIN}, &l));
    EXPECT_EQ((std::vector<int64_t>{-1}), l);
    EXPECT_EQ((std::vector<int32_t>{-2}), update<int32_t>("atomic_xor", {-1}, {1}, &i));
    EXPECT_EQ((std::vector<uint64_t>{0xF0Fu}), update<uint64_t>("atomic_or", {0xF00}, {0xF}, &ul));
}

/* Zeros of different sign tie: what is there stays. */
TEST(AtomicTest, ZerosTie) {
    std::vector<double> was;
    EXPECT_TRUE(std::signbit(update<double>("atomic_max", {-0.0}, {0.0}, &was)[0]));
    EXPECT_FALSE(std::signbit(update<double>("atomic_min", {0.0}, {-0.0}, &was)[0]));
}

/* A kernel whose previous values nobody asks for is committed in block order: the same bits. */
TEST(AtomicTest, UpdatesOfManyBlocksInAnyNumberOfThreads) {
    Reals first;
    for (int threads : {1, 2, 4}) {
        const tile_context_options options = {threads, 0, false};
        tile_context *ctx = nullptr;
        ASSERT_EQ(TILE_OK, tile_context_create(&options, &ctx));
        tile_builder *b = tile_kernel_begin(ctx, "updates");
        const tile_param a = tile_array_param(b, "a", TILE_F64, 1);
        const tile i = tile_block_index(b, 0);
        const tile n = tile_cast(i, TILE_F64);
        const tile s = tile_expr("sin(n)", n);
        const tile_offset at = TILE_AT(tile_expr("mod(i, 5)", i));
        tile_atomic_max(a, tile_broadcast(s, TILE_SHAPE(3)), at);
        tile_atomic_add(a, tile_broadcast(s, TILE_SHAPE(2)), at);
        tile_atomic_min(a, tile_broadcast(tile_expr("s * s", s), TILE_SHAPE(3)), at);
        tile_kernel *k = nullptr;
        ASSERT_EQ(TILE_OK, tile_kernel_end(b, &k)) << tile_last_error();
        tile_array *array = nullptr;
        ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F64, TILE_SHAPE(8), &array));
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(5000), TILE_ARGS(array)));
        Reals y(8), want(8);
        ASSERT_EQ(TILE_OK, tile_array_read(array, y.data(), 64));
        if (first.empty()) first = y;
        EXPECT_EQ(0, memcmp(first.data(), y.data(), 64)) << threads;
        for (int block = 0; block < 5000; block++) {
            const double v = std::sin(block);
            for (int c = 0; c < 3; c++) {
                double &m = want[static_cast<size_t>(block % 5 + c)];
                m = std::max(m, v);
                if (c < 2) m += v;
                m = std::min(m, v * v);
            }
        }
        for (size_t p = 0; p < 8; p++) EXPECT_NEAR(want[p], y[p], 1e-9);
        tile_array_destroy(array);
        tile_kernel_destroy(k);
        tile_context_destroy(ctx);
    }
}

/* Chosen stores */

TEST(WhereTest, ChosenElementsAreStoredAndTakeTheGradient) {
    Field t({2, 3}, {1, 2, 3, 4, 5, 6}), a({2, 2}, {10, 20, 30, 40});
    KernelRun run({&t, &a}, [](tile_builder *, Params &p) {
        const tile x = all_of(p[0], {2, 3});
        tile_store_where(p[1], tile_expr("x != 2 && x != 4", x), x, TILE_AT_ZERO);
    });
    a.grad = {1, 2, 3, 4};
    run.backward({1});
    EXPECT_EQ((Reals{1, 20, 30, 5}), a.value);
    EXPECT_EQ((Reals{1, 0, 0, 0, 4, 0}), t.grad);
    EXPECT_EQ((Reals{0, 2, 3, 0}), a.grad);
}

TEST(WhereTest, TheLastChosenOfDuplicatesWins) {
    Field t({5}, {1, 2, 3, 4, 5}), a({3}, {10, 20, 30}),
        at = Field::of_integers({5}, {1, 1, 1, 0, -1}),
        mask = Field::of_integers({5}, {1, 1, 0, 0, 1});
    KernelRun run({&t, &a, &at, &mask}, [](tile_builder *, Params &p) {
        const tile m = all_of(p[3], {5});
        tile_store_where_indexed(p[1], all_of(p[2], {5}), tile_expr("m != 0", m), all_of(p[0], {5}),
                                 TILE_AT_ZERO, 0);
    });
    a.grad = {1, 2, 3};
    run.backward({1});
    EXPECT_EQ((Reals{10, 2, 30}), a.value);
    EXPECT_EQ((Reals{0, 2, 0, 0, 0}), t.grad);
    EXPECT_EQ((Reals{1, 0, 3}), a.grad);
}

TEST(WhereTest, AMaskIsSpreadAndOthersAreErrors) {
    Field t({2, 3}, {1, 2, 3, 4, 5, 6}), a({2, 3}, Reals(6));
    KernelRun run({&t, &a}, [](tile_builder *b, Params &p) {
        const tile i = tile_iota(b, TILE_I64, TILE_SHAPE(3), 0, tile_int(b, 0));
        tile_store_where(p[1], tile_expr("i == 1", i), all_of(p[0], {2, 3}), TILE_AT_ZERO);
    });
    run.forward({1});
    EXPECT_EQ((Reals{0, 2, 0, 0, 5, 0}), a.value);
    const auto fails = [&](const std::string &part,
                           const std::function<void(tile_builder *, Params &)> &f) {
        KernelRun bad({&t, &a}, f);
        EXPECT_NE(TILE_OK, bad.status);
        EXPECT_NE(std::string::npos, bad.message.find(part)) << bad.message;
    };
    fails("store_where: the mask is float64, expected bool", [](tile_builder *, Params &p) {
        const tile x = all_of(p[0], {2, 3});
        tile_store_where(p[1], x, x, TILE_AT_ZERO);
    });
    fails("store_where: the mask is [2], the tile is [2, 3]", [](tile_builder *b, Params &p) {
        tile_store_where(p[1], tile_full(b, TILE_BOOL, TILE_SHAPE(2), 1), all_of(p[0], {2, 3}),
                         TILE_AT_ZERO);
    });
    fails("store_where: the tile is [3], the array has rank 2", [](tile_builder *b, Params &p) {
        tile_store_where(p[1], tile_full(b, TILE_BOOL, TILE_SHAPE(3), 1),
                         tile_zeros(b, TILE_F64, TILE_SHAPE(3)), TILE_AT_ZERO);
    });
}

/* Second order: what the tape runs backward for a maximum, written as a kernel, is differentiated
 * like any other.
 *
 *   forward    a = max(a, v^2)
 *   its adjoint  won = v^2 > a, dt = da where won (then da = 0), dv = 2 v dt
 *   by v       2 dt where won;  by da: 2 v where won (dv), 1 elsewhere (da is kept) */
TEST_F(PartitionGradTest, SecondOrderThroughAMaximum) {
    tile_array *v = active({1, 2, -3, 0.5}), *a = reals({2, 3, 4, 5});
    tile_array *da = active({0.1, 0.2, 0.3, 0.4}), *dv = zeros(4);
    tile_kernel *k = kernel("second", [](tile_builder *b) {
        const tile_param pv = tile_array_param(b, "v", TILE_F64, 1);
        const tile_param pa = tile_array_param(b, "a", TILE_F64, 1);
        const tile_param pg = tile_array_param(b, "da", TILE_F64, 1);
        const tile_param pd = tile_array_param(b, "dv", TILE_F64, 1);
        const tile v = tile_load(pv, TILE_SHAPE(4), TILE_AT_ZERO);
        const tile a = tile_load(pa, TILE_SHAPE(4), TILE_AT_ZERO);
        tile_emission take = {};
        take.op = tile_op_find("take_where");
        take.n_in = 1;
        take.in[0] = tile_expr("v * v > a", v, a);
        take.array = pg;
        take.has_shape = true;
        take.shape = TILE_SHAPE(4);
        const tile dt = tile_emit(b, &take);
        tile_store(pd, tile_expr("2 * v * dt", v, dt), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(v, a, da, dv)));
    EXPECT_EQ((Reals{0, 4 * 0.2, -6 * 0.3, 0}), read(dv));
    EXPECT_EQ((Reals{0.1, 0, 0, 0.4}), read(da));
    tile_array *seeded[] = {dv, da}, *seeds[] = {reals({1, 1, 1, 1}), reals({10, 10, 10, 10})};
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 2, seeded, seeds)) << tile_last_error();
    EXPECT_EQ((Reals{0, 2 * 0.2, 2 * 0.3, 0}), grad(v));
    EXPECT_EQ((Reals{10, 4, -6, 10}), grad(da));
    ASSERT_EQ(TILE_OK, tape_zero(record));
    check(weighted(dv));
}

TEST_F(PartitionGradTest, TheAdjointOfAMaximumTakesForTheWinner) {
    tile_kernel *k = kernel("maximum", [](tile_builder *b) {
        const tile_param a = tile_array_param(b, "a", TILE_F64, 1);
        const tile_param t = tile_array_param(b, "t", TILE_F64, 1);
        tile_atomic_max(a, tile_load(t, TILE_SHAPE(4), TILE_AT_ZERO), TILE_AT_ZERO);
    });
    char *text = nullptr;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ASSERT_EQ(TILE_OK, tile_kernel_print_adjoint(k, out)) << tile_last_error();
    fclose(out);
    EXPECT_NE(nullptr, strstr(text, "take_where da[")) << text;
    free(text);
}

/* A chain of launches: the winner's gradient goes on through what made it. */
TEST_F(PartitionGradTest, ThroughLaunchesThatOverwrite) {
    tile_array *x = active(apart(12)), *m = active({-9, -9, -9, -9}), *y = zeros(12);
    tile_kernel *k = kernel("running", [](tile_builder *b) {
        const tile_partition y =
            tile_partition_view(tile_array_param(b, "y", TILE_F64, 1), TILE_SHAPE(4));
        const tile_param m = tile_array_param(b, "m", TILE_F64, 1);
        const tile_offset i = TILE_AT(tile_block_index(b, 0));
        const tile t = tile_partition_load(y, i);
        tile_atomic_max(m, t, TILE_AT_ZERO);
        tile_partition_store(y, tile_expr("t / 2", t), i);
    });
    ASSERT_EQ(TILE_OK, launch(map("thrice", [](tile t) { return tile_expr("3 * t", t); }), x, y));
    for (int n = 0; n < 3; n++)
        ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(3), TILE_ARGS(y, m)));
    tile_array *both = zeros(1), *loss = weighted(m);
    ASSERT_EQ(TILE_OK, tape_dot(record, y, y, both));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, both, loss));
    check(loss);
}

} // namespace
