// What a file holds, by its magic bytes, and whether another file may replace it.
#ifndef INLAY_IO_FILE_FILE_KIND_H_
#define INLAY_IO_FILE_FILE_KIND_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

enum class FileKind {
  kEmpty,
  kModel,    // GGUF, packed or not
  kProgram,  // an executable for Linux or macOS, or one of any kind with a model inside
  kSession,  // a conversation as KVCache::Save writes it
  kChat,     // the turns of a chat as text, then its conversation
  kState,    // for writing only: any bytes that a StateStore keeps, kSession and kChat included
  kOther,
};

// The first bytes of such a file.
inline constexpr absl::string_view kModelMagic = "GGUF";
inline constexpr absl::string_view kSessionMagic = "inlaykv\n";
inline constexpr absl::string_view kChatMagic = "inlaychat";
// The last bytes of a program with a model inside; see io/file/bundle.h.
inline constexpr absl::string_view kBundleMagic = "INLAYEND";

// The kind of a regular file; never kState.
absl::StatusOr<FileKind> KindOfFile(const std::string& path);

enum class Replace {
  kNothing,   // refuses to replace an existing file
  kSameKind,  // replaces an existing file of the kind that is written
};

// Ok when a file of this kind may be written at `path`; symbolic links are followed. Every write
// of a file follows these rules:
// - A path that is new, or the path of an empty file, may be written.
// - A file that a MappedFile of this process has open is never replaced (FailedPrecondition),
//   whatever name leads to it; nor is a file of another kind or anything but a regular file
//   (InvalidArgument).
// - An existing file of the same kind is AlreadyExists under Replace::kNothing.
absl::Status CheckReplace(const std::string& path, FileKind kind, Replace replace);

}  // namespace inlay

#endif  // INLAY_IO_FILE_FILE_KIND_H_
