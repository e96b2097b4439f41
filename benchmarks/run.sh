#!/bin/sh
# run.sh [NAME [OPTION...]]: builds with opt and runs one benchmark, or all of them; the ratios to
# hand-written C come once more at the end, in one table.
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

# The ratios of all programs in one table: native code, in brackets the interpreter.
table() {
    awk '$1 == "ratio" && NF == 6 {
        native = sub(/_native$/, "", $2); row = $2 " " $3 " " $4
        if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
        value[row, native, $5] = $6
        if (native) shown[row] = 1
    }
    function cell(row, threads) {
        return (row, 1, threads) in value ? value[row, 1, threads] " (" \
            ((row, 0, threads) in value ? value[row, 0, threads] : "-") ")" : "-"
    }
    END {
        for (k = 1; k <= rows; k++) {
            if (!(order[k] in shown)) continue
            split(order[k], part, " ")
            if (!begun++) printf "\n%-10s %-12s %-12s %16s %16s\n", "time/hand", "what", "grid",
                                 "1 thread", "2 threads"
            printf "%-10s %-12s %-12s %16s %16s\n", part[1], part[2], part[3],
                   cell(order[k], 1), cell(order[k], 2)
        }
    }' "$1"
}

results=$(mktemp)
trap 'rm -f "$results"' EXIT
failed=0
for name in $names; do
    { "$top/bazel-bin/benchmarks/$name" "$@" || echo "failed $name"; } | tee -a "$results"
done
table "$results"
grep -q '^failed ' "$results" && failed=1
exit $failed
