// Jinja's filters of texts and numbers, and the list of all filters.
#include "io/template/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/template/format.h"
#include "io/template/functions.h"
#include "io/template/operators.h"
#include "io/template/print.h"
#include "io/template/text_operations.h"
#include "io/template/to_json.h"
#include "io/tokenizer/unicode_classes.h"

namespace inlay::jinja {
namespace {

bool IsMarkup(const Value& value) { return value.is(Type::kString) && value.string().markup; }

// A string of the same kind as `input`.
Value Like(Context& context, const Value& input, Text text) {
  return Value::String(std::move(text), &context.budget, IsMarkup(input));
}

template <Case kCase>
absl::StatusOr<Value> ChangeCase(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("the filter", {}, 0, arguments).status());
  INLAY_ASSIGN_OR_RETURN(const Text text, Str(context.budget, input));
  INLAY_ASSIGN_OR_RETURN(Text changed, InCase(context.budget, text, kCase));
  return Like(context, input, std::move(changed));
}

template <absl::StatusOr<Text> (*kChange)(Budget&, const Text&)>
absl::StatusOr<Value> Change(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("the filter", {}, 0, arguments).status());
  INLAY_ASSIGN_OR_RETURN(const Text text, Str(context.budget, input));
  INLAY_ASSIGN_OR_RETURN(Text changed, kChange(context.budget, text));
  return Like(context, input, std::move(changed));
}

absl::StatusOr<Value> Trim(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("trim", {"chars"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const Text text, Str(context.budget, input));
  if (args.Or(0, Value::None()).is(Type::kNone))
    return Like(context, input, StripSpace(text, Side::kBoth));
  INLAY_ASSIGN_OR_RETURN(const Value characters, args.StringOr(0));
  INLAY_ASSIGN_OR_RETURN(Text stripped,
                         StripCharacters(context.budget, text, characters.bytes(), Side::kBoth));
  return Like(context, input, std::move(stripped));
}

absl::StatusOr<Value> ReplaceText(Context& context, const Value& input,
                                  const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("replace", {"old", "new", "count"}, 2, arguments));
  INLAY_ASSIGN_OR_RETURN(const Text text, Str(context.budget, input));
  INLAY_ASSIGN_OR_RETURN(const Text old, Str(context.budget, args[0]));
  INLAY_ASSIGN_OR_RETURN(const Text with, Str(context.budget, args[1]));
  int64_t most = -1;
  if (!args.Or(2, Value::None()).is(Type::kNone)) {
    INLAY_ASSIGN_OR_RETURN(most, args.IntegerOr(2, -1));
  }
  INLAY_ASSIGN_OR_RETURN(Text replaced, Replace(context.budget, text, old.bytes(), with, most));
  return Value::String(std::move(replaced), &context.budget);
}

absl::StatusOr<Value> IndentText(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("indent", {"width", "first", "blank"}, 0, arguments));
  if (input.is(Type::kUndefined)) return UndefinedError(input);
  if (!input.is(Type::kString))
    return absl::InvalidArgumentError(
        absl::StrCat("indent needs a string, not a value of the type ", TypeName(input)));
  Text indention;
  if (args.has(0) && args[0].is(Type::kString)) {
    indention = args[0].text();
  } else {
    INLAY_ASSIGN_OR_RETURN(const int64_t width, args.IntegerOr(0, 4));
    INLAY_ASSIGN_OR_RETURN(indention, Repeat(context.budget, Text(" ", Origin::kTemplate), width));
  }
  INLAY_ASSIGN_OR_RETURN(
      Text text, Indent(context.budget, input.text(), indention, args.IsTrue(1), args.IsTrue(2)));
  return Like(context, input, std::move(text));
}

absl::StatusOr<Value> Truncate(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("truncate", {"length", "killwords", "end", "leeway"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const int64_t length, args.IntegerOr(0, 255));
  INLAY_ASSIGN_OR_RETURN(const Value end, args.StringOr(2, "..."));
  INLAY_RETURN_IF_ERROR(context.budget.StepBytes(end.bytes().size()));
  int64_t leeway = 5;
  if (!args.Or(3, Value::None()).is(Type::kNone)) {
    INLAY_ASSIGN_OR_RETURN(leeway, args.IntegerOr(3, leeway));
  }
  const auto end_size = static_cast<int64_t>(CountCodePoints(end.bytes()));
  if (length < end_size || leeway < 0)
    return absl::InvalidArgumentError("truncate needs a length of at least that of its end");
  INLAY_ASSIGN_OR_RETURN(const int64_t size, Length(context.budget, input));
  if (size - leeway <= length) return input;  // a short list too
  if (!input.is(Type::kString))
    return absl::InvalidArgumentError(
        absl::StrCat("truncate needs a string, not a value of the type ", TypeName(input)));
  const Text& text = input.text();
  INLAY_RETURN_IF_ERROR(context.budget.Reserve(text.size()));
  Text kept = text.Part(0, ByteOfCodePoint(text.bytes(), static_cast<size_t>(length - end_size)));
  if (!args.IsTrue(1)) {
    const size_t space = kept.bytes().rfind(' ');
    if (space != absl::string_view::npos) kept = kept.Part(0, space);
  }
  kept.Append(end.text());
  return Like(context, input, std::move(kept));
}

absl::StatusOr<Value> Center(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("center", {"width"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const int64_t width, args.IntegerOr(0, 80));
  INLAY_ASSIGN_OR_RETURN(const Text text, Str(context.budget, input));
  INLAY_ASSIGN_OR_RETURN(
      Text padded, Pad(context.budget, text, width, Text(" ", Origin::kTemplate), Side::kBoth));
  return Like(context, input, std::move(padded));
}

absl::StatusOr<Value> Safe(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("safe", {}, 0, arguments).status());
  INLAY_ASSIGN_OR_RETURN(Text text, Str(context.budget, input));
  return Value::String(std::move(text), &context.budget, /*markup=*/true);
}

template <bool kForce>
absl::StatusOr<Value> Escape(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("escape", {}, 0, arguments).status());
  if (!kForce && IsMarkup(input)) return input;
  INLAY_ASSIGN_OR_RETURN(const Text text, Str(context.budget, input));
  INLAY_ASSIGN_OR_RETURN(Text escaped, EscapeHtml(context.budget, text));
  return Value::String(std::move(escaped), &context.budget, /*markup=*/true);
}

absl::StatusOr<Value> ToString(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("string", {}, 0, arguments).status());
  if (input.is(Type::kString)) return input;
  INLAY_ASSIGN_OR_RETURN(Text text, Str(context.budget, input));
  return Value::String(std::move(text), &context.budget);
}

absl::StatusOr<Value> FormatFilter(Context& context, const Value& input,
                                   const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    return absl::InvalidArgumentError("format takes arguments with or without names, not both");
  Value values;
  if (arguments.named.empty()) {
    values = Value::Sequence(SequenceKind::kTuple, arguments.positional, &context.budget);
  } else {
    const auto dict = std::make_shared<DictRep>();
    for (const auto& [name, value] : arguments.named) {
      INLAY_RETURN_IF_ERROR(context.budget.Reserve(name.memory()));
      dict->Set(Value::String(name, &context.budget), value);
    }
    dict->Finish(&context.budget);
    values = Value::Dict(dict);
  }
  INLAY_ASSIGN_OR_RETURN(const Text format, Str(context.budget, input));
  return Calculate(context.budget, BinaryOperator::kMod, Like(context, input, format), values);
}

absl::StatusOr<JsonStyle> ParseJsonStyle(Context& context, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(
      const BoundArguments args,
      Bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, arguments));
  JsonStyle style;
  style.ensure_ascii = args.IsTrue(0);
  style.sort_keys = args.IsTrue(3);
  const Value indent = args.Or(1, Value::None());
  if (indent.is(Type::kString)) {
    INLAY_ASSIGN_OR_RETURN(style.indent, Str(context.budget, indent));
  } else if (!indent.is(Type::kNone)) {
    INLAY_ASSIGN_OR_RETURN(const int64_t width, args.IntegerOr(1, 0));
    INLAY_ASSIGN_OR_RETURN(style.indent,
                           Repeat(context.budget, Text(" ", Origin::kTemplate), width));
  }
  const Value separators = args.Or(2, Value::None());
  if (separators.is(Type::kNone)) {
    style.item_separator = Text(style.indent.has_value() ? "," : ", ", Origin::kTemplate);
    style.key_separator = Text(": ", Origin::kTemplate);
    return style;
  }
  INLAY_ASSIGN_OR_RETURN(const auto parts, Iterate(context.budget, separators));
  if (parts->items.size() != 2 || !parts->items[0].is(Type::kString) ||
      !parts->items[1].is(Type::kString))
    return absl::InvalidArgumentError("the separators of tojson must be two strings");
  INLAY_ASSIGN_OR_RETURN(style.item_separator, Str(context.budget, parts->items[0]));
  INLAY_ASSIGN_OR_RETURN(style.key_separator, Str(context.budget, parts->items[1]));
  return style;
}

absl::StatusOr<Value> ToJsonFilter(Context& context, const Value& input,
                                   const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const JsonStyle style, ParseJsonStyle(context, arguments));
  INLAY_ASSIGN_OR_RETURN(Text text, ToJson(context.budget, input, style));
  return Value::String(std::move(text), &context.budget);
}

// Python's int(text, base); nothing when that fails. An integer of more than 64 bits is an error.
absl::StatusOr<std::optional<int64_t>> ParseInteger(absl::string_view text, int base) {
  text = absl::StripAsciiWhitespace(text);
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const absl::string_view prefix = base == 2 ? "0b" : base == 8 ? "0o" : base == 16 ? "0x" : "";
  const std::string lower = absl::AsciiStrToLower(text.substr(0, 2));
  bool after_digit = false;
  if (!prefix.empty() && lower == prefix) {
    text.remove_prefix(2);
    after_digit = true;  // an underscore may follow
  }
  if (text.empty() || text.back() == '_') return std::optional<int64_t>();
  std::string digits;
  for (const char c : text) {
    if (c == '_' ? !after_digit : !absl::ascii_isalnum(c)) return std::optional<int64_t>();
    after_digit = c != '_';
    if (c != '_') digits.push_back(c);
  }
  int64_t value = 0;
  if (negative) digits.insert(digits.begin(), '-');
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (read.ec == std::errc::result_out_of_range)
    return absl::UnimplementedError("integers of more than 64 bits are not supported");
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    return std::optional<int64_t>();
  return std::optional<int64_t>(value);
}

// Python's float(text); nothing when that fails.
std::optional<double> ParseFloat(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  double value = 0;
  // Hexadecimal numbers, which absl reads, are none of Python's.
  if (text.find_first_of("xX") != absl::string_view::npos || !absl::SimpleAtod(text, &value))
    return std::nullopt;
  return value;
}

absl::StatusOr<Value> Truncated(double value, const Value& otherwise) {
  if (!std::isfinite(value)) return otherwise;
  if (std::fabs(value) >= 9.2e18)
    return absl::UnimplementedError("integers of more than 64 bits are not supported");
  return Value::Int(static_cast<int64_t>(value));
}

// Python reads the digits of all scripts; here only 0 to 9 are read, and others refused.
absl::Status RefuseOtherDigits(absl::string_view text) {
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    if (c.value >= 0x80 && ClassOf(c.value) == CodePointClass::kNumber)
      return absl::UnimplementedError("digits beyond 0 to 9 are not supported here");
    text.remove_prefix(c.valid ? c.length : 1);
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> ToInt(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("int", {"default", "base"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const int64_t base, args.IntegerOr(1, 10));
  if (base < 2 || base > 36) return absl::UnimplementedError("int needs a base from 2 to 36");
  const Value otherwise = args.Or(0, Value::Int(0));
  if (input.is(Type::kUndefined)) return UndefinedError(input);
  if (const auto integer = AsInteger(input); integer.has_value()) return Value::Int(*integer);
  if (input.is(Type::kBigInt)) return input;
  if (input.is(Type::kFloat)) return Truncated(input.float_value(), otherwise);
  if (!input.is(Type::kString)) return otherwise;
  INLAY_RETURN_IF_ERROR(context.budget.StepBytes(input.bytes().size()));
  INLAY_RETURN_IF_ERROR(RefuseOtherDigits(input.bytes()));
  INLAY_ASSIGN_OR_RETURN(const auto integer, ParseInteger(input.bytes(), static_cast<int>(base)));
  if (integer.has_value()) return Value::Int(*integer);
  const std::optional<double> number = ParseFloat(input.bytes());
  return number.has_value() ? Truncated(*number, otherwise) : otherwise;
}

absl::StatusOr<Value> ToFloat(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("float", {"default"}, 0, arguments));
  const Value otherwise = args.Or(0, Value::Float(0));
  if (input.is(Type::kUndefined)) return UndefinedError(input);
  if (IsAnyNumber(input)) return Value::Float(NumberAsDouble(input));
  if (!input.is(Type::kString)) return otherwise;
  INLAY_RETURN_IF_ERROR(context.budget.StepBytes(input.bytes().size()));
  INLAY_RETURN_IF_ERROR(RefuseOtherDigits(input.bytes()));
  const std::optional<double> number = ParseFloat(input.bytes());
  return number.has_value() ? Value::Float(*number) : otherwise;
}

absl::StatusOr<Value> Round(Context&, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("round", {"precision", "method"}, 0, arguments));
  INLAY_ASSIGN_OR_RETURN(const int64_t precision, args.IntegerOr(0, 0));
  INLAY_ASSIGN_OR_RETURN(const Value method, args.StringOr(1, "common"));
  if (input.is(Type::kUndefined)) return UndefinedError(input);
  if (!IsNumber(input))
    return absl::InvalidArgumentError(
        absl::StrCat("round needs a number, not a value of the type ", TypeName(input)));
  if (precision < 0 || precision > 300)
    return absl::UnimplementedError("round needs a precision from 0 to 300");
  const double number = NumberAsDouble(input);
  if (method.bytes() == "common") {
    if (!input.is(Type::kFloat)) return Value::Int(*AsInteger(input));
    if (!std::isfinite(number)) return input;
    double rounded = 0;
    if (!absl::SimpleAtod(Format("%.*f", static_cast<int>(precision), number), &rounded))
      return absl::InternalError("a number that was written cannot be read");
    return Value::Float(rounded);
  }
  if (method.bytes() != "ceil" && method.bytes() != "floor")
    return absl::InvalidArgumentError("round needs the method common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number * scale;
  return Value::Float((method.bytes() == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

absl::StatusOr<Value> Abs(Context&, const Value& input, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(Bind("abs", {}, 0, arguments).status());
  if (input.is(Type::kFloat)) return Value::Float(std::fabs(input.float_value()));
  if (input.is(Type::kUndefined)) return UndefinedError(input);
  if (!IsNumber(input))
    return absl::InvalidArgumentError(
        absl::StrCat("abs needs a number, not a value of the type ", TypeName(input)));
  return *AsInteger(input) < 0 ? Negate(input) : Value::Int(*AsInteger(input));
}

absl::StatusOr<Value> Default(Context&, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args,
                         Bind("default", {"default_value", "boolean"}, 0, arguments));
  const bool missing = input.is(Type::kUndefined) || (args.IsTrue(1) && !IsTrue(input));
  return missing ? args.Or(0, Value::String(Text())) : input;
}

absl::StatusOr<Value> Attribute(Context& context, const Value& input, const Arguments& arguments) {
  INLAY_ASSIGN_OR_RETURN(const BoundArguments args, Bind("attr", {"name"}, 1, arguments));
  INLAY_ASSIGN_OR_RETURN(const Value name, args.StringOr(0));
  if (input.is(Type::kDict)) {  // unlike the dot, no key of the name
    INLAY_ASSIGN_OR_RETURN(const Function* method, FindMethod(input, name.bytes()));
    return method == nullptr ? Value() : Value::Method(input, method, &context.budget);
  }
  return GetItem(context, input, name);
}

constexpr Function kTextFilters[] = {
    {"abs", Abs},
    {"attr", Attribute},
    {"capitalize", Change<Capitalize>},
    {"center", Center},
    {"d", Default},
    {"default", Default},
    {"e", Escape<false>},
    {"escape", Escape<false>},
    {"float", ToFloat},
    {"forceescape", Escape<true>},
    {"format", FormatFilter},
    {"indent", IndentText},
    {"int", ToInt},
    {"lower", ChangeCase<Case::kLower>},
    {"replace", ReplaceText},
    {"round", Round},
    {"safe", Safe},
    {"string", ToString},
    {"title", Change<TitleFilter>},
    {"tojson", ToJsonFilter},
    {"trim", Trim},
    {"truncate", Truncate},
    {"upper", ChangeCase<Case::kUpper>},
};

// Those of Jinja that are left out.
constexpr absl::string_view kMissingFilters[] = {"filesizeformat", "pprint",    "random",
                                                 "striptags",      "urlencode", "urlize",
                                                 "wordcount",      "wordwrap",  "xmlattr"};

}  // namespace

absl::StatusOr<const Function*> FindFilter(absl::string_view name) {
  for (const absl::Span<const Function> filters :
       {absl::Span<const Function>(kTextFilters), ItemFilters()}) {
    for (const Function& filter : filters) {
      if (filter.name == name) return &filter;
    }
  }
  for (const absl::string_view missing : kMissingFilters) {
    if (missing == name)
      return absl::UnimplementedError(absl::StrCat("the filter ", name, " is not supported"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no filter of the name ", QuoteForMessage(name)));
}

}  // namespace inlay::jinja
