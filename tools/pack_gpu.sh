#!/bin/sh
# pack_gpu.sh FOLDER: collects what a machine with a GPU needs to run tests/gpu.sh and
# benchmarks/gpu.sh without Bazel: the programs, the libraries that the system may lack, the data.
# That machine brings the driver, and NVRTC and compute-sanitizer from its CUDA toolkit.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/setup.sh"
[ $# = 1 ] || { echo "usage: pack_gpu.sh FOLDER" >&2; exit 2; }
install_missing
run_bazel build --config=opt --noshow_progress //tests:gpu_suite //benchmarks:gpu >&2 || exit 1
mkdir -p "$1/tests" "$1/benchmarks" "$1/lib" && to=$(cd "$1" && pwd) || exit 1
for program in tests/gpu_suite benchmarks/gpu; do
    install -m 755 "$top/bazel-bin/$program" "$to/$program" || exit 1
    install -m 755 "$top/${program%/*}/gpu.sh" "$to/${program%/*}/gpu.sh" || exit 1
    ldd "$to/$program" | awk '$1 ~ /^lib(sleef|gomp|stdc\+\+|gcc_s)\./ { print $3 }'
done | sort -u | xargs -I{} cp -L {} "$to/lib" || exit 1
rm -rf "$to/tests/data"
cp -R "$top/tests/data" "$to/tests/data" || exit 1
du -sh "$to"
