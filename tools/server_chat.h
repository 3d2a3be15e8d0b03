// A chat with a model that a server has, over /v1/chat/completions.
#ifndef INLAY_TOOLS_SERVER_CHAT_H_
#define INLAY_TOOLS_SERVER_CHAT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "io/json/parse_json.h"
#include "tools/chat_loop.h"

namespace inlay {

struct ServerChatOptions {
  std::string url;     // http://HOST[:PORT][/PATH], with "/v1" at its end or without
  std::string model;   // ""; the first that the server names
  std::string key;     // the API key; "": none
  std::string system;  // instructions that precede the conversation; "": none
  // Further members of each request; a "seed" is that of the first answer, and one more for each
  // one after.
  Json fields = Json::object();
};

// The conversation is kept here and sent as a whole each time. It knows no forks and no files.
// InvalidArgument for a bad URL; Unavailable where nobody answers; the server's own words where it
// refuses to name its models.
absl::StatusOr<std::unique_ptr<ChatPartner>> ConnectToServer(ServerChatOptions options);

}  // namespace inlay

#endif  // INLAY_TOOLS_SERVER_CHAT_H_
