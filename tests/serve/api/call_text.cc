#include "tests/serve/api/call_text.h"

#include <cmath>
#include <optional>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace inlay::serve {
namespace {

// A float as people write it.
Json Decimal(float value) { return std::round(value * 1e6) / 1e6; }

template <class T>
void Put(Json& json, const char* key, const T& value, const T& otherwise) {
  if (value != otherwise) json[key] = value;
}

void PutFloat(Json& json, const char* key, const std::optional<float>& value) {
  if (value.has_value()) json[key] = Decimal(*value);
}

void PutSampling(Json& json, const CallSampling& sampling) {
  PutFloat(json, "temperature", sampling.temperature);
  PutFloat(json, "top_p", sampling.top_p);
  PutFloat(json, "min_p", sampling.min_p);
  PutFloat(json, "repeat_penalty", sampling.repeat_penalty);
  PutFloat(json, "presence_penalty", sampling.presence_penalty);
  PutFloat(json, "frequency_penalty", sampling.frequency_penalty);
  if (sampling.top_k.has_value()) json["top_k"] = *sampling.top_k;
  if (sampling.repeat_last_n.has_value()) json["repeat_last_n"] = *sampling.repeat_last_n;
  if (sampling.seed.has_value()) json["seed"] = *sampling.seed;
  for (const auto& [token, bias] : sampling.logit_bias)
    json["logit_bias"].push_back({token, Decimal(bias)});
}

}  // namespace

Json CallJson(const Call& call) {
  const Call empty;
  Json json = Json::object();
  Put(json, "messages", *call.messages, *empty.messages);
  Put(json, "model", call.model, empty.model);
  Put(json, "tools", *call.tools, *empty.tools);
  Put(json, "variables", *call.template_variables, *empty.template_variables);
  Put(json, "parse_calls", call.parse_calls, false);
  Put(json, "one_call", call.one_call, false);
  const ToolChoice& choice = call.tool_choice;
  Put(json, "must_call", choice.must_call, false);
  if (choice.only.has_value()) json["only"] = *choice.only;
  if (!call.strict_tools.empty()) json["strict"] = call.strict_tools;
  if (!call.strict_if_possible.empty()) json["strict_if_possible"] = call.strict_if_possible;
  for (const auto& [full_name, tool] : call.namespaced_tools)
    json["namespaced"][full_name] = {tool.name_space, tool.name};
  Put(json, "hide_reasoning", call.hide_reasoning, false);
  Put(json, "sealed_reasoning", call.sealed_reasoning, false);
  for (const auto& prompt : call.prompts)
    std::visit([&](const auto& input) { json["prompts"].push_back(input); }, prompt);
  Put(json, "parse_special", call.parse_special, false);
  Put(json, "echo", call.echo, false);
  PutSampling(json, call.sampling);
  if (call.max_tokens.has_value()) json["max_tokens"] = *call.max_tokens;
  Put(json, "stop_texts", call.stop_texts, empty.stop_texts);
  if (call.shape.has_value()) {
    json["shape"] = {std::string(ShapeKindName(call.shape->kind)), call.shape->source,
                     call.shape->in_order};
  }
  Put(json, "ignore_eos", call.ignore_eos, false);
  Put(json, "choices", call.choices, empty.choices);
  Put(json, "logprobs", call.logprobs, false);
  Put(json, "top_logprobs", call.top_logprobs, empty.top_logprobs);
  Put(json, "stream", call.stream, false);
  Put(json, "stream_usage", call.stream_usage, false);
  return json;
}

std::string Quoted(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"'", "\""}, {"~", "'"}});
}

std::string ParsedText(const absl::StatusOr<Call>& call) {
  if (call.ok()) return DumpJson(CallJson(*call));
  if (absl::IsInvalidArgument(call.status())) return std::string(call.status().message());
  return call.status().ToString();
}

std::string Parsed(Protocol protocol, absl::string_view request, const ParseOptions& options) {
  return ParsedText(ParseCall(protocol, Quoted(request), options));
}

}  // namespace inlay::serve
