#include "tools/demo_model.h"

#include <system_error>

namespace inlay {

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
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  return FindDemoModel(program.parent_path());
}

}  // namespace inlay
