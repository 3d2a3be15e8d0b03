#include "tools/demo_model.h"

#ifdef __linux__
#include <sys/auxv.h>
#endif

#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/file/bundle.h"
#include "io/file/mapped_file.h"

namespace inlay {

std::filesystem::path RunningProgram() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
#ifdef __linux__
  if (error) {  // no /proc, as in a bare chroot: what the program was started as
    const auto* name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    if (name != nullptr) path = std::filesystem::absolute(name, error);
  }
#endif
  return path;
}

absl::StatusOr<std::optional<std::string>> FindBundledModel() {
  const std::string program = RunningProgram().string();
  const absl::StatusOr<MappedFile> file = MappedFile::Open(program);
  if (!file.ok()) return std::nullopt;
  INLAY_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> model, FindBundle(file->bytes(), program));
  if (model.empty() && RunsAsBundle()) {
    return absl::DataLossError(absl::StrCat(
        program, " was made with a model inside, which is missing: the file was cut or stripped"));
  }
  if (model.empty()) return std::nullopt;
  return program;
}

std::optional<std::string> FindDemoModel(const std::filesystem::path& start) {
  std::error_code error;
  for (std::filesystem::path folder = start; !folder.empty(); folder = folder.parent_path()) {
    for (const char* path : {"models/bard.gguf", "share/inlay/models/bard.gguf"}) {
      if (std::filesystem::is_regular_file(folder / path, error)) return (folder / path).string();
    }
    if (folder == folder.parent_path()) break;  // the root is its own parent
  }
  return std::nullopt;
}

std::optional<std::string> FindDemoModel() {
  const std::filesystem::path program = RunningProgram();
  if (program.empty()) return std::nullopt;
  return FindDemoModel(program.parent_path());
}

}  // namespace inlay
