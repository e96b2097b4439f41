/* product.h: every op on a window, with every element type, rank, kind of offset, of index and of
 * padding, against a loop over elements; with guards around and between everything. */
#ifndef TILE_TESTS_PRODUCT_H
#define TILE_TESTS_PRODUCT_H

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "tape/tiletape.h"

namespace product {

/* What varies; a case takes one of each. */
enum Factor { kOp, kDtype, kRank, kOffset, kIndex, kPad, kFactors };
using Case = std::array<int, kFactors>;

/* How many there are of each. */
Case sizes();
std::string text(const Case &c);

/* Cases in which each pair of choices of two factors occurs; all of them. Choices that an op does
 * not look at are the first one. */
std::vector<Case> covering();
std::vector<Case> all();

/* Runs cases with a number of threads; prints what fails. */
struct Tally {
    int passed = 0, failed = 0, none = 0; /* none: the op is not there for the type */
};
Tally run(const std::vector<Case> &cases, int threads, FILE *out);

/* What a kernel does, element by element; product_model.cc. */
struct Window {
    std::vector<int64_t> extent, offset; /* of the tile; where it lies */
    int axis = -1;                       /* goes by index */
    std::vector<int32_t> index;
};

/* An array with gaps: strides in elements, the first element at start. */
struct Memory {
    tile_dtype dtype = TILE_F32;
    std::vector<int64_t> extent, stride;
    int64_t start = 0;
    std::vector<unsigned char> bytes;

    unsigned char *at(int64_t element) {
        return &bytes[static_cast<size_t>(element) * tile_dtype_size(dtype)];
    }
};

enum class Action { kLoad, kStore, kAdd, kSub, kMin, kMax, kAnd, kOr, kXor };

/* Applies an action: tile is what is written, or takes what is read; before: previous values. mask:
 * empty, or which elements take part. */
void apply(Action action, const Window &w, const std::vector<unsigned char> &mask, double pad,
           Memory *memory, std::vector<unsigned char> *tile, std::vector<unsigned char> *before);

/* One element of a type from a value that it holds. */
void put(tile_dtype dtype, double value, unsigned char *to);

/* Whether bytes are the same elements; any NaN is any NaN. */
bool same(tile_dtype dtype, const std::vector<unsigned char> &a,
          const std::vector<unsigned char> &b);

} // namespace product

#endif
