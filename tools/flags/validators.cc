#include "tools/flags/validators.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/format.h"
#include "base/printable.h"
#include "io/gguf/gguf_value.h"

namespace inlay {
namespace {

// Without the exponent that StrCat gives to large numbers.
std::string Plain(double x) { return Format("%.10g", x); }

}  // namespace

Validator Between(double low, double high) {
  return [low, high](const std::string& value) -> std::string {
    double x = 0;
    if (absl::SimpleAtod(value, &x) && x >= low && x <= high) return "";
    return absl::StrCat(QuoteForMessage(value), " is not a number from ", Plain(low), " to ",
                        Plain(high));
  };
}

Validator Above(double low, double high) {
  return [low, high](const std::string& value) -> std::string {
    double x = 0;
    if (absl::SimpleAtod(value, &x) && x > low && x <= high) return "";
    return absl::StrCat(QuoteForMessage(value), " is not a number above ", Plain(low),
                        " and at most ", Plain(high));
  };
}

void AllowOneOf(CLI::Option& option, const std::vector<std::string>& words) {
  option.type_name(absl::StrJoin(words, "|"));
  option.check([words](const std::string& value) -> std::string {
    if (std::find(words.begin(), words.end(), value) != words.end()) return "";
    return absl::StrCat(QuoteForMessage(value), " is not one of ", absl::StrJoin(words, ", "));
  });
}

std::string NotOctal(const std::string& value) {
  absl::string_view digits = value;
  if (!absl::ConsumePrefix(&digits, "-")) absl::ConsumePrefix(&digits, "+");
  if (digits.size() < 2 || digits[0] != '0' || !absl::ascii_isdigit(digits[1])) return "";
  return absl::StrCat(QuoteForMessage(value), " begins with a zero, as octal numbers do");
}

std::string NotEmpty(const std::string& value) {
  return value.empty() ? "the value must not be empty" : "";
}

}  // namespace inlay
