/* execution_error_test.cc: launches that fail while they run: what is said, once, by whom; what is
 * written all the same; what a tape does then; checked mode. */
#include <cstdlib>

#include "tests/tape_fixture.h"
extern "C" {
#include "core/exec_internal.h"
#include "core/kernel.h"
}

namespace {

class ExecutionErrorTest : public TapeTest {
  protected:
    explicit ExecutionErrorTest(int threads = 1, bool check = false) : TapeTest(threads, check) {}

    /* y[i] = 2 x[i], one element a block, required of the index in n[i]: that it is below limit.
     * What a block needs to know comes from an array, so that nothing tells of it before. */
    tile_kernel *guarded() {
        return kernel("guarded", [](tile_builder *b) {
            const tile_param n = tile_array_param(b, "n", TILE_I32, 1);
            const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
            const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
            const tile limit = tile_int_param(b, "limit");
            const tile_offset at = TILE_AT(tile_block_index(b, 0));
            require_line = __LINE__ + 1;
            tile_require(tile_load(n, TILE_SCALAR, at), tile_int(b, 0), limit, "number");
            const tile t = tile_load(x, TILE_SHAPE(1), at);
            tile_store(y, tile_expr("2 * t", t), at);
        });
    }
    static std::string message(int block, int value, int limit) {
        return "kernel guarded, execution_error_test.cc:" + std::to_string(require_line) +
               ", block (" + std::to_string(block) + ", 0, 0): number is " + std::to_string(value) +
               ", wanted at least 0 and below " + std::to_string(limit);
    }
    static int require_line;
};
int ExecutionErrorTest::require_line;

class CheckedTest : public ExecutionErrorTest {
  protected:
    CheckedTest() : ExecutionErrorTest(2, true) {}
};

TEST_F(ExecutionErrorTest, ComesOutOnceAndTheOtherBlocksRun) {
    tile_array *n = integers({0, 1, 7, 2, -1}), *x = reals({1, 2, 3, 4, 5}), *y = zeros(5);
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, guarded(), TILE_GRID(5), TILE_ARGS(n, x, y, 3)));
    expect_error(TILE_E_EXECUTION, message(2, 7, 3).c_str(), tile_context_sync(ctx));
    EXPECT_EQ(message(2, 7, 3), tile_last_error());
    EXPECT_EQ(TILE_OK, tile_context_sync(ctx));
    EXPECT_EQ((Reals{2, 4, 0, 8, 0}), read(y));
}

TEST_F(ExecutionErrorTest, ReadingAnArrayIsASynchronisation) {
    tile_array *n = integers({5}), *x = reals({1}), *y = zeros(1);
    double host = 7;
    tile_kernel *k = guarded();
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(n, x, y, 3)));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(n, x, y, 2)));
    /* the first error stays */
    expect_error(TILE_E_EXECUTION, message(0, 5, 3).c_str(), tile_array_read(x, &host, 8));
    EXPECT_EQ(7, host);
    EXPECT_EQ(TILE_OK, tile_array_read(x, &host, 8));
    EXPECT_EQ(1, host);
}

TEST_F(ExecutionErrorTest, TheHighEndIsOutsideAndTheLowEndInside) {
    tile_array *n = integers({0, 2, 3}), *x = reals({1, 2, 3}), *y = zeros(3);
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, guarded(), TILE_GRID(2), TILE_ARGS(n, x, y, 3)));
    ASSERT_EQ(TILE_OK, tile_context_sync(ctx));
    EXPECT_EQ((Reals{2, 4, 0}), read(y));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, guarded(), TILE_GRID(3), TILE_ARGS(n, x, y, 3)));
    expect_error(TILE_E_EXECUTION, message(2, 3, 3).c_str(), tile_context_sync(ctx));
}

TEST_F(ExecutionErrorTest, NothingHappensOnAGridWithoutBlocks) {
    tile_array *n = integers({9}), *x = reals({1}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, guarded(), TILE_GRID(0), TILE_ARGS(n, x, y, 3)));
    EXPECT_EQ(TILE_OK, tile_context_sync(ctx));
}

TEST_F(ExecutionErrorTest, AFailedIterationEndsTheBlock) {
    tile_array *y = zeros(6);
    tile_kernel *k = kernel("steps", [](tile_builder *b) {
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        tile_loop loop = tile_loop_begin(b, tile_int(b, 6), TILE_NONE);
        tile_require(loop.index, tile_int(b, 0), tile_int(b, 4), "step");
        tile_store(y, tile_real(b, TILE_F64, 1), TILE_AT(loop.index));
        tile_loop_end(&loop, TILE_NONE);
        tile_store(y, tile_real(b, TILE_F64, 9), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(y)));
    expect_error(TILE_E_EXECUTION, "step is 4, wanted at least 0 and below 4",
                 tile_context_sync(ctx));
    EXPECT_EQ((Reals{1, 1, 1, 1, 0, 0}), read(y));
}

/* Which blocks fail, in what order they are run: the same sentence and the same bits. */
class Threads : public ExecutionErrorTest {
  public:
    explicit Threads(int threads) : ExecutionErrorTest(threads) {}
    void TestBody() override {}

    struct Result {
        std::string message;
        Reals y, sum, last;
    };
    Result run() {
        enum { BLOCKS = 3000 };
        std::vector<int32_t> numbers;
        Reals values;
        for (int k = 0; k < BLOCKS; k++) {
            numbers.push_back(k > 100 && k % 97 == 5 ? 1000 + k : k % 7);
            values.push_back(std::sin(k));
        }
        tile_array *n = integers(numbers), *x = reals(values), *y = zeros(BLOCKS);
        tile_array *s = zeros(4), *last = zeros(1);
        tile_kernel *k = kernel("many", [](tile_builder *b) {
            const tile_param n = tile_array_param(b, "n", TILE_I32, 1);
            const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
            const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
            const tile_param s = tile_array_param(b, "s", TILE_F64, 1);
            const tile_param last = tile_array_param(b, "last", TILE_F64, 1);
            const tile_offset at = TILE_AT(tile_block_index(b, 0));
            const tile i = tile_load(n, TILE_SCALAR, at), t = tile_load(x, TILE_SHAPE(1), at);
            tile_store(y, t, at);
            tile_require(i, tile_int(b, 0), tile_int(b, 7), "number");
            tile_atomic_add(s, tile_broadcast(t, TILE_SHAPE(4)), TILE_AT_ZERO);
            tile_store(last, t, TILE_AT_ZERO);
            tile_store(y, tile_expr("3 * t", t), at);
        });
        EXPECT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(BLOCKS), TILE_ARGS(n, x, y, s, last)));
        EXPECT_EQ(TILE_E_EXECUTION, tile_context_sync(ctx));
        Result r;
        r.message = tile_last_error();
        r.y = read(y);
        r.sum = read(s);
        r.last = read(last);
        /* by a plain loop */
        double sum = 0, want_last = 0;
        for (size_t b = 0; b < BLOCKS; b++) {
            const bool good = numbers[b] < 7;
            EXPECT_EQ(good ? 3 * values[b] : values[b], r.y[b]) << b;
            if (good) sum += values[b], want_last = values[b];
        }
        EXPECT_NEAR(sum, r.sum[3], 1e-9);
        EXPECT_EQ(want_last, r.last[0]);
        return r;
    }
};

TEST(ExecutionErrorThreadsTest, TheSameSentenceAndTheSameBits) {
    const Threads::Result one = Threads(1).run();
    EXPECT_NE(std::string::npos, one.message.find("block (102, 0, 0): number is 1102"))
        << one.message;
    for (int threads : {2, 4})
        for (int again = 0; again < 5; again++) {
            const Threads::Result more = Threads(threads).run();
            EXPECT_EQ(one.message, more.message);
            EXPECT_EQ(one.y, more.y);
            EXPECT_EQ(one.sum, more.sum);
            EXPECT_EQ(one.last, more.last);
        }
}

/* Additions of all blocks to one place are summed apart first, but not where a block may not get
 * to its addition. */
TEST_F(ExecutionErrorTest, ASumToWhichFewBlocksCome) {
    std::vector<int32_t> numbers(200, 5);
    tile_array *s = reals({-0.0});
    tile_kernel *k = kernel("few", [](tile_builder *b) {
        const tile_param n = tile_array_param(b, "n", TILE_I32, 1);
        const tile_param s = tile_array_param(b, "s", TILE_F64, 1);
        const tile i = tile_load(n, TILE_SCALAR, TILE_AT(tile_block_index(b, 0)));
        tile_require(i, tile_int(b, 0), tile_int(b, 3), "number");
        tile_atomic_add(s, tile_full(b, TILE_F64, TILE_SHAPE(1), 1), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(200), TILE_ARGS(integers(numbers), s)));
    expect_error(TILE_E_EXECUTION, "block (0, 0, 0)", tile_context_sync(ctx));
    EXPECT_EQ(0, read(s)[0]);
    EXPECT_TRUE(std::signbit(read(s)[0])) << "not even a zero was added";
    numbers[150] = 2;
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(200), TILE_ARGS(integers(numbers), s)));
    EXPECT_EQ(TILE_E_EXECUTION, tile_context_sync(ctx));
    EXPECT_EQ((Reals{1}), read(s));
}

/* Long rows */

/* y = 2 x in windows of 4, of blocks that are required to begin below end. */
tile_kernel *build_rows(tile_context *ctx, bool affine) {
    tile_builder *b = tile_kernel_begin(ctx, "rows");
    const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
    const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
    const tile end = tile_int_param(b, "end");
    const tile start = tile_block_start(b, 0, 4);
    const tile looked_at = affine ? start : tile_expr("min(start, 1000)", start);
    tile_require(looked_at, tile_int(b, 0), end, "start");
    const tile t = tile_load(x, TILE_SHAPE(4), TILE_AT(start));
    tile_store(y, tile_expr("2 * t", t), TILE_AT(start));
    tile_kernel *k = nullptr;
    EXPECT_EQ(TILE_OK, tile_kernel_end(b, &k)) << tile_last_error();
    return k;
}

TEST_F(ExecutionErrorTest, ChecksAreMadeAtTheCornersAndBlocksRunAsRows) {
    tile_kernel *k = build_rows(ctx, true);
    tile_array *x = reals({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), *y = zeros(12);
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(3), TILE_ARGS(x, y, 9)));
    ASSERT_EQ(TILE_OK, tile_context_sync(ctx));
    EXPECT_EQ(ctx->device ? 0 : 1, k->forward->runs_by_rows); /* rows are the CPU's */
    EXPECT_EQ((Reals{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24}), read(y));
    ASSERT_EQ(TILE_OK, tile_array_fill(y, 0));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(3), TILE_ARGS(x, y, 8)));
    expect_error(TILE_E_EXECUTION, "block (2, 0, 0): start is 8, wanted at least 0 and below 8",
                 tile_context_sync(ctx));
    EXPECT_EQ(ctx->device ? 0 : 1, k->forward->runs_by_rows);
    EXPECT_EQ((Reals{2, 4, 6, 8, 10, 12, 14, 16, 0, 0, 0, 0}), read(y));
    tile_kernel_destroy(k);
}

TEST_F(ExecutionErrorTest, AValueThatIsNotAffineIsLookedAtBlockByBlock) {
    tile_kernel *k = build_rows(ctx, false);
    tile_array *x = reals({1, 2, 3, 4, 5, 6, 7, 8}), *y = zeros(8);
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(2), TILE_ARGS(x, y, 5)));
    ASSERT_EQ(TILE_OK, tile_context_sync(ctx));
    EXPECT_EQ(0, k->forward->runs_by_rows);
    EXPECT_EQ((Reals{2, 4, 6, 8, 10, 12, 14, 16}), read(y));
    tile_kernel_destroy(k);
}

/* Ends that a launch fixes at the far ends of int64: nothing wraps, so nothing is let through. */
TEST_F(ExecutionErrorTest, CornersThatCannotBeCountedAreNotProven) {
    tile_kernel *k = kernel("far", [](tile_builder *b) {
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        const tile from = tile_int_param(b, "from"), i = tile_block_index(b, 0);
        tile_require(tile_expr("from + i", from, i), tile_int(b, 0), tile_int(b, INT64_MAX), "at");
        tile_store(y, tile_full(b, TILE_F64, TILE_SHAPE(1), 1), TILE_AT(i));
    });
    tile_array *y = zeros(3);
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(3), TILE_ARGS(y, INT64_MAX - 2)));
    expect_error(TILE_E_EXECUTION, "block (2, 0, 0): at is 9223372036854775807",
                 tile_context_sync(ctx));
    EXPECT_EQ((Reals{1, 1, 0}), read(y));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(3), TILE_ARGS(y, INT64_MAX - 1)));
    expect_error(TILE_E_EXECUTION, "block (1, 0, 0): at is 9223372036854775807",
                 tile_context_sync(ctx));
}

/* Tapes */

TEST_F(ExecutionErrorTest, ATapeRefusesBackwardUntilItIsReset) {
    tile_array *n = integers({0, 7}), *x = active({1, 2}), *y = zeros(2);
    tile_kernel *k = guarded();
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(2), TILE_ARGS(n, x, y, 3)));
    tile_array *loss = sum(y); /* recording goes on: the launch may still be queued */
    expect_error(TILE_E_EXECUTION, message(1, 7, 3).c_str(), tape_backward(record, loss));
    expect_error(TILE_E_STATE, "record 0, a launch of kernel guarded, ended in an execution error",
                 tape_backward(record, loss));
    expect_error(TILE_E_STATE, "must be reset", tape_replay(record));
    tape_check_report report;
    EXPECT_EQ(TILE_E_STATE, tape_gradcheck(record, loss, TAPE_CHECK_ALL, &report));
    EXPECT_EQ((Reals{0, 0}), grad(x));
    ASSERT_EQ(TILE_OK, tape_reset(record));
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(2), TILE_ARGS(n, x, y, 8)));
    backward(sum(y));
    EXPECT_EQ((Reals{2, 2}), grad(x));
}

/* The launch overwrites all of y, which the tape would do in a fresh buffer; a block that fails
 * overwrites nothing. */
TEST_F(ExecutionErrorTest, PlacesOfABlockThatFailsKeepTheirValues) {
    tile_array *n = integers({0, 7, 1}), *x = active({1, 2, 3}), *y = active({10, 20, 30});
    tile_array *z = zeros(3);
    ASSERT_EQ(TILE_OK, launch(multiply(), y, y, z)); /* the adjoint needs y's old values */
    ASSERT_EQ(TILE_OK, tile_launch(record, guarded(), TILE_GRID(3), TILE_ARGS(n, x, y, 3)));
    EXPECT_EQ(TILE_E_EXECUTION, tile_context_sync(ctx));
    EXPECT_EQ((Reals{2, 20, 6}), read(y));
}

TEST_F(ExecutionErrorTest, SomebodyElsesLaunchThatFailsMakesATapeRefuse) {
    tile_array *n = integers({0, 7}), *x = active({1, 2}), *y = zeros(2);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_array *loss = sum(y);
    ASSERT_EQ(TILE_OK,
              tile_launch(nullptr, guarded(), TILE_GRID(2), TILE_ARGS(n, reals({5, 5}), y, 3)));
    EXPECT_EQ(TILE_E_EXECUTION, tile_context_sync(ctx));
    expect_error(TILE_E_STATE, "kernel guarded", tape_backward(record, loss));
}

TEST_F(ExecutionErrorTest, AReplayThatFailsSaysSo) {
    tile_array *n = integers({0, 1}), *x = active({1, 2}), *y = zeros(2);
    ASSERT_EQ(TILE_OK, tile_launch(record, guarded(), TILE_GRID(2), TILE_ARGS(n, x, y, 3)));
    tile_array *loss = sum(y);
    const int32_t bad[] = {0, 9};
    ASSERT_EQ(TILE_OK, tile_array_write(n, bad, sizeof bad));
    expect_error(TILE_E_EXECUTION, message(1, 9, 3).c_str(), tape_replay(record));
    expect_error(TILE_E_STATE, "must be reset", tape_backward(record, loss));
}

TEST_F(ExecutionErrorTest, AnAdjointOfTheUsersThatFailsMakesTheGradientUnreadable) {
    tile_kernel *forward = map("twice", [](tile x) { return tile_expr("2 * x", x); });
    tile_kernel *adjoint = kernel("bad_adjoint", [](tile_builder *b) {
        tile_array_param(b, "x", TILE_F64, 1);
        tile_array_param(b, "y", TILE_F64, 1);
        const tile_param dx = tile_array_param(b, "dx", TILE_F64, 1);
        tile_array_param(b, "dy", TILE_F64, 1);
        tile_store(dx, tile_full(b, TILE_F64, TILE_SHAPE(1), 5), TILE_AT_ZERO);
        tile_require(tile_int(b, 4), tile_int(b, 0), tile_int(b, 2), "four");
    });
    ASSERT_EQ(TILE_OK, tile_kernel_set_adjoint(forward, adjoint));
    tile_array *x = active({1, 2, 3, 4}), *y = zeros(4);
    ASSERT_EQ(TILE_OK, launch(forward, x, y));
    expect_error(TILE_E_EXECUTION, "four is 4", tape_backward(record, sum(y)));
    double host[4];
    expect_error(TILE_E_STATE, "", tile_array_read(tile_array_grad(x), host, sizeof host));
}

/* Checked mode */

TEST_F(CheckedTest, NothingHasChanged) {
    tile_array *n = integers({0, 7, 1}), *x = active({1, 2, 3}), *y = active({10, 20, 30});
    tape *other = new_tape();
    tile_kernel *k = guarded();
    ASSERT_EQ(TILE_OK, tile_launch(other, square(), TILE_GRID(1), TILE_ARGS(y, zeros(3))));
    expect_error(TILE_E_EXECUTION, message(1, 7, 3).c_str(),
                 tile_launch(record, k, TILE_GRID(3), TILE_ARGS(n, x, y, 3)));
    EXPECT_EQ(TILE_OK, tile_context_sync(ctx));
    EXPECT_EQ((Reals{10, 20, 30}), read(y));
    EXPECT_EQ(0, tape_length(record));
    EXPECT_EQ(1, tape_length(other));
    /* the tape is as good as ever */
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(3), TILE_ARGS(n, x, y, 8)));
    EXPECT_EQ((Reals{2, 4, 6}), read(y));
    backward(sum(y));
    EXPECT_EQ((Reals{2, 2, 2}), grad(x));
}

TEST_F(CheckedTest, StridedAndAliasedArraysArePutBack) {
    tile_array *n = integers({0, 7, 1});
    tile_array *base = reals({1, 2, 3, 4, 5, 6});
    tile_array *x = slice(base, {0}, TILE_SHAPE(3), {2}), *y = slice(base, {1}, TILE_SHAPE(3), {2});
    expect_error(TILE_E_EXECUTION, message(1, 7, 3).c_str(),
                 tile_launch(nullptr, guarded(), TILE_GRID(3), TILE_ARGS(n, x, y, 3)));
    EXPECT_EQ((Reals{1, 2, 3, 4, 5, 6}), read(base));
    expect_error(TILE_E_EXECUTION, message(1, 7, 3).c_str(),
                 tile_launch(nullptr, guarded(), TILE_GRID(3), TILE_ARGS(n, y, y, 3)));
    EXPECT_EQ((Reals{1, 2, 3, 4, 5, 6}), read(base));
}

TEST(CheckedModeTest, TheEnvironmentTurnsItOn) {
    tile_context *ctx = nullptr;
    for (const char *text : {"1", "0", ""}) {
        setenv("TILE_CHECK", text, 1);
        ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &ctx)) << tile_last_error();
        EXPECT_EQ(text[0] == '1', ctx->check) << text;
        tile_context_destroy(ctx);
    }
    const tile_context_options on = {1, 0, true};
    ASSERT_EQ(TILE_OK, tile_context_create(&on, &ctx));
    EXPECT_TRUE(ctx->check);
    tile_context_destroy(ctx);
    for (const char *text : {"2", "on", "11"}) {
        setenv("TILE_CHECK", text, 1);
        EXPECT_EQ(TILE_E_ARGUMENT, tile_context_create(nullptr, &ctx));
        EXPECT_EQ("tile_context_create: TILE_CHECK is \"" + std::string(text) + "\", wanted 0 or 1",
                  tile_last_error());
    }
    unsetenv("TILE_CHECK");
}

/* Extents */

TEST_F(ExecutionErrorTest, AnExtentIsKnownAtTheLaunchAndInTheAdjoint) {
    /* y = x * (extent of w) + sum over extent(w, 0) steps of x: w's values are not looked at */
    tile_kernel *k = kernel("sizes", [](tile_builder *b) {
        const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param w = tile_array_param(b, "w", TILE_F64, 2);
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        const tile n = tile_extent(w, 1), t = tile_load(x, TILE_SHAPE(2), TILE_AT_ZERO);
        tile_loop loop = tile_loop_begin(b, tile_extent(w, 0), TILE_LIST(t));
        tile_loop_end(&loop, TILE_LIST(tile_mul(loop.carried[0], t)));
        tile_store(y, tile_add(tile_mul(t, tile_cast(n, TILE_F64)), loop.carried[0]), TILE_AT_ZERO);
    });
    tile_array *x = active({2, 3}), *y = zeros(2), *w = array(TILE_F64, TILE_SHAPE(2, 5));
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, w, y)));
    EXPECT_EQ((Reals{2 * 5 + 8, 3 * 5 + 27}), read(y));
    backward(sum(y));
    EXPECT_EQ((Reals{5 + 3 * 4, 5 + 3 * 9}), grad(x));
}

/* Somebody else's launch clears what a tape's adjoint held where it wrote, and that place depends
 * on the extent of an array the tape has never seen. */
TEST_F(ExecutionErrorTest, AnExtentOfAnArrayThatATapeDoesNotKnow) {
    tile_kernel *k = kernel("place", [](tile_builder *b) {
        const tile_param w = tile_array_param(b, "w", TILE_F64, 1);
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        tile_store(y, tile_full(b, TILE_F64, TILE_SHAPE(1), 7), TILE_AT(tile_extent(w, 0)));
    });
    tile_array *x = active({1, 2, 3}), *y = zeros(3);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(zeros(1), y)));
    EXPECT_EQ((Reals{1, 7, 9}), read(y));
    backward(sum(y));
    EXPECT_EQ((Reals{2, 0, 6}), grad(x));
}

TEST_F(ExecutionErrorTest, BadCallsAreNamed) {
    const auto fails = [&](tile_status status, const char *part, const Build &build) {
        tile_builder *b = tile_kernel_begin(ctx, "bad");
        tile_kernel *k = nullptr;
        build(b);
        expect_error(status, part, tile_kernel_end(b, &k));
    };
    fails(TILE_E_ARGUMENT, "tile_extent: d is 2, wanted 0 to 1 for x",
          [](tile_builder *b) { tile_extent(tile_array_param(b, "x", TILE_F64, 2), 2); });
    fails(TILE_E_ARGUMENT, "tile_extent: not an array parameter of this kernel",
          [](tile_builder *b) {
              tile_extent(tile_param{b, 0}, 0);
          });
    fails(TILE_E_ARGUMENT, "tile_require: what is NULL, expected a name for value",
          [](tile_builder *b) {
              tile_require(tile_int(b, 0), tile_int(b, 0), tile_int(b, 1), nullptr);
          });
    fails(TILE_E_DTYPE, "tile_require: low is float64 of rank 0, expected a rank-0 integer tile",
          [](tile_builder *b) {
              tile_require(tile_int(b, 0), tile_real(b, TILE_F64, 0), tile_int(b, 1), "x");
          });
    fails(TILE_E_DTYPE, "tile_require: value is int64 of rank 1", [](tile_builder *b) {
        tile_require(tile_zeros(b, TILE_I64, TILE_SHAPE(2)), tile_int(b, 0), tile_int(b, 1), "x");
    });
    fails(TILE_E_ARGUMENT, "tile_require: high is not a tile that is usable here",
          [](tile_builder *b) {
              tile_require(tile_int(b, 0), tile_int(b, 0), tile{nullptr, -1}, "x");
          });
}

TEST_F(ExecutionErrorTest, TheTextFormSaysWhatIsLookedAt) {
    char *text = nullptr;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ASSERT_EQ(TILE_OK, tile_kernel_print(guarded(), out));
    fclose(out);
    EXPECT_NE(nullptr, strstr(text, "within %")) << text;
    EXPECT_NE(nullptr, strstr(text, "\"number\"")) << text;
    free(text);
}

} // namespace
