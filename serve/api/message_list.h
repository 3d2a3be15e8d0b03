// Puts together the messages of a conversation in the shape of Call::messages.
#ifndef INLAY_SERVE_API_MESSAGE_LIST_H_
#define INLAY_SERVE_API_MESSAGE_LIST_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"
#include "serve/api/field_reader.h"

namespace inlay::serve {

class MessageList {
 public:
  explicit MessageList(absl::Status* error) : error_(error) {}

  // The message that was added, for further members.
  Json& Add(absl::string_view role, std::string text);
  // The result of a call. Named after the function that was called, if that is known, as some chat
  // templates want it; `name` goes first.
  void AddResult(const std::string& call_id, std::string text, std::string name = "");
  // A call, by the message before.
  void AddCall(const std::string& id, const std::string& name, JsonDocument arguments);
  // A call whose arguments are that member of `function`: an object, or JSON as text, in which ""
  // and null are no arguments. Models write others than objects, which clients send back with what
  // they think of them: {"malformed": text} then.
  void AddCallOf(FieldReader& function, const std::string& id, const std::string& name);

  bool empty() const { return messages_->empty(); }
  // The role of the last message; "" where there is none.
  std::string last_role() const;
  JsonDocument Take() { return std::move(messages_); }

 private:
  void AddWrittenCall(const std::string& id, const std::string& name, absl::string_view arguments);

  absl::Status* const error_;
  JsonDocument messages_{Json::array()};
  std::map<std::string, std::string> called_;  // functions by the ids of their calls
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_MESSAGE_LIST_H_
