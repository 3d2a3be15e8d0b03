#include "tools/server_chat.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/format.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "gemma_like/chat/answer_event.h"
#include "io/json/parse_json.h"
#include "serve/http/http_client.h"
#include "tools/flags/usage_error.h"
#include "tools/output.h"

namespace inlay {
namespace {

using Kind = AnswerEvent::Kind;
using serve::ClientRequest;
using serve::HttpAddress;

constexpr size_t kMostErrorBytes = 64 << 10;  // of a refusal, which is shown
constexpr size_t kMostReplyBytes = 16 << 20;  // of a reply that is read as a whole
constexpr size_t kMostEventBytes = 16 << 20;  // of one event of a stream

// A member of an object, null where there is none.
const Json* Find(const Json& json, const char* key) {
  const auto at = json.is_object() ? json.find(key) : json.end();
  return at == json.end() || at->is_null() ? nullptr : &*at;
}

std::string TextAt(const Json& json, const char* key) {
  const Json* const value = Find(json, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

uint64_t NumberAt(const Json& json, const char* key) {
  const Json* const value = Find(json, key);
  return value != nullptr && value->is_number_unsigned() ? value->get<uint64_t>() : 0;
}

// The sentence of {"error": {"message": ...}} and of what other servers make of that; "" for none.
std::string ErrorOf(const Json& json) {
  const Json* const error = Find(json, "error");
  if (error == nullptr) return TextAt(json, "message");
  return error->is_string() ? error->get<std::string>() : TextAt(*error, "message");
}

absl::Status Refusal(int status, absl::string_view body) {
  const std::string words = ErrorOf(*ParseJson("the reply", body).value_or(JsonDocument()));
  return absl::FailedPreconditionError(words.empty()
                                           ? absl::StrCat("the server replies with status ", status)
                                           : absl::StrCat("the server says: ", words));
}

// Finds the events in a stream of them.
class EventReader {
 public:
  // Calls `on_data` with the data of each event that ends in `piece` or before.
  template <class OnData>
  absl::Status Push(absl::string_view piece, const OnData& on_data) {
    for (const char c : piece) {
      if (c != '\n') {
        if (line_.size() + data_.size() >= kMostEventBytes)
          return absl::OutOfRangeError("the server sends an event without an end");
        line_ += c;
        continue;
      }
      absl::string_view line = absl::StripSuffix(line_, "\r");
      if (line.empty() && !data_.empty()) {
        INLAY_RETURN_IF_ERROR(on_data(data_));
        data_.clear();
      } else if (absl::ConsumePrefix(&line, "data:")) {
        absl::StrAppend(&data_, data_.empty() ? "" : "\n", absl::StripPrefix(line, " "));
      }
      line_.clear();
    }
    return absl::OkStatus();
  }

 private:
  std::string line_, data_;
};

// One answer, put together from its chunks.
class StreamedAnswer {
 public:
  explicit StreamedAnswer(AnswerPrinter& printer) : printer_(printer) {}

  absl::Status AddEvent(const std::string& data) {
    if (data == "[DONE]") return absl::OkStatus();
    const absl::StatusOr<JsonDocument> parsed = ParseJson("an event of the server", data);
    if (absl::IsInvalidArgument(parsed.status()))
      return absl::DataLossError(parsed.status().message());
    INLAY_RETURN_IF_ERROR(parsed.status());
    const Json& chunk = **parsed;
    if (Find(chunk, "error") != nullptr)
      return absl::FailedPreconditionError(absl::StrCat("the server says: ", ErrorOf(chunk)));
    if (const Json* const usage = Find(chunk, "usage")) usage_ = *usage;
    const Json* const choices = Find(chunk, "choices");
    if (choices == nullptr || !choices->is_array() || choices->empty()) return absl::OkStatus();
    const Json& choice = choices->front();
    if (const Json* const delta = Find(choice, "delta")) AddDelta(*delta);
    if (const std::string reason = TextAt(choice, "finish_reason"); !reason.empty())
      finish_reason_ = reason;
    return absl::OkStatus();
  }

  // Ends the line.
  void Finish() {
    EndCall();
    printer_.EndLine();
  }

  // Whether any of it has come.
  bool begun() const { return begun_; }
  const std::string& finish_reason() const { return finish_reason_; }
  const Json& usage() const { return usage_; }

  // As the next request has it.
  Json Message() const {
    Json message = {{"role", "assistant"}, {"content", text_}};
    if (!thoughts_.empty()) message["reasoning_content"] = thoughts_;
    for (const Call& call : calls_) {
      message["tool_calls"].push_back(
          {{"id", call.id},
           {"type", "function"},
           {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    return message;
  }

 private:
  struct Call {
    std::string id, name, arguments;
  };

  void AddDelta(const Json& delta) {
    // vLLM and OpenRouter call it otherwise; who sends both sends the same.
    const std::string thoughts = TextAt(delta, "reasoning_content");
    AddText(Kind::kReasoning, thoughts.empty() ? TextAt(delta, "reasoning") : thoughts, thoughts_);
    AddText(Kind::kText, TextAt(delta, "content"), text_);
    const Json* const calls = Find(delta, "tool_calls");
    if (calls == nullptr || !calls->is_array()) return;
    for (const Json& call : *calls) AddCall(call);
  }

  void AddText(Kind kind, const std::string& text, std::string& all) {
    if (text.empty()) return;
    EndCall();
    begun_ = true;
    all += text;
    printer_.Print({{.kind = kind, .text = text}});
  }

  // Calls come one after the other, each with its number in all its pieces.
  void AddCall(const Json& json) {
    const uint64_t number = NumberAt(json, "index");
    const Json* const function = Find(json, "function");
    const std::string name = function == nullptr ? "" : TextAt(*function, "name");
    if (calls_.empty() || number != number_) {
      EndCall();
      number_ = number;
      in_call_ = begun_ = true;
      calls_.push_back({.id = TextAt(json, "id"), .name = name, .arguments = ""});
      printer_.Print({{.kind = Kind::kCallBegin, .text = name}});
    }
    const std::string more = function == nullptr ? "" : TextAt(*function, "arguments");
    calls_.back().arguments += more;
    printer_.Print({{.kind = Kind::kCallArguments, .text = more}});
  }

  void EndCall() {
    if (in_call_) printer_.Print({{.kind = Kind::kCallEnd, .text = ""}});
    in_call_ = false;
  }

  AnswerPrinter& printer_;
  bool begun_ = false;
  std::string text_, thoughts_, finish_reason_;
  std::vector<Call> calls_;
  uint64_t number_ = 0;  // of the last call
  bool in_call_ = false;
  Json usage_;
};

class ServerPartner final : public ChatPartner {
 public:
  ServerPartner(ServerChatOptions options, HttpAddress address)
      : options_(std::move(options)), address_(std::move(address)) {}

  // Asks for the model's name, if none is given.
  absl::Status FindModel() {
    if (!options_.model.empty()) return absl::OkStatus();
    std::string body;
    INLAY_ASSIGN_OR_RETURN(const int status, serve::SendRequest(
                                                 address_, Request("GET", "/models"),
                                                 [&](int, absl::string_view piece) {
                                                   if (body.size() < kMostReplyBytes)
                                                     absl::StrAppend(&body, piece);
                                                 },
                                                 [] { return false; }));
    if (status != 200) return Refusal(status, body);
    const JsonDocument models = ParseJson("the reply", body).value_or(JsonDocument());
    const Json* const list = Find(*models, "data");
    if (list != nullptr && list->is_array() && !list->empty())
      options_.model = TextAt(list->front(), "id");
    if (!options_.model.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "the server at ", address_.Authority(), " names no model; give its name with --model"));
  }

  std::string Opening() const override {
    return absl::StrCat(PrintableName(options_.model), " at ", address_.Authority(),
                        "; this chat is not kept\n");
  }

  absl::Status Say(const std::string& text, AnswerPrinter& printer,
                   const CancelCheck& cancel) override {
    return Answer(text, turns_.size(), printer, cancel);
  }

  bool RunsHere() const override { return false; }

  absl::Status Regenerate(AnswerPrinter& printer, const CancelCheck& cancel) override {
    if (turns_.empty()) return absl::FailedPreconditionError("there is no answer to regenerate");
    return Answer(turns_.back().user, turns_.size() - 1, printer, cancel);
  }

  absl::StatusOr<std::string> Run(const ChatCommand& command, LineReader&) override {
    const std::string& name = command.name;
    if (name == "/stats") return Stats();
    if (name == "/show") return Show(command.number);
    if (name == "/clear") {
      turns_.clear();
      return "removed all turns\n";
    }
    if (name == "/rewind") {
      const size_t count = command.number.value_or(1);
      if (count > turns_.size()) {
        return absl::OutOfRangeError(
            absl::StrCat("cannot rewind ", Plural(count, "turn"), ": there are ", turns_.size()));
      }
      turns_.resize(turns_.size() - count);
      return absl::StrCat("back after turn ", turns_.size(), "\n");
    }
    if (name == "/system") {
      if (command.text.empty()) return SystemText(options_.system);
      options_.system = SystemOf(command.text);
      return "the next answer has this system prompt\n";
    }
    if (name == "/temp") {
      if (command.value.has_value()) options_.fields["temperature"] = *command.value;
      const Json* const temperature = Find(options_.fields, "temperature");
      if (temperature == nullptr) return "temperature: the server's\n";
      return Format("temperature: %g\n", temperature->get<double>());
    }
    if (name == "/seed") {
      if (command.number.has_value()) {
        options_.fields["seed"] = *command.number;
        answers_ = 0;
      }
      const Json* const seed = Find(options_.fields, "seed");
      if (seed == nullptr) return "the server draws the seeds\n";
      return absl::StrCat("the next answer has seed ", seed->get<uint64_t>() + answers_, "\n");
    }
    return absl::FailedPreconditionError(absl::StrCat(
        name, " needs a model that runs here; with --server there are the messages alone"));
  }

 private:
  struct Turn {
    std::string user;
    Json answer;  // a message
  };

  std::string Show(std::optional<uint64_t> last) const {
    if (turns_.empty()) return "there are no turns\n";
    std::string text;
    for (size_t i = turns_.size() - std::min<uint64_t>(turns_.size(), last.value_or(turns_.size()));
         i < turns_.size(); ++i)
      absl::StrAppend(&text, ShownTurn(turns_[i].user, TextAt(turns_[i].answer, "content")));
    return text;
  }

  ClientRequest Request(const char* method, absl::string_view path) const {
    ClientRequest request{.method = method, .path = std::string(path)};
    if (!options_.key.empty())
      request.headers.emplace_back("Authorization", absl::StrCat("Bearer ", options_.key));
    return request;
  }

  // What is sent to have `user` answered after the first `turns` turns.
  std::string Body(const std::string& user, size_t turns) const {
    Json messages = Json::array();
    if (!options_.system.empty())
      messages.push_back({{"role", "system"}, {"content", options_.system}});
    for (size_t i = 0; i < turns; ++i) {
      messages.push_back({{"role", "user"}, {"content", turns_[i].user}});
      messages.push_back(turns_[i].answer);
    }
    messages.push_back({{"role", "user"}, {"content", user}});
    Json body = {{"model", options_.model},
                 {"messages", std::move(messages)},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}}};
    body.update(options_.fields);
    if (Json& seed = body["seed"]; seed.is_number()) {
      seed = seed.get<uint64_t>() + answers_;
    } else {
      body.erase("seed");
    }
    return DumpJson(body);
  }

  absl::Status Answer(const std::string& user, size_t turns, AnswerPrinter& printer,
                      const CancelCheck& cancel) {
    ClientRequest request = Request("POST", "/chat/completions");
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = Body(user, turns);
    ++answers_;
    StreamedAnswer answer(printer);
    EventReader events;
    std::string refusal;
    absl::Status error;  // of the stream, which is not read on
    const absl::Time begin = SteadyNow();
    const absl::StatusOr<int> status = serve::SendRequest(
        address_, request,
        [&](int code, absl::string_view piece) {
          if (code == 200 && error.ok()) {
            error =
                events.Push(piece, [&](const std::string& data) { return answer.AddEvent(data); });
          } else if (refusal.size() < kMostErrorBytes) {
            absl::StrAppend(&refusal, piece);
          }
        },
        [&] { return cancel() || !error.ok(); });
    if (answer.begun()) answer.Finish();
    INLAY_RETURN_IF_ERROR(error);
    const bool stopped = absl::IsCancelled(status.status()) && answer.begun();
    if (!stopped) INLAY_RETURN_IF_ERROR(status.status());
    if (status.ok() && *status != 200) return Refusal(*status, refusal);
    if (!stopped && answer.finish_reason().empty())
      return absl::DataLossError("the server ends its reply before the answer has ended");
    if (!answer.begun()) answer.Finish();
    Keep(user, turns, answer, SteadyNow() - begin);
    return absl::OkStatus();
  }

  void Keep(const std::string& user, size_t turns, const StreamedAnswer& answer,
            absl::Duration time) {
    turns_.resize(turns);
    turns_.push_back({.user = user, .answer = answer.Message()});
    usage_ = answer.usage();
    seconds_ = absl::ToDoubleSeconds(time);
    if (answer.finish_reason() == "length" && !options_.fields.contains("max_tokens"))
      WriteNote("the server has cut the answer off; /rewind or /clear makes room\n");
  }

  std::string Stats() const {
    std::string text =
        Format("turns: %d; model: %s at %s\n", turns_.size(), options_.model, address_.Authority());
    if (usage_.is_object()) {
      const Json* const details = Find(usage_, "prompt_tokens_details");
      absl::StrAppend(
          &text, Format("last answer: prompt: %d tokens, %d of them reused; generated: %d tokens "
                        "in %.2f s\n",
                        NumberAt(usage_, "prompt_tokens"),
                        details == nullptr ? 0 : NumberAt(*details, "cached_tokens"),
                        NumberAt(usage_, "completion_tokens"), seconds_));
    }
    return text;
  }

  ServerChatOptions options_;
  const HttpAddress address_;
  std::vector<Turn> turns_;
  uint64_t answers_ = 0;  // attempted so far
  Json usage_;            // of the last answer, as far as it is known
  double seconds_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChatPartner>> ConnectToServer(ServerChatOptions options) {
  INLAY_ASSIGN_OR_RETURN(HttpAddress address, AsUsageError(HttpAddress::Parse(options.url)));
  if (!absl::EndsWith(address.path, "/v1")) address.path += "/v1";
  auto partner = std::make_unique<ServerPartner>(std::move(options), std::move(address));
  INLAY_RETURN_IF_ERROR(partner->FindModel());
  return partner;
}

}  // namespace inlay
