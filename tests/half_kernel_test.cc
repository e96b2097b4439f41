/* half_kernel_test.cc: kernels on 16-bit floats and narrow integers: one rounding an op, casts,
 * constants, parameters, atomics, wrapping, and what is refused. */
#include "tests/tape_fixture.h"

extern "C" {
#include "core/builder.h"
}

namespace {

const tile_dtype kHalves[] = {TILE_F16, TILE_BF16};

double rounded(tile_dtype dtype, double x) {
    double bytes = 0;
    tile_dtype_put(dtype, x, &bytes);
    return tile_dtype_get(dtype, &bytes);
}

/* An op in float32, rounded once. */
double once(tile_dtype dtype, float x) {
    return rounded(dtype, static_cast<double>(x));
}

/* 1 and more than half a step, which float32 rounds to half a step: twice rounded it is 1. */
double over_half(tile_dtype dtype) {
    return 1 + std::ldexp(1, dtype == TILE_F16 ? -11 : -8) + std::ldexp(1, -40);
}
double next_to_one(tile_dtype dtype) {
    return 1 + std::ldexp(1, dtype == TILE_F16 ? -10 : -7);
}

class HalfKernelTest : public TapeTest {
  protected:
    HalfKernelTest() : TapeTest(3) {}
    Reals wave(size_t n) {
        Reals x(n);
        for (size_t i = 0; i < n; i++) x[i] = 2 * std::sin(0.7 * static_cast<double>(i) + 0.1);
        return x;
    }
    /* The result of y = f(x) on elements of a dtype. */
    Reals mapped(tile_dtype dtype, const Reals &values, const std::function<tile(tile)> &f) {
        tile_array *x = typed(dtype, values), *y = typed(dtype, Reals(values.size(), 7));
        EXPECT_EQ(TILE_OK,
                  tile_launch(nullptr, map("mapped", f, dtype), grid_for(x), TILE_ARGS(x, y)))
            << tile_last_error();
        return read(y);
    }
    /* y = (to)x. */
    Reals cast(tile_dtype from, tile_dtype to, const Reals &values) {
        tile_array *x = typed(from, values), *y = typed(to, Reals(values.size()));
        tile_kernel *k = kernel("cast", [&](tile_builder *b) {
            const tile_param px = tile_array_param(b, "x", from, 1);
            const tile_param py = tile_array_param(b, "y", to, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            tile_store(py, tile_cast(tile_load(px, TILE_SHAPE(BLOCK), at), to), at);
        });
        EXPECT_EQ(TILE_OK, tile_launch(nullptr, k, grid_for(x), TILE_ARGS(x, y)));
        return read(y);
    }
    /* How a kernel that build makes is refused. */
    void refuses(tile_status status, const char *part, const Build &build) {
        tile_builder *b = tile_kernel_begin(ctx, "refused");
        build(b);
        tile_kernel *k = nullptr;
        expect_error(status, part, tile_kernel_end(b, &k));
        EXPECT_EQ(nullptr, k);
    }
};

TEST_F(HalfKernelTest, EachOpRoundsOnce) {
    for (tile_dtype d : kHalves) {
        const Reals y = mapped(d, wave(37), [](tile x) { return tile_expr("x*x + 0.1*x", x); });
        for (size_t i = 0; i < y.size(); i++) {
            const float x = static_cast<float>(rounded(d, wave(37)[i]));
            const float tenth = static_cast<float>(rounded(d, 0.1));
            const float square = static_cast<float>(once(d, x * x));
            const float part = static_cast<float>(once(d, tenth * x));
            EXPECT_EQ(once(d, square + part), y[i]) << tile_dtype_name(d) << i;
        }
    }
}

TEST_F(HalfKernelTest, SumsAndMeansAreFloat32UntilTheyAreWhole) {
    for (tile_dtype d : kHalves) {
        /* 16 bits would stop at 2048 (256), and have no number for the sum of the means */
        tile_array *x = typed(d, Reals(4096, 1)), *y = typed(d, Reals(2));
        write(x, Reals(4096, d == TILE_F16 ? 60000 : 1));
        tile_kernel *k = kernel("mean", [&](tile_builder *b) {
            const tile_param px = tile_array_param(b, "x", d, 1),
                             py = tile_array_param(b, "y", d, 1);
            const tile t = tile_load(px, TILE_SHAPE(4096), TILE_AT_ZERO);
            tile_store(py, tile_mean(t, TILE_ALL_AXES), TILE_AT_ZERO);
            const tile ones = tile_full(b, d, TILE_SHAPE(4096), 1);
            tile_store(py, tile_dot(ones, ones), tile_offset_shift(TILE_AT_ZERO, TILE_SHAPE(1)));
        });
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(x, y)));
        EXPECT_EQ(Reals({rounded(d, d == TILE_F16 ? 60000 : 1), 4096}), read(y));
    }
}

TEST_F(HalfKernelTest, ConstantsAndParametersAreRoundedOnceFromDouble) {
    for (tile_dtype d : kHalves) {
        ASSERT_EQ(1, once(d, static_cast<float>(over_half(d))));
        tile_array *y = typed(d, Reals(4));
        tile_kernel *k = kernel("constants", [&](tile_builder *b) {
            const tile_param py = tile_array_param(b, "y", d, 1);
            const tile p = tile_real_param(b, "p", d);
            const tile parts[] = {
                p, tile_real(b, d, over_half(d)), tile_full(b, d, TILE_SCALAR, over_half(d)),
                tile_load_padded(py, TILE_SCALAR, TILE_AT(tile_int(b, -1)), over_half(d))};
            for (int i = 0; i < 4; i++) tile_store(py, parts[i], TILE_AT(tile_int(b, i)));
        });
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(y, over_half(d))))
            << tile_last_error();
        EXPECT_EQ(Reals(4, next_to_one(d)), read(y));
    }
}

TEST_F(HalfKernelTest, RandomNumbersAndIotaAreFloat32sRounded) {
    for (tile_dtype d : kHalves) {
        const auto build = [&](tile_dtype real) {
            return kernel("random", [&](tile_builder *b) {
                const tile_param y = tile_array_param(b, "y", real, 1);
                const tile n = tile_iota(b, TILE_I64, TILE_SHAPE(40), 0, tile_int(b, 0));
                const tile seed = tile_int(b, 42), draw = tile_int(b, 0);
                const tile u = tile_random_uniform(seed, n, draw, real);
                const tile z = tile_random_normal(seed, n, draw, real);
                const tile i = tile_iota(b, real, TILE_SHAPE(40), 0, tile_real(b, real, 0.5));
                tile_store(y, tile_concat(TILE_LIST(u, z, i), 0), TILE_AT_ZERO);
            });
        };
        tile_array *y = typed(d, Reals(120)), *wide = typed(TILE_F32, Reals(120));
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, build(d), TILE_GRID(1), TILE_ARGS(y)))
            << tile_last_error();
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, build(TILE_F32), TILE_GRID(1), TILE_ARGS(wide)));
        const Reals got = read(y), want = read(wide);
        for (size_t i = 0; i < 120; i++) EXPECT_EQ(rounded(d, want[i]), got[i]) << i;
        EXPECT_EQ(20.5, got[100]);
    }
}

TEST_F(HalfKernelTest, CastsRoundOnceBothWays) {
    const Reals x = {1.75, -2.5, 300, 1e-7, 70000, -1e9, 0.1};
    for (tile_dtype d : kHalves) {
        for (tile_dtype from : {TILE_F64, TILE_F32, TILE_F16, TILE_BF16}) {
            const Reals y = cast(from, d, x);
            for (size_t i = 0; i < x.size(); i++)
                EXPECT_EQ(rounded(d, rounded(from, x[i])), y[i]) << tile_dtype_name(from) << x[i];
        }
        EXPECT_EQ(next_to_one(d), cast(TILE_F64, d, {over_half(d)})[0]);
        EXPECT_EQ(Reals({1, -2, 127, 0, 127, -128, 0}), cast(d, TILE_I8, x));
        EXPECT_EQ(Reals({1, 0, 255, 0, 255, 0, 0}), cast(d, TILE_U8, x));
        EXPECT_EQ(Reals({1, 0, 1, 0, 1}), cast(d, TILE_BOOL, {2, 0, NAN, -0.0, 1e-7}));
        EXPECT_EQ(Reals({0, INT16_MAX, INT16_MIN}), cast(d, TILE_I16, {NAN, HUGE_VAL, -HUGE_VAL}));
        EXPECT_EQ(0.25, cast(d, TILE_F64, {0.25})[0]);
        for (tile_dtype from : {TILE_I8, TILE_I16, TILE_I32, TILE_I64})
            EXPECT_EQ(Reals({-7, 100}), cast(from, d, {-7, 100}));
        for (tile_dtype from : {TILE_U8, TILE_U16, TILE_U32, TILE_U64})
            EXPECT_EQ(Reals({7, 100}), cast(from, d, {7, 100}));
        EXPECT_EQ(Reals({rounded(d, 65535), rounded(d, 4097)}), cast(TILE_U16, d, {65535, 4097}));
    }
    /* past what float64 holds: 2^62 + 2^54 + 1 is above the middle, and beyond float16 */
    const int64_t above = (INT64_C(1) << 62) + (INT64_C(1) << 54) + 1;
    tile_array *n = array(TILE_I64, TILE_SHAPE(1)), *y = typed(TILE_BF16, {0});
    ASSERT_EQ(TILE_OK, tile_array_write(n, &above, sizeof above));
    tile_kernel *k = kernel("cast", [](tile_builder *b) {
        const tile_param pn = tile_array_param(b, "n", TILE_I64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_BF16, 1);
        const tile t = tile_load(pn, TILE_SHAPE(1), TILE_AT_ZERO);
        tile_store(py, tile_cast(t, TILE_BF16), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(n, y)));
    EXPECT_EQ(Reals({std::ldexp(1, 62) + std::ldexp(1, 55)}), read(y));
    EXPECT_EQ(Reals({HUGE_VAL}), cast(TILE_I64, TILE_F16, {65520}));
    EXPECT_EQ(Reals({65504}), cast(TILE_I64, TILE_F16, {65519}));
}

TEST_F(HalfKernelTest, AtomicAdditionsRoundOneByOneInBlockOrder) {
    /* steps of 2 from here on: 0.5 is lost, 3 is the middle between 2 and 4 and goes to even */
    for (tile_dtype d : kHalves) {
        const double large = d == TILE_F16 ? 2048 : 256;
        tile_array *a = typed(d, {large, 1}), *before = typed(d, Reals(6));
        tile_array *t = typed(d, {0.5, 0.5, 0.5, 0.5, 3, 0.25});
        tile_array *index = integers({0, 0, 0, 0, 0, 1});
        tile_kernel *k = kernel("add", [&](tile_builder *b) {
            const tile_param pa = tile_array_param(b, "a", d, 1),
                             pt = tile_array_param(b, "t", d, 1);
            const tile_param pi = tile_array_param(b, "index", TILE_I32, 1);
            const tile_param pb = tile_array_param(b, "before", d, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, 2));
            const tile i = tile_load(pi, TILE_SHAPE(2), at), x = tile_load(pt, TILE_SHAPE(2), at);
            tile_store(pb, tile_atomic_add_indexed(pa, i, x, TILE_AT_ZERO, 0), at);
        });
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(3), TILE_ARGS(a, t, index, before)));
        EXPECT_EQ(Reals({large + 4, 1.25}), read(a)) << tile_dtype_name(d);
        EXPECT_EQ(Reals({large, large, large, large, large, 1}), read(before));
        /* all blocks into one window, nobody asks for what was there */
        tile_array *s = typed(d, {large});
        tile_kernel *sum = kernel("sum", [&](tile_builder *b) {
            const tile_param ps = tile_array_param(b, "s", d, 1);
            tile_atomic_add(ps, tile_full(b, d, TILE_SHAPE(1), 0.5), TILE_AT_ZERO);
        });
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, sum, TILE_GRID(1000), TILE_ARGS(s)));
        EXPECT_EQ(Reals({large}), read(s));
        /* windows side by side run as rows where the dtype allows it */
        tile_array *y = typed(d, Reals(10, large)), *x = typed(d, Reals(10, 3));
        tile_kernel *rows = kernel("rows", [&](tile_builder *b) {
            const tile_param px = tile_array_param(b, "x", d, 1),
                             py = tile_array_param(b, "y", d, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, BLOCK));
            tile_atomic_add(py, tile_load(px, TILE_SHAPE(BLOCK), at), at);
        });
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, rows, grid_for(x), TILE_ARGS(x, y)));
        EXPECT_EQ(Reals(10, large + 4), read(y));
    }
}

TEST_F(HalfKernelTest, MovedElementsKeepTheirBits) {
    /* every pattern, signalling NaNs included, through load, broadcast, permute, view and store */
    for (tile_dtype d : kHalves) {
        std::vector<uint16_t> bits(65536), got(65536);
        for (size_t i = 0; i < bits.size(); i++) bits[i] = static_cast<uint16_t>(i);
        tile_array *x = array(d, TILE_SHAPE(256, 256)), *y = array(d, TILE_SHAPE(256, 256));
        ASSERT_EQ(TILE_OK, tile_array_write(x, bits.data(), 131072));
        tile_kernel *k = kernel("move", [&](tile_builder *b) {
            const tile_param px = tile_array_param(b, "x", d, 2),
                             py = tile_array_param(b, "y", d, 2);
            const tile t = tile_transpose(tile_load(px, TILE_SHAPE(256, 256), TILE_AT_ZERO));
            const tile top = tile_view(t, TILE_AT_ZERO, TILE_SHAPE(1, 256));
            const tile all = tile_assign(tile_zeros(b, d, TILE_SHAPE(256, 256)), t, TILE_AT_ZERO);
            const tile wide = tile_broadcast(top, TILE_SHAPE(2, 256));
            tile_store(py, tile_assign(all, wide, TILE_AT_ZERO), TILE_AT_ZERO);
        });
        ASSERT_EQ(TILE_OK, tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(x, y)));
        ASSERT_EQ(TILE_OK, tile_array_read(y, got.data(), 131072));
        for (size_t i = 0; i < 256; i++)
            for (size_t j = 0; j < 256; j++)
                ASSERT_EQ(bits[j * 256 + (i < 2 ? 0 : i)], got[i * 256 + j]) << i << " " << j;
    }
}

TEST_F(HalfKernelTest, NarrowIntegersWrap) {
    const auto add = [](tile x) { return tile_add(x, x); };
    EXPECT_EQ(Reals({-2, 2, -128, 0}), mapped(TILE_I8, {127, 1, 64, -128}, add));
    EXPECT_EQ(Reals({-2, 0, -32768}), mapped(TILE_I16, {32767, -32768, 16384}, add));
    EXPECT_EQ(Reals({65534, 0, 254}), mapped(TILE_U16, {65535, 32768, 127}, add));
    const auto square = [](tile x) { return tile_mul(x, x); };
    EXPECT_EQ(Reals({1, 0, 16}),
              mapped(TILE_I8, {-1, 16, 100}, square)); /* 10000 = 39 * 256 + 16 */
    EXPECT_EQ(Reals({1, 0}), mapped(TILE_I16, {32767, 256}, square));
    EXPECT_EQ(Reals({1, 65025}), mapped(TILE_U16, {65535, 255}, square));
    const auto half = [](tile x) { return tile_expr("floor_div(x, 2)", x); };
    EXPECT_EQ(Reals({-64, -1, 63}), mapped(TILE_I8, {-128, -1, 127}, half));
    EXPECT_EQ(Reals({-16384, -2}), mapped(TILE_I16, {-32768, -3}, half));
    EXPECT_EQ(Reals({32767}), mapped(TILE_U16, {65535}, half));
    const auto negated = [](tile x) { return tile_abs(tile_neg(x)); };
    EXPECT_EQ(Reals({-128, 5}), mapped(TILE_I8, {-128, 5}, negated));
    EXPECT_EQ(Reals({-56, 44}), cast(TILE_I32, TILE_I8, {200, 300}));
    EXPECT_EQ(Reals({65535, 1}), cast(TILE_I8, TILE_U16, {-1, 1}));
    EXPECT_EQ(Reals({-1, -32768}), cast(TILE_U16, TILE_I16, {65535, 32768}));
    EXPECT_EQ(Reals({32767, -32768, 0, -2}), cast(TILE_F64, TILE_I16, {1e9, -1e9, NAN, -2.9}));
    EXPECT_EQ(Reals({127, -128}), cast(TILE_F32, TILE_I8, {127.9, -128.9}));
    EXPECT_EQ(Reals({65535, 0}), cast(TILE_F32, TILE_U16, {65535.9, -0.9}));
    EXPECT_EQ(Reals({3, -3}), cast(TILE_I8, TILE_F32, {3, -3}));
}

TEST_F(HalfKernelTest, MixedAndMissingTypesAreRefusedByTheirNames) {
    const auto full = [](tile_builder *b, tile_dtype d) {
        return tile_full(b, d, TILE_SHAPE(2), 1);
    };
    const struct {
        tile_dtype a, b;
        const char *part;
    } mixed[] = {{TILE_F16, TILE_F32, "tile_add: a is float16, b is float32"},
                 {TILE_F32, TILE_F16, "tile_add: a is float32, b is float16"},
                 {TILE_F16, TILE_BF16, "tile_add: a is float16, b is bfloat16"},
                 {TILE_BF16, TILE_I32, "tile_add: a is bfloat16, b is int32"},
                 {TILE_I8, TILE_I16, "tile_add: a is int8, b is int16"}};
    for (const auto &m : mixed)
        refuses(TILE_E_DTYPE, m.part,
                [&](tile_builder *b) { tile_add(full(b, m.a), full(b, m.b)); });
    tile_builder *b = tile_kernel_begin(ctx, "mixed");
    const tile x16 = full(b, TILE_F16), x32 = full(b, TILE_F32);
    tile_expr("x16 + x32", x16, x32);
    tile_kernel *none = nullptr;
    EXPECT_EQ(TILE_E_FORMULA, tile_kernel_end(b, &none));
    EXPECT_NE(std::string::npos,
              std::string(tile_last_error()).find("float16 and float32 are mixed"));
    refuses(TILE_E_DTYPE, "tile_floor_div: no such operation on float16",
            [&](tile_builder *b) { tile_floor_div(full(b, TILE_F16), full(b, TILE_F16)); });
    refuses(TILE_E_DTYPE, "tile_logical_not: no such operation on bfloat16",
            [&](tile_builder *b) { tile_logical_not(full(b, TILE_BF16)); });
    refuses(TILE_E_DTYPE, "dot: a is float16, b is float32",
            [&](tile_builder *b) { tile_dot(full(b, TILE_F16), full(b, TILE_F32)); });
    refuses(TILE_E_SHAPE, "store: the tile is ", [&](tile_builder *b) {
        tile_store(tile_array_param(b, "a", TILE_F16, 2), full(b, TILE_F16), TILE_AT_ZERO);
    });
    refuses(TILE_E_DTYPE, "store: the tile is float32, the array is float16", [&](tile_builder *b) {
        tile_store(tile_array_param(b, "a", TILE_F16, 1), full(b, TILE_F32), TILE_AT_ZERO);
    });
    const struct {
        tile_dtype dtype;
        const char *part;
    } narrow[] = {{TILE_I8, "atomic_add: int8 has no atomic addition"},
                  {TILE_I16, "atomic_add: int16 has no atomic addition"},
                  {TILE_U8, "atomic_add: uint8 has no atomic addition"},
                  {TILE_U16, "atomic_add: uint16 has no atomic addition"},
                  {TILE_BOOL, "atomic_add: bool has no atomic addition"}};
    for (const auto &n : narrow)
        refuses(TILE_E_DTYPE, n.part, [&](tile_builder *b) {
            tile_atomic_add(tile_array_param(b, "a", n.dtype, 1), full(b, n.dtype), TILE_AT_ZERO);
        });
    refuses(TILE_E_DTYPE, "tile_random_uniform: dtype is int8, wanted a float dtype",
            [&](tile_builder *b) {
                const tile n = tile_int(b, 1);
                tile_random_uniform(n, n, n, TILE_I8);
            });
    refuses(TILE_E_DTYPE, "tile_cast: dtype is 99",
            [&](tile_builder *b) { tile_cast(full(b, TILE_F16), static_cast<tile_dtype>(99)); });
    refuses(TILE_E_ARGUMENT, "value is 128, which int8 does not hold",
            [&](tile_builder *b) { tile_full(b, TILE_I8, TILE_SHAPE(1), 128); });
    refuses(TILE_E_ARGUMENT, "pad is -1, which uint16 does not hold", [&](tile_builder *b) {
        tile_load_padded(tile_array_param(b, "a", TILE_U16, 1), TILE_SHAPE(2), TILE_AT_ZERO, -1);
    });
    tile_array *x = typed(TILE_F16, {1}), *y = typed(TILE_BF16, {1});
    tile_kernel *k = map(
        "map", [](tile t) { return t; }, TILE_F16);
    expect_error(TILE_E_DTYPE, "array y is bfloat16, expected float16",
                 tile_launch(nullptr, k, TILE_GRID(1), TILE_ARGS(x, y)));
}

/* Only what moves elements, and casts, are of 16 bits in a finished program. */
TEST_F(HalfKernelTest, ProgramsComputeInFloat32) {
    tile_kernel *k = map(
        "program", [](tile x) { return tile_expr("sqrt(x*x + 2)", x); }, TILE_F16);
    char *text = nullptr;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ASSERT_EQ(TILE_OK, tile_kernel_print(k, out));
    fclose(out);
    const std::string program(text, bytes);
    free(text);
    size_t casts = 0;
    for (size_t at = program.find("= cast"); at != std::string::npos;
         at = program.find("= cast", at + 1))
        casts++;
    EXPECT_EQ(7u, casts) << program; /* x; the product there and back; 2; the sum; the root */
}

} // namespace
