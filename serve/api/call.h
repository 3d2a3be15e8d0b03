// A client's request for an answer, in one form for all protocols.
#ifndef INLAY_SERVE_API_CALL_H_
#define INLAY_SERVE_API_CALL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gemma_like/grammar/answer_shape.h"
#include "io/json/parse_json.h"

namespace inlay::serve {

enum class Protocol {
  kChatCompletions,  // OpenAI: POST /v1/chat/completions
  kCompletions,      // OpenAI: POST /v1/completions
  kResponses,        // OpenAI: POST /v1/responses
  kMessages,         // Anthropic: POST /v1/messages
  kInlay,            // everything else: errors in OpenAI's shape
};

// Sampling as far as the request, or the server for all requests, names it; the rest is the model's
// default.
struct CallSampling {
  std::optional<float> temperature, top_p, min_p, repeat_penalty;
  std::optional<float> presence_penalty, frequency_penalty;
  std::optional<int> top_k;
  std::optional<int> repeat_last_n;  // the largest int: all
  std::optional<uint64_t> seed;
  std::vector<std::pair<int32_t, float>> logit_bias;  // added to the token's logit
};

// A function that a client knows by two names: "agents" and "wait".
struct NamespacedTool {
  std::string name_space, name;
};

// Which tools may be called. Names are those in Call::tools.
struct ToolChoice {
  bool may_call = true;
  bool must_call = false;  // the answer is one call or more, and nothing else
  std::optional<std::vector<std::string>> only = std::nullopt;  // no others

  friend bool operator==(const ToolChoice&, const ToolChoice&) = default;
};

struct Call {
  Protocol protocol = Protocol::kChatCompletions;
  std::string model;  // as the client names it

  // For chats: what a chat template gets. Messages are in the shape of chat/completions whatever
  // the protocol: {"role", "content": a string, "reasoning_content", "tool_calls": [{"id", "type":
  // "function", "function": {"name", "arguments": an object}}], "tool_call_id", "name"}; tools are
  // [{"type": "function", "function": {"name", "description", "parameters"}}] or null.
  JsonDocument messages{Json::array()};
  JsonDocument tools;
  // Further variables of the template, as {"enable_thinking": false}.
  JsonDocument template_variables{Json::object()};
  // Whether calls of tools are looked for in the answer. Otherwise they are text.
  bool parse_calls = false;
  // At most one call in an answer: it ends after the first.
  bool one_call = false;
  ToolChoice tool_choice;
  // The tools whose arguments must be valid by their parameters. Those of demanded calls are, too,
  // if that can be.
  std::set<std::string> strict_tools;
  // Responses: those that are meant to be so where the request says nothing, if that can be.
  std::set<std::string> strict_if_possible;
  // Responses: functions of a namespace, which a chat template knows by one name, "agents.wait".
  std::map<std::string, NamespacedTool> namespaced_tools;
  // Responses: what the reply repeats of the request, {"instructions", "temperature", "tools"...}.
  JsonDocument repeated{Json::object()};
  // Messages: the model may think, but what it thinks is left out of the reply.
  bool hide_reasoning = false;
  // Responses: reasoning items carry their text in "encrypted_content" too, as clients that keep no
  // conversation on the server send back only that.
  bool sealed_reasoning = false;

  // For completions: texts or tokens.
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;
  bool parse_special = false;  // the text of a control token in a text becomes that token
  bool echo = false;           // the answer begins with the prompt; with logprobs, so do these
  // With both of them: the prompts' tokens, once the server has encoded them.
  std::vector<std::vector<int32_t>> prompt_tokens;

  CallSampling sampling;
  std::optional<size_t> max_tokens;
  std::vector<std::string> stop_texts;
  std::optional<AnswerShape> shape;  // without `after`, which depends on the rendered chat
  bool ignore_eos = false;           // end-of-generation tokens do not end the answer
  size_t choices = 1;                // for each prompt; those of a prompt are neighbours
  bool logprobs = false;
  size_t top_logprobs = 0;

  bool stream = false;
  bool stream_usage = false;  // a last chunk with the usage
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_CALL_H_
