#!/bin/sh
# gpu.sh [--quick] [--cpu]: measures kernels on CUDA device 0. Runs what tools/pack_gpu.sh
# collected, without Bazel; in a checkout it builds first.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
program=$top/benchmarks/gpu
if ! [ -x "$program" ]; then
    . "$top/tools/setup.sh"
    install_missing
    run_bazel build --config=opt --noshow_progress //benchmarks:gpu >&2 || exit 1
    program=$top/bazel-bin/benchmarks/gpu
fi
exec "$program" "$@"
