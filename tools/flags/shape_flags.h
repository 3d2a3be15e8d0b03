// The flags for the shape of an answer.
#ifndef INLAY_TOOLS_FLAGS_SHAPE_FLAGS_H_
#define INLAY_TOOLS_FLAGS_SHAPE_FLAGS_H_

#include <array>
#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "gemma_like/grammar/answer_shape.h"

namespace inlay {

struct ShapeFlags {
  std::string schema, grammar, regex;
};

// --schema --grammar --regex, of which one may be given.
std::array<CLI::Option*, 3> AddShapeFlags(CLI::App& command, ShapeFlags& flags);

// The shape that was given, if any; it is not compiled yet. Reads the file that --schema or
// --grammar may name, so it comes before the sandbox. A usage error for the name of a file without
// its '@'.
absl::StatusOr<std::optional<AnswerShape>> ShapeOf(const ShapeFlags& flags);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_SHAPE_FLAGS_H_
