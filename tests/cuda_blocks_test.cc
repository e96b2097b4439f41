/* cuda_blocks_test.cc: kernels as CUDA code on the emulator give what the interpreter gives: random
 * fields to the bit, random kernels that go block by block, arrays that are one or overlap, blocks
 * that add to one place. In the environment TILE_COUNT: so many of each, from TILE_SEED; TILE_TURN:
 * by another schedule. */
#include "tests/emulator/emulator.h"
#include "tests/random_block.h"

namespace {

using namespace field_test;
using emulator::Order;

const emulator::Schedule kSchedules[] = {{33, Order::kAscending, 1}, {64, Order::kDescending, 1},
                                         {1, Order::kAscending, 1},  {32, Order::kShuffled, 1},
                                         {256, Order::kShuffled, 2}, {96, Order::kDescending, 3}};
enum { SCHEDULES = sizeof kSchedules / sizeof *kSchedules };

unsigned number_of(const char *name, unsigned otherwise) {
    const char *text = getenv(name);
    return text ? static_cast<unsigned>(atoi(text)) : otherwise;
}

/* Contexts that are made while it lives run on the emulator. */
struct OnEmulator {
    explicit OnEmulator(unsigned seed) {
        emulator::use(kSchedules[(seed + number_of("TILE_TURN", 0)) % SCHEDULES]);
        tile_device_use(emulator::device());
    }
    ~OnEmulator() {
        tile_device_use(nullptr);
    }
};

template <typename Run> std::vector<Bytes> on_emulator(unsigned seed, Run run) {
    OnEmulator here(seed);
    const int64_t before = emulator::counts().launches;
    const std::vector<Bytes> after = run(TILE_EXECUTOR_AUTO);
    EXPECT_LT(before, emulator::counts().launches);
    return after;
}

std::vector<Bytes> run_field(unsigned seed, tile_executor executor) {
    RandomField f(seed);
    Runner r(1, executor);
    r.build([&f](tile_builder *b) { FieldBuilder(f, b).build(); });
    std::vector<Memory *> arrays;
    for (const auto &m : f.inputs) arrays.push_back(m.get());
    for (const auto &m : f.outputs) arrays.push_back(m.get());
    tile_bound bound = bound_of(f.grid, arrays);
    bound.scalar[8].real = 0.75;
    bound.scalar[9].integer = 2;
    r.run(bound, true);
    std::vector<Bytes> after;
    for (const auto &m : f.outputs) {
        EXPECT_TRUE(m->guarded());
        after.push_back(m->bytes);
    }
    return after;
}

TEST(CudaBlocks, RandomFieldsHaveTheBitsOfTheInterpreter) {
    const unsigned first = number_of("TILE_SEED", 1), count = number_of("TILE_COUNT", 30);
    for (unsigned seed = first; seed < first + count; seed++) {
        const auto want = run_field(seed, TILE_EXECUTOR_INTERPRETER);
        const auto got = on_emulator(seed, [=](tile_executor e) { return run_field(seed, e); });
        ASSERT_EQ(want, got) << "TILE_SEED=" << seed;
    }
}

/* Values after a run; sums of 32 and more elements, and those over blocks, round otherwise. */
std::vector<Bytes> run_block(unsigned seed, tile_executor executor) {
    RandomBlock block(seed);
    Runner r(1, executor);
    r.build([seed](tile_builder *b) { BlockBuilder(b, seed).build(); });
    if (r.kernel) r.run(bound_of({RandomBlock::BLOCKS}, block.arrays()), true);
    std::vector<Bytes> after;
    for (Memory *m : block.arrays()) {
        EXPECT_TRUE(m->guarded());
        after.push_back(m->bytes);
    }
    return after;
}

/* The first element of an array that differs by more than rounding, or -1. */
int64_t differs(Memory *m, const Bytes &want, const Bytes &got) {
    for (int64_t i = 0; i < m->count(); i++) {
        m->bytes = want;
        const double x = m->get(i);
        m->bytes = got;
        const double y = m->get(i);
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        if (!(std::fabs(x - y) <= 1e-4 * (1 + std::fabs(x)))) return i;
    }
    return -1;
}

/* Seeds that are multiples of 3 hold infinities, which turn rounding into anything. */
TEST(CudaBlocks, RandomBlocksAreThoseOfTheInterpreter) {
    const unsigned first = number_of("TILE_SEED", 1), count = number_of("TILE_COUNT", 24);
    for (unsigned seed = first; seed < first + count; seed++) {
        if (seed % 3 == 0) continue;
        const auto want = run_block(seed, TILE_EXECUTOR_INTERPRETER);
        const auto got = on_emulator(seed, [=](tile_executor e) { return run_block(seed, e); });
        RandomBlock block(seed);
        for (size_t k = 4; k < want.size(); k++) {
            const int64_t at = differs(block.arrays()[k], want[k], got[k]);
            if (at < 0) continue;
            Memory *m = block.arrays()[k];
            m->bytes = got[k];
            const double value = m->get(at);
            m->bytes = want[k];
            ADD_FAILURE() << "TILE_SEED=" << seed << " array " << k << "[" << at << "] is " << value
                          << ", the interpreter has " << m->get(at);
        }
    }
}

/* z = x after y = x + 1 was written one element further on, where y may be x, or overlap it. */
std::vector<Bytes> run_aliased(int64_t apart, int64_t shift, tile_executor executor) {
    enum { N = 64, BLOCK = 32 };
    Memory m(TILE_F32, {4 * N}), z(TILE_F32, {N}), w(TILE_F32, {N});
    m.fill([](int64_t i) { return static_cast<double>(i); });
    for (Memory *to : {&z, &w}) to->fill([](int64_t) { return 0; });
    Runner r(1, executor);
    r.build([=](tile_builder *b) {
        tile_param x = tile_array_param(b, "x", TILE_F32, 1);
        tile_param y = tile_array_param(b, "y", TILE_F32, 1);
        tile_param out = tile_array_param(b, "z", TILE_F32, 1);
        tile_param sum = tile_array_param(b, "w", TILE_F32, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
        tile_offset next = at;
        next.shift[0] = shift;
        tile xs = tile_load(x, TILE_SHAPE(BLOCK), at);
        tile up = tile_add(xs, tile_full(b, TILE_F32, TILE_SHAPE(BLOCK), 1));
        tile_store(y, up, next);
        tile again = tile_load(x, TILE_SHAPE(BLOCK), at);
        tile_store(out, again, at);
        tile_store(sum, tile_add(xs, again), at);
    });
    tile_bound bound = bound_of({N / BLOCK}, {&m, &m, &z, &w});
    for (int k = 0; k < 2; k++) bound.array[k].extent[0] = N;
    bound.array[1].read = bound.array[1].write = m.at(apart);
    r.run(bound, true);
    EXPECT_TRUE(m.guarded() && z.guarded() && w.guarded());
    return {m.bytes, z.bytes, w.bytes};
}

TEST(CudaBlocks, ALoadSeesAStoreToTheSameMemory) {
    unsigned seed = 0;
    for (int64_t apart : {0, 1, 4, 31, 2 * 64})
        for (int64_t shift : {0, 1, -3}) {
            const auto want = run_aliased(apart, shift, TILE_EXECUTOR_INTERPRETER);
            for (int k = 0; k < SCHEDULES; k++, seed++) {
                const auto got = on_emulator(seed, [=](tile_executor e) {
                    return run_aliased(apart, shift, e);
                });
                ASSERT_EQ(want, got) << "apart " << apart << " shift " << shift << " of " << k;
            }
        }
}

/* Blocks that add numbers of very different size to one place; in order their sum is known. */
TEST(CudaBlocks, AdditionsGoInOrderWhereThatIsAskedFor) {
    enum { N = 32 };
    for (bool deterministic : {false, true}) {
        OnEmulator here(3);
        tile_context_options options = {};
        options.deterministic = deterministic;
        tile_context *ctx;
        ASSERT_EQ(TILE_OK, tile_context_create(&options, &ctx));
        tile_builder *b = tile_kernel_begin(ctx, "add");
        tile_param x = tile_array_param(b, "x", TILE_F32, 1);
        tile_param index = tile_array_param(b, "index", TILE_I64, 1);
        tile_param y = tile_array_param(b, "y", TILE_F32, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, N / 2));
        tile_atomic_add_indexed(y, tile_load(index, TILE_SHAPE(N / 2), at),
                                tile_load(x, TILE_SHAPE(N / 2), at), TILE_AT_ZERO, 0);
        tile_kernel *kernel;
        ASSERT_EQ(TILE_OK, tile_kernel_end(b, &kernel)) << tile_last_error();
        float values[N], sum = 0, got[2];
        int64_t places[N] = {0};
        for (int k = 0; k < N; k++) {
            values[k] = k % 3 == 0 ? 1e8f : k % 3 == 1 ? 3.0f : -1e8f;
            sum += values[k];
        }
        tile_array *xs, *is, *ys;
        ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(N), &xs));
        ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_I64, TILE_SHAPE(N), &is));
        ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(2), &ys));
        ASSERT_EQ(TILE_OK, tile_array_write(xs, values, sizeof values));
        ASSERT_EQ(TILE_OK, tile_array_write(is, places, sizeof places));
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, kernel, TILE_GRID(2), TILE_ARGS(xs, is, ys)));
        ASSERT_EQ(TILE_OK, tile_array_read(ys, got, sizeof got));
        if (deterministic)
            EXPECT_EQ(sum, got[0]);
        else
            EXPECT_NEAR(sum, got[0], 64.0 * 32);
        for (tile_array *a : {xs, is, ys}) tile_array_destroy(a);
        tile_kernel_destroy(kernel);
        tile_context_destroy(ctx);
    }
}

/* What a device is told of a launch. */
struct Watch {
    tile_device device;
    int64_t blocks = 0;
    int threads = 0;
    size_t arena = 0;
};

TEST(CudaBlocks, AKernelAsksForTheThreadsThatHaveWork) {
    Watch watch = {{[](tile_device *, const tile_cuda_kernel *, void **kernel) {
                        *kernel = kernel;
                        return TILE_OK;
                    },
                    [](tile_device *, void *) {},
                    [](tile_device *device, void *, const tile_device_launch *l) {
                        Watch *w = reinterpret_cast<Watch *>(device);
                        w->blocks = l->blocks;
                        w->threads = l->threads;
                        w->arena = l->arena_bytes;
                        return TILE_OK;
                    }}};
    /* A thread takes up to four neighbours where that leaves work for a warp. */
    const struct {
        int64_t tile;
        int threads;
    } cases[] = {{8, 32}, {64, 32}, {100, 64}, {256, 64}, {1024, 256}, {65536, 256}};
    tile_device_use(&watch.device);
    tile_context *ctx;
    ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &ctx));
    tile_device_use(nullptr);
    tile_array *x, *y;
    ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(1 << 18), &x));
    ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(1 << 18), &y));
    for (const auto &c : cases) {
        tile_builder *b = tile_kernel_begin(ctx, "copy");
        tile_param from = tile_array_param(b, "x", TILE_F32, 1);
        tile_param to = tile_array_param(b, "y", TILE_F32, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, c.tile));
        tile_store(to, tile_load(from, TILE_SHAPE(c.tile), at), at);
        tile_kernel *kernel;
        ASSERT_EQ(TILE_OK, tile_kernel_end(b, &kernel)) << tile_last_error();
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, kernel, TILE_GRID(4), TILE_ARGS(x, y)));
        EXPECT_EQ(c.threads, watch.threads) << c.tile;
        EXPECT_EQ(4, watch.blocks);
        EXPECT_EQ(0u, watch.arena) << "values of one loop are registers";
        tile_kernel_destroy(kernel);
    }
    tile_array_destroy(x);
    tile_array_destroy(y);
    tile_context_destroy(ctx);
}

} // namespace
