/* native_suite_test.cc: every registered op by native code has the bits of the interpreter, values
 * and gradients: special values, windows, ties, large problems. */
#include <gtest/gtest.h>

#include "tests/op_check.h"

namespace {

using op_test::Problem;

std::vector<const tile_op *> all_ops() {
    std::vector<const tile_op *> all;
    for (int i = 0; tile_op_at(i); i++) all.push_back(tile_op_at(i));
    return all;
}

class NativeOpTest : public testing::TestWithParam<const tile_op *> {};

INSTANTIATE_TEST_SUITE_P(All, NativeOpTest, testing::ValuesIn(all_ops()),
                         [](const testing::TestParamInfo<const tile_op *> &info) {
                             return std::string(info.param->name);
                         });

/* A cache of the test's own, so that every run compiles. */
void use_own_cache() {
    const char *scratch = getenv("TEST_TMPDIR");
    setenv("XDG_CACHE_HOME", scratch ? scratch : "/tmp/tiletape-native-suite", 1);
}

void expect_same(const std::vector<Problem> &problems, size_t step, tile_dtype real) {
    for (size_t k = 0; k < problems.size(); k += step)
        EXPECT_EQ("", op_test::check_native(problems[k], real));
}

TEST_P(NativeOpTest, HasTheBitsOfTheInterpreter) {
    use_own_cache();
    const tile_op *op = GetParam();
    expect_same(op_test::special_problems_of(op), 1, TILE_F32);
    expect_same(op_test::special_problems_of(op), 1, TILE_F64);
    expect_same(op_test::problems_of(op), 2, TILE_F32);
    expect_same(op_test::large_problems_of(op), 4, TILE_F32);
    tile_executor_info info;
    ASSERT_EQ(TILE_OK, tile_context_info(op_test::context_of(1, TILE_EXECUTOR_NATIVE), &info));
    EXPECT_EQ(0, info.failed) << info.why;
    EXPECT_STREQ("", info.why);
}

} // namespace
