// inlay pack and inlay bundle: model files that load at once, and programs with a bundled model.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/files/pack.h"
#include "gemma_like/registry.h"
#include "io/file/bundle.h"
#include "io/file/mapped_file.h"
#include "io/gguf/gguf.h"
#include "ops/team.h"
#include "tools/commands/commands.h"
#include "tools/demo_model.h"
#include "tools/flags/model_flags.h"
#include "tools/output.h"
#include "tools/overwrite.h"
#include "tools/progress.h"

namespace inlay {
namespace {

struct PackFlags {
  std::string input;
  std::string output;
  std::string program = RunningProgram().string();
  bool force = false;
  ModelFlags model;  // its threads
};

absl::Status Pack(const PackFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(flags.input));
  INLAY_ASSIGN_OR_RETURN(const Replace replace,
                         MayReplace(flags.output, FileKind::kModel, flags.force));
  Team team(flags.model.threads);
  return WritePacked(file, team, flags.output, replace,
                     ShowProgress(absl::StrCat("packing ", flags.input), ProgressUnit::kBytes));
}

// Refuses a program without the config. It is not asked: it may be another machine's, or do
// anything.
absl::Status CheckHasConfig(const PackFlags& flags, const ConfigEntry& config) {
  INLAY_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(flags.program));
  const absl::string_view program(reinterpret_cast<const char*>(mapped.bytes().data()),
                                  mapped.bytes().size());
  if (absl::StrContains(program, config.mark)) return absl::OkStatus();
  // What all marks begin with. An older version's program has none.
  const absl::string_view any = config.mark.substr(0, config.mark.size() - config.name.size() - 1);
  if (!absl::StrContains(program, any)) {
    WriteNote(absl::StrCat("inlay: ", PrintableName(flags.program),
                           " does not say which configs it has; without ", config.name,
                           " it will not run the model\n"));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(flags.program, " has no config ", config.name,
                                                 ", which the model ", flags.input, " needs"));
}

absl::Status Bundle(const PackFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(flags.input));
  INLAY_ASSIGN_OR_RETURN(const ConfigEntry* config, FindConfig(file));
  INLAY_ASSIGN_OR_RETURN(const Replace replace,
                         MayReplace(flags.output, FileKind::kProgram, flags.force));
  INLAY_ASSIGN_OR_RETURN(const bool finds, FindsItsBundle(flags.program));
  if (!finds) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.program, " is not a program of inlay's, which alone would find the model behind it"));
  }
  INLAY_RETURN_IF_ERROR(CheckHasConfig(flags, *config));
  Team team(flags.model.threads);
  INLAY_ASSIGN_OR_RETURN(AtomicFile begun, BeginBundle(flags.program, flags.output, replace));
  const uint64_t offset = begun.size();
  INLAY_ASSIGN_OR_RETURN(
      AtomicFile written,
      WritePacked(file, *config, team, std::move(begun),
                  ShowProgress(absl::StrCat("packing ", flags.input), ProgressUnit::kBytes)));
  return EndBundle(std::move(written), offset);
}

}  // namespace

void AddPack(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<PackFlags>();
  CLI::App& command = *app.add_subcommand(
      "pack",
      "Writes a model file with its matrices in the layout of the kernels, to load at once.");
  command.add_option("input", flags->input, "the GGUF file to read")
      ->type_name("MODEL")
      ->required();
  command.add_option("output", flags->output, "the file to write")->type_name("FILE")->required();
  AddForceFlag(command, flags->force);
  AddThreadsFlag(command, flags->model);
  command.callback([flags, &action] { action = [flags] { return Pack(*flags); }; });
}

void AddBundle(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<PackFlags>();
  CLI::App& command = *app.add_subcommand(
      "bundle", "Writes a program with a model inside: one file that needs no other.");
  command.add_option("model", flags->input, "the GGUF file, or packed file, to bundle")
      ->type_name("MODEL")
      ->required();
  command.add_option("-o,--output", flags->output, "the program to write")
      ->type_name("FILE")
      ->required();
  AddForceFlag(command, flags->force);
  command
      .add_option("--binary", flags->program,
                  "the program to copy, which has the model's config (default: this one)")
      ->type_name("FILE");
  AddThreadsFlag(command, flags->model);
  command.footer(
      "PROGRAM \"To be\" then continues that text; all commands still work.\n"
      "Stripping the program would strip the model.");
  command.callback([flags, &action] { action = [flags] { return Bundle(*flags); }; });
}

}  // namespace inlay
