/* emulator_suite_test.cc: every registered op as CUDA source on the emulator against the
 * interpreter: values and gradients, for several block sizes and orders of threads.
 *
 * A problem of each op; TILE_EMULATOR_ALL=1 in the environment: all problems, in all types. */
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdlib>

#include "tests/emulator/emulator.h"
#include "tests/op_run.h"

namespace {

using op_test::Outcome;
using op_test::Place;
using op_test::Problem;
using op_test::Run;

const emulator::Schedule kSchedules[] = {
    {1, emulator::Order::kAscending, 1},  {32, emulator::Order::kDescending, 1},
    {33, emulator::Order::kAscending, 1}, {33, emulator::Order::kDescending, 1},
    {64, emulator::Order::kShuffled, 1},  {256, emulator::Order::kShuffled, 2}};

std::vector<const tile_op *> all_ops() {
    std::vector<const tile_op *> all;
    for (int i = 0; tile_op_at(i); i++) all.push_back(tile_op_at(i));
    return all;
}

bool everything() {
    const char *text = std::getenv("TILE_EMULATOR_ALL");
    return text && *text == '1';
}

double rounding_of(tile_dtype real) {
    return real == TILE_F64    ? DBL_EPSILON
           : real == TILE_F32  ? static_cast<double>(FLT_EPSILON)
           : real == TILE_F16  ? 0x1p-10
           : real == TILE_BF16 ? 0x1p-7
                               : 0;
}

/* Equal but for the order of sums and the last digits of maths functions. */
std::string compare(const Problem &p, const char *what, const std::vector<op_test::Reals> &got,
                    const std::vector<op_test::Reals> &want, tile_dtype real) {
    for (size_t k = 0; k < want.size(); k++) {
        if (got[k].size() != want[k].size()) return p.name + ": " + what + " of another size";
        double most = 0;
        for (double x : want[k])
            if (std::isfinite(x)) most = std::max(most, std::fabs(x));
        for (size_t i = 0; i < want[k].size(); i++) {
            const double x = got[k][i], y = want[k][i];
            if (x == y || (std::isnan(x) && std::isnan(y))) continue;
            const double room = p.terms * rounding_of(real) * (std::fabs(y) + most);
            if (std::isfinite(y) && std::fabs(x - y) <= room) continue;
            return p.name + ": " + what + " " + p.field[k].name + "[" + std::to_string(i) +
                   "] is " + std::to_string(x) + ", the interpreter has " + std::to_string(y);
        }
    }
    return "";
}

std::string check(const Problem &p, tile_dtype real) {
    const op_test::Upstream up = op_test::upstream_of(p);
    const Outcome want = Run(p, real, Place::kDense, 1, TILE_EXECUTOR_INTERPRETER).backward(up);
    for (const emulator::Schedule &schedule : kSchedules) {
        emulator::use(schedule);
        const Outcome got = Run(p, real, Place::kDense, 1).backward(up);
        const std::string where = " (" + std::to_string(schedule.threads) + " threads, order " +
                                  std::to_string(static_cast<int>(schedule.order)) + ")";
        if (got.status != want.status || got.error != want.error)
            return p.name + ": " + got.error + ", the interpreter: " + want.error + where;
        std::string wrong = compare(p, "value", got.value, want.value, real);
        if (wrong.empty()) wrong = compare(p, "gradient", got.grad, want.grad, real);
        if (!wrong.empty()) return wrong + where;
    }
    return "";
}

class EmulatorOpTest : public testing::TestWithParam<const tile_op *> {
  protected:
    static void SetUpTestSuite() {
        tile_device_use(emulator::device());
    }
    static void each(const std::vector<Problem> &problems, tile_dtype real) {
        for (const Problem &p : problems) EXPECT_EQ("", check(p, real));
    }
};

INSTANTIATE_TEST_SUITE_P(All, EmulatorOpTest, testing::ValuesIn(all_ops()),
                         [](const testing::TestParamInfo<const tile_op *> &info) {
                             return std::string(info.param->name);
                         });

TEST_P(EmulatorOpTest, AgreesWithTheInterpreter) {
    const tile_op *op = GetParam();
    const int64_t before = emulator::counts().launches;
    const std::vector<Problem> problems = op_test::problems_of(op);
    if (!everything()) {
        EXPECT_EQ("", check(problems[problems.size() / 2], TILE_F32));
    } else {
        for (tile_dtype real :
             {TILE_F32, TILE_F64, TILE_F16, TILE_BF16, TILE_I32, TILE_I64, TILE_U8})
            each(problems, real);
        each(op_test::special_problems_of(op), TILE_F64);
        each(op_test::large_problems_of(op), TILE_F32);
    }
    EXPECT_GT(emulator::counts().launches, before);
}

} // namespace
