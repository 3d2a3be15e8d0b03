// A model inside the file of a program, behind the program itself: one file to copy.
#ifndef INLAY_IO_FILE_BUNDLE_H_
#define INLAY_IO_FILE_BUNDLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/file/atomic_file.h"

namespace inlay {

// Such a file is the program, marked for RunsAsBundle(), zeros up to a multiple of
// kBundleAlignment, the model, and 24 bytes that say where it is: its offset and size as
// little-endian uint64, and kBundleMagic. Systems load the program as if nothing followed it.
// The largest page size in use, so that the model starts at a page everywhere.
inline constexpr uint64_t kBundleAlignment = 65536;

// The model's bytes in a file's; none where it does not end in kBundleMagic. InvalidArgument when
// offset and size do not fit the file; `name` stands for it in messages.
absl::StatusOr<absl::Span<const uint8_t>> FindBundle(absl::Span<const uint8_t> file,
                                                     absl::string_view name);

// Whether the running program was written by BeginBundle, so that a model must follow it in its
// file. Where FindBundle sees none, the file was cut short or stripped.
bool RunsAsBundle();

// Begins such a file with the program at `program`; a model bundled with it is left out. Where that
// is a program with this library, RunsAsBundle() will be true in the copy. `replace` says what may
// be replaced; see CheckReplace.
absl::StatusOr<AtomicFile> BeginBundle(const std::string& program, const std::string& path,
                                       Replace replace = Replace::kSameKind);

// Ends and commits one to which a model was written after BeginBundle, which left it with `offset`
// bytes.
absl::Status EndBundle(AtomicFile file, uint64_t offset);

}  // namespace inlay

#endif  // INLAY_IO_FILE_BUNDLE_H_
