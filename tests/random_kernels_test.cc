/* random_kernels_test.cc: random programs have the gradients that differences give. */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/op.h"
#include "tests/random_program.h"

namespace {

using random_program::Row;

constexpr int kPrograms = 500;

TEST(RandomKernels, HaveTheGradientsThatDifferencesGive) {
    const char *text = std::getenv("TILE_TEST_SEED");
    const uint64_t seed = text ? std::strtoull(text, nullptr, 10) : 1;
    std::printf("%d programs from seed %llu\n", kPrograms, static_cast<unsigned long long>(seed));
    const random_program::Tally t = random_program::run_all(seed, kPrograms, stdout);
    std::printf("%d right, %d without a gradient, %d unsure\n", t.right, t.nothing, t.unsure);
    EXPECT_EQ(0, t.wrong);
    EXPECT_GT(t.right, kPrograms * 3 / 4);
    EXPECT_LT(t.unsure, kPrograms / 10);
    /* What is not maths on tiles, by the names that the generator notes. */
    for (const char *op : {"load", "store", "load_indexed", "store_indexed", "store_where",
                           "atomic_add", "atomic_add_indexed", "atomic_min", "atomic_max", "loop",
                           "while", "stack", "partition", "gather", "select"})
        EXPECT_EQ(1, std::count(t.ops.begin(), t.ops.end(), op)) << op;
}

/* A failure that needs one statement shrinks to a program of few. */
TEST(RandomKernels, Shrink) {
    const auto uses_max = [](const Row &row) {
        const random_program::Outcome o = random_program::run(random_program::Choices(row));
        return std::count(o.ops.begin(), o.ops.end(), "atomic_max") > 0;
    };
    Row row;
    for (uint64_t seed = 1; row.empty(); seed++) {
        const random_program::Outcome o = random_program::run(random_program::Choices(seed));
        if (o.ops.size() > 20 && std::count(o.ops.begin(), o.ops.end(), "atomic_max")) row = o.row;
    }
    const Row small = random_program::shrink(row, uses_max, 3000);
    const random_program::Outcome o = random_program::run(random_program::Choices(small));
    EXPECT_TRUE(uses_max(small));
    EXPECT_LE(o.ops.size(), 4u) << o.text;
    EXPECT_NE(std::string::npos, o.text.find("atomic_max")) << o.text;
}

TEST(RandomKernels, AnyRowDecodes) {
    for (const Row &row : {Row{}, Row{7}, Row(1000, 0xffffffffu), Row{1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
        const random_program::Outcome o = random_program::run(random_program::Choices(row));
        EXPECT_NE(random_program::Verdict::kWrong, o.verdict) << o.message << "\n" << o.text;
        EXPECT_FALSE(o.text.empty());
    }
}

} // namespace
