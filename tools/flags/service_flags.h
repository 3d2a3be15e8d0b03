// The flags of commands that answer requests as a server does.
#ifndef INLAY_TOOLS_FLAGS_SERVICE_FLAGS_H_
#define INLAY_TOOLS_FLAGS_SERVICE_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "gemma_like/load_model.h"
#include "nlohmann/json.hpp"
#include "serve/service/service.h"
#include "serve/service/service_options.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/sampling_flags.h"

namespace inlay {

struct ServiceFlags {
  std::string chat_template;
  nlohmann::ordered_json template_variables = nlohmann::ordered_json::object();
  std::string name;
  size_t parallel = 64;
  SamplingFlags sampling;
  std::optional<int64_t> max_tokens;  // -1: no limit
};

// -c, --cache-type, --cache-limit, --chat-template, --chat-template-kwargs, --alias, --parallel,
// and what answers have where requests do not say: -n and the flags of sampling. `context_note`
// ends the help of -c: what becomes of a length that memory does not suffice for.
void AddServiceFlags(CLI::App& command, const std::string& context_note, ModelFlags& model_flags,
                     ServiceFlags& flags);

// What they ask of a service for this model, one of `neighbours` processes that share the memory
// for conversations.
serve::ServiceOptions MakeServiceOptions(const ServiceFlags& flags, const ModelFlags& model_flags,
                                         const LoadedModel& model, size_t neighbours = 1);

// A line for a service that goes on with a shorter context than the options ask for.
std::string ContextNote(const serve::Service& service, const serve::ServiceOptions& options);

// ResourceExhausted when memory does not suffice for the context that the options ask for. An
// answer without a limit of its own goes on to its end, which must not depend on the machine's
// memory unnoticed.
absl::Status CheckContext(const serve::Service& service, const serve::ServiceOptions& options,
                          const LoadedModel& model);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_SERVICE_FLAGS_H_
