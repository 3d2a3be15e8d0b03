#include "io/template/format.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/template/operators.h"
#include "io/template/print.h"
#include "io/template/text_operations.h"
#include "io/template/unicode_text.h"

namespace inlay::jinja {
namespace {

constexpr int kMostPrecision = 100;

// How one value is written.
struct Specification {
  std::string fill = " ";
  Origin origin = Origin::kTemplate;  // of the fill
  char align = '\0';  // <, >, ^, or = for zeros after the sign; none: as the type wants
  char sign = '\0';   // + or space, for numbers that are not negative
  bool thousands = false;
  int64_t width = 0;
  int precision = -1;  // -1: none
  char type = '\0';    // none: as str() does

  friend bool operator==(const Specification&, const Specification&) = default;
};

absl::Status Unsupported(absl::string_view specification) {
  return absl::UnimplementedError(
      absl::StrCat("the format ", QuoteForMessage(specification), " is not supported"));
}

// Reads a number from the front of `text`; 0 when there is none.
absl::Status ReadNumber(absl::string_view* text, int64_t* number) {
  size_t size = 0;
  while (size < text->size() && absl::ascii_isdigit((*text)[size])) ++size;
  *number = 0;
  if (size > 0 && !absl::SimpleAtoi(text->substr(0, size), number)) return Unsupported(*text);
  text->remove_prefix(size);
  return absl::OkStatus();
}

bool ReadChar(absl::string_view* text, absl::string_view set, char* read) {
  if (text->empty() || set.find(text->front()) == absl::string_view::npos) return false;
  *read = text->front();
  text->remove_prefix(1);
  return true;
}

absl::Status ReadPrecision(absl::string_view* text, int* precision) {
  if (text->empty() || text->front() != '.') return absl::OkStatus();
  const absl::string_view whole = *text;
  text->remove_prefix(1);
  int64_t number = 0;
  INLAY_RETURN_IF_ERROR(ReadNumber(text, &number));
  if (number > kMostPrecision) return Unsupported(whole);
  *precision = static_cast<int>(number);
  return absl::OkStatus();
}

// What is after the colon in {:...}, of which `origin` is the first byte's.
absl::StatusOr<Specification> ParseSpecification(absl::string_view text, Origin origin) {
  const absl::string_view whole = text;
  Specification spec;
  const size_t fill = ByteOfCodePoint(text, 1);
  if (fill < text.size() && absl::string_view("<>^=").find(text[fill]) != absl::string_view::npos) {
    spec.fill = std::string(text.substr(0, fill));
    spec.origin = origin;
    text.remove_prefix(fill);
  }
  ReadChar(&text, "<>^=", &spec.align);
  char skipped = '\0';
  if (!ReadChar(&text, "+ ", &spec.sign)) ReadChar(&text, "-", &skipped);
  if (spec.align == '\0' && ReadChar(&text, "0", &skipped)) {
    spec.align = '=';
    spec.fill = "0";
  }
  INLAY_RETURN_IF_ERROR(ReadNumber(&text, &spec.width));
  spec.thousands = ReadChar(&text, ",", &skipped);
  INLAY_RETURN_IF_ERROR(ReadPrecision(&text, &spec.precision));
  ReadChar(&text, "sdxXfFeEgG%", &spec.type);
  if (!text.empty()) return Unsupported(whole);
  return spec;
}

std::string WithThousands(const std::string& digits) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string FloatDigits(double value, char type, int precision) {
  const int p = precision < 0 ? 6 : precision;
  switch (type) {
    case 'e':
      return Format("%.*e", p, value);
    case 'E':
      return Format("%.*E", p, value);
    case 'g':
      return Format("%.*g", p, value);
    case 'G':
      return Format("%.*G", p, value);
    case '%':
      return Format("%.*f%%", p, value * 100);
    default:
      return Format("%.*f", p, value);
  }
}

// The number without its sign.
absl::StatusOr<std::string> NumberDigits(const Value& value, const Specification& spec) {
  const std::optional<int64_t> integer = AsInteger(value);
  if (value.is(Type::kBigInt) && (spec.type == 'd' || spec.type == '\0') && spec.precision < 0)
    return std::string(absl::StripPrefix(value.digits(), "-"));
  if (spec.type == 'd' || spec.type == 'x' || spec.type == 'X' ||
      (spec.type == '\0' && integer.has_value())) {
    if (!integer.has_value() || spec.precision >= 0)
      return Unsupported(absl::StrCat(absl::string_view(&spec.type, 1)));
    const uint64_t magnitude =
        *integer < 0 ? -static_cast<uint64_t>(*integer) : static_cast<uint64_t>(*integer);
    if (spec.type == 'x') return Format("%x", magnitude);
    if (spec.type == 'X') return Format("%X", magnitude);
    return absl::StrCat(magnitude);
  }
  const double number = NumberAsDouble(value);
  const double magnitude = number < 0 ? -number : number;
  if (spec.type == '\0') {
    if (spec.precision >= 0) return Unsupported(absl::StrCat(".", spec.precision));
    return FloatText(magnitude);
  }
  return FloatDigits(magnitude, spec.type, spec.precision);
}

absl::StatusOr<Text> FormatNumber(Budget& budget, const Value& value, const Specification& spec) {
  INLAY_ASSIGN_OR_RETURN(std::string digits, NumberDigits(value, spec));
  if (spec.thousands) digits = WithThousands(digits);
  const bool negative = NumberAsDouble(value) < 0;
  const std::string sign = negative ? "-" : std::string(spec.sign == '\0' ? 0 : 1, spec.sign);
  const Text fill(spec.fill, spec.origin);
  if (spec.align == '=') {
    const int64_t width = spec.width - static_cast<int64_t>(sign.size());
    INLAY_ASSIGN_OR_RETURN(const Text padded,
                           Pad(budget, Text(digits, Origin::kTemplate), width, fill, Side::kLeft));
    Text out(sign, Origin::kTemplate);
    out.Append(padded);
    return out;
  }
  const Side side = spec.align == '<'   ? Side::kRight
                    : spec.align == '^' ? Side::kBoth
                                        : Side::kLeft;
  return Pad(budget, Text(sign + digits, Origin::kTemplate), spec.width, fill, side);
}

absl::StatusOr<Text> FormatText(Budget& budget, Text text, const Specification& spec) {
  if (spec.align == '=' || spec.sign != '\0' || spec.thousands)
    return absl::InvalidArgumentError("a format for numbers is used for a text");
  if (spec.precision >= 0) {
    const size_t end = ByteOfCodePoint(text.bytes(), static_cast<size_t>(spec.precision));
    text = text.Part(0, end);
  }
  const Side side = spec.align == '>'   ? Side::kLeft
                    : spec.align == '^' ? Side::kBoth
                                        : Side::kRight;
  return Pad(budget, text, spec.width, Text(spec.fill, spec.origin), side);
}

// The value as format() writes it.
absl::StatusOr<Text> FormatValue(Budget& budget, const Value& value, const Specification& spec) {
  // Python writes a bool as a number where anything is said about its form.
  const bool plain_bool = value.is(Type::kBool) && spec == Specification();
  if (IsAnyNumber(value) && !plain_bool) {
    if (spec.type == 's') return absl::InvalidArgumentError("the format s is not one of numbers");
    return FormatNumber(budget, value, spec);
  }
  if (spec.type != '\0' && spec.type != 's')
    return absl::InvalidArgumentError(
        absl::StrCat("a format of numbers is used for a value of the type ", TypeName(value)));
  INLAY_ASSIGN_OR_RETURN(Text text, Str(budget, value));
  return FormatText(budget, std::move(text), spec);
}

// {...} between the braces: the field's name, the conversion after !, the specification after :.
struct Field {
  absl::string_view name, specification;
  char conversion = '\0';
};

absl::StatusOr<Field> ParseField(absl::string_view text) {
  Field field;
  const size_t colon = text.find(':');
  if (colon != absl::string_view::npos) field.specification = text.substr(colon + 1);
  text = text.substr(0, colon);
  const size_t bang = text.find('!');
  field.name = text.substr(0, bang);
  if (bang != absl::string_view::npos) {
    const absl::string_view conversion = text.substr(bang + 1);
    if (conversion != "r" && conversion != "s") return Unsupported(text);
    field.conversion = conversion[0];
  }
  if (field.name.find_first_of(".[") != absl::string_view::npos) return Unsupported(text);
  return field;
}

// Finds the values of fields: by name, by number, or in turn.
class FieldValues {
 public:
  FieldValues(Budget& budget, const Arguments& arguments)
      : budget_(budget), arguments_(arguments) {}

  absl::StatusOr<Value> Find(absl::string_view name) {
    // A name is compared with those of all arguments.
    INLAY_RETURN_IF_ERROR(budget_.Step(arguments_.named.size() * (name.size() / 64 + 1) / 16 + 1));
    size_t index = 0;
    if (name.empty()) {
      index = next_++;
    } else if (!absl::SimpleAtoi(name, &index)) {
      for (const auto& [key, value] : arguments_.named) {
        if (key.bytes() == name) return value;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("the format has no value for the field ", QuoteForMessage(name)));
    }
    if (index >= arguments_.positional.size())
      return absl::InvalidArgumentError(absl::StrCat("the format has no value ", index));
    return arguments_.positional[index];
  }

 private:
  Budget& budget_;
  const Arguments& arguments_;
  size_t next_ = 0;
};

// `text` is the part of `format` between two braces.
absl::StatusOr<Text> FormatField(Budget& budget, const Text& format, absl::string_view text,
                                 FieldValues& values) {
  INLAY_ASSIGN_OR_RETURN(const Field field, ParseField(text));
  INLAY_ASSIGN_OR_RETURN(Value value, values.Find(field.name));
  if (field.conversion != '\0') {
    Text converted;
    INLAY_RETURN_IF_ERROR(field.conversion == 'r' ? AppendRepr(budget, value, &converted)
                                                  : AppendStr(budget, value, &converted));
    value = Value::String(std::move(converted), &budget);
  }
  const Origin origin = field.specification.empty()
                            ? Origin::kTemplate
                            : format.OriginAt(static_cast<size_t>(field.specification.data() -
                                                                  format.bytes().data()));
  INLAY_ASSIGN_OR_RETURN(const Specification spec, ParseSpecification(field.specification, origin));
  return FormatValue(budget, value, spec);
}

// The values of a % format: a tuple's in turn, or one value, or a dict's by key.
class PercentValues {
 public:
  explicit PercentValues(const Value& values) : values_(values) {}

  bool is_tuple() const {
    return values_.is_sequence(SequenceKind::kTuple) || values_.is_sequence(SequenceKind::kGroup);
  }

  absl::StatusOr<Value> Next() {
    const size_t count = is_tuple() ? values_.sequence()->items.size() : 1;
    if (next_ >= count) return absl::InvalidArgumentError("the format has too few values");
    const size_t index = next_++;
    return is_tuple() ? values_.sequence()->items[index] : values_;
  }

  absl::StatusOr<Value> Find(absl::string_view key) {
    next_ = SIZE_MAX;
    if (!values_.is(Type::kDict))
      return absl::InvalidArgumentError("a format with keys needs a mapping");
    const Value* value = values_.dict().Find(key);
    if (value == nullptr)
      return absl::InvalidArgumentError(
          absl::StrCat("the format has no value for the key ", QuoteForMessage(key)));
    return *value;
  }

  absl::Status CheckAllUsed() const {
    // What can be indexed by a key or number may be left unused, but for strings.
    const bool indexed =
        values_.is(Type::kDict) || values_.is(Type::kSequence) || values_.is(Type::kUndefined);
    const bool unused =
        is_tuple() ? next_ < values_.sequence()->items.size() : next_ == 0 && !indexed;
    return unused ? absl::InvalidArgumentError("the format has too many values") : absl::OkStatus();
  }

 private:
  const Value& values_;
  size_t next_ = 0;
};

// One %... of which `text` starts after the percent sign; what was read is removed from it.
absl::StatusOr<Text> FormatDirective(Budget& budget, absl::string_view* text,
                                     PercentValues& values) {
  const absl::string_view whole = *text;
  std::optional<Value> value;
  if (!text->empty() && text->front() == '(') {
    const size_t end = text->find(')');
    if (end == absl::string_view::npos) return Unsupported(whole);
    INLAY_ASSIGN_OR_RETURN(value, values.Find(text->substr(1, end - 1)));
    text->remove_prefix(end + 1);
  }
  Specification spec;
  spec.align = '>';
  for (char flag = '\0'; ReadChar(text, "-+ 0", &flag);) {
    if (flag == '-') spec.align = '<';
    if (flag == '0' && spec.align != '<') spec.align = '=';
    if (flag == '+' || (flag == ' ' && spec.sign == '\0')) spec.sign = flag;
  }
  if (spec.align == '=') spec.fill = "0";
  INLAY_RETURN_IF_ERROR(ReadNumber(text, &spec.width));
  INLAY_RETURN_IF_ERROR(ReadPrecision(text, &spec.precision));
  if (!ReadChar(text, "sridxXfFeEgG%", &spec.type)) return Unsupported(whole.substr(0, 8));
  if (spec.type == '%') return Text("%", Origin::kTemplate);
  if (!value.has_value()) {
    INLAY_ASSIGN_OR_RETURN(value, values.Next());
  }
  if (spec.type == 's' || spec.type == 'r') {
    Text out;
    INLAY_RETURN_IF_ERROR(spec.type == 's' ? AppendStr(budget, *value, &out)
                                           : AppendRepr(budget, *value, &out));
    if (spec.align == '=') spec = {.align = '>', .width = spec.width, .precision = spec.precision};
    spec.sign = '\0';
    return FormatText(budget, std::move(out), spec);
  }
  if (!IsAnyNumber(*value))
    return absl::InvalidArgumentError(
        absl::StrCat("the format needs a number, not a value of the type ", TypeName(*value)));
  if (spec.type == 'i') spec.type = 'd';
  if (spec.type == 'd' && value->is(Type::kFloat)) return Unsupported("%d of a float");
  return FormatNumber(budget, *value, spec);
}

// The rest of a format after `at`, as long as it has the text `rest`.
size_t Position(const Text& format, absl::string_view rest) { return format.size() - rest.size(); }

}  // namespace

absl::StatusOr<Text> FormatBraces(Budget& budget, const Text& format, const Arguments& arguments) {
  INLAY_RETURN_IF_ERROR(budget.StepBytes(format.size()));
  FieldValues values(budget, arguments);
  Text out;
  absl::string_view rest = format.bytes();
  while (!rest.empty()) {
    const size_t begin = Position(format, rest);
    const size_t plain = std::min(rest.find_first_of("{}"), rest.size());
    out.AppendPart(format, begin, begin + plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    if (rest.size() > 1 && rest[1] == rest[0]) {
      out.AppendPart(format, begin + plain, begin + plain + 1);
      rest.remove_prefix(2);
      continue;
    }
    const size_t end = rest.find_first_of("{}", 1);
    if (rest[0] == '}' || end == absl::string_view::npos)
      return absl::InvalidArgumentError("a format has a brace without its partner");
    if (rest[end] == '{') return Unsupported(rest.substr(0, end + 1));
    INLAY_ASSIGN_OR_RETURN(const Text value,
                           FormatField(budget, format, rest.substr(1, end - 1), values));
    INLAY_RETURN_IF_ERROR(budget.CheckBytes(out.size() + value.size()));
    INLAY_RETURN_IF_ERROR(budget.StepBytes(value.size()));
    out.Append(value);
    rest.remove_prefix(end + 1);
  }
  return out;
}

absl::StatusOr<Text> FormatPercent(Budget& budget, const Text& format, const Value& values) {
  INLAY_RETURN_IF_ERROR(budget.StepBytes(format.size()));
  PercentValues next(values);
  Text out;
  absl::string_view rest = format.bytes();
  while (true) {
    const size_t begin = Position(format, rest);
    const size_t plain = std::min(rest.find('%'), rest.size());
    out.AppendPart(format, begin, begin + plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    rest.remove_prefix(1);
    INLAY_ASSIGN_OR_RETURN(const Text value, FormatDirective(budget, &rest, next));
    INLAY_RETURN_IF_ERROR(budget.CheckBytes(out.size() + value.size()));
    INLAY_RETURN_IF_ERROR(budget.StepBytes(value.size()));
    out.Append(value);
  }
  INLAY_RETURN_IF_ERROR(next.CheckAllUsed());
  return out;
}

}  // namespace inlay::jinja
