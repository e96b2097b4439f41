/* product_test.cc: a covering of all pairs of op, type, rank, offset, index and padding. */
#include <gtest/gtest.h>

#include "tests/product.h"

namespace {

TEST(Product, EveryPairOfChoicesWorks) {
    const std::vector<product::Case> cases = product::covering();
    const product::Case n = product::sizes();
    EXPECT_GE(static_cast<int>(cases.size()), n[product::kOp] * n[product::kDtype]);
    const product::Tally t = product::run(cases, 1, stdout);
    EXPECT_EQ(0, t.failed);
    EXPECT_GT(t.passed, static_cast<int>(cases.size()) / 3);
    EXPECT_EQ(static_cast<int>(cases.size()), t.passed + t.none + t.failed);
}

/* The comparison sees one wrong byte, in an element and in a guard. */
TEST(Product, TheComparisonCanFail) {
    for (int k = 0; k < TILE_DTYPES; k++) {
        const tile_dtype dtype = static_cast<tile_dtype>(k);
        std::vector<unsigned char> a(3 * tile_dtype_size(dtype), 0), b = a;
        EXPECT_TRUE(product::same(dtype, a, b));
        b.back() ^= 1;
        EXPECT_FALSE(product::same(dtype, a, b)) << tile_dtype_name(dtype);
    }
}

} // namespace
