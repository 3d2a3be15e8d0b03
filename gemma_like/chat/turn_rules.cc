#include "gemma_like/chat/turn_rules.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gemma_like/chat/message_dict.h"
#include "gemma_like/chat/message_roles.h"
#include "io/template/text.h"

namespace inlay {
namespace {

using jinja::Origin;
using jinja::Type;
using jinja::Value;
using jinja::Values;

bool HasCalls(const Value& message) { return message.dict().Find("tool_calls") != nullptr; }

// Keys under which messages have texts that are joined: the last three are an assistant's thoughts.
constexpr absl::string_view kTexts[] = {"content", "reasoning_content", "reasoning", "thinking"};

// None counts as an empty text.
bool IsTextOrNone(const Value& value) { return value.is(Type::kString) || value.is(Type::kNone); }

bool CanJoin(const Value& message) {
  for (const absl::string_view key : kTexts) {
    const Value* value = message.dict().Find(key);
    if (value != nullptr && !IsTextOrNone(*value)) return false;
  }
  return true;
}

// One message of those that are joined: the first, with the texts of all, and what else the
// assistant's others have.
Value Join(const Values& messages) {
  auto joined = CopyMessage(messages[0]);
  for (const Value& message : messages) {
    if (!IsAssistant(message)) continue;
    for (const auto& [key, value] : message.dict().entries()) {
      if (joined->Find(key) == nullptr) joined->Set(key, value);
    }
  }
  for (const absl::string_view key : kTexts) {
    jinja::Text whole;
    bool there = false;
    for (const Value& message : messages) {
      const Value* value = message.dict().Find(key);
      if (value == nullptr) continue;
      there = true;
      if (value->is(Type::kNone) || value->bytes().empty()) continue;
      if (!whole.empty()) whole.Append("\n\n", Origin::kMessage);
      whole.Append(value->text());
    }
    if (there) joined->Set(Key(key), Value::String(std::move(whole)));
  }
  return Finished(std::move(joined));
}

// Puts adapted messages one after the other.
class Adapter {
 public:
  explicit Adapter(const TurnRules& rules) : rules_(rules) {}

  // `result_follows`: the next message that is not the system's is a result of a tool.
  void Add(const Value& message, bool result_follows) {
    if (IsSystem(message)) return AddSystem(message, result_follows);
    if (!IsResult(message)) Release();
    all_system_ = false;
    Push(message);
  }

  Values Take() {
    Release();
    Values messages;
    for (const Values& group : groups_)
      messages.push_back(group.size() == 1 ? group[0] : Join(group));
    return messages;
  }

 private:
  void AddSystem(const Value& message, bool result_follows) {
    const bool to_user = all_system_ ? rules_.system_is_user : rules_.late_system_is_user;
    if (!to_user) return Push(message);
    auto copy = CopyMessage(message);
    copy->Set(Key("role"), Key("user"));
    if (!all_system_ && result_follows) return held_.push_back(Finished(std::move(copy)));
    Push(Finished(std::move(copy)));
  }

  // Whether the message is to be part of those before.
  bool Joins(const Values& before, const Value& message) const {
    const Value& first = before.front();
    if (IsSystem(message)) return all_system_ && rules_.one_system;
    if (IsAssistant(message))
      return rules_.one_assistant && IsAssistant(first) && !HasCalls(before.back());
    if (!IsUser(message)) return false;
    return (rules_.one_user && IsUser(first)) || (rules_.no_user_after_result && IsResult(first));
  }

  void Push(const Value& message) {
    if (!groups_.empty() && Joins(groups_.back(), message) && CanJoin(groups_.back().back()) &&
        CanJoin(message)) {
      groups_.back().push_back(message);
    } else {
      groups_.push_back({message});
    }
  }

  void Release() {
    for (const Value& message : std::exchange(held_, {})) Push(message);
  }

  const TurnRules& rules_;
  std::vector<Values> groups_;  // of messages that become one
  Values held_;                 // what comes after the results that follow
  bool all_system_ = true;      // every message so far
};

}  // namespace

TurnRules TurnRules::Of(ChatProbe::Render render) {
  const auto passes = [&](absl::string_view roles) {
    return ChatProbe(roles).Written(render).value_or(false);
  };
  TurnRules rules;
  if (!passes("u")) return rules;
  const bool has_system = passes("su");
  rules.system_is_user = !has_system;
  rules.one_system = has_system && !passes("ssu");
  if (!passes("uau")) return rules;
  rules.one_user = !passes("uu") || !passes("uuau");
  rules.late_system_is_user = !passes("us") || !passes("uasu");
  rules.one_assistant = !passes("uaau");
  rules.no_user_after_result = passes("ucr") && !passes("ucru");
  return rules;
}

Value TurnRules::Adapt(const Value& messages) const {
  if (*this == TurnRules()) return messages;
  const Values& all = messages.sequence()->items;
  // From behind: the role that follows each of the system's messages.
  std::vector<bool> result_follows(all.size());
  for (size_t i = all.size(); i-- > 1;)
    result_follows[i - 1] = IsSystem(all[i]) ? result_follows[i] : IsResult(all[i]);
  Adapter adapter(*this);
  for (size_t i = 0; i < all.size(); ++i) adapter.Add(all[i], result_follows[i]);
  return Value::List(adapter.Take());
}

}  // namespace inlay
