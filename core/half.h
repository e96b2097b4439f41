/* half.h: the 16-bit floats as stored types, and their conversions; C, C++, nvcc and NVRTC.
 *
 * Numbers are computed in float32 and rounded where they are stored: to nearest, ties to even, too
 * large ones to infinity; below the normal numbers to subnormal ones. A NaN stays one, quiet, with
 * its sign and the upper bits of its payload. Bits alone decide, with nothing but integer
 * arithmetic and exact or once rounded additions, so that every machine gives the same and the
 * loops that call this vectorise. From a double there is one rounding, never two. */
#ifndef TILE_CORE_HALF_H
#define TILE_CORE_HALF_H

#include "core/lane.h"

/* IEEE 754 binary16: 5 bits of exponent, 10 of mantissa. */
typedef struct tile_f16 {
    uint16_t bits;
} tile_f16;

/* The upper half of a float32: 8 bits of exponent, 7 of mantissa. */
typedef struct tile_bf16 {
    uint16_t bits;
} tile_bf16;

TILE_LANE_FN uint32_t tile_bits_of_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
TILE_LANE_FN float tile_f32_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
TILE_LANE_FN uint64_t tile_bits_of_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
TILE_LANE_FN double tile_f64_of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Subnormals: the bits are put below those of 2^-14, which is then taken away. */
TILE_LANE_FN float tile_f32_of_f16(tile_f16 h) {
    const uint32_t sign = (uint32_t)(h.bits & 0x8000u) << 16;
    const uint32_t moved = (uint32_t)(h.bits & 0x7fffu) << 13, exponent = moved & 0x0f800000u;
    const uint32_t normal = moved + 0x38000000u;
    const uint32_t beyond = moved | 0x7f800000u | (moved & 0x007fffffu ? 0x00400000u : 0u);
    const uint32_t small = tile_bits_of_f32(tile_f32_of_bits(moved + 0x38800000u) - 0x1p-14f);
    const uint32_t finite = exponent ? normal : small;
    return tile_f32_of_bits(sign | (exponent == 0x0f800000u ? beyond : finite));
}

TILE_LANE_FN float tile_f32_of_bf16(tile_bf16 h) {
    return tile_f32_of_bits((uint32_t)h.bits << 16);
}

/* A number below the normal ones is added to one whose last place is theirs, which rounds it. For
 * the others half of a last place, or just less before an even one, carries where it should. */
TILE_LANE_FN tile_f16 tile_f16_of_f32(float x) {
    const uint32_t bits = tile_bits_of_f32(x), size = bits & 0x7fffffffu;
    const uint32_t small = tile_bits_of_f32(tile_f32_of_bits(size) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;
    const uint32_t beyond = size > 0x7f800000u ? 0x7e00u | (size >> 13 & 0x3ffu) : 0x7c00u;
    const uint32_t finite = size < 0x38800000u ? small : normal;
    const uint32_t rounded = size >= 0x47800000u ? beyond : finite;
    const tile_f16 h = {(uint16_t)((bits >> 16 & 0x8000u) | rounded)};
    return h;
}

TILE_LANE_FN tile_bf16 tile_bf16_of_f32(float x) {
    const uint32_t bits = tile_bits_of_f32(x);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const tile_bf16 h = {(uint16_t)(nan ? bits >> 16 | 0x40u : rounded)};
    return h;
}

TILE_LANE_FN tile_f16 tile_f16_of_f64(double x) {
    const uint64_t bits = tile_bits_of_f64(x), size = bits & 0x7fffffffffffffffu;
    const uint64_t small = tile_bits_of_f64(tile_f64_of_bits(size) + 0x1p28) - 0x41b0000000000000u;
    const uint64_t normal = (size - 0x3f00000000000000u + 0x1ffffffffffu + (size >> 42 & 1u)) >> 42;
    const uint64_t beyond = size > 0x7ff0000000000000u ? 0x7e00u | (size >> 42 & 0x3ffu) : 0x7c00u;
    const uint64_t finite = size < 0x3f10000000000000u ? small : normal;
    const uint64_t rounded = size >= 0x40f0000000000000u ? beyond : finite;
    const tile_f16 h = {(uint16_t)((bits >> 48 & 0x8000u) | rounded)};
    return h;
}

TILE_LANE_FN tile_bf16 tile_bf16_of_f64(double x) {
    const uint64_t bits = tile_bits_of_f64(x), size = bits & 0x7fffffffffffffffu;
    const uint64_t small = tile_bits_of_f64(tile_f64_of_bits(size) + 0x1p-81) - 0x3ae0000000000000u;
    const uint64_t normal = (size - 0x3800000000000000u + 0xfffffffffffu + (size >> 45 & 1u)) >> 45;
    const uint64_t beyond = size > 0x7ff0000000000000u ? 0x7fc0u | (size >> 45 & 0x7fu) : 0x7f80u;
    const uint64_t finite = size < 0x3810000000000000u ? small : normal;
    const uint64_t rounded = size >= 0x47f0000000000000u ? beyond : finite;
    const tile_bf16 h = {(uint16_t)((bits >> 48 & 0x8000u) | rounded)};
    return h;
}

/* An integer as a double that rounds to any 16-bit float as the integer does: what a double has no
 * room for is kept as one bit that says whether it was 0. */
TILE_LANE_FN double tile_f64_of_u64_odd(uint64_t x) {
    const uint64_t upper = x & ~(uint64_t)0x7ff;
    return (double)(x >> 53 ? upper | (upper != x ? 0x800u : 0u) : x);
}
TILE_LANE_FN double tile_f64_of_i64_odd(int64_t x) {
    const double size = tile_f64_of_u64_odd(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
    return x < 0 ? -size : size;
}

#endif
