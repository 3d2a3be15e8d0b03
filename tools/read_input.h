// Text from a file or standard input, piece by piece.
#ifndef INLAY_TOOLS_READ_INPUT_H_
#define INLAY_TOOLS_READ_INPUT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

// The most bytes of a file that is read as a whole.
inline constexpr size_t kLongestInput = size_t{256} << 20;

class Input {
 public:
  // The file at `path`, or standard input for "-".
  static absl::StatusOr<Input> Open(const std::string& path);

  Input(Input&& other) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  // The next bytes, at most 64 KiB, valid until the next call; empty at the end.
  absl::StatusOr<absl::string_view> Next();

  // All that is left. InvalidArgument, naming the input, for more than kLongestInput bytes.
  absl::StatusOr<std::string> ReadAll();

  // For messages.
  const std::string& name() const { return name_; }

 private:
  Input(int fd, bool owned, std::string name);

  int fd_;
  bool owned_;
  std::string name_;
  std::vector<char> buffer_;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_READ_INPUT_H_
