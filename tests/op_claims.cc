/* op_claims.cc: other dtypes, memory, thread counts, zeros, and what must be refused. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "core/dtype.h"
#include "tests/op_check.h"

namespace op_test {

namespace {

std::string at_text(const Problem &p, const std::string &what, size_t k, size_t i, double got,
                    double want) {
    char line[120];
    std::snprintf(line, sizeof line, " is %.9g, expected %.9g", got, want);
    return p.name + ": " + what + " " + p.field[k].name + "[" + std::to_string(i) + "]" + line;
}

std::string failure(const Problem &p, const Outcome &run) {
    return run.error.empty() ? "" : p.name + ": " + run.error;
}

double largest(const Reals &v) {
    double most = 0;
    for (double x : v) most = std::max(most, std::fabs(x));
    return most;
}

bool same_bits(const Reals &a, const Reals &b, size_t *where) {
    for (size_t i = 0; i < a.size(); i++) {
        if (!std::memcmp(&a[i], &b[i], sizeof a[i])) continue;
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        *where = i;
        return false;
    }
    return true;
}

std::string compare_bits(const Problem &p, const std::string &what, const Outcome &got,
                         const Outcome &want) {
    size_t i = 0;
    if (got.status != want.status)
        return p.name + ": " + what + " ends with another status: " + got.error;
    for (size_t k = 0; k < want.value.size(); k++)
        if (!same_bits(got.value[k], want.value[k], &i))
            return at_text(p, what + ":", k, i, got.value[k][i], want.value[k][i]);
    for (size_t k = 0; k < want.grad.size() && k < got.grad.size(); k++)
        if (!same_bits(got.grad[k], want.grad[k], &i))
            return at_text(p, what + ": gradient of", k, i, got.grad[k][i], want.grad[k][i]);
    return "";
}

/* Whether some gradient can come out of the problem; else the tape may refuse. */
bool has_any(const Problem &p) {
    for (const Field &f : p.field)
        if (f.real() &&
            (f.role == Role::kState || (f.role == Role::kInput && f.grad == TILE_GRAD_FULL)))
            return true;
    return false;
}

/* How a tape refuses backward where there is no gradient. */
bool is_refusal(tile_status status) {
    return status == TILE_E_STATE || status == TILE_E_NO_ADJOINT;
}

Outcome sweep(const Problem &p, tile_dtype real, Place place, int threads, const Upstream &up,
              tile_executor executor = TILE_EXECUTOR_AUTO) {
    Outcome run = Run(p, real, place, threads, executor).backward(up);
    if (is_refusal(run.status) && !has_any(p)) {
        run.status = TILE_OK;
        run.error = "";
    }
    return run;
}

} // namespace

/* Dtypes. */

namespace {

double largest_input(const Problem &p) {
    double most = 0;
    for (const Field &f : p.field)
        if (f.real()) most = std::max(most, largest(f.value));
    return most;
}

double largest_seed(const Upstream &up) {
    double most = 0;
    for (const Reals &seed : up.seed) most = std::max(most, largest(seed));
    return most;
}

} // namespace

/* Rounding is relative to the largest result, or, in sums, to the largest term. */
std::string check_float32(const Problem &p) {
    const double eps = std::numeric_limits<float>::epsilon();
    const double sums = p.terms > kTerms;
    const Upstream up = upstream_of(p);
    const Outcome wide = sweep(p, TILE_F64, Place::kOwned, 1, up);
    const Outcome narrow = sweep(p, TILE_F32, Place::kOwned, 1, up);
    if (!failure(p, wide).empty()) return failure(p, wide);
    if (!failure(p, narrow).empty()) return failure(p, narrow) + " (float32)";
    const double input = largest_input(p), seed = largest_seed(up);
    if (input == 0) return ""; /* the type chooses among random numbers, say */
    for (size_t k = 0; k < p.field.size(); k++) {
        const double limit = p.terms * eps * std::max(largest(wide.value[k]), sums * input);
        for (size_t i = 0; i < wide.value[k].size(); i++)
            if (!(std::fabs(narrow.value[k][i] - wide.value[k][i]) <= limit) &&
                p.field[k].integer.empty())
                return at_text(p, "float32:", k, i, narrow.value[k][i], wide.value[k][i]);
        double scale = sums * seed * std::max(1.0, input);
        for (size_t i = 0; i < wide.grad[k].size(); i++)
            scale = std::max(scale, std::fabs(wide.grad[k][i] - up.start[k][i]));
        for (size_t i = 0; i < wide.grad[k].size(); i++) {
            const double rounding = std::fabs(up.start[k][i]) + std::fabs(wide.grad[k][i]);
            if (!(std::fabs(narrow.grad[k][i] - wide.grad[k][i]) <=
                  eps * (p.terms * scale + 2 * rounding)))
                return at_text(p, "float32: gradient of", k, i, narrow.grad[k][i], wide.grad[k][i]);
        }
    }
    return "";
}

namespace {

bool is_integer(tile_dtype dtype) {
    return !tile_is_float(dtype);
}

/* The problem with small integers in place of reals. */
Problem with_integers(const Problem &p, tile_dtype dtype) {
    Problem q = p;
    const bool sign = tile_dtype_kind(dtype) == TILE_KIND_INT;
    const int64_t n = dtype == TILE_BOOL ? 2 : 5;
    Random random = random_for(p.name + "/integers");
    for (Field &f : q.field)
        for (double &x : f.value)
            if (f.real())
                x = static_cast<double>(static_cast<int64_t>(random() % n) - (sign ? 2 : 0));
    return q;
}

/* A number modulo 2^bits, as the dtype holds it; bool: whether it is not 0. */
double wrapped(tile_dtype dtype, double x) {
    if (dtype == TILE_BOOL) return x != 0;
    const double span = std::ldexp(1, 8 * static_cast<int>(tile_dtype_size(dtype)));
    const bool sign = tile_dtype_kind(dtype) == TILE_KIND_INT;
    x = std::fmod(x, span);
    if (x >= (sign ? span / 2 : span)) x -= span;
    return x < (sign ? -span / 2 : 0) ? x + span : x;
}

} // namespace

std::string check_integers(const Problem &p) {
    for (int k = 0; k < TILE_DTYPES; k++) {
        const tile_dtype dtype = static_cast<tile_dtype>(k);
        if (!is_integer(dtype)) continue;
        const Problem q = with_integers(p, dtype);
        Run narrow(q, dtype, Place::kDense, 1);
        if (!narrow.error().empty()) continue; /* check_dtypes says whether that is right */
        const Outcome got = narrow.forward();
        const Outcome want = Run(q, TILE_F64, Place::kDense, 1).forward();
        if (!failure(q, got).empty()) return failure(q, got);
        if (!failure(q, want).empty()) continue; /* no float64 kernel */
        for (size_t n = 0; n < q.field.size(); n++) {
            const bool own = q.field[n].real();
            if (largest(want.value[n]) > 0x1p53) continue;
            for (size_t i = 0; i < want.value[n].size(); i++) {
                const double w = own ? wrapped(dtype, want.value[n][i]) : want.value[n][i];
                if (q.field[n].integer.empty() && !(got.value[n][i] == w))
                    return at_text(q, std::string(tile_dtype_name(dtype)) + ":", n, i,
                                   got.value[n][i], w);
            }
        }
    }
    return "";
}

namespace {

/* Builds a problem in a dtype. */
tile_status build_in(const Problem &p, tile_dtype real, std::string *message) {
    return try_build(
        [&](tile_builder *b) {
            std::vector<tile_param> param;
            for (const Field &f : p.field)
                param.push_back(
                    tile_array_param(b, f.name.c_str(), dtype_in(f, real), f.shape.rank));
            p.build(b, real, param);
        },
        message);
}

std::string refused(const Problem &p, tile_dtype dtype, tile_status status,
                    const std::string &message) {
    const std::string what = p.name + ": " + tile_dtype_name(dtype) + ": ";
    if (status != TILE_E_DTYPE) return what + "expected TILE_E_DTYPE, got " + message;
    if (message.find(p.op->name) == std::string::npos)
        return what + "the message does not name the op: " + message;
    return "";
}

} // namespace

std::string check_dtypes(const tile_op *op) {
    Problem p = problems_of(op).front();
    std::string message;
    if (op->access && !op->run[TILE_F64]) /* its arrays are int64 */
        for (Field &f : p.field)
            if (f.name != "indices") f.dtype = kReal;
    for (int k = 0; k < TILE_DTYPES; k++) {
        const tile_dtype dtype = static_cast<tile_dtype>(k);
        const tile_status status = build_in(p, dtype, &message);
        bool supported = status == TILE_OK;
        const bool promoted = tile_is_half(dtype) && !op->access && op->run[TILE_F32];
        if (op->kind == TILE_OP_COOPERATIVE && p.field.size() > 1)
            supported = op->run[dtype] || promoted;
        if (op->kind == TILE_OP_COOPERATIVE && supported && status)
            return p.name + ": " + tile_dtype_name(dtype) +
                   " has a kernel but is refused: " + message;
        if (!supported && !refused(p, dtype, status, message).empty())
            return refused(p, dtype, status, message);
    }
    if (op->kind != TILE_OP_ELEMENTWISE || op->n_in < 2) return "";
    const tile_dtype pairs[][2] = {
        {TILE_F64, TILE_F32}, {TILE_F32, TILE_F16}, {TILE_F16, TILE_F32}, {TILE_BF16, TILE_F16}};
    for (const auto &pair : pairs) {
        const tile_status mixed = try_build(
            [&](tile_builder *b) {
                std::vector<tile> in;
                for (int k = 0; k < op->n_in; k++)
                    in.push_back(tile_constant(b, pair[k == op->n_in - 1], TILE_SCALAR, 1));
                emit_op(b, op, in, TILE_F64);
            },
            &message);
        const std::string found = refused(p, pair[0], mixed, message);
        if (!found.empty()) return found;
    }
    return "";
}

/* 16-bit floats. */

namespace {

double rounded(tile_dtype dtype, double x) {
    unsigned char bytes[8];
    tile_dtype_put(dtype, x, bytes);
    return tile_dtype_get(dtype, bytes);
}

void round_all(tile_dtype dtype, Reals *values) {
    for (double &x : *values) x = rounded(dtype, x);
}

} // namespace

/* Computed in float32 and rounded once an op: on the same inputs the values are float32's, rounded,
 * and a gradient is what was there plus float32's, rounded; to the bit. Sums in memory round after
 * each addition: near float32's. */
std::string check_halves(const Problem &p) {
    for (tile_dtype half : {TILE_F16, TILE_BF16}) {
        Problem q = p;
        for (Field &f : q.field)
            if (f.real()) round_all(half, &f.value);
        Upstream up = upstream_of(q), from_zero;
        for (size_t k = 0; k < q.field.size(); k++)
            if (q.field[k].real()) {
                round_all(half, &up.seed[k]);
                round_all(half, &up.start[k]);
            }
        from_zero = up;
        for (Reals &start : from_zero.start)
            for (double &x : start) x = 0;
        const Outcome got = sweep(q, half, Place::kOwned, 1, up);
        const Outcome want = sweep(q, TILE_F32, Place::kOwned, 1, from_zero);
        const std::string what = std::string(tile_dtype_name(half)) + ":";
        if (!failure(q, want).empty()) return failure(q, want);
        if (!failure(q, got).empty()) return failure(q, got) + " (" + what + ")";
        const bool sums = p.op->access == TILE_ACCESS_ADD;
        for (size_t k = 0; k < q.field.size(); k++) {
            const bool own = q.field[k].real();
            const double near = sums ? std::ldexp(p.terms, half == TILE_F16 ? -11 : -8) *
                                           (largest(want.value[k]) + largest(q.field[1].value))
                                     : 0;
            for (size_t i = 0; i < want.value[k].size(); i++) {
                const double w = want.value[k][i], g = got.value[k][i];
                const double r = own ? rounded(half, w) : w;
                if (!(std::fabs(g - r) <= near) && g != r && !(std::isnan(g) && std::isnan(r)))
                    return at_text(q, what, k, i, g, r);
            }
            for (size_t i = 0; i < want.grad[k].size(); i++) {
                const double sum = static_cast<double>(static_cast<float>(up.start[k][i]) +
                                                       static_cast<float>(want.grad[k][i]));
                const double r = own ? rounded(half, sum) : sum, g = got.grad[k][i];
                if (g != r && !(std::isnan(g) && std::isnan(r)))
                    return at_text(q, what + " gradient of", k, i, g, r);
            }
        }
    }
    return "";
}

/* Memory and threads. */

std::string check_places(const Problem &p) {
    const Upstream up = upstream_of(p);
    const Outcome want = sweep(p, TILE_F64, Place::kOwned, 1, up);
    if (!failure(p, want).empty()) return failure(p, want);
    Outcome alone = Run(p, TILE_F64, Place::kOwned, 1).forward();
    if (!failure(p, alone).empty()) return failure(p, alone);
    for (size_t k = 0; k < p.field.size(); k++)
        for (double y : alone.value[k])
            if (!std::isfinite(y)) return p.name + ": " + p.field[k].name + " is not finite";
    std::string found = compare_bits(p, "without a tape", alone, want);
    const struct {
        Place place;
        const char *what;
    } others[] = {{Place::kOwned, "a second time"},
                  {Place::kDense, "in wrapped memory"},
                  {Place::kGaps, "with gaps"},
                  {Place::kReversed, "with dimensions reversed"}};
    for (const auto &other : others) {
        if (!found.empty()) return found;
        const Outcome got = sweep(p, TILE_F64, other.place, 1, up);
        found = failure(p, got).empty() ? compare_bits(p, other.what, got, want)
                                        : failure(p, got) + " (" + other.what + ")";
    }
    return found;
}

std::string check_threads(const Problem &p) {
    const Upstream up = upstream_of(p);
    const Outcome want = sweep(p, TILE_F32, Place::kOwned, 1, up);
    if (!failure(p, want).empty()) return failure(p, want);
    for (int threads : {2, 3, 8}) {
        const Outcome got = sweep(p, TILE_F32, Place::kOwned, threads, up);
        const std::string found =
            compare_bits(p, "with " + std::to_string(threads) + " threads", got, want);
        if (!found.empty()) return found;
    }
    return "";
}

std::string check_native(const Problem &p, tile_dtype real) {
    const Upstream up = upstream_of(p);
    const Outcome want = sweep(p, real, Place::kDense, 1, up, TILE_EXECUTOR_INTERPRETER);
    if (!failure(p, want).empty()) return failure(p, want);
    for (int threads : {1, 2}) {
        const Place place = threads == 1 ? Place::kDense : Place::kGaps;
        const Outcome got = sweep(p, real, place, threads, up, TILE_EXECUTOR_NATIVE);
        if (!failure(p, got).empty()) return failure(p, got) + " (native)";
        const std::string found = compare_bits(p, "by native code", got, want);
        if (!found.empty()) return found;
    }
    return "";
}

/* Zeros, nothing, refusals. */

std::string check_zero_upstream(const Problem &p) {
    for (tile_dtype real : {TILE_F64, TILE_F32}) {
        Upstream up = upstream_of(p, Seeds::kZero);
        const Outcome run = sweep(p, real, Place::kDense, 1, up);
        if (!failure(p, run).empty()) return failure(p, run);
        for (size_t k = 0; k < p.field.size(); k++)
            for (size_t i = 0; i < run.grad[k].size(); i++)
                if (!(run.grad[k][i] == up.start[k][i]))
                    return at_text(p, "zero upstream: gradient of", k, i, run.grad[k][i],
                                   up.start[k][i]);
    }
    return "";
}

std::string check_empty(const Problem &p) {
    Problem q = p;
    for (int part = 0; part < 2; part++) {
        if (part == 0) { /* no blocks */
            q.grid = TILE_GRID(0);
        } else { /* arrays without elements */
            q = p;
            for (Field &f : q.field) {
                if (!f.shape.rank) return "";
                f.shape.extent[0] = 0;
                f.value.clear();
                f.integer.clear();
            }
        }
        Run run(q, TILE_F64, Place::kDense, 2);
        const Outcome got = run.forward();
        if (!failure(q, got).empty()) return failure(q, got) + " (nothing to do)";
        for (size_t k = 0; k < q.field.size(); k++)
            for (double y : got.value[k])
                if (q.field[k].role == Role::kResult && !std::isnan(y))
                    return q.name + ": no block, but " + q.field[k].name + " was written";
    }
    return "";
}

std::string check_memory(const Problem &p) {
    const Upstream up = upstream_of(p);
    const Outcome want = sweep(p, TILE_F64, Place::kOwned, 1, up);
    if (!failure(p, want).empty()) return failure(p, want);
    for (int64_t n = 1; n < 10000; n++) {
        const std::string what = "allocation " + std::to_string(n) + " fails";
        const Outcome got = Run(p, TILE_F64, Place::kOwned, 1).backward(up, n);
        if (!got.status || (is_refusal(got.status) && !has_any(p)))
            return compare_bits(p, "where no allocation failed", got, want)
                .substr(0, got.status ? 0 : 500);
        if (got.status != TILE_E_MEMORY) return p.name + ": " + what + ": " + got.error;
        for (size_t k = 0; k < p.field.size(); k++) {
            for (size_t i = 0; i < got.grad[k].size(); i++)
                if (!(got.grad[k][i] == up.start[k][i]))
                    return at_text(p, what + ", yet changes the gradient of", k, i, got.grad[k][i],
                                   up.start[k][i]);
            for (size_t i = 0; i < got.value[k].size() && !got.launched; i++)
                if (p.field[k].role == Role::kResult && !std::isnan(got.value[k][i]))
                    return at_text(p, what + ", yet writes", k, i, got.value[k][i], NAN);
        }
    }
    return p.name + ": some allocation always fails";
}

std::string check_absent(const Problem &p) {
    for (size_t k = 0; k < p.field.size(); k++) {
        const Field &f = p.field[k];
        if (f.role != Role::kInput || f.grad != TILE_GRAD_ABSENT || !f.real()) continue;
        Problem q = p;
        q.field[k].grad = TILE_GRAD_FULL; /* so that the run asks for it */
        const Upstream up = upstream_of(q);
        const Outcome run = Run(q, TILE_F64, Place::kOwned, 1).backward(up);
        if (run.status != TILE_E_NO_ADJOINT)
            return p.name + ": a gradient by " + f.name + ", declared ABSENT, ends with \"" +
                   run.error + "\"";
        if (run.error.find(p.op->name) == std::string::npos)
            return p.name + ": the error does not name the op: " + run.error;
        for (size_t n = 0; n < q.field.size(); n++)
            if (run.grad.size() > n && !(run.grad[n] == up.start[n]))
                return p.name + ": after the error a gradient of " + q.field[n].name +
                       " has changed";
    }
    return "";
}

} // namespace op_test
