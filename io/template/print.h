// How Python writes values as text: str() and repr().
#ifndef INLAY_IO_TEMPLATE_PRINT_H_
#define INLAY_IO_TEMPLATE_PRINT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/template/budget.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay::jinja {

// The shortest digits that read back as the same number, with an exponent from 1e16 on and below
// 1e-4; "inf" and "nan" for what is not finite.
std::string FloatText(double value);

// str(value): strings as they are; undefined values are empty. Functions, loops and the like are
// refused (Unimplemented), as Python writes their addresses.
absl::StatusOr<Text> Str(Budget& budget, const Value& value);
absl::Status AppendStr(Budget& budget, const Value& value, Text* out);

// repr(value): strings in quotes with escapes.
absl::Status AppendRepr(Budget& budget, const Value& value, Text* out);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_PRINT_H_
