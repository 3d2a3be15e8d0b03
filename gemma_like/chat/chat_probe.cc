#include "gemma_like/chat/chat_probe.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gemma_like/chat/message_dict.h"

namespace inlay {
namespace {

using jinja::DictRep;
using jinja::Origin;
using jinja::Value;

// Mistral's templates want nine letters and digits.
constexpr absl::string_view kCallId = "call00000";

Value ProbeMessage(char role, absl::string_view text) {
  const auto message = std::make_shared<DictRep>();
  const auto set = [](DictRep& dict, absl::string_view key, absl::string_view value) {
    dict.Set(Key(key), Value::String(value, Origin::kMessage));
  };
  message->Set(Key("role"), Key(role == 's'   ? "system"
                                : role == 'u' ? "user"
                                : role == 'r' ? "tool"
                                              : "assistant"));
  set(*message, "content", role == 'c' ? "" : text);
  if (role == 'r') {
    set(*message, "tool_call_id", kCallId);
    set(*message, "name", "look");
  }
  if (role == 'c') {
    const auto function = std::make_shared<DictRep>(), call = std::make_shared<DictRep>();
    const auto arguments = std::make_shared<DictRep>();
    set(*arguments, "at", text);
    set(*function, "name", "look");
    function->Set(Key("arguments"), Finished(arguments));
    set(*call, "id", kCallId);
    set(*call, "type", "function");
    call->Set(Key("function"), Finished(function));
    message->Set(Key("tool_calls"), Value::List({Finished(call)}));
  }
  return Finished(message);
}

}  // namespace

ChatProbe::ChatProbe(absl::string_view roles) {
  jinja::Values messages;
  for (const char role : roles) {
    // Digits, which templates that change the case of letters leave as they are.
    const std::string text = absl::StrCat(7391500 + messages.size());
    messages.push_back(ProbeMessage(role, text));
    if (role != 'c') texts_.push_back(text);
  }
  messages_ = Value::List(std::move(messages));
}

absl::StatusOr<bool> ChatProbe::Written(Render render) const {
  INLAY_ASSIGN_OR_RETURN(const jinja::Text written, render(messages_));
  for (const std::string& text : texts_) {
    if (!absl::StrContains(written.bytes(), text)) return false;
  }
  return true;
}

}  // namespace inlay
