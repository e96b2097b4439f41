/* golden_test.cc: every case of tests/data/golden, one test each. */
#include <gtest/gtest.h>

#include <cmath>

#include "tests/golden_runner.h"

namespace {

std::vector<golden::Case> all_cases() {
    std::vector<golden::Case> all;
    for (const char *folder : {"ops", "programs", "indexed", "partition"})
        for (const golden::Case &c : golden::read_cases(std::string("tests/data/golden/") + folder))
            all.push_back(c);
    return all;
}

class GoldenTest : public testing::TestWithParam<golden::Case> {};

TEST_P(GoldenTest, Agrees) {
    try {
        golden::run_case(GetParam());
    } catch (const golden::Skipped &e) {
        GTEST_SKIP() << e.what() << " does not exist";
    } catch (const std::exception &e) {
        FAIL() << GetParam().name() << ": " << e.what();
    }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, testing::ValuesIn(all_cases()),
                         [](const testing::TestParamInfo<golden::Case> &info) {
                             return info.param.format() + "_" + info.param.name();
                         });

/* A number that is off by more than the tolerance fails, and so does a NaN. */
TEST(GoldenCompareTest, FindsDifferences) {
    golden::Values want, got;
    want.shape = {3};
    want.real = {1, -2, 4};
    want.bytes.resize(24);
    got = want;
    golden::compare_relative("same", got, want, 1e-12);
    got.real[0] = 1 + 1e-11;
    golden::compare_relative("near", got, want, 1e-11);
    EXPECT_THROW(golden::compare_relative("off", got, want, 1e-12), golden::Failed);
    got.real[0] = NAN;
    EXPECT_THROW(golden::compare_relative("nan", got, want, 1e-12), golden::Failed);
    EXPECT_THROW(golden::compare_mixed("nan", got, want, 1), golden::Failed);
    got = want;
    got.shape = {1, 3};
    EXPECT_THROW(golden::compare_mixed("shape", got, want, 0), golden::Failed);
}

/* One step between neighbouring numbers is one ulp; the zeros are one number, with two signs. */
TEST(GoldenCompareTest, CountsUlps) {
    golden::Values want, got, check;
    want.shape = {1};
    want.real = {1};
    want.bytes.resize(8);
    check.real = {1};
    check.bytes = {1};
    got = want;
    got.real[0] = 1 + 2 * 2.220446049250313e-16;
    golden::compare_ulps("two", got, want, check, 0, {2, 0, true});
    EXPECT_THROW(golden::compare_ulps("two", got, want, check, 0, {1, 0, true}), golden::Failed);
    want.real[0] = 0;
    got.real[0] = -5e-324;
    golden::compare_ulps("subnormal", got, want, check, 0, {1, 0, true});
    got.real[0] = -0.0;
    EXPECT_THROW(golden::compare_ulps("sign", got, want, check, 0, {9, 9, true}), golden::Failed);
    golden::compare_ulps("sign", got, want, check, 0, {0, 0, false});
    got.real[0] = NAN;
    EXPECT_THROW(golden::compare_ulps("nan", got, want, check, 0, {9, 9, true}), golden::Failed);
    golden::compare_ulps("ignored", got, want, check, 1, {0, 0, true});
}

} // namespace
