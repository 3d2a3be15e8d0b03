#include "serve/api/options_json.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace inlay::serve {
namespace {

constexpr StopReason kReasons[] = {StopReason::kMaxTokens, StopReason::kEndOfGeneration,
                                   StopReason::kStopText, StopReason::kContextFull,
                                   StopReason::kCancelled};
constexpr AnswerShape::Kind kShapeKinds[] = {AnswerShape::Kind::kJsonSchema,
                                             AnswerShape::Kind::kRegex, AnswerShape::Kind::kGbnf,
                                             AnswerShape::Kind::kCalls};

Json SamplingJson(const SamplingOptions& sampling) {
  Json bias = Json::array();
  for (const auto& [token, value] : sampling.logit_bias) bias.push_back({token, value});
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repeat_penalty", sampling.repeat_penalty},
          {"repeat_last_n", sampling.repeat_last_n},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"logit_bias", std::move(bias)},
          {"seed", sampling.seed},
          {"choice", sampling.choice}};
}

SamplingOptions SamplingOf(const DocumentReader& json) {
  SamplingOptions sampling;
  sampling.temperature = json.Float("temperature");
  sampling.top_k = json.Integer<int>("top_k");
  sampling.top_p = json.Float("top_p");
  sampling.min_p = json.Float("min_p");
  sampling.repeat_penalty = json.Float("repeat_penalty");
  sampling.repeat_last_n = json.Integer<int>("repeat_last_n");
  sampling.presence_penalty = json.Float("presence_penalty");
  sampling.frequency_penalty = json.Float("frequency_penalty");
  for (const Json& pair : json.List("logit_bias")) {
    const bool is_pair = pair.is_array() && pair.size() == 2;
    const auto token = is_pair ? IntegerOf<int32_t>(pair[0]) : std::nullopt;
    const auto bias = is_pair ? FloatOf(pair[1]) : std::nullopt;
    if (!token.has_value() || !bias.has_value()) {
      json.Fail(absl::StrCat("logit_bias[", sampling.logit_bias.size(), "]"),
                "must be a list of a token and a number");
      break;
    }
    sampling.logit_bias.emplace_back(*token, *bias);
  }
  sampling.seed = json.Integer<uint64_t>("seed");
  sampling.choice = json.Integer<uint32_t>("choice");
  return sampling;
}

// The one of these values whose name is the member `key`.
template <class Value, size_t kValues>
Value NamedOf(const DocumentReader& json, absl::string_view key, const Value (&values)[kValues],
              absl::string_view (*name)(Value)) {
  std::vector<absl::string_view> names;
  for (const Value value : values) names.push_back(name(value));
  return values[json.Choice(key, names)];
}

}  // namespace

Json OptionsJson(const GenerateOptions& options) {
  Json json = {{"sampling", SamplingJson(options.sampling)},
               {"max_tokens", nullptr},
               {"stop", options.stop_texts},
               {"ignore_eos", options.ignore_eos},
               {"shown_control", options.shown_control}};
  if (options.max_tokens != std::numeric_limits<size_t>::max())
    json["max_tokens"] = options.max_tokens;
  return json;
}

GenerateOptions OptionsOf(const DocumentReader& json) {
  GenerateOptions options;
  options.sampling = SamplingOf(json.Part("sampling"));
  if (!json.Any("max_tokens").is_null()) options.max_tokens = json.Integer<size_t>("max_tokens");
  options.stop_texts = json.Texts("stop");
  options.ignore_eos = json.Bool("ignore_eos");
  options.shown_control = json.Integers<int32_t>("shown_control");
  return options;
}

Json ShapeJson(const AnswerShape& shape) {
  return {{"kind", std::string(ShapeKindName(shape.kind))},
          {"source", shape.source},
          {"in_order", shape.in_order},
          {"after", shape.after}};
}

AnswerShape ShapeOf(const DocumentReader& json) {
  return {.kind = NamedOf(json, "kind", kShapeKinds, ShapeKindName),
          .source = json.Text("source"),
          .in_order = json.Bool("in_order"),
          .after = json.Text("after")};
}

StopReason StopReasonOf(const DocumentReader& json, absl::string_view key) {
  return NamedOf(json, key, kReasons, StopReasonName);
}

}  // namespace inlay::serve
