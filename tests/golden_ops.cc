/* golden_ops.cc: single operations: values, and derivatives through a tape. */
#include <map>

#include "core/core_api.h"
extern "C" {
#include "core/builder.h"
}
#include "tests/golden_runner.h"

namespace golden {

namespace {

/* Elementwise: one op by its name in the registry, on points in blocks of a row. */

enum { POINTS = 32 };

void run_elementwise(const Case &c) {
    const tile_op *op = tile_op_find(c.text("op").c_str());
    if (!op) throw Skipped("op " + c.text("op"));
    const int n = static_cast<int>(c.integer("args"));
    if (n != op->n_in || n > 3) throw Failed("the op has another number of operands");
    static const char *const names[] = {"a", "b", "c"};
    const std::string folder = "elementwise/" + c.text("op") + "/";

    Bench bench;
    std::vector<tile_array *> in;
    for (int k = 0; k < n; k++) {
        in.push_back(bench.load(c.path(folder + names[k] + ".npy")));
        must(tile_array_request_grad(in.back()));
    }
    const int64_t points = tile_array_count(in[0]);
    tile_array *y = bench.zeros(TILE_F64, {points}), *one = bench.zeros(TILE_F64, {points});
    must(tile_array_fill(one, 1));

    tile_kernel *kernel = bench.kernel(op->name, [&](tile_builder *b) {
        tile_emission e = {};
        e.op = op;
        e.n_in = n;
        const tile_offset at = TILE_AT(tile_block_start(b, 0, POINTS));
        for (int k = 0; k < n; k++)
            e.in[k] = tile_load(tile_array_param(b, names[k], TILE_F64, 1), TILE_SHAPE(POINTS), at);
        const tile_param out = tile_array_param(b, "y", TILE_F64, 1);
        tile_store(out, tile_emit(b, &e), at);
    });
    std::vector<tile_arg> args;
    for (tile_array *a : in) args.push_back(tile_arg_array(a));
    args.push_back(tile_arg_array(y));
    const tile_args all = {n + 1, args.data()};
    must(tile_launch(bench.record, kernel, TILE_GRID((points + POINTS - 1) / POINTS), all));

    const Values check = Bench::read(bench.load(c.path(folder + "check.npy")));
    const UlpLimit y_limit = {c.real("y_ulp"), c.real("y_abs"), c.text("op") != "sign"};
    compare_ulps("y", Bench::read(y), Bench::read(bench.load(c.path(folder + "y.npy"))), check, 0,
                 y_limit);

    /* Where every derivative is zero by declaration, the tape says so instead of adding zeros. */
    bool constant = true;
    for (int k = 0; k < n; k++) constant = constant && op->grad[k] == TILE_GRAD_ZERO;
    const tile_status status = tape_backward_seeds(bench.record, 1, &y, &one);
    if (!(constant && status == TILE_E_STATE)) must(status);
    const UlpLimit d_limit = {c.real("d_ulp"), c.real("d_abs"), false};
    for (int k = 0; k < n; k++) {
        const std::string name = std::string("d") + names[k];
        compare_ulps(name, Bench::gradient(in[static_cast<size_t>(k)]),
                     Bench::read(bench.load(c.path(folder + name + ".npy"))), check, 1 + k,
                     d_limit);
    }
}

/* Structured: how to call each op on whole inputs. */

using Call = std::function<tile(tile_builder *, const Case &, const std::vector<tile> &)>;

unsigned axes_of(const Case &c) {
    unsigned axes = 0;
    for (int64_t axis : c.integers("axis")) axes |= 1u << axis;
    return axes;
}

template <tile (*reduce)(tile, unsigned)> Call over_axes() {
    return [](tile_builder *, const Case &c, const std::vector<tile> &in) {
        return reduce(in[0], axes_of(c));
    };
}

tile concat(tile_builder *, const Case &c, const std::vector<tile> &in) {
    tile_list parts = {};
    for (tile t : in) parts.item[parts.count++] = t;
    return tile_concat(parts, static_cast<int>(c.integer("axis")));
}

/* Names of the format that are calls, not ops of the registry, stand here too. */
const std::map<std::string, Call> &calls() {
    static const std::map<std::string, Call> all = {
        {"sum", over_axes<(tile_sum)>()},
        {"mean", over_axes<(tile_mean)>()},
        {"prod", over_axes<(tile_prod)>()},
        {"min", over_axes<(tile_reduce_min)>()},
        {"max", over_axes<(tile_reduce_max)>()},
        {"argmin", over_axes<(tile_argmin)>()},
        {"argmax", over_axes<(tile_argmax)>()},
        {"matmul", [](tile_builder *, const Case &,
                      const std::vector<tile> &in) { return tile_matmul(in[0], in[1]); }},
        {"dot", [](tile_builder *, const Case &,
                   const std::vector<tile> &in) { return tile_dot(in[0], in[1]); }},
        {"permute",
         [](tile_builder *, const Case &c, const std::vector<tile> &in) {
             return tile_permute(in[0], shape_of(c.integers("axes")));
         }},
        {"broadcast",
         [](tile_builder *, const Case &c, const std::vector<tile> &in) {
             return tile_broadcast(in[0], shape_of(c.integers("to")));
         }},
        {"reshape",
         [](tile_builder *, const Case &c, const std::vector<tile> &in) {
             return tile_reshape(in[0], shape_of(c.integers("to")));
         }},
        {"concat", concat},
        {"cumsum",
         [](tile_builder *, const Case &c, const std::vector<tile> &in) {
             return tile_cumsum(in[0], static_cast<int>(c.integer("axis")), 0);
         }},
    };
    return all;
}

void run_structured(const Case &c) {
    const std::string op = c.text("op");
    const auto call = calls().find(op);
    if (call == calls().end()) {
        if (!tile_op_find(op.c_str())) throw Skipped("op " + op);
        throw Failed("golden_ops.cc does not say how to call the op " + op);
    }
    const bool grad = c.text("grad") == "yes";
    const std::string folder = "structured/" + c.name() + "/";
    const std::vector<std::string> names = c.words("inputs");
    Bench bench;
    std::vector<tile_array *> in;
    for (const std::string &name : names) {
        in.push_back(bench.load(c.path(folder + name + ".npy")));
        if (grad) must(tile_array_request_grad(in.back()));
    }
    const Values want = Bench::read(bench.load(c.path(folder + "y.npy")));
    tile_array *y = bench.zeros(want.dtype, c.integers("y"));

    tile_kernel *kernel = bench.kernel(op, [&](tile_builder *b) {
        std::vector<tile> tiles;
        for (size_t k = 0; k < in.size(); k++) {
            const tile_shape shape = tile_array_shape(in[k]);
            tiles.push_back(tile_load(tile_array_param(b, names[k].c_str(), tile_array_dtype(in[k]),
                                                       shape.rank),
                                      shape, TILE_AT_ZERO));
        }
        const tile_param out =
            tile_array_param(b, "y", want.dtype, static_cast<int>(want.shape.size()));
        tile_store(out, call->second(b, c, tiles), TILE_AT_ZERO);
    });
    std::vector<tile_arg> args;
    for (tile_array *a : in) args.push_back(tile_arg_array(a));
    args.push_back(tile_arg_array(y));
    const tile_args all = {static_cast<int>(args.size()), args.data()};
    must(tile_launch(bench.record, kernel, TILE_GRID(1), all));
    compare_relative("y", Bench::read(y), want, c.real("rtol"));
    if (!grad) return;

    tile_array *g = bench.load(c.path(folder + "g.npy"));
    must(tape_backward_seeds(bench.record, 1, &y, &g));
    for (size_t k = 0; k < in.size(); k++)
        compare_relative("d" + names[k], Bench::gradient(in[k]),
                         Bench::read(bench.load(c.path(folder + "d" + names[k] + ".npy"))),
                         c.real("rtol"));
}

} // namespace

void run_ops_case(const Case &c) {
    if (c.text("group") == "elementwise")
        run_elementwise(c);
    else if (c.text("group") == "structured")
        run_structured(c);
    else
        throw Failed("no such group: " + c.text("group"));
}

} // namespace golden
