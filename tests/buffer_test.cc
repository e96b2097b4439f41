/* buffer_test.cc: counted memory: the pool, the limit, release on any thread, planted failures. */
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "core/context.h"
#include "core/core_api.h"

namespace {

tile_context *context_of(int threads, size_t limit = 0) {
    tile_context_options options = {threads, limit};
    tile_context *ctx = nullptr;
    options.executor = TILE_EXECUTOR_INTERPRETER; /* buffers of the host */
    EXPECT_EQ(TILE_OK, tile_context_create(&options, &ctx)) << tile_last_error();
    return ctx;
}

TEST(BufferTest, AReleasedBufferIsServedAgainFromItsSizeClass) {
    tile_context *ctx = context_of(1);
    tile_buffer *a = nullptr, *b = nullptr, *other = nullptr;
    ASSERT_EQ(TILE_OK, tile_buffer_create(ctx, 1000, &a));
    ASSERT_EQ(TILE_OK, tile_buffer_create(ctx, 5000, &other));
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(a->data) % 64);
    EXPECT_EQ(6000u, tile_context_bytes(ctx));
    void *data = a->data;
    tile_buffer_release(a);
    EXPECT_EQ(5000u, tile_context_bytes(ctx));
    ASSERT_EQ(TILE_OK, tile_buffer_create(ctx, 900, &b)); /* 897..1024 is one class */
    EXPECT_EQ(data, b->data);
    EXPECT_EQ(5900u, tile_context_bytes(ctx));
    EXPECT_EQ(6000u, ctx->peak);
    tile_buffer_release(b);
    tile_buffer_release(other);
    tile_buffer_release(nullptr);
    EXPECT_EQ(0u, tile_context_bytes(ctx));
    tile_context_destroy(ctx);
}

TEST(BufferTest, PoolClassesCoverEverySizeWithLittleWaste) {
    int last = -1;
    size_t before = 0;
    for (size_t bytes = 0; bytes <= 70000; bytes++) {
        size_t capacity = 0;
        const int c = tile_pool_class(bytes, &capacity);
        ASSERT_TRUE(c == last || c == last + 1) << bytes;
        ASSERT_GE(capacity, bytes);
        ASSERT_EQ(0u, capacity % 64);
        if (bytes > 256) {
            ASSERT_LE(capacity, bytes + bytes / 4);
        }
        if (c == last) {
            ASSERT_EQ(before, capacity);
        }
        size_t again = 0;
        ASSERT_EQ(c, tile_pool_class(capacity, &again));
        ASSERT_EQ(capacity, again);
        last = c;
        before = capacity;
    }
    size_t capacity = 0;
    EXPECT_LT(tile_pool_class(size_t{1} << 62, &capacity), TILE_POOL_CLASSES);
    EXPECT_EQ(size_t{1} << 62, capacity);
}

TEST(BufferTest, TheLimitCountsWhatIsHeldAndNotThePool) {
    tile_context *ctx = context_of(1, 10000);
    tile_buffer *a = nullptr, *b = nullptr, *c = nullptr;
    ASSERT_EQ(TILE_OK, tile_buffer_create(ctx, 6000, &a));
    EXPECT_EQ(TILE_E_MEMORY, tile_buffer_create(ctx, 4001, &b));
    EXPECT_STREQ("memory: 4001 bytes wanted, 6000 held, the limit is 10000", tile_last_error());
    EXPECT_EQ(nullptr, b);
    EXPECT_EQ(6000u, tile_context_bytes(ctx));
    ASSERT_EQ(TILE_OK, tile_buffer_create(ctx, 4000, &b));
    tile_buffer_release(a);
    ASSERT_EQ(TILE_OK, tile_buffer_create(ctx, 5000, &c)); /* the pool makes room */
    EXPECT_EQ(9000u, tile_context_bytes(ctx));
    EXPECT_EQ(0u, ctx->pool_capacity);
    tile_buffer_release(b);
    tile_buffer_release(c);
    tile_context_destroy(ctx);
}

TEST(BufferTest, ThePoolDoesNotPileUpSizesThatAreGone) {
    tile_context *ctx = context_of(1);
    const size_t big = size_t{300} << 20; /* not touched, so no real memory */
    for (size_t i = 0; i < 8; i++) {
        tile_buffer *b = nullptr;
        ASSERT_EQ(TILE_OK, tile_buffer_create(ctx, big + i * (size_t{64} << 20), &b));
        tile_buffer_release(b);
    }
    /* twice the largest, 768 MiB, and 256 MiB of slack */
    EXPECT_LE(ctx->pool_capacity, size_t{1792} << 20);
    tile_pool_empty(ctx);
    EXPECT_EQ(0u, ctx->pool_capacity);
    tile_context_destroy(ctx);
}

TEST(BufferTest, HugeBuffersAreAnErrorAndCountNothing) {
    tile_context *ctx = context_of(1);
    tile_buffer *b = nullptr;
    EXPECT_EQ(TILE_E_MEMORY, tile_buffer_create(ctx, size_t{1} << 61, &b));
    EXPECT_EQ(TILE_E_MEMORY, tile_buffer_create(ctx, SIZE_MAX, &b));
    EXPECT_EQ(nullptr, b);
    EXPECT_EQ(0u, tile_context_bytes(ctx));
    tile_context_destroy(ctx);
}

TEST(BufferTest, BuffersMayBeHeldAndReleasedOnAnyThread) {
    tile_context *ctx = context_of(1);
    auto churn = [ctx](size_t seed) {
        std::vector<tile_buffer *> mine;
        for (size_t i = 0; i < 2000; i++) {
            tile_buffer *b = nullptr;
            if (tile_buffer_create(ctx, 1 + (seed * 977 + i * 131) % 5000, &b)) abort();
            memset(b->data, static_cast<int>(seed), b->bytes);
            mine.push_back(tile_buffer_hold(b));
            tile_buffer_release(b);
            if (mine.size() > 10) {
                tile_buffer_release(mine.front());
                mine.erase(mine.begin());
            }
        }
        for (tile_buffer *b : mine) tile_buffer_release(b);
    };
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 4; t++) threads.emplace_back(churn, t);
    for (auto &t : threads) t.join();
    EXPECT_EQ(0u, tile_context_bytes(ctx));
    tile_context_destroy(ctx);
}

TEST(BufferTest, ArraysMayBeFreedOnOtherThreadsAndTheContextFirst) {
    tile_context *ctx = context_of(2);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        tile_array *a = nullptr;
        ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(100), &a));
        ASSERT_EQ(TILE_OK, tile_array_request_grad(a));
        threads.emplace_back([a] { tile_array_destroy(a); });
    }
    tile_context_destroy(ctx); /* the last array takes the context with it */
    for (auto &t : threads) t.join();
}

TEST(BufferTest, GrowKeepsWhatIsThereAndZeroesTheRest) {
    int *items = nullptr;
    int32_t capacity = 0;
    ASSERT_EQ(TILE_OK, tile_grow(&items, &capacity, 1, sizeof *items));
    ASSERT_GE(capacity, 1);
    for (int32_t i = 0; i < capacity; i++) EXPECT_EQ(0, items[i]);
    const int32_t before = capacity;
    for (int32_t i = 0; i < before; i++) items[i] = 10 + i;
    tile_fail_allocation(1);
    int *old = items;
    EXPECT_EQ(TILE_E_MEMORY, tile_grow(&items, &capacity, before + 1, sizeof *items));
    EXPECT_EQ(old, items);
    EXPECT_EQ(before, capacity);
    ASSERT_EQ(TILE_OK, tile_grow(&items, &capacity, before + 1, sizeof *items));
    EXPECT_EQ(2 * before, capacity);
    for (int32_t i = 0; i < before; i++) EXPECT_EQ(10 + i, items[i]);
    for (int32_t i = before; i < capacity; i++) EXPECT_EQ(0, items[i]);
    EXPECT_EQ(TILE_E_MEMORY, tile_grow(&items, &capacity, INT32_MAX, size_t{1} << 40));
    EXPECT_EQ(2 * before, capacity);
    tile_free(items);
}

} // namespace
