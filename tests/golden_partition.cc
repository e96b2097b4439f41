/* golden_partition.cc: partition views: one operation, or some in one kernel, on one array. */
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/dtype.h"
#include "tests/golden_runner.h"

namespace golden {

namespace {

using Bytes = std::vector<unsigned char>;

tile_dtype dtype_of(const std::string &name) {
    for (int k = 0; k < TILE_DTYPES; k++) {
        const tile_dtype dtype = static_cast<tile_dtype>(k);
        if (name == tile_dtype_name(dtype)) return dtype;
    }
    throw Skipped("dtype " + name);
}

/* The elements of a .npy file of version 1.0 as they are: bfloat16 comes as uint16. */
Bytes elements_of(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    const Bytes all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (all.size() < 10 || all[6] != 1) throw Failed(path + ": cannot be read");
    const size_t head = 10 + all[8] + 256u * all[9];
    if (head > all.size()) throw Failed(path + ": is too short");
    return Bytes(all.begin() + static_cast<int64_t>(head), all.end());
}

Ints joined(const Ints &a, const Ints &b) {
    Ints both = a;
    both.insert(both.end(), b.begin(), b.end());
    return both;
}

/* One operation; at: what stands behind its keys and files. */
struct Step {
    std::string op, at;
    bool all = false; /* one block for each partition */
    Ints index, value_shape;
    tile_dtype value_dtype = TILE_F32;
    double pad = 0;
    tile_memory_order order = TILE_ORDER_RELAXED;
    tile_thread_scope scope = TILE_SCOPE_DEVICE;
    tile_array *in = nullptr, *out = nullptr;

    bool loads() const {
        return op.find("load") != std::string::npos;
    }
};

double pad_of(const std::string &text) {
    const std::map<std::string, double> kinds = {{"zero", TILE_PAD_ZERO},
                                                 {"negative_zero", TILE_PAD_NEGATIVE_ZERO},
                                                 {"nan", TILE_PAD_NAN},
                                                 {"positive_inf", TILE_PAD_POSITIVE_INF},
                                                 {"negative_inf", TILE_PAD_NEGATIVE_INF}};
    if (text.rfind("const:", 0) == 0) return std::stod(text.substr(6));
    return kinds.at(text);
}

Step step_of(const Case &c, const std::string &at) {
    const std::map<std::string, tile_memory_order> orders = {{"relaxed", TILE_ORDER_RELAXED},
                                                             {"acquire", TILE_ORDER_ACQUIRE},
                                                             {"release", TILE_ORDER_RELEASE}};
    const std::map<std::string, tile_thread_scope> scopes = {{"block", TILE_SCOPE_BLOCK},
                                                             {"device", TILE_SCOPE_DEVICE},
                                                             {"system", TILE_SCOPE_SYSTEM}};
    Step s;
    s.op = c.text("op" + at);
    s.at = at;
    s.all = c.text("index" + at) == "all";
    if (!s.all) s.index = c.integers("index" + at);
    if (c.has("pad" + at)) s.pad = pad_of(c.text("pad" + at));
    if (c.has("order" + at)) s.order = orders.at(c.text("order" + at));
    if (c.has("scope" + at)) s.scope = scopes.at(c.text("scope" + at));
    if (c.has("value_shape" + at)) {
        s.value_shape = c.integers("value_shape" + at);
        s.value_dtype = dtype_of(c.text("value_dtype" + at));
    }
    return s;
}

/* Emits the operation; gives what it loads. */
tile emit(const Step &s, tile_partition p, tile_offset i, tile v) {
    typedef tile (*Update)(tile_partition, tile, tile_offset, tile_memory_order, tile_thread_scope);
    const std::map<std::string, Update> updates = {
        {"atomic_add", (tile_partition_atomic_add)},
        {"atomic_add_masked", (tile_partition_atomic_add_masked)},
        {"atomic_sub", (tile_partition_atomic_sub)},
        {"atomic_sub_masked", (tile_partition_atomic_sub_masked)},
        {"atomic_min", (tile_partition_atomic_min)},
        {"atomic_min_masked", (tile_partition_atomic_min_masked)},
        {"atomic_max", (tile_partition_atomic_max)},
        {"atomic_max_masked", (tile_partition_atomic_max_masked)},
        {"atomic_and", (tile_partition_atomic_and)},
        {"atomic_and_masked", (tile_partition_atomic_and_masked)},
        {"atomic_or", (tile_partition_atomic_or)},
        {"atomic_or_masked", (tile_partition_atomic_or_masked)},
        {"atomic_xor", (tile_partition_atomic_xor)},
        {"atomic_xor_masked", (tile_partition_atomic_xor_masked)}};
    if (s.op == "load") return tile_partition_load(p, i);
    if (s.op == "load_masked") return tile_partition_load_masked(p, i, s.pad);
    if (s.op == "atomic_load") return tile_partition_atomic_load(p, i, s.order, s.scope);
    if (s.op == "atomic_load_masked")
        return tile_partition_atomic_load_masked(p, i, s.pad, s.order, s.scope);
    if (s.op == "store")
        tile_partition_store(p, v, i);
    else if (s.op == "store_masked")
        tile_partition_store_masked(p, v, i);
    else if (s.op == "atomic_store")
        tile_partition_atomic_store(p, v, i, s.order, s.scope);
    else if (s.op == "atomic_store_masked")
        tile_partition_atomic_store_masked(p, v, i, s.order, s.scope);
    else if (updates.count(s.op))
        return updates.at(s.op)(p, v, i, s.order, s.scope);
    else
        throw Failed("no operation " + s.op);
    return v;
}

struct Partition {
    const Case &c;
    tile_dtype dtype = dtype_of(c.text("dtype"));
    Ints extents = c.integers("extents"), strides = c.integers("strides"),
         shape = c.integers("shape"), count = c.integers("count");
    bool grad = c.text("grad") == "yes";
    std::vector<Step> steps;
    Bench bench;
    tile_array *memory = nullptr, *array = nullptr;

    Partition(const Case &line, bool check) : c(line), bench(check) {
        if (static_cast<int64_t>(extents.size()) != c.integer("rank")) throw Failed("rank");
        const std::string op = c.text("op");
        if (op == "count" || op == "span") return;
        const int64_t n = op == "steps" ? c.integer("steps") : 1;
        for (int64_t k = 0; k < n; k++)
            steps.push_back(step_of(c, op == "steps" ? "_" + std::to_string(k) : ""));
    }

    Ints per_block(const Step &s, const Ints &of_one) const {
        return s.all ? joined(count, of_one) : of_one;
    }

    tile_array *filled(tile_dtype type, const Ints &of, const std::string &file) {
        tile_array *a = bench.zeros(type, of);
        const Bytes values = elements_of(c.file(file + ".npy"));
        must(tile_array_write(a, values.data(), values.size()));
        return a;
    }

    void make_arrays() {
        memory = filled(dtype, {c.integer("buffer")}, "mem_before");
        if (grad) must(tile_array_request_grad(memory));
        array = bench.strided(memory, c.integer("offset"), extents, strides);
        for (Step &s : steps) {
            if (s.loads()) {
                s.out = bench.zeros(dtype, per_block(s, shape));
                if (grad) must(tile_array_request_grad(s.out));
            } else {
                s.in = filled(s.value_dtype, per_block(s, s.value_shape), "tile_in" + s.at);
                if (grad) must(tile_array_request_grad(s.in));
            }
        }
    }

    /* Building. */

    /* Block indices in front, zeros behind. */
    tile_offset piece(tile_builder *b, const Step &s, const Ints &of_one) const {
        tile_offset at = {};
        at.rank = static_cast<int>(per_block(s, of_one).size());
        for (int d = 0; d < at.rank; d++)
            at.at[d] = s.all && d < static_cast<int>(count.size()) ? tile_block_index(b, d)
                                                                   : tile_int(b, 0);
        return at;
    }

    tile_shape one_piece(const Step &s, const Ints &of_one) const {
        return shape_of(s.all ? joined(Ints(count.size(), 1), of_one) : of_one);
    }

    void build_step(tile_builder *b, const Step &s, tile_partition p) const {
        tile_offset at = {};
        tile v = {b, -1};
        at.rank = static_cast<int>(shape.size());
        for (int d = 0; d < at.rank; d++)
            at.at[d] =
                s.all ? tile_block_index(b, d) : tile_int(b, s.index[static_cast<size_t>(d)]);
        if (s.in) {
            const tile_param in = tile_array_param(b, ("in" + s.at).c_str(), s.value_dtype,
                                                   tile_array_shape(s.in).rank);
            v = tile_load(in, one_piece(s, s.value_shape), piece(b, s, s.value_shape));
            v = tile_reshape(v, shape_of(s.value_shape));
        }
        const tile t = emit(s, p, at, v);
        if (!s.out) return;
        const tile_param out =
            tile_array_param(b, ("out" + s.at).c_str(), dtype, tile_array_shape(s.out).rank);
        tile_store(out, tile_reshape(t, one_piece(s, shape)), piece(b, s, shape));
    }

    tile_partition view(tile_builder *b) const {
        const tile_param a = tile_array_param(b, "a", dtype, static_cast<int>(extents.size()));
        return tile_partition_view(a, shape_of(shape));
    }

    tile_status launch() {
        tile_kernel *kernel;
        const tile_status built = bench.try_kernel(
            c.text("op"),
            [&](tile_builder *b) {
                const tile_partition p = view(b);
                for (const Step &s : steps) build_step(b, s, p);
            },
            &kernel);
        if (built) return built;
        std::vector<tile_arg> args = {tile_arg_array(array)};
        tile_grid grid = TILE_GRID(1);
        for (const Step &s : steps) {
            args.push_back(tile_arg_array(s.in ? s.in : s.out));
            for (size_t d = 0; s.all && d < count.size(); d++) grid.blocks[d] = count[d];
        }
        const tile_args all = {static_cast<int>(args.size()), args.data()};
        const tile_status status = tile_launch(bench.record, kernel, grid, all);
        return status ? status : tile_context_sync(bench.ctx);
    }

    /* Comparing. */

    void compare(const std::string &what, tile_array *got, const Bytes &want, bool bits) {
        const Values v = Bench::read(got);
        const size_t size = tile_dtype_size(v.dtype);
        if (v.bytes.size() != want.size()) throw Failed(what + ".npy has another size");
        for (size_t i = 0; i < v.real.size(); i++) {
            const double x = v.real[i], y = tile_dtype_get(v.dtype, &want[i * size]);
            const bool equal =
                bits ? !std::memcmp(&v.bytes[i * size], &want[i * size], size) : x == y;
            if (!equal && !(std::isnan(x) && std::isnan(y)))
                throw Failed(what + ": element " + std::to_string(i) + " is " + std::to_string(x) +
                             ", expected " + std::to_string(y));
        }
    }
    void compare_file(const std::string &file, tile_array *got, bool bits) {
        compare(file, got, elements_of(c.file(file + ".npy")), bits);
    }

    tile_status backward() {
        std::vector<tile_array *> seeded, seeds;
        if (c.has_file("grad_mem_before")) {
            seeded.push_back(array);
            seeds.push_back(filled(dtype, extents, "grad_mem_before"));
        }
        for (const Step &s : steps) {
            if (!s.out || !c.has_file("grad_tile_out" + s.at)) continue;
            seeded.push_back(s.out);
            seeds.push_back(filled(dtype, per_block(s, shape), "grad_tile_out" + s.at));
        }
        if (seeded.empty()) { /* no such files: seeded on the result */
            seeded.push_back(array);
            seeds.push_back(bench.zeros(dtype, extents));
        }
        return tape_backward_seeds(bench.record, static_cast<int>(seeded.size()), seeded.data(),
                                   seeds.data());
    }

    void check_gradients() {
        must(backward());
        compare_file("grad_mem_after", tile_array_grad(array), false);
        for (const Step &s : steps)
            if (s.in) compare_file("grad_tile_in" + s.at, tile_array_grad(s.in), false);
        /* Nothing between or around the array's elements. */
        double all = 0, own = 0;
        for (double x : Bench::gradient(memory).real) all += std::fabs(x);
        for (double x : Bench::read(tile_array_grad(array)).real) own += std::fabs(x);
        if (all != own) throw Failed("places outside of the array have a gradient");
    }

    void run_ok() {
        make_arrays();
        must(launch());
        compare_file("mem_after", memory, true);
        for (const Step &s : steps)
            if (s.out) compare_file("tile_out" + s.at, s.out, true);
        if (grad) check_gradients();
    }

    /* Refused, or an execution error; nothing may change. */
    void run_error() {
        make_arrays();
        if (!launch()) throw Failed("no error");
        compare_file("mem_after", memory, true);
        compare_file("mem_before", memory, true);
        for (const Step &s : steps)
            if (s.out) compare("tile_out", s.out, Bytes(Bench::read(s.out).bytes.size()), true);
    }

    void run_grad_error() {
        make_arrays();
        must(launch());
        compare_file("mem_after", memory, true);
        if (!backward()) throw Failed("backward is not refused");
    }

    void run_count() {
        tile_array *counts = bench.zeros(TILE_I64, {static_cast<int64_t>(count.size())});
        array = bench.strided(bench.zeros(dtype, {c.integer("buffer")}), c.integer("offset"),
                              extents, strides);
        tile_kernel *kernel = bench.kernel("count", [&](tile_builder *b) {
            const tile_partition p = view(b);
            const tile_param out = tile_array_param(b, "out", TILE_I64, 1);
            for (int d = 0; d < p.shape.rank; d++)
                tile_store(out, tile_partition_count(p, d), TILE_AT(tile_int(b, d)));
        });
        must(tile_launch(nullptr, kernel, TILE_GRID(1), TILE_ARGS(array, counts)));
        const tile_shape host = tile_partition_counts(array, shape_of(shape));
        for (size_t d = 0; d < count.size(); d++)
            if (Bench::read(counts).real[d] != static_cast<double>(count[d]) ||
                host.extent[d] != count[d])
                throw Failed("count of dimension " + std::to_string(d));
    }

    /* The span is the array: what is loaded by it is what the array holds. */
    void run_span() {
        make_arrays();
        tile_array *out = bench.zeros(dtype, extents);
        tile_kernel *kernel = bench.kernel("span", [&](tile_builder *b) {
            const tile_param a = tile_partition_span(view(b));
            const tile_param to =
                tile_array_param(b, "out", dtype, static_cast<int>(extents.size()));
            tile_store(to, tile_load(a, shape_of(extents), TILE_AT_ZERO), TILE_AT_ZERO);
        });
        must(tile_launch(nullptr, kernel, TILE_GRID(1), TILE_ARGS(array, out)));
        compare("span", out, Bench::read(array).bytes, true);
        if (c.has_file("mem_after")) compare_file("mem_after", memory, true);
    }
};

} // namespace

void run_partition_case(const Case &c) {
    const std::string op = c.text("op"), expect = c.text("expect");
    for (const bool check : {false, true}) {
        Partition p(c, check);
        if (op == "count")
            p.run_count();
        else if (op == "span")
            p.run_span();
        else if (expect == "ok")
            p.run_ok();
        else if (expect == "error")
            p.run_error();
        else if (expect == "grad_error")
            p.run_grad_error();
        else
            throw Failed("expect=" + expect);
    }
}

} // namespace golden
