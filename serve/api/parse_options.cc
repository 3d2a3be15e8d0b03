#include "serve/api/parse_options.h"

namespace inlay::serve {

nlohmann::ordered_json ToJson(const CallDefaults& defaults) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto add = [&](const char* key, const auto& value) {
    if (value.has_value()) json[key] = *value;
  };
  const CallSampling& sampling = defaults.sampling;
  add("temperature", sampling.temperature);
  add("top_k", sampling.top_k);
  add("top_p", sampling.top_p);
  add("min_p", sampling.min_p);
  add("repeat_penalty", sampling.repeat_penalty);
  add("repeat_last_n", sampling.repeat_last_n);
  add("presence_penalty", sampling.presence_penalty);
  add("frequency_penalty", sampling.frequency_penalty);
  add("seed", sampling.seed);
  add("max_tokens", defaults.max_tokens);
  if (!defaults.template_variables.empty())
    json["chat_template_kwargs"] = defaults.template_variables;
  return json;
}

}  // namespace inlay::serve
