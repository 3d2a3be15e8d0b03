// What a server chooses about the requests that it reads.
#ifndef INLAY_SERVE_API_PARSE_OPTIONS_H_
#define INLAY_SERVE_API_PARSE_OPTIONS_H_

#include <cstddef>
#include <optional>

#include "nlohmann/json.hpp"
#include "serve/api/call.h"

namespace inlay::serve {

// What calls have where their requests leave it out.
struct CallDefaults {
  CallSampling sampling;
  // Tokens; the largest size_t: no limit. Not set: what the protocol says, which is 16 for
  // completions and no limit for the others.
  std::optional<size_t> max_tokens;
  // Of chat templates: an object, whose keys a request may set otherwise one by one.
  nlohmann::ordered_json template_variables = nlohmann::ordered_json::object();
};

// All that is set, as a JSON object: {"temperature": 0.5, "max_tokens": 512}; {} for nothing.
nlohmann::ordered_json ToJson(const CallDefaults& defaults);

struct ParseOptions {
  // Messages: leave out a first block of the system prompt that starts with
  // "x-anthropic-billing-header:". Claude Code writes it for who bills; as it changes from request
  // to request, the prompt of no request could be reused for the next.
  bool drop_billing_line = true;
  CallDefaults defaults = {};
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_PARSE_OPTIONS_H_
