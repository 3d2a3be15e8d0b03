#include "gemma_like/chat/call_writer.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "io/template/budget.h"
#include "io/template/to_json.h"

namespace inlay {
namespace {

using jinja::Origin;
using jinja::Text;
using jinja::Type;
using jinja::Value;

class CallWriter {
 public:
  const Text& text() const { return text_; }

  void Add(absl::string_view markup) { text_.Append(markup, Origin::kTemplate); }

  absl::Status AddJson(const Value& value) {
    INLAY_ASSIGN_OR_RETURN(const Text json, ToJson(budget_, value, style_));
    text_.Append(json);
    return absl::OkStatus();
  }

  // JSON, but for the three words that Python has instead.
  absl::Status AddPython(const Value& value) {
    if (value.is(Type::kNone)) return Add("None"), absl::OkStatus();
    if (value.is(Type::kBool)) return Add(value.bool_value() ? "True" : "False"), absl::OkStatus();
    if (value.is(Type::kSequence)) {
      Add("[");
      absl::string_view separator = "";
      for (const Value& item : value.sequence()->items) {
        Add(separator);
        INLAY_RETURN_IF_ERROR(AddPython(item));
        separator = ", ";
      }
      return Add("]"), absl::OkStatus();
    }
    if (!value.is(Type::kDict)) return AddJson(value);
    Add("{");
    absl::string_view separator = "";
    for (const auto& [key, member] : value.dict().entries()) {
      Add(separator);
      INLAY_RETURN_IF_ERROR(AddJson(key));
      Add(": ");
      INLAY_RETURN_IF_ERROR(AddPython(member));
      separator = ", ";
    }
    return Add("}"), absl::OkStatus();
  }

  absl::Status AddJsonCall(const Value& name, const Value& arguments) {
    Add("{\"name\": ");
    INLAY_RETURN_IF_ERROR(AddJson(name));
    Add(", \"arguments\": ");
    INLAY_RETURN_IF_ERROR(AddJson(arguments));
    return Add("}"), absl::OkStatus();
  }

  absl::Status AddPythonCall(const Value& name, const Value& arguments) {
    text_.Append(name.text());
    Add("(");
    absl::string_view separator = "";
    if (arguments.is(Type::kDict)) {
      for (const auto& [key, value] : arguments.dict().entries()) {
        Add(separator);
        text_.Append(key.text());
        Add("=");
        INLAY_RETURN_IF_ERROR(AddPython(value));
        separator = ", ";
      }
    }
    return Add(")"), absl::OkStatus();
  }

 private:
  jinja::Budget budget_{jinja::Limits()};
  const jinja::JsonStyle style_{.ensure_ascii = false,
                                .indent = std::nullopt,
                                .item_separator = Text(", ", Origin::kTemplate),
                                .key_separator = Text(": ", Origin::kTemplate)};
  Text text_;
};

// A member of a call, which may be the function itself or hold it.
Value MemberOfCall(const Value& call, absl::string_view key) {
  if (!call.is(Type::kDict)) return Value();
  const Value* function = call.dict().Find("function");
  if (function != nullptr && function->is(Type::kDict)) return MemberOfCall(*function, key);
  const Value* member = call.dict().Find(key);
  return member == nullptr ? Value() : *member;
}

}  // namespace

bool CanWriteCalls(CallSyntax syntax) {
  return syntax == CallSyntax::kJson || syntax == CallSyntax::kTagged ||
         syntax == CallSyntax::kPython;
}

absl::StatusOr<Text> WriteCalls(const AnswerFormat& format, const Value& calls) {
  // One list within the markers, or markers around each call.
  const bool each = format.calls == CallSyntax::kTagged;
  CallWriter writer;
  bool first = true;
  if (!each) writer.Add(std::string(format.call_begin) + "[");
  for (const Value& call : calls.sequence()->items) {
    const Value name = MemberOfCall(call, "name");
    if (!name.is(Type::kString))
      return absl::InvalidArgumentError("one of its tool_calls has no name");
    Value arguments = MemberOfCall(call, "arguments");
    if (arguments.is(Type::kUndefined)) arguments = Value::None();
    if (!first) writer.Add(each ? "\n" : ", ");
    first = false;
    if (each) writer.Add(std::string(format.call_begin) + "\n");
    INLAY_RETURN_IF_ERROR(format.calls == CallSyntax::kPython
                              ? writer.AddPythonCall(name, arguments)
                              : writer.AddJsonCall(name, arguments));
    if (each) writer.Add("\n" + std::string(format.call_end));
  }
  if (!each) writer.Add("]" + std::string(format.call_end));
  return writer.text();
}

}  // namespace inlay
