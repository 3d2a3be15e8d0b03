#include "io/template/to_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/template/operators.h"
#include "io/template/print.h"
#include "io/template/sort.h"

namespace inlay::jinja {
namespace {

// How a string writes the character; empty for one that it writes as it is.
std::string JsonEscape(const CodePoint& c, bool ensure_ascii) {
  switch (c.value) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\f':
      return "\\f";
    case '\b':
      return "\\b";
    default:
      break;
  }
  const auto value = static_cast<uint32_t>(c.value);
  if (value >= 0x20 && (!ensure_ascii || value < 0x7F)) return "";
  if (value < 0x10000) return Format("\\u%04x", value);
  return Format("\\u%04x\\u%04x", 0xD800 + ((value - 0x10000) >> 10),
                0xDC00 + ((value - 0x10000) & 0x3FF));
}

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}

  absl::StatusOr<Text> Write(const Value& value) {
    INLAY_RETURN_IF_ERROR(Append(value, 0));
    return std::move(out_);
  }

 private:
  void Literal(absl::string_view text) { out_.Append(text, Origin::kTemplate); }

  absl::Status Append(const Value& value, int level) {
    INLAY_RETURN_IF_ERROR(budget_.Step());
    INLAY_RETURN_IF_ERROR(budget_.CheckBytes(out_.size()));
    switch (value.type()) {
      case Type::kString:
        return AppendString(value.text());
      case Type::kDict:
        return AppendDict(value.dict(), level);
      case Type::kSequence:
        if (value.sequence()->kind <= SequenceKind::kGroup)
          return AppendList(value.sequence()->items, level);
        break;
      default:
        if (const std::string plain = PlainText(value); !plain.empty()) {
          Literal(plain);
          return absl::OkStatus();
        }
    }
    return absl::InvalidArgumentError(
        absl::StrCat("a value of the type ", TypeName(value), " cannot be written as JSON"));
  }

  // Of numbers, booleans and none; empty for other values.
  static std::string PlainText(const Value& value) {
    switch (value.type()) {
      case Type::kNone:
        return "null";
      case Type::kBool:
        return value.bool_value() ? "true" : "false";
      case Type::kInt:
        return absl::StrCat(value.int_value());
      case Type::kBigInt:
        return value.digits();
      case Type::kFloat:
        if (std::isnan(value.float_value())) return "NaN";
        if (std::isinf(value.float_value()))
          return value.float_value() > 0 ? "Infinity" : "-Infinity";
        return FloatText(value.float_value());
      default:
        return "";
    }
  }

  absl::Status AppendString(const Text& text) {
    const absl::string_view bytes = text.bytes();
    INLAY_RETURN_IF_ERROR(budget_.Reserve(6 * bytes.size()));
    Literal("\"");
    OriginReader origins(text);
    for (size_t at = 0; at < bytes.size();) {
      const CodePoint c = DecodeUtf8(bytes.substr(at));
      const size_t size = c.valid ? c.length : 1;
      const std::string escape = JsonEscape(c, style_.ensure_ascii);
      out_.Append(escape.empty() ? bytes.substr(at, size) : absl::string_view(escape),
                  origins.At(at));
      at += size;
    }
    Literal("\"");
    return absl::OkStatus();
  }

  absl::Status NewLine(int level) {
    if (!style_.indent.has_value()) return absl::OkStatus();
    INLAY_RETURN_IF_ERROR(budget_.Reserve(static_cast<size_t>(level) * style_.indent->size()));
    Literal("\n");
    for (int i = 0; i < level; ++i) out_.Append(*style_.indent);
    return absl::OkStatus();
  }

  // Before the item of this index.
  absl::Status Separate(size_t index, int level) {
    if (index > 0) {
      INLAY_RETURN_IF_ERROR(budget_.StepBytes(style_.item_separator.size()));
      out_.Append(style_.item_separator);
    }
    return NewLine(level);
  }

  absl::Status AppendList(const Values& items, int level) {
    if (items.empty()) {
      Literal("[]");
      return absl::OkStatus();
    }
    Literal("[");
    for (size_t i = 0; i < items.size(); ++i) {
      INLAY_RETURN_IF_ERROR(Separate(i, level + 1));
      INLAY_RETURN_IF_ERROR(Append(items[i], level + 1));
    }
    INLAY_RETURN_IF_ERROR(NewLine(level));
    Literal("]");
    return absl::OkStatus();
  }

  absl::Status AppendKey(const Value& key) {
    if (key.is(Type::kString)) return AppendString(key.text());
    const std::string plain = PlainText(key);
    if (plain.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("a key of the type ", TypeName(key), " cannot be written as JSON"));
    Literal(absl::StrCat("\"", plain, "\""));
    return absl::OkStatus();
  }

  absl::Status AppendDict(const DictRep& dict, int level) {
    if (dict.entries().empty()) {
      Literal("{}");
      return absl::OkStatus();
    }
    std::vector<size_t> order(dict.entries().size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (style_.sort_keys) {
      Values keys;
      for (const auto& [key, value] : dict.entries()) keys.push_back(key);
      INLAY_ASSIGN_OR_RETURN(order, SortedOrder(budget_, keys, /*reverse=*/false));
    }
    Literal("{");
    for (size_t i = 0; i < order.size(); ++i) {
      const auto& [key, value] = dict.entries()[order[i]];
      INLAY_RETURN_IF_ERROR(Separate(i, level + 1));
      INLAY_RETURN_IF_ERROR(AppendKey(key));
      out_.Append(style_.key_separator);
      INLAY_RETURN_IF_ERROR(Append(value, level + 1));
    }
    INLAY_RETURN_IF_ERROR(NewLine(level));
    Literal("}");
    return absl::OkStatus();
  }

  Budget& budget_;
  const JsonStyle& style_;
  Text out_;
};

}  // namespace

absl::StatusOr<Text> ToJson(Budget& budget, const Value& value, const JsonStyle& style) {
  return JsonWriter(budget, style).Write(value);
}

}  // namespace inlay::jinja
