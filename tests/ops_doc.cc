/* ops_doc.cc: prints docs/ops.md from the registry. Fails when an op cannot be documented or
 * tested, so that the build does. */
#include <cmath>
#include <cstdio>

#include "tests/op_problem.h"

namespace {

using op_test::Problem;

/* Text of a table cell. */
std::string cell(const std::string &text) {
    std::string safe;
    for (char c : text) {
        if (c == '|') safe += '\\';
        safe += c;
    }
    return safe;
}

std::string code(const std::string &text) {
    return text.empty() ? "" : "`" + cell(text) + "`";
}

/* y = ..., of a row's C expression too. */
std::string value_text(const tile_op *op) {
    return op->kind == TILE_OP_ELEMENTWISE ? "y = " + std::string(op->math) : op->math;
}

std::string adjoint_text(const tile_op *op) {
    std::string text;
    if (op->kind == TILE_OP_COOPERATIVE)
        return op->adjoint_math ? code(op->adjoint_math) : "constant";
    for (int k = 0; k < op->n_in; k++) {
        if (!op->derivative[k]) continue;
        const std::string part = std::string("d") + static_cast<char>('a' + k) + " += ";
        text += (text.empty() ? "" : "; ") + code(part + op->derivative[k]);
    }
    return text.empty() ? "constant" : text;
}

/* Whether an elementwise op works on a dtype: on operands of it, or on those after a condition; or,
 * when it takes none but numbers of draws, whether it gives the dtype. */
enum class Way { kAll, kAfterCondition, kResult };

bool takes(const tile_op *op, tile_dtype dtype, Way way) {
    return !op_test::try_build(
        [&](tile_builder *b) {
            std::vector<tile> in;
            for (int k = 0; k < op->n_in; k++) {
                tile_dtype type = way == Way::kResult ? TILE_I64 : dtype;
                if (way == Way::kAfterCondition && k == 0) type = TILE_BOOL;
                in.push_back(tile_constant(b, type, TILE_SCALAR, 1));
            }
            const tile y = op_test::emit_op(b, op, in, dtype);
            if (way == Way::kResult && tile_is_good(y) && tile_dtype_of(y) != dtype)
                tile_builder_fail(b, TILE_E_DTYPE, "another dtype");
        },
        nullptr);
}

std::vector<tile_dtype> dtypes_of(const tile_op *op, Way way) {
    std::vector<tile_dtype> all;
    for (int k = 0; k < TILE_DTYPES; k++) {
        const tile_dtype dtype = static_cast<tile_dtype>(k);
        const bool promoted = tile_is_half(dtype) && !op->access && op->run[TILE_F32];
        if (op->kind == TILE_OP_COOPERATIVE ? op->run[k] || promoted : takes(op, dtype, way))
            all.push_back(dtype);
    }
    return all;
}

bool is_integer(tile_dtype dtype) {
    return !tile_is_float(dtype) && dtype != TILE_BOOL;
}

/* Whether all floats, or all integers, are among the types. */
bool has_all(const std::vector<tile_dtype> &types, bool floats) {
    int missing = 0;
    for (int k = 0; k < TILE_DTYPES; k++)
        if (floats ? tile_is_float(static_cast<tile_dtype>(k))
                   : is_integer(static_cast<tile_dtype>(k)))
            missing++;
    for (tile_dtype dtype : types)
        if (floats ? tile_is_float(dtype) : is_integer(dtype)) missing--;
    return missing == 0;
}

std::string dtypes_text(const tile_op *op) {
    std::vector<tile_dtype> all;
    for (Way way : {Way::kAll, Way::kAfterCondition, Way::kResult}) {
        const std::vector<tile_dtype> more = dtypes_of(op, way);
        const bool better =
            way == Way::kResult ? all.size() < 2 && !more.empty() : more.size() > all.size();
        if (better) all = more;
    }
    if (all.size() == TILE_DTYPES) return "all";
    std::string text;
    const auto add = [&](const std::string &name) { text += (text.empty() ? "" : ", ") + name; };
    const bool floats = has_all(all, true), integers = has_all(all, false);
    if (floats) add("floats");
    if (integers) add("integers");
    for (tile_dtype dtype : all)
        if (!(floats && tile_is_float(dtype)) && !(integers && is_integer(dtype)))
            add(tile_dtype_name(dtype));
    return text;
}

std::string special_text(const tile_op *op) {
    std::string text = op->special ? op->special : "";
    if (op->kind == TILE_OP_ELEMENTWISE && std::isfinite(op->kink)) {
        char kink[60];
        std::snprintf(kink, sizeof kink, "%skink at a = %g", text.empty() ? "" : "; ", op->kink);
        text += kink;
    }
    return cell(text);
}

const char kHead[] =
    "# Ops\n"
    "\n"
    "Made from the registry by `tests/ops_doc.cc`; a test compares. To bring it up to date:\n"
    "`bazel build //tests:ops_md && cp bazel-bin/tests/ops.md docs/ops.md`.\n"
    "\n"
    "Each op makes tiles from tiles; those with an `a[...]` read or write a window of an array.\n"
    "In an adjoint `dy` is the upstream gradient; where it is exactly 0 it contributes exactly 0.\n"
    "Constant: no gradient passes, by definition or because it is zero almost everywhere.\n"
    "Floats: float32, float64, float16, bfloat16, the last two computed in float32 and rounded\n"
    "once an op; integers: of 8, 16, 32, 64 bits, with and without sign.\n"
    "\n"
    "An elementwise op `NAME` is the call `tile_NAME`, the function `NAME` in formulas, the lane\n"
    "function `NAME_TYPE` and the strips `NAME_strip_TYPE`; upper-case functions in its value are\n"
    "those of the element type. Operands of elementwise ops broadcast as in NumPy.\n";

} // namespace

int main() {
    int failed = 0;
    std::fputs(kHead, stdout);
    for (int kind : {TILE_OP_ELEMENTWISE, TILE_OP_COOPERATIVE}) {
        std::printf("\n## %s\n\n| op | value | adjoint | dtypes | special |\n| --- | --- | --- | "
                    "--- | --- |\n",
                    kind == TILE_OP_ELEMENTWISE ? "Elementwise" : "Cooperative");
        for (int i = 0; tile_op_at(i); i++) {
            const tile_op *op = tile_op_at(i);
            const std::string missing = op_test::missing_inputs(op);
            if (!missing.empty()) {
                std::fprintf(stderr, "op %s: %s\n", op->name, missing.c_str());
                failed = 1;
            }
            if (op->kind != kind || !missing.empty()) continue;
            std::printf("| %s | %s | %s | %s | %s |\n", op->name, code(value_text(op)).c_str(),
                        adjoint_text(op).c_str(), dtypes_text(op).c_str(),
                        special_text(op).c_str());
        }
    }
    return failed;
}
