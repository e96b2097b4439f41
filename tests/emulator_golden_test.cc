/* emulator_golden_test.cc: known answers by generated CUDA source on the emulator: the programs;
 * with TILE_EMULATOR_ALL=1 in the environment every folder, by several block sizes and orders. */
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/emulator/emulator.h"
#include "tests/golden_runner.h"

namespace {

using emulator::Order;
using emulator::Schedule;

int run(const char *folder, const Schedule &schedule) {
    emulator::use(schedule);
    return golden::run_folder(std::string("tests/data/golden/") + folder, stdout);
}

TEST(EmulatorGoldenTest, AgreesWithKnownAnswers) {
    const char *all = std::getenv("TILE_EMULATOR_ALL");
    tile_device_use(emulator::device());
    EXPECT_EQ(0, run("programs", {33, Order::kDescending, 1}));
    EXPECT_EQ(0, run("programs", {64, Order::kShuffled, 2}));
    EXPECT_GT(emulator::counts().launches, 24);
    if (!all || *all != '1') return;
    const Schedule schedules[] = {{1, Order::kAscending, 1},
                                  {32, Order::kDescending, 1},
                                  {33, Order::kShuffled, 1},
                                  {256, Order::kShuffled, 2}};
    for (const char *folder : {"programs", "ops", "indexed", "partition"})
        for (const Schedule &schedule : schedules) EXPECT_EQ(0, run(folder, schedule)) << folder;
}

} // namespace
