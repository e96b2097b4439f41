# files.sh: which files of the tree the style tools look at; sourced, in the tree's top folder.

# list_files NAME...: our own files that match one of the patterns; no data, no build output.
list_files() {
    for pattern in "$@"; do
        find . \( -name .git -o -name 'bazel-*' -o -path ./out -o -name data \) -prune \
            -o -type f -name "$pattern" -print
    done | sed 's|^\./||' | LC_ALL=C sort
}

# What clang-format lays out: tables (.def) keep their columns.
list_formatted() { list_files '*.c' '*.h' '*.cc' '*.cu' '*.inc'; }

have_clang_format() { clang-format --version 2>/dev/null | grep -q 'version 14\.'; }
