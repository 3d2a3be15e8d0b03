#include "io/template/print.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/template/operators.h"
#include "io/template/unicode_text.h"

namespace inlay::jinja {
namespace {

// The escape of a character that repr() does not write as it is; empty for one that it does.
std::string ReprEscape(const CodePoint& c, absl::string_view raw, char quote) {
  if (!c.valid) return Format("\\x%02x", static_cast<unsigned char>(raw[0]));
  const char32_t value = c.value;
  if (value == static_cast<char32_t>(quote) || value == '\\')
    return absl::StrCat("\\", raw.substr(0, 1));
  if (value == '\n') return "\\n";
  if (value == '\r') return "\\r";
  if (value == '\t') return "\\t";
  if (IsPrintable(value)) return "";
  if (value < 0x100) return Format("\\x%02x", static_cast<uint32_t>(value));
  if (value < 0x10000) return Format("\\u%04x", static_cast<uint32_t>(value));
  return Format("\\U%08x", static_cast<uint32_t>(value));
}

void AppendStringRepr(const Text& text, Text* out) {
  const absl::string_view bytes = text.bytes();
  const bool single = absl::StrContains(bytes, '\'') && !absl::StrContains(bytes, '"');
  const char quote = single ? '"' : '\'';
  out->Append(absl::string_view(&quote, 1), Origin::kTemplate);
  OriginReader origins(text);
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = DecodeUtf8(bytes.substr(at));
    const absl::string_view raw = bytes.substr(at, c.valid ? c.length : 1);
    const std::string escape = ReprEscape(c, raw, quote);
    out->Append(escape.empty() ? raw : absl::string_view(escape), origins.At(at));
    at += raw.size();
  }
  out->Append(absl::string_view(&quote, 1), Origin::kTemplate);
}

absl::Status AppendItems(Budget& budget, const Values& items, absl::string_view open,
                         absl::string_view close, Text* out) {
  out->Append(open, Origin::kTemplate);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out->Append(", ", Origin::kTemplate);
    INLAY_RETURN_IF_ERROR(AppendRepr(budget, items[i], out));
  }
  out->Append(close, Origin::kTemplate);
  return absl::OkStatus();
}

absl::Status AppendRange(const Values& items, Text* out) {
  // Made of equal steps; an empty one, one item and the default step need not be told apart here.
  if (items.size() < 2)
    return absl::UnimplementedError("printing a range of less than two numbers is not supported");
  // Any numbers may be there: nothing is computed that could overflow.
  const int64_t first = items[0].int_value(), second = items[1].int_value();
  const int64_t last = items.back().int_value();
  if (second <= first || second - 1 != first || last == INT64_MAX)
    return absl::UnimplementedError("printing a range with a step is not supported");
  out->Append(absl::StrCat("range(", first, ", ", last + 1, ")"), Origin::kTemplate);
  return absl::OkStatus();
}

absl::Status AppendSequence(Budget& budget, const SequenceRep& sequence, Text* out) {
  switch (sequence.kind) {
    case SequenceKind::kList:
      return AppendItems(budget, sequence.items, "[", "]", out);
    case SequenceKind::kTuple:
    case SequenceKind::kGroup:
      return AppendItems(budget, sequence.items, "(", sequence.items.size() == 1 ? ",)" : ")", out);
    case SequenceKind::kRange:
      return AppendRange(sequence.items, out);
    case SequenceKind::kKeys:
      return AppendItems(budget, sequence.items, "dict_keys([", "])", out);
    case SequenceKind::kValues:
      return AppendItems(budget, sequence.items, "dict_values([", "])", out);
    case SequenceKind::kItems:
      return AppendItems(budget, sequence.items, "dict_items([", "])", out);
  }
  return absl::InternalError("a sequence of no kind");
}

absl::Status AppendDict(Budget& budget, const DictRep& dict, Text* out) {
  absl::string_view before = "{";
  for (const auto& [key, value] : dict.entries()) {
    out->Append(before, Origin::kTemplate);
    INLAY_RETURN_IF_ERROR(AppendRepr(budget, key, out));
    out->Append(": ", Origin::kTemplate);
    INLAY_RETURN_IF_ERROR(AppendRepr(budget, value, out));
    before = ", ";
  }
  out->Append(dict.entries().empty() ? "{}" : "}", Origin::kTemplate);
  return absl::OkStatus();
}

// The digits of the shortest decimal for `value`, and where its point is: 0.d1d2... * 10^exponent.
std::string ShortestDigits(double value, int* exponent) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  const absl::string_view text(buffer.data(), static_cast<size_t>(end.ptr - buffer.data()));
  const size_t e = text.find('e');
  std::string digits(text.substr(0, 1));
  if (e > 1) absl::StrAppend(&digits, text.substr(2, e - 2));
  *exponent = std::atoi(std::string(text.substr(e + 1)).c_str()) + 1;
  return digits;
}

}  // namespace

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const std::string sign = std::signbit(value) ? "-" : "";
  int point = 0;
  std::string digits = ShortestDigits(std::fabs(value), &point);
  if (value == 0) return sign + "0.0";
  if (point > 16 || point < -3) {
    const std::string rest = digits.size() > 1 ? "." + digits.substr(1) : "";
    return absl::StrCat(sign, digits.substr(0, 1), rest, "e", point > 0 ? "+" : "-",
                        absl::Dec(std::abs(point - 1), absl::kZeroPad2));
  }
  if (point <= 0)
    return absl::StrCat(sign, "0.", std::string(static_cast<size_t>(-point), '0'), digits);
  const auto whole = static_cast<size_t>(point);
  if (digits.size() <= whole)
    return absl::StrCat(sign, digits, std::string(whole - digits.size(), '0'), ".0");
  return absl::StrCat(sign, digits.substr(0, whole), ".", digits.substr(whole));
}

absl::Status AppendRepr(Budget& budget, const Value& value, Text* out) {
  INLAY_RETURN_IF_ERROR(budget.Step());
  INLAY_RETURN_IF_ERROR(budget.CheckBytes(out->size()));
  switch (value.type()) {
    case Type::kUndefined:
      out->Append("Undefined", Origin::kTemplate);
      return absl::OkStatus();
    case Type::kNone:
      out->Append("None", Origin::kTemplate);
      return absl::OkStatus();
    case Type::kBool:
      out->Append(value.bool_value() ? "True" : "False", Origin::kTemplate);
      return absl::OkStatus();
    case Type::kInt:
      out->Append(absl::StrCat(value.int_value()), Origin::kTemplate);
      return absl::OkStatus();
    case Type::kBigInt:
      out->Append(value.digits(), Origin::kTemplate);
      return absl::OkStatus();
    case Type::kFloat:
      out->Append(FloatText(value.float_value()), Origin::kTemplate);
      return absl::OkStatus();
    case Type::kString:
      if (value.string().markup)
        return absl::UnimplementedError("printing a list of what |safe made is not supported");
      // An escape has up to ten characters.
      INLAY_RETURN_IF_ERROR(budget.Reserve(10 * value.bytes().size()));
      AppendStringRepr(value.text(), out);
      return absl::OkStatus();
    case Type::kSequence:
      return AppendSequence(budget, *value.sequence(), out);
    case Type::kDict:
      return AppendDict(budget, value.dict(), out);
    default:
      return absl::UnimplementedError(
          absl::StrCat("printing a value of the type ", TypeName(value), " is not supported"));
  }
}

absl::Status AppendStr(Budget& budget, const Value& value, Text* out) {
  if (value.is(Type::kUndefined)) return absl::OkStatus();
  if (!value.is(Type::kString)) return AppendRepr(budget, value, out);
  INLAY_RETURN_IF_ERROR(budget.StepBytes(value.bytes().size()));
  out->Append(value.text());
  return absl::OkStatus();
}

absl::StatusOr<Text> Str(Budget& budget, const Value& value) {
  if (value.is(Type::kString)) {
    INLAY_RETURN_IF_ERROR(budget.StepBytes(value.bytes().size()));
    return value.text();
  }
  Text text;
  INLAY_RETURN_IF_ERROR(AppendStr(budget, value, &text));
  return text;
}

}  // namespace inlay::jinja
