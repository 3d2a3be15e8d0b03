// Names of models on a hub, and which names of files may become paths on this machine.
#ifndef INLAY_IO_HUB_HUB_NAME_H_
#define INLAY_IO_HUB_HUB_NAME_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

// USER/REPO[:TYPE], as llama.cpp's -hf takes it.
struct HubName {
  // Also from an address that a browser shows: https://huggingface.co/USER/REPO (or hf.co), and
  // with /tree/main, /blob/main/FILE or /resolve/main/FILE after it. InvalidArgument for anything
  // else. USER and REPO have 1 to 96 letters, digits, '_', '-' and
  // '.', with neither "--" nor ".." inside nor '-' or '.' at either end, as the hub has it: so the
  // two names are one component of a path, and "--" may stand between them.
  static absl::StatusOr<HubName> Parse(absl::string_view text);

  std::string user;
  std::string repo;
  // A quantization ("Q4_K_M"), or the path of a file in the repository ("sub/model.gguf"); empty:
  // the usual choice.
  std::string type;

  // "USER/REPO"
  std::string Id() const;
  // "USER/REPO:TYPE"
  std::string ToString() const;
};

// Whether the path of a file in a repository stays inside the folder that it is put into: relative,
// of at most 16 components of 1 to 255 bytes, none of which is "." or "..", in UTF-8 without
// control characters and backslashes. InvalidArgument names it.
absl::Status CheckHubPath(absl::string_view path);

// Whether `text` consists of `length` hexadecimal digits in lower case, as commits (40) and hashes
// (40 or 64) do.
bool IsHex(absl::string_view text, size_t length);

}  // namespace inlay

#endif  // INLAY_IO_HUB_HUB_NAME_H_
