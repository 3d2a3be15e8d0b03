// The names of the files into which a large model is split: NAME-00001-of-00003.gguf and so on.
#ifndef INLAY_IO_GGUF_GGUF_SPLIT_H_
#define INLAY_IO_GGUF_GGUF_SPLIT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace inlay {

// Metadata keys of every part: its number from 0, the number of parts, the number of tensors in all
// parts. Where the count is 0 or 1, the file is whole. All other metadata is in the first part.
inline constexpr absl::string_view kSplitNumberKey = "split.no";
inline constexpr absl::string_view kSplitCountKey = "split.count";
inline constexpr absl::string_view kSplitTensorsKey = "split.tensors.count";

// What the path of a part says.
struct SplitName {
  std::string prefix;  // "models/NAME"
  size_t number = 0;   // from 1 to count
  size_t count = 0;

  // Nothing for other paths.
  static std::optional<SplitName> Parse(absl::string_view path);

  // The path of another part, `part` from 1.
  std::string PathOf(size_t part) const;
};

// The files that GgufFile::Open(path) may read: the path itself and, if it is that of a part, the
// other parts that exist.
std::vector<std::string> GgufPaths(const std::string& path);

}  // namespace inlay

#endif  // INLAY_IO_GGUF_GGUF_SPLIT_H_
