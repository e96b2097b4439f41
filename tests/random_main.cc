/* random_main.cc: random COUNT SEED: runs COUNT random programs from SEED on. */
#include <cstdlib>

#include "tests/random_program.h"

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: random COUNT SEED\n");
        return 2;
    }
    const int count = std::atoi(argv[1]);
    const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
    std::printf("%d programs from seed %llu\n", count, static_cast<unsigned long long>(seed));
    const random_program::Tally t = random_program::run_all(seed, count, stdout);
    std::printf("%d right, %d without a gradient, %d where differences do not settle\n", t.right,
                t.nothing, t.unsure);
    std::printf("%d passed, %d failed\n", count - t.wrong, t.wrong);
    return t.wrong != 0;
}
