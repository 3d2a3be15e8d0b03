"""For Bazel what cmake/InlayConfigs.cmake and cmake/InlayModelBinary.cmake do for CMake."""

load("@rules_cc//cc:defs.bzl", "cc_binary")

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
            " ".join(ctx.attr.configs),
        ],
        command = """
set -eu
declarations= calls=
while read -r name type header; do
  case $name in '' | '#'*) continue ;; esac
  case " ${5:-$name} " in *" $name "*) ;; *) continue ;; esac
  sed -e "s|@INLAY_CONFIG_NAME@|$name|g" -e "s|@INLAY_CONFIG_TYPE@|$type|g" \
      -e "s|@INLAY_CONFIG_HEADER@|$header|" "$2" >"$4/config_$name.cc"
  declarations="$declarations""ConfigEntry MakeConfigEntry_$name(); "
  calls="$calls""MakeConfigEntry_$name(), "
done <"$1"
[ -n "$declarations" ] || { echo "no config of the list is '$5'" >&2; exit 1; }
sed -e "s|@INLAY_CONFIG_DECLARATIONS@|$declarations|" -e "s|@INLAY_CONFIG_CALLS@|$calls|" \
    "$3" >"$4/config_entries.cc"
""",
    )
    return [DefaultInfo(files = depset([folder]))]

config_sources = rule(
    implementation = _config_sources_impl,
    doc = "Writes one source per config of the list, and one that lists them, into a folder.",
    attrs = {
        "configs": attr.string_list(doc = "Names from the list; none: all."),
        "list": attr.label(allow_single_file = True, mandatory = True),
        "config_template": attr.label(allow_single_file = True, mandatory = True),
        "entries_template": attr.label(allow_single_file = True, mandatory = True),
    },
)

def inlay_model_binary(name, config, weights = None, server = False, visibility = None):
    """A program like inlay with one config compiled in and, if wanted, its model inside.

    Args:
      name: of the program.
      config: a name from configs/config_list.txt, "gemma_3_1b".
      weights: a GGUF file; packed, it becomes part of the program's file.
      server: whether the commands serve, replay and chat --server are in it.
      visibility: of the program.
    """

    # Label() is of this repository, wherever the macro is called; a string would be of the caller's.
    config_sources(
        name = name + "_config_sources",
        configs = [config],
        config_template = Label("//gemma_like:config.cc.in"),
        entries_template = Label("//gemma_like:config_entries.cc.in"),
        list = Label("//configs:config_list.txt"),
    )
    program = name + "_program" if weights else name

    # The list of configs among these sources is found before that of the engine's library, whose
    # own configs then stay out. So do the code for hubs and the server, where what stands in for
    # them is among them.
    cc_binary(
        name = program,
        srcs = [Label("//tools:main.cc"), Label("//tools:no_hub_hooks.cc"), name + "_config_sources"] +
               ([] if server else [Label("//tools:no_server_hooks.cc")]),
        copts = ["-std=c++20"],
        linkstatic = True,
        visibility = visibility,
        deps = [Label("//tools"), Label("//gemma_like:engine")],
    )
    if weights:
        native.genrule(
            name = name + "_bundle",
            srcs = [weights],
            outs = [name],
            cmd = "$(location " + program + ") bundle $(location " + weights + ") -o $@",
            executable = True,
            tools = [program],
            visibility = visibility,
        )
