/* tape_test.cc: gradients that users of other systems got wrong: overwrites, loops, branches,
 * indices, ties, and the life of a tape. Values are worked by hand. */
#include "tests/tape_fixture.h"

#include <climits>

extern "C" {
#include "core/builder.h"
#include "core/kernel.h"
#include "core/memory.h"
}

namespace {

TEST_F(TapeTest, AnInputChangedAfterItWasUsedKeepsItsOldGradient) {
    /* y = x^2 at 3: 6, whatever x becomes */
    tile_array *x = active({3}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_array *loss = sum(y);
    write(x, {5});
    backward(loss);
    EXPECT_EQ(Reals({6}), grad(x));
    EXPECT_EQ(Reals({5}), read(x)) << "backward restores nothing";
}

TEST_F(TapeTest, AFactorThatWasZeroWhenUsedGivesNoGradientWhenItIsFiveLater) {
    /* z = x f: dx = f = 0 then, df = x = 7 */
    tile_array *x = active({7}), *f = active({0}), *z = zeros(1);
    ASSERT_EQ(TILE_OK, launch(multiply(), x, f, z));
    tile_array *loss = sum(z);
    write(f, {5});
    backward(loss);
    EXPECT_EQ(Reals({0}), grad(x));
    EXPECT_EQ(Reals({7}), grad(f));
}

TEST_F(TapeTest, AddingOneInPlaceHasDerivativeOne) {
    tile_array *a = active({1, 2, 3, 4, 5});
    ASSERT_EQ(TILE_OK, launch(update("add_one", [](tile x) { return tile_expr("x + 1", x); }), a));
    tile_array *loss = sum(a);
    EXPECT_EQ(Reals({20}), read(loss));
    backward(loss);
    EXPECT_EQ(Reals(5, 1.0), grad(a));
}

TEST_F(TapeTest, AFactorThatIsAddedToAfterItsUseCountsAsItWas) {
    /* loss = x b, then b += 100: dx = b = 10 */
    tile_array *x = active({3}), *b = reals(Reals{10}), *y = zeros(1), *more = reals(Reals{100});
    ASSERT_EQ(TILE_OK, launch(multiply(), x, b, y));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, more, b));
    EXPECT_EQ(Reals({110}), read(b));
    backward(sum(y));
    EXPECT_EQ(Reals({10}), grad(x));
}

TEST_F(TapeTest, TheFirstOfTwoWritersGetsNothing) {
    /* y = u^2, then y = v^2: du = 0, dv = 2 v */
    tile_array *u = active({3, 1}), *v = active({4, 5}), *y = zeros(2);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, u, y));
    ASSERT_EQ(TILE_OK, launch(k, v, y));
    backward(sum(y));
    EXPECT_EQ(Reals({0, 0}), grad(u));
    EXPECT_EQ(Reals({8, 10}), grad(v));
}

TEST_F(TapeTest, CopiesOfOneStateAddUpTheirGradients) {
    /* n copies, each times 2 then times 4, averaged: 8 for any n */
    for (int n : {1, 2, 5}) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = active({1.5, -2}), *mean = zeros(2);
        for (int i = 0; i < n; i++) {
            tile_array *copy = zeros(2), *twice = zeros(2);
            ASSERT_EQ(TILE_OK, tape_copy(record, x, copy));
            ASSERT_EQ(TILE_OK, tape_axpy(record, 2, copy, twice));
            ASSERT_EQ(TILE_OK, tape_axpy(record, 4.0 / n, twice, mean));
        }
        backward(sum(mean));
        for (double d : grad(x)) EXPECT_NEAR(8, d, 1e-14) << n;
    }
}

TEST_F(TapeTest, AStoredColumnGivesItsGradientToWhatWasStored) {
    /* a[:, 1] = x, loss = sum of w a: dx = w[:, 1], da = w with column 1 zero */
    tile_array *x = active({7, 8}), *a = active(TILE_SHAPE(2, 3), {1, 2, 3, 4, 5, 6});
    tile_array *w = reals(TILE_SHAPE(2, 3), {1, 2, 3, 4, 5, 6}), *loss = zeros(1);
    tile_kernel *k = kernel("column", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param pa = tile_array_param(b, "a", TILE_F64, 2);
        const tile column =
            tile_reshape(tile_load(px, TILE_SHAPE(2), TILE_AT_ZERO), TILE_SHAPE(2, 1));
        tile_store(pa, column, TILE_AT(tile_int(b, 0), tile_int(b, 1)));
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, a)));
    ASSERT_EQ(TILE_OK, tape_dot(record, w, a, loss));
    EXPECT_EQ(Reals({1 + 14 + 9 + 16 + 40 + 36}), read(loss));
    backward(loss);
    EXPECT_EQ(Reals({2, 5}), grad(x));
    EXPECT_EQ(Reals({1, 0, 3, 4, 0, 6}), grad(a));
}

TEST_F(TapeTest, MultiplyingInPlaceByACosineIsExact) {
    /* x = cos(t) x: dx = cos t, dt = -sin(t) x */
    tile_array *x = active({2}), *t = active({0.5});
    tile_kernel *k = kernel("turn", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param pt = tile_array_param(b, "t", TILE_F64, 1);
        const tile vx = tile_load(px, TILE_SHAPE(1), TILE_AT_ZERO);
        const tile vt = tile_load(pt, TILE_SHAPE(1), TILE_AT_ZERO);
        tile_store(px, tile_expr("cos(vt) * vx", vt, vx), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, t)));
    backward(sum(x));
    EXPECT_NEAR(std::cos(0.5), grad(x)[0], 1e-15);
    EXPECT_NEAR(-2 * std::sin(0.5), grad(t)[0], 1e-15);
}

TEST_F(TapeTest, WhatAKernelStoredAndLoadedAgainCarriesTheGradient) {
    /* a = 2x, b = a + 1 through memory: dx = 2 */
    tile_array *x = active({3, 4}), *a = zeros(2), *b2 = zeros(2);
    tile_kernel *k = kernel("through_memory", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param pa = tile_array_param(b, "a", TILE_F64, 1);
        const tile_param pb = tile_array_param(b, "b", TILE_F64, 1);
        const tile vx = tile_load(px, TILE_SHAPE(2), TILE_AT_ZERO);
        tile_store(pa, tile_expr("2*vx", vx), TILE_AT_ZERO);
        const tile va = tile_load(pa, TILE_SHAPE(2), TILE_AT_ZERO);
        tile_store(pb, tile_expr("va + 1", va), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, a, b2)));
    EXPECT_EQ(Reals({7, 9}), read(b2));
    backward(sum(b2));
    EXPECT_EQ(Reals({2, 2}), grad(x));
}

TEST_F(TapeTest, AnElementMadeOfTheOneBeforePassesTheGradientAlong) {
    /* y[i+1] = y[i] + x for i = 0..3: y[4] = y[0] + 4 x */
    tile_array *x = active({0.5}), *y = active({2, 0, 0, 0, 0});
    tile_kernel *k = kernel("chain", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile vx = tile_load(px, TILE_SCALAR, TILE_AT(tile_int(b, 0)));
        tile_loop loop = tile_loop_begin(b, tile_int(b, 4), TILE_NONE);
        const tile before = tile_load(py, TILE_SCALAR, TILE_AT(loop.index));
        tile_store(py, tile_expr("before + vx", before, vx), TILE_SHIFT(TILE_AT(loop.index), 1));
        tile_loop_end(&loop, TILE_NONE);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, y)));
    EXPECT_EQ(Reals({2, 2.5, 3, 3.5, 4}), read(y));
    tile_array *last = slice(y, {4}, TILE_SHAPE(1));
    backward(sum(last));
    EXPECT_EQ(Reals({4}), grad(x));
    EXPECT_EQ(Reals({1, 0, 0, 0, 0}), grad(y));
}

TEST_F(TapeTest, FillingAPartWithZeroCutsThatPartOnly) {
    /* sum of squares after x[:, 1:3] = 0: 2x, zero in the filled columns */
    tile_array *x = active(TILE_SHAPE(2, 4), {1, 2, 3, 4, 5, 6, 7, 8}), *loss = zeros(1);
    tile_array *middle = slice(x, {0, 1}, TILE_SHAPE(2, 2));
    ASSERT_EQ(TILE_OK, tape_fill(record, middle, 0));
    ASSERT_EQ(TILE_OK, tape_dot(record, x, x, loss));
    EXPECT_EQ(Reals({1 + 16 + 25 + 64}), read(loss));
    backward(loss);
    EXPECT_EQ(Reals({2, 0, 0, 8, 10, 0, 0, 16}), grad(x));
}

TEST_F(TapeTest, AnAccumulatorThatIsZeroedInsideALoopIsExact) {
    /* three times: acc = 0, acc += t x, total += acc: dx = 1 + 2 + 3 */
    tile_array *x = active({2, 3}), *acc = zeros(2), *total = zeros(2);
    for (int t = 1; t <= 3; t++) {
        ASSERT_EQ(TILE_OK, tape_fill(record, acc, 0));
        ASSERT_EQ(TILE_OK, tape_axpy(record, t, x, acc));
        ASSERT_EQ(TILE_OK, tape_axpy(record, 1, acc, total));
    }
    EXPECT_EQ(Reals({12, 18}), read(total));
    backward(sum(total));
    EXPECT_EQ(Reals({6, 6}), grad(x));
}

TEST_F(TapeTest, SquaringInPlaceThreeTimesIsTheEighthPower) {
    /* 8 * 1.1^7 = 15.5897368 */
    tile_array *x = active({1.1});
    tile_kernel *k = square_in_place();
    for (int i = 0; i < 3; i++) ASSERT_EQ(TILE_OK, launch(k, x));
    EXPECT_NEAR(std::pow(1.1, 8), read(x)[0], 1e-14);
    backward(sum(x));
    EXPECT_NEAR(15.5897368, grad(x)[0], 1e-9);
}

TEST_F(TapeTest, SquaringInPlaceInWrappedMemoryIsExactToo) {
    /* the address was handed out, so that the old values must be copied */
    Reals memory = {1.1, 1, 2, 0.5, -1, 3};
    tile_array *x = exposed(&memory);
    ASSERT_EQ(TILE_OK, tile_array_request_grad(x));
    tile_kernel *k = square_in_place();
    for (int i = 0; i < 3; i++) ASSERT_EQ(TILE_OK, launch(k, x));
    EXPECT_EQ(tile_is_remote(ctx) ? 2 : 256, memory[2]);
    EXPECT_EQ(256, read(x)[2]);
    backward(sum(x));
    EXPECT_NEAR(15.5897368, grad(x)[0], 1e-9);
    EXPECT_EQ(8 * 128, grad(x)[2]);
    EXPECT_EQ(-8, grad(x)[4]);
    EXPECT_EQ(256, read(x)[2]) << "backward restores nothing";
}

TEST_F(TapeTest, PingPongBuffersGiveTheGradientOfTheWholePower) {
    /* a -> b -> a -> b by squaring: b = a^8 */
    tile_array *a = active({1.1, 0.5}), *b = zeros(2);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, a, b));
    ASSERT_EQ(TILE_OK, launch(k, b, a));
    ASSERT_EQ(TILE_OK, launch(k, a, b));
    backward(sum(b));
    EXPECT_NEAR(15.5897368, grad(a)[0], 1e-9);
    EXPECT_DOUBLE_EQ(8 / 128.0, grad(a)[1]);
}

TEST_F(TapeTest, ARowOfAnInPlaceStencilSeesOldAndNewNeighbours) {
    /* y[i] = y[i-1] y[i] block by block of one, ascending: y = (2, 6, 30), L = sum:
     * dL/dy0 = 1 + 3 + 15, dL/dy1 = 2 + 10, dL/dy2 = 6 */
    tile_array *y = active({2, 3, 5});
    tile_kernel *k = kernel("products", [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "y", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_block_index(b, 0));
        const tile mine = tile_load(p, TILE_SHAPE(1), at);
        const tile left = tile_load_padded(p, TILE_SHAPE(1), TILE_SHIFT(at, -1), 1);
        tile_store(p, tile_mul(left, mine), at);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(3), TILE_ARGS(y)));
    EXPECT_EQ(Reals({2, 6, 30}), read(y));
    backward(sum(y));
    EXPECT_EQ(Reals({19, 12, 6}), grad(y));
}

TEST_F(TapeTest, AddingToAnArrayThatHasAGradientItselfCountsBoth) {
    /* y += x, L = sum y^2 at x = 3, y = 2: dx = dy = 2 * 5 */
    tile_array *x = active({3}), *y = active({2}), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, x, y));
    ASSERT_EQ(TILE_OK, tape_dot(record, y, y, loss));
    backward(loss);
    EXPECT_EQ(Reals({10}), grad(x));
    EXPECT_EQ(Reals({10}), grad(y));
}

TEST_F(TapeTest, OverlappingViewsOfOneArrayShareItsGradient) {
    /* d = x[1:] - x[:-1], L = sum d^2: 2 (-d0, d0 - d1, d1) with d = (2, 5) */
    tile_array *x = active({1, 3, 8}), *d = zeros(2), *loss = zeros(1);
    tile_array *right = slice(x, {1}, TILE_SHAPE(2)), *left = slice(x, {0}, TILE_SHAPE(2));
    tile_kernel *k = combine("difference", [](tile a, tile b) { return tile_sub(a, b); });
    ASSERT_EQ(TILE_OK, launch(k, right, left, d));
    ASSERT_EQ(TILE_OK, tape_dot(record, d, d, loss));
    backward(loss);
    EXPECT_EQ(Reals({-4, -6, 10}), grad(x));
}

TEST_F(TapeTest, OneArrayBoundToTwoParametersGetsBothParts) {
    /* z = x y with x and y one array: 2x; then z = x y with z the same array too */
    tile_array *x = active({3, 4}), *z = zeros(2);
    tile_kernel *k = multiply();
    ASSERT_EQ(TILE_OK, launch(k, x, x, z));
    backward(sum(z));
    EXPECT_EQ(Reals({6, 8}), grad(x));
    ASSERT_EQ(TILE_OK, tape_reset(record));
    ASSERT_EQ(TILE_OK, tape_zero(record));
    ASSERT_EQ(TILE_OK, tile_array_fill(tile_array_grad(x), 0));
    ASSERT_EQ(TILE_OK, launch(k, x, x, x));
    EXPECT_EQ(Reals({9, 16}), read(x));
    backward(sum(x));
    EXPECT_EQ(Reals({6, 8}), grad(x));
}

TEST_F(TapeTest, AHostWriteBetweenLaunchesIsAConstant) {
    /* u = x^2 at 3; x = 5 by the host; v = x^2: only u depends on what x held first */
    tile_array *x = active({3}), *u = zeros(1), *v = zeros(1);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, x, u));
    write(x, {5});
    ASSERT_EQ(TILE_OK, launch(k, x, v));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, v, u));
    EXPECT_EQ(Reals({34}), read(u));
    backward(sum(u));
    EXPECT_EQ(Reals({6}), grad(x));
}

TEST_F(TapeTest, AHostWriteToAPartCutsThatPart) {
    /* y = x^2, y[1] = 9 by the host, L = sum y^2 = x0^4 + 81 + x2^4 */
    tile_array *x = active({1, 2, 3}), *y = zeros(3), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    write(slice(y, {1}, TILE_SHAPE(1)), {9});
    ASSERT_EQ(TILE_OK, tape_dot(record, y, y, loss));
    EXPECT_EQ(Reals({1 + 81 + 81}), read(loss));
    backward(loss);
    EXPECT_EQ(Reals({4, 0, 108}), grad(x));
}

TEST_F(TapeTest, ALaunchOnNoTapeIsAConstantForTheTape) {
    /* y = x^2, then y = u^2 off the tape, loss = sum y: x has no part in it, z = y + x has */
    tile_array *x = active({3}), *u = reals(Reals{4}), *y = zeros(1), *z = zeros(1);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(u, y)));
    tile_kernel *add = combine("add", [](tile a, tile b) { return tile_add(a, b); });
    ASSERT_EQ(TILE_OK, launch(add, y, x, z));
    EXPECT_EQ(Reals({19}), read(z));
    backward(sum(z));
    EXPECT_EQ(Reals({1}), grad(x));
}

TEST_F(TapeTest, AnArrayThatIsReadOffTheTapeIsNotInUseByTheTape) {
    /* y = u^2 off the tape; u is the tape's only once it uses u itself */
    tile_array *x = active({3}), *u = reals(Reals{4}), *y = zeros(1);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(u, y)));
    EXPECT_EQ(TILE_OK, tile_array_request_grad(u)) << tile_last_error();
    write(u, {5});
    ASSERT_EQ(TILE_OK, launch(k, u, y));
    backward(sum(y));
    EXPECT_EQ(Reals({10}), grad(u));
}

TEST_F(TapeTest, AnOverwriteOffTheTapeKeepsWhatTheTapeNeeds) {
    /* y = x^2 at 3, then x = 9 x off the tape */
    tile_array *x = active({3}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, tape_axpy(nullptr, 8, x, x));
    EXPECT_EQ(Reals({27}), read(x));
    backward(sum(y));
    EXPECT_EQ(Reals({6}), grad(x));
}

TEST_F(TapeTest, TwoTapesOnOneArrayKeepTheirOwnHistories) {
    /* tape 1: y = x^2; tape 2: x = x^2, z = x^2; each has its own derivative by its own first x */
    tile_array *x = active({3}), *y = zeros(1), *z = zeros(1), *loss = zeros(1), *loss2 = zeros(1);
    tile_kernel *k = square();
    tape *second = new_tape();
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
    ASSERT_EQ(TILE_OK, tile_launch(second, square_in_place(), TILE_GRID(1), TILE_ARGS(x)));
    ASSERT_EQ(TILE_OK, tile_launch(second, k, TILE_GRID(1), TILE_ARGS(x, z)));
    ASSERT_EQ(TILE_OK, tape_sum(second, z, loss2));
    EXPECT_EQ(Reals({81}), read(loss2));
    ASSERT_EQ(TILE_OK, tape_backward(record, loss)) << tile_last_error();
    EXPECT_EQ(Reals({6}), grad(x));
    ASSERT_EQ(TILE_OK, tape_zero(second));
    ASSERT_EQ(TILE_OK, tape_backward(second, loss2)) << tile_last_error();
    EXPECT_EQ(Reals({4 * 27}), grad(x));
}

TEST_F(TapeTest, RefusedOverwritesNameBothLaunchesAndTheArray) {
    record = new_tape(TAPE_OVERWRITE_ERROR);
    tile_array *x = active({3, 4}), *y = zeros(2);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_kernel *k = update("halve", [](tile t) { return tile_expr("t/2", t); });
    expect_error(TILE_E_STATE, "square", launch(k, x));
    expect_error(TILE_E_STATE, "halve", launch(k, x));
    expect_error(TILE_E_STATE, " x", launch(k, x));
    EXPECT_EQ(Reals({3, 4}), read(x));
    EXPECT_EQ(1, tape_length(record));
    expect_error(TILE_E_STATE, "tile_array_fill: array would be overwritten: the adjoint of record",
                 tile_array_fill(x, 1));
    expect_error(TILE_E_STATE, "square", tile_array_fill(x, 1));
    EXPECT_EQ(Reals({3, 4}), read(x));
    ASSERT_EQ(TILE_OK, launch(k, y)) << "nobody needs y";
    backward(sum(y));
    EXPECT_EQ(Reals({3, 4}), grad(x));
}

TEST_F(TapeTest, NestedLoopsGiveTheDerivativeOnce) {
    /* s = 1, 2 times 3 times s = s x: x^6, 6 * 1.1^5 = 9.66306 */
    tile_array *x = active({1.1}), *y = zeros(1);
    tile_kernel *k = map("nested", [](tile v) {
        tile_builder *b = v.builder;
        tile_loop outer = tile_loop_begin(b, tile_int(b, 2), TILE_LIST(tile_expr("v*0 + 1", v)));
        tile_loop inner = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(outer.carried[0]));
        tile_loop_end(&inner, TILE_LIST(tile_mul(inner.carried[0], v)));
        tile_loop_end(&outer, TILE_LIST(inner.carried[0]));
        return outer.carried[0];
    });
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    backward(sum(y));
    EXPECT_NEAR(9.66306, grad(x)[0], 1e-12);
}

TEST_F(TapeTest, AValueUsedAfterALoopIsTheFinalOne) {
    /* v = 5, three times v += 2, y = v^2: 2 * 11 = 22, not 2 * 5 */
    tile_array *x = active({5}), *y = zeros(1);
    tile_kernel *k = map("after", [](tile x0) {
        tile_builder *b = x0.builder;
        tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(x0));
        const tile v = loop.carried[0];
        tile_loop_end(&loop, TILE_LIST(tile_expr("v + 2", v)));
        return tile_mul(loop.carried[0], loop.carried[0]);
    });
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    EXPECT_EQ(Reals({121}), read(y));
    backward(sum(y));
    EXPECT_EQ(Reals({22}), grad(x));
}

TEST_F(TapeTest, PowersByALoopHaveTheirDerivativeForEveryTripCount) {
    /* x^n at 2: 0, 1, 4, 12, 5 * 16; a count below zero is no iteration */
    tile_array *x = active({2}), *y = zeros(1);
    tile_kernel *k = kernel("power", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile n = tile_int_param(b, "n");
        const tile v = tile_load(px, TILE_SHAPE(1), TILE_AT_ZERO);
        tile_loop loop = tile_loop_begin(b, n, TILE_LIST(tile_ones(b, TILE_F64, TILE_SHAPE(1))));
        tile_loop_end(&loop, TILE_LIST(tile_mul(loop.carried[0], v)));
        tile_store(py, loop.carried[0], TILE_AT_ZERO);
    });
    const double wanted[] = {0, 0, 1, 4, 12, 32, 80};
    for (int n = -1; n <= 5; n++) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        ASSERT_EQ(TILE_OK, tile_array_fill(tile_array_grad(x), 0));
        ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, y, n)));
        backward(sum(y));
        EXPECT_EQ(Reals({wanted[n + 1]}), grad(x)) << n;
    }
}

TEST_F(TapeTest, AThousandIterationsAreExact) {
    /* d x^1000 / dx at 1.001 = 1000 * 1.001^999 */
    tile_array *x = active({1.001}), *y = zeros(1);
    tile_kernel *k = map("long", [](tile v) {
        tile_builder *b = v.builder;
        tile_loop loop = tile_loop_begin(b, tile_int(b, 999), TILE_LIST(v));
        tile_loop_end(&loop, TILE_LIST(tile_mul(loop.carried[0], v)));
        return loop.carried[0];
    });
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    backward(sum(y));
    EXPECT_NEAR(1000 * std::pow(1.001, 999), grad(x)[0], 1e-9);
}

TEST_F(TapeTest, RolledAndUnrolledLoopsHaveTheSameGradient) {
    tile_array *x = active({0.7, -1.3}), *u = active({0.7, -1.3}), *y = zeros(2), *z = zeros(2);
    tile_kernel *rolled = map("rolled", [](tile v) {
        tile_builder *b = v.builder;
        tile_loop loop = tile_loop_begin(b, tile_int(b, 4), TILE_LIST(v));
        const tile c = loop.carried[0];
        tile_loop_end(&loop, TILE_LIST(tile_expr("sin(c) + v*c", c, v)));
        return loop.carried[0];
    });
    tile_kernel *unrolled = map("unrolled", [](tile v) {
        tile c = v;
        for (int i = 0; i < 4; i++) c = tile_expr("sin(c) + v*c", c, v);
        return c;
    });
    ASSERT_EQ(TILE_OK, launch(rolled, x, y));
    ASSERT_EQ(TILE_OK, launch(unrolled, u, z));
    EXPECT_EQ(read(y), read(z));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, z, y));
    backward(sum(y));
    for (size_t i = 0; i < 2; i++)
        EXPECT_NEAR(grad(u)[i], grad(x)[i], 1e-13 * std::fabs(grad(u)[i]));
}

TEST_F(TapeTest, StateThatALoopPassesThroughKeepsItsGradient) {
    /* (a, p) -> (2a, p) three times, y = a p = 8 x^2 */
    tile_array *x = active({3}), *y = zeros(1);
    tile_kernel *k = map("pass", [](tile v) {
        tile_builder *b = v.builder;
        tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(v, v));
        const tile a = loop.carried[0];
        tile_loop_end(&loop, TILE_LIST(tile_expr("2*a", a), loop.carried[1]));
        return tile_mul(loop.carried[0], loop.carried[1]);
    });
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    EXPECT_EQ(Reals({72}), read(y));
    backward(sum(y));
    EXPECT_EQ(Reals({48}), grad(x));
}

TEST_F(TapeTest, RowsLoadedInALoopSendTheirGradientToTheirOwnCells) {
    /* y[c] = sum over i of (i + 1) a[i, c]^2: da[i, c] = 2 (i + 1) a[i, c] */
    tile_array *a = active(TILE_SHAPE(3, 2), {1, 2, 3, 4, 5, 6}), *y = zeros(2);
    tile_kernel *k = kernel("rows", [](tile_builder *b) {
        const tile_param pa = tile_array_param(b, "a", TILE_F64, 2);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        tile_loop loop = tile_loop_begin(b, tile_int(b, 3),
                                         TILE_LIST(tile_zeros(b, TILE_F64, TILE_SHAPE(1, 2))));
        const tile row = tile_load(pa, TILE_SHAPE(1, 2), TILE_AT(loop.index, tile_int(b, 0)));
        const tile s = loop.carried[0], i = tile_cast(loop.index, TILE_F64);
        tile_loop_end(&loop, TILE_LIST(tile_expr("s + (i + 1)*row*row", s, i, row)));
        tile_store(py, tile_reshape(loop.carried[0], TILE_SHAPE(2)), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(a, y)));
    backward(sum(y));
    EXPECT_EQ(Reals({2, 4, 12, 16, 30, 36}), grad(a));
}

TEST_F(TapeTest, TheWinnerOfAMaximumGetsTheGradient) {
    /* the first of the two largest */
    tile_array *x = active({1, 5, 5, 2}), *y = zeros(1);
    tile_kernel *k = kernel("largest", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile v = tile_load(px, TILE_SHAPE(4), TILE_AT_ZERO);
        tile_store(py, tile_reduce_max(v, TILE_ALL_AXES), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, y)));
    backward(sum(y));
    EXPECT_EQ(Reals({0, 1, 0, 0}), grad(x));
}

TEST_F(TapeTest, TheSideOfASelectThatIsNotTakenDoesNoHarm) {
    /* x > 0 ? log(x) + sqrt(x) + 1/x : x: at 0 and -1 the identity; at 4: 1/4 + 1/4 - 1/16 */
    tile_array *x = active({0, -1, 4}), *y = zeros(3);
    tile_kernel *k =
        map("careful", [](tile v) { return tile_expr("v > 0 ? log(v) + sqrt(v) + 1/v : v", v); });
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    backward(sum(y));
    EXPECT_EQ(Reals({1, 1, 0.4375}), grad(x));
}

TEST_F(TapeTest, ASquareRootOfZeroBehindASelectHasNoGradient) {
    tile_array *x = active({0, 9}), *y = zeros(2);
    tile_kernel *k = map("root", [](tile v) { return tile_expr("v < 1 ? v : sqrt(v)", v); });
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    backward(sum(y));
    EXPECT_EQ(Reals({1, 1 / 6.0}), grad(x));
}

TEST_F(TapeTest, TheDistanceOfCoincidentPointsHasGradientZero) {
    tile_array *x = active({2, 3}), *y = active({2, 7}), *d = zeros(2);
    tile_kernel *k = combine("distance", [](tile a, tile b) {
        const tile u = tile_sub(a, b);
        return tile_hypot(u, u);
    });
    ASSERT_EQ(TILE_OK, launch(k, x, y, d));
    backward(sum(d));
    EXPECT_EQ(0, grad(x)[0]);
    EXPECT_EQ(0, grad(y)[0]);
    EXPECT_NEAR(-std::sqrt(2.0), grad(x)[1], 1e-15);
    EXPECT_NEAR(std::sqrt(2.0), grad(y)[1], 1e-15);
}

TEST_F(TapeTest, ProductsWithZerosHaveTheirGradient) {
    /* no zero: 12 / x_k; one: the product of the others there alone; two: nothing */
    tile_kernel *k = kernel("product", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile v = tile_load(px, TILE_SHAPE(3), TILE_AT_ZERO);
        tile_store(py, tile_prod(v, TILE_ALL_AXES), TILE_AT_ZERO);
    });
    const Reals inputs[] = {{2, 3, 2}, {2, 0, 5}, {0, 3, 0}};
    const Reals wanted[] = {{6, 4, 6}, {0, 10, 0}, {0, 0, 0}};
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = active(inputs[i]), *y = zeros(1);
        ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, y)));
        backward(sum(y));
        EXPECT_EQ(wanted[i], grad(x)) << i;
    }
}

/* y[c] = a[index[c]], 4 a block, 9 where the index is outside. */
tile_kernel *gather_kernel(tile_context *ctx) {
    tile_builder *b = tile_kernel_begin(ctx, "gather");
    const tile_param a = tile_array_param(b, "a", TILE_F64, 1);
    const tile_param index = tile_array_param(b, "index", TILE_I32, 1);
    const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, 4));
    const tile i = tile_load_padded(index, TILE_SHAPE(4), at, -1);
    tile_store(y, tile_load_indexed_padded(a, i, TILE_SHAPE(4), TILE_AT_ZERO, 0, 9), at);
    tile_kernel *k = nullptr;
    EXPECT_EQ(TILE_OK, tile_kernel_end(b, &k)) << tile_last_error();
    return k;
}

TEST_F(TapeTest, IndicesOutsideOnEitherSideGivePaddingAndNoGradient) {
    tile_array *base = active({7, 1, 2, 3, 8}), *a = slice(base, {1}, TILE_SHAPE(3));
    tile_array *index = integers({-1, 3, 4, INT_MIN, INT_MAX, 0, 2, 2}), *y = zeros(8);
    tile_kernel *k = gather_kernel(ctx);
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(2), TILE_ARGS(a, index, y)));
    EXPECT_EQ(Reals({9, 9, 9, 9, 9, 1, 3, 3}), read(y));
    backward(sum(y));
    EXPECT_EQ(Reals({0, 1, 0, 2, 0}), grad(base)) << "the neighbours of the slice get nothing";
    tile_kernel_destroy(k);
}

TEST_F(TapeTest, AScatterOutsideItsRowDoesNotReachTheNextOne) {
    /* row 0 of a [2, 3]: y[0, i] = x for i = 1, 3, -1, 2; row 1 must stay */
    tile_array *x = active({10, 20, 30, 40}), *y = active(TILE_SHAPE(2, 3), {1, 2, 3, 4, 5, 6});
    tile_array *row = slice(y, {0, 0}, TILE_SHAPE(1, 3)), *index = integers({1, 3, -1, 2});
    tile_kernel *k = kernel("scatter", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param pi = tile_array_param(b, "index", TILE_I32, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 2);
        const tile v = tile_load(px, TILE_SHAPE(4), TILE_AT_ZERO);
        const tile i = tile_load(pi, TILE_SHAPE(4), TILE_AT_ZERO);
        tile_store_indexed(py, i, tile_reshape(v, TILE_SHAPE(1, 4)), TILE_AT_ZERO, 1);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, index, row)));
    EXPECT_EQ(Reals({1, 10, 40, 4, 5, 6}), read(y));
    backward(sum(y));
    EXPECT_EQ(Reals({1, 0, 0, 1}), grad(x));
    EXPECT_EQ(Reals({1, 0, 0, 1, 1, 1}), grad(y));
}

TEST_F(TapeTest, DuplicateIndicesAllAddAndAllGetTheGradient) {
    /* y[i] += x with i = 0, 1, 0, 0, 2, ... over two blocks, L = sum w y */
    tile_array *x = active({1, 2, 3, 4, 5, 6, 7, 8}), *y = zeros(3), *w = reals({1, 10, 100});
    tile_array *index = integers({0, 1, 0, 0, 2, 0, 1, -1}), *loss = zeros(1);
    tile_kernel *k = kernel("scatter_add", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param pi = tile_array_param(b, "index", TILE_I32, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, 4));
        const tile v = tile_load(px, TILE_SHAPE(4), at);
        tile_atomic_add_indexed(py, tile_load_padded(pi, TILE_SHAPE(4), at, -1), v, TILE_AT_ZERO,
                                0);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(2), TILE_ARGS(x, index, y)));
    EXPECT_EQ(Reals({1 + 3 + 4 + 6, 2 + 7, 5}), read(y));
    ASSERT_EQ(TILE_OK, tape_dot(record, w, y, loss));
    backward(loss);
    EXPECT_EQ(Reals({1, 10, 1, 1, 100, 1, 10, 0}), grad(x));
}

TEST_F(TapeTest, ACoefficientThatEveryBlockLoadsGetsTheSum) {
    /* y = c x over three blocks: dc = sum x = 55, dx = c */
    tile_array *c = active({3}), *x = active({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), *y = zeros(10);
    tile_kernel *k = kernel("scale", [](tile_builder *b) {
        const tile_param pc = tile_array_param(b, "c", TILE_F64, 1);
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, 4));
        const tile v = tile_load(px, TILE_SHAPE(4), at);
        const tile f = tile_load(pc, TILE_SCALAR, TILE_AT(tile_int(b, 0)));
        tile_store(py, tile_mul(f, v), at);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(3), TILE_ARGS(c, x, y)));
    backward(sum(y));
    EXPECT_EQ(Reals({55}), grad(c));
    EXPECT_EQ(Reals(10, 3.0), grad(x));
}

TEST_F(TapeTest, BlocksThatShareWeightsAddUpTheirGradients) {
    /* every block does y += x_block * w: dw = column sums of x */
    tile_array *w = active({1, 2}), *x = reals(TILE_SHAPE(3, 2), {1, 2, 3, 4, 5, 6}), *y = zeros(1);
    tile_kernel *k = kernel("shared", [](tile_builder *b) {
        const tile_param pw = tile_array_param(b, "w", TILE_F64, 1);
        const tile_param px = tile_array_param(b, "x", TILE_F64, 2);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile row =
            tile_load(px, TILE_SHAPE(1, 2), TILE_AT(tile_block_index(b, 0), tile_int(b, 0)));
        const tile v = tile_load(pw, TILE_SHAPE(2), TILE_AT_ZERO);
        tile_atomic_add(py, tile_dot(tile_reshape(row, TILE_SHAPE(2)), v), TILE_AT(tile_int(b, 0)));
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(3), TILE_ARGS(w, x, y)));
    EXPECT_EQ(Reals({9 + 24}), read(y));
    backward(sum(y));
    EXPECT_EQ(Reals({9, 12}), grad(w));
}

TEST_F(TapeTest, AnAtomicsPreviousValueIsAConstant) {
    /* p = previous y, y += x, L = p + y: dx = 1, through y alone */
    tile_array *x = active({3}), *y = active({2}), *p = zeros(1), *loss = zeros(1);
    tile_kernel *k = kernel("previous", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile_param pp = tile_array_param(b, "p", TILE_F64, 1);
        const tile v = tile_load(px, TILE_SHAPE(1), TILE_AT_ZERO);
        tile_store(pp, tile_atomic_add(py, v, TILE_AT_ZERO), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, y, p)));
    EXPECT_EQ(Reals({2}), read(p));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, p, y));
    ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
    backward(loss);
    EXPECT_EQ(Reals({1}), grad(x));
    EXPECT_EQ(Reals({1}), grad(y));
}

TEST_F(TapeTest, AnIntermediateWithoutARequestedGradientDoesNotCutTheChain) {
    tile_array *x = active({2}), *u = zeros(1), *v = zeros(1);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, x, u));
    ASSERT_EQ(TILE_OK, launch(k, u, v));
    backward(sum(v));
    EXPECT_EQ(Reals({32}), grad(x));
    EXPECT_EQ(nullptr, tile_array_grad(u));
}

TEST_F(TapeTest, EmptyArraysAreLegalOnATape) {
    tile_array *x = active(TILE_SHAPE(0), {}), *y = zeros(0), *z = active({4}), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y)) << tile_last_error();
    ASSERT_EQ(TILE_OK, tile_launch(record, square(), TILE_GRID(1), TILE_ARGS(x, y)))
        << tile_last_error();
    ASSERT_EQ(TILE_OK, tape_fill(record, y, 1));
    ASSERT_EQ(TILE_OK, tape_copy(record, x, y));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 2, x, y));
    ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
    EXPECT_EQ(Reals({0}), read(loss));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, z, loss));
    backward(loss);
    EXPECT_EQ(Reals(), grad(x));
    EXPECT_EQ(Reals({1}), grad(z));
    ASSERT_EQ(TILE_OK, tape_replay(record)) << tile_last_error();
}

TEST_F(TapeTest, AGridWithoutBlocksDoesNothing) {
    tile_array *x = active({2}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, tile_launch(record, square(), TILE_GRID(0), TILE_ARGS(x, y)));
    ASSERT_EQ(TILE_OK, tile_launch(record, square(), TILE_GRID(1, 0), TILE_ARGS(x, y)));
    EXPECT_EQ(Reals({0}), read(y));
}

TEST_F(TapeTest, TheGradientOfASliceIsThatSliceOfTheGradient) {
    tile_array *x = active(TILE_SHAPE(2, 3), {1, 2, 3, 4, 5, 6}), *loss = zeros(1);
    tile_array *column = slice(x, {0, 1}, TILE_SHAPE(2, 1));
    ASSERT_EQ(TILE_OK, tape_dot(record, column, column, loss));
    backward(loss);
    EXPECT_EQ(Reals({0, 4, 0, 0, 10, 0}), grad(x));
    EXPECT_EQ(Reals({4, 10}), grad(column));
}

TEST_F(TapeTest, ViewsWithAStrideGetTheirOwnElements) {
    /* every second element of x, squared */
    tile_array *x = active({1, 2, 3, 4, 5}), *odd = slice(x, {0}, TILE_SHAPE(3), {2}),
               *y = zeros(3);
    ASSERT_EQ(TILE_OK, launch(square(), odd, y));
    backward(sum(y));
    EXPECT_EQ(Reals({2, 0, 6, 0, 10}), grad(x));
}

TEST_F(TapeTest, AViewThatRepeatsAnElementAddsUpItsGradient) {
    /* a row of stride 0: 5 copies of x */
    tile_array *x = active({3}), *rows = strided(x, 0, TILE_SHAPE(5), {0}), *y = zeros(5);
    ASSERT_EQ(TILE_OK, launch(square(), rows, y));
    backward(sum(y));
    EXPECT_EQ(Reals({30}), grad(x));
}

TEST_F(TapeTest, AGradientAskedAfterTheFirstUseIsAnError) {
    tile_array *x = active({2}), *y = zeros(1), *before = reals(Reals{1});
    tile_array *view = slice(before, {0}, TILE_SHAPE(1));
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, before, y));
    expect_error(TILE_E_STATE, "tile_array_request_grad", tile_array_request_grad(y));
    expect_error(TILE_E_STATE, "tile_array_request_grad", tile_array_request_grad(view));
    EXPECT_EQ(nullptr, tile_array_grad(y));
    ASSERT_EQ(TILE_OK, tape_reset(record));
    EXPECT_EQ(TILE_OK, tile_array_request_grad(y)) << "the tape let go of it";
}

TEST_F(TapeTest, AnIntegerArrayHasNoGradient) {
    tile_array *i = integers({1});
    expect_error(TILE_E_DTYPE, "int32", tile_array_request_grad(i));
}

TEST_F(TapeTest, ALossThatNoGradientReachesIsAnError) {
    tile_array *x = active({2}), *y = zeros(1), *u = reals(Reals{3}), *v = zeros(1);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    ASSERT_EQ(TILE_OK, launch(k, u, v));
    expect_error(TILE_E_STATE, "no requested gradient", tape_backward(record, v));
    expect_error(TILE_E_STATE, "no requested gradient", tape_backward(record, reals(Reals{1})));
    EXPECT_EQ(Reals({0}), grad(x));
    backward(y);
    EXPECT_EQ(Reals({4}), grad(x));
}

TEST_F(TapeTest, ATapeWithoutRequestedGradientsSaysSo) {
    tile_array *x = reals(Reals{2}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    expect_error(TILE_E_STATE, "gradient", tape_backward(record, y));
}

TEST_F(TapeTest, AnEmptyTapeHasNothingToDifferentiate) {
    expect_error(TILE_E_STATE, "empty", tape_backward(record, active({1})));
}

TEST_F(TapeTest, ALossOfSeveralElementsIsAnError) {
    tile_array *x = active({2, 3}), *y = zeros(2);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    expect_error(TILE_E_SHAPE, "2 elements", tape_backward(record, y));
    EXPECT_EQ(Reals({0, 0}), grad(x));
}

/* A kernel whose op, a sine by name too so that every device runs it, has no adjoint; made in the
 * line that is returned. */
tile_kernel *mystery_kernel(tile_context *ctx, tile_op *op, int *line) {
    *op = *tile_op_find("sin");
    op->grad[0] = TILE_GRAD_ABSENT;
    op->derivative[0] = nullptr;
    op->strip = [](const tile_op *, const tile_dtype *in, tile_dtype out) {
        const tile_op *sine = tile_op_find("sin");
        return sine->strip(sine, in, out);
    };
    tile_builder *b = tile_kernel_begin(ctx, "riddle");
    const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
    const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
    tile_emission e = {};
    e.op = op;
    e.n_in = 1;
    e.in[0] = tile_load(x, TILE_SHAPE(1), TILE_AT_ZERO);
    tile_here("somewhere/riddle.c", 42);
    const tile t = tile_emit(b, &e);
    tile_store(y, t, TILE_AT_ZERO);
    *line = 42;
    tile_kernel *k = nullptr;
    EXPECT_EQ(TILE_OK, tile_kernel_end(b, &k)) << tile_last_error();
    return k;
}

TEST_F(TapeTest, AnOpWithoutAnAdjointNamesKernelOpFileAndLine) {
    tile_op op;
    int line;
    tile_kernel *k = mystery_kernel(ctx, &op, &line);
    tile_array *x = active({2}), *u = reals(Reals{1}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(u, y)))
        << "no gradient passes here: " << tile_last_error();
    EXPECT_NE(0, read(y)[0]);
    tile_status status = tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, y));
    if (!status) status = tape_backward(record, y);
    expect_error(TILE_E_NO_ADJOINT, "riddle", status);
    expect_error(TILE_E_NO_ADJOINT, "op sin", status);
    expect_error(TILE_E_NO_ADJOINT, "riddle.c:42", status);
    EXPECT_EQ(Reals({0}), grad(x));
    ASSERT_EQ(TILE_OK, tape_reset(record));
    tile_kernel_destroy(k);
}

TEST_F(TapeTest, AStoppedGradientIsMeantToBeZero) {
    /* y = stop(x) x: dx = x */
    tile_array *x = active({3}), *y = zeros(1);
    tile_kernel *k = map("stopped", [](tile v) { return tile_mul(tile_stop_gradient(v), v); });
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    backward(sum(y));
    EXPECT_EQ(Reals({3}), grad(x));
}

TEST_F(TapeTest, SumsOfFloat32AreNotTruncatedByTheirLength) {
    /* one by one, a float32 sum of 2^24 ones stays there: 2^24 + 2^20 is reached all the same */
    const size_t n = (1 << 24) + (1 << 20);
    tile_array *x = array(TILE_F32, TILE_SHAPE(n)), *s = array(TILE_F32, TILE_SHAPE(1));
    ASSERT_EQ(TILE_OK, tile_array_fill(x, 1));
    ASSERT_EQ(TILE_OK, tape_sum(nullptr, x, s));
    EXPECT_EQ(Reals({static_cast<double>(n)}), read(s));
}

TEST_F(TapeTest, MicroBatchesAddUpToTheWholeBatch) {
    /* L = sum over 6 of w x: dw = sum x = 21, also in three recordings of two */
    tile_array *w = active({2});
    tile_kernel *k = kernel("scaled", [](tile_builder *b) {
        const tile_param pw = tile_array_param(b, "w", TILE_F64, 1);
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, 4));
        const tile v = tile_load(px, TILE_SHAPE(4), at);
        tile_store(py, tile_mul(tile_load(pw, TILE_SCALAR, TILE_AT(tile_int(b, 0))), v), at);
    });
    tile_array *x = zeros(2), *y = zeros(2), *loss = zeros(1);
    for (int batch = 0; batch < 3; batch++) {
        write(x, {2.0 * batch + 1, 2.0 * batch + 2});
        ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(w, x, y)));
        ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
        backward(loss);
        ASSERT_EQ(TILE_OK, tape_reset(record));
    }
    EXPECT_EQ(Reals({21}), grad(w));
}

TEST_F(TapeTest, BackwardTwiceDoublesAndZeroClears) {
    tile_array *x = active({3}), *y = active({0});
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_array *loss = sum(y);
    backward(loss);
    EXPECT_EQ(Reals({6}), grad(x));
    EXPECT_EQ(Reals({0}), grad(y)) << "what y held first was overwritten";
    backward(loss);
    EXPECT_EQ(Reals({12}), grad(x));
    ASSERT_EQ(TILE_OK, tape_zero(record));
    EXPECT_EQ(Reals({0}), grad(x));
    backward(loss);
    EXPECT_EQ(Reals({6}), grad(x));
}

TEST_F(TapeTest, AGradientLeftFromBeforeIsNeverUpstream) {
    /* y's gradient is what the loss is by y's first value, so that a planted one stays apart */
    tile_array *x = active({3}), *y = active({2}), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, tile_array_fill(tile_array_grad(y), 1000));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, x, y));
    ASSERT_EQ(TILE_OK, tape_dot(record, y, y, loss));
    backward(loss);
    EXPECT_EQ(Reals({10}), grad(x));
    EXPECT_EQ(Reals({1010}), grad(y));
}

TEST_F(TapeTest, SeedsWeighTheElementsOfSeveralArrays) {
    /* y = x^2, z = x y = x^3: s . dy + t . dz = s 2x + t 3x^2 */
    tile_array *x = active({2, 3}), *y = zeros(2), *z = zeros(2);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, launch(multiply(), x, y, z));
    tile_array *arrays[] = {y, z}, *seeds[] = {reals({1, 10}), reals({100, 1000})};
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 2, arrays, seeds)) << tile_last_error();
    EXPECT_EQ(Reals({4 + 1200, 60 + 27000}), grad(x));
    EXPECT_EQ(Reals({1, 10}), read(seeds[0]));
}

TEST_F(TapeTest, ASeedOnAnInputIsItsOwnGradient) {
    /* <s, x> + <t, y>, y = x^2 */
    tile_array *x = active({2, 3}), *y = zeros(2);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_array *arrays[] = {x, y}, *seeds[] = {reals({5, 7}), reals({1, 1})};
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 2, arrays, seeds)) << tile_last_error();
    EXPECT_EQ(Reals({9, 13}), grad(x));
}

TEST_F(TapeTest, OneArraySeededTwiceAddsUp) {
    tile_array *x = active({2}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_array *arrays[] = {y, y}, *seeds[] = {reals(Reals{1}), reals(Reals{2})};
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 2, arrays, seeds)) << tile_last_error();
    EXPECT_EQ(Reals({12}), grad(x));
}

TEST_F(TapeTest, RecordingMayGoOnAfterBackward) {
    tile_array *x = active({2}), *y = zeros(1), *z = zeros(1);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    backward(y);
    EXPECT_EQ(Reals({4}), grad(x));
    ASSERT_EQ(TILE_OK, launch(k, y, z));
    ASSERT_EQ(TILE_OK, tape_zero(record));
    backward(z);
    EXPECT_EQ(Reals({32}), grad(x)) << "of the whole recording: 4 x^3";
}

TEST_F(TapeTest, ResetLetsTheBuffersServeTheNextShot) {
    /* shots 1, 2: u = x^2 twice in place with factor s; the gradients of the shots add up */
    tile_array *x = active({2}), *u = zeros(1), *loss = zeros(1);
    tile_kernel *in_place = square_in_place();
    for (int s = 1; s <= 2; s++) {
        ASSERT_EQ(TILE_OK, tape_fill(record, u, 0));
        ASSERT_EQ(TILE_OK, tape_axpy(record, s, x, u));
        ASSERT_EQ(TILE_OK, launch(in_place, u));
        ASSERT_EQ(TILE_OK, tape_sum(record, u, loss));
        EXPECT_EQ(Reals({4.0 * s * s}), read(loss));
        backward(loss);
        ASSERT_EQ(TILE_OK, tape_reset(record));
        EXPECT_EQ(0, tape_length(record));
    }
    EXPECT_EQ(Reals({4 + 16}), grad(x)) << "2 s^2 x for s = 1 and 2";
}

TEST_F(TapeTest, ReplayTakesNewInputsAndBackwardIsOfThem) {
    tile_array *x = active({2}), *y = zeros(1), *z = zeros(1);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    ASSERT_EQ(TILE_OK, launch(k, y, z));
    write(x, {3});
    ASSERT_EQ(TILE_OK, tape_replay(record)) << tile_last_error();
    EXPECT_EQ(Reals({81}), read(z));
    backward(z);
    EXPECT_EQ(Reals({108}), grad(x));
}

TEST_F(TapeTest, ReplayStartsWrittenArraysFromTheirFirstValues) {
    tile_array *x = active({1.1}), *total = reals(Reals{5});
    tile_kernel *k = square_in_place();
    for (int i = 0; i < 3; i++) ASSERT_EQ(TILE_OK, launch(k, x));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, x, total));
    const Reals first = read(total);
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(TILE_OK, tape_replay(record)) << tile_last_error();
        EXPECT_EQ(first, read(total));
    }
    backward(total);
    EXPECT_NEAR(15.5897368, grad(x)[0], 1e-9);
}

TEST_F(TapeTest, ReplayRepeatsWhatTheHostWroteInBetween) {
    /* y = x, y = 7 by the host, y += x */
    tile_array *x = active({2}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, tape_copy(record, x, y));
    write(y, {7});
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, x, y));
    EXPECT_EQ(Reals({9}), read(y));
    write(x, {3});
    ASSERT_EQ(TILE_OK, tape_replay(record)) << tile_last_error();
    EXPECT_EQ(Reals({10}), read(y));
    backward(y);
    EXPECT_EQ(Reals({1}), grad(x));
}

TEST_F(TapeTest, ReplayRepeatsAHostWriteToAnArrayThatTheTapeOnlyReads) {
    /* u = x^2 at 3, x = 5 by the host, v = x^2: 9 + 25 also in a replay */
    tile_array *x = active({3}), *u = zeros(1), *v = zeros(1);
    tile_kernel *k = square();
    ASSERT_EQ(TILE_OK, launch(k, x, u));
    write(x, {5});
    ASSERT_EQ(TILE_OK, launch(k, x, v));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, v, u));
    ASSERT_EQ(TILE_OK, tape_replay(record)) << tile_last_error();
    EXPECT_EQ(Reals({34}), read(u));
    EXPECT_EQ(Reals({5}), read(x));
    backward(u);
    EXPECT_EQ(Reals({6}), grad(x));
    tape_check_report report = {};
    ASSERT_EQ(TILE_OK, tape_gradcheck(record, u, TAPE_CHECK_ALL, &report)) << tile_last_error();
    EXPECT_TRUE(report.passed);
    EXPECT_EQ(Reals({34}), read(u));
    EXPECT_EQ(Reals({5}), read(x));
}

TEST_F(TapeTest, ATapeThatRefusesOverwritesReplaysWhatTheHostWrote) {
    record = new_tape(TAPE_OVERWRITE_ERROR);
    tile_array *x = active({2}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, tape_copy(record, x, y));
    write(y, {7});
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, x, y));
    write(y, {8});
    ASSERT_EQ(TILE_OK, tape_replay(record)) << tile_last_error();
    EXPECT_EQ(Reals({8}), read(y));
}

TEST_F(TapeTest, RetainedAdjointsAreThoseAtTheirPointOfTheRecording) {
    /* y = x^2, [retain], y = y^2 in place, loss = y: dL/dy there = 2 x^2, and 1 at the end */
    tile_array *x = active({3}), *y = zeros(1), *middle = nullptr, *end = nullptr;
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, tape_retain(record, y, &middle)) << tile_last_error();
    ASSERT_EQ(TILE_OK, launch(square_in_place(), y));
    ASSERT_EQ(TILE_OK, tape_retain(record, y, &end));
    backward(y);
    EXPECT_EQ(Reals({18}), read(middle));
    EXPECT_EQ(Reals({1}), read(end));
    EXPECT_EQ(Reals({108}), grad(x));
}

/* An array that has no gradient and that nothing active was written to. */
TEST_F(TapeTest, ARetainedAdjointNeedsNoGradient) {
    tile_array *y = active({1, 2, 3}), *p = reals({4, 5, 6}), *loss = zeros(1);
    tile_array *before = nullptr, *after = nullptr;
    ASSERT_EQ(TILE_OK, tape_sum(record, p, loss)); /* used ahead of that */
    ASSERT_EQ(TILE_OK, tape_retain(record, p, &before));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, y, p));
    ASSERT_EQ(TILE_OK, tape_retain(record, p, &after));
    ASSERT_EQ(TILE_OK, tape_dot(record, p, y, loss)); /* sum (p + y) y */
    backward(loss);
    EXPECT_EQ(Reals({1, 2, 3}), read(before));
    EXPECT_EQ(Reals({1, 2, 3}), read(after));
    EXPECT_EQ(Reals({6, 9, 12}), grad(y)); /* p + 2 y */

    tile_array *one = reals({1}), *five = reals({5, 5, 5});
    tile_array *const arrays[] = {loss, p}, *const seeds[] = {one, five};
    ASSERT_EQ(TILE_OK, tape_zero(record));
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 2, arrays, seeds)) << tile_last_error();
    EXPECT_EQ(Reals({6, 7, 8}), read(before));
    EXPECT_EQ(Reals({6, 7, 8}), read(after));
    EXPECT_EQ(Reals({11, 14, 17}), grad(y));
}

TEST_F(TapeTest, ARetainedAdjointIsARequestOfItsOwn) {
    tile_array *x = reals({1, 2, 3}), *p = zeros(3), *z = zeros(3), *loss = zeros(1);
    tile_array *early = nullptr, *late = nullptr, *never = nullptr;
    ASSERT_EQ(TILE_OK, tape_retain(record, p, &early));
    ASSERT_EQ(TILE_OK, tape_copy(record, x, p)); /* p is a constant, written anew */
    ASSERT_EQ(TILE_OK, tape_retain(record, p, &late));
    ASSERT_EQ(TILE_OK, tape_copy(record, p, z));
    ASSERT_EQ(TILE_OK, tape_dot(record, z, p, loss));
    ASSERT_EQ(TILE_OK, tape_retain(record, x, &never));
    backward(loss);
    EXPECT_EQ(Reals({0, 0, 0}), read(early));
    EXPECT_EQ(Reals({2, 4, 6}), read(late));
    EXPECT_EQ(Reals({0, 0, 0}), read(never));
}

struct Cube {
    int forwards = 0, backwards = 0;
    bool fail = false;
};

/* y = x^3, on the host. */
tile_status cube(void *user, tile_array *const *reads, tile_array *const *writes) {
    Cube *c = static_cast<Cube *>(user);
    double x = 0;
    c->forwards++;
    if (c->fail) return TILE_E_EXECUTION;
    tile_status status = tile_array_read(reads[0], &x, sizeof x);
    x = x * x * x;
    return status ? status : tile_array_write(writes[0], &x, sizeof x);
}

tile_status cube_backward(void *user, tile_array *const *reads, tile_array *const *dwrites,
                          tile_array *const *dreads) {
    Cube *c = static_cast<Cube *>(user);
    double x = 0, dy = 0, dx = 0;
    c->backwards++;
    if (!dreads[0]) return TILE_OK;
    tile_status status = tile_array_read(reads[0], &x, sizeof x);
    if (!status) status = tile_array_read(dwrites[0], &dy, sizeof dy);
    if (!status) status = tile_array_read(dreads[0], &dx, sizeof dx);
    dx += 3 * x * x * dy;
    return status ? status : tile_array_write(dreads[0], &dx, sizeof dx);
}

TEST_F(TapeTest, HostCodeWithAForwardAndABackwardIsPartOfTheChain) {
    /* u = x^2, v = u^3 on the host, w = v^2, then u overwritten: x^12 at 1.1: 12 * 1.1^11 */
    Cube state;
    tile_array *x = active({1.1}), *u = zeros(1), *v = zeros(1), *w = zeros(1);
    const tape_call call = {1, 1, &u, &v, cube, cube_backward, &state};
    ASSERT_EQ(TILE_OK, launch(square(), x, u));
    ASSERT_EQ(TILE_OK, tape_record_call(record, &call)) << tile_last_error();
    ASSERT_EQ(TILE_OK, launch(square(), v, w));
    ASSERT_EQ(TILE_OK, tape_fill(record, u, 77));
    EXPECT_NEAR(std::pow(1.1, 12), read(w)[0], 1e-14);
    backward(w);
    EXPECT_NEAR(12 * std::pow(1.1, 11), grad(x)[0], 1e-12);
    EXPECT_EQ(1, state.forwards);
    EXPECT_EQ(1, state.backwards);
    write(x, {1.2});
    ASSERT_EQ(TILE_OK, tape_replay(record)) << tile_last_error();
    ASSERT_EQ(TILE_OK, tape_zero(record));
    backward(w);
    EXPECT_EQ(2, state.forwards);
    EXPECT_NEAR(12 * std::pow(1.2, 11), grad(x)[0], 1e-11);
}

TEST_F(TapeTest, HostCodeWithoutABackwardStopsAGradientWithAnError) {
    Cube state;
    tile_array *x = active({2}), *u = reals(Reals{2}), *y = zeros(1), *z = zeros(1);
    const tape_call constant = {1, 1, &u, &z, cube, nullptr, &state};
    ASSERT_EQ(TILE_OK, tape_record_call(record, &constant)) << tile_last_error();
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, x, z));
    backward(z);
    EXPECT_EQ(Reals({1}), grad(x)) << "no gradient passes through the call";
    const tape_call call = {1, 1, &x, &y, cube, nullptr, &state};
    ASSERT_EQ(TILE_OK, tape_record_call(record, &call)) << tile_last_error();
    expect_error(TILE_E_NO_ADJOINT, "call", tape_backward(record, y));
    EXPECT_EQ(Reals({1}), grad(x));
}

TEST_F(TapeTest, HostCodeThatFailsIsNotRecorded) {
    Cube state;
    state.fail = true;
    tile_array *x = active({2}), *y = zeros(1);
    const tape_call call = {1, 1, &x, &y, cube, cube_backward, &state};
    EXPECT_EQ(TILE_E_EXECUTION, tape_record_call(record, &call));
    EXPECT_EQ(0, tape_length(record));
}

TEST_F(TapeTest, AnAdjointOfOnesOwnReplacesTheDerivedOne) {
    /* y = round(x) passed straight through: dx = dy */
    tile_array *x = active({1.3, 2.6}), *y = zeros(2), *loss = zeros(1);
    tile_kernel *k = map("step", [](tile v) { return tile_round(v); });
    tile_kernel *adjoint = kernel("straight_through", [](tile_builder *b) {
        tile_array_param(b, "x", TILE_F64, 1);
        tile_array_param(b, "y", TILE_F64, 1);
        const tile_param dx = tile_array_param(b, "dx", TILE_F64, 1);
        const tile_param dy = tile_array_param(b, "dy", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, 4));
        const tile d = tile_load(dy, TILE_SHAPE(4), at);
        tile_atomic_add(dx, d, at);
        tile_store(dy, tile_zeros(b, TILE_F64, TILE_SHAPE(4)), at);
    });
    ASSERT_EQ(TILE_OK, tile_kernel_set_adjoint(k, adjoint)) << tile_last_error();
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    ASSERT_EQ(TILE_OK, tape_dot(record, y, y, loss));
    backward(loss);
    EXPECT_EQ(Reals({2, 6}), grad(x));
}

/* A program with stencils, scatters and sums over several blocks, in float32; loss and gradients as
 * bytes. */
class Program {
  public:
    explicit Program(int threads, bool twice = false) {
        const tile_context_options options = {threads, 0};
        EXPECT_EQ(TILE_OK, tile_context_create(&options, &ctx_));
        EXPECT_EQ(TILE_OK, tape_create(ctx_, nullptr, &record_));
        for (tile_array **a : {&x_, &y_, &sums_, &loss_})
            EXPECT_EQ(TILE_OK, tile_array_create(ctx_, TILE_F32, shape_of(a), a));
        EXPECT_EQ(TILE_OK, tile_array_create(ctx_, TILE_I32, TILE_SHAPE(N), &index_));
        EXPECT_EQ(TILE_OK, tile_array_request_grad(x_));
        std::vector<float> x(N);
        std::vector<int32_t> index(N);
        for (int i = 0; i < N; i++) {
            x[static_cast<size_t>(i)] = std::sin(0.37f * static_cast<float>(i)) + 0.01f;
            index[static_cast<size_t>(i)] = (i * 7919) % (BINS + 3) - 1;
        }
        EXPECT_EQ(TILE_OK, tile_array_write(x_, x.data(), N * 4));
        EXPECT_EQ(TILE_OK, tile_array_write(index_, index.data(), N * 4));
        build();
        run();
        if (twice) {
            EXPECT_EQ(TILE_OK, tape_zero(record_));
            EXPECT_EQ(TILE_OK, tape_replay(record_)) << tile_last_error();
            EXPECT_EQ(TILE_OK, tape_backward(record_, loss_)) << tile_last_error();
        }
    }
    ~Program() {
        tape_destroy(record_);
        for (tile_array *a : {x_, y_, sums_, loss_, index_}) tile_array_destroy(a);
        tile_kernel_destroy(stencil_);
        tile_kernel_destroy(scatter_);
        tile_context_destroy(ctx_);
    }
    std::vector<float> result() {
        std::vector<float> all(N + BINS + 1);
        EXPECT_EQ(TILE_OK, tile_array_read(tile_array_grad(x_), all.data(), N * 4));
        EXPECT_EQ(TILE_OK, tile_array_read(sums_, all.data() + N, BINS * 4));
        EXPECT_EQ(TILE_OK, tile_array_read(loss_, all.data() + N + BINS, 4));
        return all;
    }

  private:
    enum { N = 20011, BINS = 97 };

    tile_shape shape_of(tile_array *const *a) const {
        return TILE_SHAPE(a == &sums_ ? BINS : a == &loss_ ? 1 : N);
    }
    void build() {
        tile_builder *b = tile_kernel_begin(ctx_, "stencil");
        tile_param x = tile_array_param(b, "x", TILE_F32, 1);
        tile_param y = tile_array_param(b, "y", TILE_F32, 1);
        tile_offset at = TILE_AT(tile_block_start(b, 0, 64));
        const tile c = tile_load(x, TILE_SHAPE(64), at);
        const tile l = tile_load(x, TILE_SHAPE(64), TILE_SHIFT(at, -1));
        const tile r = tile_load(x, TILE_SHAPE(64), TILE_SHIFT(at, 1));
        tile_store(y, tile_expr("sin(c) * (l + r) + 0.5*c*c", c, l, r), at);
        EXPECT_EQ(TILE_OK, tile_kernel_end(b, &stencil_)) << tile_last_error();
        b = tile_kernel_begin(ctx_, "scatter");
        y = tile_array_param(b, "y", TILE_F32, 1);
        const tile_param index = tile_array_param(b, "index", TILE_I32, 1);
        const tile_param sums = tile_array_param(b, "sums", TILE_F32, 1);
        at = TILE_AT(tile_block_start(b, 0, 64));
        const tile v = tile_load(y, TILE_SHAPE(64), at);
        const tile i = tile_load_padded(index, TILE_SHAPE(64), at, -1);
        tile_atomic_add_indexed(sums, i, tile_mul(v, v), TILE_AT_ZERO, 0);
        EXPECT_EQ(TILE_OK, tile_kernel_end(b, &scatter_)) << tile_last_error();
    }
    void run() {
        const tile_grid grid = TILE_GRID((N + 63) / 64);
        EXPECT_EQ(TILE_OK, tile_launch(record_, stencil_, grid, TILE_ARGS(x_, y_)));
        EXPECT_EQ(TILE_OK, tile_launch(record_, scatter_, grid, TILE_ARGS(y_, index_, sums_)));
        EXPECT_EQ(TILE_OK, tape_dot(record_, sums_, sums_, loss_));
        EXPECT_EQ(TILE_OK, tape_backward(record_, loss_)) << tile_last_error();
    }

    tile_context *ctx_ = nullptr;
    tape *record_ = nullptr;
    tile_array *x_ = nullptr, *y_ = nullptr, *sums_ = nullptr, *loss_ = nullptr, *index_ = nullptr;
    tile_kernel *stencil_ = nullptr, *scatter_ = nullptr;
};

TEST(TapeBits, AreTheSameForAnyNumberOfThreadsAndOnEveryRun) {
    const std::vector<float> one = Program(1).result();
    EXPECT_GT(std::fabs(one[100]), 0);
    for (int threads : {1, 2, 3, 8}) {
        const std::vector<float> other = Program(threads).result();
        EXPECT_EQ(0, memcmp(one.data(), other.data(), one.size() * 4)) << threads << " threads";
    }
    const std::vector<float> again = Program(2, true).result();
    EXPECT_EQ(0, memcmp(one.data(), again.data(), one.size() * 4)) << "replayed";
}

TEST_F(TapeTest, ALaunchForWhichMemoryRunsOutChangesNothing) {
    /* the n-th allocation fails for n = 1, 2, ... until the launch succeeds */
    int64_t total = 0;
    for (int64_t n = 1; n < 200; n++) {
        tape *t = new_tape();
        tile_array *x = active({3, 4}), *y = zeros(2);
        tile_kernel *k = square(), *in_place = square_in_place();
        ASSERT_EQ(TILE_OK, tile_launch(t, k, TILE_GRID(1), TILE_ARGS(x, y)));
        tile_fail_allocation(n);
        const tile_status status = tile_launch(t, in_place, TILE_GRID(1), TILE_ARGS(x));
        tile_fail_allocation(0);
        tile_array *loss = zeros(1);
        if (status) {
            ASSERT_EQ(TILE_E_MEMORY, status) << n << tile_last_error();
            EXPECT_EQ(1, tape_length(t)) << n;
            EXPECT_EQ(Reals({3, 4}), read(x)) << n;
            ASSERT_EQ(TILE_OK, tape_sum(t, y, loss)) << tile_last_error();
            ASSERT_EQ(TILE_OK, tape_backward(t, loss)) << tile_last_error();
            EXPECT_EQ(Reals({6, 8}), grad(x)) << n;
            continue;
        }
        EXPECT_EQ(Reals({9, 16}), read(x));
        total = n;
        break;
    }
    EXPECT_GT(total, 1);
}

TEST_F(TapeTest, ABackwardForWhichMemoryRunsOutChangesNothing) {
    int64_t total = 0;
    for (int64_t n = 1; n < 300; n++) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = active({3, 4}), *y = active({0, 0}), *loss = zeros(1);
        tile_kernel *k = square(), *in_place = square_in_place();
        ASSERT_EQ(TILE_OK, launch(k, x, y));
        ASSERT_EQ(TILE_OK, launch(in_place, y));
        ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
        ASSERT_EQ(TILE_OK, tile_array_fill(tile_array_grad(x), 0.5));
        tile_fail_allocation(n);
        const tile_status status = tape_backward(record, loss);
        tile_fail_allocation(0);
        if (status) {
            ASSERT_EQ(TILE_E_MEMORY, status) << n << tile_last_error();
            EXPECT_EQ(Reals({0.5, 0.5}), grad(x)) << n;
            EXPECT_EQ(Reals({81, 256}), read(y)) << n;
            backward(loss);
        } else {
            total = n;
        }
        EXPECT_EQ(Reals({0.5 + 108, 0.5 + 256}), grad(x)) << n;
        EXPECT_EQ(Reals({0, 0}), grad(y)) << n;
        if (!status) break;
    }
    EXPECT_GT(total, 1);
}

TEST_F(TapeTest, AReplayForWhichMemoryRunsOutSaysSoUntilTheReset) {
    int64_t total = 0;
    for (int64_t n = 1; n < 300; n++) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = active({3, 4}), *y = zeros(2);
        ASSERT_EQ(TILE_OK, launch(square(), x, y));
        ASSERT_EQ(TILE_OK, launch(square_in_place(), x));
        tile_fail_allocation(n);
        const tile_status status = tape_replay(record);
        tile_fail_allocation(0);
        if (!status) {
            EXPECT_EQ(Reals({9, 16}), read(x));
            total = n;
            break;
        }
        ASSERT_EQ(TILE_E_MEMORY, status) << n << tile_last_error();
        expect_error(TILE_E_STATE, "reset", tape_backward(record, y));
    }
    EXPECT_GE(total, 1);
}

TEST(TapeMemory, TheLimitOfTheContextStopsATapeThatKeepsTooMuch) {
    /* 10 squarings in place keep 10 times 8 KB; 64 KB are allowed */
    const tile_context_options options = {1, 256 << 10};
    tile_context *ctx = nullptr;
    ASSERT_EQ(TILE_OK, tile_context_create(&options, &ctx));
    tape *record = nullptr;
    tile_array *x = nullptr;
    ASSERT_EQ(TILE_OK, tape_create(ctx, nullptr, &record));
    ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F64, TILE_SHAPE(1024), &x));
    ASSERT_EQ(TILE_OK, tile_array_request_grad(x));
    ASSERT_EQ(TILE_OK, tile_array_fill(x, 1.0));
    tile_builder *b = tile_kernel_begin(ctx, "square_in_place");
    const tile_param p = tile_array_param(b, "x", TILE_F64, 1);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, 64));
    const tile v = tile_load(p, TILE_SHAPE(64), at);
    tile_store(p, tile_mul(v, v), at);
    tile_kernel *k = nullptr;
    ASSERT_EQ(TILE_OK, tile_kernel_end(b, &k)) << tile_last_error();
    tile_status status = TILE_OK;
    int launches = 0;
    while (launches < 1000 && !status) {
        status = tile_launch(record, k, TILE_GRID(16), TILE_ARGS(x));
        launches += !status;
    }
    EXPECT_EQ(TILE_E_MEMORY, status);
    EXPECT_GT(launches, 5);
    EXPECT_LT(launches, 40);
    EXPECT_EQ(launches, tape_length(record));
    EXPECT_LE(tile_context_bytes(ctx), 256u << 10);
    ASSERT_EQ(TILE_OK, tape_reset(record));
    EXPECT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(16), TILE_ARGS(x))) << tile_last_error();
    tape_destroy(record);
    tile_array_destroy(x);
    tile_kernel_destroy(k);
    tile_context_destroy(ctx);
}

TEST_F(TapeTest, PreviousValuesAreTheOldOnesWhenTheBufferIsReplaced) {
    tile_array *x = active({3, 4}), *y = zeros(2), *was = zeros(2);
    /* needs x, so that the whole overwrite below takes a fresh buffer */
    ASSERT_EQ(TILE_OK, launch(square(), x, y)) << tile_last_error();
    tile_kernel *k = kernel("swap", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param pw = tile_array_param(b, "was", TILE_F64, 1);
        const tile one = tile_ones(b, TILE_F64, TILE_SHAPE(2));
        tile_store(pw, tile_atomic_add(px, one, TILE_AT_ZERO), TILE_AT_ZERO);
        tile_store(px, one, TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, was)));
    EXPECT_EQ(Reals({3, 4}), read(was));
    EXPECT_EQ(Reals({1, 1}), read(x));
}

TEST_F(TapeTest, BlocksThatDoTheSameThingTwiceCountTwice) {
    /* y += x in three blocks that differ along an axis nobody asks for: y + 3 x */
    tile_array *x = active({3, 4}), *y = active({1, 2}), *loss = zeros(1);
    tile_kernel *k = kernel("add_in_place", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, 2));
        const tile xs = tile_load(px, TILE_SHAPE(2), at), ys = tile_load(py, TILE_SHAPE(2), at);
        tile_store(py, tile_expr("ys + xs", ys, xs), at);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1, 3), TILE_ARGS(x, y)));
    EXPECT_EQ(Reals({10, 14}), read(y));
    ASSERT_EQ(TILE_OK, tape_sum(record, y, loss)) << tile_last_error();
    ASSERT_EQ(TILE_OK, tape_backward(record, loss)) << tile_last_error();
    EXPECT_EQ(Reals({3, 3}), grad(x));
    EXPECT_EQ(Reals({1, 1}), grad(y));
}

TEST_F(TapeTest, NestedLoopsThatStartFromOneConstantAreExact) {
    /* y = sum over 2 outer, 3 inner rounds of x[j]^2: dy/dx[j] = 2 * 2 x[j] */
    tile_array *x = active({1, 2, 3}), *y = zeros(1);
    tile_kernel *k = kernel("sum_of_sums", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile zero = tile_real(b, TILE_F64, 0);
        tile_loop outer = tile_loop_begin(b, tile_int(b, 2), TILE_LIST(zero));
        const tile sum = outer.carried[0];
        tile_loop inner = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(zero));
        const tile part = inner.carried[0];
        const tile v = tile_load(px, TILE_SCALAR, TILE_AT(inner.index));
        tile_loop_end(&inner, TILE_LIST(tile_expr("part + v*v", part, v)));
        tile_loop_end(&outer, TILE_LIST(tile_add(sum, inner.carried[0])));
        tile_store(py, outer.carried[0], TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, y))) << tile_last_error();
    EXPECT_EQ(Reals({28}), read(y));
    ASSERT_EQ(TILE_OK, tape_backward(record, y)) << tile_last_error();
    EXPECT_EQ(Reals({4, 8, 12}), grad(x));
}

TEST_F(TapeTest, AnArrayThatIsWrittenUnderOneNameAndReadUnderAnotherCarriesItsGradient) {
    /* v is b[1..3]; block i writes v[i] = b[i] w, so b = (2, 2w, 2w^2, 2w^3); w = 3, d sum/dw =
     * 2 + 4w + 6w^2 = 68. r is b again, never written inside, and declared before q, also b. */
    tile_array *w = active({3}), *base = reals({2, 5, 5, 5});
    tile_array *v = nullptr;
    const int64_t one = 1;
    ASSERT_EQ(TILE_OK, tile_array_slice(base, &one, TILE_SHAPE(3), nullptr, &v));
    own(v);
    tile_kernel *k = kernel("chain", [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", TILE_F64, 1);
        const tile_param pw = tile_array_param(b, "w", TILE_F64, 1);
        const tile_param r = tile_array_param(b, "r", TILE_F64, 1);
        const tile_param q = tile_array_param(b, "q", TILE_F64, 1);
        const tile at = tile_block_start(b, 0, 1);
        const tile s = tile_load(pw, TILE_SCALAR, TILE_AT_ZERO);
        const tile old = tile_load(q, TILE_SHAPE(1), TILE_AT(at));
        tile_store(r, tile_zeros(b, TILE_F64, TILE_SHAPE(1)), TILE_SHIFT(TILE_AT(at), -9));
        tile_store(p, tile_expr("old * s", old, s), TILE_AT(at));
    });
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(3), TILE_ARGS(v, w, base, base)))
        << tile_last_error();
    EXPECT_EQ(Reals({2, 6, 18, 54}), read(base));
    tile_array *loss = sum(base);
    ASSERT_EQ(TILE_OK, tape_backward(record, loss)) << tile_last_error();
    EXPECT_EQ(Reals({68}), grad(w));
}

TEST_F(TapeTest, DestroyingAHandleThatBelongsToSomebodyElseDoesNothing) {
    tile_array *x = active({3}), *y = zeros(1), *adjoint = nullptr;
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, tape_retain(record, y, &adjoint));
    tile_array_destroy(adjoint);
    tile_array_destroy(tile_array_grad(x));
    ASSERT_EQ(TILE_OK, tape_backward(record, y)) << tile_last_error();
    EXPECT_EQ(Reals({6}), grad(x));
    EXPECT_EQ(Reals({1}), read(adjoint));
}

/* A launch that fails has not used its arrays: a gradient can still be asked for. */
TEST(TapeMemory, AFailedLaunchIsNoUseOfItsArrays) {
    tile_context *ctx = nullptr;
    const tile_context_options options = {1, 0};
    ASSERT_EQ(TILE_OK, tile_context_create(&options, &ctx));
    tile_builder *b = tile_kernel_begin(ctx, "square");
    const tile_param p = tile_array_param(b, "p", TILE_F32, 1);
    const tile_offset at = TILE_AT(tile_block_start(b, 0, 64));
    const tile v = tile_load(p, TILE_SHAPE(64), at);
    tile_store(p, tile_mul(v, v), at);
    tile_kernel *k = nullptr;
    ASSERT_EQ(TILE_OK, tile_kernel_end(b, &k)) << tile_last_error();
    tape *record = nullptr;
    ASSERT_EQ(TILE_OK, tape_create(ctx, nullptr, &record));
    tile_status status = TILE_E_MEMORY;
    int failures = 0;
    for (int n = 1; status; n++) {
        ASSERT_LT(n, 1000);
        tile_array *x = nullptr;
        ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(64), &x));
        tile_fail_allocation(n);
        status = tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x));
        tile_fail_allocation(0);
        if (status) {
            failures++;
            EXPECT_EQ(TILE_OK, tile_array_request_grad(x)) << n << tile_last_error();
        }
        tile_array_destroy(x);
    }
    EXPECT_GT(failures, 0);
    EXPECT_EQ(1, tape_length(record));
    tape_destroy(record);
    tile_kernel_destroy(k);
    tile_context_destroy(ctx);
}

/* A window that does not move with the blocks: the last block's value stays and takes the gradient
 * alone, though each block asks for its index. */
TEST_F(TapeTest, BlocksThatStoreTheSamePlaces) {
    tile_kernel *k = kernel("same_places", [](tile_builder *b) {
        const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        const tile block = tile_block_index(b, 0);
        const tile n = tile_cast(block, TILE_F64);
        const tile t = tile_load(x, TILE_SHAPE(3), TILE_AT_ZERO);
        tile_store(y, tile_expr("t*t + n*t", t, n), TILE_AT(tile_mul(block, tile_int(b, 0))));
    });
    tile_array *x = active({1, 2, 3}), *y = zeros(3);
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(4), TILE_ARGS(x, y)));
    EXPECT_EQ((Reals{4, 10, 18}), read(y));
    backward(sum(y));
    EXPECT_EQ((Reals{5, 7, 9}), grad(x)); /* 2 x + 3 */
}

/* Ops of whole tiles on what is the same for all blocks, beside windows that follow them. */
TEST_F(TapeTest, OpsOfWholeTilesOnWhatIsTheSameForAllBlocks) {
    tile_kernel *k = kernel("reversed", [](tile_builder *b) {
        const tile_param x = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param c = tile_array_param(b, "c", TILE_F64, 1);
        const tile_param y = tile_array_param(b, "y", TILE_F64, 1);
        const tile coefficients = tile_load(c, TILE_SHAPE(2), TILE_AT_ZERO);
        const tile index =
            tile_sub(tile_int(b, 1), tile_iota(b, TILE_I64, TILE_SHAPE(2), 0, tile_int(b, 0)));
        const tile zeros = tile_zeros(b, TILE_F64, TILE_SHAPE(2));
        const tile turned = tile_scatter(zeros, index, coefficients, 0); /* c[1], c[0] */
        const tile_offset at = TILE_AT(tile_block_start(b, 0, 2));
        const tile t = tile_load(x, TILE_SHAPE(2), at);
        const tile sum = tile_sum(turned, TILE_AXES(0));
        tile_store(y, tile_expr("t * turned + sum", t, turned, sum), at);
    });
    tile_array *x = active({1, 2, 3, 4}), *c = active({5, 7}), *y = zeros(4);
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(2), TILE_ARGS(x, c, y)))
        << tile_last_error();
    EXPECT_EQ((Reals{7 + 12, 10 + 12, 21 + 12, 20 + 12}), read(y));
    backward(sum(y));
    EXPECT_EQ((Reals{7, 5, 7, 5}), grad(x));
    EXPECT_EQ((Reals{2 + 4 + 4, 1 + 3 + 4}), grad(c));
}

/* One array as two parameters, read at one place and written at another: what was written over gets
 * nothing, what was read gets both. */
TEST_F(TapeTest, APieceOfAnArrayCopiedOverAnother) {
    struct Pair {
        int64_t from, to;
    };
    for (const Pair &at : {Pair{4, 0}, Pair{0, 4}, Pair{0, 2}, Pair{2, 0}, Pair{3, 3}}) {
        for (bool fixed : {true, false}) {
            tile_kernel *k = kernel("halo", [=](tile_builder *b) {
                const tile_param s = tile_array_param(b, "s", TILE_F64, 1);
                const tile_param d = tile_array_param(b, "d", TILE_F64, 1);
                const tile from = tile_int_param(b, "from"), to = tile_int_param(b, "to");
                const tile t =
                    tile_load(s, TILE_SHAPE(3), TILE_AT(fixed ? tile_int(b, at.from) : from));
                tile_store(d, tile_expr("2*t", t), TILE_AT(fixed ? tile_int(b, at.to) : to));
            });
            Reals value = {1, 2, 3, 4, 5, 6, 7, 8}, up = {1, 2, 4, 8, 16, 32, 64, 128};
            tile_array *a = active(value), *seed = reals(up);
            ASSERT_EQ(TILE_OK, tape_reset(record));
            ASSERT_EQ(TILE_OK,
                      tile_launch(record, k, TILE_GRID(1), TILE_ARGS(a, a, at.from, at.to)));
            Reals want = up;
            for (int64_t i = 0; i < 3; i++) want[static_cast<size_t>(at.to + i)] = 0;
            for (int64_t i = 0; i < 3; i++)
                want[static_cast<size_t>(at.from + i)] += 2 * up[static_cast<size_t>(at.to + i)];
            ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &a, &seed)) << tile_last_error();
            EXPECT_EQ(want, grad(a)) << at.from << " to " << at.to << (fixed ? " fixed" : "");
        }
    }
}

/* The same along one dimension of two, in blocks along the other: a periodic boundary. */
TEST_F(TapeTest, AColumnCopiedOverAnother) {
    tile_kernel *k = kernel("periodic", [](tile_builder *b) {
        const tile_param s = tile_array_param(b, "s", TILE_F64, 2);
        const tile_param d = tile_array_param(b, "d", TILE_F64, 2);
        const tile row = tile_block_index(b, 0);
        const tile t = tile_load(s, TILE_SHAPE(1, 1), TILE_AT(row, tile_int(b, 3)));
        tile_store(d, t, TILE_AT(row, tile_int(b, 0)));
    });
    tile_array *u = active(TILE_SHAPE(2, 4), {1, 2, 3, 4, 5, 6, 7, 8});
    tile_array *seed = reals(TILE_SHAPE(2, 4), {1, 2, 4, 8, 16, 32, 64, 128});
    ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(2), TILE_ARGS(u, u)));
    EXPECT_EQ((Reals{4, 2, 3, 4, 8, 6, 7, 8}), read(u));
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &u, &seed)) << tile_last_error();
    EXPECT_EQ((Reals{0, 2, 4, 9, 0, 32, 64, 144}), grad(u));
}

/* An adjoint of the user's would get one memory as two gradients. */
TEST_F(TapeTest, AnOwnAdjointOfOneArrayAsTwoIsRefused) {
    tile_kernel *k = map("triple", [](tile x) { return tile_expr("3*x", x); });
    tile_kernel *back = kernel("triple_back", [](tile_builder *b) {
        for (const char *name : {"x", "y"}) (void)tile_array_param(b, name, TILE_F64, 1);
        const tile_param dx = tile_array_param(b, "dx", TILE_F64, 1);
        const tile_param dy = tile_array_param(b, "dy", TILE_F64, 1);
        const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
        const tile t = tile_load(dy, TILE_SHAPE(BLOCK), at);
        tile_atomic_add(dx, tile_expr("3*t", t), at);
        tile_store(dy, tile_zeros(b, TILE_F64, TILE_SHAPE(BLOCK)), at);
    });
    ASSERT_EQ(TILE_OK, tile_kernel_set_adjoint(k, back)) << tile_last_error();
    tile_array *x = active({1, 2}), *y = zeros(2);
    expect_error(TILE_E_ARGUMENT, "x and y are one array, expected two", launch(k, x, x));
    EXPECT_EQ((Reals{1, 2}), read(x));
    ASSERT_EQ(TILE_OK, launch(k, x, y)) << tile_last_error();
    backward(sum(y));
    EXPECT_EQ((Reals{3, 3}), grad(x));
}

/* What the tape has not used is its own derivative. */
TEST_F(TapeTest, ASeededArrayThatTheTapeHasNotUsed) {
    tile_array *x = active({1, 2, 3}), *y = zeros(3), *other = active({5, 6}), *plain = zeros(2);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_array *seeds[] = {reals({1, 1, 1}), reals({7, 8}), reals({9, 9})};
    tile_array *arrays[] = {y, other, plain};
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 3, arrays, seeds)) << tile_last_error();
    EXPECT_EQ((Reals{2, 4, 6}), grad(x));
    EXPECT_EQ((Reals{7, 8}), grad(other));
    ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, arrays + 1, seeds + 1));
    EXPECT_EQ((Reals{14, 16}), grad(other));
    EXPECT_EQ(TILE_E_STATE, tape_backward_seeds(record, 1, arrays + 2, seeds + 2));
}

} // namespace
