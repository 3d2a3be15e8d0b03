// Which of the files in a repository are the model that a person means.
#ifndef INLAY_IO_HUB_CHOOSE_FILE_H_
#define INLAY_IO_HUB_CHOOSE_FILE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

// The quantization that a model file's path names, in capitals: "Q4_K_M", "BF16", "UD-IQ2_XXS";
// empty where it names none.
std::string QuantizationOf(absl::string_view path);

// Whether the path is that of a model, and not of what accompanies one: projectors of images and
// sounds (mmproj), importance matrices, draft models.
bool IsModelPath(absl::string_view path);

// What a list of models names the model of this file by, after the name of its repository: its
// quantization, or else the path itself. Nothing for files that are no model (IsModelPath) and for
// the parts of one after the first.
std::optional<std::string> ListedType(absl::string_view path);

// The files of one model among `paths`, as indices in the order of its parts: one file, or all
// parts of one that is split.
//
// `type` is a path among them, or a quantization in any case of letters. Without it the choice is
// Q4_K_M, or else what is nearest to it in bits per weight; names without a quantization come last.
// Of files that are equally good the one with the shortest path is taken, of these the first in
// the order of bytes. NotFound, with `who` as its subject and the types that there are, where none
// fits; DataLoss where parts of a split one are missing.
absl::StatusOr<std::vector<size_t>> ChooseFiles(absl::Span<const std::string> paths,
                                                absl::string_view type, absl::string_view who);

}  // namespace inlay

#endif  // INLAY_IO_HUB_CHOOSE_FILE_H_
