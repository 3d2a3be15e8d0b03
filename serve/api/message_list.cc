#include "serve/api/message_list.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "serve/api/request_json.h"

namespace inlay::serve {

Json& MessageList::Add(absl::string_view role, std::string text) {
  messages_->push_back({{"role", std::string(role)}, {"content", std::move(text)}});
  return messages_->back();
}

void MessageList::AddResult(const std::string& call_id, std::string text, std::string name) {
  const auto called = called_.find(call_id);
  if (name.empty() && called != called_.end()) name = called->second;
  Json& message = Add("tool", std::move(text));
  message["tool_call_id"] = call_id;
  if (!name.empty()) message["name"] = std::move(name);
}

void MessageList::AddCall(const std::string& id, const std::string& name, JsonDocument arguments) {
  called_[id] = name;
  messages_->back()["tool_calls"].push_back(
      {{"id", id},
       {"type", "function"},
       {"function", {{"name", name}, {"arguments", *std::move(arguments)}}}});
}

void MessageList::AddCallOf(FieldReader& function, const std::string& id, const std::string& name) {
  const Json* const arguments = function.Find("arguments");
  if (arguments == nullptr) {
    function.Fail("arguments", "must be given");
  } else if (arguments->is_object()) {
    AddCall(id, name, JsonDocument(*arguments));
  } else if (arguments->is_string()) {
    AddWrittenCall(id, name, arguments->get_ref<const std::string&>());
  } else {
    function.Fail("arguments",
                  absl::StrCat("must be a string or an object, not ", KindOf(*arguments)));
  }
}

void MessageList::AddWrittenCall(const std::string& id, const std::string& name,
                                 absl::string_view arguments) {
  absl::StatusOr<JsonDocument> object = ParseRequestJson("arguments", arguments);
  if (absl::IsResourceExhausted(object.status())) {
    if (error_->ok()) *error_ = object.status();
    return;
  }
  if (arguments.empty() || (object.ok() && (*object)->is_null())) {
    object = JsonDocument(Json::object());
  } else if (!object.ok() || !(*object)->is_object()) {
    object = JsonDocument(Json{{"malformed", std::string(arguments)}});
  }
  AddCall(id, name, *std::move(object));
}

std::string MessageList::last_role() const {
  return messages_->empty() ? "" : messages_->back()["role"].get<std::string>();
}

}  // namespace inlay::serve
