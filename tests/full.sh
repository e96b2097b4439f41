#!/bin/sh
# full.sh: what is too long for every run: each op on a window with each element type, rank, kind of
# offset, of index and of padding; 20,000 random programs; generated CUDA source of all problems of
# the op suite and of all known answers, on the emulator and by NVRTC. The last line is
# `N passed, N failed`.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/setup.sh"
install_missing
cuda="emulator_suite_test emulator_golden_test"
[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] && cuda="$cuda nvrtc_cuda_test"
run_bazel build --config=opt --noshow_progress //tests:product //tests:random \
    $(printf '//tests:%s ' $cuda) >&2 || exit 1
binaries=$(run_bazel info --config=opt bazel-bin 2>/dev/null) || exit 1
log=$(mktemp)

# run_all NAME: a test with everything that it leaves out elsewhere; its `N passed, N failed`.
run_all() {
    TILE_EMULATOR_ALL=1 TILE_NVRTC_ALL=1 "$binaries/tests/$1" --gtest_brief=1 |
        awk '/^\[==========\]/ { ran = $2 } /^\[  PASSED  \]/ { passed = $4 } { print }
            END { print passed + 0 " passed, " (ran ? ran - passed : 1) " failed" }'
}
trap 'rm -f "$log"' EXIT
{
    "$binaries/tests/product"
    "$binaries/tests/random" 20000 1
    cd "$top"
    for test in $cuda; do run_all "$test"; done
} | tee "$log"
awk -v want="$((2 + $(echo $cuda | wc -w)))" '
    /^[0-9]+ passed, [0-9]+ failed$/ { n++; passed += $1; failed += $3 }
    END {
        print passed " passed, " failed + (n < want) " failed"
        exit failed > 0 || n < want
    }' "$log"
