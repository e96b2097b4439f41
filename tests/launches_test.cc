/* launches_test.cc: fill, copy, axpy, sums and Adam: values, gradients, strides, overlaps, errors.
 * */
#include "tests/tape_fixture.h"

extern "C" {
#include "core/dtype.h"
#include "core/memory.h"
}

namespace {

class LaunchesTest : public TapeTest {
  protected:
    /* Elements as bytes. */
    static std::vector<unsigned char> bytes(tile_array *a) {
        std::vector<unsigned char> b(static_cast<size_t>(tile_array_count(a)) *
                                     tile_dtype_size(tile_array_dtype(a)));
        EXPECT_EQ(TILE_OK, tile_array_read(a, b.data(), b.size())) << tile_last_error();
        return b;
    }
    /* Elements 0, 1, 2, .. (bool: 0, 1, 0, ..) of any type. */
    tile_array *counting(tile_dtype dtype, tile_shape shape) {
        tile_array *a = array(dtype, shape);
        std::vector<unsigned char> b = bytes(a);
        const size_t size = tile_dtype_size(dtype);
        for (size_t i = 0; i * size < b.size(); i++)
            tile_dtype_put(dtype, static_cast<double>(dtype == TILE_BOOL ? i % 2 : i % 100),
                           b.data() + i * size);
        EXPECT_EQ(TILE_OK, tile_array_write(a, b.data(), b.size()));
        return a;
    }
    static Reals values(tile_array *a) {
        const std::vector<unsigned char> b = bytes(a);
        const size_t size = tile_dtype_size(tile_array_dtype(a));
        Reals x;
        for (size_t i = 0; i < b.size(); i += size)
            x.push_back(tile_dtype_get(tile_array_dtype(a), b.data() + i));
        return x;
    }
    /* A shape of a rank with extents 2, 3, 4, 2, 3, 4, and a view into the middle of a larger
       array. */
    static tile_shape shape_of_rank(int rank) {
        tile_shape shape = {rank, {}};
        for (int d = 0; d < rank; d++) shape.extent[d] = 2 + d % 3;
        return shape;
    }
    tile_array *framed(tile_array **base, tile_dtype dtype, int rank) {
        tile_shape larger = shape_of_rank(rank);
        for (int d = 0; d < rank; d++) larger.extent[d] += 2;
        *base = counting(dtype, larger);
        return slice(*base, std::vector<int64_t>(static_cast<size_t>(rank), 1),
                     shape_of_rank(rank));
    }
    static Reals wave(size_t n, double phase) {
        Reals x(n);
        for (size_t i = 0; i < n; i++) x[i] = std::sin(phase + 0.7 * static_cast<double>(i));
        return x;
    }
};

TEST_F(LaunchesTest, FillSetsArraysOfEveryTypeAndRank) {
    for (int dtype = 0; dtype < TILE_DTYPES; dtype++)
        for (int rank = 0; rank <= TILE_RANK_MAX; rank++) {
            tile_array *a = counting(static_cast<tile_dtype>(dtype), shape_of_rank(rank));
            ASSERT_EQ(TILE_OK, tape_fill(nullptr, a, 1)) << tile_last_error();
            EXPECT_EQ(Reals(static_cast<size_t>(tile_array_count(a)), 1.0), values(a))
                << dtype << " " << rank;
        }
}

TEST_F(LaunchesTest, FillReachesTheEndsOfIntegers) {
    const struct {
        tile_dtype dtype;
        double value;
    } cases[] = {{TILE_I32, -2147483648.0},
                 {TILE_I64, -9223372036854775808.0},
                 {TILE_U8, 255},
                 {TILE_U32, 4294967295.0},
                 {TILE_U64, 18446744073709549568.0},
                 {TILE_I64, -1},
                 {TILE_I8, -128},
                 {TILE_I16, 32767},
                 {TILE_U16, 65535},
                 {TILE_F16, 65504},
                 {TILE_BOOL, 0}};
    for (const auto &c : cases) {
        tile_array *a = counting(c.dtype, TILE_SHAPE(3));
        ASSERT_EQ(TILE_OK, tape_fill(record, a, c.value)) << tile_last_error();
        EXPECT_EQ(Reals(3, c.value), values(a)) << tile_dtype_name(c.dtype);
    }
}

TEST_F(LaunchesTest, FillRefusesWhatAnIntegerDoesNotHold) {
    tile_array *a = counting(TILE_U8, TILE_SHAPE(3));
    for (double value : {256.0, -1.0, 0.5, static_cast<double>(NAN)})
        expect_error(TILE_E_ARGUMENT, "uint8", tape_fill(record, a, value));
    EXPECT_EQ(Reals({0, 1, 2}), values(a));
    EXPECT_EQ(0, tape_length(record));
}

TEST_F(LaunchesTest, FillOfAViewLeavesTheRestAlone) {
    for (int rank = 1; rank <= TILE_RANK_MAX; rank++) {
        tile_array *base, *inner = framed(&base, TILE_F64, rank);
        double before = 0, after = 0;
        for (double v : values(base)) before += v;
        for (double v : values(inner)) before -= v;
        ASSERT_EQ(TILE_OK, tape_fill(record, inner, -3)) << tile_last_error();
        for (double v : values(base)) after += v;
        EXPECT_EQ(before - 3 * static_cast<double>(tile_array_count(inner)), after) << rank;
        EXPECT_EQ(Reals(static_cast<size_t>(tile_array_count(inner)), -3.0), values(inner)) << rank;
    }
}

TEST_F(LaunchesTest, CopyTakesEveryTypeRankAndStride) {
    for (int dtype = 0; dtype < TILE_DTYPES; dtype++)
        for (int rank = 1; rank <= TILE_RANK_MAX; rank++) {
            tile_array *base, *to_base;
            tile_array *x = framed(&base, static_cast<tile_dtype>(dtype), rank);
            tile_array *y = array(static_cast<tile_dtype>(dtype), shape_of_rank(rank));
            ASSERT_EQ(TILE_OK, tape_copy(nullptr, x, y)) << tile_last_error();
            EXPECT_EQ(bytes(x), bytes(y)) << dtype << " " << rank;
            tile_array *z = framed(&to_base, static_cast<tile_dtype>(dtype), rank);
            ASSERT_EQ(TILE_OK, tape_fill(nullptr, z, 1));
            ASSERT_EQ(TILE_OK, tape_copy(nullptr, y, z)) << tile_last_error();
            EXPECT_EQ(bytes(x), bytes(z)) << dtype << " " << rank;
            EXPECT_EQ(bytes(base), bytes(to_base)) << dtype << " " << rank;
        }
}

TEST_F(LaunchesTest, ATransposedCopyCarriesItsGradientBack) {
    /* y = x^T, L = sum w y: dx = w^T */
    tile_array *x = active(TILE_SHAPE(2, 3), {1, 2, 3, 4, 5, 6}),
               *y = reals(TILE_SHAPE(3, 2), Reals(6));
    tile_array *turned = strided(x, 0, TILE_SHAPE(3, 2), {1, 3}), *loss = zeros(1);
    tile_array *w = reals(TILE_SHAPE(3, 2), {1, 2, 3, 4, 5, 6});
    ASSERT_EQ(TILE_OK, tape_copy(record, turned, y)) << tile_last_error();
    EXPECT_EQ(Reals({1, 4, 2, 5, 3, 6}), read(y));
    ASSERT_EQ(TILE_OK, tape_dot(record, w, y, loss));
    backward(loss);
    EXPECT_EQ(Reals({1, 3, 5, 2, 4, 6}), grad(x));
}

TEST_F(LaunchesTest, OverlappingCopiesAreAsIfTheSourceWasReadFirst) {
    /* over more than one block, both ways; L = sum w a */
    const size_t n = 1300;
    for (int64_t from : {0, 1}) {
        tile_array *a = active(wave(n, 0)), *w = reals(wave(n, 1)), *loss = zeros(1);
        tile_array *x = slice(a, {from}, TILE_SHAPE(n - 1));
        tile_array *y = slice(a, {1 - from}, TILE_SHAPE(n - 1));
        const Reals source = read(x), weights = read(w);
        ASSERT_EQ(TILE_OK, tape_copy(record, x, y)) << tile_last_error();
        EXPECT_EQ(source, read(y));
        ASSERT_EQ(TILE_OK, tape_dot(record, w, a, loss));
        backward(loss);
        Reals wanted(n);
        for (size_t i = 0; i < n - 1; i++)
            wanted[i + static_cast<size_t>(from)] = weights[i + static_cast<size_t>(1 - from)];
        const size_t kept = from ? n - 1 : 0;
        wanted[kept] += weights[kept];
        EXPECT_EQ(wanted, grad(a)) << from;
        ASSERT_EQ(TILE_OK, tape_reset(record));
    }
}

TEST_F(LaunchesTest, CopyingAnArrayToItselfIsTheIdentity) {
    tile_array *x = active({1, 2});
    ASSERT_EQ(TILE_OK, tape_copy(record, x, x));
    EXPECT_EQ(Reals({1, 2}), read(x));
    backward(sum(x));
    EXPECT_EQ(Reals({1, 1}), grad(x));
}

TEST_F(LaunchesTest, AWholeOverwriteTakesAFreshBuffer) {
    /* x is needed by the dot product, so that its buffer goes to the tape */
    tile_array *x = active(TILE_SHAPE(2, 2), {1, 2, 3, 4}), *y = reals(TILE_SHAPE(2, 2), Reals(4));
    tile_array *loss = zeros(1);
    const std::function<tile_status()> writes[] = {
        [&]() { return tape_fill(record, x, 5); },
        [&]() { return tape_copy(record, y, x); },
        [&]() { return tape_axpy(record, 2, y, x); },
    };
    for (const auto &write : writes) {
        ASSERT_EQ(TILE_OK, tape_dot(record, x, x, loss));
        const tile_buffer *before = x->storage->buffer;
        ASSERT_EQ(TILE_OK, write());
        EXPECT_NE(before, x->storage->buffer);
    }
}

TEST_F(LaunchesTest, AxpyAddsAMultipleOnEveryRank) {
    for (int rank = 0; rank <= TILE_RANK_MAX; rank++)
        for (bool view : {false, true}) {
            if (view && rank == 0) continue;
            tile_array *base;
            tile_array *x =
                view ? framed(&base, TILE_F32, rank) : counting(TILE_F32, shape_of_rank(rank));
            tile_array *y = counting(TILE_F32, shape_of_rank(rank));
            const Reals u = values(x), v = values(y);
            ASSERT_EQ(TILE_OK, tape_axpy(nullptr, 0.5, x, y)) << tile_last_error();
            const Reals z = values(y);
            for (size_t i = 0; i < z.size(); i++) EXPECT_EQ(v[i] + 0.5 * u[i], z[i]) << rank;
        }
}

TEST_F(LaunchesTest, AxpyOfAnArrayOnItselfScalesIt) {
    /* y += 2 y: 3 y, derivative 3 */
    tile_array *y = active({1, -2, 4});
    ASSERT_EQ(TILE_OK, tape_axpy(record, 2, y, y));
    EXPECT_EQ(Reals({3, -6, 12}), read(y));
    backward(sum(y));
    EXPECT_EQ(Reals({3, 3, 3}), grad(y));
}

TEST_F(LaunchesTest, AxpyOnAShiftedViewOfItselfReadsTheOldValues) {
    /* a[1:] += 10 a[:-1]: (1, 12, 23), not (1, 12, 123) */
    tile_array *a = active({1, 2, 3});
    tile_array *left = slice(a, {0}, TILE_SHAPE(2)), *right = slice(a, {1}, TILE_SHAPE(2));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 10, left, right)) << tile_last_error();
    EXPECT_EQ(Reals({1, 12, 23}), read(a));
    backward(sum(a));
    EXPECT_EQ(Reals({11, 11, 1}), grad(a));
}

TEST_F(LaunchesTest, AxpyOnInterleavedViewsNeedsNoCopy) {
    tile_array *a = active({1, 2, 3, 4});
    tile_array *even = slice(a, {0}, TILE_SHAPE(2), {2}), *odd = slice(a, {1}, TILE_SHAPE(2), {2});
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, even, odd)) << tile_last_error();
    EXPECT_EQ(1, tape_length(record));
    EXPECT_EQ(Reals({1, 3, 3, 7}), read(a));
    backward(sum(a));
    EXPECT_EQ(Reals({2, 1, 2, 1}), grad(a));
}

TEST_F(LaunchesTest, AxpyOnRankFiveViewsHasItsGradient) {
    tile_array *base, *x = framed(&base, TILE_F64, 5);
    tile_array *y = array(TILE_F64, shape_of_rank(5)), *loss = zeros(1);
    tile_array *active_base = array(TILE_F64, tile_array_shape(base));
    ASSERT_EQ(TILE_OK, tile_array_request_grad(active_base));
    tile_array *inner = slice(active_base, {1, 1, 1, 1, 1}, shape_of_rank(5));
    ASSERT_EQ(TILE_OK, tape_copy(record, x, inner)) << tile_last_error();
    ASSERT_EQ(TILE_OK, tape_reset(record));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 3, inner, y)) << tile_last_error();
    ASSERT_EQ(TILE_OK, tape_dot(record, y, inner, loss)) << tile_last_error();
    backward(loss); /* L = 3 <x, x>: 6 x inside, 0 outside */
    const Reals d = values(tile_array_grad(inner)), v = values(inner);
    for (size_t i = 0; i < d.size(); i++) EXPECT_EQ(6 * v[i], d[i]);
    double all = 0, inside = 0;
    for (double g : values(tile_array_grad(active_base))) all += g;
    for (double g : d) inside += g;
    EXPECT_EQ(inside, all);
}

TEST_F(LaunchesTest, SumsOfEveryLengthAreRight) {
    for (size_t n : {0, 1, 2, 4095, 4096, 4097, 8192, 20000}) {
        Reals x(n);
        for (size_t i = 0; i < n; i++) x[i] = static_cast<double>(i + 1);
        tile_array *a = active(x), *result = reals(Reals{-7});
        ASSERT_EQ(TILE_OK, tape_sum(record, a, result)) << tile_last_error();
        EXPECT_EQ(Reals({static_cast<double>(n * (n + 1) / 2)}), read(result)) << n;
        if (n) {
            backward(result);
            EXPECT_EQ(Reals(n, 1.0), grad(a)) << n;
        }
        ASSERT_EQ(TILE_OK, tape_reset(record));
    }
}

TEST_F(LaunchesTest, SumsGoOverAsManyLevelsAsItTakes) {
    /* 4096^2 + 5 times one element: three launches */
    const int64_t n = 4096 * 4096 + 5;
    tile_array *x = reals(Reals{3}), *row = strided(x, 0, TILE_SHAPE(n), {0}), *result = zeros(1);
    ASSERT_EQ(TILE_OK, tape_sum(record, row, result)) << tile_last_error();
    EXPECT_EQ(3, tape_length(record));
    EXPECT_EQ(Reals({3.0 * static_cast<double>(n)}), read(result));
}

TEST_F(LaunchesTest, SumsOfViewsOfEveryRankAreRight) {
    for (int rank = 1; rank <= TILE_RANK_MAX; rank++) {
        tile_array *base, *x = framed(&base, TILE_F64, rank), *result = zeros(1);
        double wanted = 0, squares = 0;
        for (double v : values(x)) wanted += v, squares += v * v;
        ASSERT_EQ(TILE_OK, tape_sum(nullptr, x, result)) << tile_last_error();
        EXPECT_EQ(Reals({wanted}), read(result)) << rank;
        ASSERT_EQ(TILE_OK, tape_dot(nullptr, x, x, result)) << tile_last_error();
        EXPECT_EQ(Reals({squares}), read(result)) << rank;
        tile_array *empty = array(TILE_F64, shape_of_rank(rank));
        ASSERT_EQ(TILE_OK, tape_misfit(nullptr, x, empty, result)) << tile_last_error();
        EXPECT_EQ(Reals({squares}), read(result)) << rank;
    }
}

TEST_F(LaunchesTest, LongAndShortRowsOfViewsAreSummed) {
    for (int64_t width : {1, 16, 17, 256, 257, 5000}) {
        tile_array *base = counting(TILE_F64, TILE_SHAPE(3, width + 1)), *result = zeros(1);
        tile_array *x = slice(base, {0, 0}, TILE_SHAPE(3, width));
        double wanted = 0;
        for (double v : values(x)) wanted += v;
        ASSERT_EQ(TILE_OK, tape_sum(nullptr, x, result)) << tile_last_error();
        EXPECT_EQ(Reals({wanted}), read(result)) << width;
    }
}

TEST_F(LaunchesTest, ADotProductHasBothGradients) {
    const size_t n = 5000;
    tile_array *x = active(wave(n, 0)), *y = active(wave(n, 1)), *result = zeros(1);
    ASSERT_EQ(TILE_OK, tape_dot(record, x, y, result)) << tile_last_error();
    double wanted = 0;
    for (size_t i = 0; i < n; i++) wanted += read(x)[i] * read(y)[i];
    EXPECT_NEAR(wanted, read(result)[0], 1e-10);
    backward(result);
    EXPECT_EQ(read(y), grad(x));
    EXPECT_EQ(read(x), grad(y));
}

TEST_F(LaunchesTest, ADotProductOfAnArrayWithItselfCountsTwice) {
    tile_array *x = active({1, 2, 3}), *result = zeros(1);
    ASSERT_EQ(TILE_OK, tape_dot(record, x, x, result));
    EXPECT_EQ(Reals({14}), read(result));
    backward(result);
    EXPECT_EQ(Reals({2, 4, 6}), grad(x));
}

TEST_F(LaunchesTest, ADotProductOfAMatrixWithItsTransposeIsExact) {
    /* sum x_ij x_ji: derivative 2 x_ji */
    tile_array *x = active(TILE_SHAPE(2, 2), {1, 2, 3, 4}), *result = zeros(1);
    tile_array *turned = strided(x, 0, TILE_SHAPE(2, 2), {1, 2});
    ASSERT_EQ(TILE_OK, tape_dot(record, x, turned, result)) << tile_last_error();
    EXPECT_EQ(Reals({1 + 6 + 6 + 16}), read(result));
    backward(result);
    EXPECT_EQ(Reals({2, 6, 4, 8}), grad(x));
}

TEST_F(LaunchesTest, TheResultMayBePartOfWhatIsSummed) {
    /* x[1] = sum x, L = x[1] + x[2]: (1, 1, 2) */
    tile_array *x = active({1, 2, 4}), *middle = slice(x, {1}, TILE_SHAPE(1));
    ASSERT_EQ(TILE_OK, tape_sum(record, x, middle)) << tile_last_error();
    EXPECT_EQ(Reals({1, 7, 4}), read(x));
    backward(sum(slice(x, {1}, TILE_SHAPE(2))));
    EXPECT_EQ(Reals({1, 1, 2}), grad(x));
}

TEST_F(LaunchesTest, ResultsOfAnyRankTakeASum) {
    tile_array *x = active({1, 2});
    for (int rank = 0; rank <= TILE_RANK_MAX; rank++) {
        tile_shape one = {rank, {1, 1, 1, 1, 1, 1}};
        tile_array *result = array(TILE_F64, one);
        ASSERT_EQ(TILE_OK, tape_sum(record, x, result)) << tile_last_error();
        EXPECT_EQ(Reals({3}), read(result)) << rank;
        ASSERT_EQ(TILE_OK, tape_zero(record));
        backward(result);
        EXPECT_EQ(Reals({1, 1}), grad(x)) << rank;
    }
}

TEST_F(LaunchesTest, AMisfitIsTheSumOfSquaredDifferences) {
    /* (1-2)^2 + (5-3)^2 = 5; dx = 2 (x - y) */
    tile_array *x = active({1, 5}), *y = active({2, 3}), *result = zeros(1);
    ASSERT_EQ(TILE_OK, tape_misfit(record, x, y, result));
    EXPECT_EQ(Reals({5}), read(result));
    backward(result);
    EXPECT_EQ(Reals({-2, 4}), grad(x));
    EXPECT_EQ(Reals({2, -4}), grad(y));
}

TEST_F(LaunchesTest, AMisfitWithItselfIsZeroWithGradientZero) {
    tile_array *x = active({1, 5}), *result = reals(Reals{3});
    ASSERT_EQ(TILE_OK, tape_misfit(record, x, x, result));
    EXPECT_EQ(Reals({0}), read(result));
    backward(result);
    EXPECT_EQ(Reals({0, 0}), grad(x));
}

TEST_F(LaunchesTest, SumsHaveTheSameBitsForAnyNumberOfThreads) {
    const size_t n = 1000003;
    Floats32 x(n);
    for (size_t i = 0; i < n; i++) x[i] = std::sin(0.001f * static_cast<float>(i));
    float first = 0;
    for (int threads : {1, 2, 3, 8}) {
        const tile_context_options options = {threads, 0};
        tile_context *other = nullptr;
        tile_array *a = nullptr, *s = nullptr;
        ASSERT_EQ(TILE_OK, tile_context_create(&options, &other));
        ASSERT_EQ(TILE_OK, tile_array_create(other, TILE_F32, TILE_SHAPE(n), &a));
        ASSERT_EQ(TILE_OK, tile_array_create(other, TILE_F32, TILE_SHAPE(1), &s));
        ASSERT_EQ(TILE_OK, tile_array_write(a, x.data(), n * 4));
        ASSERT_EQ(TILE_OK, tape_dot(nullptr, a, a, s));
        float result = NAN;
        ASSERT_EQ(TILE_OK, tile_array_read(s, &result, 4));
        if (threads == 1) first = result;
        EXPECT_EQ(0, memcmp(&first, &result, 4)) << threads;
        tile_context_destroy(
            other); /* before its arrays: the ready-made kernels go with the last */
        tile_array_destroy(a);
        tile_array_destroy(s);
    }
}

TEST_F(LaunchesTest, AdamFollowsItsEquations) {
    const Reals g = {1, -0.5, 0.1, 0, 20};
    tile_array *x = reals({1, 2, 3, 4, 5}), *pg = reals(g), *m = zeros(5), *v = zeros(5);
    const tape_adam_options options = {0.1, 0.8, 0.9, 1e-6};
    Reals wx = {1, 2, 3, 4, 5}, wm(5), wv(5);
    for (int step = 1; step <= 3; step++) {
        ASSERT_EQ(TILE_OK, tape_adam(nullptr, &options, step, x, pg, m, v)) << tile_last_error();
        for (size_t i = 0; i < 5; i++) {
            wm[i] = 0.8 * wm[i] + 0.2 * g[i];
            wv[i] = 0.9 * wv[i] + 0.1 * g[i] * g[i];
            wx[i] -= 0.1 * (wm[i] / (1 - std::pow(0.8, step))) /
                     (std::sqrt(wv[i] / (1 - std::pow(0.9, step))) + 1e-6);
            EXPECT_NEAR(wx[i], read(x)[i], 1e-14);
            EXPECT_NEAR(wm[i], read(m)[i], 1e-14);
            EXPECT_NEAR(wv[i], read(v)[i], 1e-13);
        }
    }
}

TEST_F(LaunchesTest, AdamsFirstStepIsItsRate) {
    /* m / (1 - beta1) = g, sqrt(v / (1 - beta2)) = |g|: x -= rate sign(g), by default 1e-3 */
    tile_array *x = floats({1, 1}), *g = floats({3, -0.01f}), *m = floats({0, 0}),
               *v = floats({0, 0});
    ASSERT_EQ(TILE_OK, tape_adam(nullptr, nullptr, 1, x, g, m, v));
    EXPECT_NEAR(1 - 1e-3, read(x)[0], 1e-7);
    EXPECT_NEAR(1 + 1e-3, read(x)[1], 1e-7);
}

TEST_F(LaunchesTest, AdamTakesViewsAndTheGradientOfAnArray) {
    tile_array *base, *x = framed(&base, TILE_F64, 2), *m, *v;
    m = array(TILE_F64, shape_of_rank(2));
    v = array(TILE_F64, shape_of_rank(2));
    ASSERT_EQ(TILE_OK, tile_array_request_grad(x));
    tile_array *g = tile_array_grad(x);
    ASSERT_EQ(TILE_OK, tile_array_fill(g, 2));
    const Reals before = values(x);
    ASSERT_EQ(TILE_OK, tape_adam(record, nullptr, 1, x, g, m, v)) << tile_last_error();
    for (size_t i = 0; i < before.size(); i++) EXPECT_NEAR(before[i] - 1e-3, values(x)[i], 1e-10);
}

TEST_F(LaunchesTest, AdamRefusesBadOptionsAndSharedMemory) {
    tile_array *x = reals({1, 2}), *g = reals({1, 1}), *m = zeros(2), *v = zeros(2);
    tape_adam_options options = {0, 1, 0, 0};
    expect_error(TILE_E_ARGUMENT, "beta1", tape_adam(record, &options, 1, x, g, m, v));
    options = {NAN, 0, 0, 0};
    expect_error(TILE_E_ARGUMENT, "rate", tape_adam(record, &options, 1, x, g, m, v));
    expect_error(TILE_E_ARGUMENT, "step is 0", tape_adam(record, nullptr, 0, x, g, m, v));
    expect_error(TILE_E_ARGUMENT, "m and v share", tape_adam(record, nullptr, 1, x, g, m, m));
    expect_error(TILE_E_ARGUMENT, "x and g share", tape_adam(record, nullptr, 1, x, x, m, v));
    EXPECT_EQ(Reals({1, 2}), read(x));
    EXPECT_EQ(0, tape_length(record));
}

TEST_F(LaunchesTest, WrongArraysAreOneSentence) {
    tile_array *x = reals(TILE_SHAPE(2, 3), Reals(6)), *y = reals(TILE_SHAPE(3, 2), Reals(6));
    tile_array *f = floats({1, 2}), *i = integers({1, 2}), *d = zeros(2), *s = zeros(1);
    expect_error(TILE_E_SHAPE, "tape_axpy: y is [3, 2], x is [2, 3]", tape_axpy(record, 1, x, y));
    expect_error(TILE_E_SHAPE, "tape_copy: y is [3, 2], x is [2, 3]", tape_copy(record, x, y));
    expect_error(TILE_E_SHAPE, "tape_dot: y is [3, 2]", tape_dot(record, x, y, s));
    expect_error(TILE_E_SHAPE, "tape_misfit: y is [3, 2]", tape_misfit(record, x, y, s));
    expect_error(TILE_E_DTYPE, "y is float64, x is float32", tape_axpy(record, 1, f, d));
    expect_error(TILE_E_DTYPE, "x is int32, wanted a float", tape_axpy(record, 1, i, i));
    expect_error(TILE_E_DTYPE, "y is float32, x is int32", tape_copy(record, i, f));
    expect_error(TILE_E_DTYPE, "x is int32", tape_sum(record, i, s));
    expect_error(TILE_E_DTYPE, "result is float64, x is float32", tape_sum(record, f, s));
    expect_error(TILE_E_SHAPE, "tape_sum: result is [2]", tape_sum(record, d, d));
    expect_error(TILE_E_ARGUMENT, "tape_copy: y is NULL", tape_copy(record, x, nullptr));
    expect_error(TILE_E_ARGUMENT, "tape_fill: a is NULL", tape_fill(record, nullptr, 0));
    expect_error(TILE_E_ARGUMENT, "tape_dot: result is NULL", tape_dot(record, d, d, nullptr));
    expect_error(TILE_E_ARGUMENT, "tape_adam: v is NULL",
                 tape_adam(record, nullptr, 1, d, d, d, nullptr));
    EXPECT_EQ(0, tape_length(record));
}

TEST_F(LaunchesTest, AnotherContextIsAnError) {
    tile_context *other = nullptr;
    tile_array *foreign = nullptr, *x = zeros(2), *s = zeros(1);
    ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &other));
    ASSERT_EQ(TILE_OK, tile_array_create(other, TILE_F64, TILE_SHAPE(2), &foreign));
    expect_error(TILE_E_ARGUMENT, "another context", tape_axpy(record, 1, x, foreign));
    expect_error(TILE_E_ARGUMENT, "another context", tape_copy(record, foreign, foreign));
    expect_error(TILE_E_ARGUMENT, "another context", tape_sum(nullptr, foreign, s));
    tile_array_destroy(foreign);
    tile_context_destroy(other);
}

TEST_F(LaunchesTest, ASumForWhichMemoryRunsOutLeavesEverythingAsItWas) {
    int64_t total = 0;
    for (int64_t n = 1; n < 400; n++) {
        tile_context *other = nullptr; /* a fresh one, so that kernels are made too */
        tape *t = nullptr;
        tile_array *x = nullptr, *s = nullptr;
        ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &other));
        ASSERT_EQ(TILE_OK, tape_create(other, nullptr, &t));
        ASSERT_EQ(TILE_OK, tile_array_create(other, TILE_F32, TILE_SHAPE(5000), &x));
        ASSERT_EQ(TILE_OK, tile_array_create(other, TILE_F32, TILE_SHAPE(1), &s));
        ASSERT_EQ(TILE_OK, tile_array_fill(x, 2));
        ASSERT_EQ(TILE_OK, tile_array_fill(s, -1));
        ASSERT_EQ(TILE_OK, tile_array_request_grad(x));
        tile_fail_allocation(n);
        const tile_status status = tape_sum(t, x, s);
        tile_fail_allocation(0);
        float result = 0;
        ASSERT_EQ(TILE_OK, tile_array_read(s, &result, 4));
        EXPECT_EQ(status ? -1 : 10000, result) << n;
        EXPECT_EQ(status ? 0 : 2, tape_length(t)) << n;
        EXPECT_TRUE(!status || status == TILE_E_MEMORY) << n << tile_last_error();
        EXPECT_EQ(TILE_OK, status ? tape_sum(t, x, s) : status) << n << tile_last_error();
        EXPECT_EQ(TILE_OK, tape_backward(t, s)) << n << tile_last_error();
        tape_destroy(t);
        tile_array_destroy(x);
        tile_array_destroy(s);
        tile_context_destroy(other);
        if (status) continue;
        total = n;
        break;
    }
    EXPECT_GT(total, 10);
}

} // namespace
