/* random_program.cc: decodes a program, runs it on a tape and without, compares, shrinks. */
#include "tests/random_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>

namespace random_program {

namespace {

constexpr int kArrays = 5, kLength = 12, kRows = 4, kColumns = 5;

void must(tile_status status) {
    if (status)
        throw std::runtime_error(std::string(tile_status_text(status)) + ": " + tile_last_error());
}

std::string printed(const tile_kernel *kernel) {
    char *text = nullptr;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    must(tile_kernel_print(kernel, out));
    fclose(out);
    const std::string copy(text, bytes);
    free(text);
    return copy;
}

struct Launch {
    size_t kernel;
    tile_grid grid;
    std::vector<size_t> view; /* of each slot */
    std::vector<double> fill; /* in place of a launch: a value for a view, by the host */
};

struct View {
    size_t array;
    tile_array *handle;
};

class Program {
  public:
    Program(int threads, Choices *choose, tile_executor executor = TILE_EXECUTOR_AUTO)
        : choose_(choose) {
        tile_context_options options = {};
        options.threads = threads;
        options.executor = executor;
        must(tile_context_create(&options, &ctx_));
        must(tape_create(ctx_, nullptr, &record_));
    }
    ~Program() {
        tape_destroy(record_);
        for (const View &v : view_) tile_array_destroy(v.handle);
        for (tile_array *a : array_) tile_array_destroy(a);
        tile_array_destroy(index_);
        for (const Kernel &k : kernel_) tile_kernel_destroy(k.kernel);
        tile_context_destroy(ctx_);
    }
    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;

    void decode() {
        make_arrays();
        const int kernels = 1 + choose_->pick(3), launches = 1 + choose_->pick(5);
        for (int k = 0; k < kernels; k++)
            kernel_.push_back(make_kernel(ctx_, "k" + std::to_string(k), choose_));
        for (int k = 0; k < launches; k++) make_launch();
    }

    std::string text() const {
        std::string all;
        for (const Kernel &k : kernel_) all += printed(k.kernel);
        for (const Launch &l : launch_) {
            if (!l.fill.empty()) {
                all += "fill " + view_text(l.view[0]) + " with " + std::to_string(l.fill[0]) + "\n";
                continue;
            }
            all += "launch k" + std::to_string(l.kernel) + " grid";
            for (int64_t n : l.grid.blocks) all += " " + std::to_string(n);
            for (size_t v : l.view) all += " " + view_text(v);
            all += "\n";
        }
        return all;
    }
    std::vector<std::string> ops() const {
        std::vector<std::string> all;
        for (const Kernel &k : kernel_) all.insert(all.end(), k.ops.begin(), k.ops.end());
        return all;
    }

    /* What all arrays hold in the end, one after the other. */
    Reals forward(const Reals &start, tape *record) {
        size_t at = 0;
        for (tile_array *a : array_) {
            const size_t n = static_cast<size_t>(tile_array_count(a));
            must(tile_array_write(a, &start[at], n * sizeof(double)));
            at += n;
        }
        for (const Launch &l : launch_) run_launch(l, record);
        must(tile_context_sync(ctx_));
        Reals end(start.size());
        at = 0;
        for (tile_array *a : array_) {
            const size_t n = static_cast<size_t>(tile_array_count(a));
            must(tile_array_read(a, &end[at], n * sizeof(double)));
            at += n;
        }
        return end;
    }

    Reals start() {
        size_t n = 0;
        for (tile_array *a : array_) n += static_cast<size_t>(tile_array_count(a));
        Reals values(n);
        std::mt19937_64 random(n + array_.size());
        for (double &x : values) x = 2 * static_cast<double>(random() >> 11) * 0x1p-53 - 1;
        return values;
    }

    /* The gradient of weight . end; false: none is reached. */
    bool backward(const Reals &start, const Reals &weight, Reals *gradient) {
        must(tape_reset(record_));
        (void)forward(start, record_);
        std::vector<tile_array *> seed, seeded;
        size_t at = 0;
        for (size_t k = 0; k < array_.size(); k++) {
            tile_array *s = nullptr;
            must(tile_array_create(ctx_, TILE_F64, tile_array_shape(array_[k]), &s));
            const size_t n = static_cast<size_t>(tile_array_count(s));
            must(tile_array_write(s, &weight[at], n * sizeof(double)));
            at += n;
            seed.push_back(s);
            seeded.push_back(array_[k]);
        }
        must(tape_zero(record_));
        for (tile_array *a : array_)
            if (tile_array_grad(a)) must(tile_array_fill(tile_array_grad(a), 0));
        const tile_status status =
            tape_backward_seeds(record_, static_cast<int>(seed.size()), seeded.data(), seed.data());
        for (tile_array *s : seed) tile_array_destroy(s);
        if (status == TILE_E_STATE) return false;
        must(status);
        gradient->assign(start.size(), 0);
        at = 0;
        for (tile_array *a : array_) {
            const size_t n = static_cast<size_t>(tile_array_count(a));
            if (tile_array *g = tile_array_grad(a))
                must(tile_array_read(g, &(*gradient)[at], n * sizeof(double)));
            at += n;
        }
        must(tape_reset(record_));
        return true;
    }

    /* 1 where an array has a gradient and counts in the loss. */
    Reals differentiable() const {
        Reals mask;
        for (tile_array *a : array_)
            mask.insert(mask.end(), static_cast<size_t>(tile_array_count(a)),
                        tile_array_grad(a) ? 1 : 0);
        return mask;
    }
    Reals weights(const Reals &start) const {
        Reals w(start.size());
        std::mt19937_64 random(17);
        for (double &x : w) x = 2 * static_cast<double>(random() >> 11) * 0x1p-53 - 1;
        /* The last array takes previous values: they feed no loss. */
        const size_t n = static_cast<size_t>(tile_array_count(array_.back()));
        std::fill(w.end() - static_cast<int64_t>(n), w.end(), 0.0);
        return w;
    }
    tape *record() {
        return record_;
    }

  private:
    static tile_shape shape_of_array(int rank) {
        return rank == 1 ? TILE_SHAPE(kLength) : TILE_SHAPE(kRows, kColumns);
    }

    void make_arrays() {
        for (int k = 0; k < kArrays; k++) {
            tile_array *a = nullptr;
            must(tile_array_create(ctx_, TILE_F64, shape_of_array(k < 3 ? 1 : k < 4 ? 2 : 1), &a));
            array_.push_back(a);
            if (k == 0 || (k < kArrays - 1 && choose_->pick(3))) must(tile_array_request_grad(a));
        }
        std::vector<int32_t> index(kLength);
        for (int32_t &i : index) i = choose_->pick(kLength + 3) - 1;
        must(tile_array_create(ctx_, TILE_I32, TILE_SHAPE(kLength), &index_));
        must(tile_array_write(index_, index.data(), index.size() * sizeof index[0]));
    }

    size_t make_view(size_t array) {
        const tile_shape shape = tile_array_shape(array_[array]);
        int64_t from[2] = {0, 0}, step[2] = {1, 1};
        tile_shape part = shape;
        for (int d = 0; d < shape.rank && choose_->chance(3); d++) {
            from[d] = choose_->pick(3);
            step[d] = 1 + choose_->pick(2);
            part.extent[d] = (shape.extent[d] - from[d] + step[d] - 1) / step[d];
        }
        tile_array *view = nullptr;
        must(tile_array_slice(array_[array], from, part, step, &view));
        view_.push_back({array, view});
        return view_.size() - 1;
    }

    size_t array_for(const Slot &slot) {
        if (slot.result) return kArrays - 1;
        if (slot.rank == 2) return 3;
        return static_cast<size_t>(choose_->pick(3));
    }

    void make_launch() {
        Launch l = {};
        l.kernel = static_cast<size_t>(choose_->pick(static_cast<int>(kernel_.size())));
        /* What the host writes before the tape's first use is where the gradient starts. */
        const size_t filled = static_cast<size_t>(choose_->pick(3));
        bool used = false;
        for (const View &v : view_) used |= v.array == filled;
        if (choose_->chance(9) && used) {
            l.view.push_back(make_view(filled));
            l.fill.push_back(choose_->number());
        } else {
            l.grid = TILE_GRID(1 + choose_->pick(3), 1 + choose_->pick(2));
            const bool alias = choose_->chance(4); /* one array for all parameters that it fits */
            for (const Slot &slot : kernel_[l.kernel].slot) {
                const bool first = l.view.empty() || slot.result;
                const size_t again = first ? 0 : view_[l.view[0]].array;
                const bool fits = !first && (again == 3) == (slot.rank == 2);
                l.view.push_back(alias && fits ? l.view[0] : make_view(array_for(slot)));
            }
        }
        launch_.push_back(l);
    }

    void run_launch(const Launch &l, tape *record) {
        if (!l.fill.empty()) {
            must(tile_array_fill(view_[l.view[0]].handle, l.fill[0]));
            return;
        }
        std::vector<tile_arg> arg;
        for (size_t v : l.view) arg.push_back(tile_arg_array(view_[v].handle));
        arg.push_back(tile_arg_array(index_));
        must(tile_launch(record, kernel_[l.kernel].kernel, l.grid,
                         tile_args{static_cast<int>(arg.size()), arg.data()}));
    }

    std::string view_text(size_t v) const {
        const tile_shape shape = tile_array_shape(view_[v].handle);
        std::string all = "a" + std::to_string(view_[v].array) + "[";
        for (int d = 0; d < shape.rank; d++)
            all += (d ? "," : "") + std::to_string(shape.extent[d]);
        return all + "]";
    }

    Choices *choose_;
    tile_context *ctx_ = nullptr;
    tape *record_ = nullptr;
    std::vector<tile_array *> array_;
    std::vector<View> view_;
    tile_array *index_ = nullptr;
    std::vector<Kernel> kernel_;
    std::vector<Launch> launch_;
};

double dot(const Reals &a, const Reals &b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
    return sum;
}

/* Differences along a direction at three steps, and what is left at step 0. */
struct Slope {
    double value, error; /* error: of the step, and of rounding */
};

Slope slope(Program *p, const Reals &start, const Reals &weight, const Reals &direction, double h) {
    double d[3], magnitude = 0;
    for (int k = 0; k < 3; k++) {
        double f[2];
        for (int side = 0; side < 2; side++) {
            Reals x = start;
            for (size_t i = 0; i < x.size(); i++) x[i] += (side ? h : -h) * direction[i];
            const Reals end = p->forward(x, nullptr);
            f[side] = dot(weight, end);
            for (size_t i = 0; i < end.size(); i++)
                magnitude = std::max(magnitude, std::fabs(weight[i] * end[i]));
        }
        d[k] = (f[1] - f[0]) / (2 * h);
        h /= 2;
    }
    const double one = (4 * d[1] - d[0]) / 3, two = (4 * d[2] - d[1]) / 3;
    return {two, std::fabs(one - two) + 1e-15 * magnitude / h};
}

/* Compares along one direction; kUnsure where the differences do not settle. */
Verdict compare(Program *p, const Reals &start, const Reals &weight, const Reals &gradient,
                const Reals &direction, std::string *message) {
    const double ours = dot(gradient, direction);
    for (double h : {3e-4, 3e-5}) {
        const Slope s = slope(p, start, weight, direction, h);
        const double scale = 1 + std::fabs(s.value) + std::fabs(ours);
        if (!(s.error <= 1e-6 * scale)) continue;
        if (std::fabs(s.value - ours) <= 2e-6 * scale) return Verdict::kRight;
        /* A kink on one side shows when the step is another. */
        const Slope t = slope(p, start, weight, direction, h / 37);
        if (!(std::fabs(t.value - s.value) <= 1e-5 * scale)) continue;
        *message = "gradient along a direction is " + std::to_string(ours) + ", differences give " +
                   std::to_string(s.value);
        return Verdict::kWrong;
    }
    return Verdict::kUnsure;
}

std::vector<Reals> directions_of(const Reals &mask) {
    std::mt19937_64 random(5);
    Reals all = mask;
    for (double &x : all) x *= 2 * static_cast<double>(random() >> 11) * 0x1p-53 - 1;
    std::vector<Reals> directions = {all};
    std::vector<size_t> places;
    for (size_t i = 0; i < mask.size(); i++)
        if (mask[i] != 0) places.push_back(i);
    for (int k = 0; k < 3; k++) {
        Reals one(mask.size());
        one[places[random() % places.size()]] = 1;
        directions.push_back(one);
    }
    return directions;
}

/* The same bits with several threads. */
void check_threads(const Row &row, const Reals &start, const Reals &end) {
    Choices again(row);
    Program many(3, &again);
    many.decode();
    const Reals other = many.forward(start, nullptr);
    if (std::memcmp(other.data(), end.data(), end.size() * sizeof(double)) != 0)
        throw std::runtime_error("three threads give other values than one");
}

void judge(Program *p, const Row &row, Outcome *o) {
    const Reals start = p->start(), weight = p->weights(start);
    const Reals end = p->forward(start, nullptr);
    check_threads(row, start, end);
    Reals gradient, again;
    if (!p->backward(start, weight, &gradient)) return;
    for (double g : gradient)
        if (!(std::fabs(g) < 1e6)) {
            o->verdict = Verdict::kUnsure; /* differences would be noise */
            return;
        }
    if (!p->backward(start, weight, &again) || again != gradient)
        throw std::runtime_error("a second recording has another gradient");
    o->verdict = Verdict::kRight;
    for (const Reals &d : directions_of(p->differentiable())) {
        const Verdict v = compare(p, start, weight, gradient, d, &o->message);
        if (v == Verdict::kWrong) o->verdict = v;
        if (v == Verdict::kWrong) return;
        if (v == Verdict::kUnsure) o->verdict = v;
    }
}

} // namespace

int Choices::pick(int n) {
    uint32_t value = 0;
    if (replays_) {
        if (next_ < row_.size()) value = row_[next_++];
    } else {
        value = static_cast<uint32_t>(random_() % static_cast<uint64_t>(n));
        row_.push_back(value);
    }
    return static_cast<int>(value % static_cast<uint32_t>(n));
}

Outcome run(Choices choose) {
    Outcome o;
    try {
        Program p(1, &choose);
        p.decode();
        o.row = choose.row();
        o.text = p.text();
        o.ops = p.ops();
        judge(&p, o.row, &o);
    } catch (const std::exception &e) {
        o.row = choose.row();
        o.verdict = Verdict::kWrong;
        o.message = e.what();
    }
    return o;
}

Reals results(Choices choose, int threads, tile_executor executor) {
    Program p(threads, &choose, executor);
    p.decode();
    const Reals start = p.start();
    Reals all = p.forward(start, nullptr), gradient;
    if (p.backward(start, p.weights(start), &gradient))
        all.insert(all.end(), gradient.begin(), gradient.end());
    return all;
}

Row shrink(Row row, const std::function<bool(const Row &)> &fails, int tries) {
    bool changed = true;
    const auto attempt = [&](const Row &candidate) {
        if (tries-- <= 0 || !fails(candidate)) return false;
        row = candidate;
        changed = true;
        return true;
    };
    while (changed && tries > 0) {
        changed = false;
        for (size_t length = row.size(); length > 0 && tries > 0; length /= 2)
            for (size_t from = 0; from + length <= row.size();) {
                Row shorter = row;
                shorter.erase(shorter.begin() + static_cast<int64_t>(from),
                              shorter.begin() + static_cast<int64_t>(from + length));
                if (!attempt(shorter)) from += length;
            }
        for (size_t i = 0; i < row.size(); i++)
            for (uint32_t lower : {uint32_t{0}, row[i] / 2, row[i] - 1}) {
                if (row[i] == 0 || lower >= row[i]) continue;
                Row simpler = row;
                simpler[i] = lower;
                if (attempt(simpler)) break;
            }
    }
    return row;
}

Tally run_all(uint64_t first, int count, FILE *out) {
    Tally tally;
    std::set<std::string> ops;
    for (int k = 0; k < count; k++) {
        const uint64_t seed = first + static_cast<uint64_t>(k);
        const Outcome o = run(Choices(seed));
        tally.right += o.verdict == Verdict::kRight;
        tally.unsure += o.verdict == Verdict::kUnsure;
        tally.nothing += o.verdict == Verdict::kNothing;
        if (o.verdict == Verdict::kRight) ops.insert(o.ops.begin(), o.ops.end());
        if (o.verdict != Verdict::kWrong) continue;
        tally.wrong++;
        const Row small = shrink(
            o.row, [](const Row &row) { return run(Choices(row)).verdict == Verdict::kWrong; },
            1500);
        const Outcome last = run(Choices(small));
        std::fprintf(out, "failed program %llu: %s\n  shrunk: %s\n%s",
                     static_cast<unsigned long long>(seed), o.message.c_str(), last.message.c_str(),
                     last.text.c_str());
        std::fflush(out);
    }
    tally.ops.assign(ops.begin(), ops.end());
    return tally;
}

} // namespace random_program
