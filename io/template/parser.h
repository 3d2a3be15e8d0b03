// Parses a template's text.
#ifndef INLAY_IO_TEMPLATE_PARSER_H_
#define INLAY_IO_TEMPLATE_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/template/ast.h"

namespace inlay::jinja {

// InvalidArgument, with the line, for what Jinja refuses too; Unimplemented for what is only left
// out here, as including other templates.
absl::StatusOr<ParsedTemplate> ParseTemplate(absl::string_view source);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_PARSER_H_
