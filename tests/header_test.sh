#!/bin/sh
# header_test.sh: the installed header is clean in every language it claims, with every compiler
# that is here; each header of the tree compiles alone.
set -u
failed=0

# compile COMPILER STANDARD HEADER OPTION...
compile() {
    compiler=$1 standard=$2 header=$3
    shift 3
    case $standard in c++*) language=c++ ;; *) language=c ;; esac
    printf '#include "%s"\nint main(void) { return 0; }\n' "$header" |
        "$compiler" -x $language -std="$standard" -fsyntax-only -Wall -Wextra -Werror "$@" - &&
        return
    echo "failed: $compiler -std=$standard $header"
    failed=1
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for standard in c99 c11 c17 c++17; do
        compile $compiler $standard tiletape.h -pedantic -Iinclude
    done
done

headers=$(find -L core cuda ops tape -name '*.h' | sort)
for header in $headers; do
    for standard in c11 c++17; do
        compile gcc $standard "$header" -I.
    done
done
echo "headers:" $headers
[ -n "$headers" ] || failed=1
exit $failed
