/* golden_stack.cc: pushes and pops of stacks, a step of a case after the other, in one kernel. */
#include <algorithm>

#include "tests/golden_runner.h"

namespace golden {

namespace {

/* The dtype of a name; Skipped when there is none. */
tile_dtype stack_dtype(const std::string &name) {
    for (int k = 0; k < TILE_DTYPES; k++) {
        const tile_dtype dtype = static_cast<tile_dtype>(k);
        if (name == tile_dtype_name(dtype)) return dtype;
    }
    throw Skipped("dtype " + name);
}

struct Stacks {
    const Case &c;
    tile_dtype dtype = stack_dtype(c.text("dtype"));
    int64_t lanes = c.integer("lanes");
    std::vector<std::string> steps = c.words("steps");
    Ints capacity = c.integers("capacity");
    bool grad = c.text("grad") == "yes";
    Bench bench;

    explicit Stacks(const Case &line) : c(line) {}

    tile_array *load(const std::string &name) {
        return bench.load(c.file(name + ".npy"));
    }

    /* Values in the case's dtype; a file of raw bits is taken as it is. */
    tile_array *load_values(const std::string &name) {
        tile_array *raw = load(name);
        if (tile_array_dtype(raw) == dtype) return raw;
        const Values bits = Bench::read(raw);
        tile_array *values = bench.zeros(dtype, bits.shape);
        must(tile_array_write(values, bits.bytes.data(), bits.bytes.size()));
        return values;
    }

    struct Params {
        tile_param values, mask, slots, popped, counts, out;
    };

    /* Row of a step, and back. */
    tile row(tile_builder *b, tile_param p, size_t step) const {
        const tile_offset at = TILE_AT(tile_int(b, static_cast<int64_t>(step)), tile_int(b, 0));
        return tile_reshape(tile_load(p, TILE_SHAPE(1, lanes), at), TILE_SHAPE(lanes));
    }
    void put(tile_builder *b, tile_param p, size_t step, tile t) const {
        const tile_offset at = TILE_AT(tile_int(b, static_cast<int64_t>(step)), tile_int(b, 0));
        tile_store(p, tile_reshape(t, TILE_SHAPE(1, lanes)), at);
    }

    void emit_step(tile_builder *b, const Params &p, const std::vector<tile_stack> &stacks,
                   size_t step) const {
        const size_t colon = steps[step].find(':');
        const std::string what = steps[step].substr(0, colon);
        const tile_stack s = stacks.at(std::stoul(steps[step].substr(colon + 1)));
        tile slot = tile_full(b, TILE_I64, TILE_SHAPE(lanes), -1);
        if (what == "push") {
            const tile mask = tile_cast(row(b, p.mask, step), TILE_BOOL);
            slot = tile_stack_push(s, row(b, p.values, step), mask);
        } else if (what == "pop") {
            const tile value = tile_stack_pop(s, TILE_SHAPE(lanes), &slot);
            put(b, p.popped, step, value);
            if (p.out.builder) tile_store_indexed(p.out, slot, value, TILE_AT_ZERO, 0);
        } else if (what == "clear") {
            tile_stack_clear(s);
        } else {
            throw Failed("no step " + what);
        }
        put(b, p.slots, step, tile_cast(slot, TILE_I32));
        tile_store(p.counts, tile_cast(tile_stack_count(s), TILE_I32),
                   TILE_AT(tile_int(b, static_cast<int64_t>(step))));
    }

    tile_kernel *build() {
        return bench.kernel("stack", [&](tile_builder *b) {
            Params p = {};
            p.values = tile_array_param(b, "values", dtype, 2);
            p.mask = tile_array_param(b, "mask", TILE_U8, 2);
            p.slots = tile_array_param(b, "slots", TILE_I32, 2);
            p.popped = tile_array_param(b, "popped", dtype, 2);
            p.counts = tile_array_param(b, "counts", TILE_I32, 1);
            if (c.has_file("out")) p.out = tile_array_param(b, "out", dtype, 1);
            std::vector<tile_stack> stacks;
            for (int64_t n : capacity) stacks.push_back(tile_stack_create(b, n, dtype));
            for (size_t k = 0; k < steps.size(); k++) emit_step(b, p, stacks, k);
        });
    }

    void run() {
        const int64_t n = static_cast<int64_t>(steps.size());
        tile_array *values = load_values("values"), *mask = load("mask");
        tile_array *slots = bench.zeros(TILE_I32, {n, lanes}), *out = nullptr;
        tile_array *popped = bench.zeros(dtype, {n, lanes}), *counts = bench.zeros(TILE_I32, {n});
        if (c.has_file("out")) out = bench.zeros(dtype, capacity);
        if (grad) must(tile_array_request_grad(values));
        std::vector<tile_arg> args;
        for (tile_array *a : {values, mask, slots, popped, counts, out})
            if (a) args.push_back(tile_arg_array(a));
        const tile_args all = {static_cast<int>(args.size()), args.data()};
        must(tile_launch(bench.record, build(), TILE_GRID(1), all));

        const double tol = c.real("tol");
        compare_mixed("slots", Bench::read(slots), Bench::read(load("slots")), 0);
        compare_mixed("counts", Bench::read(counts), Bench::read(load("counts")), 0);
        compare_mixed("popped", Bench::read(popped), Bench::read(load_values("popped")), tol);
        if (out) compare_mixed("out", Bench::read(out), Bench::read(load_values("out")), tol);
        if (!grad) return;
        tile_array *seed = load_values("popped_grad");
        must(tape_backward_seeds(bench.record, 1, &popped, &seed));
        compare_mixed("values_grad", Bench::gradient(values),
                      Bench::read(load_values("values_grad")), tol);
    }
};

} // namespace

void run_stack_case(const Case &c) {
    Stacks(c).run();
}

} // namespace golden
