"""Finds the CUDA Toolkit: CUDA_HOME, else /usr/local/cuda. CUDA_HOME=none means absent."""

_BUILD = """
load("@rules_cc//cc:defs.bzl", "cc_library")

# Headers outside /usr/include must be declared; the CCCL tree is large and not needed.
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/*", "include/nv/**"]),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
"""

_DEFS = """
HAVE_CUDA = {have}
CUDA_ROOT = "{root}"
"""

def _cuda_repository_impl(rctx):
    chosen = rctx.os.environ.get("CUDA_HOME", "")
    root = None
    for folder in [chosen] if chosen == "none" else [chosen, "/usr/local/cuda"]:
        if folder.startswith("/") and root == None and rctx.path(folder + "/bin/nvcc").exists:
            root = folder
    if root == None:
        # buildifier: disable=print
        print("no CUDA Toolkit (CUDA_HOME, /usr/local/cuda): the CUDA kernels are not built")
    elif rctx.path(root + "/include").exists:
        rctx.symlink(root + "/include", "include")
    rctx.file("BUILD", _BUILD)
    rctx.file("defs.bzl", _DEFS.format(have = root != None, root = root or ""))

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    configure = True,
    environ = ["CUDA_HOME"],
    local = True,
)
