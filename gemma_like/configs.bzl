"""config_sources: for Bazel what cmake/InlayConfigs.cmake does for CMake."""

def _config_sources_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    ctx.actions.run_shell(
        inputs = [ctx.file.list, ctx.file.config_template, ctx.file.entries_template],
        outputs = [folder],
        arguments = [
            ctx.file.list.path,
            ctx.file.config_template.path,
            ctx.file.entries_template.path,
            folder.path,
        ],
        command = """
set -eu
declarations= calls=
while read -r name type header; do
  case $name in '' | '#'*) continue ;; esac
  sed -e "s|@INLAY_CONFIG_NAME@|$name|g" -e "s|@INLAY_CONFIG_TYPE@|$type|g" \
      -e "s|@INLAY_CONFIG_HEADER@|$header|" "$2" >"$4/config_$name.cc"
  declarations="$declarations""ConfigEntry MakeConfigEntry_$name(); "
  calls="$calls""MakeConfigEntry_$name(), "
done <"$1"
sed -e "s|@INLAY_CONFIG_DECLARATIONS@|$declarations|" -e "s|@INLAY_CONFIG_CALLS@|$calls|" \
    "$3" >"$4/config_entries.cc"
""",
    )
    return [DefaultInfo(files = depset([folder]))]

config_sources = rule(
    implementation = _config_sources_impl,
    doc = "Writes one source per config of the list, and one that lists them, into a folder.",
    attrs = {
        "list": attr.label(allow_single_file = True, mandatory = True),
        "config_template": attr.label(allow_single_file = True, mandatory = True),
        "entries_template": attr.label(allow_single_file = True, mandatory = True),
    },
)
