#!/bin/sh
# golden.sh FOLDER: builds the runner of known answers and runs it on a folder with cases.txt.
# Prints a line for each case that fails or is skipped, last `N passed, N failed, N skipped`.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -ne 1 ]; then
    echo "usage: tests/golden.sh FOLDER" >&2
    exit 2
fi
. "$top/tools/setup.sh"
install_missing
run_bazel build --config=opt --noshow_progress //tests:golden >&2 || exit 1
binaries=$(run_bazel info --config=opt bazel-bin 2>/dev/null) || exit 1
exec "$binaries/tests/golden" "$1"
