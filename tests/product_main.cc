/* product_main.cc: every op with every type, rank, offset, index, padding, on 1 and 3 threads. */
#include "tests/product.h"

int main() {
    const std::vector<product::Case> cases = product::all();
    int passed = 0, failed = 0;
    for (int threads : {1, 3}) {
        const product::Tally t = product::run(cases, threads, stdout);
        std::printf("%d threads: %d passed, %d failed, %d where there is no such op\n", threads,
                    t.passed, t.failed, t.none);
        passed += t.passed;
        failed += t.failed;
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
