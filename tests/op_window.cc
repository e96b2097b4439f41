/* op_window.cc: test problems of ops that read or write a window of an array. */
#include "tests/op_window.h"

#include <cmath>

namespace op_test {

namespace {

/* Block index times step plus shift, along each axis; tile of rank 0: one element. */
struct Window {
    std::string name;
    tile_shape array, block;
    Ints step, shift;
    tile_grid grid = TILE_GRID(1);
    int axis = -1; /* indexed */
    Ints indices;  /* a piece of block.extent[axis] for each block along grid axis 0 */
    int64_t pad = 0;
};

tile_offset offset_of(tile_builder *b, const Ints &step, const Ints &shift) {
    tile_offset at = {};
    at.rank = static_cast<int>(step.size());
    for (int d = 0; d < at.rank; d++) {
        const size_t k = static_cast<size_t>(d);
        at.at[d] = d < TILE_GRID_RANK ? tile_block_start(b, d, step[k]) : tile_int(b, 0);
        at.shift[d] = shift[k];
    }
    return at;
}

bool reads(const tile_op *op) {
    return op->access == TILE_ACCESS_LOAD || op->access == TILE_ACCESS_TAKE;
}

/* The tile that is written, among the inputs: behind the indices. */
int written_input(const tile_op *op) {
    return op->indexed ? 1 : 0;
}

/* Whether a mask follows: it chooses what is taken or stored. */
bool has_mask(const tile_op *op) {
    return op->n_in > (op->indexed ? 1 : 0) + (reads(op) ? 0 : 1);
}

/* Two elements of three, others in the next block. */
tile mask_of(tile_builder *b, tile_shape shape) {
    tile n = tile_block_index(b, 0);
    for (int d = 0; d < shape.rank; d++)
        n = tile_add(n, tile_iota(b, TILE_I64, shape, d, tile_int(b, 0)));
    return tile_expr("mod(n, 3) != 1", n);
}

/* An op that has no float kernel is tried on int64. */
tile_dtype type_of(const tile_op *op) {
    return op->run[TILE_F64] ? kReal : TILE_I64;
}

/* The array of pieces: one for each block, along a first axis of its own. */
tile_shape pieces_shape(const Window &w) {
    tile_shape shape = {};
    shape.rank = w.block.rank + 1;
    shape.extent[0] = w.grid.blocks[0] * w.grid.blocks[1] * w.grid.blocks[2];
    for (int d = 0; d < w.block.rank; d++) shape.extent[d + 1] = w.block.extent[d];
    return shape;
}

tile_offset piece_of(tile_builder *b, const Window &w) {
    tile_offset at = {};
    at.rank = w.block.rank + 1;
    tile number = tile_block_index(b, 0);
    for (int d = 1; d < TILE_GRID_RANK; d++) {
        const tile i = tile_block_index(b, d), n = tile_grid_size(b, d);
        number = tile_expr("number * n + i", number, n, i);
    }
    for (int d = 0; d < at.rank; d++) at.at[d] = d ? tile_int(b, 0) : number;
    return at;
}

tile_shape piece_shape(const Window &w) {
    tile_shape shape = pieces_shape(w);
    shape.extent[0] = 1;
    return shape;
}

void draw(Field *f, Random *random) {
    for (size_t i = 0; !f->real() && i < f->count(); i++)
        f->integer.push_back(static_cast<int64_t>((*random)()));
    if (!f->real()) return;
    for (size_t i = 0; i < f->count(); i++) f->value.push_back(uniform(random, -2, 2));
}

/* Values that are compared with one another: differences must not pass a tie. */
void draw_apart(Field *a, Field *t, Random *random) {
    const Reals all = distinct(random, a->count() + t->count(), -2, 2);
    const int64_t n = static_cast<int64_t>(a->count());
    a->value.assign(all.begin(), all.begin() + n);
    t->value.assign(all.begin() + n, all.end());
}

/* Reading ops: y = op(a), stored. Writing ops: op of t on a; what it gives back is stored. */
Problem window_problem(const tile_op *op, const Window &w) {
    Problem p;
    p.op = op;
    p.name = std::string(op->name) + "/" + w.name;
    p.grid = w.grid;
    Random random = random_for(p.name);
    Field a, other, indices;
    a.name = "array";
    a.shape = w.array;
    a.role = op->access == TILE_ACCESS_LOAD ? Role::kInput : Role::kState;
    a.grad = op->adjoint ? TILE_GRAD_FULL : TILE_GRAD_ABSENT;
    a.dtype = type_of(op);
    draw(&a, &random);
    other.name = reads(op) ? "y" : "t";
    other.shape = pieces_shape(w);
    other.role = reads(op) ? Role::kResult : Role::kInput;
    other.dtype = type_of(op);
    if (!reads(op)) other.grad = op->grad[written_input(op)];
    if (!reads(op)) draw(&other, &random);
    if (op->access == TILE_ACCESS_UPDATE && a.real()) draw_apart(&a, &other, &random);
    p.field.push_back(a);
    p.field.push_back(other);
    if (op->indexed) {
        indices.name = "indices";
        indices.dtype = TILE_I64;
        indices.shape = TILE_SHAPE(w.indices.size());
        indices.integer = w.indices;
        p.field.push_back(indices);
    }
    if (!reads(op) && op->n_out) {
        Field previous = other;
        previous.name = "previous";
        previous.role = Role::kConstant;
        previous.value.clear();
        previous.integer.clear();
        p.field.push_back(previous);
    }
    double elements = static_cast<double>(other.count());
    p.terms = kTerms + elements;

    p.build = [=](tile_builder *b, tile_dtype real, const std::vector<tile_param> &param) {
        tile_emission e = {};
        e.op = op;
        e.array = param[0];
        e.at = offset_of(b, w.step, w.shift);
        if (op->indexed) {
            e.attrs.n[0] = w.axis;
            const int64_t length = w.block.extent[w.axis];
            e.in[e.n_in++] =
                tile_load(param[2], TILE_SHAPE(length), TILE_AT(tile_block_start(b, 0, length)));
        }
        if (reads(op)) {
            e.has_shape = true;
            e.shape = w.block;
            if (op->access == TILE_ACCESS_LOAD) {
                e.attrs.real = tile_is_float(real) ? static_cast<double>(w.pad) : 0;
                e.attrs.n[1] = tile_is_float(real) ? 0 : w.pad;
            }
        } else {
            e.in[e.n_in++] =
                tile_reshape(tile_load(param[1], piece_shape(w), piece_of(b, w)), w.block);
        }
        if (has_mask(op)) e.in[e.n_in++] = mask_of(b, w.block);
        const tile t = tile_emit(b, &e);
        const tile_param to = reads(op) ? param[1] : param.back();
        if (op->n_out) tile_store(to, tile_reshape(t, piece_shape(w)), piece_of(b, w));
    };
    return p;
}

/* Kinds of windows. */

struct Size {
    tile_shape array, block;
};
const Size kSizes[] = {
    {TILE_SHAPE(7), TILE_SHAPE(3)},
    {TILE_SHAPE(5, 7), TILE_SHAPE(3, 4)},
    {TILE_SHAPE(3, 5, 4), TILE_SHAPE(2, 3, 2)},
    {TILE_SHAPE(2, 3, 3, 5), TILE_SHAPE(1, 2, 2, 3)},
};

Ints extents(const tile_shape &s) {
    return Ints(s.extent, s.extent + s.rank);
}

std::vector<Window> plain_windows(const Size &s) {
    const size_t rank = static_cast<size_t>(s.array.rank), last = rank - 1;
    const Ints block = extents(s.block), array = extents(s.array), zero(rank, 0);
    const std::string prefix = "rank" + std::to_string(rank) + "_";
    std::vector<Window> all;
    const auto add = [&](const std::string &name, const Ints &shift) {
        Window w;
        w.name = prefix + name;
        w.array = s.array;
        w.block = s.block;
        w.step = block;
        w.shift = shift;
        w.pad = all.size() % 2;
        all.push_back(w);
    };
    Ints shift = zero;
    add("inside", zero);
    shift[last] = -1;
    add("low", shift);
    shift = zero;
    shift[0] = array[0] - block[0] + (block[0] > 1);
    add("high", shift);
    shift[last] = rank > 1 ? -1 : shift[last];
    add("corner", shift);
    shift = zero;
    shift[last] = -block[last];
    add("outside_low", shift);
    shift = zero;
    shift[0] = array[0];
    add("outside_high", shift);
    shift[0] = INT64_MAX;
    add("far_high", shift);
    shift[0] = INT64_MIN;
    add("far_low", shift);
    add("both", Ints(rank, -1));
    for (size_t d = 0; d < rank; d++) all.back().block.extent[d] = array[d] + 3;
    add("blocks", zero);
    all.back().shift[0] = -1;
    for (size_t d = 0; d < rank && d < 3; d++) all.back().grid.blocks[d] = 2;
    add("overlap", zero);
    all.back().step = Ints(rank, 1);
    for (size_t d = 0; d < rank && d < 3; d++) all.back().grid.blocks[d] = d ? 2 : 3;
    add("one_place", zero);
    all.back().step = zero;
    all.back().grid.blocks[0] = 3;
    return all;
}

/* One element of an array, by a tile of rank 0. */
Window element_window(const Size &s) {
    Window w;
    w.name = "rank" + std::to_string(s.array.rank) + "_element";
    w.array = s.array;
    w.block = TILE_SCALAR;
    w.step = Ints(static_cast<size_t>(s.array.rank), 1);
    w.shift = Ints(static_cast<size_t>(s.array.rank), 1);
    w.grid = TILE_GRID(2);
    return w;
}

std::vector<Window> indexed_windows(const Size &s) {
    enum { LENGTH = 5 };
    struct Choice {
        const char *name;
        Ints indices;
        int64_t shift;
    };
    std::vector<Window> all;
    for (int axis = 0; axis < s.array.rank; axis++) {
        const int64_t n = s.array.extent[axis];
        const Choice choices[] = {
            {"distinct", {n - 1, 0, -1, 1, n}, 0},
            {"repeated", {1, 0, 1, 1, 0}, 0},
            {"shifted", {-1, -2, n - 2, n - 1, 0}, 1},
            {"extreme", {INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 0}, 1},
            {"extreme_low", {INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 2}, -1},
            {"same", {1, 1, 1, 1, 1}, 0},
            {"far", {INT64_MIN, -1, 0, 1, INT64_MIN + 1}, INT64_MAX},
            {"far_low", {INT64_MAX, 0, -1, INT64_MAX - 1, 1}, INT64_MIN},
        };
        for (const Choice &choice : choices) {
            Window w;
            w.name = "rank" + std::to_string(s.array.rank) + "_axis" + std::to_string(axis) + "_" +
                     choice.name;
            w.array = s.array;
            w.block = s.block;
            w.block.extent[axis] = LENGTH;
            w.axis = axis;
            w.step = extents(s.block);
            w.shift = Ints(w.step.size(), 0);
            w.shift[static_cast<size_t>(axis)] = choice.shift;
            w.step[static_cast<size_t>(axis)] = 0;
            w.indices = choice.indices;
            w.pad = all.size() % 2;
            all.push_back(w);
            /* Two blocks with indices of their own. */
            if (choice.shift) continue;
            all.back().grid.blocks[0] = 2;
            for (int64_t i : choice.indices) all.back().indices.push_back(n - 1 - i);
            for (int64_t d = 1; d < s.array.rank && d < 3; d++) all.back().grid.blocks[d] = 2;
        }
    }
    return all;
}

} // namespace

std::vector<Problem> window_problems(const tile_op *op) {
    std::vector<Problem> all;
    for (const Size &s : kSizes) {
        for (const Window &w : op->indexed ? indexed_windows(s) : plain_windows(s))
            all.push_back(window_problem(op, w));
        if (!op->indexed) all.push_back(window_problem(op, element_window(s)));
    }
    return all;
}

/* Every place is met by many blocks, in sums that depend on their order. */
std::vector<Problem> large_window_problems(const tile_op *op) {
    enum { BLOCKS = 2000, LENGTH = 64 };
    Window w;
    w.name = "large";
    w.array = TILE_SHAPE(501);
    w.block = TILE_SHAPE(LENGTH);
    w.step = {0};
    w.shift = {0};
    w.grid = TILE_GRID(BLOCKS);
    if (op->indexed) {
        Random random = random_for(std::string(op->name) + "/large");
        w.axis = 0;
        for (int i = 0; i < BLOCKS * LENGTH; i++)
            w.indices.push_back(static_cast<int64_t>(random() % 503) - 1);
        return {window_problem(op, w)};
    }
    std::vector<Problem> all;
    w.step = {1};
    w.array = TILE_SHAPE(BLOCKS);
    all.push_back(window_problem(op, w));
    w.name = "large_one_place";
    w.step = {0};
    all.push_back(window_problem(op, w));
    w.name = "large_rank2";
    w.array = TILE_SHAPE(95, 130);
    w.block = TILE_SHAPE(8, 16);
    w.step = {3, 5};
    w.shift = {-2, -3};
    w.grid = TILE_GRID(33, 28);
    all.push_back(window_problem(op, w));
    return all;
}

std::vector<Problem> special_window_problems(const tile_op *op) {
    std::vector<Problem> all = window_problems(op);
    for (Problem &p : all) {
        p.name += "/special";
        Random random = random_for(p.name);
        for (Field &f : p.field)
            for (double &x : f.value)
                if (random() % 3 == 0) x = random() % 2 ? NAN : -INFINITY;
    }
    return all;
}

} // namespace op_test
