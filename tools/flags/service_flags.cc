#include "tools/flags/service_flags.h"

#include <cstdint>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gemma_like/model/memory_plan.h"
#include "io/gguf/gguf.h"
#include "tools/flags/chat_template_flag.h"
#include "tools/flags/validators.h"

namespace inlay {

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
  command.add_option("--alias", flags.name, "name of the model (default: that of its file)");
  command.add_option("-n,--parallel", flags.parallel, "most answers at a time (default: 64)")
      ->check(Between(1, 512));
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
  return options;
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
