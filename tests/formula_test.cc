/* formula_test.cc: formulas make the same program as calls; types, folding, guards; every error
 * with its place. Equal nodes are made once, so equal programs have equal tile numbers. */
#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <string>

#include "core/context.h"
#include "core/core_api.h"
#include "core/dtype.h"
#include "core/lane.h"
#include "core/status.h"
#include "ops/elementwise/elementwise_ops.h"
extern "C" {
#include "core/builder.h"
}

namespace {

class Formula : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(tile_context_create(nullptr, &ctx), TILE_OK);
        restart();
    }
    void TearDown() override {
        tile_builder_destroy(b);
        tile_context_destroy(ctx);
    }
    void restart() {
        tile_builder_destroy(b);
        b = tile_kernel_begin(ctx, "formulas");
        ASSERT_NE(b, nullptr);
        x = tile_real_param(b, "x", TILE_F32);
        y = tile_real_param(b, "y", TILE_F32);
        wide = tile_real_param(b, "wide", TILE_F64);
        i = tile_int_param(b, "i");
        j = tile_int_param(b, "j");
        flag = tile_less(x, y);
    }
    tile number(double value) {
        return tile_real(b, TILE_F32, value);
    }
    /* The error that a formula makes; the builder starts anew. */
    template <typename Call> std::string error(Call call) {
        const tile t = call();
        EXPECT_FALSE(tile_is_good(t));
        EXPECT_NE(b->status, TILE_OK);
        const std::string message = b->message;
        restart();
        return message;
    }
    tile_context *ctx = nullptr;
    tile_builder *b = nullptr;
    tile x = {}, y = {}, wide = {}, i = {}, j = {}, flag = {};
};

#define EXPECT_SAME(formula, call)                   \
    do {                                             \
        const tile got = formula, wanted = call;     \
        ASSERT_EQ(b->status, TILE_OK) << b->message; \
        EXPECT_EQ(got.id, wanted.id) << #formula;    \
    } while (0)

/* The message holds the reason, and a caret under the given part of the formula. */
#define EXPECT_ERROR(call, reason, at)                                                  \
    do {                                                                                \
        const std::string message = error([&] { return call; });                        \
        EXPECT_NE(message.find(reason), std::string::npos) << message;                  \
        const size_t line = message.find("\n  "), caret = message.rfind("\n  ");        \
        ASSERT_NE(line, caret) << message;                                              \
        const std::string text = message.substr(line + 3, caret - line - 3);            \
        const size_t place = std::min(text.find(at), text.size()); /* "\n": the end */  \
        EXPECT_EQ(message.substr(caret + 3), std::string(place, ' ') + "^") << message; \
    } while (0)

TEST_F(Formula, MakesTheProgramThatCallsMake) {
    EXPECT_SAME(tile_expr("x + y", x, y), tile_add(x, y));
    EXPECT_SAME(tile_expr("x - y * x / y", x, y), tile_sub(x, tile_div(tile_mul(y, x), y)));
    EXPECT_SAME(tile_expr("(x - y) * x", x, y), tile_mul(tile_sub(x, y), x));
    EXPECT_SAME(tile_expr("x - y - x", x, y), tile_sub(tile_sub(x, y), x));
    EXPECT_SAME(tile_expr("-x * +y", x, y), tile_mul(tile_neg(x), y));
    EXPECT_SAME(tile_expr("sin(x) + atan2(x, y)", x, y), tile_add(tile_sin(x), tile_atan2(x, y)));
    EXPECT_SAME(tile_expr(" fma ( x,y ,\n\tx ) ", x, y), tile_fma(x, y, x));
    EXPECT_SAME(tile_expr("x", x), x);
    EXPECT_SAME(tile_expr("((x))", x), x);
}

TEST_F(Formula, ComparesAndChooses) {
    EXPECT_SAME(tile_expr("x < y", x, y), flag);
    EXPECT_SAME(tile_expr("x >= y", x, y), tile_greater_equal(x, y));
    EXPECT_SAME(tile_expr("x != y", x, y), tile_not_equal(x, y));
    EXPECT_SAME(tile_expr("x <= y == flag", x, y, flag), tile_equal(tile_less_equal(x, y), flag));
    EXPECT_SAME(tile_expr("flag ? x : y", flag, x, y), tile_select(flag, x, y));
    EXPECT_SAME(tile_expr("x < y ? x : x == y ? y : -x", x, y),
                tile_select(flag, x, tile_select(tile_equal(x, y), y, tile_neg(x))));
    EXPECT_SAME(tile_expr("x < y && !flag || x > y", x, y, flag),
                tile_logical_or(tile_logical_and(flag, tile_logical_not(flag)),
                                tile_greater(x, y)));
    EXPECT_SAME(tile_expr("select(flag, x, y)", flag, x, y), tile_select(flag, x, y));
}

TEST_F(Formula, NumbersTakeTheTypeBesideThem) {
    EXPECT_SAME(tile_expr("2 * x", x), tile_mul(number(2), x));
    EXPECT_SAME(tile_expr("x + .5e1", x), tile_add(x, number(5)));
    EXPECT_SAME(tile_expr("wide * 0.1", wide), tile_mul(wide, tile_real(b, TILE_F64, 0.1)));
    EXPECT_SAME(tile_expr("i * 3 + 1", i), tile_add(tile_mul(i, tile_int(b, 3)), tile_int(b, 1)));
    EXPECT_SAME(tile_expr("x * (flag ? 0 : 1)", x, flag),
                tile_mul(x, tile_select(flag, number(0), number(1))));
    EXPECT_SAME(tile_expr("x * ((flag ? 0 : 1) + 2)", x, flag),
                tile_mul(x, tile_add(tile_select(flag, number(0), number(1)), number(2))));
    EXPECT_SAME(tile_expr("flag ? 0 : x", flag, x), tile_select(flag, number(0), x));
    EXPECT_SAME(tile_expr("max(x, 0)", x), tile_max(x, number(0)));
}

TEST_F(Formula, NumbersAreFoldedInFloat64) {
    EXPECT_SAME(tile_expr("1 / 2 * x", x), tile_mul(number(0.5), x));
    EXPECT_SAME(tile_expr("x * (-(1.0 / 3) + 2 * 4)", x), tile_mul(x, number(8 - 1.0 / 3)));
    EXPECT_SAME(tile_expr("sqrt(2) * x", x), tile_mul(number(std::sqrt(2.0)), x));
    EXPECT_SAME(tile_expr("i + 6 / 3", i), tile_add(i, tile_int(b, 2)));
    EXPECT_SAME(tile_expr("f64(1) / 3 + wide", wide),
                tile_add(tile_div(tile_real(b, TILE_F64, 1), tile_real(b, TILE_F64, 3)), wide));
}

TEST_F(Formula, ReadsNumbersWithAPointWhateverTheLocale) {
    const char *const comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
    for (const char *name : comma)
        if (std::setlocale(LC_ALL, name)) break;
    const tile half = tile_expr("0.5 * x", x);
    std::setlocale(LC_ALL, "C");
    EXPECT_SAME(half, tile_mul(number(0.5), x));
}

TEST_F(Formula, DividesIntegersDownByName) {
    EXPECT_SAME(tile_expr("div(i, j)", i, j), tile_floor_div(i, j));
    EXPECT_SAME(tile_expr("mod(i, 7)", i), tile_mod(i, tile_int(b, 7)));
    EXPECT_SAME(tile_expr("div(x, y)", x, y), tile_div(x, y));
    EXPECT_ERROR(tile_expr("i + i / j", i, j), "/ between integers (int64)", "/");
    EXPECT_ERROR(tile_expr("i / 2", i), "/ between integers (int64)", "/");
}

TEST_F(Formula, CastsByTheNameOfATypeOnly) {
    EXPECT_SAME(tile_expr("f32(i) * x", i, x), tile_mul(tile_cast(i, TILE_F32), x));
    EXPECT_SAME(tile_expr("float64(x) + wide", x, wide), tile_add(tile_cast(x, TILE_F64), wide));
    EXPECT_ERROR(tile_expr("x * wide", x, wide), "float32 and float64 are mixed", "*");
    EXPECT_ERROR(tile_expr("y + (i - x)", y, i, x), "int64 and float32 are mixed", "-");
    EXPECT_ERROR(tile_expr("flag + x", flag, x), "bool and float32 are mixed", "+");
    EXPECT_ERROR(tile_expr("min(x, wide)", x, wide), "float32 and float64 are mixed", "min");
}

TEST_F(Formula, SaysWhatDoesNotParseAndWhere) {
    EXPECT_ERROR(tile_expr("x + ", x), "the formula ends, expected a number, a name or '('", "\n");
    EXPECT_ERROR(tile_expr("", x), "the formula ends", "\n");
    EXPECT_ERROR(tile_expr("x + * y", x, y), "'*', expected a number", "*");
    EXPECT_ERROR(tile_expr("(x + y", x, y), "the formula ends, expected ')'", "\n");
    EXPECT_ERROR(tile_expr("x ^ y", x, y), "'^', expected an operator or the end", "^");
    EXPECT_ERROR(tile_expr("2x", x), "'x', expected an operator after the number", "x");
    EXPECT_ERROR(tile_expr("1.2.3 + x", x), "expected an operator after the number", ".3");
    EXPECT_ERROR(tile_expr("x + 0x10", x), "a hexadecimal number", "0x");
    EXPECT_ERROR(tile_expr("x + 1e999", x), "too large", "1e999");
    EXPECT_ERROR(tile_expr("x < y ? x", x, y), "the formula ends, expected ':'", "\n");
    EXPECT_ERROR(tile_expr("min(x, y", x, y), "expected ',' or ')'", "\n");
    EXPECT_ERROR(tile_expr("x + z", x), "no operand is named z", "z");
    EXPECT_ERROR(tile_expr("x + sine(x)", x), "no function is named sine", "sine");
    EXPECT_ERROR(tile_expr("load(x)", x), "no function is named load", "load");
    EXPECT_ERROR(tile_expr("x + min(x)", x), "min takes 2 operands, got 1", "min");
    EXPECT_ERROR(tile_expr("sin(x, x)", x), "sin takes 1 operand, got 2", "sin");
    EXPECT_ERROR(tile_expr("sin()", x), "sin takes 1 operand, got 0", "sin");
    EXPECT_ERROR(tile_expr("min(x, x, x, x, x)", x), "more operands than any op has", " x)");
}

TEST_F(Formula, SaysWhatHasNoType) {
    EXPECT_ERROR(tile_expr("1 + 2", x), "only numbers", "+");
    EXPECT_ERROR(tile_expr("flag ? 0 : 1", flag), "only numbers", "?");
    EXPECT_ERROR(tile_expr("x + (1 < 2)", x), "less of numbers only", "<");
    EXPECT_ERROR(tile_expr("i + 0.5", i), "0.5 beside int64", "0.5");
    EXPECT_ERROR(tile_expr("x && flag", x, flag), "float32 and bool are mixed", "&&");
    EXPECT_ERROR(tile_expr("!x", x), "no such operation on float32", "!");
    EXPECT_ERROR(tile_expr("sin(i)", i), "no such operation on int64", "sin");
    EXPECT_ERROR(tile_expr("x ? x : y", x, y), "a is float32, wanted bool", "?");
    EXPECT_ERROR(tile_expr("i + 9007199254740993", i), "above 2^53 and not exact", "9007");
}

TEST_F(Formula, ShowsTheEndsOfALongFormulaAroundThePlace) {
    std::string text = "x";
    for (int k = 0; k < 60; k++) text += " + x";
    const std::string wrong = text + " + zz" + text.substr(1);
    const std::string message = error([&] {
        tile_list operands = {};
        operands.count = 1;
        operands.item[0] = x;
        return tile_formula(wrong.c_str(), "x", operands);
    });
    const size_t caret = message.rfind("\n  "), line = message.rfind("\n  ", caret - 1);
    EXPECT_EQ(message.substr(line + 3, caret - line - 3).find("zz"), message.size() - caret - 4);
}

TEST_F(Formula, NamesAreTheSpellingOfTheOperands) {
    const tile list[] = {x, y};
    const auto count = [&](const char *names, int n) {
        return error([&] {
            tile_list operands = {};
            operands.count = n;
            operands.item[0] = x;
            operands.item[1] = y;
            return tile_formula("x", names, operands);
        });
    };
    EXPECT_NE(error([&] { return tile_expr("x", x, list[1]); })
                  .find("operand 2, \"list[1]\", is not "
                        "an identifier"),
              std::string::npos);
    EXPECT_NE(count("x, tile_add(x, y)", 2).find("operand 2"), std::string::npos);
    EXPECT_NE(count("x", 2).find("2 operands, 1 names"), std::string::npos);
    EXPECT_NE(count("x,", 1).find("operand 2, \"\""), std::string::npos);
}

TEST_F(Formula, NestsDeeplyButNotEndlessly) {
    const auto nested = [&](int depth) {
        tile_list operands = {};
        operands.count = 1;
        operands.item[0] = x;
        const std::string text = std::string(depth, '(') + "x" + std::string(depth, ')');
        return tile_formula(text.c_str(), "x", operands);
    };
    EXPECT_EQ(nested(90).id, x.id);
    EXPECT_NE(error([&] { return nested(5000); }).find("nested too deeply"), std::string::npos);
    const std::string signs = std::string(5000, '-') + "x";
    EXPECT_NE(error([&] {
                  tile_list operands = {};
                  operands.count = 1;
                  operands.item[0] = x;
                  return tile_formula(signs.c_str(), "x", operands);
              }).find("nested too deeply"),
              std::string::npos);
}

TEST_F(Formula, PassesAnEarlierErrorOn) {
    tile_expr("nothing", x);
    const std::string first = b->message;
    EXPECT_FALSE(tile_is_good(tile_expr("x +", x)));
    EXPECT_EQ(first, b->message);
    EXPECT_NE(first.find("formula_test.cc"), std::string::npos) << first;
}

TEST_F(Formula, GuardsProductsAndQuotientsByTheGuard) {
    const char *const names[] = {"dy", "a", "flag"};
    const tile operands[] = {x, y, flag};
    const auto guarded = [&](const char *text) {
        return tile_formula_emit(b, text, 3, names, operands, "dy");
    };
    const tile product = tile_guarded_mul(x, y);
    EXPECT_SAME(guarded("dy * a"), product);
    EXPECT_SAME(guarded("a * dy"), product);
    EXPECT_SAME(guarded("dy / a"), tile_guarded_div(x, y));
    EXPECT_SAME(guarded("-dy * a"), tile_guarded_mul(tile_neg(x), y));
    EXPECT_SAME(guarded("-(dy * a)"), tile_neg(product));
    EXPECT_SAME(guarded("dy * a * a"), tile_guarded_mul(product, y));
    EXPECT_SAME(guarded("dy * (a * a)"), tile_guarded_mul(x, tile_mul(y, y)));
    EXPECT_SAME(guarded("flag ? 0 : dy"), tile_select(flag, number(0), x));
    EXPECT_SAME(guarded("(flag ? 0 : dy) * a"),
                tile_guarded_mul(tile_select(flag, number(0), x), y));
    EXPECT_SAME(guarded("(dy + dy) / a"), tile_guarded_div(tile_add(x, x), y));
    EXPECT_SAME(guarded("a / 2 + dy"), tile_add(tile_div(y, number(2)), x));
    EXPECT_SAME(tile_formula_emit(b, "dy * a", 3, names, operands, nullptr), tile_mul(x, y));
}

} // namespace
