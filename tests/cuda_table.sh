#!/bin/sh
# cuda_table.sh [ARCH] [FOLDER]: what the generated CUDA code of some simulations compiles to:
# registers, shared memory, bytes that are spilt, and how many instructions of a kind. It needs the
# CUDA Toolkit and no GPU.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/setup.sh"
arch=${1:-sm_90}
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
run_bazel build --config=opt --noshow_progress //tests:cuda_table >&2 || exit 1
binaries=$(run_bazel info --config=opt bazel-bin 2>/dev/null) || exit 1
"$binaries/tests/cuda_table" "$folder" "$arch" || exit 1
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
command -v cuobjdump >/dev/null || {
    echo "cuda_table.sh: cuobjdump is not there; it is part of the CUDA Toolkit" >&2
    exit 1
}
printf '%-22s %5s %6s %6s %6s %6s %6s %6s %5s %5s %5s\n' \
    "kernel ($arch)" regs stack load load16 store st16 shared red mma wait
for cubin in "$folder"/*.cubin; do
    name=$(basename "$cubin" .cubin)
    usage=$(cuobjdump -res-usage "$cubin" 2>&1 | grep -o 'REG:[0-9]* STACK:[0-9]*' |
        sort -t: -k2 -n | tail -n 1)
    cuobjdump -sass "$cubin" | awk -v name="$name" -v usage="$usage" '
        / LDG/ { load++ } / LDG.*\.128/ { load16++ } / STG/ { store++ } / STG.*\.128/ { store16++ }
        / LDS| STS/ { shared++ } / RED| ATOM/ { red++ } / HMMA/ { mma++ } / BAR\.SYNC/ { wait++ }
        END {
            split(usage, part, /[: ]/)
            printf "%-22s %5d %6d %6d %6d %6d %6d %6d %5d %5d %5d\n", name, part[2], part[4], load,
                load16, store, store16, shared, red, mma, wait
        }'
done
