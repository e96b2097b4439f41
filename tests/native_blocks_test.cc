/* native_blocks_test.cc: kernels that run block by block have the interpreter's bits in native
 * code: random ones with many shapes and types, and those of random programs, backward too. */
#include "tests/random_block.h"
#include "tests/random_program.h"

namespace {

using namespace field_test;

/* A cache of the test's own. Some kernels are compiled without -O3, to try more of them. */
void use_own_cache(bool fast) {
    const char *scratch = getenv("TEST_TMPDIR");
    const std::string folder = scratch ? scratch : "/tmp/tiletape-native-blocks";
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
    unsetenv("TILE_EXECUTOR");
    unsetenv("TILE_CC");
    if (!fast) return;
    const std::string path = folder + "/cc-fast";
    FILE *script = fopen(path.c_str(), "w");
    ASSERT_NE(nullptr, script) << path;
    fputs("#!/bin/sh\nexec cc \"$@\" -O1\n", script);
    fclose(script);
    ASSERT_EQ(0, system(("chmod +x " + path).c_str()));
    setenv("TILE_CC", path.c_str(), 1);
}

unsigned first_seed(unsigned otherwise) {
    const char *text = getenv("TILE_SEED");
    return text ? static_cast<unsigned>(atoi(text)) : otherwise;
}

std::vector<Bytes> run_block(unsigned seed, int threads, tile_executor executor, bool *native) {
    RandomBlock block(seed);
    Runner r(threads, executor);
    r.build([seed](tile_builder *b) { BlockBuilder(b, seed).build(); });
    if (r.kernel) r.run(bound_of({RandomBlock::BLOCKS}, block.arrays()), true);
    tile_executor_info info;
    EXPECT_EQ(TILE_OK, tile_context_info(r.ctx, &info)) << tile_last_error();
    EXPECT_STREQ("", info.why);
    *native = info.native_launches == 1;
    std::vector<Bytes> after;
    for (Memory *m : block.arrays()) {
        EXPECT_TRUE(m->guarded());
        after.push_back(m->bytes);
    }
    return after;
}

/* The same bytes; NaN equals NaN, whatever its bits. */
bool same(RandomBlock *block, size_t k, const Bytes &x, const Bytes &y) {
    const tile_dtype dtype = block->arrays()[k]->dtype;
    const size_t size = tile_dtype_size(dtype);
    for (size_t i = 0; i + size <= x.size(); i += size) {
        if (!memcmp(&x[i], &y[i], size)) continue;
        if (!tile_is_float(dtype)) return false;
        if (!std::isnan(tile_dtype_get(dtype, &x[i])) || !std::isnan(tile_dtype_get(dtype, &y[i])))
            return false;
    }
    return true;
}

void compare_blocks(unsigned first, unsigned count, bool *some) {
    int natives = 0;
    for (unsigned seed = first; seed < first + count; seed++) {
        RandomBlock block(seed);
        bool native;
        const std::vector<Bytes> want = run_block(seed, 1, TILE_EXECUTOR_INTERPRETER, &native);
        ASSERT_FALSE(native);
        for (int threads : {1, 2, 3}) {
            const std::vector<Bytes> got = run_block(seed, threads, TILE_EXECUTOR_NATIVE, &native);
            for (size_t k = 0; k < want.size(); k++)
                ASSERT_TRUE(same(&block, k, want[k], got[k]))
                    << "TILE_SEED=" << seed << " threads " << threads << " array " << k;
        }
        natives += native;
    }
    *some = natives * 10 >= static_cast<int>(count) * 8;
}

TEST(NativeBlocks, RandomKernelsHaveTheBitsOfTheInterpreter) {
    use_own_cache(false);
    bool some;
    compare_blocks(first_seed(1), getenv("TILE_SEED") ? 1 : 12, &some);
    EXPECT_TRUE(some || getenv("TILE_SEED"));
}

TEST(NativeBlocks, MoreRandomKernelsHaveTheBitsOfTheInterpreter) {
    use_own_cache(true);
    const char *text = getenv("TILE_COUNT");
    bool some;
    compare_blocks(first_seed(100), text ? static_cast<unsigned>(atoi(text)) : 40, &some);
    EXPECT_TRUE(some || getenv("TILE_SEED"));
}

TEST(NativeBlocks, RandomProgramsHaveTheBitsOfTheInterpreter) {
    using random_program::Choices;
    use_own_cache(true);
    const char *text = getenv("TILE_COUNT");
    const unsigned first = first_seed(1), count = text ? static_cast<unsigned>(atoi(text)) : 25;
    for (unsigned seed = first; seed < first + count; seed++) {
        const auto want = random_program::results(Choices(seed), 1, TILE_EXECUTOR_INTERPRETER);
        const auto got = random_program::results(Choices(seed), 1 + static_cast<int>(seed % 3),
                                                 TILE_EXECUTOR_NATIVE);
        ASSERT_EQ(want.size(), got.size());
        for (size_t i = 0; i < want.size(); i++)
            ASSERT_TRUE(!memcmp(&want[i], &got[i], sizeof want[i]) ||
                        (std::isnan(want[i]) && std::isnan(got[i])))
                << "TILE_SEED=" << seed << " element " << i << ": " << want[i] << " and " << got[i];
    }
}

} // namespace
