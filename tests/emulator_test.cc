/* emulator_test.cc: the emulator finds planted faults; kernels that a launch generates, with a
 * barrier taken away. */
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "tape/tiletape.h"
#include "tests/emulator/emulator.h"

extern "C" {
#include "core/kernel.h"
}

namespace {

using emulator::Order;
using emulator::Schedule;

const Schedule kSchedules[] = {{1, Order::kAscending, 1},   {32, Order::kAscending, 1},
                               {33, Order::kDescending, 1}, {64, Order::kDescending, 1},
                               {64, Order::kShuffled, 1},   {256, Order::kShuffled, 7}};

struct Argument {
    const int *x;
    int *y;
};

/* A kernel of x, y and n threads whose body is given; 4 n bytes of shared memory, s. */
std::string run_body(const std::string &name, const std::string &body, int threads,
                     std::vector<int> *y, size_t spare = 0) {
    void *kernel;
    const std::string wrong =
        emulator::compile(name, "argument_of_test",
                          "struct argument_of_test { const int *x; int *y; };\n"
                          "extern \"C\" __global__ void " +
                              name +
                              "(const __grid_constant__ argument_of_test l) {\n"
                              "    TILE_DYNAMIC_SHARED(memory);\n"
                              "    int *s = (int *)memory;\n"
                              "    const int t = (int)threadIdx.x, n = (int)blockDim.x;\n"
                              "    const int *x = l.x;\n    int *y = l.y;\n" +
                              body + "}\n",
                          &kernel);
    EXPECT_EQ("", wrong);
    if (!wrong.empty()) return wrong;
    std::vector<int> x(static_cast<size_t>(threads));
    std::iota(x.begin(), x.end(), 100);
    y->assign(x.size(), -1);
    const Argument argument = {x.data(), y->data()};
    return emulator::run(kernel, &argument, 1, 4 * x.size() + spare, threads);
}

std::vector<int> reversed(int threads) {
    std::vector<int> y;
    for (int k = threads - 1; k >= 0; k--) y.push_back(100 + k);
    return y;
}

TEST(EmulatorTest, RunsThreadsThatWaitForEachOther) {
    for (const Schedule &schedule : kSchedules) {
        emulator::use(schedule);
        std::vector<int> y;
        EXPECT_EQ("", run_body("reverse", "s[t] = x[t];\n__syncthreads();\ny[t] = s[n - 1 - t];\n",
                               schedule.threads, &y));
        EXPECT_EQ(reversed(schedule.threads), y) << schedule.threads;
    }
}

/* Either order of threads shows it, at every block size but 1. */
TEST(EmulatorTest, ShowsAMissingBarrier) {
    for (const Schedule &schedule : kSchedules) {
        emulator::use(schedule);
        std::vector<int> y;
        EXPECT_EQ("", run_body("reverse_without", "s[t] = x[t];\ny[t] = s[n - 1 - t];\n",
                               schedule.threads, &y));
        if (schedule.threads == 1) continue;
        EXPECT_NE(reversed(schedule.threads), y) << schedule.threads;
    }
}

TEST(EmulatorTest, FindsAWriteOutsideOfSharedMemory) {
    for (const Schedule &schedule : kSchedules) {
        emulator::use(schedule);
        std::vector<int> y;
        const std::string after =
            run_body("write_after", "s[t + 1] = x[t];\ny[t] = 0;\n", schedule.threads, &y);
        EXPECT_EQ("a write outside of shared memory, " + std::to_string(4 * schedule.threads) +
                      " bytes from its beginning, " + std::to_string(4 * schedule.threads) +
                      " are there",
                  after);
        const std::string before =
            run_body("write_before", "s[t - 1] = x[t];\ny[t] = 0;\n", schedule.threads, &y);
        EXPECT_EQ(0u, before.find("a write outside of shared memory, -4 bytes")) << before;
    }
}

TEST(EmulatorTest, FindsADivergentBarrier) {
    const std::string part = "if (t < 7) __syncthreads();\ny[t] = 0;\n";
    const std::string two = "if (t < 7)\n    __syncthreads();\nelse\n    __syncthreads();\n";
    for (const Schedule &schedule : kSchedules) {
        emulator::use(schedule);
        std::vector<int> y;
        const std::string wrong = run_body("some_wait", part, schedule.threads, &y);
        const std::string other = run_body("two_barriers", two, schedule.threads, &y);
        if (schedule.threads < 8) {
            EXPECT_EQ("", wrong + other);
            continue;
        }
        EXPECT_EQ(0u, wrong.find("a barrier that not all threads come to: thread 0 waits at the "
                                 "barrier of line"))
            << wrong;
        EXPECT_NE(std::string::npos, wrong.find(", thread 7 has ended")) << wrong;
        EXPECT_EQ(0u, other.find("a barrier that not all threads come to: thread 0 ")) << other;
        EXPECT_NE(std::string::npos, other.find(", thread 7 waits at the barrier of")) << other;
    }
}

TEST(EmulatorTest, GivesWarpsTheirShuffles) {
    const std::string sum = "int v = x[t];\n"
                            "for (int k = 16; k; k /= 2)\n"
                            "    v += __shfl_xor_sync(0xffffffffu, v, k);\n"
                            "const unsigned odd = __ballot_sync(0xffffffffu, x[t] % 2);\n"
                            "__syncwarp();\n"
                            "const int next = __shfl_down_sync(0xffffffffu, x[t], 1);\n"
                            "y[t] = v + 1000 * (odd == 0xaaaaaaaau) + 10000 * (next - x[t]) +\n"
                            "    (__any_sync(0xffffffffu, x[t] == 100) ? 100000 : 0) +\n"
                            "    (__all_sync(0xffffffffu, x[t] >= 100) ? 1000000 : 0);\n";
    for (Order order : {Order::kAscending, Order::kDescending, Order::kShuffled}) {
        emulator::use({64, order, 3});
        std::vector<int> y;
        ASSERT_EQ("", run_body("warp_sum", sum, 64, &y));
        for (int t = 0; t < 64; t++) {
            const int total = t < 32 ? 3200 + 496 : 4224 + 496, next = t % 32 < 31;
            EXPECT_EQ(total + 1000 + 10000 * next + 100000 * (t < 32) + 1000000, y[t]) << t;
        }
    }
}

TEST(EmulatorTest, FindsALaneThatDoesNotCome) {
    emulator::use({32, Order::kAscending, 1});
    std::vector<int> y;
    const std::string wrong =
        run_body("lane_missing", "if (t != 5) y[t] = __shfl_sync(0xffffffffu, x[t], 3);\n", 32, &y);
    EXPECT_EQ(0u, wrong.find("a barrier that not all threads come to: thread 0 waits for its warp "
                             "of line"))
        << wrong;
}

TEST(EmulatorTest, SaysWhatTheCompilerSays) {
    void *kernel;
    const std::string wrong = emulator::compile("no_kernel", "int", "this is no C++\n", &kernel);
    EXPECT_NE(std::string::npos, wrong.find("error")) << wrong;
}

/* y[k] = x[index[block] + k + 1]^2, by way of a tile whose elements others read than made them. */
class GeneratedTest : public testing::Test {
  protected:
    void SetUp() override {
        tile_context_options options = {};
        options.threads = 1;
        options.executor = TILE_EXECUTOR_INTERPRETER;
        ASSERT_EQ(TILE_OK, tile_context_create(&options, &ctx));
        tile_builder *b = tile_kernel_begin(ctx, "pick");
        tile_param x = tile_array_param(b, "x", TILE_F64, 1);
        tile_param index = tile_array_param(b, "index", TILE_I64, 1);
        tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        tile at = tile_load(index, tile_shape{0, {}}, TILE_AT(tile_block_index(b, 0)));
        tile xs = tile_load(x, TILE_SHAPE(kTile), TILE_AT(at));
        /* Every thread makes some, and reads what its neighbour makes. */
        tile all = tile_mul(xs, xs);
        tile back = tile_view(all, TILE_AT(tile_int(b, 1)), TILE_SHAPE(kTile - 1));
        tile_store(y, back, TILE_AT(tile_block_start(b, 0, kTile)));
        ASSERT_EQ(TILE_OK, tile_kernel_end(b, &kernel)) << tile_last_error();
        const int8_t same[] = {0, 1, 2};
        ASSERT_EQ(TILE_OK, tile_cuda_write(kernel->forward, 0, same, &source));
    }
    void TearDown() override {
        tile_cuda_kernel_clear(&source);
        tile_kernel_destroy(kernel);
        tile_context_destroy(ctx);
    }
    /* Whether the text gives the right values by each schedule. */
    bool is_right(const std::string &text, const std::string &name) {
        struct {
            tile_cuda_head head;
            tile_memory array[3];
            uint64_t scalar[3];
            tile_cuda_slot slot[1];
        } l = {};
        double x[64], y[kBlocks * kTile];
        int64_t index[kBlocks] = {5, 17};
        for (int k = 0; k < 64; k++) x[k] = k + 0.5;
        void *const data[] = {x, index, y};
        const int64_t extent[] = {64, kBlocks, kBlocks * kTile};
        for (int k = 0; k < 3; k++) {
            l.array[k].read = l.array[k].write = data[k];
            l.array[k].rank = 1;
            l.array[k].extent[0] = extent[k];
            l.array[k].stride[0] = 1;
        }
        l.head.grid[0] = l.head.blocks = kBlocks;
        l.head.grid[1] = l.head.grid[2] = 1;
        void *made;
        const std::string id = std::string(source.name).substr(sizeof "tile_kernel_" - 1);
        const std::string wrong = emulator::compile(name, "tile_" + id + "::argument", text, &made);
        EXPECT_EQ("", wrong);
        bool right = wrong.empty();
        for (const Schedule &schedule : kSchedules) {
            if (!wrong.empty()) break;
            emulator::use(schedule);
            std::fill(y, y + kBlocks * kTile, -1.0);
            const size_t bytes = source.arena_bytes;
            right = emulator::run(made, &l, 1, bytes).empty() && right; /* runs all blocks */
            for (int k = 0; k < kBlocks * kTile; k++) {
                const double next = static_cast<double>(index[k / kTile]) + k % kTile + 1.5;
                right = right && y[k] == (k % kTile == kTile - 1 ? -1 : next * next);
            }
        }
        return right;
    }
    enum { kTile = 24, kBlocks = 2 };
    tile_context *ctx = nullptr;
    tile_kernel *kernel = nullptr;
    tile_cuda_kernel source = {};
};

TEST_F(GeneratedTest, NeedsItsBarriers) {
    const std::string text = tile_text_get(&source.text), barrier = "__syncthreads();";
    EXPECT_TRUE(is_right(text, source.name));
    int planted = 0, found = 0;
    for (size_t at = text.find(barrier); at != std::string::npos; at = text.find(barrier, at + 1)) {
        std::string without = text, name = "without_" + std::to_string(planted++);
        without.replace(at, barrier.size(), "");
        without.replace(without.rfind(source.name), std::strlen(source.name), name);
        found += !is_right(without, name);
    }
    EXPECT_GE(planted, 2) << text;
    EXPECT_EQ(planted, found) << text;
    RecordProperty("planted", planted);
    RecordProperty("found", found);
    std::printf("%d barriers, %d of them found missing\n", planted, found);
}

} // namespace
