/* native_rims_test.cc: rows of every length and place in memory: the ends of a row, which reach
 * over the edge, and what lies between have the interpreter's bits. */
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tape/tiletape.h"

namespace {

enum { ROWS = 5, TILE_ROWS = 2, TILE_COLS = 64 };

void must(tile_status status) {
    ASSERT_EQ(TILE_OK, status) << tile_last_error();
}

/* y = the sum of the neighbours at distances reach to both sides, times x, plus what is below. */
tile_kernel *build(tile_context *ctx, tile_dtype dtype, int64_t reach) {
    tile_builder *b = tile_kernel_begin(ctx, "rims");
    const tile_param px = tile_array_param(b, "x", dtype, 2),
                     py = tile_array_param(b, "y", dtype, 2);
    const tile_offset at =
        TILE_AT(tile_block_start(b, 0, TILE_ROWS), tile_block_start(b, 1, TILE_COLS));
    const tile_shape shape = TILE_SHAPE(TILE_ROWS, TILE_COLS);
    const tile x = tile_load(px, shape, at), left = tile_load(px, shape, TILE_SHIFT(at, 0, -reach));
    const tile right = tile_load(px, shape, TILE_SHIFT(at, 0, reach));
    const tile below = tile_load(px, shape, TILE_SHIFT(at, 1, 0));
    tile_store(py, tile_expr("(left + right) * x + below", left, right, x, below), at);
    tile_kernel *kernel = nullptr;
    must(tile_kernel_end(b, &kernel));
    return kernel;
}

using Bytes = std::vector<unsigned char>;

Bytes run(tile_context *ctx, tile_kernel *kernel, tile_dtype dtype, int64_t cols) {
    const size_t size = dtype == TILE_F32 ? sizeof(float) : sizeof(double);
    const int64_t count = ROWS * cols;
    Bytes from(static_cast<size_t>(count) * size), to(from.size());
    for (int64_t i = 0; i < count; i++) {
        const double value = std::sin(0.7 * static_cast<double>(i));
        const float narrow = static_cast<float>(value);
        const void *v = dtype == TILE_F32 ? static_cast<const void *>(&narrow) : &value;
        memcpy(&from[static_cast<size_t>(i) * size], v, size);
    }
    tile_array *x = nullptr, *y = nullptr;
    must(tile_array_create(ctx, dtype, TILE_SHAPE(ROWS, cols), &x));
    must(tile_array_create(ctx, dtype, TILE_SHAPE(ROWS, cols), &y));
    must(tile_array_write(x, from.data(), from.size()));
    must(tile_launch(nullptr, kernel,
                     TILE_GRID((ROWS + TILE_ROWS - 1) / TILE_ROWS,
                               (cols + TILE_COLS - 1) / TILE_COLS),
                     TILE_ARGS(x, y)));
    must(tile_array_read(y, to.data(), to.size()));
    tile_array_destroy(x);
    tile_array_destroy(y);
    return to;
}

TEST(NativeRims, RowsOfAllLengthsHaveTheBitsOfTheInterpreter) {
    const char *scratch = getenv("TEST_TMPDIR");
    setenv("XDG_CACHE_HOME", scratch ? scratch : "/tmp/tiletape-native-rims", 1);
    unsetenv("TILE_EXECUTOR");
    unsetenv("TILE_CC");
    const tile_executor executors[] = {TILE_EXECUTOR_INTERPRETER, TILE_EXECUTOR_NATIVE};
    for (tile_dtype dtype : {TILE_F32, TILE_F64})
        for (int64_t reach : {1, 2, 7, 9}) {
            tile_context *ctx[2] = {nullptr, nullptr};
            tile_kernel *kernel[2];
            for (int e = 0; e < 2; e++) {
                tile_context_options options = {};
                options.threads = 1;
                options.executor = executors[e];
                must(tile_context_create(&options, &ctx[e]));
                kernel[e] = build(ctx[e], dtype, reach);
            }
            for (int64_t cols = 55; cols < 190; cols++)
                EXPECT_EQ(run(ctx[0], kernel[0], dtype, cols), run(ctx[1], kernel[1], dtype, cols))
                    << dtype << ", reach " << reach << ", " << cols << " columns";
            tile_executor_info info;
            must(tile_context_info(ctx[1], &info));
            EXPECT_STREQ("", info.why);
            EXPECT_LT(100, info.native_launches);
            for (int e = 0; e < 2; e++) {
                tile_kernel_destroy(kernel[e]);
                tile_context_destroy(ctx[e]);
            }
        }
}

} // namespace
