#include "tools/flags/service_flags.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemma_like/model/memory_plan.h"
#include "io/gguf/gguf.h"
#include "serve/api/parse_call.h"
#include "serve/api/parse_options.h"
#include "tools/flags/chat_template_flag.h"
#include "tools/flags/validators.h"

namespace inlay {
namespace {

serve::CallSampling SamplingOf(const SamplingFlags& flags) {
  return {.temperature = flags.temperature,
          .top_p = flags.top_p,
          .min_p = flags.min_p,
          .repeat_penalty = flags.repeat_penalty,
          .presence_penalty = flags.presence_penalty,
          .frequency_penalty = flags.frequency_penalty,
          .top_k = flags.top_k,
          .repeat_last_n = flags.repeat_last_n,
          .seed = flags.seed,
          .logit_bias = {}};
}

}  // namespace

void AddServiceFlags(CLI::App& command, const std::string& context_note, ModelFlags& model_flags,
                     ServiceFlags& flags) {
  command
      .add_option("-c,--ctx-size", model_flags.context,
                  absl::StrCat("longest conversation in tokens (default, and 0: the model's "
                               "trained length)",
                               context_note))
      ->check(Between(0, std::numeric_limits<int32_t>::max()));
  AddCacheTypeFlag(command, model_flags);
  command
      .add_option("--cache-limit", model_flags.cache_limit,
                  "memory for conversations and stored prefixes in MiB (default: half of what is "
                  "available)")
      ->check(Between(1, 1 << 30));
  AddChatTemplateFlag(command, flags.chat_template);
  const auto set_variables = [&flags](const std::string& text) {
    auto variables = serve::ParseTemplateVariables(text);
    if (!variables.ok()) {
      throw CLI::ValidationError("--chat-template-kwargs",
                                 std::string(variables.status().message()));
    }
    flags.template_variables = *std::move(variables);
  };
  command
      .add_option_function<std::string>(
          "--chat-template-kwargs", set_variables,
          "variables of the chat template for requests that do not set them: "
          "'{\"enable_thinking\": false}'")
      ->type_name("JSON");
  command.add_option("--alias", flags.name, "name of the model (default: that of its file)");
  command.add_option("--parallel", flags.parallel, "most answers at a time (default: 64)")
      ->check(Between(1, 512));
  command
      .add_option("-n,--predict", flags.max_tokens,
                  "maximum tokens of an answer whose request does not say (max_tokens); -1: no "
                  "limit (default: -1; 16 in /v1/completions, as OpenAI has it)")
      ->check(Between(-1, std::numeric_limits<int32_t>::max()));
  AddDefaultSamplingFlags(command, flags.sampling);
}

serve::ServiceOptions MakeServiceOptions(const ServiceFlags& flags, const ModelFlags& model_flags,
                                         const LoadedModel& model, size_t neighbours) {
  serve::ServiceOptions options;
  options.model_name = flags.name;
  if (options.model_name.empty())
    options.model_name = std::filesystem::path(model.file->name()).stem().string();
  // Half of the memory that is left, so that the system's file cache keeps some.
  options.scheduler.memory = CacheLimit(model_flags).value_or(AvailableMemory() / 2 / neighbours);
  options.scheduler.kv_type = CacheType(model_flags);
  const size_t trained = model.engine->info().context_length;
  options.scheduler.context = model_flags.context.value_or(0) == 0 ? trained : *model_flags.context;
  options.scheduler.most_running = flags.parallel;
  serve::CallDefaults& defaults = options.parsing.defaults;
  defaults.sampling = SamplingOf(flags.sampling);
  defaults.template_variables = flags.template_variables;
  if (flags.max_tokens.has_value()) {
    defaults.max_tokens = *flags.max_tokens < 0 ? std::numeric_limits<size_t>::max()
                                                : static_cast<size_t>(*flags.max_tokens);
  }
  return options;
}

std::string ContextNote(const serve::Service& service, const serve::ServiceOptions& options) {
  return absl::StrCat("inlay: the context is reduced to ", service.context(),
                      " tokens, as memory suffices for no more; the model was trained for ",
                      options.scheduler.context,
                      ": a smaller --cache-type or more with --cache-limit gives a longer one\n");
}

absl::Status CheckContext(const serve::Service& service, const serve::ServiceOptions& options,
                          const LoadedModel& model) {
  if (model.engine->info().embedding_dim > 0 || service.context() >= options.scheduler.context)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "memory suffices for conversations of ", service.context(), " tokens, not of ",
      options.scheduler.context, ": give -c ", service.context(),
      " or less, where there are several shards or replicas the same for all, or a smaller "
      "--cache-type, or more with --cache-limit"));
}

}  // namespace inlay
