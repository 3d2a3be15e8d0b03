// A model appended to the executable of a program, so that both are one file.
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

// A bundle is the program, marked for RunsAsBundle(), zeros up to a multiple of kBundleAlignment,
// the model, and a trailer of 24 bytes: the model's offset and size as little-endian uint64, and
// kBundleMagic. Loaders ignore what follows the program. The alignment is the largest page size in
// use, so that the model starts at a page boundary everywhere.
inline constexpr uint64_t kBundleAlignment = 65536;

// The model's bytes among those of a file; empty when the file does not end in kBundleMagic.
// InvalidArgument when offset and size do not fit the file, which messages call `name`.
absl::StatusOr<absl::Span<const uint8_t>> FindBundle(absl::Span<const uint8_t> file,
                                                     absl::string_view name);

// Whether the running program was written by BeginBundle, so that a model must follow it in its
// file. If FindBundle finds none, the file was truncated or stripped.
bool RunsAsBundle();

// Whether the bytes of a file are a program that BeginBundle has written, as for RunsAsBundle().
bool IsBundledProgram(absl::Span<const uint8_t> file);

// Whether the program at a path contains this library, which alone finds a model behind it.
absl::StatusOr<bool> FindsItsBundle(const std::string& program);

// Begins a bundle at `path` with the program at `program`, without a model that is already bundled
// with it. If the program contains this library, RunsAsBundle() is true in the copy. `replace` says
// what may be replaced; see CheckReplace.
absl::StatusOr<AtomicFile> BeginBundle(const std::string& program, const std::string& path,
                                       Replace replace = Replace::kSameKind);

// Completes and commits a bundle after the model was written to it. `offset` is the size that it
// had after BeginBundle.
absl::Status EndBundle(AtomicFile file, uint64_t offset);

}  // namespace inlay

#endif  // INLAY_IO_FILE_BUNDLE_H_
