/* shape_test.cc: making and moving tiles: lane functions against a plain loop over coordinates,
 * then the calls and their errors, then gradients. */
#include "tests/kernel_run.h"

namespace {

template <typename T> std::vector<T> counting(int64_t n, int first = 1) {
    std::vector<T> v(static_cast<size_t>(n));
    for (size_t k = 0; k < v.size(); k++)
        v[k] = static_cast<T>((static_cast<int>(k) + first) % 251);
    return v;
}

int64_t number_of(const Ints &shape, const Ints &at) {
    int64_t e = 0;
    for (size_t d = 0; d < shape.size(); d++) e = e * shape[d] + at[d];
    return e;
}

const std::vector<Ints> SHAPES = {{},
                                  {1},
                                  {5},
                                  {40},
                                  {3, 4},
                                  {1, 7},
                                  {7, 1},
                                  {2, 3, 4},
                                  {2, 1, 3, 2},
                                  {2, 3, 1, 2, 2},
                                  {2, 1, 2, 3, 1, 2}};

template <typename T> class ShapeTest : public testing::Test {};
typedef testing::Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                       uint32_t, uint64_t>
    AllTypes;
TYPED_TEST_SUITE(ShapeTest, AllTypes);

TYPED_TEST(ShapeTest, FullAndIota) {
    typedef TypeParam T;
    for (const Ints &shape : SHAPES) {
        const int64_t n = count_of(shape);
        TileCall<T> full;
        full.call.attrs.real = 7;
        full.call.attrs.n[0] = 7;
        expect_bits(std::vector<T>(static_cast<size_t>(n), T(7)), full.run("full", shape), "full");
        for (int64_t mask = 0; mask < 1 << shape.size(); mask++) {
            TileCall<T> iota;
            iota.add({}, {T(3)});
            iota.call.attrs.n[0] = mask;
            std::vector<T> want;
            for (int64_t e = 0; e < n; e++) {
                const Ints at = coordinates(shape, e);
                int64_t number = 0;
                for (size_t d = 0; d < shape.size(); d++)
                    if (mask >> d & 1) number = number * shape[d] + at[d];
                want.push_back(static_cast<T>(3 + number));
            }
            expect_bits(want, iota.run("iota", shape), "iota");
        }
    }
}

TYPED_TEST(ShapeTest, BroadcastRepeatsDimensionsAlignedAtTheLast) {
    typedef TypeParam T;
    for (const Ints &to : SHAPES) {
        /* Every way to set dimensions to 1, every number of leading dimensions left out. */
        for (size_t cut = 0; cut <= to.size(); cut++) {
            for (unsigned ones = 0; ones < 1u << (to.size() - cut); ones++) {
                Ints from(to.begin() + static_cast<long>(cut), to.end());
                for (size_t d = 0; d < from.size(); d++)
                    if (ones >> d & 1u) from[d] = 1;
                const std::vector<T> x = counting<T>(count_of(from));
                std::vector<T> want;
                for (int64_t e = 0; e < count_of(to); e++) {
                    Ints at = coordinates(to, e);
                    at.erase(at.begin(), at.begin() + static_cast<long>(cut));
                    for (size_t d = 0; d < from.size(); d++)
                        if (from[d] == 1) at[d] = 0;
                    want.push_back(x[static_cast<size_t>(number_of(from, at))]);
                }
                TileCall<T> c;
                c.add(from, x);
                expect_bits(want, c.run("broadcast", to), "broadcast");
            }
        }
    }
}

TYPED_TEST(ShapeTest, ReshapeKeepsRowMajorOrder) {
    typedef TypeParam T;
    TileCall<T> c;
    c.add({3, 4}, counting<T>(12));
    expect_bits(counting<T>(12), c.run("reshape", {2, 1, 6}), "reshape");
}

TYPED_TEST(ShapeTest, PermuteByEveryOrder) {
    typedef TypeParam T;
    for (const Ints &shape : SHAPES) {
        if (shape.size() > 4) continue;
        Ints order(shape.size());
        for (size_t d = 0; d < order.size(); d++) order[d] = static_cast<int64_t>(d);
        const std::vector<T> x = counting<T>(count_of(shape));
        do {
            Ints to;
            for (int64_t d : order) to.push_back(shape[static_cast<size_t>(d)]);
            std::vector<T> want;
            for (int64_t e = 0; e < count_of(to); e++) {
                const Ints at = coordinates(to, e);
                Ints from(shape.size());
                for (size_t d = 0; d < order.size(); d++)
                    from[static_cast<size_t>(order[d])] = at[d];
                want.push_back(x[static_cast<size_t>(number_of(shape, from))]);
            }
            TileCall<T> c;
            c.add(shape, x);
            for (size_t d = 0; d < order.size(); d++) c.call.attrs.n[d] = order[d];
            expect_bits(want, c.run("permute", to), "permute");
        } while (std::next_permutation(order.begin(), order.end()));
    }
}

/* Where part, at offset, lies in whole; -1: outside. A rank-0 part is one element. */
int64_t place_in(const Ints &whole, const Ints &part, const Ints &offset, int64_t e) {
    Ints at = part.empty() ? Ints(whole.size(), 0) : coordinates(part, e);
    for (size_t d = 0; d < whole.size(); d++) {
        const __int128 place = static_cast<__int128>(offset[d]) + at[d];
        if (place < 0 || place >= whole[d]) return -1;
        at[d] = static_cast<int64_t>(place);
    }
    return number_of(whole, at);
}

template <typename T>
void view_and_assign(const Ints &whole, const Ints &part, const Ints &offset) {
    const std::vector<T> x = counting<T>(count_of(whole)), src = counting<T>(count_of(part), 100);
    std::vector<T> seen, replaced = x;
    for (size_t e = 0; e < src.size(); e++) {
        const int64_t at = place_in(whole, part, offset, static_cast<int64_t>(e));
        seen.push_back(at >= 0 ? x[static_cast<size_t>(at)] : T(0));
        if (at >= 0) replaced[static_cast<size_t>(at)] = src[e];
    }
    TileCall<T> view, assign;
    view.add(whole, x);
    assign.add(whole, x);
    assign.add(part, src);
    for (size_t d = 0; d < offset.size(); d++) {
        view.call.offset[d] = assign.call.offset[d] = offset[d];
    }
    expect_bits(seen, view.run("view", part), "view");
    expect_bits(replaced, assign.run("assign", whole), "assign");
}

TYPED_TEST(ShapeTest, ViewAndAssignInsideAcrossAndOutside) {
    typedef TypeParam T;
    for (int64_t n : {1, 2, 5, 33})
        for (int64_t size : {1, 3, 40})
            for (int64_t offset : {INT64_MIN, -size, 1 - size, int64_t(-1), int64_t(0), int64_t(1),
                                   n - size, n - 1, n, INT64_MAX})
                view_and_assign<T>({n}, {size}, {offset});
    for (int64_t row : {-2, -1, 0, 1, 3})
        for (int64_t col : {-4, -1, 0, 2, 5}) {
            view_and_assign<T>({3, 5}, {2, 4}, {row, col});
            view_and_assign<T>({3, 5}, {5, 9}, {row, col});
            view_and_assign<T>({3, 5}, {}, {row, col});
            view_and_assign<T>({2, 3, 5}, {1, 2, 4}, {1, row, col});
        }
    view_and_assign<T>({}, {}, {});
}

TYPED_TEST(ShapeTest, ConcatAlongEveryAxis) {
    typedef TypeParam T;
    for (const Ints &shape : SHAPES) {
        for (size_t axis = 0; axis < shape.size(); axis++) {
            Ints other = shape, all = shape;
            other[axis] = 2;
            all[axis] += 2;
            const std::vector<T> a = counting<T>(count_of(shape));
            const std::vector<T> b = counting<T>(count_of(other), 90);
            std::vector<T> want;
            for (int64_t e = 0; e < count_of(all); e++) {
                Ints at = coordinates(all, e);
                const bool first = at[axis] < shape[axis];
                if (!first) at[axis] -= shape[axis];
                want.push_back(first ? a[static_cast<size_t>(number_of(shape, at))]
                                     : b[static_cast<size_t>(number_of(other, at))]);
            }
            TileCall<T> c;
            c.add(shape, a);
            c.add(other, b);
            c.call.attrs.n[0] = static_cast<int64_t>(axis);
            expect_bits(want, c.run("concat", all), "concat");
        }
    }
}

TEST(Shape, IntegersWrapInIota) {
    TileCall<uint8_t> c;
    c.add({}, {254});
    c.call.attrs.n[0] = 1;
    expect_bits<uint8_t>({254, 255, 0, 1}, c.run("iota", {4}), "iota");
}

/* Values, and gradients for upstream gradients 1, 2, 3, ... of the result. */
void expect_program(const std::vector<double> &x, const Ints &x_shape, const Ints &y_shape,
                    const std::function<tile(tile)> &f, const std::vector<double> &y,
                    const std::vector<double> &dx) {
    Field in(x_shape, x), out = Field::zeros(y_shape);
    KernelRun run({&in, &out}, [&](tile_builder *, const std::vector<tile_param> &p) {
        tile_store(p[1], f(tile_load(p[0], shape_of(x_shape), TILE_AT_ZERO)), TILE_AT_ZERO);
    });
    for (size_t k = 0; k < out.grad.size(); k++) out.grad[k] = static_cast<double>(k + 1);
    run.backward({1});
    expect_bits(y, out.value, "y");
    expect_bits(dx, in.grad, "dx");
    expect_bits(std::vector<double>(out.grad.size()), out.grad, "the stored places' gradient");
}

tile_offset shifted(int64_t a, int64_t b) {
    return TILE_SHIFT(TILE_AT_ZERO, a, b);
}

TEST(Shape, ReshapeAndTransposeInAKernel) {
    /* y = x^T: dx[i, j] = dy[j, i] = 1 + 3 j + i */
    expect_program({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 4}, {4, 3},
                   [](tile x) { return tile_transpose(x); },
                   {1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12},
                   {1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12});
    expect_program({1, 2, 3, 4, 5, 6}, {2, 3}, {6},
                   [](tile x) { return tile_reshape(x, TILE_SHAPE(6)); }, {1, 2, 3, 4, 5, 6},
                   {1, 2, 3, 4, 5, 6});
}

TEST(Shape, PermuteInAKernelSendsTheGradientBack) {
    /* y[i, j, k] = x[k, i, j], x is [3, 1, 2]: dx[k, 0, j] = dy[0, j, k] = 1 + 3 j + k */
    expect_program({1, 2, 3, 4, 5, 6}, {3, 1, 2}, {1, 2, 3},
                   [](tile x) { return tile_permute(x, TILE_ORDER(1, 2, 0)); }, {1, 3, 5, 2, 4, 6},
                   {1, 4, 2, 5, 3, 6});
}

TEST(Shape, BroadcastInAKernelSumsTheGradient) {
    /* y = x, x: dx = (1 + 3, 2 + 4); y = x repeated along the row: dx = (1 + 2 + 3, 4 + 5 + 6) */
    expect_program({5, 7}, {2}, {2, 2}, [](tile x) { return tile_broadcast(x, TILE_SHAPE(2, 2)); },
                   {5, 7, 5, 7}, {4, 6});
    expect_program({5, 7}, {2, 1}, {2, 3},
                   [](tile x) { return tile_broadcast(x, TILE_SHAPE(2, 3)); }, {5, 5, 5, 7, 7, 7},
                   {6, 15});
}

TEST(Shape, ViewInAKernelGivesNoGradientToTheOutside) {
    /* rows 1, 2 and columns -1, 0 of [[1, 2], [3, 4]]: [[0, 3], [0, 0]], dy = [[1, 2], [3, 4]] */
    expect_program({1, 2, 3, 4}, {2, 2}, {2, 2},
                   [](tile x) { return tile_view(x, shifted(1, -1), TILE_SHAPE(2, 2)); },
                   {0, 3, 0, 0}, {0, 0, 2, 0});
}

TEST(Shape, ViewAtATile) {
    expect_program({1, 2, 3, 4, 5}, {5}, {2},
                   [](tile x) {
                       const tile at = tile_int(x.builder, 2);
                       return tile_view(x, TILE_SHIFT(TILE_AT(at), 1), TILE_SHAPE(2));
                   },
                   {4, 5}, {0, 0, 0, 1, 2});
}

TEST(Shape, AssignSplitsTheGradient) {
    /* y = x with x[1:3] = 10 x[0:2]: dy = 1, 2, 3, 4; dx = (1 + 20, 0 + 30, 0, 4) */
    expect_program({1, 2, 3, 4}, {4}, {4},
                   [](tile x) {
                       const tile part = tile_view(x, TILE_AT_ZERO, TILE_SHAPE(2));
                       const tile ten = tile_real(x.builder, TILE_F64, 10);
                       return tile_assign(x, tile_expr("part * ten", part, ten),
                                          TILE_SHIFT(TILE_AT_ZERO, 1));
                   },
                   {1, 10, 20, 4}, {21, 30, 0, 4});
}

TEST(Shape, ConcatOfThreeInAKernel) {
    /* y = x, x, x: dx = (1 + 3 + 5, 2 + 4 + 6) */
    expect_program({5, 7}, {2}, {6}, [](tile x) { return tile_concat(TILE_LIST(x, x, x), 0); },
                   {5, 7, 5, 7, 5, 7}, {9, 12});
}

TEST(Shape, IotaPassesTheGradientToItsStart) {
    /* y = start + 0, 1, 2 with start = x: dx = 1 + 2 + 3 */
    expect_program({5}, {1}, {3},
                   [](tile x) {
                       const tile start = tile_reshape(x, TILE_SCALAR);
                       return tile_iota(x.builder, TILE_F64, TILE_SHAPE(3), 0, start);
                   },
                   {5, 6, 7}, {6});
}

TEST(Shape, ErrorsNameTheCallAndBothShapes) {
    expect_error(TILE_E_SHAPE, "reshape: [3, 4] has another number of elements than [5]",
                 [](tile x) { tile_reshape(x, TILE_SHAPE(5)); });
    expect_error(TILE_E_SHAPE, "broadcast: [3, 4] does not broadcast to [4]",
                 [](tile x) { tile_broadcast(x, TILE_SHAPE(4)); });
    expect_error(TILE_E_SHAPE, "view: the part is [2], the tile is [3, 4]",
                 [](tile x) { tile_view(x, TILE_AT_ZERO, TILE_SHAPE(2)); });
    expect_error(TILE_E_ARGUMENT, "permute", [](tile x) { tile_permute(x, TILE_ORDER(1, 1)); });
    expect_error(TILE_E_ARGUMENT, "permute", [](tile x) { tile_permute(x, TILE_ORDER(0)); });
    expect_error(TILE_E_ARGUMENT, "concat: axis is 2",
                 [](tile x) { tile_concat(TILE_LIST(x, x), 2); });
    expect_error(TILE_E_SHAPE, "concat", [](tile x) {
        tile_concat(TILE_LIST(x, tile_zeros(x.builder, TILE_F64, TILE_SHAPE(4, 4))), 1);
    });
    expect_error(TILE_E_DTYPE, "concat", [](tile x) {
        tile_concat(TILE_LIST(x, tile_zeros(x.builder, TILE_F32, TILE_SHAPE(3, 4))), 1);
    });
    expect_error(TILE_E_DTYPE, "assign", [](tile x) {
        tile_assign(x, tile_zeros(x.builder, TILE_F32, TILE_SHAPE(3, 4)), TILE_AT_ZERO);
    });
    expect_error(TILE_E_ARGUMENT, "value is 256, which uint8 does not hold",
                 [](tile x) { tile_full(x.builder, TILE_U8, TILE_SHAPE(2), 256); });
    expect_error(TILE_E_ARGUMENT, "tile_iota: axis is 1", [](tile x) {
        tile_iota(x.builder, TILE_I32, TILE_SHAPE(2), 1, tile_int(x.builder, 0));
    });
}

} // namespace
