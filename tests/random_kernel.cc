/* random_kernel.cc: a kernel of random statements: every registered op, windows, views of
 * partitions, indexed forms, atomics, loops, stacks. */
#include <cmath>
#include <stdexcept>

#include "tests/op_problem.h"
#include "tests/random_program.h"

namespace random_program {

namespace {

enum { DEPTH_MAX = 2, INDEX_LENGTH = 12 };

/* Registered ops that take float64 tiles to a float64 tile; cooperative ones with inputs. */
struct Registry {
    std::vector<const tile_op *> elementwise, cooperative;

    Registry() {
        for (int i = 0; const tile_op *op = tile_op_at(i); i++) {
            if (op->kind == TILE_OP_COOPERATIVE && !op->access && op->sample && op->n_out == 1 &&
                is_differentiable(op))
                cooperative.push_back(op);
            if (op->kind != TILE_OP_ELEMENTWISE || op->n_in == 0) continue;
            if (std::string(op->name) == "stop_gradient") continue; /* by definition */
            const std::vector<tile_dtype> types = op_test::operand_types(op);
            bool real = !types.empty() && op->n_in == static_cast<int>(types.size());
            for (tile_dtype type : types) real = real && type == TILE_F64;
            if (real && gives_real(op)) elementwise.push_back(op);
        }
    }
    /* In all of its float operands. */
    static bool is_differentiable(const tile_op *op) {
        tile_sample sample = {};
        if (!op->sample(0, &sample)) return false;
        for (int k = 0; k < sample.n_in; k++)
            if (!sample.integer[k] && op->grad[k] == TILE_GRAD_ABSENT) return false;
        return true;
    }
    static bool gives_real(const tile_op *op) {
        bool real = false;
        op_test::try_build(
            [&](tile_builder *b) {
                const std::vector<tile> in(static_cast<size_t>(op->n_in),
                                           tile_constant(b, TILE_F64, TILE_SCALAR, 1));
                const tile t = op_test::emit_op(b, op, in, TILE_F64);
                real = tile_is_good(t) && tile_dtype_of(t) == TILE_F64;
            },
            nullptr);
        return real;
    }
};

const Registry &registry() {
    static const Registry all;
    return all;
}

class Maker {
  public:
    Maker(tile_builder *b, Choices *choose, Kernel *kernel)
        : b_(b), choose_(choose), kernel_(kernel) {}

    void make() {
        static const int64_t lengths[] = {4, 3, 1, 6};
        length_ = lengths[choose_->pick(4)];
        const int slots = 1 + choose_->pick(3);
        for (int k = 0; k < slots; k++) {
            kernel_->slot.push_back({choose_->chance(4) ? 2 : 1, false});
            add_param("x" + std::to_string(k), TILE_F64, kernel_->slot.back().rank);
        }
        kernel_->slot.push_back({1, true});
        add_param("previous", TILE_F64, 1);
        index_ = tile_array_param(b_, "index", TILE_I32, 1);
        pool_.push_back(load(0));
        const int statements = 1 + choose_->pick(7);
        for (int k = 0; k < statements; k++) statement();
        store(choose_->pick(slots));
    }

  private:
    void add_param(const std::string &name, tile_dtype dtype, int rank) {
        param_.push_back(tile_array_param(b_, name.c_str(), dtype, rank));
    }
    int slots() const {
        return static_cast<int>(kernel_->slot.size()) - 1;
    }
    void note(const std::string &op) {
        kernel_->ops.push_back(op);
    }

    /* Tiles. */

    tile any() {
        const size_t back = static_cast<size_t>(choose_->pick(static_cast<int>(pool_.size())));
        return pool_[pool_.size() - 1 - back];
    }
    /* A tile of a shape, which every element of t may enter. */
    tile as(tile t, tile_shape shape) {
        const tile_shape has = tile_shape_of_tile(t);
        if (tile_shape_equal(has, shape)) return t;
        if (tile_shape_count(has) == tile_shape_count(shape)) return tile_reshape(t, shape);
        const tile flat = tile_reshape(t, TILE_SHAPE(tile_shape_count(has)));
        return tile_broadcast(tile_reshape(tile_sum(flat, 1), TILE_SCALAR), shape);
    }
    tile real(double value) {
        return tile_real(b_, TILE_F64, value);
    }
    /* Between low and high, smooth, and not the same for neighbours. */
    tile within(tile t, double low, double high) {
        const tile_shape shape = tile_shape_of_tile(t);
        const int64_t n = tile_shape_count(shape);
        tile step = tile_iota(b_, TILE_F64, TILE_SHAPE(n), 0, real(0));
        step = tile_reshape(step, shape);
        const tile middle = real((low + high) / 2), half = real(0.4 * (high - low)),
                   spread = real(0.08 * (high - low) / static_cast<double>(n));
        return tile_expr("middle + half*sin(t) + spread*step", middle, half, t, spread, step);
    }
    tile_shape row() const {
        return TILE_SHAPE(length_);
    }
    tile_shape window_shape(int slot) const {
        return kernel_->slot[static_cast<size_t>(slot)].rank == 1 ? row() : TILE_SHAPE(2, length_);
    }
    /* Something to be written: it stays small. */
    tile value_for(tile_shape shape) {
        const tile t = as(any(), shape), shift = real(0.037);
        return choose_->chance(3) ? tile_expr("0.5*t", t) : tile_expr("sin(t) + shift", t, shift);
    }
    /* Ones and zeros that do not depend on floats. */
    tile mask_of(tile_shape shape) {
        const int64_t n = tile_shape_count(shape);
        const tile i = tile_iota(b_, TILE_I64, TILE_SHAPE(n), 0, tile_int(b_, choose_->pick(3)));
        const tile m = tile_int(b_, 2 + choose_->pick(2));
        return tile_reshape(tile_expr("mod(i, m) != 0", i, m), shape);
    }
    tile indices(int64_t n) {
        const tile at = tile_block_start(b_, 0, n);
        return tile_load_padded(index_, TILE_SHAPE(n), TILE_AT(at), -1);
    }

    /* Windows. */

    tile coordinate(int axis) {
        static const int64_t steps[] = {0, 1, -1, 2};
        const int64_t step = steps[choose_->pick(4)];
        if (choose_->chance(8)) { /* an offset that is known when the block runs */
            const tile place = tile_int(b_, choose_->pick(INDEX_LENGTH));
            return tile_load(index_, TILE_SCALAR, TILE_AT(place));
        }
        const int64_t by = step == 0 ? (axis == 0 ? length_ : 2) : step == 2 ? 0 : step + length_;
        return tile_block_start(b_, axis, by);
    }
    tile_offset at(int slot) {
        tile_offset offset = {};
        offset.rank = kernel_->slot[static_cast<size_t>(slot)].rank;
        for (int d = 0; d < offset.rank; d++) {
            offset.at[d] = coordinate(offset.rank == 1 ? 0 : 1 - d);
            offset.shift[d] = choose_->chance(2) ? choose_->pick(5) - 2 : 0;
        }
        return offset;
    }
    tile load(int slot) {
        note("load");
        const tile_shape shape = window_shape(slot);
        const double pad = choose_->chance(4) ? choose_->number() : 0;
        return tile_load_padded(param_[static_cast<size_t>(slot)], shape, at(slot), pad);
    }
    void store(int slot) {
        note("store");
        tile_store(param_[static_cast<size_t>(slot)], value_for(window_shape(slot)), at(slot));
    }
    void keep_previous(tile before) {
        if (choose_->chance(2))
            tile_store(param_.back(), as(before, row()), TILE_AT(tile_block_start(b_, 0, length_)));
    }
    tile_partition partition(int slot) {
        const tile_param a = param_[static_cast<size_t>(slot)];
        return tile_partition_view(a, window_shape(slot));
    }
    /* A partition that every array of the run has. */
    tile_offset partition_index(int slot) {
        tile_offset index = {};
        index.rank = kernel_->slot[static_cast<size_t>(slot)].rank;
        for (int d = 0; d < index.rank; d++) index.at[d] = tile_int(b_, 0);
        return index;
    }

    /* Statements. */

    void statement() {
        const int slot = choose_->pick(slots());
        switch (choose_->pick(20)) {
        case 0: pool_.push_back(load(slot)); break;
        case 1:
        case 2:
        case 3:
        case 4: elementwise(); break;
        case 5:
        case 6: cooperative(); break;
        case 7: store(slot); break;
        case 8: add(slot); break;
        case 9: load_indexed(slot); break;
        case 10: store_indexed(slot); break;
        case 11: add_indexed(slot); break;
        case 12: loop(); break;
        case 13: while_loop(); break;
        case 14: stack(); break;
        case 15: extreme(slot); break;
        case 16: choose_elements(); break;
        case 17: view(slot); break;
        case 18: store_where(slot); break;
        default: take(); break;
        }
    }
    void elementwise() {
        const std::vector<const tile_op *> &all = registry().elementwise;
        const tile_op *op = all[static_cast<size_t>(choose_->pick(static_cast<int>(all.size())))];
        const tile_shape shape = tile_shape_of_tile(any());
        std::vector<tile> in;
        for (int k = 0; k < op->n_in; k++)
            in.push_back(within(as(any(), shape), op->low[k], op->high[k]));
        note(op->name);
        pool_.push_back(op_test::emit_op(b_, op, in, TILE_F64));
    }
    void cooperative() {
        const std::vector<const tile_op *> &all = registry().cooperative;
        const tile_op *op = all[static_cast<size_t>(choose_->pick(static_cast<int>(all.size())))];
        tile_sample sample = {};
        int variant = choose_->pick(6);
        while (!op->sample(variant, &sample) && variant > 0) variant--;
        tile in[TILE_OP_IN];
        for (int k = 0; k < sample.n_in; k++) {
            const int64_t n = tile_shape_count(sample.shape[k]);
            if (sample.integer[k]) {
                const tile i = tile_iota(b_, TILE_I64, TILE_SHAPE(n), 0, tile_int(b_, 0));
                const tile m =
                    tile_int(b_, static_cast<int64_t>(sample.high[k] - sample.low[k]) + 1);
                const tile low = tile_int(b_, static_cast<int64_t>(sample.low[k]));
                in[k] =
                    tile_reshape(tile_expr("mod(i*7 + 3, m) + low", i, m, low), sample.shape[k]);
            } else {
                in[k] = within(as(any(), sample.shape[k]), sample.low[k], sample.high[k]);
            }
        }
        const tile t = sample.build(b_, &sample, in);
        note(op->name);
        if (tile_is_good(t) && tile_dtype_of(t) == TILE_F64) pool_.push_back(t);
    }
    void add(int slot) {
        note("atomic_add");
        const tile t = value_for(window_shape(slot));
        keep_previous(tile_atomic_add(param_[static_cast<size_t>(slot)], t, at(slot)));
    }
    int indexed_axis(int slot, int64_t *n, tile_shape *shape) {
        *shape = window_shape(slot);
        const int axis = shape->rank == 2 ? choose_->pick(2) : 0;
        *n = shape->extent[axis];
        return axis;
    }
    void load_indexed(int slot) {
        int64_t n;
        tile_shape shape;
        const int axis = indexed_axis(slot, &n, &shape);
        note("load_indexed");
        pool_.push_back(tile_load_indexed(param_[static_cast<size_t>(slot)], indices(n), shape,
                                          TILE_AT_ZERO, axis));
    }
    void store_indexed(int slot) {
        int64_t n;
        tile_shape shape;
        const int axis = indexed_axis(slot, &n, &shape);
        note("store_indexed");
        tile_store_indexed(param_[static_cast<size_t>(slot)], indices(n), value_for(shape),
                           TILE_AT_ZERO, axis);
    }
    void add_indexed(int slot) {
        int64_t n;
        tile_shape shape;
        const int axis = indexed_axis(slot, &n, &shape);
        note("atomic_add_indexed");
        keep_previous(tile_atomic_add_indexed(param_[static_cast<size_t>(slot)], indices(n),
                                              value_for(shape), TILE_AT_ZERO, axis));
    }
    /* The largest or least of what is there and a tile: nothing ties. */
    void extreme(int slot) {
        const bool largest = choose_->chance(2);
        const tile_param a = param_[static_cast<size_t>(slot)];
        int64_t n;
        tile_shape shape;
        note(largest ? "atomic_max" : "atomic_min");
        if (choose_->chance(2)) {
            const int axis = indexed_axis(slot, &n, &shape);
            const tile t = value_for(shape);
            keep_previous(largest ? tile_atomic_max_indexed(a, indices(n), t, TILE_AT_ZERO, axis)
                                  : tile_atomic_min_indexed(a, indices(n), t, TILE_AT_ZERO, axis));
        } else {
            const tile t = value_for(window_shape(slot));
            const tile_offset place = at(slot);
            keep_previous(largest ? tile_atomic_max(a, t, place) : tile_atomic_min(a, t, place));
        }
    }
    void store_where(int slot) {
        const tile_shape shape = window_shape(slot);
        const tile t = value_for(shape);
        note("store_where");
        tile_store_where(param_[static_cast<size_t>(slot)], mask_of(shape), t, at(slot));
    }
    void view(int slot) {
        const tile_partition p = partition(slot);
        const tile_offset index = partition_index(slot);
        note("partition");
        if (choose_->chance(2)) {
            pool_.push_back(tile_partition_load_masked(p, index, choose_->number()));
        } else if (choose_->chance(2)) {
            tile_partition_store_masked(p, value_for(window_shape(slot)), index);
        } else {
            tile_partition_atomic_sub_masked(p, value_for(window_shape(slot)), index,
                                             TILE_ORDER_RELAXED, TILE_SCOPE_DEVICE);
        }
    }
    void choose_elements() {
        const tile x = any();
        const tile_shape shape = tile_shape_of_tile(x);
        const tile y = as(any(), shape), mask = mask_of(shape);
        note("select");
        pool_.push_back(tile_select(mask, x, y));
    }
    void take() {
        const tile x = as(any(), row());
        note("gather");
        const tile i = tile_cast(indices(length_), TILE_I64), n = tile_int(b_, length_);
        const tile place = tile_expr("mod(i, n)", i, n);
        if (choose_->chance(2))
            pool_.push_back(tile_gather(x, i, 0));
        else
            pool_.push_back(tile_scatter(x, place, as(any(), row()), 0));
    }

    /* Loops and stacks. */

    void body(int depth) {
        const int statements = 1 + choose_->pick(3);
        const int before = depth_;
        depth_ = depth;
        for (int k = 0; k < statements; k++) statement();
        depth_ = before;
    }
    void loop() {
        if (depth_ == DEPTH_MAX) return;
        const tile x = as(any(), row());
        const size_t outside = pool_.size();
        note("loop");
        tile_loop loop = tile_loop_begin(b_, tile_int(b_, choose_->pick(4)), TILE_LIST(x));
        pool_.push_back(loop.carried[0]);
        body(depth_ + 1);
        const tile next = within(as(any(), row()), -1, 1);
        tile_loop_end(&loop, TILE_LIST(next));
        pool_.resize(outside);
        pool_.push_back(loop.carried[0]);
    }
    /* As often as an index of the block says. */
    void while_loop() {
        if (depth_ == DEPTH_MAX) return;
        const tile x = as(any(), row());
        const size_t outside = pool_.size();
        note("while");
        const tile block = tile_block_index(b_, 0), zero = tile_int(b_, 0);
        const tile drawn = tile_load(index_, TILE_SCALAR, TILE_AT(block));
        const tile most = tile_int(b_, 3), wide = tile_cast(drawn, TILE_I64);
        const tile limit = tile_expr("mod(wide, most)", wide, most);
        tile_loop loop = tile_while_begin(b_, tile_expr("limit > zero", limit, zero),
                                          tile_int(b_, 4), TILE_LIST(x));
        pool_.push_back(loop.carried[0]);
        body(depth_ + 1);
        const tile next = within(as(any(), row()), -1, 1), done = loop.index;
        tile_while_end(&loop, tile_expr("done + 1 < limit", done, limit), TILE_LIST(next));
        pool_.resize(outside);
        pool_.push_back(loop.carried[0]);
    }
    void stack() {
        note("stack");
        const tile_stack s = tile_stack_create(b_, 1 + choose_->pick(6), TILE_F64);
        const int pushes = 1 + choose_->pick(2);
        for (int k = 0; k < pushes; k++) tile_stack_push(s, as(any(), row()), mask_of(row()));
        if (choose_->chance(2)) pool_.push_back(tile_stack_pop(s, row(), nullptr));
        pool_.push_back(tile_stack_pop_masked(s, mask_of(row()), nullptr));
    }

    tile_builder *b_;
    Choices *choose_;
    Kernel *kernel_;
    int64_t length_ = 4;
    int depth_ = 0;
    std::vector<tile_param> param_;
    tile_param index_ = {};
    std::vector<tile> pool_;
};

} // namespace

Kernel make_kernel(tile_context *ctx, const std::string &name, Choices *choose) {
    Kernel kernel;
    tile_builder *b = tile_kernel_begin(ctx, name.c_str());
    Maker(b, choose, &kernel).make();
    if (tile_kernel_end(b, &kernel.kernel))
        throw std::runtime_error(std::string("a kernel is refused: ") + tile_last_error());
    return kernel;
}

} // namespace random_program
