/* op_run.cc: a problem's kernel and arrays on a context, launched forward and swept backward. */
#include "tests/op_run.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "core/dtype.h"
#include "core/move.h"

namespace op_test {

namespace {

enum { GUARD = 64, FILL = 0xA5 };

/* About normal, of deviation 1. */
double normal(Random *random) {
    double sum = 0;
    for (int k = 0; k < 4; k++) sum += uniform(random, -1, 1);
    return static_cast<double>(static_cast<float>(sum * 0.866));
}

/* Large fields repeat themselves. */
void draw(Reals *value, size_t n, Random *random) {
    enum { PERIOD = 4099 };
    for (size_t i = 0; i < n; i++)
        value->push_back(i < PERIOD ? normal(random) : (*value)[i - PERIOD]);
}

bool is_written(const Field &f) {
    return f.role != Role::kInput;
}

} // namespace

tile_dtype dtype_in(const Field &f, tile_dtype real) {
    return f.real() ? real : f.dtype;
}

bool has_gradient(const Field &f) {
    if (!f.real() && f.dtype != TILE_F64) return false;
    return is_written(f) || f.grad != TILE_GRAD_ABSENT;
}

Upstream upstream_of(const Problem &p, Seeds seeds) {
    Upstream up;
    Random random = random_for(p.name + "/upstream");
    for (const Field &f : p.field) {
        Reals seed, start;
        if (is_written(f)) draw(&seed, f.count(), &random);
        if (has_gradient(f)) draw(&start, f.count(), &random);
        for (double &x : seed) {
            if (seeds == Seeds::kZero) x = 0;
            if (seeds == Seeds::kPositive) x = 0.5 + std::fabs(x);
        }
        up.seed.push_back(seed);
        up.start.push_back(start);
    }
    return up;
}

namespace {

/* Destroyed at the end of the program, so that what they leak is seen. */
struct Contexts {
    std::map<std::pair<int, tile_executor>, tile_context *> made;
    ~Contexts() {
        for (const auto &[key, ctx] : made) tile_context_destroy(ctx);
    }
};

} // namespace

tile_context *context_of(int threads, tile_executor executor) {
    static Contexts contexts;
    tile_context *&ctx = contexts.made[{threads, executor}];
    tile_context_options options = {};
    options.threads = threads;
    options.executor = executor;
    if (!ctx && tile_context_create(&options, &ctx)) std::abort();
    return ctx;
}

/* Set-up. */

bool Run::note(tile_status status) {
    if (!status || status_) return !status_;
    status_ = status;
    error_ = tile_last_error();
    return false;
}

Run::Run(const Problem &p, tile_dtype real, Place place_of, int threads, tile_executor executor)
    : p_(p), real_(real), place_(place_of), ctx_(context_of(threads, executor)) {
    tile_builder *b = tile_kernel_begin(ctx_, p.name.c_str());
    std::vector<tile_param> param;
    for (const Field &f : p.field)
        param.push_back(tile_array_param(b, f.name.c_str(), dtype_in(f, real), f.shape.rank));
    p.build(b, real, param);
    if (!note(tile_kernel_end(b, &kernel_))) return;
    memory_.resize(p.field.size());
    array_.resize(p.field.size());
    for (size_t k = 0; k < p.field.size(); k++) {
        place(k);
        if (status_) return;
        reset(k);
    }
}

Run::~Run() {
    for (tile_array *a : array_) tile_array_destroy(a);
    for (Memory &m : memory_) tile_array_destroy(m.there);
    tile_kernel_destroy(kernel_);
}

/* Strides of a place; returns how many elements they span. */
static int64_t lay_out(Place place, const tile_shape &shape, int64_t *stride) {
    int64_t span = place == Place::kDense ? 1 : 2;
    for (int k = 0; k < shape.rank; k++) {
        const int d = place == Place::kReversed ? k : shape.rank - 1 - k;
        stride[d] = span;
        span *= shape.extent[d];
        if (place != Place::kDense) span += 3;
    }
    return span;
}

void Run::place(size_t k) {
    const Field &f = p_.field[k];
    const tile_dtype dtype = dtype_in(f, real_);
    if (place_ == Place::kOwned) {
        note(tile_array_create(ctx_, dtype, f.shape, &array_[k]));
        return;
    }
    Memory &m = memory_[k];
    const size_t size = tile_dtype_size(dtype);
    int64_t stride[TILE_RANK_MAX] = {};
    const int64_t span = lay_out(place_, f.shape, stride);
    m.bytes.assign(static_cast<size_t>(span) * size + 3 * GUARD, FILL);
    const bool remote = tile_is_remote(ctx_);
    const size_t address = remote ? 0 : reinterpret_cast<size_t>(m.bytes.data());
    m.first = (address + GUARD) / GUARD * GUARD - address;
    int64_t c[TILE_RANK_MAX] = {};
    for (size_t i = 0; i < f.count(); i++) {
        int64_t at = 0;
        for (int d = 0; d < f.shape.rank; d++) at += c[d] * stride[d];
        m.at.push_back(m.first + static_cast<size_t>(at) * size);
        for (int d = f.shape.rank - 1; d >= 0 && ++c[d] == f.shape.extent[d]; d--) c[d] = 0;
    }
    if (!remote) {
        note(tile_array_wrap(ctx_, dtype, f.shape, stride, &m.bytes[m.first], &array_[k]));
        return;
    }
    const tile_shape all = {1, {static_cast<int64_t>(m.bytes.size() / size)}};
    if (note(tile_array_create(ctx_, dtype, all, &m.there)))
        note(tile_array_strided(m.there, static_cast<int64_t>(m.first / size), f.shape, stride,
                                &array_[k]));
}

/* Memory of the test's that a device cannot see has a copy there. */
void Run::upload(size_t k) {
    Memory &m = memory_[k];
    if (m.there) note(tile_array_write(m.there, m.bytes.data(), m.bytes.size()));
}
void Run::download(size_t k) {
    Memory &m = memory_[k];
    if (m.there) note(tile_array_read(m.there, m.bytes.data(), m.bytes.size()));
}

/* The element of a field as the problem says, or NaN. */
static void put(const Field &f, tile_dtype dtype, size_t i, void *to) {
    if (!f.integer.empty())
        std::memcpy(to, &f.integer[i], sizeof f.integer[i]);
    else
        tile_dtype_put(dtype, f.value.empty() ? (tile_is_float(dtype) ? NAN : 77) : f.value[i], to);
}

void Run::reset(size_t k) {
    const Field &f = p_.field[k];
    const tile_dtype dtype = dtype_in(f, real_);
    const size_t size = tile_dtype_size(dtype);
    Memory &m = memory_[k];
    if (place_ == Place::kOwned) {
        std::vector<unsigned char> host(f.count() * size);
        for (size_t i = 0; i < f.count(); i++) put(f, dtype, i, &host[i * size]);
        note(tile_array_write(array_[k], host.data(), host.size()));
        return;
    }
    for (size_t i = 0; i < f.count(); i++) put(f, dtype, i, &m.bytes[m.at[i]]);
    m.before = m.bytes;
    upload(k);
}

/* Running. */

std::vector<tile_arg> Run::args() const {
    std::vector<tile_arg> all;
    for (tile_array *a : array_) all.push_back(tile_arg_array(a));
    return all;
}

Reals Run::read(tile_array *array) {
    const tile_dtype dtype = tile_array_dtype(array);
    const size_t n = static_cast<size_t>(tile_array_count(array)), size = tile_dtype_size(dtype);
    std::vector<unsigned char> host(n * size);
    Reals value;
    note(tile_array_read(array, host.data(), host.size()));
    for (size_t i = 0; i < n; i++) value.push_back(tile_dtype_get(dtype, &host[i * size]));
    return value;
}

void Run::write(tile_array *array, const Reals &value) {
    const tile_dtype dtype = tile_array_dtype(array);
    const size_t size = tile_dtype_size(dtype);
    std::vector<unsigned char> host(value.size() * size);
    for (size_t i = 0; i < value.size(); i++) tile_dtype_put(dtype, value[i], &host[i * size]);
    note(tile_array_write(array, host.data(), host.size()));
}

/* Nothing beside the elements of written arrays may differ. */
void Run::check_guards() {
    for (size_t k = 0; k < memory_.size() && place_ != Place::kOwned; k++) {
        Memory &m = memory_[k];
        download(k);
        if (is_written(p_.field[k])) {
            const size_t size = tile_dtype_size(dtype_in(p_.field[k], real_));
            for (size_t at : m.at) std::memcpy(&m.before[at], &m.bytes[at], size);
        }
        if (m.before == m.bytes || !error_.empty()) continue;
        error_ = "memory around " + p_.field[k].name + ", or an input, was changed";
    }
}

Outcome Run::finish() {
    Outcome result;
    for (tile_array *a : array_)
        if (a && !status_) result.value.push_back(read(a));
    if (!status_) check_guards();
    /* In the library's own memory inputs can only be compared by value. */
    for (size_t k = 0; k < result.value.size() && place_ == Place::kOwned; k++) {
        const Field &f = p_.field[k];
        if (is_written(f) || f.value.empty()) continue;
        for (size_t i = 0; i < f.count(); i++) {
            const double x = result.value[k][i], want = f.value[i];
            if (!tile_is_float(real_)) continue;
            if (x != want && !(std::isnan(x) && std::isnan(want)) && error_.empty())
                error_ = "input " + f.name + " was changed";
        }
    }
    result.status = status_;
    result.error = error_;
    return result;
}

Outcome Run::forward() {
    const std::vector<tile_arg> all = args();
    if (!status_)
        note(tile_launch(nullptr, kernel_, p_.grid, {static_cast<int>(all.size()), all.data()}));
    if (!status_) note(tile_context_sync(ctx_));
    return finish();
}

Outcome Run::backward(const Upstream &up, int64_t fail) {
    tape *record = nullptr;
    std::vector<tile_array *> written, seeds;
    for (size_t k = 0; k < array_.size() && !status_; k++) {
        const Field &f = p_.field[k];
        if (has_gradient(f) && note(tile_array_request_grad(array_[k])))
            write(tile_array_grad(array_[k]), up.start[k]);
        if (!is_written(f) || status_) continue;
        tile_array *seed = nullptr;
        if (note(tile_array_create(ctx_, tile_array_dtype(array_[k]), f.shape, &seed))) {
            write(seed, up.seed[k]);
            written.push_back(array_[k]);
            seeds.push_back(seed);
        }
    }
    const std::vector<tile_arg> all = args();
    tile_fail_allocation(fail);
    if (!status_) note(tape_create(ctx_, nullptr, &record));
    if (!status_)
        note(tile_launch(record, kernel_, p_.grid, {static_cast<int>(all.size()), all.data()}));
    const bool launched = !status_;
    if (!status_)
        note(tape_backward_seeds(record, static_cast<int>(written.size()), written.data(),
                                 seeds.data()));
    tile_fail_allocation(0);
    /* What arrays and gradients hold is of interest after an error too. */
    const tile_status status = status_;
    const std::string error = error_;
    status_ = TILE_OK;
    error_ = "";
    Outcome result = finish();
    result.launched = launched;
    for (size_t k = 0; k < array_.size(); k++) {
        tile_array *grad = array_[k] ? tile_array_grad(array_[k]) : nullptr;
        result.grad.push_back(grad ? read(grad) : Reals());
    }
    if (status) {
        result.status = status;
        result.error = error;
    }
    tape_destroy(record);
    for (tile_array *seed : seeds) tile_array_destroy(seed);
    return result;
}

/* For differences. */

void Run::set(size_t field, size_t i, double x) {
    Memory &m = memory_[field];
    tile_dtype_put(dtype_in(p_.field[field], real_), x, &m.bytes[m.at[i]]);
    std::memcpy(&m.before[m.at[i]], &m.bytes[m.at[i]], sizeof(double));
}

double Run::loss(const Upstream &up, double *magnitude) {
    const std::vector<tile_arg> all = args();
    for (size_t k = 0; k < array_.size(); k++)
        if (is_written(p_.field[k]))
            std::memcpy(memory_[k].bytes.data(), memory_[k].before.data(), memory_[k].bytes.size());
    for (size_t k = 0; k < array_.size(); k++) upload(k);
    note(tile_launch(nullptr, kernel_, p_.grid, {static_cast<int>(all.size()), all.data()}));
    note(tile_context_sync(ctx_));
    double sum = 0, size = 0;
    for (size_t k = 0; k < array_.size(); k++) {
        if (!is_written(p_.field[k]) || p_.field[k].role == Role::kConstant) continue;
        if (!p_.field[k].real()) continue;
        download(k);
        const Memory &m = memory_[k];
        for (size_t i = 0; i < up.seed[k].size(); i++) {
            double y;
            std::memcpy(&y, &m.bytes[m.at[i]], sizeof y);
            sum += up.seed[k][i] * y;
            size += std::fabs(up.seed[k][i] * y);
        }
    }
    if (magnitude) *magnitude = size;
    return sum;
}

} // namespace op_test
