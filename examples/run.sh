#!/bin/sh
# run.sh: installs what is missing, builds the main example and runs it with the given options.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/setup.sh"
install_missing

echo "building examples/fwi" >&2
log=$(mktemp)
if ! run_bazel build --config=opt --noshow_progress //examples/fwi:fwi >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    exit 1
fi
rm -f "$log"

# Not by `bazel run`: the folder, the terminal and Ctrl-C are the user's.
export TILETAPE_DATA="$top/examples/fwi/data"
exec "$top/bazel-bin/examples/fwi/fwi" "$@"
