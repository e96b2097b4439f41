/* memory_grad_test.cc: loads, stores and atomic additions in kernels: values, gradients, errors. */
#include <cmath>

#include "tests/kernel_run.h"

namespace {

typedef std::vector<double> Reals;
typedef const std::vector<tile_param> Params;

Reals counting(size_t n, double first = 1) {
    Reals v(n);
    for (size_t k = 0; k < n; k++) v[k] = first + static_cast<double>(k);
    return v;
}

tile all_of(tile_param p, const Ints &shape) {
    return tile_load(p, shape_of(shape), TILE_AT_ZERO);
}

TEST(MemoryGrad, StoreIndexedWritesTheEvenRows) {
    Field x({2, 4}, counting(8)), y = Field::zeros({4, 4});
    Field rows = Field::of_integers({2}, {0, 2});
    KernelRun run({&x, &y, &rows}, [](tile_builder *, Params &p) {
        tile_store_indexed(p[1], all_of(p[2], {2}), all_of(p[0], {2, 4}), TILE_AT_ZERO, 0);
    });
    y.grad = counting(16);
    run.backward({1});
    EXPECT_EQ((Reals{1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0}), y.value);
    EXPECT_EQ((Reals{1, 2, 3, 4, 9, 10, 11, 12}), x.grad);
    EXPECT_EQ((Reals{0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0, 13, 14, 15, 16}), y.grad);
}

TEST(MemoryGrad, AtomicAddIndexedAddsToTheEvenRows) {
    Field x({2, 4}, counting(8)), y({4, 4}, counting(16, 0)), previous = Field::zeros({2, 4});
    Field rows = Field::of_integers({2}, {0, 2});
    KernelRun run({&x, &y, &previous, &rows}, [](tile_builder *, Params &p) {
        const tile t = all_of(p[0], {2, 4}), at = all_of(p[3], {2});
        tile_store(p[2], tile_atomic_add_indexed(p[1], at, t, TILE_AT_ZERO, 0), TILE_AT_ZERO);
    });
    y.grad = counting(16);
    previous.grad = counting(8, 100); /* previous values are constants: this goes nowhere */
    run.backward({1});
    EXPECT_EQ((Reals{1, 3, 5, 7, 4, 5, 6, 7, 13, 15, 17, 19, 12, 13, 14, 15}), y.value);
    EXPECT_EQ((Reals{0, 1, 2, 3, 8, 9, 10, 11}), previous.value);
    EXPECT_EQ((Reals{1, 2, 3, 4, 9, 10, 11, 12}), x.grad);
    EXPECT_EQ(counting(16), y.grad);
}

TEST(MemoryGrad, TheWinnerOfDuplicatesGetsTheGradientAlone) {
    /* elements 0, 2, 3 go to place 1: 3 stays; element 1 goes to place 0, element 4 nowhere */
    Field t({5}, {10, 20, 30, 40, 50}), y({3}, {7, 8, 9}),
        at = Field::of_integers({5}, {1, 0, 1, 1, -1});
    KernelRun run({&t, &y, &at}, [](tile_builder *, Params &p) {
        tile_store_indexed(p[1], all_of(p[2], {5}), all_of(p[0], {5}), TILE_AT_ZERO, 0);
    });
    y.grad = {1, 2, 3};
    t.grad = {100, 100, 100, 100, 100}; /* added to */
    run.backward({1});
    EXPECT_EQ((Reals{20, 40, 9}), y.value);
    EXPECT_EQ((Reals{100, 101, 100, 102, 100}), t.grad);
    EXPECT_EQ((Reals{0, 0, 3}), y.grad);
}

TEST(MemoryGrad, LoadedPlacesAddUpAndTheOutsideGetsNothing) {
    Field a({3}, {1, 2, 3}), y = Field::zeros({4}), at = Field::of_integers({4}, {2, 0, 2, 5});
    KernelRun run({&a, &y, &at}, [](tile_builder *, Params &p) {
        const tile t =
            tile_load_indexed_padded(p[0], all_of(p[2], {4}), TILE_SHAPE(4), TILE_AT_ZERO, 0, -1.5);
        tile_store(p[1], t, TILE_AT_ZERO);
    });
    y.grad = {1, 2, 4, INFINITY};
    run.backward({1});
    EXPECT_EQ((Reals{3, 1, 3, -1.5}), y.value);
    EXPECT_EQ((Reals{2, 0, 5}), a.grad);
}

TEST(MemoryGrad, AnUpstreamInfinityOutsideShowsNowhere) {
    /* blocks of 4 on an array of 6: y has 8 places */
    Field a({6}, counting(6)), y = Field::zeros({8});
    KernelRun run({&a, &y}, [](tile_builder *b, Params &p) {
        const tile_offset at = TILE_AT(tile_block_start(b, 0, 4));
        tile_store(p[1], tile_load_padded(p[0], TILE_SHAPE(4), at, 9), at);
    });
    y.grad = {1, 2, 3, 4, 5, 6, INFINITY, NAN};
    run.backward({2});
    EXPECT_EQ((Reals{1, 2, 3, 4, 5, 6, 9, 9}), y.value);
    EXPECT_EQ(counting(6), a.grad);
}

TEST(MemoryGrad, AtomicAddKeepsTheArraysGradient) {
    /* y[1:4] += t, twice from two blocks: dt = 2 dy */
    Field t({3}, {1, 2, 3}), y({5}, {10, 20, 30, 40, 50});
    KernelRun run({&t, &y}, [](tile_builder *, Params &p) {
        tile_atomic_add(p[1], all_of(p[0], {3}), TILE_SHIFT(TILE_AT_ZERO, 1));
    });
    y.grad = counting(5);
    run.backward({2});
    EXPECT_EQ((Reals{10, 22, 34, 46, 50}), y.value);
    EXPECT_EQ((Reals{4, 6, 8}), t.grad);
    EXPECT_EQ(counting(5), y.grad);
}

TEST(MemoryGrad, OneElementIsLoadedAndStoredAsARankZeroTile) {
    Field a({2, 3}, counting(6)), y = Field::zeros({4});
    KernelRun run({&a, &y}, [](tile_builder *b, Params &p) {
        const tile one = tile_load(p[0], TILE_SCALAR, TILE_SHIFT(TILE_AT_ZERO, 1, 1));
        tile_store(p[1], tile_expr("one * one", one), TILE_AT(tile_int(b, 2)));
    });
    y.grad = counting(4);
    run.backward({1});
    EXPECT_EQ((Reals{0, 0, 25, 0}), y.value);
    EXPECT_EQ((Reals{0, 0, 0, 0, 30, 0}), a.grad); /* 2 * 5 * dy[2] */
    EXPECT_EQ((Reals{1, 2, 0, 4}), y.grad);
}

TEST(MemoryGrad, AStoreThatIsOverwrittenGetsNoGradient) {
    Field t({2}, {1, 2}), y = Field::zeros({2});
    KernelRun run({&t, &y}, [](tile_builder *, Params &p) {
        const tile x = all_of(p[0], {2});
        tile_store(p[1], tile_expr("5 * x", x), TILE_AT_ZERO);
        tile_store(p[1], tile_expr("3 * x", x), TILE_AT_ZERO);
    });
    y.grad = {1, 10};
    run.backward({1});
    EXPECT_EQ((Reals{3, 6}), y.value);
    EXPECT_EQ((Reals{3, 30}), t.grad);
}

/* t = a[w], a[w] = 0; t is stored to y: da = dy at w, what was there goes; else kept */
tile emit_take(const char *op, tile_param a, const tile *indices, tile_shape shape) {
    tile_emission e = {};
    e.op = tile_op_find(op);
    e.n_in = indices ? 1 : 0;
    if (indices) e.in[0] = *indices;
    e.array = a;
    e.has_shape = true;
    e.shape = shape;
    return tile_emit(a.builder, &e);
}

TEST(MemoryGrad, TakeGivesItsGradientToThePlacesItTook) {
    Field a({3}, {1, 2, 3}), y = Field::zeros({2});
    KernelRun run({&a, &y}, [](tile_builder *, Params &p) {
        tile_store(p[1], emit_take("take", p[0], nullptr, TILE_SHAPE(2)), TILE_AT_ZERO);
    });
    a.grad = {10, 20, 30};
    y.grad = {5, 6};
    run.backward({1});
    EXPECT_EQ((Reals{0, 0, 3}), a.value);
    EXPECT_EQ((Reals{1, 2}), y.value);
    EXPECT_EQ((Reals{5, 6, 30}), a.grad);
}

TEST(MemoryGrad, TakeIndexedGivesTheGradientOfTheWinner) {
    Field a({3}, {1, 2, 3}), y = Field::zeros({4}), at = Field::of_integers({4}, {2, 0, 2, -1});
    KernelRun run({&a, &y, &at}, [](tile_builder *, Params &p) {
        const tile indices = all_of(p[2], {4});
        tile_store(p[1], emit_take("take_indexed", p[0], &indices, TILE_SHAPE(4)), TILE_AT_ZERO);
    });
    a.grad = {10, 20, 30};
    y.grad = {5, 6, 7, 8};
    run.backward({1});
    EXPECT_EQ((Reals{0, 2, 0}), a.value);
    EXPECT_EQ((Reals{0, 1, 3, 0}), y.value);
    EXPECT_EQ((Reals{6, 20, 7}), a.grad);
}

TEST(MemoryGrad, TakeWithoutAnUseClearsTheGradient) {
    Field a({3}, {1, 2, 3});
    KernelRun run({&a}, [](tile_builder *, Params &p) {
        emit_take("take", p[0], nullptr, TILE_SHAPE(2));
    });
    a.grad = {10, 20, 30};
    run.backward({1});
    EXPECT_EQ((Reals{0, 0, 30}), a.grad);
}

/* p[0] is a float64 array of rank 2, p[1] an int64 array of rank 1. */
void expect_error(tile_status want, const std::string &part,
                  const std::function<void(tile_builder *, Params &)> &build) {
    Field a = Field::zeros({3, 4}), n = Field::of_integers({5}, Ints(5));
    KernelRun run({&a, &n}, build);
    EXPECT_EQ(want, run.status);
    EXPECT_NE(std::string::npos, run.message.find(part)) << run.message;
    EXPECT_NE(std::string::npos, run.message.find("memory_grad_test.cc")) << run.message;
}

TEST(MemoryGrad, ErrorsNameTheCallAndThePlace) {
    expect_error(TILE_E_SHAPE, "load: the tile is [3], the array has rank 2",
                 [](tile_builder *, Params &p) { tile_load(p[0], TILE_SHAPE(3), TILE_AT_ZERO); });
    expect_error(TILE_E_ARGUMENT, "tile_load_padded: pad is 0.5, which int64 does not hold",
                 [](tile_builder *, Params &p) {
                     tile_load_padded(p[1], TILE_SHAPE(3), TILE_AT_ZERO, 0.5);
                 });
    expect_error(TILE_E_DTYPE, "store: the tile is float32, the array is float64",
                 [](tile_builder *b, Params &p) {
                     tile_store(p[0], tile_zeros(b, TILE_F32, TILE_SHAPE(1, 1)), TILE_AT_ZERO);
                 });
    expect_error(TILE_E_SHAPE, "store: the tile is [4], the array has rank 2",
                 [](tile_builder *b, Params &p) {
                     tile_store(p[0], tile_zeros(b, TILE_F64, TILE_SHAPE(4)), TILE_AT_ZERO);
                 });
    expect_error(TILE_E_ARGUMENT, "load_indexed: axis is 2, the array has rank 2",
                 [](tile_builder *, Params &p) {
                     tile_load_indexed(p[0], all_of(p[1], {3}), TILE_SHAPE(3, 4), TILE_AT_ZERO, 2);
                 });
    expect_error(TILE_E_SHAPE, "store_indexed: indices are [2], the tile is [3, 4]",
                 [](tile_builder *b, Params &p) {
                     tile_store_indexed(p[0], all_of(p[1], {2}),
                                        tile_zeros(b, TILE_F64, TILE_SHAPE(3, 4)), TILE_AT_ZERO, 0);
                 });
    expect_error(TILE_E_DTYPE, "tile_atomic_add_indexed: indices are float64",
                 [](tile_builder *b, Params &p) {
                     const tile t = tile_zeros(b, TILE_F64, TILE_SHAPE(3, 4));
                     const tile at = tile_zeros(b, TILE_F64, TILE_SHAPE(3));
                     tile_atomic_add_indexed(p[0], at, t, TILE_AT_ZERO, 0);
                 });
    expect_error(TILE_E_SHAPE, "load_indexed: the tile is [], the array has rank 2",
                 [](tile_builder *, Params &p) {
                     tile_load_indexed(p[0], all_of(p[1], {1}), TILE_SCALAR, TILE_AT_ZERO, 0);
                 });
}

TEST(MemoryGrad, IndicesMayBeInt32) {
    Field a({3}, {1, 2, 3}), y = Field::zeros({2});
    KernelRun run({&a, &y}, [](tile_builder *b, Params &p) {
        const tile at = tile_iota(b, TILE_I32, TILE_SHAPE(2), 0, tile_int(b, 1));
        tile_store(p[1], tile_load_indexed(p[0], at, TILE_SHAPE(2), TILE_AT_ZERO, 0), TILE_AT_ZERO);
    });
    run.forward({1});
    EXPECT_EQ((Reals{2, 3}), y.value);
}

} // namespace
