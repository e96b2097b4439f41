/* host_copy_test.cc: host copies and fills, gradients, watchers. */
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/dtype.h"
#include "tests/array_fixture.h"

namespace {

class HostCopyTest : public ArrayTest {
  protected:
    void SetUp() override {
        ctx = host_context(1);
    }
};

TEST_F(HostCopyTest, RandomStridedCopiesAgreeWithIndexArithmetic) {
    std::mt19937 random(7);
    auto below = [&random](int n) {
        return static_cast<int64_t>(random() % static_cast<unsigned>(n));
    };
    for (int round = 0; round < 500; round++) {
        const tile_dtype dtype = static_cast<tile_dtype>(below(TILE_DTYPES));
        const size_t size = tile_dtype_size(dtype);
        const int rank = static_cast<int>(below(TILE_RANK_MAX + 1));
        tile_shape shape = {rank, {}};
        int64_t stride[TILE_RANK_MAX] = {0}, order[TILE_RANK_MAX], gap = 1 + below(2);
        for (int d = 0; d < rank; d++) order[d] = d;
        for (int d = rank - 1; d > 0; d--) std::swap(order[d], order[below(d + 1)]);
        for (int i = 0; i < rank; i++) { /* no overlap; dimensions in a random order */
            const int64_t d = order[i];
            shape.extent[d] = 1 + below(4);
            stride[d] = gap;
            gap *= shape.extent[d] + below(2);
        }
        const int64_t count = tile_shape_count(shape), offset = below(3);
        std::vector<unsigned char> memory(static_cast<size_t>(gap + offset + 3) * size + 64);
        for (auto &byte : memory) byte = static_cast<unsigned char>(random());
        const std::vector<unsigned char> before = memory;
        std::vector<unsigned char> host(static_cast<size_t>(count) * size + 1);
        for (auto &byte : host) byte = static_cast<unsigned char>(random());
        std::vector<unsigned char> wanted = memory;
        std::vector<unsigned char> gathered(static_cast<size_t>(count) * size);
        unsigned char *first = memory.data() + static_cast<size_t>(offset) * size;
        for (int64_t i = 0; i < count; i++) { /* place of element i, by division */
            int64_t rest = i, place = offset;
            for (int d = rank - 1; d >= 0; d--) {
                place += rest % shape.extent[d] * stride[d];
                rest /= shape.extent[d];
            }
            memcpy(&gathered[static_cast<size_t>(i) * size],
                   &memory[static_cast<size_t>(place) * size], size);
            memcpy(&wanted[static_cast<size_t>(place) * size],
                   &host[static_cast<size_t>(i) * size + 1], size);
        }
        std::vector<unsigned char> out(static_cast<size_t>(count) * size + 1);
        tile_copy_strided(dtype, shape, out.data() + 1, nullptr, first, stride); /* unaligned */
        ASSERT_EQ(0, memcmp(out.data() + 1, gathered.data(), gathered.size())) << round;
        ASSERT_EQ(before, memory);
        tile_copy_strided(dtype, shape, first, stride, host.data() + 1, nullptr);
        ASSERT_EQ(wanted, memory) << round;
    }
}

TEST_F(HostCopyTest, FillsOfEveryLengthStayInside) {
    for (int64_t n : {1, 2, 3, 7, 63, 1000, 2047, 2048, 2049, 5000, 70001}) {
        std::vector<float> memory(static_cast<size_t>(n) + 2, -1.0f);
        tile_array *a = nullptr;
        ASSERT_EQ(TILE_OK, tile_array_wrap(ctx, TILE_F32, TILE_SHAPE(n), nullptr, &memory[1], &a));
        EXPECT_EQ(TILE_OK, tile_array_fill(a, 0.1));
        EXPECT_EQ(-1.0f, memory.front());
        EXPECT_EQ(-1.0f, memory.back());
        for (size_t i = 1; i <= static_cast<size_t>(n); i++) ASSERT_EQ(0.1f, memory[i]);
        tile_array_destroy(a);
    }
}

TEST_F(HostCopyTest, FillChecksThatIntegersHoldTheValue) {
    tile_array *a = create(TILE_U8, TILE_SHAPE(3));
    EXPECT_EQ(TILE_OK, tile_array_fill(a, 255));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_fill(a, 256));
    EXPECT_STREQ("tile_array_fill: value is 256, which uint8 does not hold", tile_last_error());
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_fill(a, 0.5));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_fill(a, std::nan("")));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_fill(nullptr, 0));
    uint8_t got[3] = {0};
    EXPECT_EQ(TILE_OK, tile_array_read(a, got, 3));
    for (uint8_t x : got) EXPECT_EQ(255, x);
    tile_array_destroy(a);
}

TEST_F(HostCopyTest, HostCopiesCheckTheirArguments) {
    tile_array *a = create(TILE_F32, TILE_SHAPE(2));
    float x[3] = {5, 5, 5};
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_read(a, x, 12));
    EXPECT_STREQ("tile_array_read: bytes is 12, wanted 8", tile_last_error());
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_read(a, x, 4));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_read(a, nullptr, 8));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_read(nullptr, x, 8));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_write(a, x, 7));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_write(a, nullptr, 8));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_write(nullptr, x, 8));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_data(a, nullptr));
    void *data = nullptr;
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_data(nullptr, &data));
    EXPECT_EQ(nullptr, data);
    EXPECT_EQ(5, x[0]);
    EXPECT_EQ((Floats{0, 0}), read(a));
    tile_array_destroy(a);
}

TEST_F(HostCopyTest, AReadFirstReportsAPendingExecutionError) {
    tile_array *a = counting(TILE_SHAPE(2));
    tile_context_pend(ctx, TILE_E_EXECUTION, "an earlier launch");
    float x[2] = {-1, -1};
    EXPECT_EQ(TILE_E_EXECUTION, tile_array_read(a, x, sizeof x));
    EXPECT_STREQ("an earlier launch", tile_last_error());
    EXPECT_EQ(-1, x[0]);
    EXPECT_EQ(TILE_OK, tile_array_read(a, x, sizeof x));
    EXPECT_EQ(1, x[1]);
    tile_array_destroy(a);
}

TEST_F(HostCopyTest, AHeldArrayOutlivesItsHandle) {
    tile_array *a = counting(TILE_SHAPE(3)), *held = tile_array_hold(a);
    ASSERT_EQ(TILE_OK, tile_array_request_grad(a));
    tile_array_destroy(a);
    EXPECT_EQ((Floats{0, 1, 2}), read(held));
    EXPECT_EQ(Floats(3, 0.0f), read(tile_array_grad(held)));
    tile_array_destroy(held);
}

TEST_F(HostCopyTest, TheGradientOfAViewIsThatSliceOfItsBase) {
    tile_array *a = counting(TILE_SHAPE(3, 4));
    EXPECT_EQ(nullptr, tile_array_grad(a));
    EXPECT_EQ(nullptr, tile_array_grad(nullptr));
    tile_array *early = slice(a, {1, 0}, TILE_SHAPE(2, 4));
    tile_array *column = slice(early, {0, 1}, TILE_SHAPE(2, 1));
    ASSERT_EQ(TILE_OK, tile_array_request_grad(column)); /* of a view: for the base */
    ASSERT_EQ(TILE_OK, tile_array_request_grad(a));      /* again is fine */
    tile_array *g = tile_array_grad(a), *gc = tile_array_grad(column);
    ASSERT_NE(nullptr, g);
    EXPECT_EQ(g, tile_array_grad(a));
    EXPECT_EQ(Floats(12, 0.0f), read(g));
    EXPECT_TRUE(tile_shape_equal(tile_array_shape(gc), TILE_SHAPE(2, 1)));
    EXPECT_EQ(TILE_OK, tile_array_fill(gc, 8));
    EXPECT_EQ((Floats{0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0}), read(g));
    EXPECT_EQ((Floats{0, 8, 0, 0, 0, 8, 0, 0}), read(tile_array_grad(early)));
    EXPECT_EQ((Floats{5, 9}), read(column));
    EXPECT_EQ(96u, tile_context_bytes(ctx));
    tile_array *kept = slice(g, {1, 1}, TILE_SHAPE(2, 1)); /* outlives the array */
    for (tile_array *x : {a, early, column}) tile_array_destroy(x);
    EXPECT_EQ((Floats{8, 8}), read(kept));
    EXPECT_EQ(48u, tile_context_bytes(ctx));
    tile_array_destroy(kept);
}

TEST_F(HostCopyTest, OnlyFloatArraysHaveGradients) {
    for (tile_dtype dtype : {TILE_I32, TILE_I64, TILE_U8, TILE_U32, TILE_U64, TILE_BOOL}) {
        tile_array *a = create(dtype, TILE_SHAPE(3));
        EXPECT_EQ(TILE_E_DTYPE, tile_array_request_grad(a));
        EXPECT_EQ(nullptr, tile_array_grad(a));
        tile_array_destroy(a);
    }
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_request_grad(nullptr));
}

TEST_F(HostCopyTest, TheGradientOfAFailedBackwardCannotBeReadUntilItIsOverwritten) {
    tile_array *a = create(TILE_F32, TILE_SHAPE(4));
    ASSERT_EQ(TILE_OK, tile_array_request_grad(a));
    a->storage->grad_invalid = true;
    tile_array *g = tile_array_grad(a), *part = slice(g, {1}, TILE_SHAPE(2));
    float x[4];
    void *data = nullptr;
    EXPECT_EQ(TILE_E_STATE, tile_array_read(g, x, sizeof x));
    EXPECT_EQ(TILE_E_STATE, tile_array_read(part, x, 8));
    EXPECT_EQ(TILE_E_STATE, tile_array_data(g, &data));
    EXPECT_EQ(TILE_OK, tile_array_read(a, x, sizeof x));
    EXPECT_EQ(TILE_OK, tile_array_fill(part, 1));
    EXPECT_EQ(TILE_E_STATE, tile_array_read(part, x, 8)); /* a part does not heal the rest */
    EXPECT_EQ(TILE_OK, tile_array_fill(g, 0));
    EXPECT_EQ(TILE_OK, tile_array_read(part, x, 8));
    tile_array_destroy(part);
    tile_array_destroy(a);
}

struct Watcher {
    tile_watcher base; /* first, so that a Watcher is a tile_watcher */
    tile_storage *storage;
    bool wants = true;
    int saves = 0, writes = 0;
    bool fails = false;
    tile_range saved = {0, 0}, written = {0, 0};
    tile_buffer *adopted = nullptr;
    std::vector<float> copy;

    explicit Watcher(tile_storage *s) : storage(s) {
        base.next = s->watchers;
        base.needs = [](const tile_watcher *w, tile_range) { return of(w)->wants; };
        base.save = [](tile_watcher *w, tile_range range, tile_buffer *adopt) {
            Watcher *self = const_cast<Watcher *>(of(w));
            if (self->fails) return TILE_E_MEMORY;
            self->saves++;
            self->saved = range;
            if (adopt) {
                self->adopted = tile_buffer_hold(adopt);
            } else {
                const float *x = static_cast<const float *>(self->storage->buffer->data);
                self->copy.assign(x + range.low / 4, x + range.high / 4);
            }
            return TILE_OK;
        };
        base.written = [](tile_watcher *w, const tile_array *array) {
            Watcher *self = const_cast<Watcher *>(of(w));
            self->writes++;
            self->written = tile_array_range(array);
            return TILE_OK;
        };
        s->watchers = &base;
    }
    ~Watcher() {
        tile_buffer_release(adopted);
    }
    static const Watcher *of(const tile_watcher *w) {
        return reinterpret_cast<const Watcher *>(w);
    }
};

TEST_F(HostCopyTest, AWholeWriteLetsWatchersAdoptTheOldBuffer) {
    tile_array *a = counting(TILE_SHAPE(2, 3));
    Watcher first(a->storage), second(a->storage);
    const void *old = tile_array_address(a);
    EXPECT_EQ(TILE_OK, tile_array_fill(a, 9));
    EXPECT_NE(old, tile_array_address(a));
    for (Watcher *w : {&first, &second}) {
        ASSERT_NE(nullptr, w->adopted);
        EXPECT_EQ(old, w->adopted->data);
        EXPECT_EQ(5, static_cast<float *>(w->adopted->data)[5]);
        EXPECT_EQ(1, w->writes);
        EXPECT_EQ(0, w->written.low);
        EXPECT_EQ(24, w->written.high);
    }
    EXPECT_EQ(Floats(6, 9.0f), read(a));
    a->storage->watchers = nullptr;
    tile_array_destroy(a);
}

TEST_F(HostCopyTest, PartialWritesAndExposedMemoryAreCopiedForWatchers) {
    tile_array *a = counting(TILE_SHAPE(6));
    Watcher w(a->storage);
    tile_array *part = slice(a, {1}, TILE_SHAPE(2), {2}); /* places 1 and 3 */
    const void *old = tile_array_address(a);
    EXPECT_EQ(TILE_OK, tile_array_fill(part, 9));
    EXPECT_EQ(nullptr, w.adopted);
    EXPECT_EQ((Floats{1, 2, 3}), w.copy);
    EXPECT_EQ(4, w.written.low);
    EXPECT_EQ(16, w.written.high);
    EXPECT_EQ((Floats{0, 9, 2, 9, 4, 5}), read(a));
    void *data = nullptr;
    EXPECT_EQ(TILE_OK, tile_array_data(part, &data));
    EXPECT_EQ(TILE_OK, tile_array_fill(a, 7));
    EXPECT_EQ(old, tile_array_address(a)); /* it keeps its address */
    EXPECT_EQ(nullptr, w.adopted);
    EXPECT_EQ((Floats{0, 9, 2, 9, 4, 5}), w.copy);
    a->storage->watchers = nullptr;
    tile_array_destroy(part);
    tile_array_destroy(a);
}

TEST_F(HostCopyTest, AWriteThatReachesBothEndsButHasGapsIsNotAWholeWrite) {
    tile_array *a = counting(TILE_SHAPE(5));
    Watcher w(a->storage);
    tile_array *even = slice(a, {0}, TILE_SHAPE(3), {2});
    EXPECT_EQ(TILE_OK, tile_array_fill(even, 9));
    EXPECT_EQ(nullptr, w.adopted);
    EXPECT_EQ((Floats{9, 1, 9, 3, 9}), read(a));
    a->storage->watchers = nullptr;
    tile_array_destroy(even);
    tile_array_destroy(a);
}

TEST_F(HostCopyTest, AWatcherThatNeedsNothingCostsNothing) {
    tile_array *a = counting(TILE_SHAPE(3));
    Watcher w(a->storage);
    w.wants = false;
    const void *old = tile_array_address(a);
    EXPECT_EQ(TILE_OK, tile_array_fill(a, 9));
    EXPECT_EQ(old, tile_array_address(a));
    EXPECT_EQ(0, w.saves);
    EXPECT_EQ(1, w.writes);
    a->storage->watchers = nullptr;
    tile_array_destroy(a);
}

TEST_F(HostCopyTest, AWriteWhoseOldValuesCannotBeKeptChangesNothing) {
    tile_array *a = counting(TILE_SHAPE(3));
    Watcher last(a->storage), failing(a->storage), adopting(a->storage);
    failing.fails = true;
    EXPECT_EQ(TILE_E_MEMORY, tile_array_fill(a, 9));
    EXPECT_EQ((Floats{0, 1, 2}), read(a));
    ASSERT_NE(nullptr, adopting.adopted); /* the first adopted; it must not share with the array */
    EXPECT_NE(adopting.adopted->data, tile_array_address(a));
    EXPECT_EQ(2, static_cast<float *>(adopting.adopted->data)[2]);
    EXPECT_EQ(0, last.saves + last.writes + adopting.writes);
    tile_array *part = slice(a, {0}, TILE_SHAPE(2));
    EXPECT_EQ(TILE_E_MEMORY, tile_array_fill(part, 9));
    EXPECT_EQ((Floats{0, 1, 2}), read(a));
    /* no memory for the fresh buffer */
    failing.fails = false;
    const int before = adopting.saves;
    tile_fail_allocation(1);
    EXPECT_EQ(TILE_E_MEMORY, tile_array_fill(a, 9));
    EXPECT_EQ(before, adopting.saves);
    EXPECT_EQ((Floats{0, 1, 2}), read(a));
    a->storage->watchers = nullptr;
    tile_array_destroy(part);
    tile_array_destroy(a);
}

TEST_F(HostCopyTest, AfterUseOnATapeANewGradientIsAnError) {
    tile_array *a = counting(TILE_SHAPE(3)), *b = counting(TILE_SHAPE(3));
    ASSERT_EQ(TILE_OK, tile_array_request_grad(b));
    Watcher wa(a->storage), wb(b->storage);
    EXPECT_EQ(TILE_E_STATE, tile_array_request_grad(a));
    EXPECT_EQ(nullptr, tile_array_grad(a));
    EXPECT_EQ(TILE_OK, tile_array_request_grad(b));
    a->storage->watchers = b->storage->watchers = nullptr;
    tile_array_destroy(a);
    tile_array_destroy(b);
}

} // namespace
