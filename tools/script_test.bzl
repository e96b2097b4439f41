"""A test that is a script: sh_test is not built into current Bazel."""

def _script_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = script, target_file = ctx.file.script, is_executable = True)
    files = ctx.runfiles(files = ctx.files.data + [ctx.file.script])
    return [DefaultInfo(executable = script, runfiles = files)]

script_test = rule(
    implementation = _script_test_impl,
    attrs = {
        "script": attr.label(allow_single_file = True, mandatory = True),
        "data": attr.label_list(allow_files = True),
    },
    test = True,
)
