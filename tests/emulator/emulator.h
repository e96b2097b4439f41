/* emulator.h: generated CUDA kernels on the CPU: host compiler, one fiber for each thread.
 *
 * The environment chooses, for a whole test run: TILE_TEST_DEVICE=emulator that contexts run their
 * launches here; TILE_EMULATOR_THREADS the threads of a block (1, 32, 33, 64, 256; default 33),
 * TILE_EMULATOR_ORDER in which they take turns (ascending, descending, or shuffled by a number).
 *
 * A missing barrier shows as a difference between orders and numbers of threads. A block that
 * writes outside of its shared memory, or whose threads do not all come to a barrier, fails. */
#ifndef TILE_TESTS_EMULATOR_H
#define TILE_TESTS_EMULATOR_H

#include <cstdint>
#include <string>

#include "core/device.h"

namespace emulator {

enum class Order { kAscending, kDescending, kShuffled };

struct Schedule {
    int threads = 33;
    Order order = Order::kAscending;
    uint64_t seed = 1;
};

/* As the environment says; how launches run from now on. */
Schedule from_environment();
void use(const Schedule &schedule);

/* The one device. */
tile_device *device();

/* Compiles a CUDA source whose kernel takes its argument, of type, by value; "" or what is wrong.
 * The kernel lives as long as the process. */
std::string compile(const std::string &name, const std::string &type, const std::string &text,
                    void **kernel);

/* Of what a kernel takes by value. */
size_t argument_bytes(const void *kernel);

/* Runs CUDA blocks 0 .. blocks - 1 of a kernel with bytes of shared memory; "" or what is wrong.
 * threads 0: as the schedule says. */
std::string run(void *kernel, const void *argument, int64_t blocks, size_t shared, int threads = 0);

/* What was compiled, found compiled, and launched. */
struct Counts {
    int64_t compiled = 0, found = 0, launches = 0;
    double compile_seconds = 0, run_seconds = 0;
};
Counts counts();

} // namespace emulator

#endif
