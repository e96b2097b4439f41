/* elementwise_golden_test.cc: values and derivatives of the elementwise rows against 60-digit
 * numbers (tests/data/golden/ops/elementwise, made apart from this code), central differences.
 *
 * The derivative formulas are compiled here as C++ over functions that run the rows' own strips, as
 * CUDA's ahead-of-time adjoints do; the parser and the executors have tests of their own. */
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/strips_scalar.h"

namespace {

using Numbers = std::vector<double>;

/* One value of a row by the strip that this machine runs. */
double value(int row, const Numbers &in) {
    const tile_op *op = &tile_ops_elementwise.ops[row];
    const bool cond = row == TILE_ROW_select;
    const tile_dtype types[] = {cond ? TILE_BOOL : TILE_F64, TILE_F64, TILE_F64, TILE_F64};
    const uint8_t chosen = in[0] != 0;
    const void *at[4] = {};
    for (size_t k = 0; k < in.size(); k++) at[k] = &in[k];
    if (cond) at[0] = &chosen;
    double y = NAN;
    op->strip(op, types, TILE_F64)(at, &y, 1);
    return y;
}

/* The functions of derivative formulas. */
namespace formula {
#define UNARY(name, ...)                     \
    [[maybe_unused]] double name(double a) { \
        return value(TILE_ROW_##name, {a});  \
    }
#define BINARY(name, ...)                              \
    [[maybe_unused]] double name(double a, double b) { \
        return value(TILE_ROW_##name, {a, b});         \
    }
#define TERNARY(name, ...)                                       \
    [[maybe_unused]] double name(double a, double b, double c) { \
        return value(TILE_ROW_##name, {a, b, c});                \
    }
#define MATH1 UNARY
#define MATH2 BINARY
#define COMPARE(...)
#define SELECT(...)
#define CAST(...)
#include "ops/elementwise/elementwise.def"
#undef UNARY
#undef BINARY
#undef TERNARY
#undef SELECT
#undef CAST

/* <name>_d<operand>: the formulas themselves. */
#define FULL(...) __VA_ARGS__
#define ZERO 0
#define DERIVATIVE(name, k, text)                                            \
    double name##_d##k([[maybe_unused]] double a, [[maybe_unused]] double b, \
                       [[maybe_unused]] double c, [[maybe_unused]] double y, \
                       [[maybe_unused]] double dy) {                         \
        return text;                                                         \
    }
#define UNARY(name, y, types, da, ...) DERIVATIVE(name, 0, da)
#define BINARY(name, y, types, da, db, ...) DERIVATIVE(name, 0, da) DERIVATIVE(name, 1, db)
#define TERNARY(name, y, types, da, db, dc, ...) \
    DERIVATIVE(name, 0, da) DERIVATIVE(name, 1, db) DERIVATIVE(name, 2, dc)
#define SELECT TERNARY
#define CAST UNARY
#include "ops/elementwise/elementwise.def"
#undef UNARY
#undef BINARY
#undef TERNARY
#undef MATH1
#undef MATH2
} // namespace formula

using Derivative = double (*)(double, double, double, double, double);

struct Row {
    int index;
    Derivative d[3];
};

/* Rows with a real result that take float64. */
const std::map<std::string, Row> &rows() {
    using namespace formula;
    static const std::map<std::string, Row> map = {
#define UNARY(name, ...) {#name, {TILE_ROW_##name, {name##_d0, nullptr, nullptr}}},
#define BINARY(name, ...) {#name, {TILE_ROW_##name, {name##_d0, name##_d1, nullptr}}},
#define TERNARY(name, ...) {#name, {TILE_ROW_##name, {name##_d0, name##_d1, name##_d2}}},
#define MATH1 UNARY
#define MATH2 BINARY
#include "ops/elementwise/elementwise.def"
    };
    return map;
}

std::string contents(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file.good()) << path;
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/* The data of a version 1.0 .npy file. */
template <typename T> std::vector<T> load(const std::string &path) {
    const std::string bytes = contents(path);
    const size_t start = 10 + (unsigned char)bytes.at(8) + 256 * (unsigned char)bytes.at(9);
    std::vector<T> data((bytes.size() - start) / sizeof(T));
    std::memcpy(data.data(), bytes.data() + start, data.size() * sizeof(T));
    return data;
}

struct Case {
    std::string op;
    int args;
    size_t points;
    double limit[2], absolute[2]; /* of the value, of the derivatives */
};

std::vector<Case> cases() {
    std::vector<Case> list;
    std::stringstream text(contents("tests/data/golden/ops/cases.txt"));
    for (std::string line; std::getline(text, line);) {
        std::map<std::string, std::string> field;
        std::stringstream words(line);
        for (std::string word; words >> word;)
            field[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
        if (field["group"] != "elementwise") continue;
        const auto number = [&](const char *key) { return std::stod(field.at(key)); };
        list.push_back({field["op"],
                        std::stoi(field["args"]),
                        std::stoul(field["points"]),
                        {number("y_ulp"), number("d_ulp")},
                        {number("y_abs"), number("d_abs")}});
    }
    return list;
}

/* Steps between the ordered bit patterns. */
double ulps(double x, double y) {
    int64_t i, j;
    std::memcpy(&i, &x, 8);
    std::memcpy(&j, &y, 8);
    const int64_t p = i < 0 ? INT64_MIN - i : i, q = j < 0 ? INT64_MIN - j : j;
    return (double)(p > q ? (uint64_t)p - (uint64_t)q : (uint64_t)q - (uint64_t)p);
}

bool matches(double got, double wanted, double limit, double absolute, bool signed_zero) {
    if (std::isnan(wanted)) return std::isnan(got);
    if (std::isinf(wanted)) return got == wanted;
    if (signed_zero && got == 0 && wanted == 0) return std::signbit(got) == std::signbit(wanted);
    return ulps(got, wanted) <= limit || std::fabs(got - wanted) <= absolute;
}

void check_case(const Case &c) {
    const std::string folder = "tests/data/golden/ops/elementwise/" + c.op + "/";
    const Row &row = rows().at(c.op);
    const char *names[] = {"a", "b", "c"};
    std::vector<Numbers> in, wanted = {load<double>(folder + "y.npy")};
    for (int k = 0; k < c.args; k++) {
        in.push_back(load<double>(folder + names[k] + ".npy"));
        wanted.push_back(load<double>(folder + "d" + names[k] + ".npy"));
    }
    const auto check = load<uint8_t>(folder + "check.npy");
    ASSERT_EQ(check.size(), c.points);
    for (size_t i = 0; i < c.points; i++) {
        Numbers x;
        for (const Numbers &operand : in) x.push_back(operand.at(i));
        const double y = value(row.index, x);
        x.resize(3, NAN);
        for (int k = 0; k <= c.args; k++) {
            if (!(check[i] >> k & 1)) continue;
            const double got = k ? row.d[k - 1](x[0], x[1], x[2], y, 1) : y;
            EXPECT_TRUE(matches(got, wanted[k][i], c.limit[k > 0], c.absolute[k > 0],
                                k == 0 && c.op != "sign"))
                << c.op << (k ? std::string(", derivative by ") + names[k - 1] : "") << " at "
                << testing::PrintToString(x) << ": " << testing::PrintToString(got) << ", wanted "
                << testing::PrintToString(wanted[k][i]) << ", " << ulps(got, wanted[k][i])
                << " ulp";
        }
    }
}

TEST(Golden, ValuesAndDerivativesOfEachOpAreWithinTheirLimits) {
    const std::vector<Case> list = cases();
    EXPECT_EQ(list.size(), 36u);
    for (const Case &c : list) check_case(c);
}

/* Central differences of fourth order with step h err by about h^4 and eps / h: 1e-11 at 1e-3. */
double difference(int row, Numbers x, int k) {
    constexpr double h = 1e-3;
    const auto at = [&](double step) {
        Numbers moved = x;
        moved[k] += step;
        return value(row, moved);
    };
    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
}

/* A kink between the points of the difference: one-sided ones disagree. */
bool has_kink(int row, const Numbers &x, int k) {
    constexpr double h = 2e-3;
    Numbers up = x, down = x;
    up[k] += h;
    down[k] -= h;
    const double y = value(row, x);
    return std::fabs(value(row, up) + value(row, down) - 2 * y) > 0.05 * h;
}

TEST(Derivatives, AgreeWithDifferencesOnTheTestDomain) {
    std::mt19937_64 random(5);
    for (const auto &[name, row] : rows()) {
        const tile_op &op = tile_ops_elementwise.ops[row.index];
        const tile_dtype types[] = {name == "select" ? TILE_BOOL : TILE_F64, TILE_F64, TILE_F64};
        if (name == "cast" || name == "stop_gradient" || !op.strip(&op, types, TILE_F64)) continue;
        int compared = 0;
        for (int i = 0; i < 50; i++) {
            Numbers x;
            for (int k = 0; k < op.n_in; k++)
                x.push_back(std::uniform_real_distribution<>(op.low[k], op.high[k])(random));
            if (name == "select") x[0] = x[0] > 0.5;
            if (std::fabs(x[0] - op.kink) < 0.01) continue;
            const double y = value(row.index, x);
            for (int k = name == "select"; k < op.n_in; k++) {
                if (has_kink(row.index, x, k)) continue;
                Numbers p = x;
                p.resize(3, NAN);
                const double exact = row.d[k](p[0], p[1], p[2], y, 1);
                EXPECT_NEAR(exact, difference(row.index, x, k), 1e-8 * (1 + std::fabs(exact)))
                    << name << " by operand " << k << " at " << testing::PrintToString(x);
                compared++;
            }
        }
        EXPECT_GT(compared, 20) << name;
    }
}

TEST(Derivatives, AreZeroWhereTheDescriptorSaysSoAndElseNotEverywhere) {
    std::mt19937_64 random(6);
    for (const auto &[name, row] : rows()) {
        const tile_op &op = tile_ops_elementwise.ops[row.index];
        for (int k = 0; k < op.n_in; k++) {
            double largest = 0;
            for (int i = 0; i < 50; i++) {
                Numbers x;
                for (int j = 0; j < op.n_in; j++)
                    x.push_back(std::uniform_real_distribution<>(op.low[j], op.high[j])(random));
                if (name == "select") x[0] = x[0] > 0.5;
                const double y =
                    op.grad[k] == TILE_GRAD_FULL && name != "cast" ? value(row.index, x) : 1;
                x.resize(3, NAN);
                largest = std::fmax(largest, std::fabs(row.d[k](x[0], x[1], x[2], y, 1)));
            }
            EXPECT_EQ(op.grad[k] == TILE_GRAD_FULL, largest > 0.1) << name << " by operand " << k;
        }
    }
}

} // namespace
