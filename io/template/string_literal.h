// The strings between quotes in a template's tags.
#ifndef INLAY_IO_TEMPLATE_STRING_LITERAL_H_
#define INLAY_IO_TEMPLATE_STRING_LITERAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay::jinja {

// What a literal stands for; `literal` is without its quotes. Escapes are Python's: \n, \x41,
// \u00e9, \101 and so on; an unknown one stays as it is. InvalidArgument for one that is cut off or
// names no character, Unimplemented for \N{...}.
absl::StatusOr<std::string> UnescapeLiteral(absl::string_view literal);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_STRING_LITERAL_H_
