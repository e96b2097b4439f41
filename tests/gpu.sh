#!/bin/sh
# gpu.sh: the whole suite on CUDA device 0, then compute-sanitizer's memcheck and racecheck on a
# short list. Runs what tools/pack_gpu.sh collected, without Bazel; in a checkout it builds first.
# The last line is `N passed, N failed`.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
suite=$top/tests/gpu_suite
if ! [ -x "$suite" ]; then
    . "$top/tools/setup.sh"
    install_missing
    run_bazel build --config=opt --noshow_progress //tests:gpu_suite >&2 || exit 1
    suite=$top/bazel-bin/tests/gpu_suite
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TILE_TEST_DEVICE=cuda TEST_TMPDIR="$scratch"
cd "$top" || exit 1

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sed 's/^/GPU: /'

# A crash takes only its part of the suite with it, and counts as a failure.
parts=16
part=0
while [ $part -lt $parts ]; do
    log=$scratch/part$part
    GTEST_TOTAL_SHARDS=$parts GTEST_SHARD_INDEX=$part "$suite" --gtest_brief=1 >"$log" 2>&1 ||
        grep -q '^\[  FAILED  \]' "$log" || echo "[  FAILED  ] part $part ended early" >>"$log"
    grep -v -e ' Skipped$' -e ' does not exist$' "$log"
    part=$((part + 1))
done

# sanitize TOOL FILTER: one line for gtest's own, so that it counts with the rest.
sanitize() {
    checker=${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer
    [ -x "$checker" ] || checker=$(command -v compute-sanitizer) || {
        echo "[  FAILED  ] $1: compute-sanitizer not found"
        return
    }
    if "$checker" --tool "$1" --error-exitcode 9 "$suite" --gtest_brief=1 \
        --gtest_filter="$2" >"$scratch/$1.out" 2>&1 &&
        grep -q '^\[  PASSED  \] [1-9]' "$scratch/$1.out"; then
        echo "[  PASSED  ] 1 test: $1"
    else
        tail -40 "$scratch/$1.out"
        echo "[  FAILED  ] $1"
    fi
}
short='Memory.*:Reduce.*:Linalg.*:StackTest.*:TapeTest.*'
{
    sanitize memcheck "$short"
    sanitize racecheck "$short"
} | tee "$scratch/sanitizers"

# gtest says `[  FAILED  ] NAME (N ms)` where a test fails, and once more in its list at the end.
cat "$scratch"/part* "$scratch/sanitizers" | awk '
    /^\[  PASSED  \] [0-9]+ test/ { passed += $4 }
    /^\[  FAILED  \] / && !/^\[  FAILED  \] [0-9]+ tests?,/ && !seen[$4]++ { failed++ }
    END { print passed + 0 " passed, " failed + 0 " failed"; exit failed > 0 || !passed }'
