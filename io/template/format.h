// Texts with places for values: str.format and the operator %.
#ifndef INLAY_IO_TEMPLATE_FORMAT_H_
#define INLAY_IO_TEMPLATE_FORMAT_H_

#include "absl/status/statusor.h"
#include "io/template/budget.h"
#include "io/template/functions.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay::jinja {

// format.format(arguments), with {}, {0}, {name}, !r, !s and specifications as {:>8.3f}; those of
// nested fields, attributes and items are refused (Unimplemented).
absl::StatusOr<Text> FormatBraces(Budget& budget, const Text& format, const Arguments& arguments);

// format % values: with %s, %r, %d, %i, %x, %f, %e, %g and %(key)s.
absl::StatusOr<Text> FormatPercent(Budget& budget, const Text& format, const Value& values);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_FORMAT_H_
