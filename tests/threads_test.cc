/* threads_test.cc: tile_parallel, contexts, references, buffers freed from any thread. */
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "core/context.h"
#include "core/core_api.h"
#include "core/status.h"

namespace {

const double LARGE_NS = 1e6, MEDIUM_NS = 2e4, SMALL_NS = 100;

tile_context *context_of(int threads, size_t limit = 0) {
    tile_context_options options = {threads, limit};
    tile_context *ctx = nullptr;
    EXPECT_EQ(TILE_OK, tile_context_create(&options, &ctx)) << tile_last_error();
    return ctx;
}

struct Record {
    std::vector<int> times;
    std::vector<int> by_thread;
    std::atomic<int> wrong_thread{0};
    int threads;
};

void note(int64_t part, int thread, void *arg) {
    Record *r = static_cast<Record *>(arg);
    r->times[static_cast<size_t>(part)]++; /* a race when a part runs twice: tsan sees it */
    if (thread < 0 || thread >= r->threads)
        r->wrong_thread++;
    else
        r->by_thread[static_cast<size_t>(thread) * 64]++;
}

class Threads : public testing::TestWithParam<int> {};

TEST_P(Threads, RunEveryPartOnce) {
    tile_context *ctx = context_of(GetParam());
    ASSERT_EQ(GetParam(), tile_context_threads(ctx));
    for (double work : {SMALL_NS, MEDIUM_NS, LARGE_NS})
        for (int64_t parts : {0, 1, 2, 3, 7, 64, 1000, 4099}) {
            Record r;
            r.threads = GetParam();
            r.times.assign(static_cast<size_t>(parts), 0);
            r.by_thread.assign(static_cast<size_t>(r.threads) * 64, 0);
            tile_parallel(ctx, parts, work, note, &r);
            int sum = 0;
            for (int n : r.by_thread) sum += n;
            EXPECT_EQ(parts, sum);
            EXPECT_EQ(0, r.wrong_thread);
            for (int n : r.times) ASSERT_EQ(1, n);
        }
    tile_context_destroy(ctx);
}

TEST_P(Threads, SeeWhatTheCallerWroteBetweenManyShortJobs) {
    tile_context *ctx = context_of(GetParam());
    struct Job {
        int64_t scale;
        int64_t out[32];
    } job = {0, {0}};
    auto task = [](int64_t part, int, void *arg) {
        Job *j = static_cast<Job *>(arg);
        j->out[part] += j->scale * part;
    };
    int64_t sum_of_scales = 0;
    for (int64_t round = 1; round <= 3000; round++) {
        job.scale = round;
        sum_of_scales += round;
        const double work = round % 3 == 0 ? LARGE_NS : MEDIUM_NS;
        tile_parallel(ctx, 32, work, task, &job);
    }
    for (int64_t part = 0; part < 32; part++) ASSERT_EQ(sum_of_scales * part, job.out[part]);
    tile_context_destroy(ctx);
}

INSTANTIATE_TEST_SUITE_P(Counts, Threads, testing::Values(1, 2, 3, 8));

TEST(ThreadsTest, WorkersThatFellAsleepAreWokenForLargeWork) {
    tile_context *ctx = context_of(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); /* far beyond the spin */
    struct Meeting {
        std::atomic<int> here{0};
    } meeting;
    /* Both parts wait for each other, so that one thread alone would time out. */
    auto task = [](int64_t, int, void *arg) {
        Meeting *m = static_cast<Meeting *>(arg);
        m->here++;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (m->here < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        if (m->here < 2) m->here = -100;
    };
    for (int round = 0; round < 5; round++) {
        meeting.here = 0;
        tile_parallel(ctx, 2, 1e9, task, &meeting);
        EXPECT_EQ(2, meeting.here);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    tile_context_destroy(ctx);
}

TEST(ThreadsTest, SmallWorkRunsOnTheCallerInOrder) {
    tile_context *ctx = context_of(4);
    std::vector<int64_t> order;
    auto task = [](int64_t part, int thread, void *arg) {
        EXPECT_EQ(0, thread);
        static_cast<std::vector<int64_t> *>(arg)->push_back(part);
    };
    tile_parallel(ctx, 5, 500, task, &order);
    EXPECT_EQ((std::vector<int64_t>{0, 1, 2, 3, 4}), order);
    tile_context_destroy(ctx);
}

TEST(ThreadsTest, ContextsComeAndGoQuicklyWithTheirThreads) {
    for (int i = 0; i < 100; i++) tile_context_destroy(context_of(1 + i % 5));
}

TEST(ThreadsTest, TheVariableSetsTheThreadsUnlessTheOptionDoes) {
    tile_context *ctx = nullptr;
    setenv("TILE_THREADS", "3", 1);
    ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &ctx));
    EXPECT_EQ(3, tile_context_threads(ctx));
    tile_context_destroy(ctx);
    ctx = context_of(2);
    EXPECT_EQ(2, tile_context_threads(ctx));
    tile_context_destroy(ctx);
    for (const char *bad : {"0", "-1", "1025", "2x", "x", "99999999999999999999", " "}) {
        setenv("TILE_THREADS", bad, 1);
        ctx = nullptr;
        EXPECT_EQ(TILE_E_ARGUMENT, tile_context_create(nullptr, &ctx)) << bad;
        EXPECT_EQ(nullptr, ctx);
    }
    EXPECT_STREQ("tile_context_create: TILE_THREADS is \" \", wanted 1 to 1024", tile_last_error());
    unsetenv("TILE_THREADS");
    ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &ctx));
    EXPECT_GE(tile_context_threads(ctx), 1);
    tile_context_destroy(ctx);
}

TEST(ThreadsTest, BadContextOptionsAreErrors) {
    tile_context *ctx = nullptr;
    for (int threads : {-1, 1025}) {
        tile_context_options options = {threads, 0};
        EXPECT_EQ(TILE_E_ARGUMENT, tile_context_create(&options, &ctx));
    }
    EXPECT_EQ(TILE_E_ARGUMENT, tile_context_create(nullptr, nullptr));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_context_sync(nullptr));
    EXPECT_EQ(nullptr, ctx);
    tile_context_destroy(nullptr);
}

TEST(ThreadsTest, EveryFailedAllocationOfAContextIsAnErrorWithoutALeak) {
    tile_context_options options = {3, 0};
    int n = 1;
    for (;; n++) {
        tile_context *ctx = nullptr;
        tile_fail_allocation(n);
        const tile_status status = tile_context_create(&options, &ctx);
        tile_fail_allocation(0);
        if (!status) {
            tile_context_destroy(ctx);
            break;
        }
        EXPECT_EQ(TILE_E_MEMORY, status);
        EXPECT_EQ(nullptr, ctx);
    }
    EXPECT_EQ(3, n); /* the context, the group of workers, then success */
}

TEST(ThreadsTest, AnExecutionErrorComesOutOnceAndTheFirstOneWins) {
    tile_context *ctx = context_of(1);
    tile_context_pend(ctx, TILE_E_EXECUTION, "launch %d: index %d", 7, 9);
    tile_context_pend(ctx, TILE_E_DEVICE, "later");
    EXPECT_EQ(TILE_E_EXECUTION, tile_context_sync(ctx));
    EXPECT_STREQ("launch 7: index 9", tile_last_error());
    EXPECT_EQ(TILE_OK, tile_context_sync(ctx));
    tile_context_destroy(ctx);
}

TEST(ThreadsTest, TheLastErrorBelongsToItsThread) {
    EXPECT_EQ(TILE_E_SHAPE, tile_fail(TILE_E_SHAPE, "mine"));
    std::thread([] {
        EXPECT_STREQ("", tile_last_error());
        EXPECT_EQ(TILE_E_DTYPE, tile_fail(TILE_E_DTYPE, "theirs"));
    }).join();
    EXPECT_STREQ("mine", tile_last_error());
    tile_fail(TILE_E_SHAPE, "not %s", tile_last_error()); /* its own text as an argument */
    EXPECT_STREQ("not mine", tile_last_error());
    tile_fail(TILE_E_SHAPE, "%s", std::string(5000, 'x').c_str());
    EXPECT_EQ(std::string(511, 'x'), tile_last_error());
}

TEST(ThreadsTest, EveryStatusHasAText) {
    EXPECT_STREQ("success", tile_status_text(TILE_OK));
    EXPECT_STREQ("a file cannot be read or written", tile_status_text(TILE_E_FILE));
    EXPECT_STREQ("a device call failed", tile_status_text(TILE_E_DEVICE));
    for (int bad : {-1, static_cast<int>(TILE_STATUS_COUNT), 1000})
        EXPECT_STREQ("unknown status", tile_status_text(static_cast<tile_status>(bad)));
}

TEST(ThreadsTest, ReadyMadeObjectsDoNotKeepTheContextAlive) {
    static int freed;
    freed = 0;
    tile_context *ctx = context_of(1);
    ctx->ready_made = ctx;
    for (int i = 0; i < 3; i++) { /* as three kernels would */
        tile_context_hold(ctx);
        ctx->ready_refs++;
    }
    ctx->free_ready_made = [](tile_context *c) {
        freed++;
        for (int i = 0; i < 3; i++) tile_context_release(c);
    };
    tile_context *tape_hold = tile_context_hold(ctx);
    tile_context_destroy(ctx);
    EXPECT_EQ(0, freed);
    tile_context_release(tape_hold);
    EXPECT_EQ(1, freed); /* and the leak checker sees the rest */
}

} // namespace
