# setup.sh: what the run.sh scripts share; sourced, after `top` is set to the checkout.

# A Debian package and a file that it brings, by which it counts as installed.
needed='bazel-bootstrap /usr/bin/bazel
bazel-platforms /usr/share/bazel/platforms/BUILD
bazel-rules-java /usr/share/bazel/rules/java
bazel-rules-proto /usr/share/bazel/rules/proto
g++ /usr/bin/g++
googletest /usr/src/googletest/googletest/src/gtest.cc
libcairo2-dev /usr/include/cairo/cairo.h
libnlopt-dev /usr/include/nlopt.h
libsleef-dev /usr/include/*/sleef.h
pkg-config /usr/bin/pkg-config'

missing_packages() {
    echo "$needed" | while read -r package file; do
        ls $file >/dev/null 2>&1 || printf '%s ' "$package"
    done
}

# Installs what is missing, or says what it is and exits. All output goes to stderr.
install_missing() {
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing: $missing" >&2
        {
            export DEBIAN_FRONTEND=noninteractive
            apt-get -q -o DPkg::Lock::Timeout=300 update
            apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing
        } </dev/null >&2
        missing=$(missing_packages)
        [ -n "$missing" ] || return 0
        echo "could not be installed: $missing" >&2
        exit 1
    fi
    echo "missing Debian packages: $missing" >&2
    echo "as root: apt-get install $missing" >&2
    exit 1
}

# bazel with a limit: without a loopback interface its client waits for ever. Foreground: Ctrl-C.
run_bazel() {
    home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
    output=
    if ! mkdir -p "$home/.cache/bazel" 2>/dev/null || ! [ -w "$home/.cache/bazel" ]; then
        output=--output_user_root=${TMPDIR:-/tmp}/tiletape-bazel-$(id -u)
    fi
    # Links into another output folder would count as packages of this tree.
    find "$top" -maxdepth 1 -type l -name 'bazel-*' -exec rm -f {} +
    limit=${TILETAPE_BUILD_SECONDS:-3000}
    (cd "$top" && timeout --foreground "$limit" bazel $output "$@") </dev/null
}
