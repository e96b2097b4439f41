"""One static archive of all objects of some libraries: no built-in rule makes it."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _static_archive_impl(ctx):
    objects = []
    for dep in ctx.attr.deps:
        for linked in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linked.libraries:
                objects += library.pic_objects or library.objects
    archive = ctx.actions.declare_file(ctx.label.name)
    args = ctx.actions.args()
    args.add("rcsD", archive)
    args.add_all(objects, uniquify = True)
    ctx.actions.run(
        executable = "/usr/bin/ar",
        arguments = [args],
        inputs = objects,
        outputs = [archive],
        mnemonic = "StaticArchive",
    )
    return [DefaultInfo(files = depset([archive]))]

static_archive = rule(
    implementation = _static_archive_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)
