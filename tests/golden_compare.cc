/* golden_compare.cc: comparisons of the golden formats. */
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/dtype.h"
#include "tests/golden_runner.h"

namespace golden {

namespace {

std::string number(double x) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", x);
    return text;
}

[[noreturn]] void differ(const std::string &what, size_t i, const Values &got, const Values &want) {
    throw Failed(what + ": element " + std::to_string(i) + " of " + shape_text(want.shape) +
                 " is " + number(got.real[i]) + ", expected " + number(want.real[i]));
}

/* Same shape, a rank-0 result being as good as one of one element; same dtype. */
void compare_form(const std::string &what, const Values &got, const Values &want) {
    const bool single = got.real.size() == 1 && want.real.size() == 1;
    if (got.shape != want.shape && !single)
        throw Failed(what + ": the shape is " + shape_text(got.shape) + ", expected " +
                     shape_text(want.shape));
    if (got.dtype != want.dtype)
        throw Failed(what + ": the type is " + tile_dtype_name(got.dtype) + ", expected " +
                     tile_dtype_name(want.dtype));
}

bool same_bits(const Values &got, const Values &want, size_t i) {
    const size_t size = tile_dtype_size(want.dtype);
    return !std::memcmp(&got.bytes[i * size], &want.bytes[i * size], size);
}

/* Both NaN, or the same infinity. */
bool same_special(double got, double want) {
    return (std::isnan(got) && std::isnan(want)) || (std::isinf(want) && got == want);
}

/* Bit patterns in the order of the numbers; both zeros are 0. */
int64_t ordered(double x) {
    int64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

} // namespace

void compare_relative(const std::string &what, const Values &got, const Values &want, double rtol) {
    compare_form(what, got, want);
    double scale = 0;
    for (double w : want.real)
        if (std::isfinite(w)) scale = std::max(scale, std::fabs(w));
    const bool exact = rtol == 0 || !tile_is_float(want.dtype);
    for (size_t i = 0; i < want.real.size(); i++) {
        const double g = got.real[i], w = want.real[i];
        const bool near = exact ? same_bits(got, want, i) : std::fabs(g - w) <= rtol * scale;
        if (!near && !same_special(g, w)) differ(what, i, got, want);
    }
}

void compare_mixed(const std::string &what, const Values &got, const Values &want, double tol) {
    compare_form(what, got, want);
    for (size_t i = 0; i < want.real.size(); i++) {
        const double g = got.real[i], w = want.real[i];
        const bool near = tile_is_float(want.dtype) ? std::fabs(g - w) <= tol * (1 + std::fabs(w))
                                                    : same_bits(got, want, i);
        if (!near && !same_special(g, w)) differ(what, i, got, want);
    }
}

void compare_ulps(const std::string &what, const Values &got, const Values &want,
                  const Values &check, int bit, const UlpLimit &limit) {
    compare_form(what, got, want);
    if (check.real.size() != want.real.size()) throw Failed("check.npy has another length");
    for (size_t i = 0; i < want.real.size(); i++) {
        const double g = got.real[i], w = want.real[i];
        if (!(check.bytes[i] >> bit & 1) || same_special(g, w)) continue;
        bool near = std::isfinite(g) && std::isfinite(w);
        if (near) {
            const int64_t low = std::min(ordered(g), ordered(w));
            const uint64_t steps = static_cast<uint64_t>(std::max(ordered(g), ordered(w))) -
                                   static_cast<uint64_t>(low);
            near = static_cast<double>(steps) <= limit.ulps || std::fabs(g - w) <= limit.absolute;
            if (g == 0 && w == 0 && limit.signed_zeros) near = std::signbit(g) == std::signbit(w);
        }
        if (!near) differ(what, i, got, want);
    }
}

} // namespace golden
