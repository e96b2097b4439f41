/* product_model.cc: what windows, stores and atomics do, one element after the other. Shares no
 * code with the library: also not how 16-bit floats are made of bits. */
#include <cmath>
#include <cstring>

#include "tests/product.h"

namespace product {

namespace {

enum class Kind { kFloat, kSigned, kUnsigned };

struct Type {
    Kind kind;
    int exponent_bits, mantissa_bits; /* floats */
    size_t size;
};

Type type_of(tile_dtype dtype) {
    const std::string name = tile_dtype_name(dtype);
    const size_t size = tile_dtype_size(dtype);
    if (name == "float64") return {Kind::kFloat, 11, 52, size};
    if (name == "float32") return {Kind::kFloat, 8, 23, size};
    if (name == "float16") return {Kind::kFloat, 5, 10, size};
    if (name == "bfloat16") return {Kind::kFloat, 8, 7, size};
    return {name[0] == 'i' ? Kind::kSigned : Kind::kUnsigned, 0, 0, size};
}

uint64_t bits_at(const unsigned char *at, size_t size) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, size); /* little endian */
    return bits;
}

double real_of(const Type &t, uint64_t bits) {
    const uint64_t mantissa = bits & ((uint64_t{1} << t.mantissa_bits) - 1);
    const int top = (1 << t.exponent_bits) - 1;
    const int exponent = static_cast<int>(bits >> t.mantissa_bits) & top;
    const int bias = top / 2;
    const bool negative = bits >> (t.exponent_bits + t.mantissa_bits) & 1;
    double value;
    if (exponent == top)
        value = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        value = std::ldexp(static_cast<double>(mantissa), 1 - bias - t.mantissa_bits);
    else
        value = std::ldexp(static_cast<double>(mantissa | uint64_t{1} << t.mantissa_bits),
                           exponent - bias - t.mantissa_bits);
    return negative ? -value : value;
}

/* For values that the type holds and that are normal, zero, infinite or NaN. */
uint64_t bits_of(const Type &t, double value) {
    const int top = (1 << t.exponent_bits) - 1, bias = top / 2;
    const uint64_t sign = static_cast<uint64_t>(std::signbit(value))
                          << (t.exponent_bits + t.mantissa_bits);
    if (std::isnan(value))
        return static_cast<uint64_t>(top) << t.mantissa_bits | uint64_t{1} << (t.mantissa_bits - 1);
    if (std::isinf(value)) return sign | static_cast<uint64_t>(top) << t.mantissa_bits;
    if (value == 0) return sign;
    int exponent;
    const double fraction = std::frexp(std::fabs(value), &exponent); /* in [1/2, 1) */
    const uint64_t mantissa = static_cast<uint64_t>(std::ldexp(fraction, t.mantissa_bits + 1)) -
                              (uint64_t{1} << t.mantissa_bits);
    return sign | static_cast<uint64_t>(exponent - 1 + bias) << t.mantissa_bits | mantissa;
}

/* Sign-extended. */
int64_t signed_of(const Type &t, uint64_t bits) {
    const int shift = 64 - 8 * static_cast<int>(t.size);
    return static_cast<int64_t>(bits << shift) >> shift;
}

bool less(const Type &t, uint64_t a, uint64_t b) {
    if (t.kind == Kind::kFloat) return real_of(t, a) < real_of(t, b);
    if (t.kind == Kind::kSigned) return signed_of(t, a) < signed_of(t, b);
    return a < b;
}

uint64_t combine(Action action, const Type &t, uint64_t memory, uint64_t value) {
    switch (action) {
    case Action::kLoad: return memory;
    case Action::kStore: return value;
    case Action::kAdd:
        if (t.kind == Kind::kFloat) return bits_of(t, real_of(t, memory) + real_of(t, value));
        return memory + value;
    case Action::kSub:
        if (t.kind == Kind::kFloat) return bits_of(t, real_of(t, memory) - real_of(t, value));
        return memory - value;
    case Action::kMin: return less(t, value, memory) ? value : memory;
    case Action::kMax: return less(t, memory, value) ? value : memory;
    case Action::kAnd: return memory & value;
    case Action::kOr: return memory | value;
    case Action::kXor: return memory ^ value;
    }
    return 0;
}

/* Where element c lies; -1: outside. The sums are of few bits more than an int32. */
int64_t place_of(const Window &w, const Memory &m, const std::vector<int64_t> &c) {
    int64_t place = m.start;
    for (size_t d = 0; d < c.size(); d++) {
        const bool indexed = static_cast<int>(d) == w.axis;
        const int64_t step = indexed ? w.index[static_cast<size_t>(c[d])] : c[d];
        const __int128 x = static_cast<__int128>(w.offset[d]) + step;
        if (x < 0 || x >= m.extent[d]) return -1;
        place += static_cast<int64_t>(x) * m.stride[d];
    }
    return place;
}

bool advance(const std::vector<int64_t> &extent, std::vector<int64_t> *c) {
    for (size_t d = extent.size(); d-- > 0;) {
        if (++(*c)[d] < extent[d]) return true;
        (*c)[d] = 0;
    }
    return false;
}

} // namespace

void put(tile_dtype dtype, double value, unsigned char *to) {
    const Type t = type_of(dtype);
    const uint64_t bits = t.kind == Kind::kFloat
                              ? bits_of(t, value)
                              : static_cast<uint64_t>(static_cast<int64_t>(value));
    std::memcpy(to, &bits, t.size);
}

void apply(Action action, const Window &w, const std::vector<unsigned char> &mask, double pad,
           Memory *memory, std::vector<unsigned char> *tile, std::vector<unsigned char> *before) {
    const Type t = type_of(memory->dtype);
    std::vector<int64_t> c(w.extent.size());
    size_t element = 0;
    do {
        unsigned char *of_tile = &(*tile)[element * t.size];
        unsigned char *previous = before ? &(*before)[element * t.size] : nullptr;
        const int64_t place = place_of(w, *memory, c);
        const bool out = place < 0 || (!mask.empty() && !mask[element]);
        element++;
        if (out && action == Action::kLoad) put(memory->dtype, pad, of_tile);
        if (out && previous) std::memset(previous, 0, t.size);
        if (out) continue;
        unsigned char *at = memory->at(place);
        const uint64_t held = bits_at(at, t.size);
        if (previous) std::memcpy(previous, &held, t.size);
        if (action == Action::kLoad) {
            std::memcpy(of_tile, &held, t.size);
        } else {
            const uint64_t now = combine(action, t, held, bits_at(of_tile, t.size));
            std::memcpy(at, &now, t.size);
        }
    } while (advance(w.extent, &c));
}

bool same(tile_dtype dtype, const std::vector<unsigned char> &a,
          const std::vector<unsigned char> &b) {
    const Type t = type_of(dtype);
    if (a.size() != b.size()) return false;
    for (size_t at = 0; at + t.size <= a.size(); at += t.size) {
        const uint64_t x = bits_at(&a[at], t.size), y = bits_at(&b[at], t.size);
        if (x == y) continue;
        if (t.kind != Kind::kFloat || !std::isnan(real_of(t, x)) || !std::isnan(real_of(t, y)))
            return false;
    }
    return true;
}

} // namespace product
