"""Stand-in: Bazel 9 has CcInfo only here, Bazel 4 only as a global."""

load(":native.bzl", "NativeCcInfo")

CcInfo = NativeCcInfo
