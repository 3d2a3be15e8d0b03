// Fields that the requests of several protocols share.
#ifndef INLAY_SERVE_API_CALL_FIELDS_H_
#define INLAY_SERVE_API_CALL_FIELDS_H_

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "serve/api/call.h"
#include "serve/api/field_reader.h"

namespace inlay::serve {

// What a request may ask for at most.
inline constexpr int64_t kMostChoices = 16;
// Not below what clients write where they want no limit, as JavaScript's largest whole number.
inline constexpr int64_t kMostMaxTokens = int64_t{1} << 53;
inline constexpr int64_t kMostTopLogprobs = 20;
inline constexpr size_t kMostStopTexts = 128;
inline constexpr size_t kMostStopBytes = 1024;
inline constexpr size_t kMostBiases = 4096;

// Sampling in OpenAI's words, with the extensions that other servers know: top_k, min_p,
// repeat_penalty or repetition_penalty, repeat_last_n, seed.
void ReadSampling(FieldReader& body, Call* call);

// A member that is a text or a list of texts; empty ones count as absent.
void ReadStopTexts(FieldReader& body, absl::string_view key, Call* call);

// Sets the call's limit of tokens, at least `least`, where the member is there; -1 is how some
// clients say that there is none. Returns whether it is there.
bool ReadMaxTokens(FieldReader& body, absl::string_view key, int64_t least, Call* call);

// The result of a call that failed: chat templates have no other place to say so.
std::string ErrorResult(absl::string_view text);

// "stream" and "stream_options".
void ReadStream(FieldReader& body, Call* call);

// "n".
void ReadChoices(FieldReader& body, Call* call);

// "chat_template_kwargs": further variables of the template, before those that other fields stand
// for.
void ReadTemplateVariables(FieldReader& body, Call* call);

// How much to think in OpenAI's words: "none" to "max".
std::optional<std::string> ReadEffort(FieldReader& body, absl::string_view key);

// How other servers are told whether to think: "enable_thinking" (Qwen), "thinking": {"type"}
// (Anthropic) and "reasoning": {"enabled", "effort"} (OpenRouter).
void ReadOtherThinking(FieldReader& body, Call* call);

// How hard to think. A template that knows no "reasoning_effort" does not heed it; "none" is no
// thinking at all.
void SetEffort(const std::optional<std::string>& effort, Call* call);
// How much to say, likewise.
void SetVerbosity(const std::optional<std::string>& verbosity, Call* call);

// OpenAI's fields that no answer depends on: who asks, how it is billed and cached, what is
// measured besides.
void AcceptBookkeeping(FieldReader& body);

// OpenAI's "tool_choice". One function by its name is called exactly once.
ToolChoice ReadToolChoice(FieldReader& body, Call* call);

// Reads the format {"type": "text" | "json_object" | "json_schema"...} of an answer; the members of
// a schema, {"schema", "strict"}, are in `format` itself or, as chat/completions has them, in its
// member `nested`. With `strict` members of objects come in the order of the schema.
void ReadFormat(FieldReader& format, const char* nested, Call* call);
// The grammar (GBNF) that llama.cpp's clients send.
void ReadGrammar(FieldReader& body, Call* call);

// The texts of `content`: a text, or a list of parts that are {"type": "text", "text"} (or another
// type that holds nothing but a text), put together with a newline between. An error named after
// `path` for anything else.
std::string ReadTexts(const Json& content, const std::string& path, absl::Status* error);

// The same of a tool's result. Words stand for an image in it: the client would send it again with
// each later request, so that an error would end the conversation for good.
std::string ReadResultTexts(const Json& content, const std::string& path, absl::Status* error);

// Puts tools of any protocol into a call.
class ToolList {
 public:
  enum class Strict { kNo, kYes, kIfPossible };
  // What a request says; `otherwise` where it says nothing.
  static Strict StrictOf(FieldReader& tool, Strict otherwise = Strict::kNo);

  ToolList(Call* call, absl::Status* error) : call_(call), error_(error) {}

  // An error for a name that is no name or was there before. `parameters`, a JSON schema, may be
  // null: the function has none then.
  void Add(const std::string& path, const std::string& name,
           const std::optional<std::string>& description, const Json* parameters, Strict strict);
  // A call without tools, or with a choice of none, looks for no calls. An error for a choice of
  // tools that were not added.
  void Finish(ToolChoice choice);

 private:
  Call* const call_;
  absl::Status* const error_;
  JsonDocument tools_{Json::array()};
  std::set<std::string> names_;
  std::set<std::string> strict_, strict_if_possible_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_CALL_FIELDS_H_
