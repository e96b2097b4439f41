#!/bin/sh
# install_test.sh: the installed tree, used by a plain compiler: shared, static, one header.
set -eu
root=$TEST_TMPDIR/root
mkdir -p "$root"
tar -C "$root" -xf tiletape.tar
cp tests/install/main.c "$TEST_TMPDIR/main.c"
cd "$TEST_TMPDIR"
export PKG_CONFIG_PATH="$root/lib/pkgconfig"

cc -std=c11 -Wall -Wextra -Werror main.c $(pkg-config --cflags --libs tiletape) -o shared
LD_LIBRARY_PATH=$root/lib ./shared

# -l:NAME takes the archive although the shared library stands beside it.
static=$(pkg-config --static --cflags --libs tiletape | sed 's/-ltiletape/-l:libtiletape.a/')
cc -std=c11 -Wall -Wextra -Werror main.c $static -o static
./static
if readelf -d static | grep -q tiletape; then echo "static: needs libtiletape.so"; exit 1; fi

# Nothing but the API leaves the shared library; the archive keeps to our prefixes.
nm -D --defined-only "$root/lib/libtiletape.so" | awk '$3 !~ /^(tile|tape)_/' >foreign
nm -g --defined-only "$root/lib/libtiletape.a" | awk 'NF == 3 && $3 !~ /^(tile|tape)_/' >>foreign
if [ -s foreign ]; then echo "names without our prefix:"; cat foreign; exit 1; fi
