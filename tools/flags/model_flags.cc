#include "tools/flags/model_flags.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/about.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "cache/serialize.h"
#include "gemma_like/cache_limit.h"
#include "gemma_like/usable_cores.h"
#include "io/file/file_kind.h"
#include "io/gguf/gguf_split.h"
#include "io/gguf/gguf_value.h"
#include "ops/cpu/cpu_target.h"
#include "tools/demo_model.h"
#include "tools/flags/list_flag.h"
#include "tools/flags/validators.h"
#include "tools/hub_hooks.h"
#include "tools/local_models.h"
#include "tools/model_loader.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/sandbox.h"

namespace inlay {
namespace {

constexpr size_t kMostThreads = 1024;
constexpr size_t kUsualContext = 4096;  // tokens
constexpr double kMostMib = 1 << 30;    // a petabyte

// Read once, as most commands have the flag.
size_t UsualThreads() {
  static const size_t threads = std::min(UsableCores(), kMostThreads);
  return threads;
}

}  // namespace

CLI::Option* AddModelFlag(CLI::App& command, ModelFlags& flags) {
  CLI::Option* const model = command.add_option(
      "-m,--model", flags.model,
      "the model: a file, a folder with one, or a name that inlay list prints (default: the "
      "bundled model, else $INLAY_MODEL, else the demo model)");
  model->type_name("MODEL");
  if (FindHubHooks() != nullptr) {
    flags.hub_option = command.add_option(
        "--hf-repo", flags.hub,
        "-hf USER/REPO[:TYPE]: a model of Hugging Face, pulled if it is not here yet");
    flags.hub_option->excludes(model);
  }
  command.add_flag("--sandbox", flags.sandbox,
                   "for models you do not trust: no network, no other files, nothing written");
  return model;
}

void AddModelArgument(CLI::App& command, CLI::Option* flag, ModelFlags& flags) {
  CLI::Option* const model = command.add_option("MODEL", flags.model, "the same as -m MODEL");
  model->type_name("MODEL");
  model->excludes(flag);
  if (flags.hub_option != nullptr) model->excludes(flags.hub_option);
}

CLI::Option* AddEngineFlags(CLI::App& command, ModelFlags& flags) {
  CLI::Option* const model = AddModelFlag(command, flags);
  AddThreadsFlag(command, flags);
  command.add_flag("--check-tensors", flags.check_tensors,
                   "refuse a model with weights that are NaN or infinite");
  return model;
}

void AddThreadsFlag(CLI::App& command, ModelFlags& flags) {
  flags.threads = UsualThreads();
  command
      .add_option("-t,--threads", flags.threads,
                  "threads (default: one per usable hardware thread, within the limits of control "
                  "groups)")
      ->check(Between(1, kMostThreads));
}

void AddThreadsListFlag(CLI::App& command, std::vector<size_t>& threads) {
  threads = {UsualThreads()};
  AddListFlag(
      command, "-t,--threads", threads,
      "threads, one number or several: 1,2 (default: one per usable hardware thread, within the "
      "limits of control groups)",
      size_t{1}, kMostThreads);
}

void AddCacheFlags(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("-c,--ctx-size", flags.context,
                  "context size: longest conversation in tokens; 0: the model's trained length "
                  "(default: that, but at most 4096)")
      ->check(Between(0, std::numeric_limits<int32_t>::max()));
  AddCacheTypeFlag(command, flags);
}

void AddCacheTypeFlag(CLI::App& command, ModelFlags& flags) {
  CLI::Option& option = *command.add_option(
      "--cache-type", flags.cache_type,
      absl::StrCat("row type of the KV cache (default: ", KvTypeName(kDefaultKvType), ")"));
  AllowOneOf(option, {"f32", "f16", "bf16", "q8"});
  option.transform([](std::string type) { return type == "q8_0" ? "q8" : type; });
}

void AddCacheLimitFlag(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("--cache-limit", flags.cache_limit,
                  "memory limit for conversations in MiB (default: none); a conversation that may "
                  "need more is refused at the start")
      ->check(Between(1, kMostMib));
}

void AddFormatFlag(CLI::App& command, bool& json) {
  AllowOneOf(*command.add_option_function<std::string>(
                 "-o,--output", [&json](const std::string& format) { json = format == "json"; },
                 "form of the output (default: text)"),
             {"text", "json"});
}

namespace {

absl::StatusOr<std::string> ChooseModel(const ModelFlags& flags) {
  if (!flags.model.empty()) return FindModelNamed(flags.model);
  if (!flags.hub.empty()) return FindHubHooks()->pull(flags.hub);
  INLAY_ASSIGN_OR_RETURN(std::optional<std::string> bundled, FindBundledModel());
  if (bundled.has_value()) return *std::move(bundled);
  if (const char* path = std::getenv("INLAY_MODEL"); path != nullptr && *path != 0) {
    if (const auto kind = KindOfFile(path); !kind.ok()) return About("INLAY_MODEL", kind.status());
    return path;
  }
  if (auto demo = FindDemoModel()) return *std::move(demo);
  return absl::NotFoundError(
      "the demo model models/bard.gguf is not near the program; name a model with -m");
}

// Once: a command has one model, but may load it several times.
void NoteParts(const std::string& path, const LoadedModel& model) {
  static bool noted = false;
  if (noted || (model.ignored.empty() && model.notes.empty())) return;
  noted = true;
  const auto note = [&](absl::string_view text) {
    WriteNote(absl::StrCat(PrintableName(path), ": ", text, "\n"));
  };
  if (!model.ignored.empty()) note(absl::StrCat("ignoring ", model.ignored));
  for (const std::string& sentence : model.notes) note(sentence);
}

}  // namespace

absl::StatusOr<std::string> FindModel(const ModelFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(std::string path, ChooseModel(flags));
  if (!flags.sandbox) return path;
  if (ModelLoaderIsSet()) {
    return absl::FailedPreconditionError(
        "--sandbox leaves no way to the other ranks; run one process, or ranks without it");
  }
  std::vector<std::string> readable = GgufPaths(path);
  readable.insert(readable.end(), flags.readable.begin(), flags.readable.end());
  INLAY_RETURN_IF_ERROR(
      EnterSandbox(readable, flags.serves ? SandboxNetwork::kServes : SandboxNetwork::kNone));
  return path;
}

std::string ForcedTarget() {
  const char* name = std::getenv("INLAY_TARGET");
  return name == nullptr ? "" : name;
}

absl::Status ApplyTarget() {
  if (RunnableTargets().empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this program was compiled for CPUs with ", absl::StrJoin(CompiledTargets(), ", "),
        " alone, and this one is none: build it here, or with INLAY_TARGETS=dispatch"));
  }
  const std::string name = ForcedTarget();
  if (name.empty() || ForceTarget(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("INLAY_TARGET is ", QuoteForMessage(name),
                   ", which is not one of those that run on this CPU (",
                   absl::StrJoin(RunnableTargets(), ", "), ")"));
}

absl::StatusOr<LoadedModel> LoadModelFile(const ModelFlags& flags, const std::string& path,
                                          bool hash_weights) {
  INLAY_ASSIGN_OR_RETURN(
      LoadedModel model,
      TheModelLoader()(path, EngineOptions{.threads = flags.threads,
                                           .team = flags.team,
                                           .check_tensors = flags.check_tensors,
                                           .hash_weights = hash_weights,
                                           .progress = ShowProgress(absl::StrCat("loading ", path),
                                                                    ProgressUnit::kBytes)}));
  NoteParts(path, model);
  return model;
}

absl::StatusOr<LoadedModel> LoadModel(const ModelFlags& flags, bool hash_weights) {
  INLAY_ASSIGN_OR_RETURN(const std::string path, FindModel(flags));
  INLAY_ASSIGN_OR_RETURN(LoadedModel model, LoadModelFile(flags, path, hash_weights));
  const EngineInfo& info = model.engine->info();
  if (flags.embeds.value_or(info.embedding_dim != 0) == (info.embedding_dim != 0)) return model;
  return absl::FailedPreconditionError(absl::StrCat(
      path, " holds a model of config ", info.config_name,
      *flags.embeds ? ", which generates text and does not embed it"
                    : ", which embeds texts and generates none; use it with inlay embed"));
}

KvType CacheType(const ModelFlags& flags) {
  for (KvType type : {KvType::kF16, KvType::kBF16, KvType::kQ8}) {
    if (flags.cache_type == KvTypeName(type)) return type;
  }
  return KvType::kF32;
}

size_t ContextSize(const ModelFlags& flags, size_t trained) {
  if (!flags.context.has_value()) return std::min(trained, kUsualContext);
  return *flags.context == 0 ? trained : *flags.context;
}

std::optional<size_t> CacheLimit(const ModelFlags& flags) {
  if (!flags.cache_limit.has_value()) return std::nullopt;
  return *flags.cache_limit << 20;
}

absl::StatusOr<std::unique_ptr<KVCache>> CreateCache(const ModelFlags& flags, const Engine& engine,
                                                     size_t max_length, size_t snapshots) {
  const KvType type = CacheType(flags);
  const CacheOptions options{.max_length = max_length};
  const size_t trained = engine.info().context_length;
  if (flags.context.value_or(0) > trained) {
    WriteNote(absl::StrCat("inlay: -c ", *flags.context, " is beyond the ", trained,
                           " tokens that the model was trained for; what it writes there may make "
                           "no sense\n"));
  }
  const std::optional<size_t> limit = CacheLimit(flags);
  if (!limit.has_value()) return engine.CreateCache(options, type);
  auto cache = CreateCacheWithin(engine, *limit, options, type, snapshots);
  if (cache.ok()) return cache;
  return absl::Status(
      cache.status().code(),
      absl::StrCat(
          cache.status().message(),
          " (--cache-limit); a shorter context (-c) or a smaller --cache-type needs less"));
}

absl::StatusOr<std::unique_ptr<KVCache>> CreateCache(const ModelFlags& flags,
                                                     const Engine& engine) {
  return CreateCache(flags, engine, ContextSize(flags, engine.info().context_length));
}

}  // namespace inlay
