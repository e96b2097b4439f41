/* op_problem.cc: test problems of elementwise ops and of cooperative ops with samples. */
#include "tests/op_problem.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "tests/op_run.h"
#include "tests/op_window.h"

namespace op_test {

/* Random numbers. */

uint64_t base_seed() {
    const char *text = std::getenv("TILE_TEST_SEED");
    return text ? std::strtoull(text, nullptr, 10) : 20240501;
}

Random random_for(const std::string &name) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * UINT64_C(1099511628211);
    return Random(hash ^ base_seed());
}

double uniform(Random *random, double low, double high) {
    const double u = static_cast<double>((*random)() >> 11) * 0x1p-53;
    return static_cast<double>(static_cast<float>(low + (high - low) * u));
}

/* Each from a cell of its own, the middle half of it. */
Reals distinct(Random *random, size_t n, double low, double high) {
    std::vector<size_t> cell(n);
    std::iota(cell.begin(), cell.end(), size_t{0});
    for (size_t i = n; i > 1; i--) std::swap(cell[i - 1], cell[(*random)() % i]);
    Reals value;
    const double width = (high - low) / static_cast<double>(n);
    for (size_t c : cell) {
        const double from = low + width * (static_cast<double>(c) + 0.25);
        value.push_back(uniform(random, from, from + width / 2));
    }
    return value;
}

/* Building. */

namespace {

/* A float op's result, or what a comparison gives, as what is stored. */
tile to_dtype(tile_builder *b, tile t, tile_dtype dtype) {
    if (!tile_is_good(t) || tile_dtype_of(t) == dtype) return t;
    return emit_op(b, tile_op_find("cast"), {t}, dtype);
}

} // namespace

tile emit_op(tile_builder *b, const tile_op *op, const std::vector<tile> &in, tile_dtype want) {
    tile_emission e = {};
    e.op = op;
    e.n_in = static_cast<int>(in.size());
    for (size_t k = 0; k < in.size(); k++) e.in[k] = in[k];
    e.has_dtype = true;
    e.dtype = want;
    return tile_emit(b, &e);
}

tile_status try_build(const std::function<void(tile_builder *)> &build, std::string *message) {
    tile_builder *b = tile_kernel_begin(context_of(1), "attempt");
    tile_kernel *kernel = nullptr;
    build(b);
    const tile_status status = tile_kernel_end(b, &kernel);
    if (message) *message = status ? tile_last_error() : "";
    if (!status) tile_kernel_destroy(kernel);
    return status;
}

std::vector<tile_dtype> operand_types(const tile_op *op) {
    const size_t n = static_cast<size_t>(op->n_in);
    std::vector<std::vector<tile_dtype>> attempts(4, std::vector<tile_dtype>(n, TILE_F64));
    attempts[1][0] = TILE_BOOL;
    attempts[2].assign(n, TILE_I64);
    attempts[3].assign(n, TILE_BOOL);
    for (const std::vector<tile_dtype> &types : attempts) {
        const auto build = [&](tile_builder *b) {
            std::vector<tile> in;
            for (tile_dtype type : types) in.push_back(tile_constant(b, type, TILE_SCALAR, 1));
            emit_op(b, op, in, TILE_F64);
        };
        if (!try_build(build, nullptr)) return types;
    }
    return {};
}

/* Elementwise. */

namespace {

struct Layout {
    const char *name;
    tile_shape array, block;
    tile_grid grid;
};

/* Operand k of an elementwise op. */
Field operand(const tile_op *op, int k, tile_dtype type, tile_shape shape) {
    Field f;
    f.name = std::string(1, static_cast<char>('a' + k));
    f.dtype = tile_is_float(type) ? kReal : type;
    f.shape = shape;
    f.grad = op->grad[k];
    return f;
}

/* Values within the op's domain, off the kink, and not near one another, where min switches. */
void draw_operands(Problem *p, Random *random) {
    enum { PERIOD = 4099 };
    const tile_op *op = p->op;
    for (size_t k = 0; k < static_cast<size_t>(op->n_in); k++) {
        Field &f = p->field[k];
        const double margin = (op->high[k] - op->low[k]) / 64;
        const bool large = f.count() > PERIOD && p->field[0].count() == f.count();
        for (size_t i = 0; i < f.count(); i++) {
            if (large && i >= PERIOD) { /* large fields repeat themselves */
                if (f.dtype == TILE_I64)
                    f.integer.push_back(f.integer[i - PERIOD]);
                else
                    f.value.push_back(f.value[i - PERIOD]);
                continue;
            }
            if (f.dtype == TILE_I64) {
                f.integer.push_back(std::lrint(uniform(random, op->low[k], op->high[k])));
                continue;
            }
            double x = 0;
            for (bool near = true; near;) {
                x = uniform(random, op->low[k] + margin, op->high[k] - margin);
                near = k == 0 && std::fabs(x - op->kink) < 0.05;
                for (size_t j = 0; j < k; j++)
                    near = near || (p->field[j].real() && p->field[j].count() == f.count() &&
                                    std::fabs(x - p->field[j].value[i]) < 0.02);
            }
            f.value.push_back(f.dtype == TILE_BOOL ? x > (op->low[k] + op->high[k]) / 2 : x);
        }
    }
}

/* y = op(a, b, ..) on windows of a block; operands of another shape than y are loaded whole. */
Problem elementwise(const tile_op *op, const Layout &l, const std::vector<tile_shape> &shapes) {
    Problem p;
    p.op = op;
    p.name = std::string(op->name) + "/" + l.name;
    p.grid = l.grid;
    const std::vector<tile_dtype> types = operand_types(op);
    for (int k = 0; k < op->n_in; k++)
        p.field.push_back(
            operand(op, k, types[static_cast<size_t>(k)], shapes[static_cast<size_t>(k)]));
    Random random = random_for(p.name);
    draw_operands(&p, &random);
    Field y;
    y.name = "y";
    y.role = Role::kResult;
    y.shape = l.array;
    p.field.push_back(y);

    const std::vector<Field> fields = p.field;
    p.build = [=](tile_builder *b, tile_dtype real, const std::vector<tile_param> &param) {
        tile_offset at = {};
        at.rank = l.array.rank;
        for (int d = 0; d < at.rank; d++)
            at.at[d] =
                d < TILE_GRID_RANK ? tile_block_start(b, d, l.block.extent[d]) : tile_int(b, 0);
        std::vector<tile> in;
        for (size_t k = 0; k + 1 < fields.size(); k++) {
            const bool whole = !tile_shape_equal(fields[k].shape, l.array);
            in.push_back(
                tile_load(param[k], whole ? fields[k].shape : l.block, whole ? TILE_AT_ZERO : at));
        }
        tile_store(param.back(), to_dtype(b, emit_op(b, op, in, real), real), at);
    };
    return p;
}

std::vector<Problem> elementwise_problems(const tile_op *op) {
    static const Layout layouts[] = {
        {"rank0", TILE_SCALAR, TILE_SCALAR, TILE_GRID(1)},
        {"one", TILE_SHAPE(1), TILE_SHAPE(1), TILE_GRID(1)},
        {"blocks", TILE_SHAPE(13), TILE_SHAPE(5), TILE_GRID(3)},
        {"rank2", TILE_SHAPE(7, 5), TILE_SHAPE(3, 5), TILE_GRID(3)},
        {"rank3", TILE_SHAPE(2, 3, 5), TILE_SHAPE(1, 2, 5), TILE_GRID(2, 2)},
        {"rank4", TILE_SHAPE(2, 3, 2, 3), TILE_SHAPE(2, 3, 1, 3), TILE_GRID(1, 1, 2)},
    };
    std::vector<Problem> all;
    for (const Layout &l : layouts)
        all.push_back(
            elementwise(op, l, std::vector<tile_shape>(static_cast<size_t>(op->n_in), l.array)));
    if (op->n_in < 2) return all;
    static const Layout wide = {"broadcast", TILE_SHAPE(3, 4), TILE_SHAPE(3, 4), TILE_GRID(1)};
    const std::vector<tile_shape> shapes = {TILE_SHAPE(3, 1), TILE_SHAPE(4), TILE_SHAPE(3, 4),
                                            TILE_SCALAR};
    all.push_back(elementwise(op, wide, {shapes.begin(), shapes.begin() + op->n_in}));
    return all;
}

/* Every combination of these. */
const double kSpecial[] = {0.0, -0.0, 1, -1, 0.5, 3, 1e-40, 1e30, INFINITY, -INFINITY, NAN};

Problem elementwise_special(const tile_op *op) {
    int64_t count = 1;
    const int64_t n = sizeof kSpecial / sizeof *kSpecial;
    for (int k = 0; k < op->n_in; k++) count *= n;
    const Layout l = {"special", TILE_SHAPE(count), TILE_SHAPE(count), TILE_GRID(1)};
    Problem p = elementwise(op, l, std::vector<tile_shape>(static_cast<size_t>(op->n_in), l.array));
    int64_t stride = 1;
    for (int k = 0; k < op->n_in; k++, stride *= n) {
        Field &f = p.field[static_cast<size_t>(k)];
        if (!f.real()) continue;
        for (int64_t i = 0; i < count; i++)
            f.value[static_cast<size_t>(i)] =
                static_cast<double>(static_cast<float>(kSpecial[i / stride % n]));
    }
    return p;
}

} // namespace

/* Samples. */

namespace {

tile_shape stacked(int64_t blocks, tile_shape shape) {
    tile_shape all = {};
    all.rank = shape.rank + 1;
    all.extent[0] = blocks;
    for (int d = 0; d < shape.rank; d++) all.extent[d + 1] = shape.extent[d];
    return all;
}

tile_offset block_of(tile_builder *b, int rank) {
    tile_offset at = {};
    at.rank = rank;
    for (int d = 0; d < rank; d++) at.at[d] = d ? tile_int(b, 0) : tile_block_index(b, 0);
    return at;
}

/* Result type and shape of a sample. */
bool infer(const tile_sample &sample, tile_dtype real, tile_shape *shape, tile_dtype *dtype) {
    return !try_build(
        [&](tile_builder *b) {
            tile in[TILE_OP_IN] = {};
            for (int k = 0; k < sample.n_in; k++)
                in[k] = tile_constant(b, sample.integer[k] ? TILE_I64 : real, sample.shape[k], 1);
            const tile y = sample.build(b, &sample, in);
            if (!tile_is_good(y)) return;
            *shape = tile_shape_of_tile(y);
            *dtype = tile_dtype_of(y);
        },
        nullptr);
}

/* The sample on tiles that fill arrays, or on the parts of stacked arrays, a block each. */
Problem sampled(const tile_op *op, const tile_sample &sample, int variant, int64_t blocks) {
    Problem p;
    p.op = op;
    p.name = std::string(op->name) + "/" + std::to_string(variant) +
             (blocks ? "x" + std::to_string(blocks) : "");
    p.grid = TILE_GRID(blocks ? blocks : 1);
    Random random = random_for(p.name);
    size_t largest = 1;
    for (int k = 0; k < sample.n_in; k++) {
        Field f;
        f.name = std::string(1, static_cast<char>('a' + k));
        f.dtype = sample.integer[k] ? TILE_I64 : kReal;
        f.shape = blocks ? stacked(blocks, sample.shape[k]) : sample.shape[k];
        f.grad = op->grad[k];
        const size_t n = static_cast<size_t>(tile_shape_count(sample.shape[k]));
        largest = std::max(largest, n);
        for (int64_t part = 0; part < std::max<int64_t>(blocks, 1); part++) {
            for (double x : distinct(&random, n, sample.low[k], sample.high[k])) {
                if (sample.integer[k])
                    f.integer.push_back(std::lrint(x));
                else
                    f.value.push_back(x);
            }
        }
        p.field.push_back(f);
    }
    p.terms = kTerms + static_cast<double>(largest);
    Field y;
    tile_shape shape = {};
    tile_dtype dtype = TILE_F64;
    infer(sample, TILE_F64, &shape, &dtype);
    y.name = "y";
    y.role = Role::kResult;
    y.dtype = tile_is_float(dtype) ? kReal : TILE_F64;
    y.shape = blocks ? stacked(blocks, shape) : shape;
    p.field.push_back(y);

    p.build = [=](tile_builder *b, tile_dtype real, const std::vector<tile_param> &param) {
        tile in[TILE_OP_IN] = {};
        for (int k = 0; k < sample.n_in; k++) {
            const tile_shape part = sample.shape[k];
            in[k] = tile_load(param[static_cast<size_t>(k)], blocks ? stacked(1, part) : part,
                              blocks ? block_of(b, part.rank + 1) : TILE_AT_ZERO);
            if (blocks) in[k] = tile_reshape(in[k], part);
        }
        tile t = to_dtype(b, sample.build(b, &sample, in), y.dtype == kReal ? real : y.dtype);
        if (blocks) t = tile_reshape(t, stacked(1, shape));
        tile_store(param.back(), t, blocks ? block_of(b, shape.rank + 1) : TILE_AT_ZERO);
    };
    return p;
}

std::vector<Problem> sampled_problems(const tile_op *op) {
    std::vector<Problem> all;
    tile_sample sample = {};
    for (int v = 0; op->sample(v, &sample); v++) {
        all.push_back(sampled(op, sample, v, 0));
        if (v == 0) all.push_back(sampled(op, sample, v, 3));
        sample = tile_sample{};
    }
    return all;
}

std::vector<Problem> large_samples(const tile_op *op) {
    enum { ELEMENTS = 200000, BLOCKS_MAX = 4000 };
    std::vector<Problem> all;
    tile_sample sample = {};
    for (int v = 0; op->sample(v, &sample); v++) {
        int64_t elements = 1;
        bool fits = true;
        for (int k = 0; k < sample.n_in; k++) {
            elements = std::max(elements, tile_shape_count(sample.shape[k]));
            fits = fits && sample.shape[k].rank < TILE_RANK_MAX;
        }
        const int64_t blocks = std::min<int64_t>(BLOCKS_MAX, 1 + ELEMENTS / elements);
        if (fits && v % 3 == 1) all.push_back(sampled(op, sample, v, blocks));
        sample = tile_sample{};
    }
    return all;
}

/* Some elements of some operands are not finite, or are zero. */
std::vector<Problem> special_samples(const tile_op *op) {
    std::vector<Problem> all = sampled_problems(op);
    for (Problem &p : all) {
        p.name += "/special";
        Random random = random_for(p.name);
        for (Field &f : p.field)
            for (double &x : f.value)
                if (random() % 3 == 0)
                    x = kSpecial[random() % (sizeof kSpecial / sizeof *kSpecial)];
    }
    return all;
}

} // namespace

/* All. */

std::string missing_inputs(const tile_op *op) {
    if (!op->math || !*op->math) return "no math";
    if (!op->infer) return "no shape rule";
    if (op->access) return "";
    if (op->kind == TILE_OP_COOPERATIVE) {
        tile_sample sample = {};
        return op->sample && op->sample(0, &sample) ? "" : "no sample of inputs";
    }
    for (int k = 0; k < op->n_in; k++)
        if (!(op->low[k] < op->high[k])) return "no domain of operand " + std::to_string(k);
    return operand_types(op).empty() ? "no dtypes that it accepts" : "";
}

std::vector<Problem> problems_of(const tile_op *op) {
    if (op->access) return window_problems(op);
    return op->kind == TILE_OP_COOPERATIVE ? sampled_problems(op) : elementwise_problems(op);
}

std::vector<Problem> large_problems_of(const tile_op *op) {
    if (op->access) return large_window_problems(op);
    if (op->kind == TILE_OP_COOPERATIVE) return large_samples(op);
    const Layout l = {"large", TILE_SHAPE(509, 1021), TILE_SHAPE(16, 64), TILE_GRID(32, 16)};
    return {elementwise(op, l, std::vector<tile_shape>(static_cast<size_t>(op->n_in), l.array))};
}

std::vector<Problem> special_problems_of(const tile_op *op) {
    if (op->access) return special_window_problems(op);
    if (op->kind == TILE_OP_COOPERATIVE) return special_samples(op);
    return {elementwise_special(op)};
}

} // namespace op_test
