/* op_check.cc: gradients against differences, and the faults that this must find. */
#include "tests/op_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace op_test {

namespace {

const double kEps = std::numeric_limits<double>::epsilon();
const double kStep = 0x1p-12;
enum { ENTRIES = 36, DIRECTIONS = 2 };

/* The op whose result is a constant for gradients though differences see it. */
bool is_constant(const tile_op *op) {
    return op->name == std::string("stop_gradient");
}

/* Whether differences by the field's elements are taken. */
bool is_varied(const Field &f) {
    return f.real() && (f.role == Role::kState || (f.role == Role::kInput && has_gradient(f)));
}

/* Central differences of step h and 2h, extrapolated: the error is of order h^4. How far off they
 * are comes from the rounding of the sum and from how much the two differ. */
template <class Move>
void differentiate(Run *run, const Measured &m, Move move, double *slope, double *error) {
    double at[4], size = 0;
    const double steps[4] = {kStep, -kStep, 2 * kStep, -2 * kStep};
    for (int k = 0; k < 4; k++) {
        double magnitude = 0;
        move(steps[k]);
        at[k] = run->loss(m.up, &magnitude);
        size = std::max(size, magnitude);
    }
    move(0);
    const double near = (at[0] - at[1]) / (2 * kStep), far = (at[2] - at[3]) / (4 * kStep);
    *slope = (4 * near - far) / 3;
    *error = m.problem->terms * kEps * size / kStep + std::fabs(near - far) / 8;
}

std::vector<size_t> some_of(size_t n, Random *random) {
    std::vector<size_t> all;
    for (size_t i = 0; i < n; i++) all.push_back(i);
    for (size_t i = 1; i + 1 < n && n > ENTRIES; i++)
        std::swap(all[i], all[i + (*random)() % (n - 1 - i)]);
    if (n > ENTRIES) {
        all[ENTRIES - 1] = n - 1;
        all.resize(ENTRIES);
    }
    return all;
}

std::string place_text(const Problem &p, size_t field, size_t i) {
    return p.name + ": " + p.field[field].name + "[" + std::to_string(i) + "]";
}

std::string text(const char *format, double a, double b) {
    char line[160];
    std::snprintf(line, sizeof line, format, a, b);
    return line;
}

} // namespace

/* Measuring. */

Measured measure(const Problem &p) {
    Measured m;
    m.problem = &p;
    m.up = upstream_of(p);
    m.largest.assign(p.field.size(), 0);
    bool some = false;
    for (const Field &f : p.field)
        some = some || (is_varied(f) && (f.role == Role::kState || f.grad == TILE_GRAD_FULL));
    m.run = Run(p, TILE_F64, Place::kOwned, 1).backward(m.up);
    /* Where no gradient can come from the tape may say so. */
    if (!some && (m.run.status == TILE_E_STATE || m.run.status == TILE_E_NO_ADJOINT))
        m.run.status = TILE_OK, m.run.error = "";
    if (m.run.status || !m.run.error.empty()) {
        m.error = p.name + ": " + m.run.error;
        return m;
    }

    Random random = random_for(p.name + "/differences");
    Run run(p, TILE_F64, Place::kDense, 1);
    for (size_t k = 0; k < p.field.size(); k++) {
        const Field &f = p.field[k];
        if (!is_varied(f)) continue;
        for (size_t i : some_of(f.count(), &random)) {
            Measured::Entry e = {k, i, 0, 0};
            differentiate(
                &run, m, [&](double step) { run.set(k, i, f.value[i] + step); }, &e.slope,
                &e.error);
            m.entry.push_back(e);
            m.largest[k] = std::max(m.largest[k], std::fabs(e.slope));
        }
    }
    for (int n = 0; n < DIRECTIONS; n++) {
        Measured::Direction d;
        for (const Field &f : p.field) {
            Reals v;
            for (size_t i = 0; is_varied(f) && i < f.count(); i++)
                v.push_back(uniform(&random, -1, 1));
            d.v.push_back(v);
        }
        const auto move = [&](double step) {
            for (size_t k = 0; k < p.field.size(); k++)
                for (size_t i = 0; i < d.v[k].size(); i++)
                    run.set(k, i, p.field[k].value[i] + step * d.v[k][i]);
        };
        differentiate(&run, m, move, &d.slope, &d.error);
        m.direction.push_back(d);
    }
    if (!run.error().empty()) m.error = p.name + ": " + run.error();
    return m;
}

/* Judging. */

namespace {

double growth(const Measured &m, size_t k, size_t i) {
    return m.run.grad[k][i] - m.up.start[k][i];
}

/* What adding to a random start costs. */
double rounding(const Measured &m, size_t k, size_t i) {
    return 2 * kEps * (std::fabs(m.run.grad[k][i]) + std::fabs(m.up.start[k][i]));
}

/* Fields whose gradient must not move: overwritten ones, constants, inputs declared ZERO. */
std::string judge_still(const Measured &m) {
    const Problem &p = *m.problem;
    for (size_t k = 0; k < p.field.size(); k++) {
        const Field &f = p.field[k];
        const bool zero = f.role == Role::kInput && f.grad == TILE_GRAD_ZERO;
        if (!has_gradient(f) || f.role == Role::kState || (f.role == Role::kInput && !zero))
            continue;
        for (size_t i = 0; i < f.count(); i++)
            if (!(m.run.grad[k][i] == m.up.start[k][i]))
                return place_text(p, k, i) + text(": the gradient grew from %g to %g, expected "
                                                  "to stay",
                                                  m.up.start[k][i], m.run.grad[k][i]);
    }
    return "";
}

std::string judge_directions(const Measured &m) {
    const Problem &p = *m.problem;
    for (const Measured::Direction &d : m.direction) {
        double ours = 0, error = d.error;
        for (size_t k = 0; k < p.field.size(); k++) {
            for (size_t i = 0; i < d.v[k].size(); i++) {
                const double part = growth(m, k, i) * d.v[k][i];
                ours += part;
                error += rounding(m, k, i) + p.terms * kEps * std::fabs(part);
            }
        }
        if (!(std::fabs(ours - d.slope) <= error))
            return p.name + text(": along a direction the gradient gives %.12g, differences %.12g",
                                 ours, d.slope);
    }
    return "";
}

} // namespace

std::string judge(const Measured &m) {
    const Problem &p = *m.problem;
    if (!m.error.empty()) return m.error;
    const std::string still = judge_still(m);
    if (!still.empty()) return still;
    for (const Measured::Entry &e : m.entry) {
        const Field &f = p.field[e.field];
        const double ours = growth(m, e.field, e.i);
        if (f.grad == TILE_GRAD_ZERO && is_constant(p.op)) continue;
        const double limit =
            e.error + rounding(m, e.field, e.i) + p.terms * kEps * m.largest[e.field];
        if (!(std::fabs(ours - e.slope) <= limit))
            return place_text(p, e.field, e.i) +
                   text(": the gradient is %.12g, differences say %.12g", ours, e.slope);
        if (f.grad == TILE_GRAD_ZERO && !(std::fabs(e.slope) <= e.error))
            return place_text(p, e.field, e.i) +
                   text(": declared ZERO, but differences say %g (+-%g)", e.slope, e.error);
    }
    for (size_t k = 0; k < p.field.size(); k++)
        for (double g : m.run.grad[k])
            if (!std::isfinite(g))
                return p.name + ": a gradient of " + p.field[k].name + " is " +
                       text("%g (%g)", g, g);
    return is_constant(p.op) ? "" : judge_directions(m);
}

std::string judge_not_vacuous(const tile_op *op, const std::vector<Measured> &all) {
    const double floor = 1e-3;
    for (size_t k = 0; !all.empty() && k < all[0].problem->field.size(); k++) {
        const Field &f = all[0].problem->field[k];
        if (!is_varied(f) || f.grad != TILE_GRAD_FULL) continue;
        double largest = 0;
        for (const Measured &m : all) largest = std::max(largest, m.largest[k]);
        if (!(largest > floor))
            return std::string(op->name) + ": the gradient by " + f.name +
                   " is declared FULL, but is never seen";
    }
    return "";
}

/* Ties. */

namespace {

/* Each real input takes three values, of which several elements have one; the middle of a domain,
 * where kinks are, is one of them. */
Problem with_ties(const Problem &p) {
    Problem q = p;
    q.name += "/ties";
    Random random = random_for(q.name);
    for (size_t k = 0; k < q.field.size(); k++) {
        Field &f = q.field[k];
        if (!f.real() || f.value.empty()) continue;
        double low = *std::min_element(f.value.begin(), f.value.end());
        double high = *std::max_element(f.value.begin(), f.value.end());
        if (p.op->kind == TILE_OP_ELEMENTWISE) low = p.op->low[k], high = p.op->high[k];
        for (double &x : f.value)
            x = static_cast<double>(static_cast<float>(
                low + (high - low) * 0.25 * static_cast<double>(1 + random() % 3)));
    }
    return q;
}

/* Slopes to either side, and how far off they can be. */
struct Sides {
    double low, high, error;
};

template <class Move> Sides sides_of(Run *run, const Upstream &up, double terms, Move move) {
    double at[5], size = 0;
    for (int k = 0; k < 5; k++) {
        double magnitude = 0;
        move((k - 2) * kStep);
        at[k] = run->loss(up, &magnitude);
        size = std::max(size, magnitude);
    }
    move(0);
    const double left = (at[2] - at[1]) / kStep, right = (at[3] - at[2]) / kStep;
    const double left2 = (at[2] - at[0]) / (2 * kStep), right2 = (at[4] - at[2]) / (2 * kStep);
    const double bend = 4 * (std::fabs(left - left2) + std::fabs(right - right2));
    return {std::min(left, right), std::max(left, right),
            bend + 4 * terms * kEps * (size + 1) / kStep};
}

} // namespace

std::string check_ties(const Problem &problem) {
    if (is_constant(problem.op)) return "";
    const Problem p = with_ties(problem);
    const Upstream up = upstream_of(p, Seeds::kPositive);
    bool some = false;
    for (const Field &f : p.field) some = some || (is_varied(f) && f.grad == TILE_GRAD_FULL);
    if (!some) return "";
    const Outcome ours = Run(p, TILE_F64, Place::kOwned, 1).backward(up);
    if (!ours.error.empty()) return p.name + ": " + ours.error;
    Run run(p, TILE_F64, Place::kDense, 1);
    Random random = random_for(p.name + "/sides");
    double sum = 0;
    const auto moves = [](const Field &f) { return is_varied(f) && f.grad == TILE_GRAD_FULL; };
    for (size_t k = 0; k < p.field.size(); k++) {
        const Field &f = p.field[k];
        if (!moves(f)) continue;
        for (size_t i = 0; i < f.count(); i++) sum += ours.grad[k][i] - up.start[k][i];
        for (size_t i : some_of(f.count(), &random)) {
            const Sides s =
                sides_of(&run, up, p.terms, [&](double step) { run.set(k, i, f.value[i] + step); });
            const double g = ours.grad[k][i] - up.start[k][i];
            if (!(g >= s.low - s.error && g <= s.high + s.error))
                return place_text(p, k, i) + ": the gradient is " + text("%.9g", g, 0) +
                       text(", the slopes of the sides are %.9g and %.9g", s.low, s.high);
        }
    }
    const Sides together = sides_of(&run, up, p.terms, [&](double step) {
        for (size_t k = 0; k < p.field.size(); k++)
            for (size_t i = 0; moves(p.field[k]) && i < p.field[k].count(); i++)
                run.set(k, i, p.field[k].value[i] + step);
    });
    const bool smooth = together.high - together.low <= together.error;
    if (smooth && !(std::fabs(sum - together.low) <= 2 * together.error))
        return p.name +
               text(": moved as one the gradient gives %.9g, differences %.9g", sum, together.low);
    return "";
}

/* Faults. */

const std::vector<Fault> &faults() {
    static const std::vector<Fault> all = {
        {"times 3",
         [](const Field &, const Reals &start, const Reals &, Reals *grad) {
             for (size_t i = 0; i < grad->size(); i++) (*grad)[i] += 2 * ((*grad)[i] - start[i]);
         }},
        {"negated",
         [](const Field &, const Reals &start, const Reals &, Reals *grad) {
             for (size_t i = 0; i < grad->size(); i++) (*grad)[i] = 2 * start[i] - (*grad)[i];
         }},
        {"zeroed",
         [](const Field &, const Reals &start, const Reals &, Reals *grad) { *grad = start; }},
        {"overwrites",
         [](const Field &, const Reals &start, const Reals &, Reals *grad) {
             for (size_t i = 0; i < grad->size(); i++) (*grad)[i] -= start[i];
         }},
        {"shifted by one",
         [](const Field &, const Reals &start, const Reals &, Reals *grad) {
             const size_t n = grad->size();
             Reals moved(n);
             for (size_t i = 0; i < n; i++)
                 moved[i] = start[i] + (*grad)[(i + 1) % n] - start[(i + 1) % n];
             *grad = moved;
         }},
        {"last entry missing",
         [](const Field &, const Reals &start, const Reals &, Reals *grad) {
             if (!grad->empty()) grad->back() = start.back();
         }},
        {"NaN",
         [](const Field &, const Reals &, const Reals &, Reals *grad) {
             if (!grad->empty()) (*grad)[grad->size() / 2] = NAN;
         }},
        {"one percent off",
         [](const Field &, const Reals &start, const Reals &, Reals *grad) {
             for (size_t i = 0; i < grad->size(); i++) (*grad)[i] += 0.01 * ((*grad)[i] - start[i]);
         }},
        {"clear forgotten",
         [](const Field &f, const Reals &start, const Reals &seed, Reals *grad) {
             for (size_t i = 0; f.role != Role::kInput && i < grad->size(); i++)
                 (*grad)[i] = start[i] + seed[i];
         }},
    };
    return all;
}

namespace {

/* Whether a fault changes more of a gradient than rounding does. */
bool changes(const Measured &right, const Measured &wrong) {
    for (size_t k = 0; k < right.run.grad.size(); k++) {
        double scale = 0;
        for (size_t i = 0; i < right.run.grad[k].size(); i++)
            scale = std::max(scale, std::fabs(growth(right, k, i)));
        for (size_t i = 0; i < right.run.grad[k].size(); i++)
            if (!(std::fabs(wrong.run.grad[k][i] - right.run.grad[k][i]) <= 1e-4 * scale + 1e-12))
                return true;
    }
    return false;
}

} // namespace

std::string check_faults(const tile_op *op, const std::vector<Measured> &all) {
    bool full = false;
    for (const Measured &m : all)
        for (const Field &f : m.problem->field)
            full = full || (is_varied(f) && f.grad == TILE_GRAD_FULL);
    for (const Fault &fault : faults()) {
        int planted = 0;
        for (const Measured &m : all) {
            if (!judge(m).empty()) return "the right adjoint fails already: " + judge(m);
            Measured wrong = m;
            for (size_t k = 0; k < m.problem->field.size(); k++)
                if (!m.run.grad[k].empty())
                    fault.plant(m.problem->field[k], m.up.start[k], m.up.seed[k],
                                &wrong.run.grad[k]);
            if (!changes(m, wrong)) continue;
            planted++;
            if (judge(wrong).empty())
                return m.problem->name + ": the fault `" + fault.name + "` is not caught";
        }
        if (full && !planted)
            return std::string(op->name) + ": the fault `" + fault.name +
                   "` never changes anything";
    }
    return "";
}

} // namespace op_test
