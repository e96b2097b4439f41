/* errors_test.cc: bad input gives its status and one clear sentence, and leaves everything as it
 * was. */
#include "tests/tape_fixture.h"

#include <cstdlib>

extern "C" {
#include "core/memory.h"
}

namespace {

class ErrorsTest : public TapeTest {
  protected:
    /* How building a kernel fails. */
    void expect_build_error(tile_status wanted, const char *part, const Build &build) {
        tile_builder *b = tile_kernel_begin(ctx, "bad");
        build(b);
        tile_kernel *k = nullptr;
        expect_error_lines(wanted, part, tile_kernel_end(b, &k));
        EXPECT_EQ(nullptr, k);
    }
    /* A formula's sentence has its caret on a line of its own. */
    static void expect_error_lines(tile_status wanted, const char *part, tile_status status) {
        EXPECT_EQ(wanted, status) << tile_last_error();
        EXPECT_NE(std::string::npos, std::string(tile_last_error()).find(part))
            << tile_last_error();
    }
};

TEST_F(ErrorsTest, NullPointersAreNamed) {
    tile_array *x = zeros(1), *a = nullptr;
    tile_kernel *k = nullptr;
    tape *t = nullptr;
    double host = 0;
    expect_error(TILE_E_ARGUMENT, "ctx is NULL", tile_context_create(nullptr, nullptr));
    expect_error(TILE_E_ARGUMENT, "ctx is NULL", tile_context_sync(nullptr));
    expect_error(TILE_E_ARGUMENT, "ctx is NULL",
                 tile_array_create(nullptr, TILE_F32, TILE_SHAPE(1), &a));
    expect_error(TILE_E_ARGUMENT, "array is NULL",
                 tile_array_create(ctx, TILE_F32, TILE_SHAPE(1), nullptr));
    expect_error(TILE_E_ARGUMENT, "memory is NULL",
                 tile_array_wrap(ctx, TILE_F32, TILE_SHAPE(1), nullptr, nullptr, &a));
    expect_error(TILE_E_ARGUMENT, "array is NULL", tile_array_read(nullptr, &host, 8));
    expect_error(TILE_E_ARGUMENT, "host is NULL", tile_array_read(x, nullptr, 8));
    expect_error(TILE_E_ARGUMENT, "host is NULL", tile_array_write(x, nullptr, 8));
    expect_error(TILE_E_ARGUMENT, "array is NULL", tile_array_fill(nullptr, 0));
    expect_error(TILE_E_ARGUMENT, "array is NULL", tile_array_request_grad(nullptr));
    expect_error(TILE_E_ARGUMENT, "data is NULL", tile_array_data(x, nullptr));
    expect_error(TILE_E_ARGUMENT, "ctx is NULL", tape_create(nullptr, nullptr, &t));
    expect_error(TILE_E_ARGUMENT, "record is NULL", tape_create(ctx, nullptr, nullptr));
    expect_error(TILE_E_ARGUMENT, "record is NULL", tape_reset(nullptr));
    expect_error(TILE_E_ARGUMENT, "record is NULL", tape_zero(nullptr));
    expect_error(TILE_E_ARGUMENT, "record is NULL", tape_replay(nullptr));
    expect_error(TILE_E_ARGUMENT, "record is NULL", tape_backward(nullptr, x));
    expect_error(TILE_E_ARGUMENT, "NULL", tape_retain(record, nullptr, &a));
    expect_error(TILE_E_ARGUMENT, "NULL", tape_record_call(record, nullptr));
    expect_error(TILE_E_ARGUMENT, "kernel is NULL",
                 tile_launch(record, nullptr, TILE_GRID(1), TILE_ARGS(x)));
    expect_error(TILE_E_ARGUMENT, "kernel is NULL", tile_kernel_set_adjoint(nullptr, nullptr));
    expect_error(TILE_E_ARGUMENT, "builder", tile_kernel_end(nullptr, &k));
    EXPECT_EQ(nullptr, tile_kernel_begin(nullptr, "k"));
    EXPECT_EQ(nullptr, tile_kernel_begin(ctx, nullptr));
    EXPECT_EQ(nullptr, a);
    EXPECT_EQ(nullptr, t);
    EXPECT_EQ(0, tape_length(nullptr));
    EXPECT_EQ(nullptr, tile_array_grad(nullptr));
    tape_destroy(nullptr);
    tile_array_destroy(nullptr);
    tile_kernel_destroy(nullptr);
    tile_context_destroy(nullptr);
}

TEST_F(ErrorsTest, ANullLossOrSeedIsNamed) {
    tile_array *x = active({1}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    tile_array *none = nullptr;
    expect_error(TILE_E_ARGUMENT, "NULL", tape_backward(record, nullptr));
    expect_error(TILE_E_ARGUMENT, "seed", tape_backward_seeds(record, 1, &y, nullptr));
    expect_error(TILE_E_ARGUMENT, "seed 0 is NULL", tape_backward_seeds(record, 1, &y, &none));
    expect_error(TILE_E_ARGUMENT, "NULL", tape_backward_seeds(record, 1, &none, &y));
    EXPECT_EQ(Reals({0}), grad(x));
}

TEST_F(ErrorsTest, LaunchArgumentsThatDoNotFitAreNamed) {
    tile_kernel *k = kernel("scaled", [](tile_builder *b) {
        const tile_param px = tile_array_param(b, "x", TILE_F64, 1);
        const tile_param py = tile_array_param(b, "y", TILE_F64, 1);
        const tile s = tile_real_param(b, "s", TILE_F64), n = tile_int_param(b, "n");
        const tile x = tile_load(px, TILE_SHAPE(2), TILE_AT(n));
        tile_store(py, tile_mul(x, s), TILE_AT_ZERO);
    });
    tile_array *x = active({3, 4}), *y = zeros(2), *f = floats({1, 2});
    tile_array *square_array = reals(TILE_SHAPE(1, 2), {1, 2}), *none = nullptr;
    const tile_grid grid = TILE_GRID(1);
    const auto go = [&](tile_args args) { return tile_launch(record, k, grid, args); };
    expect_error(TILE_E_ARGUMENT, "scaled: 3 arguments, expected 4", go(TILE_ARGS(x, y, 2.0)));
    expect_error(TILE_E_ARGUMENT, "5 arguments, expected 4", go(TILE_ARGS(x, y, 2.0, 0, 0)));
    expect_error(TILE_E_ARGUMENT, "0 arguments", go(tile_args{0, nullptr}));
    expect_error(TILE_E_ARGUMENT, "NULL", go(tile_args{4, nullptr}));
    expect_error(TILE_E_ARGUMENT, "array y is NULL", go(TILE_ARGS(x, none, 2.0, 0)));
    expect_error(TILE_E_ARGUMENT, "argument s is an array, expected a real",
                 go(TILE_ARGS(x, y, x, 0)));
    expect_error(TILE_E_ARGUMENT, "argument s is an integer", go(TILE_ARGS(x, y, 2, 0)));
    expect_error(TILE_E_ARGUMENT, "argument n is a real", go(TILE_ARGS(x, y, 2.0, 0.5)));
    expect_error(TILE_E_ARGUMENT, "argument x is an integer, expected an array",
                 go(TILE_ARGS(1, y, 2.0, 0)));
    expect_error(TILE_E_DTYPE, "array x is float32, expected float64", go(TILE_ARGS(f, y, 2.0, 0)));
    expect_error(TILE_E_SHAPE, "array x has rank 2, expected 1",
                 go(TILE_ARGS(square_array, y, 2.0, 0)));
    expect_error(TILE_E_ARGUMENT, "grid",
                 tile_launch(record, k, TILE_GRID(-1), TILE_ARGS(x, y, 2.0, 0)));
    expect_error(TILE_E_ARGUMENT, "grid",
                 tile_launch(record, k, TILE_GRID(INT64_MAX, 2), TILE_ARGS(x, y, 2.0, 0)));
    expect_error(TILE_E_ARGUMENT, "grid",
                 tile_launch(record, k, TILE_GRID(int64_t{1} << 62, int64_t{1} << 62),
                             TILE_ARGS(x, y, 2.0, 0)));
    EXPECT_EQ(0, tape_length(record));
    EXPECT_EQ(Reals({0, 0}), read(y));
    EXPECT_EQ(TILE_OK, tile_array_request_grad(y)) << "no failed launch counts as a use";
    EXPECT_EQ(TILE_OK, go(TILE_ARGS(x, y, 2.0, 0)));
    EXPECT_EQ(Reals({6, 8}), read(y));
}

TEST_F(ErrorsTest, AnArrayOrTapeOfAnotherContextIsAnError) {
    tile_context *other = nullptr;
    ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &other));
    tile_array *foreign = nullptr, *seed = nullptr, *adjoint = nullptr, *x = active({1});
    tile_array *y = zeros(1);
    tape *t = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_create(other, TILE_F64, TILE_SHAPE(1), &foreign));
    ASSERT_EQ(TILE_OK, tile_array_create(other, TILE_F64, TILE_SHAPE(1), &seed));
    ASSERT_EQ(TILE_OK, tape_create(other, nullptr, &t));
    tile_kernel *k = square();
    expect_error(TILE_E_ARGUMENT, "array y is of another context", launch(k, x, foreign));
    expect_error(TILE_E_ARGUMENT, "tape is of another context",
                 tile_launch(t, k, TILE_GRID(1), TILE_ARGS(x, y)));
    EXPECT_EQ(0, tape_length(record));
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    expect_error(TILE_E_ARGUMENT, "another context", tape_backward(record, foreign));
    expect_error(TILE_E_ARGUMENT, "seed 0 is of another context",
                 tape_backward_seeds(record, 1, &y, &seed));
    expect_error(TILE_E_ARGUMENT, "another context", tape_retain(record, foreign, &adjoint));
    const auto nothing = [](void *, tile_array *const *, tile_array *const *) { return TILE_OK; };
    const tape_call call = {1, 0, &foreign, nullptr, nothing, nullptr, nullptr};
    expect_error(TILE_E_ARGUMENT, "another context", tape_record_call(record, &call));
    EXPECT_EQ(1, tape_length(record));
    EXPECT_EQ(Reals({0}), grad(x));
    tape_destroy(t);
    tile_array_destroy(foreign);
    tile_array_destroy(seed);
    tile_context_destroy(other);
}

TEST_F(ErrorsTest, TilesOfAnotherKernelAreAnError) {
    tile_builder *other = tile_kernel_begin(ctx, "other");
    const tile stranger = tile_real(other, TILE_F64, 1);
    expect_build_error(TILE_E_ARGUMENT, "",
                       [&](tile_builder *b) { tile_add(tile_real(b, TILE_F64, 2), stranger); });
    tile_kernel *k = nullptr;
    EXPECT_EQ(TILE_OK, tile_kernel_end(other, &k)) << tile_last_error();
    tile_kernel_destroy(k);
}

/* A handle that was forgotten: what else the call is given knows the kernel. */
TEST_F(ErrorsTest, ForgottenHandlesAreErrors) {
    const tile_param forgot = {};
    const tile_stack stack = {};
    const tile_partition view = {};
    const char *const missing = "not an array parameter of this kernel";
    const auto one = [](tile_builder *b) { return tile_zeros(b, TILE_F64, TILE_SHAPE(2)); };
    const auto index = [](tile_builder *b) { return tile_zeros(b, TILE_I64, TILE_SHAPE(2)); };
    expect_build_error(TILE_E_ARGUMENT, missing,
                       [&](tile_builder *b) { tile_store(forgot, one(b), TILE_AT_ZERO); });
    expect_build_error(TILE_E_ARGUMENT, missing,
                       [&](tile_builder *b) { tile_atomic_add(forgot, one(b), TILE_AT_ZERO); });
    expect_build_error(TILE_E_ARGUMENT, missing,
                       [&](tile_builder *b) { tile_atomic_max(forgot, one(b), TILE_AT_ZERO); });
    expect_build_error(TILE_E_ARGUMENT, missing, [&](tile_builder *b) {
        tile_load(forgot, TILE_SHAPE(2), TILE_AT(tile_int(b, 0)));
    });
    expect_build_error(TILE_E_ARGUMENT, missing, [&](tile_builder *b) {
        tile_load_indexed(forgot, index(b), TILE_SHAPE(2), TILE_AT_ZERO, 0);
    });
    expect_build_error(TILE_E_ARGUMENT, missing, [&](tile_builder *b) {
        tile_store_indexed(forgot, index(b), one(b), TILE_AT_ZERO, 0);
    });
    expect_build_error(TILE_E_ARGUMENT, "tile_stack_push: not a stack of this kernel",
                       [&](tile_builder *b) {
                           tile_stack_push(stack, one(b), tile_full(b, TILE_BOOL, TILE_SCALAR, 1));
                       });
    expect_build_error(TILE_E_ARGUMENT, "tile_partition_store: not a view of this kernel",
                       [&](tile_builder *b) {
                           tile_partition_store(view, one(b), TILE_AT(tile_int(b, 0)));
                       });
    expect_build_error(TILE_E_ARGUMENT, "tile_partition_load: not a view of this kernel",
                       [&](tile_builder *b) {
                           tile_partition_load(view, TILE_AT(tile_int(b, 0)));
                       });
}

TEST_F(ErrorsTest, MoreShiftsThanDimensionsAreAnError) {
    expect_build_error(TILE_E_SHAPE,
                       "load: the offset is shifted in dimension 1, expected 1 dimensions",
                       [](tile_builder *b) {
                           const tile_param a = tile_array_param(b, "a", TILE_F64, 1);
                           tile_load(a, TILE_SHAPE(2), TILE_SHIFT(TILE_AT(tile_int(b, 0)), 1, 2));
                       });
}

TEST_F(ErrorsTest, TooManyParametersAreAnErrorWithTheLimit) {
    expect_build_error(TILE_E_ARGUMENT, "32", [](tile_builder *b) {
        for (int k = 0; k <= TILE_PARAMS_MAX; k++)
            tile_int_param(b, ("p" + std::to_string(k)).c_str());
    });
}

TEST_F(ErrorsTest, WrongNamesOfParametersAreErrors) {
    for (const char *name : {"", "2x", "a b", "x-y"})
        expect_build_error(TILE_E_ARGUMENT, "name",
                           [&](tile_builder *b) { tile_array_param(b, name, TILE_F32, 1); });
    expect_build_error(TILE_E_ARGUMENT, "NULL",
                       [](tile_builder *b) { tile_array_param(b, nullptr, TILE_F32, 1); });
    expect_build_error(TILE_E_ARGUMENT, "already", [](tile_builder *b) {
        tile_int_param(b, "n");
        tile_int_param(b, "n");
    });
    expect_build_error(TILE_E_ARGUMENT, "rank 7",
                       [](tile_builder *b) { tile_array_param(b, "x", TILE_F32, 7); });
    expect_build_error(TILE_E_DTYPE, "float",
                       [](tile_builder *b) { tile_real_param(b, "x", TILE_I32); });
}

TEST_F(ErrorsTest, TheFirstErrorOfABuilderStaysWithFileAndLine) {
    tile_builder *b = tile_kernel_begin(ctx, "blame");
    const tile_param x = tile_array_param(b, "x", TILE_F64, 2);
    const int line = __LINE__ + 1;
    const tile t = tile_load(x, TILE_SHAPE(1, 2, 3), TILE_AT_ZERO);
    tile_store(x, tile_mul(t, tile_real(b, TILE_F32, 1)), TILE_AT_ZERO);
    tile_kernel *k = nullptr;
    const tile_status status = tile_kernel_end(b, &k);
    expect_error(TILE_E_SHAPE, "blame", status);
    expect_error(TILE_E_SHAPE, "load: the tile is [1, 2, 3]", status);
    expect_error(TILE_E_SHAPE, ("errors_test.cc:" + std::to_string(line)).c_str(), status);
}

TEST_F(ErrorsTest, ShapesAndTypesThatDoNotAgreeAreErrors) {
    expect_build_error(TILE_E_SHAPE, "[2, 3]", [](tile_builder *b) {
        tile_mul(tile_zeros(b, TILE_F32, TILE_SHAPE(2, 3)),
                 tile_zeros(b, TILE_F32, TILE_SHAPE(3, 2)));
    });
    expect_build_error(TILE_E_DTYPE, "float64", [](tile_builder *b) {
        tile_add(tile_zeros(b, TILE_F32, TILE_SHAPE(2)), tile_zeros(b, TILE_F64, TILE_SHAPE(2)));
    });
    expect_build_error(TILE_E_DTYPE, "int32", [](tile_builder *b) {
        const tile_param p = tile_array_param(b, "p", TILE_F32, 1);
        tile_store(p, tile_zeros(b, TILE_I32, TILE_SHAPE(2)), TILE_AT_ZERO);
    });
    expect_build_error(TILE_E_SHAPE, "", [](tile_builder *b) {
        tile_matmul(tile_zeros(b, TILE_F32, TILE_SHAPE(2, 3)),
                    tile_zeros(b, TILE_F32, TILE_SHAPE(2, 3)));
    });
    expect_build_error(TILE_E_ARGUMENT, "axis", [](tile_builder *b) {
        tile_concat(TILE_LIST(tile_zeros(b, TILE_F32, TILE_SHAPE(2))), 1);
    });
}

TEST_F(ErrorsTest, ExtentsThatOverflowAreErrors) {
    tile_array *a = nullptr;
    const int64_t huge = int64_t{1} << 40;
    expect_error(TILE_E_ARGUMENT, "2^62",
                 tile_array_create(ctx, TILE_F32, TILE_SHAPE(huge, huge), &a));
    expect_error(TILE_E_ARGUMENT, "2^62",
                 tile_array_create(ctx, TILE_F64, TILE_SHAPE(INT64_MAX), &a));
    expect_error(TILE_E_ARGUMENT, "-1", tile_array_create(ctx, TILE_F32, TILE_SHAPE(-1), &a));
    expect_build_error(TILE_E_SHAPE, "",
                       [&](tile_builder *b) { tile_zeros(b, TILE_F32, TILE_SHAPE(huge, huge)); });
    expect_build_error(TILE_E_SHAPE, "",
                       [&](tile_builder *b) { tile_zeros(b, TILE_F32, TILE_SHAPE(-1)); });
    EXPECT_EQ(nullptr, a);
}

TEST_F(ErrorsTest, AFormulaThatDoesNotParseShowsWhere) {
    const char *const bad[] = {"v +",       "v ** 2",    "(v", "v)",  "1/2*v)", "unknown(v)", "w*v",
                               "sin(v, v)", "v ? v : v", "",   "v v", "1..2*v", "0x*v"};
    for (const char *formula : bad) {
        tile_builder *b = tile_kernel_begin(ctx, "formula");
        const tile v = tile_zeros(b, TILE_F64, TILE_SHAPE(2));
        tile_here("user.c", 7);
        tile_formula(formula, "v", TILE_LIST(v));
        tile_kernel *k = nullptr;
        const tile_status status = tile_kernel_end(b, &k);
        EXPECT_TRUE(status == TILE_E_FORMULA || status == TILE_E_DTYPE)
            << "\"" << formula << "\" " << tile_last_error();
        if (status == TILE_E_FORMULA) {
            expect_error_lines(TILE_E_FORMULA, "^", status);
            expect_error_lines(TILE_E_FORMULA, formula, status);
            expect_error_lines(TILE_E_FORMULA, "user.c:7", status);
        }
    }
}

TEST_F(ErrorsTest, ADeepFormulaIsAnErrorAndNotAnOverflow) {
    const std::string open(100000, '('), close(100000, ')'), minus(100000, '-');
    for (const std::string &formula : {open + "v" + close, minus + "v", open})
        expect_build_error(TILE_E_FORMULA, "", [&](tile_builder *b) {
            tile_formula(formula.c_str(), "v", TILE_LIST(tile_zeros(b, TILE_F64, TILE_SHAPE(2))));
        });
}

TEST_F(ErrorsTest, AnOpenLoopIsAnError) {
    expect_build_error(TILE_E_STATE, "loop",
                       [](tile_builder *b) { tile_loop_begin(b, tile_int(b, 3), TILE_NONE); });
}

TEST_F(ErrorsTest, ALoopThatCarriesOtherTilesIsAnError) {
    expect_build_error(TILE_E_ARGUMENT, "1 tiles, expected 2", [](tile_builder *b) {
        const tile one = tile_real(b, TILE_F64, 1);
        tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(one, one));
        tile_loop_end(&loop, TILE_LIST(one));
    });
    expect_build_error(TILE_E_SHAPE, "tile 1", [](tile_builder *b) {
        tile_loop loop = tile_loop_begin(b, tile_int(b, 3), TILE_LIST(tile_real(b, TILE_F64, 1)));
        tile_loop_end(&loop, TILE_LIST(tile_zeros(b, TILE_F64, TILE_SHAPE(2))));
    });
    expect_build_error(TILE_E_ARGUMENT, "count", [](tile_builder *b) {
        tile_loop_begin(b, tile_block_index(b, 0), TILE_NONE);
    });
}

TEST_F(ErrorsTest, AKernelThatFailedToBuildIsNotLaunched) {
    tile_builder *b = tile_kernel_begin(ctx, "unfinished");
    tile_array_param(b, "x", TILE_F64, 9);
    tile_kernel *k = nullptr;
    EXPECT_NE(TILE_OK, tile_kernel_end(b, &k));
    expect_error(TILE_E_ARGUMENT, "kernel is NULL",
                 tile_launch(record, k, TILE_GRID(1), TILE_ARGS(zeros(1))));
}

TEST_F(ErrorsTest, CallsAfterTheFirstErrorAreHarmless) {
    tile_builder *b = tile_kernel_begin(ctx, "harmless");
    const tile_param p = tile_array_param(b, "p", TILE_F64, -1);
    const tile t = tile_load(p, TILE_SHAPE(4), TILE_AT(tile_block_start(b, 0, 4)));
    tile_loop loop = tile_loop_begin(b, tile_int(b, 2), TILE_LIST(t));
    tile_loop_end(&loop, TILE_LIST(tile_expr("t*t + 1", t)));
    tile_store(p, tile_sum(loop.carried[0], TILE_ALL_AXES), TILE_AT_ZERO);
    const tile_stack s = tile_stack_create(b, 4, TILE_F64);
    tile go = tile_stack_push(s, t, t), slot;
    tile_loop pops = tile_while_begin(b, go, tile_int(b, 2), TILE_LIST(t));
    go = tile_stack_pop(s, TILE_SHAPE(4), &slot);
    tile_while_end(&pops, tile_stack_count(s), TILE_LIST(tile_gather(t, slot, 0)));
    tile_stack_clear(s);
    tile_cumsum(tile_scatter_add(tile_scatter(t, slot, go, 0), t, t, 0), 0, 0);
    tile_atomic_add_indexed(p, t, t, TILE_AT_ZERO, 0);
    tile_concat(TILE_LIST(t, t), 0);
    tile_kernel *k = nullptr;
    expect_error(TILE_E_ARGUMENT, "rank -1", tile_kernel_end(b, &k));
}

TEST_F(ErrorsTest, AnAdjointWithOtherParametersIsAnError) {
    tile_kernel *k = square(), *recorded = square();
    expect_error(TILE_E_ARGUMENT, "square", tile_kernel_set_adjoint(k, square()));
    tile_array *x = active({3}), *y = zeros(1);
    ASSERT_EQ(TILE_OK, launch(recorded, x, y));
    expect_error(TILE_E_STATE, "recorded already", tile_kernel_set_adjoint(recorded, square()));
    backward(y);
    EXPECT_EQ(Reals({6}), grad(x));
}

TEST_F(ErrorsTest, SeedsThatAreNotLikeTheirArraysAreErrors) {
    tile_array *x = active({3, 4}), *y = zeros(2), *short_seed = zeros(1), *f = floats({1, 1});
    tile_array *i = integers({1, 2});
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    expect_error(TILE_E_SHAPE, "seed 0 is [1], its array is [2]",
                 tape_backward_seeds(record, 1, &y, &short_seed));
    expect_error(TILE_E_DTYPE, "seed 0 is float32", tape_backward_seeds(record, 1, &y, &f));
    expect_error(TILE_E_DTYPE, "int32", tape_backward_seeds(record, 1, &i, &i));
    expect_error(TILE_E_ARGUMENT, "no arrays", tape_backward_seeds(record, 0, &y, &y));
    EXPECT_EQ(Reals({0, 0}), grad(x));
}

TEST_F(ErrorsTest, CallsWithTooManyOrMissingArraysAreErrors) {
    tile_array *x = zeros(1);
    const auto nothing = [](void *, tile_array *const *, tile_array *const *) { return TILE_OK; };
    std::vector<tile_array *> many(TILE_PARAMS_MAX + 1, x);
    tile_array *none = nullptr;
    tape_call call = {TILE_PARAMS_MAX + 1, 0, many.data(), nullptr, nothing, nullptr, nullptr};
    expect_error(TILE_E_ARGUMENT, "at most 32", tape_record_call(record, &call));
    call = {1, 0, nullptr, nullptr, nothing, nullptr, nullptr};
    expect_error(TILE_E_ARGUMENT, "NULL", tape_record_call(record, &call));
    call = {1, 0, &none, nullptr, nothing, nullptr, nullptr};
    expect_error(TILE_E_ARGUMENT, "array 0 is NULL", tape_record_call(record, &call));
    call = {-1, 0, &x, nullptr, nothing, nullptr, nullptr};
    expect_error(TILE_E_ARGUMENT, "-1", tape_record_call(record, &call));
    call = {1, 0, &x, nullptr, nullptr, nullptr, nullptr};
    expect_error(TILE_E_ARGUMENT, "forward is NULL", tape_record_call(record, &call));
    EXPECT_EQ(0, tape_length(record));
}

/* Host code that meddles with the tape that runs it. */
tile_status meddle(void *user, tile_array *const *, tile_array *const *) {
    tape *t = static_cast<tape *>(user);
    EXPECT_EQ(TILE_E_STATE, tape_reset(t));
    EXPECT_EQ(TILE_E_STATE, tape_replay(t));
    const tape_call inner = {0, 0, nullptr, nullptr, meddle, nullptr, user};
    EXPECT_EQ(TILE_E_STATE, tape_record_call(t, &inner));
    return TILE_OK;
}

TEST_F(ErrorsTest, HostCodeCannotUseTheTapeThatRunsIt) {
    tile_array *x = zeros(1);
    const tape_call call = {1, 0, &x, nullptr, meddle, nullptr, record};
    EXPECT_EQ(TILE_OK, tape_record_call(record, &call)) << tile_last_error();
    EXPECT_EQ(1, tape_length(record));
}

TEST_F(ErrorsTest, BuildingAKernelForWhichMemoryRunsOutIsAnErrorEachTime) {
    int64_t total = 0;
    for (int64_t n = 1; n < 2000; n++) {
        tile_kernel *k = nullptr;
        tile_fail_allocation(n);
        tile_builder *b = tile_kernel_begin(ctx, "step");
        tile_status status = TILE_E_MEMORY;
        if (b) {
            const tile_param x = tile_array_param(b, "x", TILE_F32, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, 8));
            tile_loop loop =
                tile_loop_begin(b, tile_int(b, 3), TILE_LIST(tile_load(x, TILE_SHAPE(8), at)));
            const tile c = loop.carried[0];
            tile_loop_end(&loop, TILE_LIST(tile_expr("sin(c) + 0.5*c*c", c)));
            tile_store(x, loop.carried[0], at);
            status = tile_kernel_end(b, &k);
        }
        tile_fail_allocation(0);
        if (status) {
            ASSERT_EQ(TILE_E_MEMORY, status) << n << " " << tile_last_error();
            ASSERT_EQ(nullptr, k);
            continue;
        }
        tile_kernel_destroy(k);
        total = n;
        break;
    }
    EXPECT_GT(total, 5);
}

TEST_F(ErrorsTest, AContextLimitStopsArraysAndLeavesRoomForSmallerOnes) {
    const tile_context_options options = {1, 10000};
    tile_context *small = nullptr;
    ASSERT_EQ(TILE_OK, tile_context_create(&options, &small));
    tile_array *a = nullptr, *b = nullptr;
    EXPECT_EQ(TILE_OK, tile_array_create(small, TILE_F64, TILE_SHAPE(1000), &a));
    expect_error(TILE_E_MEMORY, "10000", tile_array_create(small, TILE_F64, TILE_SHAPE(1000), &b));
    EXPECT_EQ(nullptr, b);
    expect_error(TILE_E_MEMORY, "10000", tile_array_request_grad(a));
    EXPECT_EQ(nullptr, tile_array_grad(a));
    EXPECT_EQ(TILE_OK, tile_array_create(small, TILE_F64, TILE_SHAPE(100), &b));
    tile_array_destroy(a);
    tile_array_destroy(b);
    tile_context_destroy(small);
}

} // namespace
