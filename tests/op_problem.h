/* op_problem.h: test problems made from an op's registration: arrays, a kernel, a grid. */
#ifndef TILE_TESTS_OP_PROBLEM_H
#define TILE_TESTS_OP_PROBLEM_H

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tape/tiletape.h"
extern "C" {
#include "core/array.h"
#include "core/builder.h"
}

namespace op_test {

using Ints = std::vector<int64_t>;
using Reals = std::vector<double>;

/* In place of a dtype: the type that the problem is run in. */
constexpr tile_dtype kReal = TILE_DTYPES;

enum class Role {
    kInput,   /* only read */
    kState,   /* read and written, starts from values */
    kResult,  /* overwritten everywhere, starts as NaN */
    kConstant /* a result that is a constant for gradients by definition */
};

/* One array of a problem. */
struct Field {
    std::string name;
    Role role = Role::kInput;
    tile_dtype dtype = kReal;
    tile_shape shape = {};
    Reals value;  /* C order; rounded to float32 */
    Ints integer; /* in place of value where dtype is int64 */
    tile_grad grad = TILE_GRAD_FULL;

    size_t count() const {
        return static_cast<size_t>(tile_shape_count(shape));
    }
    bool real() const {
        return dtype == kReal;
    }
};

/* Roundings in a result that is no sum. */
constexpr double kTerms = 8;

struct Problem {
    const tile_op *op = nullptr;
    std::string name;
    std::vector<Field> field;
    tile_grid grid = TILE_GRID(1);
    double terms = kTerms; /* roundings that can add up in one element; more: it has sums */
    std::function<void(tile_builder *, tile_dtype real, const std::vector<tile_param> &)> build;
};

using Random = std::mt19937_64;

/* Of the run: TILE_TEST_SEED, or a fixed one. */
uint64_t base_seed();
Random random_for(const std::string &name);
double uniform(Random *random, double low, double high);

/* n numbers, no two of which are near one another. */
Reals distinct(Random *random, size_t n, double low, double high);

/* What the op's registration lacks to be tested; "" when nothing. */
std::string missing_inputs(const tile_op *op);

/* Small problems: ranks 0 to 4, one element, primes, blocks, broadcasting, all kinds of windows. */
std::vector<Problem> problems_of(const tile_op *op);

/* Problems that are large enough for several threads, with blocks that meet in memory. */
std::vector<Problem> large_problems_of(const tile_op *op);

/* A problem whose operands are special values; elementwise: every combination. */
std::vector<Problem> special_problems_of(const tile_op *op);

/* Dtypes of the operands with which an elementwise op works; empty: none. */
std::vector<tile_dtype> operand_types(const tile_op *op);

/* Emits an elementwise op on tiles. */
tile emit_op(tile_builder *b, const tile_op *op, const std::vector<tile> &in, tile_dtype want);

/* Builds a kernel and reports how that ended; message: of the error. */
tile_status try_build(const std::function<void(tile_builder *)> &build, std::string *message);

} // namespace op_test

#endif
