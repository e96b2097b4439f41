/* golden.cc: runs the known answers in a folder; see golden.sh.
 *
 *   golden FOLDER
 *
 * Prints a line for each case that fails or that needs an op or dtype which does not exist, then
 * `N passed, N failed, N skipped`. Exits with 1 when a case failed. */
#include "tests/golden_runner.h"

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: golden FOLDER\n");
        return 2;
    }
    return golden::run_folder(argv[1], stdout);
}
