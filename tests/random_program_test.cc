/* random_program_test.cc: random programs on a tape, with views, overwrites, scatters, loops, host
 * writes and other tapes, against differences. TILE_SEED=n runs program n alone. */
#include "tests/tape_fixture.h"

#include <cstdlib>
#include <random>

namespace {

class RandomProgram : public TapeTest {
  protected:
    enum { N = 11, ARRAYS = 5, LAUNCHES = 14, PROGRAMS = 150 };

    int pick(int n) {
        return static_cast<int>(random_() % static_cast<unsigned>(n));
    }
    double number() {
        return 2 * static_cast<double>(random_()) / static_cast<double>(random_.max()) - 1;
    }
    Reals numbers(size_t n) {
        Reals x(n);
        for (double &v : x) v = number();
        return x;
    }

    void build() {
        map_ = map("map", [](tile x) { return tile_expr("sin(x) + 0.3*x*x", x); });
        update_ = update("update", [](tile x) { return tile_expr("cos(x) - 0.5*x", x); });
        combine_ =
            combine("combine", [](tile x, tile y) { return tile_expr("x*y + 0.5*x", x, y); });
        stencil_ = kernel("stencil", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_F64, 1);
            const tile_param q = tile_array_param(b, "y", TILE_F64, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            const tile l = tile_load(p, TILE_SHAPE(BLOCK), TILE_SHIFT(at, -1));
            const tile c = tile_load(p, TILE_SHAPE(BLOCK), at);
            const tile r = tile_load_padded(p, TILE_SHAPE(BLOCK), TILE_SHIFT(at, 2), 0.4);
            tile_store(q, tile_expr("0.5*l*c - sin(r)", l, c, r), at);
        });
        in_place_ = kernel("in_place_stencil", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_F64, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            const tile l = tile_load(p, TILE_SHAPE(BLOCK), TILE_SHIFT(at, -1));
            const tile r = tile_load(p, TILE_SHAPE(BLOCK), TILE_SHIFT(at, 1));
            tile_store(p, tile_expr("0.5*l + sin(l*r)", l, r), at);
        });
        scatter_add_ = kernel("scatter_add", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_F64, 1);
            const tile_param i = tile_array_param(b, "index", TILE_I32, 1);
            const tile_param q = tile_array_param(b, "y", TILE_F64, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            const tile v = tile_load(p, TILE_SHAPE(BLOCK), at);
            const tile places = tile_load_padded(i, TILE_SHAPE(BLOCK), at, -1);
            tile_atomic_add_indexed(q, places, tile_expr("v*v", v), TILE_AT_ZERO, 0);
        });
        scatter_ = kernel("scatter", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_F64, 1);
            const tile_param i = tile_array_param(b, "index", TILE_I32, 1);
            const tile_param q = tile_array_param(b, "y", TILE_F64, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            const tile v = tile_load(p, TILE_SHAPE(BLOCK), at);
            const tile places = tile_load_padded(i, TILE_SHAPE(BLOCK), at, -1);
            tile_store_indexed(q, places, tile_expr("sin(v)", v), TILE_AT_ZERO, 0);
        });
        gather_ = kernel("gather", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_F64, 1);
            const tile_param i = tile_array_param(b, "index", TILE_I32, 1);
            const tile_param q = tile_array_param(b, "y", TILE_F64, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            const tile places = tile_load_padded(i, TILE_SHAPE(BLOCK), at, -1);
            const tile v = tile_load_indexed(p, places, TILE_SHAPE(BLOCK), TILE_AT_ZERO, 0);
            tile_store(q, tile_expr("v*v - 0.2*v", v), at);
        });
        loop_ = map("loop", [](tile x) {
            tile_builder *b = x.builder;
            tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(x));
            const tile c = loop.carried[0];
            tile_loop_end(&loop, TILE_LIST(tile_expr("sin(c) + 0.2*c*x", c, x)));
            return loop.carried[0];
        });
        while_ = map("while", [](tile x) {
            tile_builder *b = x.builder;
            const tile start = tile_sum(tile_mul(x, x), TILE_ALL_AXES);
            tile_loop loop =
                tile_while_begin(b, tile_expr("start > 0.2", start), tile_int(b, 90), TILE_LIST(x));
            const tile c = loop.carried[0], d = tile_expr("0.7*sin(c) + 0.2*c*sin(x)", c, x);
            const tile size = tile_sum(tile_mul(d, d), TILE_ALL_AXES);
            tile_while_end(&loop, tile_expr("size > 0.2", size), TILE_LIST(d));
            return loop.carried[0];
        });
        walk_ = kernel("walk", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "x", TILE_F64, 1);
            const tile_param q = tile_array_param(b, "y", TILE_F64, 1);
            tile_loop loop = tile_loop_begin(b, tile_int(b, 4), TILE_NONE);
            const tile x = tile_load(p, TILE_SCALAR, TILE_AT(loop.index));
            const tile y = tile_load(q, TILE_SCALAR, TILE_AT(loop.index));
            tile_store(q, tile_expr("sin(y) + x*y", x, y), TILE_SHIFT(TILE_AT(loop.index), 1));
            tile_loop_end(&loop, TILE_NONE);
        });
        share_ = kernel("share", [](tile_builder *b) {
            const tile_param p = tile_array_param(b, "c", TILE_F64, 1);
            const tile_param q = tile_array_param(b, "y", TILE_F64, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            const tile c = tile_load(p, TILE_SCALAR, TILE_AT(tile_int(b, 1)));
            const tile y = tile_load(q, TILE_SHAPE(BLOCK), at);
            tile_store(q, tile_expr("cos(c)*y + c", c, y), at);
        });
    }

    /* Arrays: some with a gradient, one wrapped. Views of them of 6 elements, also strided. */
    void make_arrays() {
        base_.clear();
        for (int k = 0; k < ARRAYS; k++) {
            tile_array *a = nullptr;
            if (k == 1) {
                memory_ = numbers(N);
                a = exposed(&memory_);
            } else {
                a = reals(numbers(N));
            }
            const bool wants = k == 0 || pick(2);
            EXPECT_EQ(TILE_OK, wants ? tile_array_request_grad(a) : TILE_OK);
            base_.push_back(a);
        }
        std::vector<int32_t> places(N);
        for (int32_t &i : places) i = pick(N + 3) - 2;
        index_ = integers(places);
    }
    tile_array *any() {
        tile_array *a = base_[static_cast<size_t>(pick(ARRAYS))];
        if (pick(3)) return a;
        if (pick(2)) return slice(a, {pick(5)}, TILE_SHAPE(6));
        return slice(a, {pick(2)}, TILE_SHAPE(5), {2});
    }
    /* On other memory than x. */
    tile_array *other_than(tile_array *x) {
        for (;;) {
            tile_array *a = any();
            if (a->storage != x->storage) return a;
        }
    }
    tile_status step() {
        tile_array *x = any(), *y = pick(4) ? other_than(x) : any(); /* at times they overlap */
        const tile_grid g = TILE_GRID(pick(3) ? 3 : 2);
        const double value = number();
        tape *second = second_;
        switch (pick(20)) {
        case 0: return tile_launch(record, map_, g, TILE_ARGS(x, y));
        case 1: return tile_launch(record, map_, g, TILE_ARGS(x, x));
        case 2: return tile_launch(record, update_, g, TILE_ARGS(x));
        case 3: return tile_launch(record, combine_, g, TILE_ARGS(x, y, other_than(x)));
        case 4: return tile_launch(record, combine_, g, TILE_ARGS(x, x, y));
        case 5: return tile_launch(record, combine_, g, TILE_ARGS(x, y, x));
        case 6: return tile_launch(record, stencil_, g, TILE_ARGS(x, y));
        case 7: return tile_launch(record, in_place_, g, TILE_ARGS(x));
        case 8: return tile_launch(record, scatter_add_, g, TILE_ARGS(x, index_, y));
        case 9: return tile_launch(record, scatter_, g, TILE_ARGS(x, index_, y));
        case 10: return tile_launch(record, gather_, g, TILE_ARGS(x, index_, y));
        case 11: return tile_launch(record, loop_, g, TILE_ARGS(x, y));
        case 12: return tile_launch(record, walk_, TILE_GRID(1), TILE_ARGS(x, y));
        case 13: return tile_launch(record, share_, g, TILE_ARGS(x, y));
        case 14: return tape_fill(record, y, value);
        case 15:
            return tape_copy(record, slice(x, {0}, TILE_SHAPE(5)), slice(y, {0}, TILE_SHAPE(5)));
        case 16:
            return tape_axpy(record, value, slice(x, {1}, TILE_SHAPE(4)),
                             slice(x, {0}, TILE_SHAPE(4)));
        case 18: return tile_launch(record, while_, g, TILE_ARGS(x, y));
        case 17: return tile_array_fill(slice(y, {1}, TILE_SHAPE(3)), value);
        default: return tile_launch(second, map_, g, TILE_ARGS(x, spare_));
        }
    }
    std::mt19937 random_;
    tape *second_ = nullptr;
    Reals memory_;
    std::vector<tile_array *> base_;
    tile_array *index_ = nullptr, *spare_ = nullptr;
    tile_kernel *map_, *update_, *combine_, *stencil_, *in_place_, *scatter_add_, *scatter_,
        *gather_, *loop_, *while_, *walk_, *share_;
};

TEST_F(RandomProgram, HasTheGradientThatDifferencesGive) {
    const char *wanted = getenv("TILE_SEED");
    build();
    spare_ = zeros(N);
    second_ = new_tape();
    int reached = 0;
    for (unsigned seed = 1; seed <= PROGRAMS; seed++) {
        if (wanted && static_cast<unsigned>(atoi(wanted)) != seed) continue;
        random_.seed(seed);
        ASSERT_EQ(TILE_OK, tape_reset(record));
        ASSERT_EQ(TILE_OK, tape_reset(second_));
        make_arrays();
        tile_array *all = reals(numbers(ARRAYS * N)), *loss = zeros(1);
        for (int k = 0; k < LAUNCHES; k++) {
            const tile_status status = step();
            ASSERT_EQ(TILE_OK, status) << "TILE_SEED=" << seed << " " << tile_last_error();
        }
        tile_array *gathered = zeros(ARRAYS * N);
        for (int k = 0; k < ARRAYS; k++)
            ASSERT_EQ(TILE_OK, tape_copy(record, base_[static_cast<size_t>(k)],
                                         slice(gathered, {k * N}, TILE_SHAPE(N))));
        ASSERT_EQ(TILE_OK, tape_dot(record, all, gathered, loss));
        const tile_status status = tape_backward(record, loss);
        if (status == TILE_E_STATE) continue; /* nothing with a gradient is left */
        ASSERT_EQ(TILE_OK, status) << "TILE_SEED=" << seed << " " << tile_last_error();
        reached++;
        std::vector<Reals> first;
        for (tile_array *a : base_)
            if (tile_array_grad(a)) first.push_back(grad(a));
        const double value = read(loss)[0];
        tape_check_report report;
        ASSERT_EQ(TILE_OK, tape_gradcheck(record, loss, TAPE_CHECK_ALL, &report))
            << "TILE_SEED=" << seed << " " << tile_last_error();
        EXPECT_TRUE(report.passed) << "TILE_SEED=" << seed;
        if (!report.passed) tape_check_print(&report, stdout);
        EXPECT_EQ(value, read(loss)[0]) << "TILE_SEED=" << seed;
        ASSERT_EQ(TILE_OK, tape_zero(record));
        backward(loss);
        size_t k = 0;
        for (tile_array *a : base_) {
            if (!tile_array_grad(a)) continue;
            EXPECT_EQ(first[k++], grad(a)) << "TILE_SEED=" << seed;
        }
    }
    EXPECT_GT(reached, wanted ? 0 : PROGRAMS / 2);
}

} // namespace
