#!/bin/sh
# format.sh [FILE...]: lays out the files, or all files, with clang-format 14.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/files.sh"
if ! have_clang_format; then
    echo "format.sh: clang-format 14 is missing (Debian 12: clang-format)" >&2
    exit 1
fi
if [ $# -eq 0 ]; then
    cd "$top"
    set -- $(list_formatted)
fi
[ $# -eq 0 ] || clang-format -i "$@"
