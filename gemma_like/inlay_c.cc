#include "gemma_like/inlay_c.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/about.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "gemma_like/cache_limit.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/grammar/answer_shape.h"
#include "gemma_like/load_model.h"
#include "gemma_like/sessions/session.h"
#include "io/store/state_store.h"
#include "ops/team.h"

namespace inlay {

// What a model's handle and those of its conversations share.
struct SharedModel {
  explicit SharedModel(LoadedModel model) : loaded(std::move(model)), grammars(*loaded.tokenizer) {}

  const LoadedModel loaded;
  AnswerGrammars grammars;
};

}  // namespace inlay

struct inlay_model {
  std::shared_ptr<inlay::SharedModel> shared;
};

struct inlay_cache {
  std::shared_ptr<inlay::SharedModel> shared;
  std::unique_ptr<inlay::KVCache> cache;
};

namespace inlay {
namespace {

thread_local std::string last_error;

inlay_status CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return INLAY_OK;
    case absl::StatusCode::kInvalidArgument:
      return INLAY_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
      return INLAY_NOT_FOUND;
    case absl::StatusCode::kOutOfRange:
      return INLAY_OUT_OF_RANGE;
    case absl::StatusCode::kResourceExhausted:
      return INLAY_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kDataLoss:
      return INLAY_DATA_LOSS;
    case absl::StatusCode::kCancelled:
      return INLAY_CANCELLED;
    case absl::StatusCode::kFailedPrecondition:
      return INLAY_FAILED_PRECONDITION;
    default:
      return INLAY_ERROR;
  }
}

// No exception leaves it: the standard library throws where memory or threads run out.
template <class Function>
inlay_status Call(Function function) noexcept {
  try {
    absl::Status status;
    try {
      status = function();
    } catch (const std::bad_alloc&) {
      status = absl::ResourceExhaustedError("there is not enough memory for this");
    } catch (const std::exception& error) {
      status = absl::UnknownError(error.what());
    }
    if (!status.ok()) last_error = std::string(status.message());
    return CodeOf(status);
  } catch (...) {
    last_error.clear();  // no memory for the sentence either
    return INLAY_RESOURCE_EXHAUSTED;
  }
}

absl::Status CheckNotNull(std::initializer_list<std::pair<const char*, const void*>> arguments) {
  for (const auto& [name, pointer] : arguments) {
    if (pointer == nullptr) return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
  }
  return absl::OkStatus();
}

absl::Status CheckIds(absl::Span<const int32_t> ids, size_t vocabulary) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<size_t>(ids[i]) < vocabulary) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("token ", i, " is ", ids[i], ", outside the vocabulary of ", vocabulary));
  }
  return absl::OkStatus();
}

// Copies what fits.
template <class T>
absl::Status CopyOut(const char* what, const T* from, size_t count, T* to, size_t capacity,
                     size_t* written) {
  *written = count;
  std::copy_n(from, std::min(count, capacity), to);
  if (count <= capacity) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("there are ", count, " ", what, ", but room for ", capacity));
}

inlay_stop_reason ReasonOf(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfGeneration:
      return INLAY_STOP_END;
    case StopReason::kContextFull:
      return INLAY_STOP_CONTEXT;
    case StopReason::kCancelled:
      return INLAY_STOP_CANCELLED;
    case StopReason::kStopText:
      return INLAY_STOP_TEXT;
    case StopReason::kMaxTokens:
      break;
  }
  return INLAY_STOP_LENGTH;
}

// Copies `from` over the defaults: a caller of an older version passes only the first fields.
template <class Struct>
absl::StatusOr<Struct> Complete(const char* what, const Struct* from, Struct defaults) {
  if (from == nullptr) return defaults;
  constexpr size_t kLeast = 2 * sizeof(size_t);
  constexpr size_t kMost = size_t{1} << 16;
  if (const size_t size = from->size; size < kLeast || size > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("the size of ", what, " is ", size, ", not sizeof(", what, ")"));
  }
  std::memcpy(&defaults, from, std::min(from->size, sizeof(Struct)));
  return defaults;
}

inlay_options DefaultsOf(const LoadedModel& model) {
  const SamplingOptions s = SamplingOptions::From(model.engine->info().sampling);
  return {.size = sizeof(inlay_options),
          .max_tokens = 256,
          .temperature = s.temperature,
          .top_k = s.top_k,
          .top_p = s.top_p,
          .min_p = s.min_p,
          .repeat_penalty = s.repeat_penalty,
          .repeat_last_n = s.repeat_last_n,
          .seed = 0,
          .stop_texts = nullptr,
          .stop_text_count = 0,
          .ignore_end = 0,
          .draft = 0,
          .shape_kind = INLAY_SHAPE_NONE,
          .shape = nullptr,
          .shape_after = nullptr,
          .shape_in_order = 0};
}

absl::StatusOr<AnswerShape::Kind> ShapeKindOf(int kind) {
  switch (kind) {
    case INLAY_SHAPE_JSON_SCHEMA:
      return AnswerShape::Kind::kJsonSchema;
    case INLAY_SHAPE_REGEX:
      return AnswerShape::Kind::kRegex;
    case INLAY_SHAPE_GBNF:
      return AnswerShape::Kind::kGbnf;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("shape_kind is ", kind, ", not an inlay_shape_kind"));
}

// Null for an answer of any shape.
absl::StatusOr<std::shared_ptr<const AnswerGrammar>> GrammarOf(const inlay_options& o,
                                                               AnswerGrammars& grammars) {
  if (o.shape_kind == INLAY_SHAPE_NONE) return nullptr;
  AnswerShape shape;
  INLAY_ASSIGN_OR_RETURN(shape.kind, ShapeKindOf(o.shape_kind));
  INLAY_RETURN_IF_ERROR(CheckNotNull({{"shape", o.shape}}));
  shape.source = o.shape;
  if (o.shape_after != nullptr) shape.after = o.shape_after;
  shape.in_order = o.shape_in_order != 0;
  return grammars.Get(shape);
}

absl::StatusOr<GenerateOptions> OptionsOf(const inlay_options& o, AnswerGrammars& grammars) {
  GenerateOptions options;
  options.max_tokens = o.max_tokens;
  options.sampling = {.temperature = o.temperature,
                      .top_k = o.top_k,
                      .top_p = o.top_p,
                      .min_p = o.min_p,
                      .repeat_penalty = o.repeat_penalty,
                      .repeat_last_n = o.repeat_last_n,
                      .seed = o.seed};
  if (o.stop_text_count > 0) INLAY_RETURN_IF_ERROR(CheckNotNull({{"stop_texts", o.stop_texts}}));
  for (size_t i = 0; i < o.stop_text_count; ++i) {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"a stop text", o.stop_texts[i]}}));
    options.stop_texts.emplace_back(o.stop_texts[i]);
  }
  options.ignore_eos = o.ignore_end != 0;
  options.draft = o.draft;
  INLAY_ASSIGN_OR_RETURN(options.grammar, GrammarOf(o, grammars));
  return options;
}

absl::StatusOr<KvType> RowTypeOf(int type) {
  switch (type) {
    case INLAY_ROWS_F32:
      return KvType::kF32;
    case INLAY_ROWS_F16:
      return KvType::kF16;
    case INLAY_ROWS_BF16:
      return KvType::kBF16;
    case INLAY_ROWS_Q8:
      return KvType::kQ8;
  }
  return absl::InvalidArgumentError(absl::StrCat("row_type is ", type, ", not an inlay_row_type"));
}

absl::StatusOr<std::unique_ptr<KVCache>> CreateFor(const LoadedModel& model,
                                                   const inlay_cache_options* given) {
  constexpr size_t kUsualLength = 4096;
  INLAY_ASSIGN_OR_RETURN(
      inlay_cache_options o,
      Complete("inlay_cache_options", given,
               {sizeof(inlay_cache_options), /*max_length=*/0, INLAY_ROWS_F32, /*limit_bytes=*/0}));
  INLAY_ASSIGN_OR_RETURN(const KvType type, RowTypeOf(o.row_type));
  if (o.max_length == 0) o.max_length = std::min(kUsualLength, model.engine->info().context_length);
  const CacheOptions options{.max_length = o.max_length};
  if (o.limit_bytes > 0) return CreateCacheWithin(*model.engine, o.limit_bytes, options, type);
  return model.engine->CreateCache(options, type);
}

absl::Status Forward(absl::Span<inlay_step> steps, float* logits, size_t capacity) {
  if (steps.empty()) return absl::InvalidArgumentError("there are no steps");
  const LoadedModel* model = nullptr;
  std::vector<SequenceStep> sequences;
  size_t rows = 0;
  for (inlay_step& step : steps) {
    if (step.size != sizeof(inlay_step)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the size of inlay_step is ", step.size, ", not ", sizeof(inlay_step)));
    }
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", step.cache}, {"tokens", step.tokens}}));
    if (model != nullptr && model != &step.cache->shared->loaded) {
      return absl::InvalidArgumentError("the conversations are of different models");
    }
    model = &step.cache->shared->loaded;
    sequences.push_back({.cache = step.cache->cache.get(),
                         .tokens = {step.tokens, step.count},
                         .logit_rows = step.logit_rows});
    rows += step.logit_rows;
  }
  const size_t vocab_size = model->engine->info().vocab_size;
  if (rows > capacity / vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat("logits of ", rows, " x ", vocab_size,
                                                   " do not fit in ", capacity, " floats"));
  }
  if (rows > 0) INLAY_RETURN_IF_ERROR(CheckNotNull({{"logits", logits}}));
  std::vector<absl::Status> outcomes(steps.size());
  INLAY_RETURN_IF_ERROR(model->engine->Forward(sequences, FloatRows(logits, rows, vocab_size),
                                               nullptr, absl::MakeSpan(outcomes)));
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].status = CodeOf(outcomes[i]);
    if (!outcomes[i].ok()) last_error = std::string(outcomes[i].message());
  }
  return absl::OkStatus();
}

absl::Status Answer(inlay_cache& cache, absl::Span<const int32_t> prompt,
                    const inlay_options* options, inlay_text_callback callback, void* user,
                    inlay_stop_reason* reason) {
  const LoadedModel& model = cache.shared->loaded;
  INLAY_ASSIGN_OR_RETURN(const inlay_options all,
                         Complete("inlay_options", options, DefaultsOf(model)));
  INLAY_ASSIGN_OR_RETURN(const GenerateOptions generate, OptionsOf(all, cache.shared->grammars));
  bool stop = false;
  const auto on_text = [&](absl::string_view text) {
    if (callback != nullptr && callback(text.data(), text.size(), user) != 0) stop = true;
  };
  INLAY_ASSIGN_OR_RETURN(const GenerateResult result,
                         Generate(*model.engine, *model.tokenizer, *cache.cache, prompt, generate,
                                  on_text, [&] { return stop; }));
  if (reason != nullptr) *reason = ReasonOf(result.stop_reason);
  return absl::OkStatus();
}

}  // namespace
}  // namespace inlay

using inlay::Call;
using inlay::CheckNotNull;

const char* inlay_last_error(void) { return inlay::last_error.c_str(); }

const char* inlay_version(void) { return INLAY_VERSION; }

int inlay_interface_version(void) { return 3; }

inlay_status inlay_load_model(const char* path, const inlay_model_options* options,
                              inlay_model** model) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"path", path}, {"model", model}}));
    INLAY_ASSIGN_OR_RETURN(const inlay_model_options o,
                           inlay::Complete("inlay_model_options", options,
                                           {sizeof(inlay_model_options), /*threads=*/0,
                                            /*check_tensors=*/0}));
    constexpr int kMostThreads = 1024;
    if (o.threads < 0 || o.threads > kMostThreads) {
      return absl::InvalidArgumentError(
          absl::StrCat("threads is ", o.threads, ", outside 0 to ", kMostThreads));
    }
    const size_t threads = o.threads == 0 ? inlay::UsableCores() : static_cast<size_t>(o.threads);
    INLAY_ASSIGN_OR_RETURN(
        inlay::LoadedModel loaded,
        inlay::LoadModel(path, {.threads = threads, .check_tensors = o.check_tensors != 0}));
    *model = new inlay_model{std::make_shared<inlay::SharedModel>(std::move(loaded))};
    return absl::OkStatus();
  });
}

void inlay_free_model(inlay_model* model) { delete model; }

size_t inlay_vocabulary_size(const inlay_model* model) {
  return model == nullptr ? 0 : model->shared->loaded.engine->info().vocab_size;
}

inlay_status inlay_tokenize(const inlay_model* model, const char* text, size_t size,
                            int32_t* tokens, size_t capacity, size_t* count) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"text", text}, {"count", count}}));
    if (capacity > 0) INLAY_RETURN_IF_ERROR(CheckNotNull({{"tokens", tokens}}));
    INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                           model->shared->loaded.tokenizer->Encode(absl::string_view(text, size)));
    return inlay::CopyOut("tokens", ids.data(), ids.size(), tokens, capacity, count);
  });
}

inlay_status inlay_detokenize(const inlay_model* model, const int32_t* tokens, size_t count,
                              char* text, size_t capacity, size_t* size) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"tokens", tokens}, {"size", size}}));
    if (capacity > 0) INLAY_RETURN_IF_ERROR(CheckNotNull({{"text", text}}));
    INLAY_RETURN_IF_ERROR(inlay::CheckIds({tokens, count}, inlay_vocabulary_size(model)));
    const std::string decoded = model->shared->loaded.tokenizer->Decode({tokens, count});
    return inlay::CopyOut("bytes of text", decoded.data(), decoded.size(), text, capacity, size);
  });
}

inlay_status inlay_create_cache(const inlay_model* model, const inlay_cache_options* options,
                                inlay_cache** cache) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"cache", cache}}));
    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<inlay::KVCache> created,
                           inlay::CreateFor(model->shared->loaded, options));
    *cache = new inlay_cache{model->shared, std::move(created)};
    return absl::OkStatus();
  });
}

inlay_status inlay_fork_cache(const inlay_cache* cache, inlay_cache** fork) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"fork", fork}}));
    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<inlay::KVCache> forked, cache->cache->Fork());
    *fork = new inlay_cache{cache->shared, std::move(forked)};
    return absl::OkStatus();
  });
}

void inlay_free_cache(inlay_cache* cache) { delete cache; }

size_t inlay_cache_length(const inlay_cache* cache) {
  return cache == nullptr ? 0 : cache->cache->length();
}

size_t inlay_cache_max_length(const inlay_cache* cache) {
  return cache == nullptr ? 0 : cache->cache->max_length();
}

size_t inlay_cache_rewind_floor(const inlay_cache* cache) {
  return cache == nullptr ? 0 : cache->cache->RewindFloor();
}

size_t inlay_rewind_depth(const inlay_cache* cache) {
  return cache == nullptr ? 0 : cache->cache->rewind_depth();
}

inlay_status inlay_forward(inlay_step* steps, size_t count, float* logits, size_t capacity) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"steps", steps}}));
    return inlay::Forward({steps, count}, logits, capacity);
  });
}

inlay_status inlay_append(inlay_cache* cache, const int32_t* tokens, size_t count, float* logits) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"tokens", tokens}}));
    inlay::Engine& engine = *cache->shared->loaded.engine;
    return inlay::Prefill(
        engine, *cache->cache, {tokens, count},
        inlay::FloatRows(logits, logits == nullptr ? 0 : 1, engine.info().vocab_size));
  });
}

inlay_status inlay_rewind_cache(inlay_cache* cache, size_t length) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}}));
    return cache->cache->Rewind(length);
  });
}

inlay_status inlay_save_cache(const inlay_cache* cache, const char* path) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"path", path}}));
    INLAY_ASSIGN_OR_RETURN(const auto writer,
                           inlay::WriteStateFile(path, inlay::FileKind::kSession));
    return inlay::SaveSession(*cache->shared->loaded.engine, *cache->cache, *writer);
  });
}

inlay_status inlay_load_cache(inlay_cache* cache, const char* path, int exact, size_t* recomputed) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"path", path}}));
    INLAY_ASSIGN_OR_RETURN(const auto reader, inlay::ReadStateFile(path));
    size_t again = 0;
    const inlay::LoadOptions options{
        .exact = exact != 0,
        .on_recompute = [&](absl::string_view, size_t tokens) { again = tokens; }};
    const absl::Status status =
        inlay::LoadSession(*cache->shared->loaded.engine, *reader, *cache->cache, options);
    if (status.ok() && recomputed != nullptr) *recomputed = again;
    return inlay::About(path, status);
  });
}

inlay_status inlay_default_options(const inlay_model* model, inlay_options* options) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"options", options}}));
    inlay_options defaults = inlay::DefaultsOf(model->shared->loaded);
    INLAY_RETURN_IF_ERROR(inlay::Complete("inlay_options", options, defaults).status());
    defaults.size = options->size;
    std::memcpy(options, &defaults, std::min(options->size, sizeof(defaults)));
    return absl::OkStatus();
  });
}

inlay_status inlay_generate(inlay_cache* cache, const int32_t* prompt, size_t count,
                            const inlay_options* options, inlay_text_callback callback, void* user,
                            inlay_stop_reason* reason) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"prompt", prompt}}));
    return inlay::Answer(*cache, {prompt, count}, options, callback, user, reason);
  });
}
