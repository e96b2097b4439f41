/* exec_test.cc: rows against blocks bit for bit, any number of threads, order of effects, loops. */
#include <gtest/gtest.h>

#include "tests/random_field.h"
extern "C" {
#include "core/exec_fuse.h"
}

namespace {

using namespace field_test;

std::vector<Bytes> run_field(RandomField *f, int threads, bool by_blocks, bool *by_rows,
                             bool *guarded) {
    Runner r(threads);
    r.build([f](tile_builder *b) { FieldBuilder(*f, b).build(); });
    std::vector<Memory *> arrays;
    std::vector<Bytes> before, after;
    for (auto &m : f->inputs) arrays.push_back(m.get());
    for (auto &m : f->outputs) arrays.push_back(m.get());
    for (Memory *m : arrays) before.push_back(m->bytes);
    tile_bound bound = bound_of(f->grid, arrays);
    bound.scalar[8].real = 0.75;
    bound.scalar[9].integer = 2;
    if (r.kernel) r.run(bound, by_blocks);
    *by_rows = r.kernel && r.rows();
    *guarded = true;
    for (Memory *m : arrays) {
        *guarded = *guarded && m->guarded();
        after.push_back(m->bytes);
    }
    for (size_t k = 0; k < arrays.size(); k++) arrays[k]->bytes = before[k];
    return after;
}

TEST(Rows, HaveTheBitsOfBlocksOnRandomFields) {
    int rows = 0, all = 0;
    const char *text = getenv("TILE_SEED");
    const unsigned first = text ? static_cast<unsigned>(atoi(text)) : 1;
    const unsigned last = text ? first : 250;
    for (unsigned seed = first; seed <= last; seed++) {
        RandomField f(seed);
        bool by_rows, guarded;
        const std::vector<Bytes> blocks = run_field(&f, 1, true, &by_rows, &guarded);
        ASSERT_TRUE(guarded) << "TILE_SEED=" << seed;
        ASSERT_FALSE(by_rows);
        for (int threads : THREADS) {
            if (threads > 1 && seed % 4) continue;
            const std::vector<Bytes> other = run_field(&f, threads, false, &by_rows, &guarded);
            ASSERT_TRUE(guarded) << "TILE_SEED=" << seed << " threads " << threads;
            for (size_t k = 0; k < blocks.size(); k++)
                ASSERT_TRUE(blocks[k] == other[k])
                    << "TILE_SEED=" << seed << " threads " << threads << " array " << k;
        }
        all++;
        rows += by_rows;
    }
    if (!text) {
        EXPECT_GT(rows, all * 8 / 10);
    }
}

/* Rows: single cases */

/* Runs a kernel by blocks and by rows; the arrays must agree, and rows must have run. */
void expect_rows(const std::function<void(tile_builder *)> &body, const Ints &grid,
                 const std::vector<Memory *> &arrays, bool by_rows = true) {
    std::vector<Bytes> before, blocks;
    for (Memory *m : arrays) before.push_back(m->bytes);
    for (int threads : {0, 1, 2, 3, 8}) {
        for (size_t k = 0; k < arrays.size(); k++) arrays[k]->bytes = before[k];
        Runner r(threads ? threads : 1);
        r.build(body);
        ASSERT_TRUE(r.kernel);
        r.run(bound_of(grid, arrays), threads == 0);
        EXPECT_EQ(by_rows && threads, r.rows())
            << tile_executable_analysis(r.kernel->forward)->field.why;
        for (size_t k = 0; k < arrays.size(); k++) {
            EXPECT_TRUE(arrays[k]->guarded());
            if (threads == 0) blocks.push_back(arrays[k]->bytes);
            EXPECT_TRUE(blocks[k] == arrays[k]->bytes) << "threads " << threads << " array " << k;
        }
    }
}

double wavy(int64_t i) {
    return std::sin(0.7 * static_cast<double>(i));
}

TEST(Rows, KeepALoadThatIsUsedAfterItsArrayIsWritten) {
    /* y = y + 1, z = (old y) * (new y) */
    Memory y(TILE_F32, {37}), z(TILE_F32, {37});
    y.fill(wavy);
    const std::vector<double> old = [&y] {
        std::vector<double> v;
        for (int64_t i = 0; i < 37; i++) v.push_back(y.get(i));
        return v;
    }();
    expect_rows(
        [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "y", TILE_F32, 1);
            const tile_param q = tile_array_param(b, "z", TILE_F32, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, 8));
            const tile before = tile_load(p, TILE_SHAPE(8), at);
            tile_store(p, tile_expr("before + 1", before), at);
            const tile after = tile_load(p, TILE_SHAPE(8), at);
            tile_store(q, tile_mul(before, after), at);
        },
        {5}, {&y, &z});
    for (int64_t i = 0; i < 37; i++)
        EXPECT_FLOAT_EQ(static_cast<float>(old[static_cast<size_t>(i)] *
                                           (old[static_cast<size_t>(i)] + 1)),
                        static_cast<float>(z.get(i)));
}

/* z = p[x-1] + p[x+1] with q loaded where z is written, q used again after the write. */
void two_names(tile_builder *b) {
    const tile_param z = tile_array_param(b, "z", TILE_F32, 1);
    const tile_param q = tile_array_param(b, "q", TILE_F32, 1);
    const tile_param y = tile_array_param(b, "y", TILE_F32, 1);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, 16));
    const tile t = tile_load(q, TILE_SHAPE(16), at);
    tile_store(z, tile_expr("2 * t", t), at);
    tile_store(y, tile_expr("t + 1", t), at);
}

TEST(Rows, SeeTheSameArrayUnderTwoNames) {
    Memory z(TILE_F32, {100}), y(TILE_F32, {100});
    z.fill(wavy);
    Memory first = z;
    for (int threads : THREADS) {
        z.bytes = first.bytes;
        Runner r(threads);
        r.build(two_names);
        tile_bound bound = bound_of({7}, {&z, &z, &y});
        r.run(bound);
        EXPECT_TRUE(r.rows());
        for (int64_t i = 0; i < 100; i++) {
            EXPECT_EQ(2 * first.get(i), z.get(i));
            EXPECT_FLOAT_EQ(static_cast<float>(first.get(i) + 1), static_cast<float>(y.get(i)));
        }
    }
}

/* y = p + p^2 + (the row above p)^2, where p and y may be one array: the row above is y's by then,
 * and a ring of rows would still hold p's. */
void stencil_of_two_names(tile_builder *b) {
    const tile_param p = tile_array_param(b, "p", TILE_F32, 2);
    const tile_param y = tile_array_param(b, "y", TILE_F32, 2);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, 1), tile_block_start(b, 1, 16));
    const tile here = tile_load(p, TILE_SHAPE(1, 16), at);
    const tile wide = tile_load(p, TILE_SHAPE(2, 16), TILE_SHIFT(at, -1, 0));
    const tile square = tile_mul(wide, wide);
    tile part[2];
    for (int k = 0; k < 2; k++) {
        tile_emission e = {};
        e.op = tile_op_find("view");
        e.n_in = 1;
        e.in[0] = square;
        e.has_shape = true;
        e.shape = TILE_SHAPE(1, 16);
        e.attrs.shift[0] = k;
        part[k] = tile_emit(b, &e);
    }
    const tile above = part[0], own = part[1];
    tile_store(y, tile_expr("here + own + above", here, own, above), at);
}

TEST(Rows, LeaveAStencilOnOneArrayUnderTwoNamesToTheBlocks) {
    Memory apart(TILE_F32, {4, 16}), other(TILE_F32, {4, 16}), one(TILE_F32, {4, 16});
    apart.fill([](int64_t) { return 0.5; });
    one.fill([](int64_t) { return 0.5; });
    for (int threads : THREADS) {
        Runner r(threads);
        r.build(stencil_of_two_names);
        r.run(bound_of({4, 1}, {&apart, &other}));
        EXPECT_TRUE(r.rows());
        EXPECT_EQ(1.0, other.get(16));
        Memory both = one;
        Runner q(threads);
        q.build(stencil_of_two_names);
        q.run(bound_of({4, 1}, {&both, &both}));
        EXPECT_FALSE(q.rows());
        /* The first row has zeros above it: 0.75; then 0.5 + 0.25 + what is above, squared. */
        EXPECT_EQ(0.75, both.get(0));
        EXPECT_EQ(0.75 + 0.75 * 0.75, both.get(16));
    }
}

TEST(Rows, GiveWayToBlocksInOrderWhereNamesOverlapElsewhere) {
    /* q is z moved by one: block b reads what block b - 1 wrote at its first element */
    Memory z(TILE_F32, {100}), y(TILE_F32, {100});
    z.fill(wavy);
    Memory first = z;
    for (int threads : THREADS) {
        z.bytes = first.bytes;
        Runner r(threads);
        r.build(two_names);
        tile_bound bound = bound_of({7}, {&z, &z, &y});
        bound.array[1].read = static_cast<const char *>(bound.array[1].read) - 4;
        bound.array[1].write = static_cast<char *>(bound.array[1].write) - 4;
        r.run(bound);
        EXPECT_FALSE(r.rows());
        for (int64_t i = 1; i < 100; i++) {
            const double left = i % 16 ? first.get(i - 1) : z.get(i - 1);
            EXPECT_EQ(2 * left, z.get(i)) << i;
        }
    }
}

TEST(Rows, RunAWideStencilInPanels) {
    Memory x(TILE_F32, {9, 9000}), y(TILE_F32, {9, 9000});
    x.fill(wavy);
    expect_rows(
        [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_F32, 2);
            const tile_param q = tile_array_param(b, "y", TILE_F32, 2);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, 4), tile_block_start(b, 1, 512));
            const tile wide = tile_load(p, TILE_SHAPE(8, 516), TILE_SHIFT(at, -2, -2));
            const tile w = tile_mul(wide, wide);
            const tile zero = tile_int(b, 0);
            const tile_offset here = TILE_AT(zero, zero);
            const tile n = tile_view(w, TILE_SHIFT(here, 0, 2), TILE_SHAPE(4, 512));
            const tile s = tile_view(w, TILE_SHIFT(here, 4, 2), TILE_SHAPE(4, 512));
            const tile e = tile_view(w, TILE_SHIFT(here, 2, 4), TILE_SHAPE(4, 512));
            tile_store(q, tile_expr("n + s - e", n, s, e), at);
        },
        {3, 18}, {&x, &y});
}

TEST(Rows, DoNothingOnEmptyArraysAndGrids) {
    Memory none(TILE_F32, {0}), some(TILE_F32, {8});
    some.fill(wavy);
    const Bytes before = some.bytes;
    const auto copy = [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "x", TILE_F32, 1);
        const tile_param q = tile_array_param(b, "y", TILE_F32, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, 4));
        tile_store(q, tile_load(p, TILE_SHAPE(4), at), at);
    };
    Runner r(2);
    r.build(copy);
    for (bool by_blocks : {false, true}) {
        r.run(bound_of({2}, {&some, &none}), by_blocks);
        r.run(bound_of({0}, {&none, &some}), by_blocks);
        EXPECT_TRUE(before == some.bytes);
        r.run(bound_of({2}, {&none, &some}), by_blocks); /* padding */
        EXPECT_EQ(0, some.get(7));
        some.bytes = before;
    }
    tile_bound wrong = bound_of({-1}, {&some, &some});
    EXPECT_EQ(TILE_E_ARGUMENT, tile_execute(r.kernel->forward, &wrong));
    EXPECT_STREQ("test: grid axis 0 has -1 blocks", tile_last_error());
    wrong = bound_of({INT64_MAX, 4}, {&some, &some});
    EXPECT_EQ(TILE_E_ARGUMENT, tile_execute(r.kernel->forward, &wrong));
}

TEST(Rows, TouchNothingAtFarOffsets) {
    const int64_t places[] = {
        INT64_MAX, INT64_MIN, (int64_t)1 << 62, -((int64_t)1 << 62), INT64_MAX - 3, 8, -4};
    Memory x(TILE_F32, {8}), y(TILE_F32, {8});
    x.fill(wavy);
    y.fill(wavy);
    const Bytes before = y.bytes;
    Runner r(1);
    r.build([](tile_builder *b) {
        const tile_param p = tile_array_param(b, "x", TILE_F32, 1);
        const tile_param q = tile_array_param(b, "y", TILE_F32, 1);
        const tile far = tile_int_param(b, "far");
        tile_offset at = TILE_AT(tile_add(tile_block_start(b, 0, 4), far));
        const tile t = tile_load(p, TILE_SHAPE(4), TILE_SHIFT(at, -1));
        tile_store(q, tile_expr("t + 1", t), at);
    });
    for (int64_t far : places)
        for (bool by_blocks : {false, true}) {
            tile_bound bound = bound_of({1}, {&x, &y});
            bound.scalar[2].integer = far;
            r.run(bound, by_blocks);
            EXPECT_TRUE(before == y.bytes) << far;
        }
}

/* Fused strips */

template <typename T> bool same_value(T x, T y) {
    return (x != x && y != y) || !memcmp(&x, &y, sizeof x);
}

/* Ordinary values, zeros of both signs, infinities and NaN, against each other. */
template <typename T> std::vector<T> odd_values(unsigned seed) {
    const T odd[] = {0, -T(0), 1, T(-2.5), INFINITY, -INFINITY, NAN, T(1e-30)};
    std::mt19937 random(seed);
    std::vector<T> x;
    for (int i = 0; i < 203; i++)
        x.push_back(i % 3 ? odd[random() % 8] : std::uniform_real_distribution<T>(-2, 2)(random));
    return x;
}

template <typename T> void check_fused(const tile_fused *fused, tile_dtype dtype) {
    const char *names[] = {"add", "sub", "mul", "guarded_mul", "neg", "sub", "guarded_mul"};
    tile_strip strip[TILE_FUSED_SECOND];
    const tile_dtype in[] = {dtype, dtype};
    for (int k = 0; k < TILE_FUSED_SECOND; k++) {
        const tile_op *op = tile_op_find(names[k]);
        ASSERT_NE(nullptr, op) << names[k];
        strip[k] = op->strip(op, in, dtype);
    }
    std::vector<std::vector<T>> x;
    for (unsigned k = 0; k < 8; k++) x.push_back(odd_values<T>(k));
    const size_t n = x[0].size();
    const int64_t count = static_cast<int64_t>(n);
    std::vector<T> part(n), want(n), got(n);
    for (int first = 0; first < TILE_FUSED_FIRST; first++)
        for (int second = 0; second < TILE_FUSED_SECOND; second++) {
            const void *const a[] = {x[0].data(), x[1].data()};
            strip[first](a, part.data(), count);
            const std::vector<T> &c = first == TILE_FUSED_NEG ? x[1] : x[2];
            const bool turned = second >= TILE_FUSED_FROM;
            const void *const b[] = {turned ? c.data() : part.data(),
                                     turned ? part.data() : c.data()};
            strip[second](b, want.data(), count);
            const void *const all[] = {x[0].data(), x[1].data(), x[2].data()};
            fused->pair[dtype == TILE_F64][first][second](all, got.data(), count);
            for (size_t i = 0; i < n; i++)
                ASSERT_TRUE(same_value(want[i], got[i])) << first << " then " << second;
        }
    want = x[0];
    for (int k = 1; k < TILE_SUM_MAX; k++) {
        const void *const b[] = {want.data(), x[static_cast<size_t>(k)].data()};
        strip[TILE_FUSED_ADD](b, want.data(), count);
        if (k < 2) continue;
        std::vector<const void *> all;
        for (const std::vector<T> &v : x) all.push_back(v.data());
        fused->sum[dtype == TILE_F64][k + 1](all.data(), got.data(), count);
        for (size_t i = 0; i < n; i++) ASSERT_TRUE(same_value(want[i], got[i])) << k + 1;
    }
}

TEST(Fused, StripsHaveTheBitsOfTheirOps) {
    check_fused<float>(&tile_fused_base, TILE_F32);
    check_fused<double>(&tile_fused_base, TILE_F64);
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx2")) return;
    check_fused<float>(&tile_fused_avx2, TILE_F32);
    check_fused<double>(&tile_fused_avx2, TILE_F64);
#endif
}

/* Order */

/* A kernel's arrays for every number of threads: the bits of the first. */
void expect_same_for_threads(const std::function<void(tile_builder *)> &body, const Ints &grid,
                             const std::vector<Memory *> &arrays) {
    std::vector<Bytes> before, first;
    for (Memory *m : arrays) before.push_back(m->bytes);
    for (int threads : THREADS) {
        for (size_t k = 0; k < arrays.size(); k++) arrays[k]->bytes = before[k];
        Runner r(threads);
        r.build(body);
        ASSERT_TRUE(r.kernel);
        for (int k = 0; k < 3; k++) r.run(bound_of(grid, arrays));
        for (size_t k = 0; k < arrays.size(); k++) {
            EXPECT_TRUE(arrays[k]->guarded());
            if (threads == 1) first.push_back(arrays[k]->bytes);
            EXPECT_TRUE(first[k] == arrays[k]->bytes) << "threads " << threads << " array " << k;
        }
    }
}

TEST(Order, OverlappingAdditionsAreCommittedInBlockOrder) {
    const int64_t blocks = 3000;
    Memory x(TILE_F32, {blocks * 16}), y(TILE_F32, {200});
    x.fill([](int64_t i) { return 1 / (1.0 + static_cast<double>(i % 97)); });
    y.fill(wavy);
    Memory want = y;
    for (int round = 0; round < 3; round++)
        for (int64_t b = 0; b < blocks; b++)
            for (int64_t i = 0; i < 16; i++) {
                const int64_t to = b % 19 * 10 + i - 5;
                const float t = static_cast<float>(x.get(b * 16 + i));
                if (to >= 0 && to < 200)
                    want.set(to, static_cast<double>(static_cast<float>(want.get(to)) + t * t));
            }
    expect_same_for_threads(
        [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_F32, 1);
            const tile_param q = tile_array_param(b, "y", TILE_F32, 1);
            const tile i = tile_block_index(b, 0);
            const tile t = tile_load(p, TILE_SHAPE(16), TILE_AT(tile_block_start(b, 0, 16)));
            const tile to = tile_expr("mod(i, 19) * 10 - 5", i);
            tile_atomic_add(q, tile_mul(t, t), TILE_AT(to));
        },
        {blocks}, {&x, &y});
    EXPECT_TRUE(want.bytes == y.bytes);
}

TEST(Order, TheLastStoreWinsAndLoopsLogEveryIteration) {
    Memory index(TILE_I64, {512 * 8}), y(TILE_F64, {64});
    index.fill([](int64_t i) { return static_cast<double>((i * 37 + i / 11) % 66 - 1); });
    y.fill(wavy);
    expect_same_for_threads(
        [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "index", TILE_I64, 1);
            const tile_param q = tile_array_param(b, "y", TILE_F64, 1);
            const tile at = tile_load(p, TILE_SHAPE(8), TILE_AT(tile_block_start(b, 0, 8)));
            const tile block = tile_block_index(b, 0);
            tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(block));
            const tile t = tile_cast(loop.carried[0], TILE_F64);
            tile_store_indexed(q, at, tile_broadcast(t, TILE_SHAPE(8)), TILE_AT(loop.index), 0);
            tile_loop_end(&loop, TILE_LIST(tile_add(loop.carried[0], tile_int(b, 1000))));
        },
        {512}, {&index, &y});
    for (int64_t i = 0; i < 64; i++) {
        double want = wavy(i);
        for (int64_t b = 0; b < 512; b++)
            for (int64_t k = 0; k < 3; k++)
                for (int64_t c = 0; c < 8; c++)
                    if (static_cast<int64_t>(index.get(b * 8 + c)) + k == i)
                        want = static_cast<double>(b + 1000 * k);
        EXPECT_EQ(want, y.get(i)) << i;
    }
}

TEST(Order, BlocksThatReadWhatOthersWroteRunOneByOne) {
    /* y[b + 1] = y[b] + x[b]: a running sum */
    Memory x(TILE_I64, {5000}), y(TILE_I64, {5001});
    x.fill([](int64_t i) { return static_cast<double>(i % 7); });
    y.fill([](int64_t) { return 0.0; });
    expect_same_for_threads(
        [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_I64, 1);
            const tile_param q = tile_array_param(b, "y", TILE_I64, 1);
            const tile_offset at = TILE_AT(tile_block_index(b, 0));
            const tile before = tile_load(q, TILE_SHAPE(1), at);
            const tile t = tile_load(p, TILE_SHAPE(1), at);
            tile_store(q, tile_add(before, t), TILE_SHIFT(at, 1));
        },
        {5000}, {&x, &y});
    int64_t sum = 0;
    for (int64_t i = 0; i < 5000; i++) sum += i % 7;
    EXPECT_EQ(static_cast<double>(sum), y.get(5000));
}

TEST(Order, PreviousValuesFollowBlockOrder) {
    Memory counter(TILE_I64, {1}), y(TILE_I64, {900});
    counter.fill([](int64_t) { return 5.0; });
    expect_same_for_threads(
        [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "counter", TILE_I64, 1);
            const tile_param q = tile_array_param(b, "y", TILE_I64, 1);
            const tile one = tile_full(b, TILE_I64, TILE_SHAPE(1), 2);
            const tile before = tile_atomic_add(p, one, TILE_AT_ZERO);
            tile_store(q, before, TILE_AT(tile_block_index(b, 0)));
        },
        {900}, {&counter, &y});
    for (int64_t i = 0; i < 900; i++)
        EXPECT_EQ(static_cast<double>(5 + 2 * 1800 + 2 * i), y.get(i));
}

TEST(Order, ReverseProgramsRunFromTheLastBlock) {
    Memory y(TILE_I64, {1});
    y.fill([](int64_t) { return -1.0; });
    Runner r(2);
    tile_builder *b = tile_kernel_begin(r.ctx, "test");
    const tile_param q = tile_array_param(b, "y", TILE_I64, 1);
    const tile i = tile_block_index(b, 0);
    tile_store(q, tile_broadcast(i, TILE_SHAPE(1)), TILE_AT_ZERO);
    b->program.reverse = true;
    ASSERT_EQ(TILE_OK, tile_kernel_end(b, &r.kernel)) << tile_last_error();
    r.run(bound_of({700}, {&y}));
    EXPECT_EQ(0, y.get(0));
}

/* Sums */

TEST(Sums, OfManyBlocksAreAccurateAndAddedOnce) {
    const int64_t blocks = 20000, n = blocks * 16;
    Memory x(TILE_F32, {n}), sum(TILE_F32, {3});
    x.fill([](int64_t i) { return 1 + 1 / (1.0 + static_cast<double>(i % 1013)); });
    sum.fill([](int64_t i) { return static_cast<double>(i); });
    double want = 0;
    for (int64_t i = 0; i < n; i++) want += x.get(i);
    expect_same_for_threads(
        [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_F32, 1);
            const tile_param q = tile_array_param(b, "sum", TILE_F32, 1);
            const tile t = tile_load(p, TILE_SHAPE(16), TILE_AT(tile_block_start(b, 0, 16)));
            tile_atomic_add(q, tile_reshape(tile_sum(t, TILE_ALL_AXES), TILE_SHAPE(1)),
                            TILE_AT(tile_int(b, 1)));
        },
        {blocks}, {&x, &sum});
    EXPECT_EQ(0, sum.get(0));
    EXPECT_EQ(2, sum.get(2));
    EXPECT_LE(std::fabs(sum.get(1) - 1 - 3 * want), 4e-7 * 3 * want);
}

TEST(Sums, OutsideTheArrayAreSkipped) {
    Memory sum(TILE_F64, {2});
    sum.fill([](int64_t) { return 0.0; });
    expect_same_for_threads(
        [](tile_builder *b) {
            const tile_param q = tile_array_param(b, "sum", TILE_F64, 1);
            const tile t = tile_full(b, TILE_F64, TILE_SHAPE(4), 0.5);
            tile_atomic_add(q, t, TILE_AT(tile_int(b, 1)));
        },
        {1001}, {&sum});
    EXPECT_EQ(0, sum.get(0));
    EXPECT_EQ(3 * 500.5, sum.get(1));
}

/* Loops and kept values */

TEST(Loops, CarryTilesAndExchangeThem) {
    /* (a, b) = (b, a + b) n times, on tiles: Fibonacci numbers; a swap among the carried */
    Memory y(TILE_I64, {2, 6});
    Runner r(1);
    r.build([](tile_builder *b) {
        const tile_param q = tile_array_param(b, "y", TILE_I64, 2);
        const tile n = tile_int_param(b, "n");
        const tile zero = tile_full(b, TILE_I64, TILE_SHAPE(1, 6), 0);
        const tile one = tile_full(b, TILE_I64, TILE_SHAPE(1, 6), 1);
        tile_loop loop = tile_loop_begin(b, n, TILE_LIST(zero, one));
        const tile next = tile_add(loop.carried[0], loop.carried[1]);
        tile_loop_end(&loop, TILE_LIST(loop.carried[1], next));
        tile_store(q, loop.carried[0], TILE_AT_ZERO);
        tile_loop swap = tile_loop_begin(b, n, TILE_LIST(zero, one));
        tile_loop_end(&swap, TILE_LIST(swap.carried[1], swap.carried[0]));
        const tile at = tile_int(b, 1);
        tile_store(q, swap.carried[0], TILE_AT(at, tile_int(b, 0)));
    });
    const int64_t fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13};
    for (int64_t n = -1; n < 8; n++) {
        tile_bound bound = bound_of({1}, {&y});
        bound.scalar[1].integer = n;
        r.run(bound);
        EXPECT_EQ(static_cast<double>(fibonacci[n < 0 ? 0 : n]), y.get(3)) << n;
        EXPECT_EQ(n > 0 && n % 2 ? 1 : 0, y.get(8)) << n;
    }
}

TEST(Loops, NestAndSeeOuterTiles) {
    /* sum over i < 4, j < 3 of x * i + j, where x is loaded outside */
    Memory x(TILE_F32, {5}), y(TILE_F32, {5});
    x.fill(wavy);
    Runner r(1);
    r.build([](tile_builder *b) {
        const tile_param p = tile_array_param(b, "x", TILE_F32, 1);
        const tile_param q = tile_array_param(b, "y", TILE_F32, 1);
        const tile t = tile_load(p, TILE_SHAPE(5), TILE_AT_ZERO);
        const tile zero = tile_zeros(b, TILE_F32, TILE_SHAPE(5));
        tile_loop outer = tile_loop_begin(b, tile_int(b, 4), TILE_LIST(zero));
        const tile i = tile_cast(outer.index, TILE_F32);
        tile_loop inner = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(outer.carried[0]));
        const tile j = tile_cast(inner.index, TILE_F32), s = inner.carried[0];
        tile_loop_end(&inner, TILE_LIST(tile_expr("s + t * i + j", s, t, i, j)));
        tile_loop_end(&outer, TILE_LIST(inner.carried[0]));
        tile_store(q, outer.carried[0], TILE_AT_ZERO);
    });
    r.run(bound_of({1}, {&x, &y}));
    for (int64_t k = 0; k < 5; k++) EXPECT_NEAR(18 * x.get(k) + 12, y.get(k), 1e-5);
}

/* Adds a keep or kept node where the builder is. */
tile add_kept(tile_builder *b, const tile_op *op, const std::vector<tile> &in, tile_shape shape) {
    tile_program *p = &b->program;
    std::vector<int32_t> ids;
    for (tile t : in) ids.push_back(t.id);
    tile_node node = {};
    node.op = op;
    node.n_in = static_cast<int32_t>(ids.size());
    node.param = node.region = node.out = -1;
    node.n_out = op == &tile_op_kept;
    const int32_t id = tile_program_add_node(p, &node, ids.data());
    EXPECT_EQ(TILE_OK, tile_region_append(p, b->region, id));
    if (!node.n_out) return tile{b, -1};
    const int32_t out = tile_program_add_value(p, TILE_I64, shape, id, 0, b->region);
    p->node[id].out = out;
    return tile{b, out};
}

void add_slot(tile_builder *b, tile_shape shape, tile outer, tile inner) {
    tile_program *p = &b->program;
    ASSERT_EQ(TILE_OK, tile_grow(&p->slot, &p->slot_capacity, 1, sizeof *p->slot));
    p->slot[0] = tile_slot{};
    p->slot[0].dtype = TILE_I64;
    p->slot[0].shape = shape;
    p->slot[0].loops = 2;
    p->slot[0].count_value[0] = outer.id;
    p->slot[0].count_value[1] = inner.id;
    p->slot_count = 1;
}

/* Two loops of n and 3 iterations; body gets the block and both iteration numbers. */
void two_loops(tile_builder *b, bool reverse,
               const std::function<void(tile, tile, tile, tile_shape)> &body) {
    const tile n = tile_int_param(b, "n"), three = tile_int(b, 3);
    const tile_shape shape = TILE_SHAPE(2);
    add_slot(b, shape, n, three);
    const tile block = tile_block_index(b, 0);
    const int32_t outer = tile_builder_loop_begin(b, n, 0, nullptr, reverse);
    const tile i = tile_builder_loop_argument(b, outer, 0);
    const int32_t inner = tile_builder_loop_begin(b, three, 0, nullptr, reverse);
    body(block, i, tile_builder_loop_argument(b, inner, 0), shape);
    tile_builder_loop_end(b, inner, 0, nullptr);
    tile_builder_loop_end(b, outer, 0, nullptr);
}

TEST(Kept, ValuesComeBackPerBlockAndIteration) {
    const int64_t blocks = 40, n = 5;
    Memory y(TILE_I64, {blocks, n, 3, 2}), order(TILE_I64, {1});
    order.fill([](int64_t) { return 0.0; });
    for (int threads : THREADS) {
        Runner forward(threads), backward(threads);
        forward.build([](tile_builder *b) {
            two_loops(b, false, [b](tile block, tile i, tile j, tile_shape shape) {
                const tile t = tile_expr("block * 1000 + i * 10 + j", block, i, j);
                add_kept(b, &tile_op_keep, {tile_broadcast(t, shape), i, j}, shape);
            });
        });
        backward.build([](tile_builder *b) {
            const tile_param q = tile_array_param(b, "y", TILE_I64, 4);
            two_loops(b, true, [b, q](tile block, tile i, tile j, tile_shape shape) {
                const tile t = add_kept(b, &tile_op_kept, {i, j}, shape);
                tile_store(q, tile_reshape(t, TILE_SHAPE(1, 1, 1, 2)),
                           TILE_AT(block, i, j, tile_int(b, 0)));
            });
        });
        tile_bound bound = bound_of({blocks}, {});
        bound.scalar[0].integer = n;
        size_t bytes = 0;
        ASSERT_EQ(TILE_OK, tile_stash_bytes(forward.kernel->forward, &bound, &bytes));
        EXPECT_EQ(static_cast<size_t>(blocks * n * 3 * 16), bytes);
        EXPECT_EQ(TILE_E_STATE, tile_execute(forward.kernel->forward, &bound));
        std::vector<unsigned char> stash(bytes);
        bound.stash = stash.data();
        forward.run(bound);
        bound = bound_of({blocks}, {&y});
        bound.scalar[1].integer = n;
        bound.stash = stash.data();
        backward.run(bound);
        for (int64_t k = 0; k < y.count(); k++) {
            const int64_t j = k / 2 % 3, i = k / 6 % n, block = k / (6 * n);
            ASSERT_EQ(static_cast<double>(block * 1000 + i * 10 + j), y.get(k)) << k;
        }
    }
}

/* Memory */

void mixed_kernel(tile_builder *b) {
    const tile_param p = tile_array_param(b, "x", TILE_F32, 1);
    const tile_param q = tile_array_param(b, "y", TILE_F32, 1);
    const tile_param s = tile_array_param(b, "s", TILE_F32, 1);
    const tile i = tile_block_index(b, 0);
    const tile t = tile_load(p, TILE_SHAPE(8), TILE_AT(tile_block_start(b, 0, 8)));
    tile_atomic_add(q, t, TILE_AT(tile_expr("mod(i, 3) * 5", i)));
    tile_atomic_add(s, tile_reshape(tile_sum(t, TILE_ALL_AXES), TILE_SHAPE(1)), TILE_AT_ZERO);
}

TEST(Memory, NeverRunsOutAfterReserve) {
    Memory x(TILE_F32, {800}), y(TILE_F32, {32}), s(TILE_F32, {1});
    x.fill(wavy);
    y.fill(wavy);
    s.fill(wavy);
    Runner r(3);
    r.build(mixed_kernel);
    const tile_bound bound = bound_of({100}, {&x, &y, &s});
    int64_t n = 1;
    for (; n < 50; n++) {
        tile_fail_allocation(n);
        const tile_status status = tile_executable_reserve(r.kernel->forward, &bound);
        tile_fail_allocation(0);
        if (!status) break;
        EXPECT_EQ(TILE_E_MEMORY, status);
    }
    EXPECT_LT(1, n);
    tile_fail_allocation(1);
    EXPECT_EQ(TILE_OK, tile_execute(r.kernel->forward, &bound));
    EXPECT_EQ(TILE_E_MEMORY, tile_alloc(1) ? TILE_OK : TILE_E_MEMORY); /* still planted */
    tile_fail_allocation(0);
}

TEST(Memory, MakingAnExecutableFailsCleanly) {
    for (int kind = 0; kind < 2; kind++) {
        Runner r(1);
        r.build([kind](tile_builder *b) {
            if (kind) return mixed_kernel(b);
            RandomField f(3);
            FieldBuilder(f, b).build();
        });
        for (int64_t n = 1;; n++) {
            ASSERT_LT(n, 1000);
            tile_program copy;
            ASSERT_EQ(TILE_OK, tile_program_copy(&r.kernel->forward->program, &copy));
            tile_executable *exe = nullptr;
            tile_fail_allocation(n);
            const tile_status status = tile_executable_create(r.ctx, &copy, &exe);
            tile_fail_allocation(0);
            EXPECT_EQ(nullptr, copy.node);
            if (status) {
                EXPECT_EQ(TILE_E_MEMORY, status);
                continue;
            }
            tile_executable_destroy(exe);
            break;
        }
    }
}

} // namespace
