#!/bin/sh
# random.sh COUNT SEED: builds the generator of random programs and runs COUNT of them from SEED on.
# Prints each program that fails, shrunk, last `N passed, N failed`.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -ne 2 ]; then
    echo "usage: tests/random.sh COUNT SEED" >&2
    exit 2
fi
. "$top/tools/setup.sh"
install_missing
run_bazel build --config=opt --noshow_progress //tests:random >&2 || exit 1
binaries=$(run_bazel info --config=opt bazel-bin 2>/dev/null) || exit 1
exec "$binaries/tests/random" "$1" "$2"
