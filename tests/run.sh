#!/bin/sh
# run.sh: installs what is missing, builds everything, runs every test. Options go to Bazel
# (--config=asan, //tests:x_test). The last line is `N passed, N failed`, from the runners' XML.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/setup.sh"
install_missing

case " $*" in *" --config="*) ;; *) set -- --config=opt "$@" ;; esac
case " $*" in *" //"*) ;; *) set -- "$@" //... ;; esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
{
    run_bazel test --keep_going --noshow_progress --test_summary=short "$@" 2>&1
    echo $? >"$scratch/status"
} | tee "$scratch/log"

"$top/tools/count_tests.sh" "$top" "$scratch/log" "$(cat "$scratch/status")"
