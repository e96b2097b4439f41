#!/bin/sh
# check.sh [FOLDER]: checks the style rules that a machine can check: sizes, first lines, unique
# names, include direction, the header contract, layout. Prints FILE:LINE: what, exits with 1.
# A size limit may be passed for a reason that stands in the file: /* size: REASON */.
set -u
tools=$(cd "$(dirname "$0")" && pwd)
. "$tools/files.sh"
cd "${1:-$tools/..}" || exit 2
export LC_ALL=C
found=$(mktemp)
trap 'rm -f "$found"' EXIT

list_formatted | grep -q . || { echo "check.sh: no source files in $(pwd)" >&2; exit 2; }

awk -f "$tools/check_text.awk" \
    $(list_formatted) $(list_files '*.def') \
    $(list_files '*.sh' '*.awk' '*.bzl' '*.lds' BUILD WORKSPACE .bazelrc run) >>"$found"

# A name is unique, so that a message or a search leads to one file. A benchmark's is what it
# measures.
list_files '*.c' '*.h' '*.cc' '*.cu' '*.inc' '*.def' '*.sh' '*.awk' '*.bzl' |
    awk -F/ '$NF == "run.sh" || $1 == "benchmarks" { next }
        $NF in first { print $0 ":1: has the name of " first[$NF]; next }
        { first[$NF] = $0 }' >>"$found"

marks='(^|[^A-Za-z_])(TO''DO|FIX''ME|XX''X|HA''CK)([^A-Za-z_]|$)'
grep -nE "$marks" /dev/null $(list_files '*') |
    sed 's/:\([0-9]*\):.*/:\1: unfinished mark/' >>"$found"

# What a user sees: the interfaces of core, cuda and tape, and every family's header.
public=$(list_files '*_api.h' '*_ops.h' | grep -E '^(core|cuda|tape|ops)/')
[ -n "$public" ] && awk -f "$tools/check_contract.awk" $public >>"$found"

if have_clang_format; then
    clang-format --dry-run -Werror $(list_formatted) 2>&1 |
        sed -n 's/^\([^ ]*:[0-9]*\):[0-9]*: error: .*/\1: layout: run tools\/format.sh/p' |
        sort -u >>"$found"
else
    echo "clang-format 14 is not installed: layout not checked"
fi

# The awk scripts report the reasons that were used as lines of their own.
grep -c '^reason ' "$found" | sed 's/$/ reasoned excesses of size/'
grep -v '^reason ' "$found" && exit 1
echo "style: nothing found"
