#!/bin/sh
# fake_cuda_test.sh: tests of arrays, tapes and errors once more, every context on the fake CUDA
# device: whatever touches a device's memory from the host ends the process.
# Left out: an op of the test's own, which has no CUDA code, and host addresses.
export TILE_TEST_DEVICE=cuda TILE_TEST_CUDA=fake
export TILE_EMULATOR_CACHE="${TILE_EMULATOR_CACHE:-$TEST_TMPDIR/emulator}"
export XDG_CACHE_HOME="$TEST_TMPDIR/cache"
without=TapeTest.AnOpWithoutAnAdjointNamesKernelOpFileAndLine
failed=0
unset GTEST_OUTPUT XML_OUTPUT_FILE
for test in execution_error_test gradcheck_test half_tape_test npy_test sketch_test struct_test \
    tape_test warm_test; do
    echo "$test"
    "tests/$test" --gtest_brief=1 --gtest_filter="-$without" || failed=1
done
exit $failed
