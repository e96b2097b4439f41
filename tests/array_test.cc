/* array_test.cc: shapes, creation, wrapping, views, and memory that runs out. */
#include <cstring>
#include <vector>

#include "tests/array_fixture.h"

namespace {

TEST_F(ArrayTest, ShapesCountTheirElementsOrAreMalformed) {
    EXPECT_EQ(1, tile_shape_count(tile_shape{0, {}}));
    EXPECT_EQ(24, tile_shape_count(TILE_SHAPE(2, 3, 4)));
    EXPECT_EQ(0, tile_shape_count(TILE_SHAPE(2, 0, 4)));
    EXPECT_EQ(int64_t{1} << 62, tile_shape_count(TILE_SHAPE(int64_t{1} << 31, int64_t{1} << 31)));
    EXPECT_EQ(-1, tile_shape_count(TILE_SHAPE(int64_t{1} << 31, int64_t{1} << 31, 2)));
    EXPECT_EQ(-1, tile_shape_count(TILE_SHAPE(int64_t{1} << 40, int64_t{1} << 40, 0)));
    EXPECT_EQ(-1, tile_shape_count(TILE_SHAPE(2, -1)));
    EXPECT_EQ(-1, tile_shape_count(tile_shape{7, {}}));
    EXPECT_EQ(-1, tile_shape_count(tile_shape{-1, {}}));
    char text[TILE_SHAPE_TEXT];
    EXPECT_STREQ("[]", tile_shape_text(tile_shape{0, {}}, text));
    EXPECT_STREQ("[2, 3]", tile_shape_text(TILE_SHAPE(2, 3), text));
    const int64_t m = INT64_MIN; /* six of the longest numbers fit */
    tile_shape_text(TILE_SHAPE(m, m, m, m, m, m), text);
    EXPECT_EQ(6u * 20 + 5 * 2 + 2, strlen(text));
}

TEST_F(ArrayTest, NewArraysAreZeroAlsoFromThePool) {
    for (int round = 0; round < 2; round++) {
        tile_array *a = create(TILE_F32, TILE_SHAPE(3, 5));
        EXPECT_EQ(60u, tile_context_bytes(ctx));
        EXPECT_EQ(Floats(15, 0.0f), read(a));
        EXPECT_EQ(TILE_OK, tile_array_fill(a, 7));
        tile_array_destroy(a);
    }
}

TEST_F(ArrayTest, BadCreationsAreErrorsAndLeaveTheResultAlone) {
    tile_array *a = nullptr;
    const int64_t huge = int64_t{1} << 61;
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_create(nullptr, TILE_F32, TILE_SHAPE(1), &a));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_create(ctx, TILE_F32, TILE_SHAPE(1), nullptr));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_create(ctx, TILE_F32, tile_shape{7, {}}, &a));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_create(ctx, TILE_F32, TILE_SHAPE(3, -2), &a));
    EXPECT_STREQ(
        "tile_array_create: shape is [3, -2], wanted extents from 0 and at most 2^62 bytes",
        tile_last_error());
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_create(ctx, TILE_F32, TILE_SHAPE(huge), &a));
    EXPECT_EQ(TILE_E_DTYPE, tile_array_create(ctx, TILE_DTYPES, TILE_SHAPE(1), &a));
    EXPECT_EQ(TILE_E_MEMORY, tile_array_create(ctx, TILE_U8, TILE_SHAPE(huge), &a));
    EXPECT_EQ(nullptr, a);
    EXPECT_EQ(TILE_DTYPES, tile_array_dtype(nullptr));
    EXPECT_EQ(-1, tile_array_shape(nullptr).rank);
    EXPECT_EQ(-1, tile_array_count(nullptr));
    tile_array_destroy(nullptr);
}

TEST_F(ArrayTest, ScalarsAndEmptyArraysWork) {
    tile_array *s = create(TILE_F64, tile_shape{0, {}});
    double x = 2.5, y = 0;
    EXPECT_EQ(TILE_OK, tile_array_write(s, &x, 8));
    EXPECT_EQ(TILE_OK, tile_array_read(s, &y, 8));
    EXPECT_EQ(2.5, y);
    tile_array *e = create(TILE_F32, TILE_SHAPE(4, 0, 3));
    EXPECT_EQ(0, tile_array_count(e));
    EXPECT_EQ(TILE_OK, tile_array_read(e, nullptr, 0));
    EXPECT_EQ(TILE_OK, tile_array_write(e, nullptr, 0));
    EXPECT_EQ(TILE_OK, tile_array_fill(e, 3));
    EXPECT_EQ(TILE_OK, tile_array_request_grad(e));
    EXPECT_EQ(0, tile_array_count(tile_array_grad(e)));
    const tile_range r = tile_array_range(e);
    EXPECT_EQ(r.low, r.high);
    EXPECT_TRUE(tile_array_is_contiguous(e));
    EXPECT_FALSE(tile_array_overlaps_itself(e));
    tile_array *v = slice(e, {4, 0, 1}, TILE_SHAPE(0, 0, 2));
    EXPECT_EQ(0, tile_array_count(v));
    tile_array_destroy(v);
    tile_array_destroy(e);
    tile_array_destroy(s);
}

TEST_F(ArrayTest, WrappedMemoryIsUsedInPlaceAndNotBeyond) {
    change_to_host(&ctx);
    float memory[8] = {-1, 0, 1, 2, 3, 4, 5, -1};
    tile_array *a = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_wrap(ctx, TILE_F32, TILE_SHAPE(2, 3), nullptr, memory + 1, &a));
    EXPECT_EQ((Floats{0, 1, 2, 3, 4, 5}), read(a));
    EXPECT_EQ(0u, tile_context_bytes(ctx)); /* the caller's bytes */
    EXPECT_EQ(TILE_OK, tile_array_fill(a, 9));
    EXPECT_EQ(-1, memory[0]);
    EXPECT_EQ(9, memory[1]);
    EXPECT_EQ(9, memory[6]);
    EXPECT_EQ(-1, memory[7]);
    void *data = nullptr;
    EXPECT_EQ(TILE_OK, tile_array_data(a, &data));
    EXPECT_EQ(memory + 1, data);
    tile_array_destroy(a);
    EXPECT_EQ(9, memory[6]);
}

TEST_F(ArrayTest, WrapTakesStrides) {
    change_to_host(&ctx);
    /* rows 4 apart, elements 2 apart: places 0 2, 4 6; the storage ends after place 6 */
    float memory[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int64_t strides[2] = {4, 2};
    tile_array *a = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_wrap(ctx, TILE_F32, TILE_SHAPE(2, 2), strides, memory, &a));
    EXPECT_EQ((Floats{0, 2, 4, 6}), read(a));
    EXPECT_EQ(28u, a->storage->bytes);
    EXPECT_FALSE(tile_array_is_whole(a));
    float rows[4] = {10, 20, 30, 40};
    EXPECT_EQ(TILE_OK, tile_array_write(a, rows, sizeof rows));
    const float wanted[8] = {10, 1, 20, 3, 30, 5, 40, 7};
    EXPECT_EQ(0, memcmp(wanted, memory, sizeof wanted));
    tile_array_destroy(a);
}

TEST_F(ArrayTest, BadWrapsAreErrors) {
    change_to_host(&ctx);
    float memory[4] = {0};
    const int64_t negative[1] = {-1}, far[2] = {int64_t{1} << 62, int64_t{1} << 62};
    tile_array *a = nullptr;
    const tile_shape two = TILE_SHAPE(2), square = TILE_SHAPE(2, 2);
    char *odd = reinterpret_cast<char *>(memory) + 1;
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_wrap(ctx, TILE_F32, two, nullptr, nullptr, &a));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_wrap(ctx, TILE_F32, two, nullptr, odd, &a));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_wrap(ctx, TILE_F32, two, negative, memory, &a));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_wrap(ctx, TILE_F32, square, far, memory, &a));
    EXPECT_EQ(TILE_E_DTYPE, tile_array_wrap(ctx, TILE_DTYPES, two, nullptr, memory, &a));
    EXPECT_EQ(nullptr, a);
    ASSERT_EQ(TILE_OK, tile_array_wrap(ctx, TILE_F32, TILE_SHAPE(0), nullptr, nullptr, &a));
    EXPECT_EQ(TILE_OK, tile_array_read(a, nullptr, 0));
    tile_array_destroy(a);
}

TEST_F(ArrayTest, SlicesShareMemory) {
    tile_array *a = counting(TILE_SHAPE(4, 5));
    /* rows 1 and 3, columns 0 2 4 */
    tile_array *v = slice(a, {1, 0}, TILE_SHAPE(2, 3), {2, 2});
    EXPECT_EQ((Floats{5, 7, 9, 15, 17, 19}), read(v));
    /* of that: row 1, columns 1 2 */
    tile_array *w = slice(v, {1, 1}, TILE_SHAPE(1, 2));
    EXPECT_EQ((Floats{17, 19}), read(w));
    EXPECT_EQ(TILE_OK, tile_array_fill(w, -1));
    EXPECT_EQ((Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, -1, 18, -1}),
              read(a));
    const tile_range r = tile_array_range(w);
    EXPECT_EQ(17 * 4, r.low);
    EXPECT_EQ(20 * 4, r.high);
    tile_array_destroy(a); /* the views keep the memory */
    tile_array_destroy(v);
    EXPECT_EQ((Floats{-1, -1}), read(w));
    EXPECT_EQ(80u, tile_context_bytes(ctx));
    tile_array_destroy(w);
}

TEST_F(ArrayTest, SlicesOutsideTheBaseAreErrors) {
    tile_array *a = counting(TILE_SHAPE(4, 5)), *v = nullptr;
    const int64_t huge = INT64_MAX;
    const struct {
        tile_status status;
        int64_t start[2], extent[2], step[2];
    } cases[] = {
        {TILE_E_SHAPE, {-1, 0}, {1, 1}, {1, 1}},    {TILE_E_SHAPE, {0, 0}, {5, 1}, {1, 1}},
        {TILE_E_SHAPE, {0, 3}, {1, 3}, {1, 1}},     {TILE_E_SHAPE, {0, 0}, {1, 3}, {1, 3}},
        {TILE_E_SHAPE, {4, 0}, {1, 1}, {1, 1}},     {TILE_E_SHAPE, {0, 6}, {1, 0}, {1, 1}},
        {TILE_E_SHAPE, {0, huge}, {1, 2}, {1, 1}},  {TILE_E_SHAPE, {0, 1}, {1, 2}, {1, huge}},
        {TILE_E_ARGUMENT, {0, 0}, {1, 1}, {0, 1}},  {TILE_E_ARGUMENT, {0, 0}, {1, 1}, {1, -1}},
        {TILE_E_ARGUMENT, {0, 0}, {-1, 1}, {1, 1}}, {TILE_E_ARGUMENT, {0, 0}, {huge, 2}, {1, 1}},
    };
    for (const auto &c : cases)
        EXPECT_EQ(c.status,
                  tile_array_slice(a, c.start, TILE_SHAPE(c.extent[0], c.extent[1]), c.step, &v))
            << c.start[0] << " " << c.start[1] << " " << c.extent[0] << " " << c.extent[1];
    const int64_t zero[3] = {0, 0, 0};
    EXPECT_EQ(TILE_E_SHAPE, tile_array_slice(a, zero, TILE_SHAPE(1), nullptr, &v));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_slice(a, nullptr, TILE_SHAPE(1, 1), nullptr, &v));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_slice(nullptr, zero, TILE_SHAPE(1), nullptr, &v));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_slice(a, zero, TILE_SHAPE(1, 1), nullptr, nullptr));
    EXPECT_EQ(nullptr, v);
    /* a huge step that is never taken is fine */
    v = slice(a, {3, 4}, TILE_SHAPE(1, 1), {huge, huge});
    EXPECT_EQ((Floats{19}), read(v));
    tile_array_destroy(v);
    tile_array_destroy(a);
}

TEST_F(ArrayTest, StridedViewsTransposeBroadcastAndReachTheWholeStorage) {
    tile_array *a = counting(TILE_SHAPE(2, 3));
    tile_array *t = strided(a, 0, TILE_SHAPE(3, 2), {1, 3});
    EXPECT_EQ((Floats{0, 3, 1, 4, 2, 5}), read(t));
    tile_array *b = strided(a, 1, TILE_SHAPE(2, 3), {0, 1});
    EXPECT_EQ((Floats{1, 2, 3, 1, 2, 3}), read(b));
    tile_array *row = slice(a, {1, 0}, TILE_SHAPE(1, 3));
    tile_array *back = strided(row, -3, TILE_SHAPE(6), {1});
    EXPECT_EQ((Floats{0, 1, 2, 3, 4, 5}), read(back));
    tile_array *scalar = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_strided(row, 1, tile_shape{0, {}}, nullptr, &scalar));
    EXPECT_EQ((Floats{4}), read(scalar));
    EXPECT_TRUE(tile_array_overlaps_itself(b));
    EXPECT_FALSE(tile_array_overlaps_itself(t));
    EXPECT_FALSE(tile_array_is_contiguous(t));
    EXPECT_TRUE(tile_array_is_whole(back));
    EXPECT_TRUE(tile_array_is_whole(a));
    EXPECT_FALSE(tile_array_is_whole(row));
    EXPECT_TRUE(tile_array_is_contiguous(row));
    /* Every copy of a broadcast element is written; the last one in row-major order stays. */
    float six[6] = {10, 20, 30, 40, 50, 60};
    EXPECT_EQ(TILE_OK, tile_array_write(b, six, sizeof six));
    EXPECT_EQ((Floats{0, 40, 50, 60, 4, 5}), read(a));
    for (tile_array *x : {t, b, row, back, scalar, a}) tile_array_destroy(x);
}

TEST_F(ArrayTest, StridedViewsOutsideTheStorageAreErrors) {
    tile_array *a = counting(TILE_SHAPE(2, 3)), *v = nullptr;
    const int64_t one[1] = {1}, minus[1] = {-1}, huge[2] = {INT64_MAX, INT64_MAX};
    EXPECT_EQ(TILE_E_SHAPE, tile_array_strided(a, 0, TILE_SHAPE(7), one, &v));
    EXPECT_EQ(TILE_E_SHAPE, tile_array_strided(a, 5, TILE_SHAPE(2), one, &v));
    EXPECT_EQ(TILE_E_SHAPE, tile_array_strided(a, -1, TILE_SHAPE(1), one, &v));
    EXPECT_EQ(TILE_E_SHAPE, tile_array_strided(a, INT64_MAX, TILE_SHAPE(1), one, &v));
    EXPECT_EQ(TILE_E_SHAPE, tile_array_strided(a, 0, TILE_SHAPE(2, 2), huge, &v));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_strided(a, 0, TILE_SHAPE(2), minus, &v));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_strided(a, 0, TILE_SHAPE(2), nullptr, &v));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_strided(a, 0, tile_shape{7, {}}, huge, &v));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_strided(nullptr, 0, TILE_SHAPE(2), one, &v));
    EXPECT_EQ(nullptr, v);
    v = strided(a, 5, TILE_SHAPE(1, 1), {INT64_MAX, INT64_MAX}); /* never taken */
    EXPECT_EQ((Floats{5}), read(v));
    tile_array_destroy(v);
    tile_array_destroy(a);
}

TEST_F(ArrayTest, OverlapIsFoundInInterleavedStridings) {
    tile_array *a = create(TILE_U8, TILE_SHAPE(1000));
    const struct {
        tile_shape shape;
        std::vector<int64_t> stride;
        bool overlaps;
    } cases[] = {
        {TILE_SHAPE(3, 4), {4, 1}, false},       {TILE_SHAPE(3, 4), {3, 1}, true},
        {TILE_SHAPE(4, 3), {1, 4}, false},       {TILE_SHAPE(4, 3), {1, 3}, true},
        {TILE_SHAPE(2, 3, 4), {1, 2, 6}, false}, {TILE_SHAPE(2, 3, 4), {2, 2, 6}, true},
        {TILE_SHAPE(5, 1), {1, 0}, false},       {TILE_SHAPE(5, 2), {1, 0}, true},
        {TILE_SHAPE(10), {100}, false},
    };
    for (const auto &c : cases) {
        tile_array *v = strided(a, 0, c.shape, c.stride);
        EXPECT_EQ(c.overlaps, tile_array_overlaps_itself(v)) << c.stride[0];
        tile_array_destroy(v);
    }
    tile_array_destroy(a);
}

/* Runs call with the first, second, ... allocation failing until it succeeds; bytes held must not
 * change on a failure. Returns how many allocations the call makes. */
template <typename F> int fail_each_allocation(tile_context *ctx, F call) {
    for (int n = 1;; n++) {
        const size_t before = tile_context_bytes(ctx);
        tile_fail_allocation(n);
        const tile_status status = call();
        tile_fail_allocation(0);
        if (!status) return n - 1;
        EXPECT_EQ(TILE_E_MEMORY, status);
        EXPECT_EQ(before, tile_context_bytes(ctx));
        EXPECT_STREQ("memory: the failure a test planted", tile_last_error());
        if (n > 50) return -1;
    }
}

TEST_F(ArrayTest, EveryFailedAllocationIsAnErrorThatChangesNothing) {
    change_to_host(&ctx);
    tile_array *a = nullptr, *v = nullptr, *w = nullptr, *s = nullptr;
    float memory[6] = {0};
    const int64_t start[1] = {1}, stride[1] = {1};
    const tile_shape six = TILE_SHAPE(6), two = TILE_SHAPE(2);
    EXPECT_EQ(3,
              fail_each_allocation(ctx, [&] { return tile_array_create(ctx, TILE_F32, six, &a); }));
    EXPECT_EQ(3, fail_each_allocation(ctx, [&] {
                  return tile_array_wrap(ctx, TILE_F32, six, nullptr, memory, &w);
              }));
    EXPECT_EQ(1, fail_each_allocation(ctx, [&] {
                  return tile_array_slice(a, start, two, nullptr, &v);
              }));
    EXPECT_EQ(1,
              fail_each_allocation(ctx, [&] { return tile_array_strided(a, 1, two, stride, &s); }));
    EXPECT_EQ(3, fail_each_allocation(ctx, [&] {
                  const tile_status status = tile_array_request_grad(v);
                  if (status) {
                      EXPECT_EQ(nullptr, a->storage->grad);
                  }
                  return status;
              }));
    tile_fail_allocation(1);
    EXPECT_EQ(nullptr, tile_array_grad(a)); /* its handle is made when asked for */
    EXPECT_NE(nullptr, tile_array_grad(a));
    for (tile_array *x : {a, v, w, s}) tile_array_destroy(x);
}

TEST_F(ArrayTest, TheLimitOfTheContextIsKept) {
    tile_context_options options = {1, 100};
    tile_context *small = nullptr;
    ASSERT_EQ(TILE_OK, tile_context_create(&options, &small));
    tile_array *a = nullptr, *b = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_create(small, TILE_F32, TILE_SHAPE(15), &a)); /* 60 bytes */
    EXPECT_EQ(TILE_E_MEMORY, tile_array_create(small, TILE_F32, TILE_SHAPE(11), &b));
    EXPECT_EQ(TILE_E_MEMORY, tile_array_request_grad(a));
    EXPECT_EQ(nullptr, tile_array_grad(a));
    ASSERT_EQ(TILE_OK, tile_array_create(small, TILE_F32, TILE_SHAPE(10), &b));
    EXPECT_EQ(100u, tile_context_bytes(small));
    tile_array_destroy(b);
    tile_array_destroy(a);
    EXPECT_EQ(0u, tile_context_bytes(small));
    tile_context_destroy(small);
}

} // namespace
