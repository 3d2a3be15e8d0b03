#include "gemma_like/chat/chat_messages.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/chat/call_writer.h"
#include "gemma_like/chat/message_dict.h"
#include "io/template/json_input.h"

namespace inlay {
namespace {

using jinja::DictRep;
using jinja::Origin;
using jinja::Type;
using jinja::Value;

constexpr absl::string_view kKnownRoles[] = {"system", "developer", "user", "assistant",
                                             "tool",   "function",  "model"};

bool IsList(const Value& value) { return value.is_sequence(jinja::SequenceKind::kList); }

// A copy of `dict` whose values `change(key, value)` may change; a value that it makes undefined is
// left out.
template <class Change>
absl::StatusOr<std::shared_ptr<DictRep>> Copy(const DictRep& dict, const Change& change) {
  auto copy = std::make_shared<DictRep>();
  for (const auto& [key, value] : dict.entries()) {
    INLAY_ASSIGN_OR_RETURN(Value changed, change(key.bytes(), value));
    if (!changed.is(Type::kUndefined)) copy->Set(key, std::move(changed));
  }
  return copy;
}

// A template that takes texts too gets one that is no JSON object as it is.
Value PrepareArguments(const Value& arguments) {
  if (!arguments.is(Type::kString)) return arguments;
  const absl::string_view text = arguments.bytes();
  const auto parsed = jinja::ParseJson(text.empty() ? "{}" : text);
  return parsed.ok() && parsed->is(Type::kDict) ? *parsed : arguments;
}

absl::StatusOr<Value> PrepareCall(const Value& call) {
  if (!call.is(Type::kDict)) return call;
  INLAY_ASSIGN_OR_RETURN(
      auto copy,
      Copy(call.dict(), [](absl::string_view key, const Value& value) -> absl::StatusOr<Value> {
        if (key == "arguments") return PrepareArguments(value);
        return key == "function" ? PrepareCall(value) : value;
      }));
  return Finished(std::move(copy));
}

// Undefined for no calls.
absl::StatusOr<Value> PrepareCalls(const Value& calls) {
  if (calls.is(Type::kNone)) return Value();
  if (!IsList(calls)) return absl::InvalidArgumentError("its tool_calls are not a list");
  jinja::Values prepared;
  for (const Value& call : calls.sequence()->items) {
    INLAY_ASSIGN_OR_RETURN(Value next, PrepareCall(call));
    prepared.push_back(std::move(next));
  }
  return prepared.empty() ? Value() : Value::List(std::move(prepared));
}

// The text of part number `i` of a content.
absl::StatusOr<jinja::Text> TextOfPart(const Value& part, size_t i) {
  const auto find = [&](absl::string_view key) {
    const Value* found = part.is(Type::kDict) ? part.dict().Find(key) : nullptr;
    return found != nullptr && found->is(Type::kString) ? found : nullptr;
  };
  const Value* type = find("type");
  if (type == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("part ", i, " of its content has no type"));
  const bool refusal = type->bytes() == "refusal";  // what an assistant said instead of an answer
  if (!refusal && type->bytes() != "text") {
    return absl::InvalidArgumentError(absl::StrCat("part ", i, " of its content is of the type ",
                                                   QuoteForMessage(type->bytes()),
                                                   ", but only texts are read"));
  }
  const Value* text = find(type->bytes());
  if (text != nullptr) return text->text();
  return absl::InvalidArgumentError(absl::StrCat("part ", i, " of its content has no text"));
}

// One text, whose parts are on lines of their own as in the requests of a server.
absl::StatusOr<Value> PrepareContent(const Value& content) {
  if (content.is(Type::kString)) return content;
  if (content.is(Type::kNone)) return Key("");
  if (!IsList(content))
    return absl::InvalidArgumentError("its content is neither a text nor a list of parts");
  const jinja::Values& parts = content.sequence()->items;
  jinja::Text whole;
  for (size_t i = 0; i < parts.size(); ++i) {
    INLAY_ASSIGN_OR_RETURN(const jinja::Text text, TextOfPart(parts[i], i));
    if (i > 0) whole.Append("\n", Origin::kMessage);
    whole.Append(text);
  }
  return Value::String(std::move(whole));
}

absl::StatusOr<Value> PrepareValue(absl::string_view key, const Value& value) {
  if (key == "tool_calls") return PrepareCalls(value);
  if (key == "content") return PrepareContent(value);
  if (key != "role") return value;
  if (!value.is(Type::kString)) return absl::InvalidArgumentError("its role is not a string");
  const bool known = std::find(std::begin(kKnownRoles), std::end(kKnownRoles), value.bytes()) !=
                     std::end(kKnownRoles);
  return Value::String(value.bytes(), known ? Origin::kTemplate : Origin::kMessage);
}

// Puts calls where the template looks for them.
absl::Status PlaceCalls(const MessageStyle& style, DictRep& message) {
  const Value* calls = message.Find("tool_calls");
  if (!style.calls_in_content.has_value() || calls == nullptr) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(const jinja::Text written, WriteCalls(*style.calls_in_content, *calls));
  jinja::Text whole = message.Find("content")->text();
  whole.Append(written);
  message.Set(Key("content"), Value::String(std::move(whole)));
  return absl::OkStatus();
}

// And what the assistant thought.
void PlaceReasoning(const MessageStyle& style, DictRep& message) {
  const Value* reasoning = message.Find("reasoning_content");
  if (reasoning == nullptr || !reasoning->is(Type::kString) || reasoning->bytes().empty()) return;
  const Value thoughts = *reasoning;
  if (!style.reasoning_key.empty() && message.Find(style.reasoning_key) == nullptr)
    message.Set(Key(style.reasoning_key), thoughts);
  if (!style.reasoning_in_content) return;
  // The assistant's own control tokens, as the template's.
  jinja::Text whole("<think>\n", Origin::kTemplate);
  whole.Append(thoughts.text());
  whole.Append("\n</think>\n\n", Origin::kTemplate);
  whole.Append(message.Find("content")->text());
  message.Set(Key("content"), Value::String(std::move(whole)));
}

absl::StatusOr<Value> PrepareMessage(const Value& message, const MessageStyle& style) {
  if (!message.is(Type::kDict)) return absl::InvalidArgumentError("it is not an object");
  if (message.dict().Find("role") == nullptr) return absl::InvalidArgumentError("it has no role");
  INLAY_ASSIGN_OR_RETURN(auto copy, Copy(message.dict(), PrepareValue));
  if (style.developer_is_system && copy->Find("role")->bytes() == "developer")
    copy->Set(Key("role"), Key("system"));
  if (copy->Find("content") == nullptr) copy->Set(Key("content"), Key(""));
  INLAY_RETURN_IF_ERROR(PlaceCalls(style, *copy));
  PlaceReasoning(style, *copy);
  return Finished(std::move(copy));
}

}  // namespace

MessageStyle MessageStyle::Of(absl::string_view source) {
  const auto names = [&](absl::string_view key) {
    return absl::StrContains(source, absl::StrCat("message.", key)) ||
           absl::StrContains(source, absl::StrCat("['", key, "']")) ||
           absl::StrContains(source, absl::StrCat("[\"", key, "\"]")) ||
           absl::StrContains(source, absl::StrCat(".get('", key, "'")) ||
           absl::StrContains(source, absl::StrCat(".get(\"", key, "\""));
  };
  MessageStyle style;
  style.developer_is_system = !absl::StrContains(source, "developer");
  if (!absl::StrContains(source, "tool_calls")) {
    const AnswerFormat format = AnswerFormat::Of(source);
    if (CanWriteCalls(format.calls)) style.calls_in_content = format;
  }
  if (absl::StrContains(source, "reasoning_content")) return style;
  for (const absl::string_view key : {"reasoning", "thinking"}) {
    if (!names(key)) continue;
    style.reasoning_key = std::string(key);
    return style;
  }
  style.reasoning_in_content = absl::StrContains(source, "split('</think>')") ||
                               absl::StrContains(source, "split(\"</think>\")");
  return style;
}

absl::StatusOr<Value> PrepareMessages(const Value& messages, const MessageStyle& style) {
  if (!IsList(messages))
    return absl::InvalidArgumentError("the messages are not a list: [{\"role\": ...}] is expected");
  jinja::Values prepared;
  for (const Value& message : messages.sequence()->items) {
    absl::StatusOr<Value> next = PrepareMessage(message, style);
    if (!next.ok()) {
      return absl::Status(next.status().code(),
                          absl::StrCat("message ", prepared.size(), ": ", next.status().message()));
    }
    prepared.push_back(*std::move(next));
  }
  return Value::List(std::move(prepared));
}

Value AnswerMessage(absl::Span<const AnswerEvent> events) {
  std::string text, thoughts, name, arguments;
  jinja::Values calls;
  for (const AnswerEvent& event : events) {
    switch (event.kind) {
      case AnswerEvent::Kind::kText:
        text += event.text;
        break;
      case AnswerEvent::Kind::kReasoning:
        thoughts += event.text;
        break;
      case AnswerEvent::Kind::kCallBegin:
        name = event.text;
        arguments.clear();
        break;
      case AnswerEvent::Kind::kCallArguments:
        arguments += event.text;
        break;
      case AnswerEvent::Kind::kCallEnd: {
        const auto function = std::make_shared<DictRep>();
        function->Set(Key("name"), Value::String(name, Origin::kMessage));
        function->Set(Key("arguments"), Value::String(arguments, Origin::kMessage));
        const auto call = std::make_shared<DictRep>();
        // Mistral's templates want nine letters and digits.
        call->Set(Key("id"), Key(absl::StrCat("call", absl::Dec(calls.size(), absl::kZeroPad5))));
        call->Set(Key("type"), Key("function"));
        call->Set(Key("function"), Finished(function));
        calls.push_back(Finished(call));
        break;
      }
    }
  }
  const auto message = std::make_shared<DictRep>();
  message->Set(Key("role"), Key("assistant"));
  message->Set(Key("content"), Value::String(text, Origin::kMessage));
  if (!thoughts.empty())
    message->Set(Key("reasoning_content"), Value::String(thoughts, Origin::kMessage));
  if (!calls.empty()) message->Set(Key("tool_calls"), Value::List(std::move(calls)));
  return Finished(message);
}

}  // namespace inlay
