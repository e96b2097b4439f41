"""A program of examples/: written as a user's, built against the header that we install."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//tools:flags.bzl", "PROGRAM_FLAGS")
load("//tools:tile_test.bzl", "tile_tests")

# Headers below /usr/include need no declaration.
_SYSTEM = {
    "cairo": struct(copts = ["-isystem/usr/include/cairo"], linkopts = ["-lcairo"]),
    "nlopt": struct(copts = [], linkopts = ["-lnlopt"]),
}

def tile_example(name, libs = [], deps = [], copts = [], linkopts = [], smoke = None):
    """//examples/NAME:NAME from NAME.c (with main), the folder's other *.c, and data/.

    The other files are also a library, NAME_lib, that the folder's *_test.cc are linked to.

    Args:
      name: the folder's name.
      libs: system libraries by name: cairo, nlopt.
      deps: more targets.
      copts: more compiler flags.
      linkopts: more linker flags.
      smoke: arguments with which the program, quick, is also a test that must exit with 0.
    """
    flags = PROGRAM_FLAGS + copts
    links = linkopts + ["-lm"]
    for lib in libs:
        flags = flags + _SYSTEM[lib].copts
        links = links + _SYSTEM[lib].linkopts
    data = native.glob(["data/**"])
    cc_library(
        name = name + "_lib",
        srcs = native.glob(["*.c"], exclude = [name + ".c"]),
        hdrs = native.glob(["*.h"]),
        copts = flags,
        data = data,
        linkopts = links,
        visibility = ["//visibility:public"],
        deps = ["//:tiletape"] + deps,
    )
    program = dict(srcs = [name + ".c"], copts = flags, deps = [":%s_lib" % name])
    cc_binary(name = name, visibility = ["//visibility:public"], **program)
    if smoke != None:
        cc_test(
            name = name + "_smoke_test",
            size = "small",
            args = smoke,
            env = {"TILETAPE_DATA": native.package_name() + "/data"},
            **program
        )
    tile_tests(
        native.glob(["*_test.cc"]),
        deps = [":%s_lib" % name],
    )
