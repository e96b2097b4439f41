/* native_guard_test.cc: guarded products are tried without their guards in native code: where a
 * factor is infinite or NaN and the upstream gradient 0, gradients are 0 all the same, and their
 * bits the interpreter's; in loops over rows, where a gradient is added to, and in blocks. */
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tape/tiletape.h"

namespace {

enum { ROWS = 7, COLS = 95, TILE_ROWS = 4, TILE_COLS = 32 };

const float INF = std::numeric_limits<float>::infinity();

void use_own_cache() {
    const char *scratch = getenv("TEST_TMPDIR");
    setenv("XDG_CACHE_HOME", scratch ? scratch : "/tmp/tiletape-native-guard", 1);
    unsetenv("TILE_EXECUTOR");
    unsetenv("TILE_CC");
}

void must(tile_status status) {
    ASSERT_EQ(TILE_OK, status) << tile_last_error();
}

using Field = std::vector<float>;

/* Which elements of the coefficient are no numbers, and which upstream gradients are 0. */
struct Case {
    std::string name;
    Field c, seed;
    bool in_place; /* y is stored over x: the gradient by x is added to what is upstream */
};

Field smooth(double phase) {
    Field f(ROWS * COLS);
    for (size_t i = 0; i < f.size(); i++)
        f[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i) + phase));
    return f;
}

/* y = c * (x - x of the right) + x of below / c */
tile_kernel *rows_kernel(tile_context *ctx) {
    tile_builder *b = tile_kernel_begin(ctx, "rows");
    const tile_param px = tile_array_param(b, "x", TILE_F32, 2);
    const tile_param pc = tile_array_param(b, "c", TILE_F32, 2);
    const tile_param py = tile_array_param(b, "y", TILE_F32, 2);
    const tile_offset at =
        TILE_AT(tile_block_start(b, 0, TILE_ROWS), tile_block_start(b, 1, TILE_COLS));
    const tile_shape shape = TILE_SHAPE(TILE_ROWS, TILE_COLS);
    const tile x = tile_load(px, shape, at), c = tile_load(pc, shape, at);
    const tile right = tile_load(px, shape, TILE_SHIFT(at, 0, 1));
    const tile below = tile_load(px, shape, TILE_SHIFT(at, 1, 0));
    tile_store(py, tile_expr("c * (x - right) + below / c", c, x, right, below), at);
    tile_kernel *kernel = nullptr;
    must(tile_kernel_end(b, &kernel));
    return kernel;
}

/* y += c x sum over the tile's row of x^2, + x / c: no field, for a row needs all of itself. */
tile_kernel *block_kernel(tile_context *ctx) {
    tile_builder *b = tile_kernel_begin(ctx, "block");
    const tile_param px = tile_array_param(b, "x", TILE_F32, 2);
    const tile_param pc = tile_array_param(b, "c", TILE_F32, 2);
    const tile_param py = tile_array_param(b, "y", TILE_F32, 2);
    const tile_offset at =
        TILE_AT(tile_block_start(b, 0, TILE_ROWS), tile_block_start(b, 1, TILE_COLS));
    const tile_shape shape = TILE_SHAPE(TILE_ROWS, TILE_COLS);
    const tile x = tile_load(px, shape, at), c = tile_load(pc, shape, at);
    const tile row = tile_reshape(tile_sum(tile_mul(x, x), TILE_AXES(1)), TILE_SHAPE(TILE_ROWS, 1));
    tile_atomic_add(py, tile_expr("c * x * row + x / c", c, x, row), at);
    tile_kernel *kernel = nullptr;
    must(tile_kernel_end(b, &kernel));
    return kernel;
}

tile_array *array_of(tile_context *ctx, const Field &from, bool grad) {
    tile_array *a = nullptr;
    must(tile_array_create(ctx, TILE_F32, TILE_SHAPE(ROWS, COLS), &a));
    must(tile_array_write(a, from.data(), from.size() * sizeof(float)));
    if (grad) must(tile_array_request_grad(a));
    return a;
}

/* The gradient by x after two backward passes. */
Field gradient(const Case &k, bool blocks, tile_executor executor, int threads) {
    tile_context_options options = {};
    options.threads = threads;
    options.executor = executor;
    tile_context *ctx = nullptr;
    must(tile_context_create(&options, &ctx));
    tile_kernel *kernel = blocks ? block_kernel(ctx) : rows_kernel(ctx);
    tile_array *x = array_of(ctx, smooth(1), true), *c = array_of(ctx, k.c, false);
    tile_array *y = array_of(ctx, Field(ROWS * COLS), false), *seed = array_of(ctx, k.seed, false);
    tape *record = nullptr;
    must(tape_create(ctx, nullptr, &record));
    const tile_grid grid =
        TILE_GRID((ROWS + TILE_ROWS - 1) / TILE_ROWS, (COLS + TILE_COLS - 1) / TILE_COLS);
    if (k.in_place) { /* x is read once more: its gradient has two parts */
        tile_array *z = array_of(ctx, Field(ROWS * COLS), false);
        must(tile_launch(record, kernel, grid, TILE_ARGS(x, c, z)));
        must(tile_launch(record, kernel, grid, TILE_ARGS(x, c, y)));
        tile_array *const both[] = {y, z}, *const seeds[] = {seed, seed};
        for (int i = 0; i < 2; i++) must(tape_backward_seeds(record, 2, both, seeds));
        tile_array_destroy(z);
    } else {
        must(tile_launch(record, kernel, grid, TILE_ARGS(x, c, y)));
        for (int i = 0; i < 2; i++) must(tape_backward_seeds(record, 1, &y, &seed));
    }
    Field d(ROWS * COLS);
    must(tile_array_read(tile_array_grad(x), d.data(), d.size() * sizeof(float)));
    tile_executor_info info;
    must(tile_context_info(ctx, &info));
    EXPECT_STREQ("", info.why);
    EXPECT_EQ(executor == TILE_EXECUTOR_NATIVE, info.native_launches > 1);
    tape_destroy(record);
    for (tile_array *a : {x, c, y, seed}) tile_array_destroy(a);
    tile_kernel_destroy(kernel);
    tile_context_destroy(ctx);
    return d;
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (bool in_place : {false, true}) {
        const std::string twice = in_place ? ", added" : "";
        Case numbers = {"numbers" + twice, smooth(2), smooth(3), in_place};
        for (float &v : numbers.c) v += 2;
        all.push_back(numbers);
        for (float what : {INF, -INF, NAN, 0.0f})
            for (size_t place : {size_t{0}, size_t{3 * COLS + 41}, size_t{ROWS * COLS - 1}}) {
                Case dead = numbers;
                dead.name = std::to_string(what) + " at " + std::to_string(place) + twice;
                dead.c[place] = what;
                dead.seed[place] = 0;
                all.push_back(dead);
                Case alive = dead;
                alive.name += ", reached";
                alive.seed[place] = 1;
                all.push_back(alive);
            }
    }
    return all;
}

void expect_same(const Field &a, const Field &b, const std::string &what) {
    for (size_t i = 0; i < a.size(); i++) {
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        EXPECT_EQ(0, memcmp(&a[i], &b[i], sizeof a[i]))
            << what << ": element " << i << " is " << a[i] << " and " << b[i];
    }
}

class NativeGuard : public testing::TestWithParam<bool> {};

TEST_P(NativeGuard, HasTheInterpretersBits) {
    use_own_cache();
    for (const Case &k : cases()) {
        const Field slow = gradient(k, GetParam(), TILE_EXECUTOR_INTERPRETER, 1);
        for (int threads : {1, 2})
            expect_same(slow, gradient(k, GetParam(), TILE_EXECUTOR_NATIVE, threads), k.name);
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, NativeGuard, testing::Bool());

/* dx = 2 (c seed - c seed of the left + seed / c of above), by hand. */
TEST(NativeGuardRows, AZeroUpstreamContributesZero) {
    use_own_cache();
    for (const Case &k : cases()) {
        if (k.in_place) continue;
        const Field d = gradient(k, false, TILE_EXECUTOR_NATIVE, 1);
        for (size_t i = 0; i < d.size(); i++) {
            const size_t column = i % COLS;
            double want = k.seed[i] != 0 ? static_cast<double>(k.c[i]) * k.seed[i] : 0;
            if (column > 0 && k.seed[i - 1] != 0)
                want -= static_cast<double>(k.c[i - 1]) * k.seed[i - 1];
            if (i >= COLS && k.seed[i - COLS] != 0)
                want += static_cast<double>(k.seed[i - COLS]) / k.c[i - COLS];
            want *= 2;
            const std::string where = k.name + ": element " + std::to_string(i);
            if (std::isnan(want)) {
                EXPECT_TRUE(std::isnan(d[i])) << where << " is " << d[i];
            } else if (std::isinf(want)) {
                EXPECT_EQ(want, d[i]) << where;
            } else {
                EXPECT_NEAR(want, d[i], 1e-5 * (1 + std::fabs(want))) << where;
            }
        }
    }
}

} // namespace
