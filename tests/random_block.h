/* random_block.h: random kernels that run block by block: tiles of many shapes and types, moved,
 * combined, summed, in loops, between loads and stores that meet. */
#ifndef TILE_TESTS_RANDOM_BLOCK_H
#define TILE_TESTS_RANDOM_BLOCK_H

#include <limits>

#include "tests/random_field.h"

namespace field_test {

/* The arrays of a run; the same seed gives the same program on them. */
struct RandomBlock {
    explicit RandomBlock(unsigned s) : seed(s) {
        std::mt19937 random(s);
        const double special[] = {0.0, -0.0, 1e30, -1e30, 1e-30, NAN, INFINITY, -INFINITY};
        const auto real = [&](int64_t) {
            const unsigned r = static_cast<unsigned>(random());
            if (s % 3 == 0 && r % 11 == 0) return special[r / 11 % 8];
            return static_cast<double>(r % 4001) / 1000 - 2;
        };
        a.fill(real);
        m.fill(real);
        d.fill(real);
        i.fill([&](int64_t) { return static_cast<double>(random() % 41) - 20; });
        for (Memory *out : {&wide, &sums}) out->fill([](int64_t) { return 0; });
    }
    std::vector<Memory *> arrays() {
        return {&a, &m, &d, &i, &wide, &sums};
    }
    enum { BLOCKS = 5, WIDE = 4000 };
    unsigned seed;
    Memory a{TILE_F32, {611}}, m{TILE_F32, {40, 150}}, d{TILE_F64, {300}}, i{TILE_I32, {257}};
    Memory wide{TILE_F64, {BLOCKS * WIDE}}, sums{TILE_F32, {700}};
};

class BlockBuilder {
  public:
    BlockBuilder(tile_builder *builder, unsigned seed) : b(builder), random(seed + 1000) {}

    void build() {
        const char *names[] = {"a", "m", "d", "i", "wide", "sums"};
        const tile_dtype types[] = {TILE_F32, TILE_F32, TILE_F64, TILE_I32, TILE_F64, TILE_F32};
        for (int k = 0; k < 6; k++)
            params.push_back(tile_array_param(b, names[k], types[k], k == 1 ? 2 : 1));
        A = std::vector<int64_t>{1, 2, 8, 33}[pick(4)];
        B = std::vector<int64_t>{3, 16, 17, 40, 100}[pick(5)];
        C = std::vector<int64_t>{1, 2, 5}[pick(3)];
        for (int k = 0; k < 3; k++) pool.push_back(load());
        const int n = 4 + static_cast<int>(pick(12));
        for (int k = 0; k < n; k++) statement();
        for (int k = 0; k < 4; k++) store(any());
    }

  private:
    uint64_t pick(int64_t n) {
        return random() % static_cast<uint64_t>(n);
    }
    tile any() {
        return pool[pool.size() - 1 - pick(static_cast<int64_t>(std::min<size_t>(pool.size(), 6)))];
    }
    tile any_real() {
        const tile t = any();
        const tile_dtype dtype = tile_dtype_of(t);
        return dtype == TILE_F32 || dtype == TILE_F64 ? t : tile_cast(t, TILE_F32);
    }
    tile_shape shape() {
        switch (pick(14)) {
        case 0: return TILE_SHAPE(B);
        case 1: return TILE_SHAPE(A, 1);
        case 2: return TILE_SHAPE(1, B);
        case 3: return TILE_SHAPE(A);
        case 4: return TILE_SHAPE(A * B);
        case 5: return TILE_SHAPE(C, A, B);
        case 6: return TILE_SHAPE(C, 1, B);
        case 7: return TILE_SHAPE(C * A, B);
        case 8: return TILE_SHAPE(B, A);
        case 9: return TILE_SCALAR;
        case 10: return TILE_SHAPE(A, B, 1);
        default: return TILE_SHAPE(A, B);
        }
    }
    static bool spreads(tile_shape from, tile_shape to) {
        if (from.rank > to.rank) return false;
        for (int k = 1; k <= from.rank; k++) {
            const int64_t n = from.extent[from.rank - k];
            if (n != 1 && n != to.extent[to.rank - k]) return false;
        }
        return true;
    }
    tile fit(tile t, tile_shape to) {
        const tile_shape from = tile_shape_of_tile(t);
        if (tile_shape_equal(from, to)) return t;
        if (spreads(from, to)) return tile_broadcast(t, to);
        if (tile_shape_count(from) == tile_shape_count(to)) return tile_reshape(t, to);
        if (from.rank == to.rank) return tile_view(t, place(from.rank), to);
        return tile_broadcast(tile_sum(number(t), TILE_ALL_AXES), to);
    }
    /* bool has no sum. */
    tile number(tile t) {
        return tile_dtype_of(t) == TILE_BOOL ? tile_cast(t, TILE_I32) : t;
    }
    tile_offset place(int rank) {
        tile_offset at = {};
        at.rank = rank;
        const bool moves = pick(4) == 0;
        for (int k = 0; k < rank; k++) {
            at.at[k] = moves ? tile_block_index(b, 0) : tile_int(b, 0);
            at.shift[k] = pick(3) ? 0 : static_cast<int64_t>(pick(4)) - 1;
        }
        return at;
    }
    tile load() {
        const tile first = tile_block_start(b, 0, 7), zero = tile_int(b, static_cast<int>(pick(9)));
        switch (pick(5)) {
        case 0: return tile_load(params[0], TILE_SHAPE(B), TILE_AT(first));
        case 1: return tile_load(params[1], TILE_SHAPE(A, B), TILE_AT(first, zero));
        case 2: return tile_load(params[2], TILE_SHAPE(A), TILE_AT(zero));
        case 3: return tile_load_padded(params[3], TILE_SHAPE(B), TILE_AT(first), 3);
        default: return tile_load_padded(params[0], TILE_SHAPE(A * B), TILE_AT(first), 0.5);
        }
    }
    void store(tile t) {
        const int64_t n = tile_shape_count(tile_shape_of_tile(t));
        t = tile_reshape(tile_dtype_of(t) == TILE_F64 ? t : tile_cast(t, TILE_F64), TILE_SHAPE(n));
        const tile start = tile_block_start(b, 0, RandomBlock::WIDE);
        tile_offset at = TILE_AT(start);
        at.shift[0] = written;
        written = (written + n) % 1500;
        tile_store(params[4], t, at);
    }
    /* Every block adds to the same places, or to places of several blocks. */
    void add(tile t) {
        const int64_t n = tile_shape_count(tile_shape_of_tile(t));
        t = tile_reshape(tile_dtype_of(t) == TILE_F32 ? t : tile_cast(t, TILE_F32), TILE_SHAPE(n));
        tile_atomic_add(params[5], t, pick(2) ? TILE_AT_ZERO : TILE_AT(tile_block_start(b, 0, 5)));
    }
    tile elementwise() {
        const tile_shape to = shape();
        tile x = fit(any(), to), y = fit(any(), to);
        if (tile_dtype_of(x) == TILE_BOOL) x = tile_cast(x, TILE_F32);
        if (tile_dtype_of(y) != tile_dtype_of(x)) y = tile_cast(y, tile_dtype_of(x));
        const bool real = tile_is_float(tile_dtype_of(x));
        switch (pick(real ? 10 : 6)) {
        case 0: return tile_add(x, y);
        case 1: return tile_sub(x, y);
        case 2: return tile_mul(x, y);
        case 3: return tile_expr("x < y", x, y);
        case 4: return tile_expr("x > y ? x : y + y", x, y);
        case 5: return tile_max(x, y);
        case 6: return tile_div(x, y);
        case 7: return tile_expr("x * x + y", x, y);
        case 8: return tile_expr("sqrt(abs(x)) - y", x, y);
        default: return tile_expr("sin(x) * exp(-abs(y))", x, y);
        }
    }
    tile reduced() {
        tile t = pick(2) ? any_real() : elementwise();
        if (!tile_is_float(tile_dtype_of(t)) || tile_is_half(tile_dtype_of(t))) t = any_real();
        const int rank = tile_shape_of_tile(t).rank;
        const unsigned axes = rank ? static_cast<unsigned>(pick(1 << rank)) : 0;
        return fold(t, axes);
    }
    tile fold(tile t, unsigned axes) {
        const uint64_t kind = pick(6);
        if (kind == 0) return tile_reduce_max(t, axes);
        if (kind == 1) return tile_reduce_min(t, axes);
        return tile_sum(t, axes);
    }
    /* A tile that is made, and folds of it along rows and columns. */
    void folds() {
        const uint64_t kind = pick(4);
        const tile_shape to = kind == 0   ? TILE_SHAPE(C, A, B)
                              : kind == 1 ? TILE_SHAPE(A, B, 1)
                                          : TILE_SHAPE(A, B);
        const tile u = fit(any_real(), to), v = fit(any_real(), to);
        const tile w = tile_dtype_of(u) == tile_dtype_of(v) ? v : tile_cast(v, tile_dtype_of(u));
        const tile t = tile_expr("u * w - u", u, w);
        const unsigned all = 1u << to.rank;
        for (uint64_t k = pick(3); k < 3; k++)
            pool.push_back(fold(t, static_cast<unsigned>(pick(all))));
        if (pick(2)) pool.push_back(t);
    }
    tile cast() {
        static const tile_dtype to[] = {TILE_F32, TILE_F64,  TILE_I32, TILE_I64,
                                        TILE_F16, TILE_BF16, TILE_U8};
        tile t = any();
        const tile_dtype dtype = to[pick(7)];
        if (tile_is_float(tile_dtype_of(t)) && !tile_is_float(dtype)) return t; /* NaN to integer */
        return tile_dtype_of(t) == dtype ? t : tile_cast(t, dtype);
    }
    void loop() {
        if (deep) return;
        const tile x = any_real();
        const size_t outside = pool.size();
        deep = true;
        tile_loop l = tile_loop_begin(b, tile_int(b, static_cast<int>(pick(4))), TILE_LIST(x));
        pool.push_back(l.carried[0]);
        for (uint64_t k = pick(5); k < 5; k++) statement();
        tile next = fit(any(), tile_shape_of_tile(x));
        if (tile_dtype_of(next) != tile_dtype_of(x)) next = tile_cast(next, tile_dtype_of(x));
        tile_loop_end(&l, TILE_LIST(next));
        deep = false;
        pool.resize(outside);
        pool.push_back(l.carried[0]);
    }
    void repeat() {
        if (deep) return;
        const tile x = any_real(), block = tile_block_index(b, 0), two = tile_int(b, 2);
        const size_t outside = pool.size();
        deep = true;
        tile_loop l =
            tile_while_begin(b, tile_expr("block < two", block, two), tile_int(b, 4), TILE_LIST(x));
        pool.push_back(l.carried[0]);
        for (uint64_t k = pick(4); k < 4; k++) statement();
        tile next = fit(any(), tile_shape_of_tile(x));
        if (tile_dtype_of(next) != tile_dtype_of(x)) next = tile_cast(next, tile_dtype_of(x));
        const tile done = l.index;
        tile_while_end(&l, tile_expr("done + block < two", done, block, two), TILE_LIST(next));
        deep = false;
        pool.resize(outside);
        pool.push_back(l.carried[0]);
    }
    void statement() {
        switch (pick(21)) {
        case 0: pool.push_back(load()); break;
        case 12:
        case 13:
        case 14: folds(); break;
        case 1:
        case 2: pool.push_back(reduced()); break;
        case 3: pool.push_back(fit(any(), shape())); break;
        case 4: pool.push_back(cast()); break;
        case 5: loop(); break;
        case 6: repeat(); break;
        case 7: store(any()); break;
        case 8: add(any()); break;
        case 9: { /* what blocks before and this one wrote */
            const tile at = tile_block_start(b, 0, pick(2) ? int64_t{RandomBlock::WIDE} : 600);
            pool.push_back(tile_load(params[4], TILE_SHAPE(B), TILE_AT(at)));
            break;
        }
        case 10: {
            const tile t = any();
            if (tile_shape_of_tile(t).rank >= 2) pool.push_back(tile_transpose(t));
            break;
        }
        case 11: {
            const tile t = any_real(), u = fit(any_real(), tile_shape_of_tile(t));
            const tile v =
                tile_dtype_of(u) == tile_dtype_of(t) ? u : tile_cast(u, tile_dtype_of(t));
            pool.push_back(tile_select(tile_expr("t < v", t, v), v, t));
            break;
        }
        default: pool.push_back(elementwise()); break;
        }
    }

    tile_builder *b;
    std::mt19937_64 random;
    int64_t A = 1, B = 1, C = 1, written = 0;
    bool deep = false;
    std::vector<tile_param> params;
    std::vector<tile> pool;
};

} // namespace field_test

#endif
