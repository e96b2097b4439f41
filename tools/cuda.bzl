"""Compiles CUDA sources ahead of time with nvcc: one cubin for each source and architecture."""

load("@cuda//:defs.bzl", "CUDA_ROOT", "HAVE_CUDA")

def _cuda_cubins_impl(ctx):
    cubins = []
    for arch in ctx.var.get("cuda_archs", "sm_90").split(","):
        for src in ctx.files.srcs:
            name = src.basename.rpartition(".")[0]
            cubin = ctx.actions.declare_file("%s/%s.%s.cubin" % (ctx.label.name, name, arch))
            cubins.append(cubin)
            ctx.actions.run_shell(
                inputs = ctx.files.srcs + ctx.files.hdrs,
                outputs = [cubin],
                # fmad: contraction is an explicit fma op, as on the CPU.
                command = " ".join([
                    CUDA_ROOT + "/bin/nvcc -std=c++17 -I. -I" + ctx.bin_dir.path,
                    "-arch=%s -cubin -fmad=false -Werror all-warnings" % arch,
                    "-o %s %s" % (cubin.path, src.path),
                ]),
                mnemonic = "Nvcc",
                progress_message = "Compiling %s for %s" % (src.short_path, arch),
                use_default_shell_env = True,
            )
    return [DefaultInfo(files = depset(cubins))]

_cuda_cubins = rule(
    implementation = _cuda_cubins_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = True),
    },
)

def cuda_emitted(name, program, parts):
    """NAME_0.cu, NAME_1.cu, ...: what `PROGRAM I PARTS` prints for each I below parts."""
    sources = ["%s_%d.cu" % (name, i) for i in range(parts)]
    for i in range(parts):
        native.genrule(
            name = "%s_%d" % (name, i),
            # A source and not a tool, so that the library is not built twice.
            srcs = [program],
            outs = [sources[i]],
            cmd = "$(location %s) %d %d > $@" % (program, i, parts),
            tags = ["unsanitized"],
        )
    return sources

def cuda_cubins(name, srcs, hdrs, **kwargs):
    """srcs for sm_90, or for --define=cuda_archs=sm_80,sm_90; nothing without a toolkit."""
    _cuda_cubins(
        name = name,
        srcs = srcs if HAVE_CUDA else [],
        hdrs = hdrs,
        tags = ["unsanitized"],
        **kwargs
    )
