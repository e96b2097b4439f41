/* stack_test.cc: stacks in kernels: the reference program, order, overflow, loops that carry them,
 * gradients against differences, what is refused. */
#include "tests/while_fixture.h"

namespace {

class StackTest : public DifferenceTest {
  protected:
    static tile all(tile_builder *b, bool yes = true) {
        return tile_full(b, TILE_BOOL, TILE_SCALAR, yes);
    }
    static tile positive(tile n) {
        return tile_expr("n > 0", n);
    }
    std::vector<int64_t> integers_of(tile_array *a) {
        std::vector<int64_t> v(static_cast<size_t>(tile_array_count(a)));
        EXPECT_EQ(TILE_OK, tile_array_read(a, v.data(), v.size() * 8)) << tile_last_error();
        return v;
    }
    tile_array *int64s(size_t n) {
        return array(TILE_I64, TILE_SHAPE(n));
    }
};

/* Keeps the values above 5, then pops them into an array: the same with 1, 4 and 32 lanes. */
TEST_F(StackTest, TheReferencePageForAnyNumberOfLanes) {
    enum { ITEMS = 8 };
    for (int64_t lanes : {1, 4, 32}) {
        tile_kernel *k = kernel("compact_values", [&](tile_builder *b) {
            const tile_param data = tile_array_param(b, "data", TILE_I32, 1);
            const tile_param out = tile_array_param(b, "out", TILE_I32, 1);
            const tile_param num = tile_array_param(b, "num", TILE_I64, 1);
            const tile_stack s = tile_stack_create(b, 8, TILE_I32);
            tile_loop step =
                tile_loop_begin(b, tile_int(b, (ITEMS + lanes - 1) / lanes), TILE_NONE);
            const tile base = tile_mul(step.index, tile_int(b, lanes));
            const tile value = tile_load_padded(data, TILE_SHAPE(lanes), TILE_AT(base), -1);
            tile_stack_push(s, value, tile_expr("value > 5", value));
            tile_loop_end(&step, TILE_NONE);
            tile_store(num, tile_stack_count(s), TILE_AT_ZERO);
            tile_loop pops =
                tile_while_begin(b, positive(tile_stack_count(s)), tile_int(b, ITEMS), TILE_NONE);
            tile slot;
            const tile popped = tile_stack_pop(s, TILE_SHAPE(lanes), &slot);
            tile_store_indexed(out, slot, popped, TILE_AT_ZERO, 0);
            tile_while_end(&pops, positive(tile_stack_count(s)), TILE_NONE);
        });
        tile_array *data = integers({1, 8, 3, 7, 2, 9, 4, 6}),
                   *out = integers({0, 0, 0, 0, 0, 0, 0, 0});
        tile_array *num = int64s(1);
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(data, out, num)));
        int32_t got[8];
        ASSERT_EQ(TILE_OK, tile_array_read(out, got, sizeof got));
        EXPECT_EQ((std::vector<int32_t>{8, 7, 9, 6, 0, 0, 0, 0}),
                  std::vector<int32_t>(got, got + 8))
            << lanes << " lanes";
        EXPECT_EQ(4, integers_of(num)[0]) << lanes << " lanes";
    }
}

/* One block of work: pushes lane numbers 10, 11, ... under a mask, pops twice, all of it noted. */
TEST_F(StackTest, SlotsOrderAndOverflow) {
    tile_kernel *k = kernel("slots", [&](tile_builder *b) {
        const tile_param out = tile_array_param(b, "out", TILE_I64, 2);
        const tile_stack s = tile_stack_create(b, 5, TILE_I64);
        const tile v = tile_iota(b, TILE_I64, TILE_SHAPE(2, 3), 1, tile_int(b, 10));
        const tile odd = tile_expr("mod(v, 2) == 1", v);
        int64_t row = 0;
        const auto put = [&](tile t) {
            tile_store(out, tile_reshape(t, TILE_SHAPE(1, 6)),
                       TILE_AT(tile_int(b, row++), tile_int(b, 0)));
        };
        const auto numbers = [&] {
            const tile n = tile_stack_count(s), o = tile_stack_overflow(s);
            put(tile_broadcast(tile_expr("100*o + n", n, o), TILE_SHAPE(1, 6)));
        };
        tile slot;
        put(tile_stack_push(s, v, odd)); /* 11, 11 */
        numbers();
        put(tile_stack_push(s, v, all(b))); /* 10 11 12, three are dropped */
        numbers();
        put(tile_stack_push(s, v, all(b, false))); /* none */
        put(tile_stack_push(s, v, all(b)));        /* all dropped */
        numbers();
        put(tile_stack_pop_masked(s, odd, &slot)); /* lanes 1 and 4 */
        put(slot);
        put(tile_stack_pop(s, TILE_SHAPE(2, 3), &slot)); /* three are left */
        put(slot);
        tile_stack_push(s, v, odd);
        tile_stack_clear(s);
        numbers();
        put(tile_stack_pop(s, TILE_SHAPE(6), nullptr));
        put(tile_stack_push(s, v, odd)); /* slots again */
        put(tile_stack_pop(s, TILE_SHAPE(6), nullptr));
    });
    tile_array *out = array(TILE_I64, TILE_SHAPE(15, 6));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(out))) << tile_last_error();
    const int64_t want[15][6] = {{-1, 0, -1, -1, 1, -1},
                                 {2, 2, 2, 2, 2, 2},
                                 {2, 3, 4, -1, -1, -1},
                                 {305, 305, 305, 305, 305, 305},
                                 {-1, -1, -1, -1, -1, -1},
                                 {-1, -1, -1, -1, -1, -1},
                                 {905, 905, 905, 905, 905, 905},
                                 {0, 12, 0, 0, 11, 0},
                                 {-1, 4, -1, -1, 3, -1},
                                 {10, 11, 11, 0, 0, 0},
                                 {2, 1, 0, -1, -1, -1},
                                 {900, 900, 900, 900, 900, 900},
                                 {0, 0, 0, 0, 0, 0},
                                 {-1, 0, -1, -1, 1, -1},
                                 {11, 11, 0, 0, 0, 0}};
    const std::vector<int64_t> got = integers_of(out);
    for (size_t r = 0; r < 15; r++)
        for (size_t c = 0; c < 6; c++) EXPECT_EQ(want[r][c], got[r * 6 + c]) << r << ", " << c;
}

/* Every element type comes back as it went in. */
TEST_F(StackTest, AnyElementType) {
    for (int t = 0; t < TILE_DTYPES; t++) {
        const tile_dtype dtype = static_cast<tile_dtype>(t);
        tile_kernel *k = kernel("any", [&](tile_builder *b) {
            const tile_param out = tile_array_param(b, "out", TILE_I64, 1);
            const tile_stack s = tile_stack_create(b, 6, dtype);
            const tile v = tile_iota(b, TILE_I64, TILE_SHAPE(4), 0, tile_int(b, 0));
            tile_stack_push(s, tile_cast(tile_mod(v, tile_int(b, 2)), dtype), all(b));
            tile_stack_push(s, tile_cast(tile_ones(b, TILE_I64, TILE_SHAPE(2)), dtype), all(b));
            tile_store(out, tile_cast(tile_stack_pop(s, TILE_SHAPE(7), nullptr), TILE_I64),
                       TILE_AT_ZERO);
        });
        tile_array *out = int64s(7);
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(out)));
        EXPECT_EQ((std::vector<int64_t>{1, 1, 1, 0, 1, 0, 0}), integers_of(out))
            << tile_dtype_name(dtype);
    }
}

/* y[lane] = what was popped, weighted: the permutation and the drops are in the gradient. */
TEST_F(StackTest, GradientsOfPushAndPop) {
    tile_kernel *k = kernel("move", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        const tile_stack s = tile_stack_create(b, 5, TILE_F64);
        const tile x = tile_load(px, TILE_SHAPE(4), TILE_AT_ZERO);
        const tile z = tile_load(px, TILE_SHAPE(4), TILE_AT(tile_int(b, 4)));
        tile_stack_push(s, tile_expr("x*x", x), tile_expr("x > 0.5", x));
        tile_stack_push(s, tile_expr("sin(z)", z), all(b)); /* two find no room */
        const tile first = tile_stack_pop(s, TILE_SHAPE(2), nullptr);
        tile_stack_push(s, tile_expr("z*x", z, x), tile_expr("z < 0.8", z));
        const tile last = tile_stack_pop(s, TILE_SHAPE(4), nullptr);
        tile_store(py, tile_expr("first*first", first), TILE_AT_ZERO);
        tile_store(py, tile_expr("last*last*last", last), TILE_AT(tile_int(b, 2)));
    });
    const Reals x = {0.9, 0.3, 0.7, 1.2, 0.6, 1.5, 0.1, 0.2};
    expect_gradient(k, TILE_GRID(1), x, Reals(6));
    const Reals y = outcome(k, TILE_GRID(1), x, Reals(6));
    EXPECT_DOUBLE_EQ(std::pow(std::sin(1.5), 2), y[0]);
    EXPECT_DOUBLE_EQ(std::pow(std::sin(0.6), 2), y[1]);
    EXPECT_DOUBLE_EQ(std::pow(0.1 * 0.7, 3), y[2]); /* 0.2 * 1.2 found no room */
    EXPECT_DOUBLE_EQ(std::pow(0.6 * 0.9, 3), y[3]);
}

/* Values that were cleared, dropped or left get nothing, though their slots are used again. */
TEST_F(StackTest, NoGradientForWhatNobodyPopped) {
    tile_kernel *k = kernel("left", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        const tile_stack s = tile_stack_create(b, 3, TILE_F64);
        const auto x = [&](int64_t i) {
            return tile_load(px, TILE_SHAPE(2), TILE_AT(tile_int(b, i)));
        };
        tile_stack_push(s, x(0), all(b));
        tile_stack_clear(s);
        tile_stack_push(s, x(2), all(b));
        tile_stack_push(s, x(4), all(b)); /* the second is dropped */
        tile_store(py, tile_stack_pop(s, TILE_SHAPE(2), nullptr), TILE_AT_ZERO);
    });
    const Reals x = {NAN, INFINITY, 3, 4, 5, NAN};
    EXPECT_EQ((Reals{5, 4}), outcome(k, TILE_GRID(1), x, Reals(2)));
    EXPECT_EQ((Reals{0, 0, 0, weight(1), weight(0), 0}), gradient(k, TILE_GRID(1), x, Reals(2)));
}

/* Work that makes work: a value is split in two until it is small; the sum of what is left. How
 * much there is to do depends on the data, block by block. */
TEST_F(StackTest, WorkThatMakesWork) {
    for (int64_t lanes : {1, 3, 8}) {
        tile_kernel *k = kernel("split", [&](tile_builder *b) {
            const tile_param px = x_of(b), py = y_of(b);
            const tile_offset at = TILE_AT(tile_block_index(b, 0));
            const tile_stack s = tile_stack_create(b, 64, TILE_F64);
            const tile x = tile_load(px, TILE_SCALAR, at), zero = tile_real(b, TILE_F64, 0);
            tile_stack_push(s, x, all(b));
            tile_loop loop = tile_while_begin(b, all(b), tile_int(b, 2000), TILE_LIST(zero));
            tile slot;
            const tile v = tile_stack_pop(s, TILE_SHAPE(lanes), &slot), sum = loop.carried[0];
            const tile small = tile_expr("slot >= 0 && v <= 0.5", slot, v);
            const tile large = tile_expr("v > 0.5", v);
            tile_stack_push(s, tile_expr("0.6*v", v), large);
            tile_stack_push(s, tile_expr("0.3*v*x", v, x), large);
            const tile more = tile_sum(tile_expr("small ? v*v : 0", small, v), TILE_ALL_AXES);
            tile_while_end(&loop, positive(tile_stack_count(s)),
                           TILE_LIST(tile_expr("sum + more", sum, more)));
            tile_store(py, loop.carried[0], at);
        });
        const Reals x = {0.4, 1.3, 2.1, 1.9};
        expect_gradient(k, TILE_GRID(4), x, Reals(4));
        Reals want;
        for (double start : x) {
            Reals stack = {start};
            double sum = 0;
            while (!stack.empty()) {
                const double v = stack.back();
                stack.pop_back();
                if (v <= 0.5) {
                    sum += v * v;
                } else {
                    stack.push_back(0.6 * v);
                    stack.push_back(0.3 * v * start);
                }
            }
            want.push_back(sum);
        }
        const Reals y = outcome(k, TILE_GRID(4), x, Reals(4));
        for (size_t i = 0; i < 4; i++) EXPECT_NEAR(want[i], y[i], 1e-12) << lanes;
    }
}

/* Two stacks, in a while in a loop: what one gives, the other takes. */
TEST_F(StackTest, TwoStacksInLoopsInsideEachOther) {
    tile_kernel *k = kernel("two", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        const tile_stack s = tile_stack_create(b, 7, TILE_F64);
        const tile_stack t = tile_stack_create(b, 4, TILE_F64);
        tile_loop outer = tile_loop_begin(b, tile_int(b, 3), TILE_NONE);
        const tile i = tile_mul(outer.index, tile_int(b, 3));
        const tile x = tile_load(px, TILE_SHAPE(3), TILE_AT(i));
        tile_stack_push(s, tile_expr("x*x", x), tile_expr("x > 0", x));
        tile_loop inner =
            tile_while_begin(b, positive(tile_stack_count(s)), tile_int(b, 8), TILE_NONE);
        const tile v = tile_stack_pop(s, TILE_SHAPE(2), nullptr);
        tile_stack_push(t, tile_expr("sin(v) * 1.5", v), tile_expr("v > 0.2", v));
        tile_while_end(&inner, positive(tile_stack_count(s)), TILE_NONE);
        const tile w = tile_stack_pop(t, TILE_SHAPE(1), nullptr);
        tile_stack_push(s, tile_expr("w*w", w), tile_expr("w > 0.4", w));
        tile_loop_end(&outer, TILE_NONE);
        const tile left = tile_stack_pop(t, TILE_SHAPE(4), nullptr);
        const tile rest = tile_stack_pop(s, TILE_SHAPE(2), nullptr);
        tile_store(py, tile_expr("left*left", left), TILE_AT_ZERO);
        tile_store(py, tile_expr("rest*rest", rest), TILE_AT(tile_int(b, 4)));
        tile_store(py, tile_cast(tile_stack_overflow(t), TILE_F64), TILE_AT(tile_int(b, 6)));
    });
    expect_gradient(k, TILE_GRID(1), {0.5, 0.9, -0.3, 0.8, 1.1, 0.7, -1, 0.6, 0.75}, Reals(7));
}

/* Stacks that a loop does not use cost it nothing. */
TEST_F(StackTest, LoopsCarryOnlyWhatTheyChange) {
    const auto build = [this](bool with_stack) {
        return kernel("loop", [&](tile_builder *b) {
            const tile_param px = x_of(b), py = y_of(b);
            const tile x = tile_load(px, TILE_SHAPE(4), TILE_AT_ZERO);
            tile_stack s = {b, -1};
            if (with_stack) {
                s = tile_stack_create(b, 4, TILE_F64);
                tile_stack_push(s, x, all(b));
            }
            tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(x));
            const tile v = loop.carried[0];
            tile_loop_end(&loop, TILE_LIST(tile_expr("v*v", v)));
            tile_store(py, loop.carried[0], TILE_AT_ZERO);
            if (with_stack)
                tile_store(py, tile_stack_pop(s, TILE_SHAPE(4), nullptr), TILE_AT(tile_int(b, 4)));
        });
    };
    const std::string without = text_of(build(false)), with = text_of(build(true));
    const size_t at = with.find("loop %"), end = with.find("{", at);
    EXPECT_EQ(1u, count_in(with.substr(at, end - at), " = ")) << with;
    EXPECT_EQ(1u, count_in(without, "mul")) << without;
    const Reals x = {4, 0.5, 1, 2};
    EXPECT_EQ((Reals{65536, 1.0 / 256, 1, 256, 2, 1, 0.5, 4}),
              outcome(build(true), TILE_GRID(1), x, Reals(8)));
}

TEST_F(StackTest, Refusals) {
    for (int64_t capacity : {int64_t{0}, int64_t{-4}, int64_t{1} << 25})
        expect_refused(TILE_E_ARGUMENT,
                       ("tile_stack_create: capacity is " + std::to_string(capacity) +
                        ", expected 1 to 16777216")
                           .c_str(),
                       [&](tile_builder *b) { tile_stack_create(b, capacity, TILE_F32); });
    expect_refused(TILE_E_DTYPE, "tile_stack_create: dtype 99 does not exist",
                   [](tile_builder *b) { tile_stack_create(b, 4, static_cast<tile_dtype>(99)); });
    expect_refused(TILE_E_DTYPE, "tile_stack_push: value is float64, the stack holds float32",
                   [](tile_builder *b) {
                       const tile_stack s = tile_stack_create(b, 4, TILE_F32);
                       tile_stack_push(s, tile_real(b, TILE_F64, 1), all(b));
                   });
    expect_refused(TILE_E_DTYPE, "tile_stack_push: mask is int64, expected bool",
                   [](tile_builder *b) {
                       const tile_stack s = tile_stack_create(b, 4, TILE_F64);
                       tile_stack_push(s, tile_real(b, TILE_F64, 1), tile_int(b, 1));
                   });
    expect_refused(TILE_E_SHAPE, "tile_stack_push: mask is [3], value is [4]", [](tile_builder *b) {
        const tile_stack s = tile_stack_create(b, 4, TILE_F64);
        tile_stack_push(s, tile_zeros(b, TILE_F64, TILE_SHAPE(4)),
                        tile_full(b, TILE_BOOL, TILE_SHAPE(3), 1));
    });
    expect_refused(TILE_E_ARGUMENT, "tile_stack_push: value is not a tile", [](tile_builder *b) {
        const tile_stack s = tile_stack_create(b, 4, TILE_F64);
        tile_stack_push(s, tile{nullptr, -1}, all(b));
    });
    expect_refused(TILE_E_DTYPE, "tile_stack_pop_masked: mask is float64, expected bool",
                   [](tile_builder *b) {
                       const tile_stack s = tile_stack_create(b, 4, TILE_F64);
                       tile_stack_pop_masked(s, tile_real(b, TILE_F64, 1), nullptr);
                   });
    expect_refused(TILE_E_SHAPE, "tile_stack_pop: a tile of shape [0]", [](tile_builder *b) {
        const tile_stack s = tile_stack_create(b, 4, TILE_F64);
        tile_stack_pop(s, TILE_SHAPE(0), nullptr);
    });
    expect_refused(TILE_E_ARGUMENT, "tile_stack_count: not a stack of this kernel",
                   [](tile_builder *b) {
                       tile_stack_count(tile_stack{b, 0});
                   });
    expect_refused(TILE_E_ARGUMENT, "tile_stack_clear: not a stack of this kernel",
                   [](tile_builder *b) {
                       tile_stack_clear(tile_stack{b, -1});
                   });
    expect_refused(TILE_E_STATE,
                   "tile_stack_overflow: the stack was made inside a loop that has ended",
                   [](tile_builder *b) {
                       tile_loop loop = tile_loop_begin(b, tile_int(b, 2), TILE_NONE);
                       const tile_stack s = tile_stack_create(b, 4, TILE_F64);
                       tile_stack_push(s, tile_real(b, TILE_F64, 1), all(b));
                       tile_loop_end(&loop, TILE_NONE);
                       tile_stack_overflow(s);
                   });
}

/* A stack of one kernel, a tile of another. */
TEST_F(StackTest, RefusesTilesOfAnotherKernel) {
    tile_builder *other = tile_kernel_begin(ctx, "other");
    const tile foreign = tile_real(other, TILE_F64, 1), mask = all(other);
    expect_refused(TILE_E_ARGUMENT,
                   "tile_stack_push: value is a tile of another kernel than the stack",
                   [&](tile_builder *b) {
                       tile_stack_push(tile_stack_create(b, 4, TILE_F64), foreign, all(b));
                   });
    expect_refused(TILE_E_ARGUMENT,
                   "tile_stack_push: mask is a tile of another kernel than the stack",
                   [&](tile_builder *b) {
                       tile_stack_push(tile_stack_create(b, 4, TILE_F64), tile_real(b, TILE_F64, 1),
                                       mask);
                   });
    tile_kernel *k = nullptr;
    EXPECT_EQ(TILE_OK, tile_kernel_end(other, &k));
    tile_kernel_destroy(k);
    /* Without a builder nothing happens. */
    const tile_stack none = tile_stack_create(nullptr, 4, TILE_F64);
    EXPECT_EQ(-1, tile_stack_count(none).id);
    EXPECT_EQ(-1, tile_stack_pop(none, TILE_SHAPE(1), nullptr).id);
}

/* Each allocation in turn fails while a kernel is built. */
TEST_F(StackTest, MemoryThatRunsOutIsAnErrorEachTime) {
    int64_t total = 0;
    for (int64_t n = 1; n < 2000 && !total; n++) {
        tile_kernel *k = nullptr;
        tile_fail_allocation(n);
        tile_builder *b = tile_kernel_begin(ctx, "step");
        tile_status status = TILE_E_MEMORY;
        if (b) {
            const tile_param px = x_of(b), py = y_of(b);
            const tile_stack s = tile_stack_create(b, 4, TILE_F64);
            tile_stack_push(s, tile_load(px, TILE_SHAPE(4), TILE_AT_ZERO), all(b));
            tile_loop loop =
                tile_while_begin(b, positive(tile_stack_count(s)), tile_int(b, 4), TILE_NONE);
            tile_store(py, tile_stack_pop(s, TILE_SCALAR, nullptr), TILE_AT(loop.index));
            tile_while_end(&loop, positive(tile_stack_count(s)), TILE_NONE);
            status = tile_kernel_end(b, &k);
        }
        tile_fail_allocation(0);
        if (!status) {
            total = n;
            EXPECT_EQ((Reals{4, 3, 2, 1}), outcome(k, TILE_GRID(1), {1, 2, 3, 4}, Reals(4)));
            tile_kernel_destroy(k);
            continue;
        }
        ASSERT_EQ(TILE_E_MEMORY, status) << n << " " << tile_last_error();
        ASSERT_EQ(nullptr, k);
    }
    EXPECT_GT(total, 20);
}

/* A stack that is made in a loop is empty in each iteration. */
TEST_F(StackTest, MadeInALoopItBeginsEmpty) {
    tile_kernel *k = kernel("fresh", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_NONE);
        const tile_stack s = tile_stack_create(b, 2, TILE_F64);
        const tile x = tile_load(px, TILE_SCALAR, TILE_AT(loop.index));
        tile_stack_push(s, tile_expr("x*x", x), tile_expr("x > 0", x));
        const tile v = tile_stack_pop(s, TILE_SCALAR, nullptr);
        tile_store(py, v, TILE_AT(loop.index));
        tile_loop_end(&loop, TILE_NONE);
    });
    EXPECT_EQ((Reals{9, 0, 4}), outcome(k, TILE_GRID(1), {3, -5, 2}, Reals(3)));
    expect_gradient(k, TILE_GRID(1), {3, -5, 2}, Reals(3));
}

} // namespace
