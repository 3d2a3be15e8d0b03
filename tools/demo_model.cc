#include "tools/demo_model.h"

#include <system_error>

#include "io/bundle.h"
#include "io/mapped_file.h"
#include "io/status_macros.h"

namespace inlay {
namespace {

// The running program's file; empty where the system does not tell.
std::filesystem::path Program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

}  // namespace

absl::StatusOr<std::optional<std::string>> FindBundledModel() {
  const std::string program = Program().string();
  const absl::StatusOr<MappedFile> file = MappedFile::Open(program);
  if (!file.ok()) return std::nullopt;
  INLAY_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> model, FindBundle(file->bytes(), program));
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
  const std::filesystem::path program = Program();
  if (program.empty()) return std::nullopt;
  return FindDemoModel(program.parent_path());
}

}  // namespace inlay
