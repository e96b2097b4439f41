/* random_kernel_test.cc: random kernels of loops inside each other, whiles, stacks, gathers, loads
 * and stores that meet: the gradient is what differences give.
 *
 * TILE_SEED=N in the environment runs one kernel. */
#include <random>

#include "tests/while_fixture.h"

namespace {

enum { LANES = 4, WINDOW = 8, BLOCKS = 2, KERNELS = 600, DEPTH = 3 };

/* One kernel y = f(x, y) of blocks with WINDOW elements each. Values stay small: every step is a
 * sine or a cosine and a part of what there was. */
class Writer {
  public:
    Writer(tile_builder *b, unsigned seed) : b_(b), random_(seed) {
        x_ = tile_array_param(b, "x", TILE_F64, 1);
        y_ = tile_array_param(b, "y", TILE_F64, 1);
        block_ = tile_block_start(b, 0, WINDOW);
        pool_.push_back(tile_load(x_, TILE_SHAPE(LANES), TILE_AT(block_)));
        pool_.push_back(tile_load(x_, TILE_SHAPE(LANES), TILE_AT(at(4))));
    }
    void write() {
        steps(0);
        for (const tile_stack &s : stacks_) add(tile_stack_pop(s, TILE_SHAPE(LANES), nullptr));
        tile all = pool_[0];
        for (tile t : pool_) all = tile_expr("0.8*all + sin(t)", all, t);
        tile_store(y_, all, TILE_AT(block_));
    }

  private:
    int pick(int n) {
        return static_cast<int>(random_() % static_cast<unsigned>(n));
    }
    tile one() {
        return pool_[static_cast<size_t>(pick(static_cast<int>(pool_.size())))];
    }
    void add(tile t) {
        pool_.push_back(t);
    }
    tile at(int64_t shift) {
        return tile_add(block_, tile_int(b_, shift));
    }
    /* Somewhere in the block's window, at times by an index. */
    tile_offset place() {
        if (!index_.empty() && pick(2)) {
            const tile i = index_[static_cast<size_t>(pick(static_cast<int>(index_.size())))];
            return TILE_AT(tile_add(block_, tile_mod(i, tile_int(b_, 5))));
        }
        return TILE_AT(at(pick(5)));
    }
    tile mask() {
        const tile v = one(), c = tile_real(b_, TILE_F64, 0.1 * pick(8));
        return tile_expr("v > c", v, c);
    }
    tile_stack stack() {
        if (stacks_.empty() || (stacks_.size() < 2 && pick(3) == 0))
            stacks_.push_back(tile_stack_create(b_, 1 + pick(9), TILE_F64));
        return stacks_[static_cast<size_t>(pick(static_cast<int>(stacks_.size())))];
    }
    void steps(int depth) {
        for (int n = 3 + pick(4); n > 0; n--) step(depth);
    }
    void step(int depth) {
        const tile a = one(), c = one();
        tile slot;
        switch (pick(depth < DEPTH ? 15 : 12)) {
        case 0: return add(tile_expr("sin(a) + 0.3*c", a, c));
        case 1: return add(tile_expr("0.5*a*sin(c) + cos(a)", a, c));
        case 2: return add(tile_load(x_, TILE_SHAPE(LANES), place()));
        case 3: return add(tile_load(y_, TILE_SHAPE(LANES), place()));
        case 4: return tile_store(y_, tile_expr("0.7*a + 0.2*sin(c)", a, c), place());
        case 5: tile_atomic_add(y_, tile_expr("0.3*sin(a)", a), place()); return;
        case 6:
        case 7:
            slot = tile_stack_push(stack(), tile_expr("0.9*a + 0.1*c*c", a, c), mask());
            return add(tile_gather(a, slot, 0));
        case 8:
            add(tile_stack_pop(stack(), TILE_SHAPE(LANES), &slot));
            return add(tile_scatter(a, slot, c, 0));
        case 9: return add(tile_stack_pop_masked(stack(), mask(), nullptr));
        case 10:
            if (pick(6))
                return add(tile_mul(tile_cumsum(a, 0, static_cast<unsigned>(pick(4))),
                                    tile_real(b_, TILE_F64, 0.4)));
            return tile_stack_clear(stack());
        case 11: return add(tile_scatter_add(a, indices(), tile_expr("0.3*c", c), 0));
        default: return loop(depth);
        }
    }
    /* 0 1 1 -1, or so. */
    tile indices() {
        const tile i = tile_iota(b_, TILE_I64, TILE_SHAPE(LANES), 0, tile_int(b_, pick(5)));
        return tile_expr("mod(i * 3, 5) - 1", i);
    }
    /* What a body yields for carried tile k: new, from outside, another one, or the same. */
    tile yield(const tile_loop &l, int k, size_t outside) {
        switch (pick(5)) {
        case 0: return l.carried[k];
        case 1: return l.carried[pick(l.carried_count)];
        case 2: return pool_[static_cast<size_t>(pick(static_cast<int>(outside)))];
        default: return pool_.back();
        }
    }
    void loop(int depth) {
        const size_t outside = pool_.size(), stacks = stacks_.size();
        const bool is_while = pick(2) != 0;
        tile_list start = TILE_NONE, next = TILE_NONE;
        start.count = next.count = 1 + pick(3);
        for (int k = 0; k < start.count; k++) start.item[k] = one();
        const tile most = tile_int(b_, 1 + pick(4));
        const tile first = tile_sum(one(), TILE_ALL_AXES);
        tile_loop l = is_while ? tile_while_begin(b_, tile_expr("first > -2", first), most, start)
                               : tile_loop_begin(b_, most, start);
        index_.push_back(l.index);
        for (int k = 0; k < start.count; k++) add(l.carried[k]);
        steps(depth + 1);
        for (int k = 0; k < start.count; k++) next.item[k] = yield(l, k, outside);
        if (is_while) {
            const tile size = tile_sum(one(), TILE_ALL_AXES), i = l.index;
            tile_while_end(&l, tile_expr("size > -0.5 && i + 1 < most", size, i, most), next);
        } else {
            tile_loop_end(&l, next);
        }
        index_.pop_back();
        pool_.resize(outside);
        stacks_.resize(stacks);
        for (int k = 0; k < start.count; k++) add(l.carried[k]);
        if (is_while) add(tile_mul(tile_cast(l.trips, TILE_F64), pool_.back()));
    }

    tile_builder *b_;
    std::mt19937 random_;
    tile_param x_, y_;
    tile block_;
    std::vector<tile> pool_, index_;
    std::vector<tile_stack> stacks_;
};

class RandomKernel : public DifferenceTest {};

TEST_F(RandomKernel, HasTheGradientThatDifferencesGive) {
    const char *wanted = getenv("TILE_SEED");
    Reals x, start;
    for (int i = 0; i < BLOCKS * WINDOW; i++) x.push_back(0.9 * std::sin(1.7 * i + 0.3));
    for (int i = 0; i < BLOCKS * WINDOW; i++) start.push_back(0.6 * std::cos(2.3 * i));
    int seen = 0, whiles = 0;
    for (unsigned seed = 1; seed <= KERNELS; seed++) {
        if (wanted && static_cast<unsigned>(atoi(wanted)) != seed) continue;
        tile_builder *b = tile_kernel_begin(ctx, "random");
        Writer(b, seed).write();
        tile_kernel *k = nullptr;
        ASSERT_EQ(TILE_OK, tile_kernel_end(b, &k)) << "TILE_SEED=" << seed << tile_last_error();
        const Reals g = gradient(k, TILE_GRID(BLOCKS), x, start);
        const double middle = loss(k, TILE_GRID(BLOCKS), x, start);
        ASSERT_TRUE(std::isfinite(middle)) << "TILE_SEED=" << seed;
        for (size_t i = 0; i < x.size(); i++) {
            const double h = 1e-6;
            Reals up = x, down = x;
            up[i] += h;
            down[i] -= h;
            const double high = loss(k, TILE_GRID(BLOCKS), up, start);
            const double low = loss(k, TILE_GRID(BLOCKS), down, start);
            const double slope = (high - low) / (2 * h);
            EXPECT_NEAR(slope, g[i], 1e-6 * (1 + std::fabs(slope) + std::fabs(middle)))
                << "TILE_SEED=" << seed << " x[" << i << "]";
            seen += std::fabs(slope) > 1e-3;
        }
        whiles += count_in(text_of(k), " while %") > 0;
        tile_kernel_destroy(k);
        if (HasFailure()) break;
    }
    if (wanted) return;
    EXPECT_GT(seen, 4 * KERNELS);
    EXPECT_GT(whiles, KERNELS / 4);
}

} // namespace
