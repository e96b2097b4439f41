#!/bin/sh
# planted_test.sh: tools/check.sh finds nothing in a clean tree and each fault that is planted.
set -u
check=$PWD/tools/check.sh
tree=$TEST_TMPDIR/tree
failed=0

# A small tree that keeps to the rules.
clean() {
    rm -rf "$tree"
    mkdir -p "$tree/core" "$tree/ops/unary"
    cat >"$tree/core/core_api.h" <<'END'
/* core_api.h: the API. */
#ifndef TILE_CORE_TILETAPE_H
#define TILE_CORE_TILETAPE_H

/* What a call came to. */
typedef enum tile_status { TILE_OK } tile_status;

/* tile_store: write t to a.
 *
 *   a[i] = t[i]
 *
 * in       a array; t tile
 * repeats  same bits on every run
 * errors   TILE_E_SHAPE
 */
tile_status tile_store(int a, /* the array */
                       int t);

/* tile_add, tile_sub: sum and difference. */
int tile_add(int a, int b);
int tile_sub(int a, int b);

#endif
END
    printf '/* unary_ops.h: the calls. */\n' >"$tree/ops/unary/unary_ops.h"
    printf '/* unary.c: the rows. */\n' >"$tree/ops/unary/unary.c"
}

# plant WHAT SCRIPT: after SCRIPT has changed the tree, the checker must say WHAT.
plant() {
    clean
    (cd "$tree" && eval "$2")
    output=$("$check" "$tree" 2>&1)
    code=$?
    if [ $code -ne 1 ] || ! echo "$output" | grep -qF "$1"; then
        echo "not caught ($code): $1"
        echo "$output"
        failed=1
    fi
}

clean
if ! "$check" "$tree"; then echo "a clean tree is not clean"; failed=1; fi

h=core/core_api.h c=ops/unary/unary.c
lines() { awk -v n="$1" "BEGIN { for (i = 0; i < n; i++) print \"$2\" }"; }

plant "unary.c:1: first line" "echo 'int x;' >$c"
plant "columns, limit 100" "lines 60 'a ' | tr -d '\n' | sed 's/ \$//' >>$c"
plant "501 lines, limit 500" "lines 500 'int x;' >>$c"
plant "function of 63 lines" "{ echo 'int f(void) {'; lines 61 '    g();'; echo '}'; } >>$c"
plant "macro of 9 lines" \
    "{ echo '#define A \\\\'; lines 7 '    b \\\\\\\\'; echo '    c'; } >>$c"
plant "a loop in a macro" "echo '#define EACH(i) for (;;)' >>$c"
plant "a size reason that nothing needs" "echo '/* size: one table */' >>$c"
plant "not ASCII" "printf '/* \303\251 */\n' >>$c"
plant "space at the end" "echo 'int x; ' >>$c"
plant "a banner" "echo '/* ---- part ---- */' >>$c"
plant "includes upward: tape/" "echo '#include \"tape/record.h\"' >>$c"
plant "includes upward: ops/" \
    "printf '/* a.c: a. */\n#include \"ops/unary/unary_ops.h\"\n' >core/a.c"
plant "never prints" "printf 'int f(void) {\n    exit(1);\n}\n' >>$c"
plant "has the name of" "cp $c core/unary.c"
plant "unfinished mark" "echo '/* TO''DO */' >>$c"
plant "tile_sub: the block above names tile_add" "sed -i 's/tile_add, tile_sub:/tile_add:/' $h"
plant "tile_store: no block above it" "sed -i 's/^ \*\/\$/ *\/\n/' $h"
plant "field out of order: in" "sed -i 's/^ \* errors.*/&\n * in       a/' $h"
plant "no field of the contract: error" \
    "sed -i 's/^ \* errors  /* error  /; s/^\* error/ * error/' $h"
plant "has no field errors" "sed -i '/^ \* errors/d' $h"
plant "tile_two: no block above it" "echo 'int tile_two(void);' >>ops/unary/unary_ops.h"
plant "unary_ops.h:4: tile_two: no block above it" \
    "printf '/* unary_ops.h: calls.\n * More. */\n\nint tile_two(void);\n' >ops/unary/unary_ops.h"
plant "no comment above a public declaration" "echo 'typedef struct tape tape;' >>$h"
plant "no comment above a public macro" "sed -i '/^#endif/i #define TILE_MAX 6' $h"
plant "more than 8 parameters" \
    "sed -i '/^int tile_add/s/int b/int b, int c, int d, int e, int f, int g, int h, int i/' $h"

mkdir -p "$TEST_TMPDIR/empty"
"$check" "$TEST_TMPDIR/empty" && failed=1
exit $failed
