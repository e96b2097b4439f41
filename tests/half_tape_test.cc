/* half_tape_test.cc: gradients of 16-bit arrays: adjoints are float32 and rounded once, when they
 * are added to a gradient. */
#include "tests/tape_fixture.h"

namespace {

const tile_dtype kHalves[] = {TILE_F16, TILE_BF16};

double rounded(tile_dtype dtype, double x) {
    double bytes = 0;
    tile_dtype_put(dtype, x, &bytes);
    return tile_dtype_get(dtype, &bytes);
}

/* A number from which on the steps are 2. */
double large(tile_dtype dtype) {
    return dtype == TILE_F16 ? 2048 : 256;
}

class HalfTapeTest : public TapeTest {
  protected:
    HalfTapeTest() : TapeTest(2) {}
    /* y[i] = c * w[i], of a 16-bit c that every block loads; y is float32. */
    tile_kernel *scale(tile_dtype d) {
        return kernel("scale", [&](tile_builder *b) {
            const tile_param pc = tile_array_param(b, "c", d, 1),
                             pw = tile_array_param(b, "w", d, 1);
            const tile_param py = tile_array_param(b, "y", TILE_F32, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            const tile c = tile_load(pc, TILE_SHAPE(1), TILE_AT_ZERO);
            const tile w = tile_load(pw, TILE_SHAPE(BLOCK), at);
            tile_store(py, tile_cast(tile_mul(c, w), TILE_F32), at);
        });
    }
    /* y = (float)x. */
    tile_kernel *widen(tile_dtype d) {
        return kernel("widen", [&](tile_builder *b) {
            const tile_param px = tile_array_param(b, "x", d, 1);
            const tile_param py = tile_array_param(b, "y", TILE_F32, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            tile_store(py, tile_cast(tile_load(px, TILE_SHAPE(BLOCK), at), TILE_F32), at);
        });
    }
    /* The sum of x's elements in float32. */
    tile_array *wide_sum(tile_array *x) {
        tile_array *s = typed(TILE_F32, {0});
        EXPECT_EQ(TILE_OK, tape_sum(record, x, s)) << tile_last_error();
        return s;
    }
    static void expect_grad(const Reals &want, tile_array *a) {
        EXPECT_EQ(tile_array_dtype(a), tile_array_dtype(tile_array_grad(a)));
        EXPECT_EQ(want, grad(a)) << tile_dtype_name(tile_array_dtype(a));
    }
};

/* 4096 terms of 2^-10 are 4; in 16 bits the sum would stop at 2 (bfloat16: at 0.25). */
TEST_F(HalfTapeTest, ManySmallTermsOfOneLaunchAddUp) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *c = typed(d, {1}, true), *w = typed(d, Reals(4096, std::ldexp(1, -10)));
        tile_array *y = typed(TILE_F32, Reals(4096));
        ASSERT_EQ(TILE_OK, tile_launch(record, scale(d), grid_for(y), TILE_ARGS(c, w, y)));
        backward(wide_sum(y));
        expect_grad({4}, c);
    }
}

/* The same over launches: the storage's adjoint is float32 from one record to the next. */
TEST_F(HalfTapeTest, ManySmallTermsOfManyLaunchesAddUp) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *c = typed(d, {1}, true), *w = typed(d, Reals(4, std::ldexp(1, -10)));
        tile_array *total = typed(TILE_F32, Reals(4)), *y = typed(TILE_F32, Reals(4));
        tile_kernel *k = scale(d);
        for (int i = 0; i < 1024; i++) {
            ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(c, w, y)));
            ASSERT_EQ(TILE_OK, tape_axpy(record, 1, y, total));
        }
        backward(wide_sum(total));
        expect_grad({4}, c);
    }
}

/* What was there plus 3 * 0.5, rounded once: 1.5 on steps of 2 goes up, each 0.5 alone is lost. */
TEST_F(HalfTapeTest, AGradientIsWhatWasThereAndTheSumRoundedOnce) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *c = typed(d, {1}, true), *w = typed(d, {0.5, 0.5, 0.5, 0});
        tile_array *y = typed(TILE_F32, Reals(4));
        write(tile_array_grad(c), {large(d)});
        ASSERT_EQ(TILE_OK, tile_launch(record, scale(d), TILE_GRID(1), TILE_ARGS(c, w, y)));
        tile_array *loss = wide_sum(y);
        backward(loss);
        expect_grad({large(d) + 2}, c);
        backward(loss); /* twice: once more the same is added, and rounded */
        expect_grad({large(d) + 4}, c);
        ASSERT_EQ(TILE_OK, tape_reset(record)); /* another shot */
        ASSERT_EQ(TILE_OK, tile_launch(record, scale(d), TILE_GRID(1), TILE_ARGS(c, w, y)));
        backward(wide_sum(y));
        expect_grad({large(d) + 6}, c);
        ASSERT_EQ(TILE_OK, tape_zero(record));
        expect_grad({0}, c);
    }
}

TEST_F(HalfTapeTest, UpdatesInPlaceAndOverwritesKeepTheirGradients) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = typed(d, {1.5, -1, 0, 2, 0.5}, true);
        tile_kernel *square = update(
            "square", [](tile t) { return tile_mul(t, t); }, d);
        for (int i = 0; i < 2; i++)
            ASSERT_EQ(TILE_OK, tile_launch(record, square, grid_for(x), TILE_ARGS(x)));
        EXPECT_EQ(Reals({5.0625, 1, 0, 16, 0.0625}), read(x));
        backward(wide_sum(x));
        expect_grad({13.5, -4, 0, 32, 0.5}, x); /* 4 x^3 */
    }
}

/* y[index] = x, then y += t, z = y[index]: store, indexed load and store, atomic addition. */
TEST_F(HalfTapeTest, StoresLoadsAndAtomicsPassFloat32) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = typed(d, {1, 2, 3, 4}, true), *t = typed(d, {0.5, 0.25}, true);
        tile_array *y = typed(d, {9, 9, 9, 9}, true), *z = typed(d, Reals(4));
        tile_array *index = integers({2, 0, 2, -1});
        tile_kernel *scatter = kernel("scatter", [&](tile_builder *b) {
            const tile_param px = tile_array_param(b, "x", d, 1),
                             py = tile_array_param(b, "y", d, 1);
            const tile_param pi = tile_array_param(b, "index", TILE_I32, 1);
            const tile i = tile_load(pi, TILE_SHAPE(4), TILE_AT_ZERO);
            const tile v = tile_load(px, TILE_SHAPE(4), TILE_AT_ZERO);
            tile_store_indexed(py, i, tile_mul(v, v), TILE_AT_ZERO, 0);
        });
        tile_kernel *add = kernel("add", [&](tile_builder *b) {
            const tile_param pt = tile_array_param(b, "t", d, 1),
                             py = tile_array_param(b, "y", d, 1);
            tile_atomic_add(py, tile_load(pt, TILE_SHAPE(2), TILE_AT_ZERO),
                            tile_offset_shift(TILE_AT_ZERO, TILE_SHAPE(1)));
        });
        tile_kernel *gather = kernel("gather", [&](tile_builder *b) {
            const tile_param py = tile_array_param(b, "y", d, 1),
                             pz = tile_array_param(b, "z", d, 1);
            const tile_param pi = tile_array_param(b, "index", TILE_I32, 1);
            const tile i = tile_load(pi, TILE_SHAPE(4), TILE_AT_ZERO);
            const tile v = tile_load_indexed(py, i, TILE_SHAPE(4), TILE_AT_ZERO, 0);
            tile_store(pz, tile_expr("3*v", v), TILE_AT_ZERO);
        });
        ASSERT_EQ(TILE_OK, tile_launch(record, scatter, TILE_GRID(1), TILE_ARGS(x, y, index)));
        EXPECT_EQ(Reals({4, 9, 9, 9}), read(y)); /* of x[0] and x[2] at place 2 the last stays */
        ASSERT_EQ(TILE_OK, tile_launch(record, add, TILE_GRID(1), TILE_ARGS(t, y)));
        ASSERT_EQ(TILE_OK, tile_launch(record, gather, TILE_GRID(1), TILE_ARGS(y, z, index)));
        EXPECT_EQ(Reals({27.75, 12, 27.75, 0}), read(z));
        backward(wide_sum(z));
        expect_grad({0, 12, 36, 0}, x); /* 3 * 2 x1; twice 3 * 2 x2; the others reach nothing */
        expect_grad({0, 6}, t);
        expect_grad({0, 0, 0, 0}, y); /* places 0 and 2 were overwritten, nobody read the others */
    }
}

TEST_F(HalfTapeTest, LoopsCarryAndKeepThem) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = typed(d, {1.5, -1, 0.5, 2}, true), *y = typed(d, Reals(4));
        tile_kernel *power = kernel("power", [&](tile_builder *b) {
            const tile_param px = tile_array_param(b, "x", d, 1),
                             py = tile_array_param(b, "y", d, 1);
            const tile n = tile_int_param(b, "n");
            const tile v = tile_load(px, TILE_SHAPE(4), TILE_AT_ZERO);
            tile_loop loop = tile_loop_begin(b, n, TILE_LIST(v));
            tile_loop_end(&loop, TILE_LIST(tile_mul(loop.carried[0], v)));
            tile_store(py, loop.carried[0], TILE_AT_ZERO);
            /* read again after the write: kept by the forward launch */
            const tile again = tile_load(py, TILE_SHAPE(4), TILE_AT_ZERO);
            tile_store(py, tile_mul(again, again), TILE_AT_ZERO);
        });
        ASSERT_EQ(TILE_OK, tile_launch(record, power, TILE_GRID(1), TILE_ARGS(x, y, 1)));
        EXPECT_EQ(Reals({5.0625, 1, 0.0625, 16}), read(y)); /* x^4 */
        backward(wide_sum(y));
        expect_grad({13.5, -4, 0.5, 32}, x);
    }
}

TEST_F(HalfTapeTest, ViewsAndHostWritesHitTheRightPlaces) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *base = typed(d, {1, 2, 3, 4, 5, 6, 7, 8}, true);
        tile_array *odd = strided(base, 1, TILE_SHAPE(3), {2}); /* 2, 4, 6 */
        tile_array *y = typed(TILE_F32, Reals(3)), *z = typed(TILE_F32, Reals(3));
        tile_kernel *k = widen(d);
        ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(odd, y)));
        tile_array *middle = slice(base, {2}, TILE_SHAPE(2)); /* 3, 4 */
        write(middle, {30, 40});
        ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(odd, z)));
        EXPECT_EQ(Reals({2, 40, 6}), read(z));
        ASSERT_EQ(TILE_OK, tape_axpy(record, 3, z, y));
        backward(wide_sum(y));
        /* 1 + 3 from both launches; what the host wrote cuts the second one off */
        expect_grad({0, 4, 0, 1, 0, 4, 0, 0}, base);
        EXPECT_EQ(Reals({4, 1, 4}), grad(odd));
    }
}

TEST_F(HalfTapeTest, SeedsAreConvertedAndRetainedAdjointsRounded) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = typed(d, {1, 2, 3, 4, 5}, true), *y = typed(d, Reals(5)), *kept = nullptr;
        tile_kernel *k = map(
            "triple", [](tile t) { return tile_expr("3*t", t); }, d);
        ASSERT_EQ(TILE_OK, tile_launch(record, k, grid_for(x), TILE_ARGS(x, y)));
        ASSERT_EQ(TILE_OK, tape_retain(record, y, &kept));
        EXPECT_EQ(d, tile_array_dtype(kept));
        tile_array *seed = typed(d, {1, 0.1, -2, 0, 0.5});
        ASSERT_EQ(TILE_OK, tape_backward_seeds(record, 1, &y, &seed)) << tile_last_error();
        EXPECT_EQ(read(seed), read(kept));
        Reals want;
        for (double s : read(seed)) want.push_back(rounded(d, 3 * s));
        expect_grad(want, x);
        tile_array *single = typed(TILE_F32, Reals(5));
        expect_error(TILE_E_DTYPE, "its array is", tape_backward_seeds(record, 1, &y, &single));
        tile_array *one = typed(d, {2}, true); /* a 16-bit loss, seeded with 1 */
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *loss = typed(d, {0});
        ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(one, loss)));
        backward(loss);
        expect_grad({3}, one);
    }
}

/* A call's gradients are float32: dreads are added to, so that sums are not lost. */
TEST_F(HalfTapeTest, CallbacksGetFloat32Gradients) {
    struct Call {
        static tile_status forward(void *, tile_array *const *reads, tile_array *const *writes) {
            std::vector<uint16_t> x(4);
            if (tile_array_read(reads[0], x.data(), 8)) return TILE_E_STATE;
            return tile_array_write(writes[0], x.data(), 8);
        }
        static tile_status backward(void *user, tile_array *const *reads,
                                    tile_array *const *dwrites, tile_array *const *dreads) {
            std::vector<tile_dtype> &seen = *static_cast<std::vector<tile_dtype> *>(user);
            seen = {tile_array_dtype(reads[0]), tile_array_dtype(dwrites[0]),
                    tile_array_dtype(dreads[0])};
            float dy[4], dx[4];
            if (tile_array_read(dwrites[0], dy, 16) || tile_array_read(dreads[0], dx, 16))
                return TILE_E_STATE;
            for (int i = 0; i < 4; i++) dx[i] += dy[i];
            return tile_array_write(dreads[0], dx, 16);
        }
    };
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = typed(d, {1, 2, 3, 4}, true), *y = typed(d, Reals(4));
        tile_array *z = typed(TILE_F32, Reals(4));
        std::vector<tile_dtype> seen;
        tile_array *total = typed(TILE_F32, Reals(4));
        for (int i = 0; i < 3; i++) {
            const tape_call call = {1, 1, &x, &y, Call::forward, Call::backward, &seen};
            ASSERT_EQ(TILE_OK, tape_record_call(record, &call)) << tile_last_error();
            ASSERT_EQ(TILE_OK, tile_launch(record, widen(d), TILE_GRID(1), TILE_ARGS(y, z)));
            ASSERT_EQ(TILE_OK, tape_axpy(record, 0.5, z, total));
        }
        write(tile_array_grad(x), Reals(4, large(d)));
        backward(wide_sum(total));
        EXPECT_EQ((std::vector<tile_dtype>{d, TILE_F32, TILE_F32}), seen);
        expect_grad(Reals(4, large(d) + 2), x); /* 0.5 of each call */
    }
}

TEST_F(HalfTapeTest, AnOwnAdjointTakesFloat32Gradients) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        const auto adjoint = [&](tile_dtype grad_dtype) {
            return kernel("own", [&](tile_builder *b) {
                tile_array_param(b, "x", d, 1);
                tile_array_param(b, "y", d, 1);
                const tile_param dx = tile_array_param(b, "dx", grad_dtype, 1);
                const tile_param dy = tile_array_param(b, "dy", grad_dtype, 1);
                const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
                const tile t = tile_load(dy, TILE_SHAPE(BLOCK), at);
                tile_store(dy, tile_expr("0*t", t), at);
                const tile v = tile_load(dx, TILE_SHAPE(BLOCK), at);
                tile_store(dx, tile_expr("v + 7*t", v, t), at);
            });
        };
        tile_kernel *k = map(
            "copy", [](tile t) { return t; }, d);
        expect_error(TILE_E_ARGUMENT, "parameter 3 of own is not like the gradient of x",
                     tile_kernel_set_adjoint(k, adjoint(d)));
        ASSERT_EQ(TILE_OK, tile_kernel_set_adjoint(k, adjoint(TILE_F32))) << tile_last_error();
        tile_array *x = typed(d, {1, 2, 3, 4}, true), *y = typed(d, Reals(4));
        ASSERT_EQ(TILE_OK, tile_launch(record, k, TILE_GRID(1), TILE_ARGS(x, y)));
        backward(wide_sum(y));
        expect_grad(Reals(4, 7), x);
    }
}

TEST_F(HalfTapeTest, ReadyMadeLaunchesRoundOnce) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = typed(d, Reals(10000, 0.1), true), *y = typed(d, Reals(10000, 1.0 / 3));
        tile_array *wide = typed(TILE_F32, {0}), *narrow = typed(d, {0});
        const double a = rounded(d, 0.1), b = rounded(d, 1.0 / 3);
        ASSERT_EQ(TILE_OK, tape_sum(record, x, wide)) << tile_last_error();
        EXPECT_NEAR(1e4 * a, read(wide)[0], 1e-3);
        ASSERT_EQ(TILE_OK, tape_sum(record, x, narrow)) << tile_last_error();
        EXPECT_EQ(rounded(d, read(wide)[0]), read(narrow)[0]);
        backward(narrow);
        expect_grad(Reals(10000, 1), x);
        ASSERT_EQ(TILE_OK, tape_dot(record, x, y, wide));
        EXPECT_NEAR(1e4 * a * b, read(wide)[0], 1e-3);
        ASSERT_EQ(TILE_OK, tape_misfit(record, x, y, wide));
        EXPECT_NEAR(1e4 * (a - b) * (a - b), read(wide)[0], 1e-3);
        ASSERT_EQ(TILE_OK, tape_axpy(record, 0.7, x, y));
        const float axpy = static_cast<float>(b) + 0.7f * static_cast<float>(a);
        EXPECT_EQ(Reals(10000, rounded(d, static_cast<double>(axpy))), read(y));
        tile_array *g = typed(d, {2, -3}), *m = typed(d, {0, 0}), *v = typed(d, {0, 0});
        tile_array *at = typed(d, {1, 1});
        tape_adam_options options = {};
        options.rate = 0.25;
        ASSERT_EQ(TILE_OK, tape_adam(record, &options, 1, at, g, m, v)) << tile_last_error();
        EXPECT_EQ(Reals({0.75, 1.25}), read(at)); /* the first step is the rate, against g */
        tile_array *f = typed(d, {0, 0});
        ASSERT_EQ(TILE_OK,
                  tape_fill(record, f, 1 + std::ldexp(1, d == TILE_F16 ? -11 : -8) + 1e-9));
        EXPECT_EQ(Reals(2, 1 + std::ldexp(1, d == TILE_F16 ? -10 : -7)), read(f));
        tile_array *mixed = typed(TILE_F64, {0});
        expect_error(TILE_E_DTYPE, "tape_sum: result is float64", tape_sum(record, x, mixed));
    }
}

TEST_F(HalfTapeTest, GradcheckRefusesWhatItCannotTell) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tape_check_report report;
        tile_array *x = typed(d, {1, 2, 3, 4}, true), *y = typed(TILE_F32, Reals(4));
        ASSERT_EQ(TILE_OK, tile_launch(record, widen(d), TILE_GRID(1), TILE_ARGS(x, y)));
        tile_array *loss = wide_sum(y);
        const std::string name = tile_dtype_name(d);
        expect_error(TILE_E_DTYPE, ("array x of record 0 (widen) is " + name).c_str(),
                     tape_gradcheck(record, loss, TAPE_CHECK_ALL, &report));
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *a = typed(TILE_F32, {1, 2, 3, 4}, true);
        tile_kernel *rounds = map(
            "rounds", [d](tile t) { return tile_cast(tile_cast(tile_mul(t, t), d), TILE_F32); },
            TILE_F32);
        ASSERT_EQ(TILE_OK, tile_launch(record, rounds, TILE_GRID(1), TILE_ARGS(a, y)));
        expect_error(TILE_E_DTYPE, "kernel rounds of record 0 rounds to 16 bits",
                     tape_gradcheck(record, wide_sum(y), TAPE_CHECK_ALL, &report));
        /* a constant of 16 bits is a number like any other */
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *w = typed(d, {0.1, 0.2, 0.3, 0.4});
        tile_kernel *weigh = kernel("weigh", [&](tile_builder *b) {
            const tile_param pa = tile_array_param(b, "a", TILE_F32, 1);
            const tile_param pw = tile_array_param(b, "w", d, 1);
            const tile_param py = tile_array_param(b, "y", TILE_F32, 1);
            const tile t = tile_load(pa, TILE_SHAPE(4), TILE_AT_ZERO);
            const tile u = tile_cast(tile_load(pw, TILE_SHAPE(4), TILE_AT_ZERO), TILE_F32);
            tile_store(py, tile_expr("t*t*u", t, u), TILE_AT_ZERO);
        });
        ASSERT_EQ(TILE_OK, tile_launch(record, weigh, TILE_GRID(1), TILE_ARGS(a, w, y)));
        ASSERT_EQ(TILE_OK, tape_gradcheck(record, wide_sum(y), TAPE_CHECK_ALL, &report))
            << tile_last_error();
        EXPECT_TRUE(report.passed);
    }
}

TEST_F(HalfTapeTest, AGradientOfANarrowIntegerIsRefused) {
    for (tile_dtype d : {TILE_I8, TILE_I16, TILE_U16}) {
        tile_array *a = array(d, TILE_SHAPE(2));
        expect_error(TILE_E_DTYPE, tile_dtype_name(d), tile_array_request_grad(a));
    }
}

} // namespace
