/* product.cc: the cases, and the kernels that are run on them: one for each op, type, rank, axis
 * and padding; offsets and indices are run-time data. */
#include "tests/product.h"

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <stdexcept>

namespace product {

namespace {

enum Form { kWindow, kIndexed, kWhere, kWhereIndexed, kPartition, kMasked };

struct Op {
    const char *name;
    Form form;
    Action action;
};

constexpr Op kOps[] = {
    {"load", kWindow, Action::kLoad},
    {"load_indexed", kIndexed, Action::kLoad},
    {"store", kWindow, Action::kStore},
    {"store_indexed", kIndexed, Action::kStore},
    {"store_where", kWhere, Action::kStore},
    {"store_where_indexed", kWhereIndexed, Action::kStore},
    {"atomic_add", kWindow, Action::kAdd},
    {"atomic_add_indexed", kIndexed, Action::kAdd},
    {"atomic_sub", kWindow, Action::kSub},
    {"atomic_sub_indexed", kIndexed, Action::kSub},
    {"atomic_min", kWindow, Action::kMin},
    {"atomic_min_indexed", kIndexed, Action::kMin},
    {"atomic_max", kWindow, Action::kMax},
    {"atomic_max_indexed", kIndexed, Action::kMax},
    {"atomic_and", kWindow, Action::kAnd},
    {"atomic_and_indexed", kIndexed, Action::kAnd},
    {"atomic_or", kWindow, Action::kOr},
    {"atomic_or_indexed", kIndexed, Action::kOr},
    {"atomic_xor", kWindow, Action::kXor},
    {"atomic_xor_indexed", kIndexed, Action::kXor},
    {"partition load", kPartition, Action::kLoad},
    {"partition load_masked", kMasked, Action::kLoad},
    {"partition store", kPartition, Action::kStore},
    {"partition store_masked", kMasked, Action::kStore},
    {"partition add", kPartition, Action::kAdd},
    {"partition add_masked", kMasked, Action::kAdd},
    {"partition sub_masked", kMasked, Action::kSub},
    {"partition min_masked", kMasked, Action::kMin},
    {"partition max_masked", kMasked, Action::kMax},
    {"partition and_masked", kMasked, Action::kAnd},
    {"partition or_masked", kMasked, Action::kOr},
    {"partition xor_masked", kMasked, Action::kXor},
};
constexpr int kOpCount = sizeof kOps / sizeof *kOps;

constexpr const char *kOffsets[] = {"inside", "straddling low", "straddling high", "outside",
                                    "negative"};
constexpr const char *kIndices[] = {"unique", "duplicate", "-1", "past the end",
                                    "INT32_MIN and INT32_MAX"};
constexpr const char *kPads[] = {"zero", "negative zero", "NaN", "+inf", "-inf", "constant"};

bool is_partition(const Op &op) {
    return op.form == kPartition || op.form == kMasked;
}
bool is_indexed(const Op &op) {
    return op.form == kIndexed || op.form == kWhereIndexed;
}
bool has_mask(const Op &op) {
    return op.form == kWhere || op.form == kWhereIndexed;
}
bool is_atomic(const Op &op) {
    return op.action != Action::kLoad && op.action != Action::kStore;
}
bool is_padded(const Op &op) {
    return op.action == Action::kLoad && op.form != kPartition;
}
bool is_real(tile_dtype dtype) {
    return std::string(tile_dtype_name(dtype)).find("float") != std::string::npos;
}

/* Whether the op is there for the type, by the documentation. */
bool exists(const Op &op, tile_dtype dtype) {
    const std::string name = tile_dtype_name(dtype);
    const bool wide = name == "int32" || name == "int64" || name == "uint32" || name == "uint64";
    switch (op.action) {
    case Action::kLoad:
    case Action::kStore: return true;
    case Action::kAdd:
    case Action::kSub:
    case Action::kMin:
    case Action::kMax: return wide || is_real(dtype);
    default: return wide;
    }
}

double pad_of(int pad) {
    const double pads[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 3};
    return pads[pad];
}
/* Zero and the constant suit every type. */
bool holds_pad(tile_dtype dtype, int pad) {
    if (std::string(tile_dtype_name(dtype)) == "bool") return pad == 0;
    return is_real(dtype) || pad == 0 || pad == 5;
}

/* One kernel and its arrays' kinds. */
struct Key {
    int op, dtype, rank, axis, pad;
    bool operator<(const Key &k) const {
        return std::tie(op, dtype, rank, axis, pad) <
               std::tie(k.op, k.dtype, k.rank, k.axis, k.pad);
    }
};

void must(tile_status status) {
    if (status) throw std::runtime_error(tile_last_error());
}

tile partition_op(const Op &op, tile_partition p, tile t, tile_offset at, double pad) {
    const tile_memory_order order = TILE_ORDER_RELAXED;
    const tile_thread_scope scope = TILE_SCOPE_DEVICE;
    const bool masked = op.form == kMasked;
    switch (op.action) {
    case Action::kLoad:
        return masked ? tile_partition_load_masked(p, at, pad) : tile_partition_load(p, at);
    case Action::kStore:
        if (masked)
            tile_partition_store_masked(p, t, at);
        else
            tile_partition_store(p, t, at);
        return t;
    case Action::kAdd:
        return masked ? tile_partition_atomic_add_masked(p, t, at, order, scope)
                      : tile_partition_atomic_add(p, t, at, order, scope);
    case Action::kSub: return tile_partition_atomic_sub_masked(p, t, at, order, scope);
    case Action::kMin: return tile_partition_atomic_min_masked(p, t, at, order, scope);
    case Action::kMax: return tile_partition_atomic_max_masked(p, t, at, order, scope);
    case Action::kAnd: return tile_partition_atomic_and_masked(p, t, at, order, scope);
    case Action::kOr: return tile_partition_atomic_or_masked(p, t, at, order, scope);
    case Action::kXor: return tile_partition_atomic_xor_masked(p, t, at, order, scope);
    }
    return t;
}

tile window_op(const Op &op, tile_param a, tile t, tile i, tile mask, tile_shape shape,
               tile_offset at, int axis, double pad) {
    const bool indexed = is_indexed(op);
    switch (op.action) {
    case Action::kLoad:
        return indexed ? tile_load_indexed_padded(a, i, shape, at, axis, pad)
                       : tile_load_padded(a, shape, at, pad);
    case Action::kStore:
        if (op.form == kWindow) tile_store(a, t, at);
        if (op.form == kIndexed) tile_store_indexed(a, i, t, at, axis);
        if (op.form == kWhere) tile_store_where(a, mask, t, at);
        if (op.form == kWhereIndexed) tile_store_where_indexed(a, i, mask, t, at, axis);
        return t;
    case Action::kAdd:
        return indexed ? tile_atomic_add_indexed(a, i, t, at, axis) : tile_atomic_add(a, t, at);
    case Action::kSub:
        return indexed ? tile_atomic_sub_indexed(a, i, t, at, axis) : tile_atomic_sub(a, t, at);
    case Action::kMin:
        return indexed ? tile_atomic_min_indexed(a, i, t, at, axis) : tile_atomic_min(a, t, at);
    case Action::kMax:
        return indexed ? tile_atomic_max_indexed(a, i, t, at, axis) : tile_atomic_max(a, t, at);
    case Action::kAnd:
        return indexed ? tile_atomic_and_indexed(a, i, t, at, axis) : tile_atomic_and(a, t, at);
    case Action::kOr:
        return indexed ? tile_atomic_or_indexed(a, i, t, at, axis) : tile_atomic_or(a, t, at);
    case Action::kXor:
        return indexed ? tile_atomic_xor_indexed(a, i, t, at, axis) : tile_atomic_xor(a, t, at);
    }
    return t;
}

constexpr int64_t kTile[] = {3, 2, 2, 3}, kArray[] = {7, 5, 5, 7};

/* Parameters: a, t (read, or written by loads), previous, index, mask, then the offsets. */
void build(const Op &op, const Key &k, tile_builder *b) {
    const tile_dtype dtype = static_cast<tile_dtype>(k.dtype);
    const tile_param a = tile_array_param(b, "a", dtype, k.rank);
    const tile_param t = tile_array_param(b, "t", dtype, k.rank);
    const tile_param before = tile_array_param(b, "previous", dtype, k.rank);
    const tile_param index = tile_array_param(b, "index", TILE_I32, 1);
    const tile_param mask = tile_array_param(b, "mask", TILE_BOOL, k.rank);
    tile_shape shape = {};
    tile_offset at = {};
    shape.rank = at.rank = k.rank;
    for (int d = 0; d < k.rank; d++) {
        shape.extent[d] = kTile[d];
        at.at[d] = tile_int_param(b, ("o" + std::to_string(d)).c_str());
    }
    const double pad = pad_of(k.pad);
    const tile u = tile_load(t, shape, TILE_AT_ZERO);
    tile i = u, chosen = u;
    if (is_indexed(op)) i = tile_load(index, TILE_SHAPE(kTile[k.axis]), TILE_AT_ZERO);
    if (has_mask(op)) chosen = tile_load(mask, shape, TILE_AT_ZERO);
    const tile got = is_partition(op) ? partition_op(op, tile_partition_view(a, shape), u, at, pad)
                                      : window_op(op, a, u, i, chosen, shape, at, k.axis, pad);
    if (op.action == Action::kLoad) tile_store(t, got, TILE_AT_ZERO);
    if (is_atomic(op)) tile_store(before, got, TILE_AT_ZERO);
}

/* Runs cases on one context. */
class Runner {
  public:
    explicit Runner(int threads) {
        tile_context_options options = {};
        options.threads = threads;
        must(tile_context_create(&options, &ctx_));
    }
    ~Runner() {
        for (const auto &k : kernel_) tile_kernel_destroy(k.second);
        tile_context_destroy(ctx_);
    }
    Runner(const Runner &) = delete;
    Runner &operator=(const Runner &) = delete;

    /* false: the op is not there for the type, and says so. */
    bool run(const Case &c) {
        const Op &op = kOps[c[kOp]];
        const tile_dtype dtype = static_cast<tile_dtype>(c[kDtype]);
        const int rank = c[kRank] + 1;
        random_.seed(static_cast<unsigned>(c[kOp] * 7 + c[kDtype] * 31 + c[kOffset] * 5 + rank));
        const bool refused = !exists(op, dtype) || (is_padded(op) && !holds_pad(dtype, c[kPad]));
        for (int axis = 0; axis < (is_indexed(op) ? rank : 1); axis++) {
            const Key key = {c[kOp], c[kDtype], rank, axis, is_padded(op) ? c[kPad] : 0};
            if (refused) {
                expect_refused(op, key);
            } else {
                for (int d = 0; d < rank; d++) run_at(op, key, c, d);
            }
        }
        return !refused;
    }

  private:
    void expect_refused(const Op &op, const Key &key) {
        tile_kernel *kernel = nullptr;
        tile_builder *b = tile_kernel_begin(ctx_, "refused");
        build(op, key, b);
        const tile_status status = tile_kernel_end(b, &kernel);
        if (!status) {
            tile_kernel_destroy(kernel);
            throw std::runtime_error("is not refused");
        }
        if (status != TILE_E_DTYPE && status != TILE_E_ARGUMENT)
            throw std::runtime_error(std::string("is refused with: ") + tile_last_error());
    }

    tile_kernel *kernel_for(const Op &op, const Key &key) {
        tile_kernel *&kernel = kernel_[key];
        if (kernel) return kernel;
        tile_builder *b = tile_kernel_begin(ctx_, "product");
        build(op, key, b);
        must(tile_kernel_end(b, &kernel));
        return kernel;
    }

    /* Room in front, a gap after each row, and behind. */
    Memory memory(tile_dtype dtype, const int64_t *extent, int rank) {
        Memory m;
        m.dtype = dtype;
        m.start = 8;
        int64_t next = 1;
        m.extent.assign(extent, extent + rank);
        m.stride.resize(static_cast<size_t>(rank));
        for (int d = rank - 1; d >= 0; d--) {
            m.stride[static_cast<size_t>(d)] = next;
            next = next * extent[d] + (d == rank - 1 ? 2 : 1);
        }
        m.bytes.resize(static_cast<size_t>(next + 16) * tile_dtype_size(dtype));
        for (size_t i = 0; i < m.bytes.size() / tile_dtype_size(dtype); i++)
            put(dtype, value(dtype), m.at(static_cast<int64_t>(i)));
        return m;
    }
    /* Few bits, so that sums are exact in every type. */
    double value(tile_dtype dtype) {
        const std::string name = tile_dtype_name(dtype);
        if (name == "bool") return static_cast<double>(random_() % 2);
        if (is_real(dtype)) return (static_cast<double>(random_() % 33) - 16) / 4;
        return static_cast<double>(random_() % 251) - (name[0] == 'i' ? 125 : 0);
    }

    int64_t offset_for(const Op &op, int kind, int64_t tile, int64_t array) {
        if (is_partition(op)) { /* in partitions */
            const int64_t count = (array + tile - 1) / tile;
            const int64_t at[] = {0, INT64_MIN / 2, count - 1, count, -1};
            return at[kind];
        }
        const int64_t at[] = {1, -1, array - 1, array, -tile};
        return at[kind];
    }
    void fill_index(const Op &op, const Case &c, int axis, Window *w) {
        const int64_t n = kTile[axis], array = kArray[axis], offset = w->offset[axis];
        if (!is_indexed(op)) return;
        w->axis = axis;
        for (int64_t k = 0; k < n; k++) {
            int64_t i = (k * 2 + 1) % array;
            if (c[kIndex] == 1) i = 1;
            if (c[kIndex] == 2 && k == n - 1) i = -1;
            if (c[kIndex] == 3 && k == n - 1) i = array + 1 - offset;
            if (c[kIndex] == 4 && k >= n - 2) i = k == n - 1 ? INT32_MAX : INT32_MIN;
            w->index.push_back(static_cast<int32_t>(i));
        }
    }
    /* Whether the library must report an execution error. */
    bool is_error(const Op &op, const Window &w, int rank) {
        if (!is_partition(op)) return false;
        for (int d = 0; d < rank; d++) {
            const int64_t o = w.offset[static_cast<size_t>(d)];
            if (o < 0 || o >= (kArray[d] + kTile[d] - 1) / kTile[d]) return true;
            if (op.form == kPartition && (o + 1) * kTile[d] > kArray[d]) return true;
        }
        return false;
    }

    /* All of the memory, and the array with gaps in it. */
    struct Placed {
        tile_array *all = nullptr, *inside = nullptr;
    };
    Placed place(const Memory &m) {
        tile_shape shape = {};
        shape.rank = static_cast<int>(m.extent.size());
        for (size_t d = 0; d < m.extent.size(); d++) shape.extent[d] = m.extent[d];
        Placed p;
        const size_t elements = m.bytes.size() / tile_dtype_size(m.dtype);
        must(tile_array_create(ctx_, m.dtype, TILE_SHAPE(static_cast<int64_t>(elements)), &p.all));
        must(tile_array_write(p.all, m.bytes.data(), m.bytes.size()));
        must(tile_array_strided(p.all, m.start, shape, m.stride.data(), &p.inside));
        return p;
    }
    void take_back(const Placed &p, Memory *m) {
        must(tile_array_read(p.all, m->bytes.data(), m->bytes.size()));
        tile_array_destroy(p.inside);
        tile_array_destroy(p.all);
    }

    /* The offset's kind is that of dimension d; the others are inside. */
    void run_at(const Op &op, const Key &key, const Case &c, int d) {
        const tile_dtype dtype = static_cast<tile_dtype>(key.dtype);
        Window w;
        for (int e = 0; e < key.rank; e++) {
            w.extent.push_back(kTile[e]);
            w.offset.push_back(offset_for(op, e == d ? c[kOffset] : 0, kTile[e], kArray[e]));
        }
        fill_index(op, c, key.axis, &w);
        Memory a = memory(dtype, kArray, key.rank), t = memory(dtype, kTile, key.rank);
        Memory before = memory(dtype, kTile, key.rank), mask = memory(TILE_BOOL, kTile, key.rank);
        const int64_t length = kTile[key.axis];
        Memory index = memory(TILE_I32, &length, 1);
        for (size_t k = 0; k < w.index.size(); k++)
            std::memcpy(index.at(index.start + static_cast<int64_t>(k)), &w.index[k], 4);
        Memory want_a = a, want_t = t, want_before = before;
        const bool error = is_error(op, w, key.rank);
        if (!error) expect(op, key, w, mask, &want_a, &want_t, &want_before);
        launch(op, key, w, {&a, &t, &before, &index, &mask}, error);
        if (!same(dtype, a.bytes, want_a.bytes)) throw std::runtime_error("the array is another");
        if (!same(dtype, t.bytes, want_t.bytes)) throw std::runtime_error("the tile is another");
        if (!same(dtype, before.bytes, want_before.bytes))
            throw std::runtime_error("previous values are others");
    }

    /* Elements of a whole array in row-major order, and back. */
    static std::vector<unsigned char> dense(Memory *m, bool write,
                                            const std::vector<unsigned char> &from) {
        Window w;
        w.extent = m->extent;
        w.offset.assign(m->extent.size(), 0);
        size_t n = tile_dtype_size(m->dtype);
        for (int64_t e : m->extent) n *= static_cast<size_t>(e);
        std::vector<unsigned char> values = write ? from : std::vector<unsigned char>(n);
        apply(write ? Action::kStore : Action::kLoad, w, {}, 0, m, &values, nullptr);
        return values;
    }
    static void expect(const Op &op, const Key &key, Window w, Memory mask, Memory *a, Memory *t,
                       Memory *before) {
        for (size_t d = 0; is_partition(op) && d < w.offset.size(); d++) w.offset[d] *= kTile[d];
        const std::vector<unsigned char> chosen =
            has_mask(op) ? dense(&mask, false, {}) : std::vector<unsigned char>();
        std::vector<unsigned char> tile = dense(t, false, {}), previous(tile.size());
        apply(op.action, w, chosen, pad_of(key.pad), a, &tile, &previous);
        if (op.action == Action::kLoad) dense(t, true, tile);
        if (is_atomic(op)) dense(before, true, previous);
    }

    void launch(const Op &op, const Key &key, const Window &w, std::vector<Memory *> memory,
                bool error) {
        std::vector<tile_arg> arg;
        std::vector<Placed> placed;
        for (const Memory *m : memory) {
            placed.push_back(place(*m));
            arg.push_back(tile_arg_array(placed.back().inside));
        }
        for (int64_t o : w.offset) arg.push_back(tile_arg_int(o));
        const tile_status status = tile_launch(nullptr, kernel_for(op, key), TILE_GRID(1),
                                               tile_args{static_cast<int>(arg.size()), arg.data()});
        const tile_status end = tile_context_sync(ctx_);
        const std::string message = tile_last_error();
        for (size_t k = 0; k < memory.size(); k++) take_back(placed[k], memory[k]);
        if (error ? status == TILE_E_EXECUTION || end == TILE_E_EXECUTION : !status && !end) return;
        throw std::runtime_error(error ? "no execution error comes out" : message);
    }

    tile_context *ctx_ = nullptr;
    std::map<Key, tile_kernel *> kernel_;
    std::mt19937 random_;
};

/* Choices that an op does not look at are the first one. */
Case plain(Case c) {
    const Op &op = kOps[c[kOp]];
    if (!is_indexed(op)) c[kIndex] = 0;
    if (!is_padded(op)) c[kPad] = 0;
    return c;
}

template <typename F> void each(int factor, Case *c, const F &f) {
    if (factor == kFactors) {
        f(*c);
        return;
    }
    for (int k = 0; k < sizes()[static_cast<size_t>(factor)]; k++) {
        (*c)[static_cast<size_t>(factor)] = k;
        each(factor + 1, c, f);
    }
}

} // namespace

Case sizes() {
    return {kOpCount, TILE_DTYPES, 4, 5, 5, 6};
}

std::string text(const Case &c) {
    return std::string(kOps[c[kOp]].name) + " " +
           tile_dtype_name(static_cast<tile_dtype>(c[kDtype])) + " rank " +
           std::to_string(c[kRank] + 1) + ", offset " + kOffsets[c[kOffset]] + ", index " +
           kIndices[c[kIndex]] + ", pad " + kPads[c[kPad]];
}

std::vector<Case> all() {
    std::set<Case> cases;
    Case c = {};
    each(0, &c, [&](const Case &one) { cases.insert(plain(one)); });
    return {cases.begin(), cases.end()};
}

/* Greedy: of some random cases that have an open pair, the one with the most. */
std::vector<Case> covering() {
    const Case n = sizes();
    std::vector<Case> cases;
    std::set<std::array<int, 4>> open;
    for (int f = 0; f < kFactors; f++)
        for (int g = f + 1; g < kFactors; g++)
            for (int x = 0; x < n[static_cast<size_t>(f)]; x++)
                for (int y = 0; y < n[static_cast<size_t>(g)]; y++) open.insert({f, x, g, y});
    std::mt19937 random(1);
    const auto close = [&](const Case &c, bool count_only) {
        int closed = 0;
        for (int f = 0; f < kFactors; f++)
            for (int g = f + 1; g < kFactors; g++) {
                const std::array<int, 4> pair = {f, c[static_cast<size_t>(f)], g,
                                                 c[static_cast<size_t>(g)]};
                closed += static_cast<int>(count_only ? open.count(pair) : open.erase(pair));
            }
        return closed;
    };
    while (!open.empty()) {
        Case best = {};
        int most = -1;
        for (int attempt = 0; attempt < 30; attempt++) {
            Case c;
            for (size_t f = 0; f < kFactors; f++)
                c[f] = static_cast<int>(random() % static_cast<unsigned>(n[f]));
            const std::array<int, 4> first = *open.begin();
            c[static_cast<size_t>(first[0])] = first[1];
            c[static_cast<size_t>(first[2])] = first[3];
            const int closed = close(c, true);
            if (closed <= most) continue;
            most = closed;
            best = c;
        }
        close(best, false);
        cases.push_back(plain(best));
    }
    return cases;
}

Tally run(const std::vector<Case> &cases, int threads, FILE *out) {
    Tally tally;
    Runner runner(threads);
    for (const Case &c : cases) {
        try {
            const bool there = runner.run(c);
            tally.passed += there;
            tally.none += !there;
        } catch (const std::exception &e) {
            tally.failed++;
            std::fprintf(out, "failed %s: %s\n", text(c).c_str(), e.what());
        }
    }
    return tally;
}

} // namespace product
