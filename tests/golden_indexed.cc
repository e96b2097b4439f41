/* golden_indexed.cc: loads, stores and atomic additions, and small programs of them. */
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/golden_runner.h"

namespace golden {

namespace {

/* The struct of the cases. */
struct Sample {
    float x;
    int32_t id;
    float v[3];
    int16_t kind;
};

tile_dtype sample_dtype() {
    const tile_member members[] = {TILE_MEMBER(Sample, x, TILE_F32),
                                   TILE_MEMBER(Sample, id, TILE_I32),
                                   TILE_MEMBER_ARRAY(Sample, v, TILE_F32, 3),
                                   TILE_MEMBER(Sample, kind, TILE_I16)};
    tile_dtype dtype = TILE_DTYPES;
    must(tile_dtype_struct("sample", sizeof(Sample), 4, members, &dtype));
    return dtype;
}

/* The dtype of a name; Skipped when there is none. */
tile_dtype dtype_of(const std::string &name) {
    if (name == "struct") return sample_dtype();
    for (int k = 0; k < TILE_DTYPES; k++) {
        const tile_dtype dtype = static_cast<tile_dtype>(k);
        if (name == tile_dtype_name(dtype)) return dtype;
    }
    throw Skipped("dtype " + name);
}

tile_grid grid_of(const Ints &blocks) {
    if (blocks.size() != 3) throw Failed("a grid has three entries");
    return TILE_GRID(blocks[0], blocks[1], blocks[2]);
}

/* Block index times step plus shift along each axis; axis 3 has no block index. */
tile_offset window(tile_builder *b, const Ints &step, const Ints &shift) {
    tile_offset at = {};
    at.rank = static_cast<int>(step.size());
    for (int d = 0; d < at.rank; d++) {
        const size_t k = static_cast<size_t>(d);
        at.at[d] = d < TILE_GRID_RANK ? tile_block_start(b, d, step[k]) : tile_int(b, 0);
        at.shift[d] = shift[k];
    }
    return at;
}

/* The block's piece of the index array, which begins at block index times length. */
tile piece_of(tile_builder *b, tile_param indices, int axis, int64_t length) {
    const tile first = axis < TILE_GRID_RANK ? tile_block_start(b, axis, length) : tile_int(b, 0);
    return tile_load(indices, TILE_SHAPE(length), TILE_AT(first));
}

void launch(Bench *bench, tile_kernel *kernel, const Ints &grid,
            const std::vector<tile_array *> &arrays) {
    std::vector<tile_arg> args;
    for (tile_array *a : arrays) args.push_back(tile_arg_array(a));
    const tile_args all = {static_cast<int>(args.size()), args.data()};
    must(tile_launch(bench->record, kernel, grid_of(grid), all));
}

void copy_file(Bench *bench, const std::string &path, tile_array *to) {
    const Values values = Bench::read(bench->load_as(tile_array_dtype(to), path));
    must(tile_array_write(to, values.bytes.data(), values.bytes.size()));
}

/* What an array and its files consist of: all of it, or a member of its structs. */
struct Part {
    std::string suffix;
    const char *member;
    bool grad;
};

/* A case of one op: u = op(a), stored to out; or u = load of t, op of u on a, previous values to
 * prev. */
struct OneOp {
    const Case &c;
    std::string op = c.text("op");
    tile_dtype dtype = dtype_of(c.text("dtype"));
    bool reads = op == "load" || op == "load_indexed";
    bool adds = op == "atomic_add" || op == "atomic_add_indexed";
    bool grad = c.text("grad") == "yes";
    int axis = static_cast<int>(c.integer("axis"));
    int rank = static_cast<int>(c.integer("rank"));
    Ints tile_extents = c.integers("tile"), step = c.integers("step"), shift = c.integers("shift"),
         grid = c.integers("grid");
    Bench bench;
    tile_array *a = nullptr, *t = nullptr, *indices = nullptr, *out = nullptr, *prev = nullptr;

    explicit OneOp(const Case &line) : c(line) {}

    std::vector<Part> parts() const {
        if (c.text("dtype") != "struct") return {{"", nullptr, grad}};
        return {
            {"_x", "x", grad}, {"_id", "id", false}, {"_v", "v", grad}, {"_kind", "kind", false}};
    }
    tile_array *part_of(tile_array *array, const Part &part) {
        return part.member ? bench.field(array, part.member) : array;
    }
    std::string file(const std::string &name, const Part &part) const {
        return c.file(name + part.suffix + ".npy");
    }
    tile_array *load_part(const std::string &name, const Part &part, tile_array *like) {
        return bench.load_as(tile_array_dtype(part_of(like, part)), file(name, part));
    }
    tile_array *load(const std::string &name, const Ints &shape) {
        tile_array *array = bench.zeros(dtype, shape);
        for (const Part &part : parts()) copy_file(&bench, file(name, part), part_of(array, part));
        return array;
    }
    void start_gradient(tile_array *array, const std::string &name) {
        for (const Part &part : parts())
            if (array && part.grad && c.has_file(name + part.suffix))
                copy_file(&bench, file(name, part), tile_array_grad(part_of(array, part)));
    }
    void compare(const std::string &name, tile_array *array) {
        for (const Part &part : parts())
            compare_mixed(name + part.suffix, Bench::read(part_of(array, part)),
                          Bench::read(load_part(name, part, array)), c.real("tol"));
    }
    void compare_gradient(const std::string &name, tile_array *array) {
        for (const Part &part : parts())
            if (part.grad)
                compare_mixed(name + part.suffix, Bench::gradient(part_of(array, part)),
                              Bench::read(load_part(name, part, array)), c.real("tol"));
    }

    /* Shape of t, out and prev: a piece for each block. */
    Ints pieces() const {
        Ints shape = tile_extents;
        for (size_t d = 0; d < shape.size() && d < 3; d++) shape[d] *= grid[d];
        return shape;
    }

    /* Emits the op on a; what: the tile to write. */
    tile emit(tile_builder *b, tile_param to, tile_param from, tile what) const {
        const tile_offset at = window(b, step, shift);
        const tile_shape shape = shape_of(tile_extents);
        const double pad = c.real("pad");
        tile i = {b, -1};
        if (axis >= 0) i = piece_of(b, from, axis, tile_extents[static_cast<size_t>(axis)]);
        if (op == "load") return tile_load_padded(to, shape, at, pad);
        if (op == "load_indexed") return tile_load_indexed_padded(to, i, shape, at, axis, pad);
        if (op == "atomic_add") return tile_atomic_add(to, what, at);
        if (op == "atomic_add_indexed") return tile_atomic_add_indexed(to, i, what, at, axis);
        if (op == "store") tile_store(to, what, at);
        if (op == "store_indexed") tile_store_indexed(to, i, what, at, axis);
        return what;
    }

    void build(tile_builder *b) const {
        const Ints zero(step.size(), 0);
        const tile_offset piece = window(b, tile_extents, zero);
        const tile_param pa = tile_array_param(b, "a", dtype, rank);
        const tile_param pt = tile_array_param(b, reads ? "out" : "t", dtype, rank);
        tile_param pi = {b, -1}, pp = {b, -1};
        if (indices) pi = tile_array_param(b, "indices", TILE_I32, 1);
        if (prev) pp = tile_array_param(b, "prev", dtype, rank);
        if (reads) {
            tile_store(pt, emit(b, pa, pi, tile{b, -1}), piece);
        } else {
            const tile u = tile_load(pt, shape_of(tile_extents), piece);
            const tile p = emit(b, pa, pi, u);
            if (prev) tile_store(pp, p, piece);
        }
    }

    void check_gradients() {
        tile_array *result = reads ? out : a;
        std::vector<tile_array *> seeded, seeds;
        for (const Part &part : parts()) {
            if (!part.grad) continue;
            seeded.push_back(part_of(result, part));
            seeds.push_back(load_part("out_grad", part, result));
            if (!c.has_file("prev_grad" + part.suffix)) continue;
            seeded.push_back(part_of(prev, part));
            seeds.push_back(load_part("prev_grad", part, prev));
        }
        must(tape_backward_seeds(bench.record, static_cast<int>(seeded.size()), seeded.data(),
                                 seeds.data()));
        compare_gradient("a_grad", a);
        if (t) compare_gradient("t_grad", t);
        if (reads) check_zero("gradient of out", out);
        if (prev) check_zero("gradient of prev", prev);
    }

    /* A store consumed it. */
    void check_zero(const std::string &what, tile_array *array) {
        for (const Part &part : parts()) {
            if (!part.grad) continue;
            Values zero = Bench::gradient(part_of(array, part));
            for (unsigned char &byte : zero.bytes) byte = 0;
            for (double &x : zero.real) x = 0;
            compare_mixed(what, Bench::gradient(part_of(array, part)), zero, 0);
        }
    }

    void run() {
        a = load("a", c.integers("array"));
        if (!reads) t = load("t", pieces());
        if (axis >= 0) indices = bench.load(c.file("indices.npy"));
        if (reads) out = bench.zeros(dtype, pieces());
        if (adds) prev = bench.zeros(dtype, pieces());
        for (tile_array *array : {a, t, out, prev})
            if (array && grad) must(tile_array_request_grad(array));
        start_gradient(a, "a_grad0");
        start_gradient(t, "t_grad0");

        std::vector<tile_array *> arrays = {a, reads ? out : t};
        if (indices) arrays.push_back(indices);
        if (prev) arrays.push_back(prev);
        tile_kernel *kernel = bench.kernel(op, [&](tile_builder *b) { build(b); });
        launch(&bench, kernel, grid, arrays);
        compare("out", reads ? out : a);
        if (c.text("prev") == "exact") compare("prev", prev);
        if (grad) check_gradients();
    }
};

/* One line of a kernel: [RESULT =] OP NAME [NAME] KEY=VALUE... */
struct Line {
    std::string result, op;
    std::vector<std::string> operand;
    std::map<std::string, std::string> key;

    explicit Line(const std::string &text) {
        std::istringstream in(text);
        std::vector<std::string> words;
        for (std::string word; in >> word;) words.push_back(word);
        size_t k = 0;
        if (words.size() > 2 && words[1] == "=") {
            result = words[0];
            k = 2;
        }
        op = words.at(k);
        for (k++; k < words.size(); k++) {
            const size_t equals = words[k].find('=');
            if (equals == std::string::npos)
                operand.push_back(words[k]);
            else
                key[words[k].substr(0, equals)] = words[k].substr(equals + 1);
        }
    }
    Ints integers(const std::string &name) const {
        Ints all;
        std::istringstream list(key.at(name));
        for (std::string word; std::getline(list, word, ',');) all.push_back(std::stoll(word));
        return all;
    }
};

struct Program {
    const Case &c;
    tile_dtype dtype = dtype_of(c.text("dtype"));
    Bench bench;
    std::map<std::string, tile_array *> array;

    explicit Program(const Case &line) : c(line) {}

    /* While a kernel is built. */
    std::map<std::string, tile_param> param;
    std::vector<tile_array *> args;
    std::map<std::string, tile> value;

    tile_param param_of(tile_builder *b, const std::string &name) {
        const auto at = param.find(name);
        if (at != param.end()) return at->second;
        tile_array *a = array.at(name);
        args.push_back(a);
        return param[name] =
                   tile_array_param(b, name.c_str(), tile_array_dtype(a), tile_array_shape(a).rank);
    }

    /* Ops on an array. */
    tile access(tile_builder *b, const Line &line) {
        const tile_param a = param_of(b, line.operand.at(0));
        const tile_offset at = window(b, line.integers("step"), line.integers("shift"));
        const bool reads = line.key.count("tile") != 0;
        const tile what = reads ? tile{b, -1} : value.at(line.operand.at(1));
        const tile_shape shape = reads ? shape_of(line.integers("tile")) : tile_shape{};
        if (line.op == "load") return tile_load(a, shape, at);
        if (line.op == "atomic_add") return tile_atomic_add(a, what, at);
        if (line.op == "store") {
            tile_store(a, what, at);
            return what;
        }
        const int axis = std::stoi(line.key.at("axis"));
        const tile_param from = param_of(b, line.key.at("indices"));
        const int64_t length =
            reads ? shape.extent[axis] : extents.at(line.operand.at(1))[static_cast<size_t>(axis)];
        const tile i = piece_of(b, from, axis, length);
        if (line.op == "load_indexed") return tile_load_indexed(a, i, shape, at, axis);
        if (line.op == "atomic_add_indexed") return tile_atomic_add_indexed(a, i, what, at, axis);
        if (line.op != "store_indexed") throw Failed("program.txt: no op " + line.op);
        tile_store_indexed(a, i, what, at, axis);
        return what;
    }
    std::map<std::string, Ints> extents; /* of the values */

    void emit(tile_builder *b, const Line &line) {
        tile t;
        if (line.op == "mul" || line.op == "add") {
            const tile x = value.at(line.operand.at(0)), y = value.at(line.operand.at(1));
            t = line.op == "mul" ? tile_mul(x, y) : tile_add(x, y);
        } else if (line.op == "scale") {
            t = tile_mul(value.at(line.operand.at(0)),
                         tile_real(b, dtype, std::stod(line.key.at("by"))));
        } else {
            t = access(b, line);
        }
        if (line.result.empty()) return;
        value[line.result] = t;
        extents[line.result] = line.key.count("tile")            ? line.integers("tile")
                               : array.count(line.operand.at(0)) ? extents.at(line.operand.at(1))
                                                                 : extents.at(line.operand.at(0));
    }

    void run_launches() {
        std::ifstream in(c.file("program.txt"));
        std::string text, head;
        std::vector<std::vector<std::string>> launches;
        std::vector<Ints> grids;
        while (std::getline(in, text)) {
            if (text.rfind("launch ", 0) == 0) {
                launches.emplace_back();
                grids.push_back(Line(text).integers("grid"));
            } else if (!text.empty()) {
                launches.at(launches.size() - 1).push_back(text);
            }
        }
        if (static_cast<int64_t>(launches.size()) != c.integer("launches"))
            throw Failed("program.txt has another number of launches");
        for (size_t k = 0; k < launches.size(); k++) {
            param.clear();
            args.clear();
            value.clear();
            extents.clear();
            tile_kernel *kernel = bench.kernel("launch_" + std::to_string(k), [&](tile_builder *b) {
                for (const std::string &line : launches[k]) emit(b, Line(line));
            });
            launch(&bench, kernel, grids[k], args);
        }
    }

    static bool ends(const std::string &name, const std::string &tail) {
        return name.size() > tail.size() &&
               !name.compare(name.size() - tail.size(), tail.size(), tail);
    }

    void load_arrays() {
        for (const std::string &name : c.words("files")) {
            if (ends(name, "_after") || ends(name, "_grad_before")) continue;
            tile_array *a = array[name] = bench.load_as(dtype, c.file(name + ".npy"));
            if (tile_array_dtype(a) == dtype) must(tile_array_request_grad(a));
        }
    }

    /* Gradient before backward: the file, but zero for seeded arrays, whose file is the seed. */
    void start(const std::vector<std::string> &seeded) {
        for (const auto &[name, a] : array)
            if (c.has_file(name + "_grad_before") &&
                std::find(seeded.begin(), seeded.end(), name) == seeded.end())
                copy_file(&bench, c.file(name + "_grad_before.npy"), tile_array_grad(a));
    }

    void run() {
        load_arrays();
        const std::vector<std::string> seeded = c.words("seeds");
        start(seeded);
        run_launches();
        const double tol = c.real("tol");
        for (const auto &[name, a] : array)
            if (c.has_file(name + "_after"))
                compare_mixed(name + "_after", Bench::read(a),
                              Bench::read(bench.load_as(dtype, c.file(name + "_after.npy"))), tol);
        std::vector<tile_array *> arrays, seeds;
        for (const std::string &name : seeded) {
            arrays.push_back(array.at(name));
            seeds.push_back(bench.load_as(dtype, c.file(name + "_grad_before.npy")));
        }
        const int64_t backwards = c.integer("backwards");
        for (int64_t k = 0; k < backwards; k++) {
            must(tape_backward_seeds(bench.record, static_cast<int>(arrays.size()), arrays.data(),
                                     seeds.data()));
            /* Of a seeded array the file tells what one backward adds. */
            if (k == 0) compare_gradients(seeded, true, tol);
        }
        compare_gradients(seeded, false, tol);
    }

    void compare_gradients(const std::vector<std::string> &seeded, bool of_seeded, double tol) {
        for (const auto &[name, a] : array) {
            const bool is_seeded = std::find(seeded.begin(), seeded.end(), name) != seeded.end();
            if (is_seeded == of_seeded && c.has_file(name + "_grad_after"))
                compare_mixed(name + "_grad_after", Bench::gradient(a),
                              Bench::read(bench.load_as(dtype, c.file(name + "_grad_after.npy"))),
                              tol);
        }
    }
};

} // namespace

void run_indexed_case(const Case &c) {
    const std::string op = c.text("op");
    if (op == "stack")
        run_stack_case(c);
    else if (op == "program")
        Program(c).run();
    else
        OneOp(c).run();
}

} // namespace golden
