/* while_test.cc: loops on a condition: how often they run, gradients against differences, what
 * happens when they run too often. */
#include "tests/while_fixture.h"

namespace {

class WhileTest : public DifferenceTest {
  protected:
    explicit WhileTest(int threads = 1) : DifferenceTest(threads) {}

    /* y = x doubled until it is 100 or more. */
    tile_kernel *doubling(int64_t most) {
        return kernel("doubling", [&](tile_builder *b) {
            const tile_param px = x_of(b), py = y_of(b);
            const tile_offset at = TILE_AT(tile_block_index(b, 0));
            const tile x = tile_load(px, TILE_SCALAR, at);
            tile_loop loop =
                tile_while_begin(b, tile_expr("x < 100", x), tile_int(b, most), TILE_LIST(x));
            const tile v = loop.carried[0], w = tile_expr("2 * v", v);
            tile_while_end(&loop, tile_expr("w < 100", w), TILE_LIST(w));
            tile_store(py, loop.carried[0], at);
        });
    }
};

TEST_F(WhileTest, RunsAsOftenAsTheConditionHolds) {
    tile_kernel *k = kernel("count", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        const tile_param pn = tile_array_param(b, "n", TILE_I64, 1);
        const tile_param last = tile_array_param(b, "last", TILE_I64, 1);
        const tile_offset at = TILE_AT(tile_block_index(b, 0));
        const tile x = tile_load(px, TILE_SCALAR, at);
        tile_loop loop = tile_while_begin(b, tile_expr("x < 100", x), tile_int(b, 7),
                                          TILE_LIST(x, tile_int(b, -1)));
        const tile v = loop.carried[0], w = tile_expr("2 * v", v);
        tile_while_end(&loop, tile_expr("w < 100", w), TILE_LIST(w, loop.index));
        tile_store(py, loop.carried[0], at);
        tile_store(pn, loop.trips, at);
        tile_store(last, loop.carried[1], at);
    });
    tile_array *x = reals({1, 100, 60, 0.8, 25}), *y = zeros(5);
    tile_array *n = array(TILE_I64, TILE_SHAPE(5)), *last = array(TILE_I64, TILE_SHAPE(5));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(5), TILE_ARGS(x, y, n, last)));
    EXPECT_EQ((Reals{128, 100, 120, 102.4, 100}), read(y));
    int64_t trips[5], index[5];
    ASSERT_EQ(TILE_OK, tile_array_read(n, trips, sizeof trips));
    ASSERT_EQ(TILE_OK, tile_array_read(last, index, sizeof index));
    const int64_t want[] = {7, 0, 1, 7, 2}; /* 7 is exactly the most */
    for (int i = 0; i < 5; i++) EXPECT_EQ(want[i], trips[i]) << i;
    for (int i = 0; i < 5; i++) EXPECT_EQ(want[i] - 1, index[i]) << i;
    EXPECT_EQ(TILE_OK, tile_context_sync(ctx));
}

/* The gradient is 2 to the number of iterations: none, one, the most. */
TEST_F(WhileTest, GradientRunsBackAsOften) {
    const Reals g = gradient(doubling(7), TILE_GRID(5), {1, 100, 60, 0.8, 25}, Reals(5));
    const double trips[] = {7, 0, 1, 7, 2};
    for (size_t i = 0; i < 5; i++) EXPECT_EQ(weight(i) * std::exp2(trips[i]), g[i]) << i;
}

/* Cube roots: as many steps as a block needs. The steps' own derivative is the one by differences,
 * and close to the derivative of the root. */
TEST_F(WhileTest, NewtonsMethod) {
    tile_kernel *k = kernel("root", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        const tile_offset at = TILE_AT(tile_block_index(b, 0));
        const tile a = tile_load(px, TILE_SCALAR, at), one = tile_real(b, TILE_F64, 1);
        tile_loop loop = tile_while_begin(b, tile_expr("abs(one - a) > 1e-6", one, a),
                                          tile_int(b, 60), TILE_LIST(one));
        const tile v = loop.carried[0];
        const tile w = tile_expr("v - (v*v*v - a) / (3*v*v)", v, a);
        tile_while_end(&loop, tile_expr("abs(w*w*w - a) > 1e-6", w, a), TILE_LIST(w));
        tile_store(py, loop.carried[0], at);
    });
    const Reals a = {1, 8, 0.3, 1000, 27.5};
    const Reals y = outcome(k, TILE_GRID(5), a, Reals(5));
    const Reals g = gradient(k, TILE_GRID(5), a, Reals(5));
    for (size_t i = 1; i < 5; i++) {
        EXPECT_NEAR(std::cbrt(a[i]), y[i], 1e-6);
        EXPECT_NEAR(weight(i) / (3 * y[i] * y[i]), g[i], 1e-3 * g[i]);
    }
    EXPECT_EQ(0, g[0]); /* no iteration: the start does not depend on a */
    expect_gradient(k, TILE_GRID(4), {8, 0.3, 1000, 27.5}, Reals(4));
}

/* A fixed point of tiles, with values from outside of the loop, in blocks that stop at different
 * times. */
TEST_F(WhileTest, FixedPointOfTiles) {
    tile_kernel *k = kernel("fixed", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, 4));
        const tile x = tile_load(px, TILE_SHAPE(4), at), c = tile_load(px, TILE_SCALAR, at);
        tile_loop loop =
            tile_while_begin(b, tile_full(b, TILE_BOOL, TILE_SCALAR, 1), tile_int(b, 200),
                             TILE_LIST(tile_zeros(b, TILE_F64, TILE_SHAPE(4)), c));
        const tile u = loop.carried[0], s = loop.carried[1];
        const tile v = tile_expr("0.5 * cos(u) + 0.3 * x * c", u, x, c);
        const tile far = tile_reduce_max(tile_expr("abs(v - u)", v, u), TILE_ALL_AXES);
        tile_while_end(&loop, tile_expr("far > 1e-3", far),
                       TILE_LIST(v, tile_expr("s*0.9 + s*s", s)));
        const tile end = loop.carried[0], t = loop.carried[1];
        tile_store(py, tile_expr("end + t", end, t), at);
    });
    expect_gradient(k, TILE_GRID(2), {0.1, 0.4, 0.7, -0.9, -0.3, 2, 1.1, 0.2}, Reals(8));
}

/* A body that reads what it stored: y[i + 1] = sin y[i] + x[i] y[i], until y falls or x ends. */
TEST_F(WhileTest, BodyStoresAndOverwritesWhatItReads) {
    tile_kernel *k = kernel("walk", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        tile_loop loop =
            tile_while_begin(b, tile_full(b, TILE_BOOL, TILE_SCALAR, 1), tile_int(b, 6), TILE_NONE);
        const tile i = loop.index;
        const tile x = tile_load(px, TILE_SCALAR, TILE_AT(i));
        const tile y = tile_load(py, TILE_SCALAR, TILE_AT(i));
        const tile next = tile_expr("sin(y) + x*y", y, x);
        tile_store(py, next, TILE_SHIFT(TILE_AT(i), 1));
        tile_store(py, tile_expr("y * y", y), TILE_AT(i));
        tile_while_end(&loop, tile_expr("next > 0.2 && i < 5", next, i), TILE_NONE);
    });
    const Reals start = {0.7, 0, 0, 0, 0, 0, 0};
    expect_gradient(k, TILE_GRID(1), {0.4, 1.1, 0.3, 0.8, 0.6, 0.9}, start);
    /* Ends after two steps: what comes later has no part. */
    const Reals x = {0.4, -0.9, 0.3, 0.8, 0.6, 0.9};
    expect_gradient(k, TILE_GRID(1), x, start);
    EXPECT_EQ(0, gradient(k, TILE_GRID(1), x, start)[2]);
    EXPECT_EQ(0, outcome(k, TILE_GRID(1), x, start)[3]);
}

/* The same by what y was: each place is overwritten in place. */
TEST_F(WhileTest, GradientByTheArrayThatIsOverwritten) {
    tile_kernel *k = kernel("square", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        const tile first = tile_load(px, TILE_SHAPE(3), TILE_AT_ZERO);
        tile_store(py, first, TILE_AT_ZERO);
        tile_loop loop =
            tile_while_begin(b, tile_full(b, TILE_BOOL, TILE_SCALAR, 1), tile_int(b, 9), TILE_NONE);
        const tile y = tile_load(py, TILE_SHAPE(3), TILE_AT_ZERO);
        const tile z = tile_expr("y*y + 0.1", y);
        tile_store(py, z, TILE_AT_ZERO);
        const tile sum = tile_sum(z, TILE_ALL_AXES);
        tile_while_end(&loop, tile_expr("sum < 20", sum), TILE_NONE);
    });
    expect_gradient(k, TILE_GRID(1), {1.1, 0.9, 1.2}, Reals(3));
}

/* while in loop, loop in while, while in while. */
TEST_F(WhileTest, LoopsInsideEachOther) {
    const auto end = [](tile_loop *loop, tile v, double limit) {
        tile_while_end(loop, tile_less(v, tile_real(v.builder, TILE_F64, limit)), TILE_LIST(v));
    };
    for (int which = 0; which < 3; which++) {
        tile_kernel *k = kernel("nested", [&](tile_builder *b) {
            const tile_param px = x_of(b), py = y_of(b);
            const tile_offset at = TILE_AT(tile_block_index(b, 0));
            const tile x = tile_load(px, TILE_SCALAR, at),
                       yes = tile_full(b, TILE_BOOL, TILE_SCALAR, 1);
            const tile five = tile_int(b, 50), three = tile_int(b, 3);
            tile_loop outer = which == 0 ? tile_loop_begin(b, three, TILE_LIST(x))
                                         : tile_while_begin(b, yes, five, TILE_LIST(x));
            const tile o = outer.carried[0], i = tile_cast(outer.index, TILE_F64);
            tile_loop inner = which == 1 ? tile_loop_begin(b, three, TILE_LIST(o))
                                         : tile_while_begin(b, yes, five, TILE_LIST(o));
            const tile v = inner.carried[0], j = tile_cast(inner.index, TILE_F64);
            const tile w = tile_expr("v + 0.3*sin(v*x) + 0.1*j*x + 0.2 + 0.05*i", v, x, i, j);
            if (which == 1)
                tile_loop_end(&inner, TILE_LIST(w));
            else
                end(&inner, w, 3);
            const tile r = inner.carried[0], back = tile_expr("r*r*0.4 + o*0.3", r, o);
            if (which == 0)
                tile_loop_end(&outer, TILE_LIST(back));
            else
                end(&outer, back, 6);
            tile_store(py, outer.carried[0], at);
        });
        expect_gradient(k, TILE_GRID(3), {0.35, 1.2, 0.8}, Reals(3));
    }
}

/* The product of a matrix of second derivatives with a direction: the derivative along the
 * direction is carried by hand, its gradient by the tape. */
TEST_F(WhileTest, SecondOrder) {
    const auto build = [this](bool tangent) {
        return kernel("hessian", [&](tile_builder *b) {
            const tile_param px = x_of(b), py = y_of(b);
            const tile x = tile_load(px, TILE_SHAPE(3), TILE_AT_ZERO);
            const tile v = tile_iota(b, TILE_F64, TILE_SHAPE(3), 0, tile_real(b, TILE_F64, 1));
            tile_loop loop = tile_while_begin(b, tile_full(b, TILE_BOOL, TILE_SCALAR, 1),
                                              tile_int(b, 20), TILE_LIST(x, v));
            const tile u = loop.carried[0], du = loop.carried[1];
            const tile w = tile_expr("1.5*u + 0.2*sin(u*x)", u, x);
            const tile dw = tile_expr("1.5*du + 0.2*cos(u*x)*(du*x + u*v)", u, du, x, v);
            const tile top = tile_reduce_max(w, TILE_ALL_AXES);
            tile_while_end(&loop, tile_expr("top < 5", top), TILE_LIST(w, dw));
            const tile p = loop.carried[0], dp = loop.carried[1];
            const tile f = tangent ? tile_expr("2*p*dp", p, dp) : tile_expr("p*p", p);
            tile_store(py, tile_sum(f, TILE_ALL_AXES), TILE_AT_ZERO);
        });
    };
    tile_kernel *f = build(false), *along = build(true);
    const Reals x = {0.4, 0.9, 0.7};
    const Reals hv = gradient(along, TILE_GRID(1), x, Reals(1));
    const double h = 1e-5;
    Reals up = x, down = x;
    for (size_t i = 0; i < 3; i++) up[i] += h * double(1 + i), down[i] -= h * double(1 + i);
    const Reals g = gradient(f, TILE_GRID(1), up, Reals(1));
    const Reals l = gradient(f, TILE_GRID(1), down, Reals(1));
    for (size_t i = 0; i < 3; i++)
        EXPECT_NEAR((g[i] - l[i]) / (2 * h), hv[i], 1e-5 * std::fabs(hv[i]));
    expect_gradient(along, TILE_GRID(1), x, Reals(1));
}

TEST_F(WhileTest, TextOfAProgram) {
    const std::string text = text_of(doubling(7)), adjoint = text_of(doubling(7), true);
    EXPECT_EQ(1u, count_in(text, " while %")) << text;
    EXPECT_EQ(1u, count_in(adjoint, " while %")) << adjoint;
    EXPECT_EQ(1u, count_in(adjoint, "kept")) << adjoint; /* how often it ran */
}

/* A tile that a loop carries and never changes is not carried. */
TEST_F(WhileTest, UnchangedTilesAreNotCarried) {
    const auto build = [this](bool extra, bool is_while) {
        return kernel("plain", [&](tile_builder *b) {
            const tile_param px = x_of(b), py = y_of(b);
            const tile x = tile_load(px, TILE_SHAPE(4), TILE_AT_ZERO);
            const tile yes = tile_full(b, TILE_BOOL, TILE_SCALAR, 1), n = tile_int(b, 3);
            tile_list start = extra ? TILE_LIST(x, x, x) : TILE_LIST(x);
            tile_loop loop =
                is_while ? tile_while_begin(b, yes, n, start) : tile_loop_begin(b, n, start);
            tile_loop inner = tile_loop_begin(b, n, extra ? TILE_LIST(loop.carried[1]) : TILE_NONE);
            tile_loop_end(&inner, extra ? TILE_LIST(inner.carried[0]) : TILE_NONE);
            const tile v = loop.carried[0], c = extra ? loop.carried[2] : x;
            const tile w = tile_expr("v*c + 1", v, c), i = loop.index;
            const tile_list next =
                extra ? TILE_LIST(w, inner.carried[0], loop.carried[2]) : TILE_LIST(w);
            if (is_while)
                tile_while_end(&loop, tile_expr("i < 2", i), next);
            else
                tile_loop_end(&loop, next);
            const tile y = loop.carried[0], d = extra ? loop.carried[1] : x;
            tile_store(py, tile_expr("y + d", y, d), TILE_AT_ZERO);
        });
    };
    for (bool is_while : {false, true}) {
        EXPECT_EQ(text_of(build(false, is_while)), text_of(build(true, is_while)));
        EXPECT_EQ(text_of(build(false, is_while), true), text_of(build(true, is_while), true));
        expect_gradient(build(true, is_while), TILE_GRID(1), {0.3, 0.5, 0.9, 1.4}, Reals(4));
    }
}

/* A condition that never changes is no tile that may be left out. */
TEST_F(WhileTest, ConstantConditions) {
    for (bool go : {false, true}) {
        tile_kernel *k = kernel("constant", [&](tile_builder *b) {
            const tile_param px = x_of(b), py = y_of(b);
            const tile x = tile_load(px, TILE_SCALAR, TILE_AT_ZERO);
            const tile flag = tile_full(b, TILE_BOOL, TILE_SCALAR, go);
            tile_loop loop = tile_while_begin(b, flag, tile_int(b, 3), TILE_LIST(x));
            const tile v = loop.carried[0];
            tile_while_end(&loop, flag, TILE_LIST(tile_expr("v + 1", v)));
            tile_store(py, loop.carried[0], TILE_AT_ZERO);
        });
        tile_array *x = reals({5}), *y = zeros(1);
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(x, y)));
        EXPECT_EQ(go ? TILE_E_EXECUTION : TILE_OK, tile_context_sync(ctx));
        EXPECT_TRUE(go || read(y)[0] == 5);
    }
}

/* Blocks at once whose writes meet: the log has room for the most there may be. */
TEST(WhileThreads, SameBitsForAnyNumber) {
    Reals want;
    for (int threads : {1, 2, 4}) {
        struct Fixture : WhileTest {
            explicit Fixture(int n) : WhileTest(n) {}
            void TestBody() override {}
            Reals values() {
                tile_kernel *k = kernel("meet", [&](tile_builder *b) {
                    const tile_param px = x_of(b), py = y_of(b);
                    const tile x = tile_load(px, TILE_SCALAR, TILE_AT(tile_block_index(b, 0)));
                    tile_loop loop = tile_while_begin(b, tile_full(b, TILE_BOOL, TILE_SCALAR, 1),
                                                      tile_int(b, 40), TILE_LIST(x));
                    const tile v = loop.carried[0], w = tile_expr("0.9*v + 0.1", v);
                    tile_atomic_add(py, w, TILE_AT(loop.index));
                    tile_while_end(&loop, tile_expr("w > 1.05", w), TILE_LIST(w));
                });
                Reals x;
                for (int i = 0; i < 3000; i++) x.push_back(1 + 0.01 * (i * 37 % 101));
                Reals all = outcome(k, TILE_GRID(3000), x, Reals(40));
                const Reals g = gradient(k, TILE_GRID(3000), x, Reals(40));
                all.insert(all.end(), g.begin(), g.end());
                return all;
            }
        } fixture(threads);
        const Reals got = fixture.values();
        if (threads == 1) want = got;
        EXPECT_EQ(want, got) << threads;
    }
}

/* Too often: an error that names the first block, whatever the threads; then all is well again. */
TEST(WhileThreads, TooManyIterations) {
    std::string want;
    for (int threads : {1, 2, 4}) {
        struct Fixture : WhileTest {
            explicit Fixture(int n) : WhileTest(n) {}
            void TestBody() override {}
            std::string message() {
                tile_kernel *k = doubling(7);
                Reals x(500, 60);
                x[333] = x[77] = x[499] = 0.7; /* eight iterations */
                tile_array *px = active(x), *py = zeros(500);
                EXPECT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(500), TILE_ARGS(px, py)));
                EXPECT_EQ(TILE_E_EXECUTION, tile_context_sync(ctx));
                const std::string text = tile_last_error();
                EXPECT_EQ(TILE_OK, tile_context_sync(ctx)); /* told once */
                const Reals y = read(py);
                EXPECT_EQ(120, y[76]); /* the other blocks have done their work */
                EXPECT_EQ(120, y[498]);
                EXPECT_EQ((Reals{120, 120}), outcome(k, TILE_GRID(2), {60, 60}, Reals(2)));
                return text;
            }
        } fixture(threads);
        const std::string got = fixture.message();
        if (threads == 1) want = got;
        EXPECT_EQ(want, got) << threads;
    }
    EXPECT_NE(std::string::npos, want.find("kernel doubling, while_test.cc:")) << want;
    EXPECT_NE(std::string::npos, want.find("block (77, 0, 0): ")) << want;
    EXPECT_NE(std::string::npos, want.find("after 7 iterations, the most it may run")) << want;
    EXPECT_EQ(std::string::npos, want.find('\n'));
}

/* A launch of no tape whose loop says which places it wrote must be on the tape that holds them. */
TEST_F(WhileTest, OffTheTapeItIsRefusedWhereItsPlacesCount) {
    tile_kernel *k = kernel("fill", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        const tile x = tile_load(px, TILE_SCALAR, TILE_AT_ZERO);
        tile_loop loop = tile_while_begin(b, tile_full(b, TILE_BOOL, TILE_SCALAR, 1),
                                          tile_int(b, 4), TILE_LIST(x));
        const tile v = loop.carried[0], w = tile_expr("2 * v", v);
        tile_store(py, w, TILE_AT(loop.index));
        tile_while_end(&loop, tile_expr("w < 5", w), TILE_LIST(w));
    });
    tile_array *x = active({1, 2, 3, 4}), *y = zeros(4), *start = reals({1});
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    expect_error(TILE_E_STATE, "record it on that tape",
                 tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(start, y)));
    EXPECT_EQ((Reals{1, 4, 9, 16}), read(y));
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(start, y)));
    EXPECT_EQ((Reals{2, 4, 8, 16}), read(y));
    backward(sum(y));
    EXPECT_EQ((Reals{0, 0, 0, 8}), grad(x)); /* three places were overwritten */
}

/* The most there may be can be a parameter; below 1 there may be none. */
TEST_F(WhileTest, MostIsKnownAtTheLaunch) {
    tile_kernel *k = kernel("most", [&](tile_builder *b) {
        const tile_param px = x_of(b), py = y_of(b);
        const tile most = tile_int_param(b, "most");
        const tile x = tile_load(px, TILE_SCALAR, TILE_AT_ZERO);
        tile_loop loop =
            tile_while_begin(b, tile_expr("x < 3", x), tile_expr("most * 2", most), TILE_LIST(x));
        const tile v = loop.carried[0], w = tile_expr("v*v + 1", v);
        tile_while_end(&loop, tile_expr("w < 3", w), TILE_LIST(w));
        tile_store(py, loop.carried[0], TILE_AT_ZERO);
    });
    tile_array *x = active({0.5}), *y = zeros(1), *far = active({4.0});
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, y, 2)));
    const double a = 1.25, c = a * a + 1, d = c * c + 1;
    EXPECT_NEAR(d, read(y)[0], 1e-12);
    backward(y);
    EXPECT_NEAR(2 * 0.5 * 2 * a * 2 * c, grad(x)[0], 1e-12);
    for (int most : {0, -3, INT32_MIN}) {
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(x, y, most)));
        expect_error(TILE_E_EXECUTION, "after 0 iterations", tile_context_sync(ctx));
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(far, y, most)));
        EXPECT_EQ(TILE_OK, tile_context_sync(ctx));
        EXPECT_EQ(4, read(y)[0]);
    }
}

TEST_F(WhileTest, Refusals) {
    const auto yes = [](tile_builder *b) { return tile_full(b, TILE_BOOL, TILE_SCALAR, 1); };
    expect_refused(TILE_E_DTYPE, "tile_while_begin: go is int64 of rank 0, expected bool of rank 0",
                   [](tile_builder *b) {
                       tile_while_begin(b, tile_int(b, 1), tile_int(b, 1), TILE_NONE);
                   });
    expect_refused(TILE_E_DTYPE, "tile_while_begin: go is bool of rank 1", [](tile_builder *b) {
        tile_while_begin(b, tile_full(b, TILE_BOOL, TILE_SHAPE(2), 1), tile_int(b, 1), TILE_NONE);
    });
    expect_refused(TILE_E_ARGUMENT, "tile_while_begin: go is not usable here", [](tile_builder *b) {
        tile_while_begin(b, tile{nullptr, -1}, tile_int(b, 1), TILE_NONE);
    });
    expect_refused(
        TILE_E_ARGUMENT, "tile_while_begin: most is not made of constants and integer parameters",
        [&](tile_builder *b) { tile_while_begin(b, yes(b), tile_block_index(b, 0), TILE_NONE); });
    expect_refused(TILE_E_DTYPE, "tile_while_begin: most is float64 of rank 0, expected int64",
                   [&](tile_builder *b) {
                       tile_while_begin(b, yes(b), tile_real(b, TILE_F64, 3), TILE_NONE);
                   });
    expect_refused(TILE_E_DTYPE, "tile_while_end: go is float64 of rank 0", [&](tile_builder *b) {
        tile_loop loop = tile_while_begin(b, yes(b), tile_int(b, 3), TILE_NONE);
        tile_while_end(&loop, tile_real(b, TILE_F64, 1), TILE_NONE);
    });
    expect_refused(TILE_E_ARGUMENT, "tile_while_end: 1 tiles, expected 0", [&](tile_builder *b) {
        tile_loop loop = tile_while_begin(b, yes(b), tile_int(b, 3), TILE_NONE);
        tile_while_end(&loop, yes(b), TILE_LIST(yes(b)));
    });
    expect_refused(TILE_E_SHAPE, "tile_while_end: tile 1 is float64 [2], expected float64 []",
                   [&](tile_builder *b) {
                       tile_loop loop = tile_while_begin(b, yes(b), tile_int(b, 3),
                                                         TILE_LIST(tile_real(b, TILE_F64, 1)));
                       tile_while_end(&loop, yes(b),
                                      TILE_LIST(tile_zeros(b, TILE_F64, TILE_SHAPE(2))));
                   });
    expect_refused(TILE_E_STATE, "tile_loop_end: the loop began with tile_while_begin",
                   [&](tile_builder *b) {
                       tile_loop loop = tile_while_begin(b, yes(b), tile_int(b, 3), TILE_NONE);
                       tile_loop_end(&loop, TILE_NONE);
                   });
    expect_refused(TILE_E_STATE, "tile_while_end: the loop began with tile_loop_begin",
                   [&](tile_builder *b) {
                       tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_NONE);
                       tile_while_end(&loop, yes(b), TILE_NONE);
                   });
    expect_refused(TILE_E_STATE, "tile_while_end: the loop has ended already",
                   [&](tile_builder *b) {
                       tile_loop loop = tile_while_begin(b, yes(b), tile_int(b, 3), TILE_NONE);
                       tile_while_end(&loop, yes(b), TILE_NONE);
                       tile_while_end(&loop, yes(b), TILE_NONE);
                   });
    expect_refused(TILE_E_STATE, "tile_while_end: another loop inside has not ended",
                   [&](tile_builder *b) {
                       tile_loop loop = tile_while_begin(b, yes(b), tile_int(b, 3), TILE_NONE);
                       tile_loop_begin(b, tile_int(b, 3), TILE_NONE);
                       tile_while_end(&loop, yes(b), TILE_NONE);
                   });
}

} // namespace
