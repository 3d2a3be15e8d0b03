#include "gemma_like/chat/content_parts.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "gemma_like/chat/chat_probe.h"
#include "gemma_like/chat/message_dict.h"
#include "gemma_like/chat/message_roles.h"
#include "io/template/text.h"

namespace inlay {
namespace {

using jinja::DictRep;
using jinja::Type;
using jinja::Value;

// What each role is tried with, after those that occur in its chat.
struct RoleProbe {
  absl::string_view chat;
  bool ContentParts::*role;
};
constexpr RoleProbe kRoleProbes[] = {{"u", &ContentParts::user},
                                     {"su", &ContentParts::system},
                                     {"uau", &ContentParts::assistant},
                                     {"ucr", &ContentParts::result}};

// Whether the template has written such a list as it writes any value, instead of reading it.
bool ShowsParts(absl::string_view written) {
  return absl::StrContains(written, "'type': 'text'") ||
         absl::StrContains(written, "\"type\": \"text\"");
}

Value AsPart(const Value& text) {
  const auto part = std::make_shared<DictRep>();
  part->Set(Key("type"), Key("text"));
  part->Set(Key("text"), text);
  return Value::List({Finished(part)});
}

}  // namespace

ContentParts ContentParts::Of(Render render) {
  ContentParts parts;
  const auto written = [&](absl::string_view chat) -> absl::StatusOr<bool> {
    return ChatProbe(chat).Written([&](const Value& messages) -> absl::StatusOr<jinja::Text> {
      INLAY_ASSIGN_OR_RETURN(jinja::Text text, render(messages, parts));
      const bool adapted = parts != ContentParts();
      return adapted && ShowsParts(text.bytes()) ? jinja::Text() : std::move(text);
    });
  };
  const auto passes = [&](absl::string_view chat) { return written(chat).value_or(false); };
  for (const RoleProbe& probe : kRoleProbes) {
    if (passes(probe.chat)) continue;
    parts.*probe.role = true;
    if (!passes(probe.chat)) parts.*probe.role = false;
  }
  parts.user_is_lost = written("u").ok() && !passes("u") && !passes("su");
  return parts;
}

Value ContentParts::Adapt(const Value& messages) const {
  if (!user && !system && !assistant && !result) return messages;
  jinja::Values adapted;
  for (const Value& message : messages.sequence()->items) {
    const Value* content = message.dict().Find("content");
    const bool wanted = (user && IsUser(message)) || (system && IsSystem(message)) ||
                        (assistant && IsAssistant(message)) || (result && IsResult(message));
    if (!wanted || content == nullptr || !content->is(Type::kString)) {
      adapted.push_back(message);
      continue;
    }
    auto copy = CopyMessage(message);
    copy->Set(Key("content"), AsPart(*content));
    adapted.push_back(Finished(std::move(copy)));
  }
  return Value::List(std::move(adapted));
}

}  // namespace inlay
