/* random_program.h: random programs, checked against differences and shrunk when they fail.
 *
 * A program is what a row of numbers decodes to. Every row decodes: numbers count modulo what there
 * is to choose from, and a row that is used up goes on with zeros, the simplest choice. So a
 * failing program shrinks by dropping and lowering numbers. */
#ifndef TILE_TESTS_RANDOM_PROGRAM_H
#define TILE_TESTS_RANDOM_PROGRAM_H

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tape/tiletape.h"

namespace random_program {

using Row = std::vector<uint32_t>;
using Reals = std::vector<double>;

/* Decides: from a row, or at random, noting what was decided. */
class Choices {
  public:
    explicit Choices(const Row &row) : row_(row), replays_(true) {}
    explicit Choices(uint64_t seed) : random_(seed) {}
    /* One of 0..n-1. */
    int pick(int n);
    bool chance(int of) {
        return pick(of) == of - 1;
    }
    /* In -1..1, of few bits. */
    double number() {
        return (pick(401) - 200) / 200.0;
    }
    const Row &row() const {
        return row_;
    }

  private:
    Row row_;
    size_t next_ = 0;
    bool replays_ = false;
    std::mt19937_64 random_;
};

/* An array parameter of a kernel. */
struct Slot {
    int rank;
    bool result; /* takes what must not be differentiated; never read */
};

struct Kernel {
    tile_kernel *kernel = nullptr;
    std::vector<Slot> slot; /* the array parameters; then comes the index array */
    std::vector<std::string> ops;
};

/* Decodes a kernel. Throws std::runtime_error when the library refuses it. */
Kernel make_kernel(tile_context *ctx, const std::string &name, Choices *choose);

enum class Verdict { kRight, kWrong, kUnsure, kNothing /* no gradient is reached */ };

struct Outcome {
    Verdict verdict = Verdict::kNothing;
    std::string message; /* of what is wrong */
    std::string text;    /* kernels and launches */
    std::vector<std::string> ops;
    Row row;
};

/* Runs the program of a seed or of a row. */
Outcome run(Choices choose);

/* What a program leaves in its arrays, then its gradient where one is reached. */
Reals results(Choices choose, int threads, tile_executor executor);

/* A row that still fails and from which nothing more can be dropped, within some tries. */
Row shrink(Row row, const std::function<bool(const Row &)> &fails, int tries);

/* Runs programs first..first+count-1; prints what fails, shrunk. The number of failures. */
struct Tally {
    int right = 0, wrong = 0, unsure = 0, nothing = 0;
    std::vector<std::string> ops; /* that were run in programs with a gradient */
};
Tally run_all(uint64_t first, int count, FILE *out);

} // namespace random_program

#endif
