/* gradcheck_test.cc: the gradient check finds planted faults, and finds none where there is none.
 * */
#include "tests/tape_fixture.h"

#include <cstdio>

namespace {

/* How an adjoint of y = x^2 is spoilt: dx += f(dx, dy, x) */
struct Fault {
    const char *name;
    const char *formula; /* of d, the right one; last: 1 for the last element */
};

const Fault faults[] = {
    {"times_3", "3*d"},
    {"negated", "-d"},
    {"zeroed", "0*d"},
    {"one_percent_off", "1.01*d"},
    {"shifted_by_1", "d + 1"},
    {"not_a_number", "0*d/(0*d)"},
    {"last_missing", "(1 - last)*d"},
};

class GradcheckTest : public TapeTest {
  protected:
    tape_check_report check(tile_array *loss, unsigned what = TAPE_CHECK_ALL) {
        tape_check_report report = {};
        report.rows = -1;
        EXPECT_EQ(TILE_OK, tape_gradcheck(record, loss, what, &report)) << tile_last_error();
        return report;
    }
    static std::string text(const tape_check_report &report) {
        std::string all;
        char line[256];
        FILE *f = tmpfile();
        if (!f) return all;
        tape_check_print(&report, f);
        rewind(f);
        while (fgets(line, sizeof line, f)) all += line;
        fclose(f);
        return all;
    }
    /* y = x^2 with a spoilt adjoint, over one block of n elements. */
    tile_kernel *spoilt(const Fault &fault, int64_t n, tile_dtype dtype) {
        const auto params = [&](tile_builder *b, const char *x, const char *y) {
            const tile_param first = tile_array_param(b, x, dtype, 1);
            return std::make_pair(first, tile_array_param(b, y, dtype, 1));
        };
        tile_kernel *k = kernel("square", [&](tile_builder *b) {
            const auto p = params(b, "x", "y");
            const tile x = tile_load(p.first, TILE_SHAPE(n), TILE_AT_ZERO);
            tile_store(p.second, tile_mul(x, x), TILE_AT_ZERO);
        });
        tile_kernel *adjoint = kernel(fault.name, [&](tile_builder *b) {
            const auto p = params(b, "x", "y"), g = params(b, "dx", "dy");
            const tile x = tile_load(p.first, TILE_SHAPE(n), TILE_AT_ZERO);
            const tile dy = tile_load(g.second, TILE_SHAPE(n), TILE_AT_ZERO);
            const tile d = tile_expr("2*x*dy", x, dy);
            const tile i = tile_iota(b, TILE_I64, TILE_SHAPE(n), 0, tile_int(b, 0));
            const tile end = tile_int(b, n - 1);
            const tile last = tile_cast(tile_equal(i, end), dtype);
            const tile_list operands = TILE_LIST(d, last);
            tile_atomic_add(g.first, tile_formula(fault.formula, "d, last", operands),
                            TILE_AT_ZERO);
            tile_store(g.second, tile_zeros(b, dtype, TILE_SHAPE(n)), TILE_AT_ZERO);
        });
        EXPECT_EQ(TILE_OK, tile_kernel_set_adjoint(k, adjoint)) << tile_last_error();
        return k;
    }
    static Floats32 ramp(size_t n) {
        Floats32 x(n);
        for (size_t i = 0; i < n; i++) x[i] = std::sin(1 + 0.7f * static_cast<float>(i)) + 1.5f;
        return x;
    }
    /* L = sum w x^2 with a fault; n elements. */
    tile_array *faulty(const Fault &fault, size_t n, tile_dtype dtype) {
        const Floats32 v = ramp(n);
        tile_array *x = floats(v, true), *y = array(dtype, TILE_SHAPE(n));
        if (dtype == TILE_F64) x = active(Reals(v.begin(), v.end()));
        tile_array *w = dtype == TILE_F64 ? reals(Reals(v.rbegin(), v.rend()))
                                          : floats(Floats32(v.rbegin(), v.rend()));
        tile_array *loss = array(dtype, TILE_SHAPE(1));
        EXPECT_EQ(TILE_OK, tile_launch(record, spoilt(fault, static_cast<int64_t>(n), dtype),
                                       TILE_GRID(1), TILE_ARGS(x, y)));
        EXPECT_EQ(TILE_OK, tape_dot(record, w, y, loss));
        return loss;
    }
};

TEST_F(GradcheckTest, ARightGradientPassesWithSlopeTwo) {
    tile_array *x = active({0.3, -1.2, 2}), *f = active({2, 0.5, -1}), *y = zeros(3);
    tile_array *loss = zeros(1);
    tile_kernel *k =
        combine("wave", [](tile a, tile b) { return tile_expr("sin(a*b) + exp(a)*b", a, b); });
    ASSERT_EQ(TILE_OK, launch(k, x, f, y));
    ASSERT_EQ(TILE_OK, tape_dot(record, y, y, loss));
    const tape_check_report report = check(loss);
    EXPECT_TRUE(report.passed) << text(report);
    ASSERT_EQ(2, report.rows);
    EXPECT_EQ(x, report.row[0].array);
    EXPECT_EQ(f, report.row[1].array);
    for (int k = 0; k < 2; k++) {
        EXPECT_EQ(TAPE_CHECK_OK, report.row[k].verdict);
        EXPECT_LT(report.row[k].relative, 1e-7);
        EXPECT_GT(std::fabs(report.row[k].difference), 1e-3);
    }
    EXPECT_NEAR(2, report.taylor_slope, 0.05);
}

TEST_F(GradcheckTest, ALinearFloat32ProgramRaisesNoFalseAlarm) {
    /* the loss has 7 digits, and single elements of 5000 move its last ones */
    for (size_t n : {1, 7, 300, 5000}) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = floats(ramp(n), true), *y = floats(Floats32(n), false);
        tile_array *w = floats(ramp(n)), *loss = array(TILE_F32, TILE_SHAPE(1));
        ASSERT_EQ(TILE_OK, tape_axpy(record, -0.3576, x, y));
        ASSERT_EQ(TILE_OK, tape_dot(record, y, w, loss));
        const tape_check_report report = check(loss);
        EXPECT_TRUE(report.passed) << n << "\n" << text(report);
        EXPECT_TRUE(std::isnan(report.taylor_slope)) << "a linear program has no remainder";
    }
}

TEST_F(GradcheckTest, ANonlinearFloat32ProgramRaisesNoFalseAlarm) {
    for (size_t n : {1, 8, 1000}) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = floats(ramp(n), true), *y = floats(Floats32(n), false);
        tile_array *loss = array(TILE_F32, TILE_SHAPE(1));
        tile_kernel *k = map(
            "wave32", [](tile v) { return tile_expr("sin(3*v) + v*v", v); }, TILE_F32);
        ASSERT_EQ(TILE_OK, launch(k, x, y));
        ASSERT_EQ(TILE_OK, tape_dot(record, y, y, loss));
        const tape_check_report report = check(loss);
        EXPECT_TRUE(report.passed) << n << "\n" << text(report);
    }
}

TEST_F(GradcheckTest, InPlaceProgramsAreCheckedFromTheirFirstValues) {
    tile_array *x = active({1.1, 0.7, -0.4, 0.9, 1.3}), *loss = zeros(1);
    tile_kernel *k = square_in_place();
    for (int i = 0; i < 3; i++) ASSERT_EQ(TILE_OK, launch(k, x));
    ASSERT_EQ(TILE_OK, tape_sum(record, x, loss));
    const Reals before = read(x);
    const tape_check_report report = check(loss);
    EXPECT_TRUE(report.passed) << text(report);
    EXPECT_EQ(before, read(x));
}

TEST_F(GradcheckTest, ATapeThatRefusesOverwritesIsCheckedToo) {
    record = new_tape(TAPE_OVERWRITE_ERROR);
    tile_array *x = active({1.1, 0.7}), *y = zeros(2), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, tape_dot(record, y, y, loss));
    EXPECT_TRUE(check(loss).passed);
    expect_error(TILE_E_STATE, "square", tile_array_fill(x, 1));
}

TEST_F(GradcheckTest, AHostWriteBetweenLaunchesIsAConstantForTheDifferencesToo) {
    tile_array *x = active({0.7}), *y = zeros(1), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    write(y, {3});
    ASSERT_EQ(TILE_OK, tape_axpy(record, 2, x, y));
    ASSERT_EQ(TILE_OK, tape_dot(record, y, y, loss));
    EXPECT_EQ(Reals({4.4 * 4.4}), read(loss));
    const tape_check_report report = check(loss);
    EXPECT_TRUE(report.passed) << text(report);
    EXPECT_EQ(Reals({4.4 * 4.4}), read(loss));
}

TEST_F(GradcheckTest, ElementsNearTheEndOfTheDomainAreChecked) {
    /* log and sqrt a little above 0 beside large values */
    tile_array *x = active({1e-3, 5, 200, 0.02}), *y = zeros(4), *loss = zeros(1);
    tile_kernel *k = map("careful", [](tile v) { return tile_expr("log(v) + sqrt(v)", v); });
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
    const tape_check_report report = check(loss);
    EXPECT_TRUE(report.passed) << text(report);
}

TEST_F(GradcheckTest, AnEmptyArrayHasNothingWrong) {
    tile_array *none = active(TILE_SHAPE(0), {}), *x = active({2}), *y = zeros(0), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, tape_sum(record, none, loss));
    ASSERT_EQ(TILE_OK, tape_axpy(record, 1, none, y));
    ASSERT_EQ(TILE_OK, tape_dot(record, x, x, loss));
    EXPECT_TRUE(check(loss).passed);
}

class Planted : public GradcheckTest, public testing::WithParamInterface<int> {};

TEST_P(Planted, FaultsAreFoundInEitherPrecisionByEachMeans) {
    const Fault &fault = faults[GetParam()];
    for (tile_dtype dtype : {TILE_F64, TILE_F32})
        for (unsigned what : {TAPE_CHECK_DIRECTIONS, TAPE_CHECK_ELEMENTS, TAPE_CHECK_TAYLOR}) {
            const bool nan = !strcmp(fault.name, "not_a_number");
            if (what == TAPE_CHECK_TAYLOR && nan) continue; /* no remainder at all */
            ASSERT_EQ(TILE_OK, tape_reset(record));
            const tape_check_report report = check(faulty(fault, 12, dtype), what);
            EXPECT_FALSE(report.passed) << fault.name << " " << what << "\n" << text(report);
            if (what == TAPE_CHECK_TAYLOR) {
                EXPECT_EQ(0, report.rows);
                EXPECT_NEAR(1, report.taylor_slope, 0.3) << fault.name;
                continue;
            }
            EXPECT_TRUE(std::isnan(report.taylor_slope));
            ASSERT_EQ(1, report.rows);
            EXPECT_EQ(TAPE_CHECK_WRONG, report.row[0].verdict) << fault.name;
            EXPECT_EQ(what == TAPE_CHECK_ELEMENTS, report.row[0].element >= 0);
            EXPECT_EQ(nan, std::isnan(report.row[0].ours));
            EXPECT_TRUE(std::isfinite(report.row[0].difference));
        }
}

INSTANTIATE_TEST_SUITE_P(All, Planted, testing::Range(0, 7),
                         [](const auto &info) { return std::string(faults[info.param].name); });

TEST_F(GradcheckTest, TheUnspoiltAdjointOfTheSameFormPasses) {
    const Fault none = {"right", "d + 0*last"};
    for (tile_dtype dtype : {TILE_F64, TILE_F32}) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        const tape_check_report report = check(faulty(none, 12, dtype));
        EXPECT_TRUE(report.passed) << text(report);
        EXPECT_NEAR(2, report.taylor_slope, 0.1);
    }
}

TEST_F(GradcheckTest, TheMissingElementIsNamed) {
    const tape_check_report report = check(faulty(faults[6], 12, TILE_F64), TAPE_CHECK_ELEMENTS);
    ASSERT_EQ(1, report.rows);
    EXPECT_EQ(11, report.row[0].element);
    EXPECT_EQ(0, report.row[0].ours);
    const Floats32 v = ramp(12);
    EXPECT_NEAR(2 * v[11] * v[0], report.row[0].difference, 1e-6);
    EXPECT_NE(std::string::npos, text(report).find("element 11")) << text(report);
    EXPECT_NE(std::string::npos, text(report).find("WRONG")) << text(report);
}

TEST_F(GradcheckTest, AKinkIsCalledAKinkAndNotWrong) {
    /* max(x, 0.1 x) at 0: ours is 1, the central difference 0.55 */
    tile_array *x = active({1, 0, -2}), *y = zeros(3), *loss = zeros(1);
    tile_kernel *k = map("leaky", [](tile v) { return tile_max(v, tile_expr("0.1*v", v)); });
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
    const tape_check_report report = check(loss);
    ASSERT_EQ(1, report.rows);
    EXPECT_EQ(TAPE_CHECK_KINK, report.row[0].verdict) << text(report);
    EXPECT_TRUE(report.passed) << text(report);
    EXPECT_NE(std::string::npos, text(report).find("kink")) << text(report);
}

TEST_F(GradcheckTest, ClampAtABoundAndTheLargerOfEqualsAreKinksInFloat32Too) {
    for (int which = 0; which < 2; which++) {
        ASSERT_EQ(TILE_OK, tape_reset(record));
        tile_array *x = floats({0.5f, 0.25f, -1}, true), *y = floats({0, 0, 0});
        tile_array *loss = array(TILE_F32, TILE_SHAPE(1));
        tile_kernel *k = map(
            "bounded",
            [&](tile v) {
                return which ? tile_max(v, tile_expr("v*v + 0.25", v))
                             : tile_expr("clamp(v, -0.5, 0.5)", v);
            },
            TILE_F32);
        ASSERT_EQ(TILE_OK, launch(k, x, y));
        ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
        const tape_check_report report = check(loss);
        EXPECT_TRUE(report.passed) << which << "\n" << text(report);
    }
}

TEST_F(GradcheckTest, AWrongGradientIsNotExcusedByAKink) {
    /* |x| at 0 with a gradient of 5, which is no subgradient */
    tile_array *x = active({0}), *y = zeros(1), *loss = zeros(1);
    tile_kernel *k = map("modulus", [](tile v) { return tile_abs(v); });
    tile_kernel *adjoint = kernel("five", [](tile_builder *b) {
        tile_array_param(b, "x", TILE_F64, 1);
        tile_array_param(b, "y", TILE_F64, 1);
        const tile_param dx = tile_array_param(b, "dx", TILE_F64, 1);
        const tile_param dy = tile_array_param(b, "dy", TILE_F64, 1);
        const tile d = tile_load(dy, TILE_SHAPE(1), TILE_AT_ZERO);
        tile_atomic_add(dx, tile_expr("5*d", d), TILE_AT_ZERO);
        tile_store(dy, tile_zeros(b, TILE_F64, TILE_SHAPE(1)), TILE_AT_ZERO);
    });
    ASSERT_EQ(TILE_OK, tile_kernel_set_adjoint(k, adjoint));
    ASSERT_EQ(TILE_OK, launch(k, x, y));
    ASSERT_EQ(TILE_OK, tape_sum(record, y, loss));
    const tape_check_report report = check(loss);
    EXPECT_EQ(TAPE_CHECK_WRONG, report.row[0].verdict) << text(report);
    EXPECT_FALSE(report.passed);
}

TEST_F(GradcheckTest, ArraysAndGradientsAreAsBeforeBitForBit) {
    tile_array *x = active({1.1, -0.0, 0.3}), *y = active({5, 6, 7}), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square_in_place(), x));
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, tape_dot(record, y, y, loss));
    const double payload[3] = {0.1, -0.0, 3e-310};
    ASSERT_EQ(TILE_OK, tile_array_write(tile_array_grad(x), payload, sizeof payload));
    const Reals before[] = {read(x), read(y), read(loss), grad(x), grad(y)};
    const int64_t length = tape_length(record);
    EXPECT_TRUE(check(loss).passed);
    const Reals after[] = {read(x), read(y), read(loss), grad(x), grad(y)};
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(0, memcmp(before[i].data(), after[i].data(), before[i].size() * 8)) << i;
    EXPECT_EQ(length, tape_length(record));
    backward(loss);
    EXPECT_NEAR(0.1 + 8 * std::pow(1.1, 7), grad(x)[0], 1e-12);
}

TEST_F(GradcheckTest, AFailureLeavesEverythingAsItWas) {
    tile_array *x = active({3}), *y = zeros(1), *u = reals(Reals{1}), *v = zeros(1);
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    ASSERT_EQ(TILE_OK, launch(square(), u, v));
    ASSERT_EQ(TILE_OK, tile_array_fill(tile_array_grad(x), 7));
    tape_check_report report = {};
    report.rows = 99;
    expect_error(TILE_E_STATE, "no requested gradient",
                 tape_gradcheck(record, v, TAPE_CHECK_ALL, &report));
    EXPECT_EQ(99, report.rows);
    EXPECT_EQ(Reals({7}), grad(x));
    EXPECT_EQ(Reals({3}), read(x));
    EXPECT_EQ(Reals({9}), read(y));
}

TEST_F(GradcheckTest, BadArgumentsAreOneSentence) {
    tile_array *x = active({3, 4}), *y = zeros(2), *loss = zeros(1);
    tape_check_report report = {};
    expect_error(TILE_E_STATE, "empty", tape_gradcheck(record, loss, TAPE_CHECK_ALL, &report));
    ASSERT_EQ(TILE_OK, launch(square(), x, y));
    expect_error(TILE_E_SHAPE, "2 elements", tape_gradcheck(record, y, TAPE_CHECK_ALL, &report));
    expect_error(TILE_E_ARGUMENT, "what is 0", tape_gradcheck(record, loss, 0, &report));
    expect_error(TILE_E_ARGUMENT, "what is 8", tape_gradcheck(record, loss, 8, &report));
    expect_error(TILE_E_ARGUMENT, "record is NULL", tape_gradcheck(nullptr, loss, 7, &report));
    expect_error(TILE_E_ARGUMENT, "loss is NULL", tape_gradcheck(record, nullptr, 7, &report));
    expect_error(TILE_E_ARGUMENT, "report is NULL", tape_gradcheck(record, loss, 7, nullptr));
    tile_array *integer = array(TILE_I32, TILE_SHAPE(1));
    expect_error(TILE_E_DTYPE, "int32", tape_gradcheck(record, integer, 7, &report));
}

TEST_F(GradcheckTest, OfManyArraysTheWorstAreReported) {
    /* 40 arrays, number 35 with a wrong gradient */
    tile_array *total = zeros(1);
    tile_kernel *right = square(), *wrong = spoilt(faults[0], 1, TILE_F64);
    tile_array *bad = nullptr;
    for (int i = 0; i < 40; i++) {
        tile_array *x = active({1.0 + i}), *y = zeros(1);
        if (i == 35) bad = x;
        ASSERT_EQ(TILE_OK,
                  tile_launch(record, i == 35 ? wrong : right, TILE_GRID(1), TILE_ARGS(x, y)));
        ASSERT_EQ(TILE_OK, tape_axpy(record, 1, y, total));
    }
    const tape_check_report report = check(total, TAPE_CHECK_ELEMENTS);
    EXPECT_EQ(TAPE_CHECK_ROWS, report.rows);
    EXPECT_FALSE(report.passed);
    int found = 0;
    for (int k = 0; k < report.rows; k++)
        found += report.row[k].array == bad && report.row[k].verdict == TAPE_CHECK_WRONG;
    EXPECT_EQ(1, found);
}

TEST_F(GradcheckTest, TheTableShowsArraysNumbersAndVerdict) {
    tile_array *x = active(TILE_SHAPE(2, 2), {1, 2, 3, 4}), *loss = zeros(1);
    ASSERT_EQ(TILE_OK, tape_dot(record, x, x, loss));
    const tape_check_report report = check(loss);
    const std::string table = text(report);
    for (const char *part : {"gradient check: passed", "Taylor slope 2.0", "float64", "[4]", "ok"})
        EXPECT_NE(std::string::npos, table.find(part)) << table;
    tape_check_print(nullptr, stderr);
    tape_check_print(&report, nullptr);
}

} // namespace
