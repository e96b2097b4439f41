#!/bin/sh
# full.sh: what is too long for every run: each op on a window with each element type, rank, kind of
# offset, of index and of padding, and 20,000 random programs. The last line is
# `N passed, N failed`.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/setup.sh"
install_missing
run_bazel build --config=opt --noshow_progress //tests:product //tests:random >&2 || exit 1
binaries=$(run_bazel info --config=opt bazel-bin 2>/dev/null) || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{
    "$binaries/tests/product"
    "$binaries/tests/random" 20000 1
} | tee "$log"
awk '/^[0-9]+ passed, [0-9]+ failed$/ { n++; passed += $1; failed += $3 }
    END { print passed " passed, " failed + (n < 2) " failed"; exit failed > 0 || n < 2 }' "$log"
