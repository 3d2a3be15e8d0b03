// inlay licenses: the licences of the program, of what it contains and of the model inside it.
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/license_files.h"
#include "base/status_macros.h"
#include "io/gguf/gguf.h"
#include "io/gguf/model_license.h"
#include "tools/commands/commands.h"
#include "tools/demo_model.h"
#include "tools/output.h"

namespace inlay {
namespace {

absl::Status PrintLicenses() {
  Output out;
  for (const EmbeddedFile& file : LicenseFiles()) {
    out.Write(file.content);
    out.Write(absl::StrCat("\n", std::string(98, '='), "\n"));
  }
  const auto bundled = FindBundledModel();
  if (bundled.ok() && bundled->has_value()) {
    const auto model = GgufFile::Open(**bundled);
    if (model.ok())
      out.Write(
          absl::StrCat("The model inside this program: ", LicenseOf(*model).ToString(), "\n"));
    INLAY_RETURN_IF_ERROR(out.Finish());
    return model.status();
  }
  INLAY_RETURN_IF_ERROR(out.Finish());
  return bundled.status();
}

}  // namespace

void AddLicenses(CLI::App& app, Action& action) {
  CLI::App& command = *app.add_subcommand(
      "licenses",
      "Prints the licences of the program, of the works inside it and of a bundled model.");
  command.callback([&action] { action = PrintLicenses; });
}

}  // namespace inlay
