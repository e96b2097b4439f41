"""One cc_test for each NAME_test.cc."""

load("@cuda//:defs.bzl", "CUDA_ROOT", "HAVE_CUDA")
load("@rules_cc//cc:defs.bzl", "cc_test")
load("//tools:flags.bzl", "TEST_FLAGS")

UNSANITIZED = ["cuda", "driver", "emulator", "nvrtc"]

def tile_tests(srcs, deps = [], data = []):
    """Makes the tests, with GoogleTest, //tests:support and the library linked in.

    NAME_cuda_test.cc may include the toolkit's headers, and is left out where there is none.
    NAME_suite_test.cc is long: its cases are spread over four processes.
    emulator_NAME_test.cc and cuda_NAME_test.cc switch stacks, and nvrtc_NAME_test.cc loads what
    leaks: not sanitized.

    Args:
      srcs: files; those whose name does not end in _test.cc are passed over.
      deps: more libraries.
      data: more files, found at their path in the tree.
    """
    for src in srcs:
        name = src.split("/")[-1].rpartition(".")[0]
        cuda = name.endswith("_cuda_test")
        if not src.endswith("_test.cc") or (cuda and not HAVE_CUDA):
            continue
        cc_test(
            name = name,
            srcs = [src],
            copts = TEST_FLAGS,
            data = ["//tests:data", "//tests/fake_cuda:libfake_cuda.so"] + data,
            env = {"CUDA_HOME": CUDA_ROOT or "none"},
            size = "small",
            tags = ["unsanitized"] if name.split("_")[0] in UNSANITIZED else [],
            shard_count = 4 if name.endswith("_suite_test") else None,
            deps = ["//tests:support", "@googletest//:gtest_main"] + deps +
                   (["@cuda//:headers"] if cuda else []),
        )
