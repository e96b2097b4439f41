/* ops_suite_test.cc: every registered op taken through the tests that its registration makes.
 *
 * TILE_TEST_SEED=N in the environment changes the random numbers. */
#include <gtest/gtest.h>

#include "tests/op_check.h"

namespace {

using op_test::Measured;
using op_test::Problem;

std::vector<const tile_op *> all_ops() {
    std::vector<const tile_op *> all;
    for (int i = 0; tile_op_at(i); i++) all.push_back(tile_op_at(i));
    return all;
}

/* One line that runs a failing test again. */
std::string again() {
    const testing::TestInfo *test = testing::UnitTest::GetInstance()->current_test_info();
    return std::string("\nagain: bazel test --config=opt //tests:ops_suite_test --test_filter='") +
           test->test_suite_name() + "." + test->name() +
           "' --test_env=TILE_TEST_SEED=" + std::to_string(op_test::base_seed());
}

class OpTest : public testing::TestWithParam<const tile_op *> {
  protected:
    void SetUp() override {
        op = GetParam();
        const std::string missing = op_test::missing_inputs(op);
        ASSERT_EQ("", missing) << op->name << " cannot be tested: " << missing;
    }
    void each(const std::vector<Problem> &problems,
              const std::function<std::string(const Problem &)> &check) {
        ASSERT_FALSE(problems.empty()) << op->name << " has no such problem";
        int failures = 0;
        for (const Problem &p : problems) {
            const std::string found = check(p);
            EXPECT_EQ("", found) << again();
            if (!found.empty() && ++failures == 3) break;
        }
    }
    const tile_op *op;
};

INSTANTIATE_TEST_SUITE_P(All, OpTest, testing::ValuesIn(all_ops()),
                         [](const testing::TestParamInfo<const tile_op *> &info) {
                             return std::string(info.param->name);
                         });

/* Element by element and along directions; then with every fault planted. */
TEST_P(OpTest, GradientsAgreeWithDifferencesAndFaultsAreCaught) {
    const std::vector<Problem> problems = op_test::problems_of(op);
    std::vector<Measured> all;
    for (const Problem &p : problems) all.push_back(op_test::measure(p));
    for (const Measured &m : all) ASSERT_EQ("", op_test::judge(m)) << again();
    EXPECT_EQ("", op_test::judge_not_vacuous(op, all)) << again();
    EXPECT_EQ("", op_test::check_faults(op, all)) << again();
}

TEST_P(OpTest, TiesShareOneGradient) {
    each(op_test::problems_of(op), op_test::check_ties);
}

TEST_P(OpTest, Float32AgreesWithFloat64) {
    each(op_test::problems_of(op), op_test::check_float32);
}

TEST_P(OpTest, HalvesAreFloat32RoundedOnce) {
    each(op_test::problems_of(op), op_test::check_halves);
}

TEST_P(OpTest, IntegersAgreeWithFloat64) {
    each(op_test::problems_of(op), op_test::check_integers);
}

TEST_P(OpTest, MemoryDoesNotMatter) {
    each(op_test::problems_of(op), op_test::check_places);
}

TEST_P(OpTest, ThreadsDoNotMatter) {
    std::vector<Problem> problems = op_test::large_problems_of(op);
    if (problems.empty()) problems = op_test::problems_of(op);
    each(problems, op_test::check_threads);
}

TEST_P(OpTest, ZeroUpstreamGivesExactlyZero) {
    each(op_test::special_problems_of(op), op_test::check_zero_upstream);
}

TEST_P(OpTest, NothingToDoIsNoError) {
    each(op_test::problems_of(op), op_test::check_empty);
}

TEST_P(OpTest, MemoryThatRunsOutChangesNothing) {
    const std::vector<Problem> problems = op_test::problems_of(op);
    each({problems[problems.size() > 2 ? 2 : 0]}, op_test::check_memory);
}

TEST_P(OpTest, DtypesWorkOrAreRefused) {
    EXPECT_EQ("", op_test::check_dtypes(op)) << again();
}

TEST_P(OpTest, AbsentIsAnError) {
    each(op_test::problems_of(op), op_test::check_absent);
}

/* An op that cannot be tested is found. */
TEST(OpSuiteTest, FindsAnOpWithoutInputs) {
    tile_op op = *tile_op_find("sum");
    EXPECT_EQ("", op_test::missing_inputs(&op));
    op.sample = nullptr;
    EXPECT_NE("", op_test::missing_inputs(&op));
    op = *tile_op_find("exp");
    op.high[0] = op.low[0];
    EXPECT_NE("", op_test::missing_inputs(&op));
    op = *tile_op_find("exp");
    op.math = nullptr;
    EXPECT_NE("", op_test::missing_inputs(&op));
}

} // namespace
