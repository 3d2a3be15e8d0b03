#include "serve/api/options_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace inlay::serve {
namespace {

constexpr StopReason kReasons[] = {StopReason::kMaxTokens, StopReason::kEndOfGeneration,
                                   StopReason::kStopText, StopReason::kContextFull,
                                   StopReason::kCancelled};

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

// Throws nlohmann's exceptions, also for a number that a float does not hold.
float FloatOf(const Json& json) {
  const double value = json.get<double>();
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) json.get<bool>();  // throws
  return static_cast<float>(value);
}

SamplingOptions SamplingOf(const Json& json) {
  SamplingOptions sampling;
  sampling.temperature = FloatOf(json.at("temperature"));
  sampling.top_k = IntegerOf<int>(json.at("top_k"));
  sampling.top_p = FloatOf(json.at("top_p"));
  sampling.min_p = FloatOf(json.at("min_p"));
  sampling.repeat_penalty = FloatOf(json.at("repeat_penalty"));
  sampling.repeat_last_n = IntegerOf<int>(json.at("repeat_last_n"));
  sampling.presence_penalty = FloatOf(json.at("presence_penalty"));
  sampling.frequency_penalty = FloatOf(json.at("frequency_penalty"));
  for (const Json& pair : json.at("logit_bias")) {
    sampling.logit_bias.emplace_back(IntegerOf<int32_t>(pair.at(0)), FloatOf(pair.at(1)));
  }
  sampling.seed = IntegerOf<uint64_t>(json.at("seed"));
  sampling.choice = IntegerOf<uint32_t>(json.at("choice"));
  return sampling;
}

AnswerShape::Kind ShapeKindOf(const Json& name) {
  const std::string text = name.get<std::string>();
  for (const auto kind : {AnswerShape::Kind::kJsonSchema, AnswerShape::Kind::kRegex,
                          AnswerShape::Kind::kGbnf, AnswerShape::Kind::kCalls}) {
    if (ShapeKindName(kind) == text) return kind;
  }
  name.get<bool>();  // throws
  return AnswerShape::Kind::kJsonSchema;
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

GenerateOptions OptionsOf(const Json& json) {
  GenerateOptions options;
  options.sampling = SamplingOf(json.at("sampling"));
  if (const Json& most = json.at("max_tokens"); !most.is_null())
    options.max_tokens = IntegerOf<size_t>(most);
  options.stop_texts = json.at("stop").get<std::vector<std::string>>();
  options.ignore_eos = json.at("ignore_eos").get<bool>();
  for (const Json& token : json.at("shown_control"))
    options.shown_control.push_back(IntegerOf<int32_t>(token));
  return options;
}

Json ShapeJson(const AnswerShape& shape) {
  return {{"kind", std::string(ShapeKindName(shape.kind))},
          {"source", shape.source},
          {"in_order", shape.in_order},
          {"after", shape.after}};
}

AnswerShape ShapeOf(const Json& json) {
  return {.kind = ShapeKindOf(json.at("kind")),
          .source = json.at("source").get<std::string>(),
          .in_order = json.at("in_order").get<bool>(),
          .after = json.at("after").get<std::string>()};
}

StopReason StopReasonOf(const Json& name) {
  const std::string text = name.get<std::string>();
  const auto known = std::find_if(std::begin(kReasons), std::end(kReasons),
                                  [&](StopReason r) { return StopReasonName(r) == text; });
  if (known == std::end(kReasons)) name.get<bool>();  // throws
  return *known;
}

}  // namespace inlay::serve
