/* array_fixture.h: a context, arrays with known values, and reading them back. */
#ifndef TILE_TESTS_ARRAY_FIXTURE_H
#define TILE_TESTS_ARRAY_FIXTURE_H

#include <gtest/gtest.h>

#include <vector>

#include "core/array.h"
#include "core/context.h"
#include "core/core_api.h"
#include "tests/host_context.h"

class ArrayTest : public testing::Test {
  protected:
    void SetUp() override {
        tile_context_options options = {1, 0};
        ASSERT_EQ(TILE_OK, tile_context_create(&options, &ctx));
    }
    void TearDown() override {
        EXPECT_EQ(0u, tile_context_bytes(ctx));
        tile_context_destroy(ctx);
    }
    tile_array *create(tile_dtype dtype, tile_shape shape) {
        tile_array *a = nullptr;
        EXPECT_EQ(TILE_OK, tile_array_create(ctx, dtype, shape, &a)) << tile_last_error();
        return a;
    }
    /* float32, 0, 1, 2, ... in C order. */
    tile_array *counting(tile_shape shape) {
        tile_array *a = create(TILE_F32, shape);
        std::vector<float> x(static_cast<size_t>(tile_array_count(a)));
        for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i);
        EXPECT_EQ(TILE_OK, tile_array_write(a, x.data(), x.size() * 4));
        return a;
    }
    static std::vector<float> read(tile_array *a) {
        /* one guard value at each end */
        std::vector<float> x(static_cast<size_t>(tile_array_count(a)) + 2, -77.0f);
        EXPECT_EQ(TILE_OK, tile_array_read(a, x.data() + 1, (x.size() - 2) * 4))
            << tile_last_error();
        EXPECT_EQ(-77.0f, x.front());
        EXPECT_EQ(-77.0f, x.back());
        return std::vector<float>(x.begin() + 1, x.end() - 1);
    }
    static tile_array *slice(tile_array *base, std::vector<int64_t> start, tile_shape shape,
                             std::vector<int64_t> step = {}) {
        tile_array *v = nullptr;
        EXPECT_EQ(TILE_OK, tile_array_slice(base, start.data(), shape,
                                            step.empty() ? nullptr : step.data(), &v))
            << tile_last_error();
        return v;
    }
    static tile_array *strided(tile_array *base, int64_t offset, tile_shape shape,
                               std::vector<int64_t> strides) {
        tile_array *v = nullptr;
        EXPECT_EQ(TILE_OK, tile_array_strided(base, offset, shape, strides.data(), &v))
            << tile_last_error();
        return v;
    }

    tile_context *ctx = nullptr;
};

using Floats = std::vector<float>;

#endif
