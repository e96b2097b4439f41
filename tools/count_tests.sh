#!/bin/sh
# count_tests.sh CHECKOUT LOG STATUS: counts the cases of the targets that the summary in LOG names,
# from their XML, and prints `N passed, N failed`. Exits with 1 when something failed.
# A target without XML (it did not build) is one failure, and so is a build that failed otherwise.
top=$1 log=$2 status=$3

# Bazel names only the first five of the targets that did not build, or were not run.
absent=$(awk '/^Executed [0-9]+ out of/ {
    for (i = 2; i < NF; i++)
        if ($(i + 1) ~ /^fails?$/ && $(i + 2) == "to" || $(i + 2) ~ /^skipped/) sum += $i
} END { print sum + 0 }' "$log")

# The old log of a target that is gone or was not run must not count: only the summary's targets.
sed -n 's|^//\([^ ]*\)  *\(.*\)|\1 \2|p' "$log" | sed 's/(cached) //' |
    grep -E '^[^ ]+ (PASSED|FAILED|TIMEOUT|FLAKY)' | grep -v 'FAILED TO BUILD' | sort -u |
    while read -r target verdict; do
        echo "target $verdict"
        find -H "$top/bazel-testlogs/$(echo "$target" | tr : /)" -name test.xml -exec cat {} +
    done | awk -v status="$status" -v absent="$absent" '
function close_case() {
    if (!open) return
    if (bad) failed++
    else if (skip) skipped++
    else passed++
    cases++
    failures += bad
    open = bad = skip = 0
}
function close_target() {
    close_case()
    # Each target says something: a red one at least one failure, a green one at least one case.
    if (target && (verdict_red ? !failures : !cases)) failed++
    target = cases = failures = 0
}
/^target / { close_target(); target = 1; verdict_red = $2 != "PASSED" && $2 != "FLAKY"; next }
/<testcase / {
    close_case()
    open = 1
    if (/status="notrun"/ || /result="(skipped|suppressed)"/) skip = 1
}
/<failure/ || /<error / { bad = 1 }
END {
    close_target()
    failed += absent
    if (status != 0 && !failed) failed = 1
    printf "%d passed, %d failed", passed, failed
    if (skipped) printf ", %d skipped", skipped
    print ""
    exit failed > 0
}'
