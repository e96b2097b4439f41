#!/bin/sh
# run.sh [NAME [OPTION...]]: builds with opt and runs one benchmark, or all of them.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/setup.sh"
install_missing

names=$(cd "$top/benchmarks" && ls *.c | sed -n '/_/!s/\.c$//p' | grep -vx -e bench -e gpu)
if [ $# -gt 0 ]; then
    if ! echo "$names" | grep -qxF -e "$1"; then
        echo "benchmarks/run.sh: no benchmark '$1'; there are:" $names >&2
        exit 2
    fi
    names=$1
    shift
fi

echo "building benchmarks:" $names >&2
targets=$(for name in $names; do echo "//benchmarks:$name"; done)
run_bazel build --config=opt --noshow_progress $targets >&2 || exit 1

failed=0
for name in $names; do
    "$top/bazel-bin/benchmarks/$name" "$@" || failed=1
done
exit $failed
