// Generated answers of the C API, whole, in pieces, or a token at a time.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "gemma_like/c_api/call.h"
#include "gemma_like/c_api/handles.h"
#include "gemma_like/c_api/options.h"
#include "gemma_like/c_api/watch.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/sampler.h"
#include "gemma_like/inlay_c.h"

struct inlay_generation {
  // kStopping: by inlay_stop_generation() while another call runs, which then ends the answer.
  enum class State { kIdle, kRunning, kStopping };
  std::atomic<State> state{State::kIdle};
  // Each is destroyed before those above it.
  std::shared_ptr<inlay::c_api::SharedModel> shared;
  std::unique_ptr<inlay::c_api::Use> use;  // both null once the answer has ended: its steps restore
  std::unique_ptr<inlay::Generation> steps;  // the conversation when they are destroyed
  std::vector<float> logits;                 // [at least most_logit_rows, vocabulary size]
  // The latest piece, and how many tokens those before it had.
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<float> log_probabilities;
  size_t tokens_told = 0;
};

namespace inlay::c_api {
namespace {

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

// The cache is a copy of the caller's handle, which the callbacks may free.
absl::Status Answer(const inlay_cache cache, absl::Span<const int32_t> prompt,
                    const inlay_options* options, inlay_text_callback callback, void* user,
                    inlay_stop_reason* reason) {
  SharedModel& model = *cache.shared;
  INLAY_RETURN_IF_ERROR(CheckNotAsking(model));
  INLAY_ASSIGN_OR_RETURN(const inlay_options all, WithDefaults(options, model.loaded()));
  INLAY_ASSIGN_OR_RETURN(const GenerateOptions generate, GenerateOptionsOf(all, model));
  INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache.conversation));
  Watch watch(&model);
  bool stop = false;
  const auto on_text = [&](absl::string_view text) {
    if (callback != nullptr && callback(text.data(), text.size(), user) != 0) stop = true;
  };
  INLAY_ASSIGN_OR_RETURN(const GenerateResult result,
                         Generate(model.engine(), model.tokenizer(), use.cache(), prompt, generate,
                                  on_text, [&] { return stop || watch.Cancelled(); }));
  if (reason != nullptr) *reason = ReasonOf(result.stop_reason);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<inlay_generation>> Start(const inlay_cache& cache,
                                                        absl::Span<const int32_t> prompt,
                                                        const inlay_options* options) {
  auto generation = std::make_unique<inlay_generation>();
  generation->shared = cache.shared;
  SharedModel& model = *cache.shared;
  INLAY_ASSIGN_OR_RETURN(const inlay_options all, WithDefaults(options, model.loaded()));
  INLAY_ASSIGN_OR_RETURN(GenerateOptions generate, GenerateOptionsOf(all, model));
  INLAY_ASSIGN_OR_RETURN(Use use, Use::Of(cache.conversation));
  generation->use = std::make_unique<Use>(std::move(use));
  INLAY_ASSIGN_OR_RETURN(
      generation->steps,
      Generation::Begin(model.tokenizer(), generation->use->cache(), prompt, std::move(generate)));
  generation->logits.resize(generation->steps->most_logit_rows() *
                            model.engine().info().vocab_size);
  return generation;
}

using State = inlay_generation::State;

bool Stopping(const inlay_generation& generation) {
  return generation.state.load() == State::kStopping;
}

// Runs one step after the prompt, or the whole prompt and what it leads to.
absl::Status RunSteps(inlay_generation& generation) {
  Engine& engine = generation.shared->engine();
  Generation& steps = *generation.steps;
  const size_t vocab_size = engine.info().vocab_size;
  const FloatRows logits(generation.logits.data(), generation.logits.size() / vocab_size,
                         vocab_size);
  Watch watch(generation.shared.get());
  const CancelCheck cancel = [&] { return Stopping(generation) || watch.Cancelled(); };
  while (!steps.done()) {
    // After the prompt no step is cancelled midway: the conversation must contain all text shown.
    const bool in_prompt = steps.in_prompt();
    INLAY_RETURN_IF_ERROR(RunStep(engine, generation.use->cache(), steps, logits,
                                  in_prompt ? cancel : CancelCheck()));
    if (!steps.in_prompt()) break;
  }
  return absl::OkStatus();
}

// Gives the conversation back.
void End(inlay_generation& generation) {
  generation.steps.reset();
  generation.use.reset();
}

// Runs what is left of an answer that ends with the text that it has.
absl::Status Cancel(inlay_generation& generation) {
  generation.steps->Cancel();
  // A shape may have forced more tokens than one batch takes.
  absl::Status run;
  while (run.ok() && !generation.steps->done()) run = RunSteps(generation);
  return run;
}

// Sets `piece` to what an answer has more after `run`, its next step. An answer that has failed
// ends.
absl::Status TakePiece(inlay_generation& generation, absl::FunctionRef<absl::Status()> run,
                       inlay_piece* piece) {
  if (generation.steps == nullptr) return absl::FailedPreconditionError("the answer has ended");
  const absl::Status status = OrOutOfMemory("this answer", [&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(run());
    if (Stopping(generation)) INLAY_RETURN_IF_ERROR(Cancel(generation));
    const std::vector<int32_t>& tokens = generation.steps->tokens();
    generation.text = std::string(generation.steps->TakeText());
    generation.tokens.assign(tokens.begin() + static_cast<ptrdiff_t>(generation.tokens_told),
                             tokens.end());
    generation.log_probabilities.clear();
    const std::vector<ChosenToken>& chosen = generation.steps->chosen();
    for (size_t i = generation.tokens_told; i < chosen.size(); ++i)
      generation.log_probabilities.push_back(chosen[i].logprob);
    generation.tokens_told = tokens.size();
    return absl::OkStatus();
  });
  if (!status.ok()) {
    End(generation);
    return status;
  }
  const bool done = generation.steps->done();
  const bool scored = !generation.steps->chosen().empty();
  const inlay_stop_reason reason =
      done ? ReasonOf(generation.steps->stop_reason()) : INLAY_STOP_LENGTH;
  if (done) End(generation);
  return Fill(
      "inlay_piece",
      inlay_piece{.size = sizeof(inlay_piece),
                  .text = generation.text.data(),
                  .text_size = generation.text.size(),
                  .tokens = generation.tokens.data(),
                  .token_count = generation.tokens.size(),
                  .done = done ? 1 : 0,
                  .reason = reason,
                  .log_probabilities = scored ? generation.log_probabilities.data() : nullptr,
                  .status = INLAY_OK},
      piece);
}

absl::Status Stop(inlay_generation& generation) {
  if (generation.steps == nullptr) return absl::OkStatus();
  const absl::Status status = OrOutOfMemory("this answer", [&] { return Cancel(generation); });
  End(generation);
  return status;
}

// Gives the answer back after `status`, what a call has done with it. A stop that came too late for
// the call's steps is done now.
absl::Status GiveBack(inlay_generation& generation, absl::Status status) {
  State running = State::kRunning;
  if (generation.state.compare_exchange_strong(running, State::kIdle)) return status;
  const absl::Status stopped = Stop(generation);
  generation.state.store(State::kIdle);
  return status.ok() ? stopped : status;
}

absl::Status NextPieceAlone(inlay_generation& generation, inlay_piece* piece) {
  INLAY_RETURN_IF_ERROR(CheckNotNull({{"inlay_piece", piece}}));
  INLAY_RETURN_IF_ERROR(CheckSize("inlay_piece", piece->size));
  INLAY_RETURN_IF_ERROR(CheckNotAsking(*generation.shared));
  State idle = State::kIdle;
  if (!generation.state.compare_exchange_strong(idle, State::kRunning)) {
    return absl::FailedPreconditionError("another call uses the answer");
  }
  absl::Cleanup end = [&] {  // a callback has thrown
    End(generation);
    generation.state.store(State::kIdle);
  };
  const absl::Status status = OrOutOfMemory("this answer", [&] {
    return TakePiece(
        generation, [&] { return RunSteps(generation); }, piece);
  });
  std::move(end).Cancel();
  return GiveBack(generation, status);
}

// The answers of one call of inlay_next_pieces().
class Together {
 public:
  // Takes the answers, all or none.
  static absl::StatusOr<Together> Of(absl::Span<inlay_generation* const> generations) {
    Together together;
    together.taken_.reserve(generations.size());
    for (size_t i = 0; i < generations.size(); ++i) {
      INLAY_RETURN_IF_ERROR(CheckNotNull({{"a generation", generations[i]}}));
      inlay_generation& generation = *generations[i];
      if (generation.shared != generations[0]->shared)
        return absl::InvalidArgumentError("the answers are of different models");
      State idle = State::kIdle;
      if (!generation.state.compare_exchange_strong(idle, State::kRunning)) {
        return absl::FailedPreconditionError(
            absl::StrCat("answer ", i, " is given twice, or another call uses it"));
      }
      together.taken_.push_back(&generation);
    }
    return together;
  }
  Together(Together&&) = default;
  Together& operator=(Together&&) = delete;
  ~Together() {
    for (inlay_generation* generation : taken_)
      GiveBack(*generation, absl::OkStatus()).IgnoreError();
  }

  // Runs the next step of each answer that has not ended, in one pass; a prompt's is a part of it.
  // The status of each. On an error that it returns or throws, all have ended.
  absl::StatusOr<std::vector<absl::Status>> Run() {
    absl::Cleanup end = [this] {
      for (inlay_generation* generation : taken_) End(*generation);
    };
    std::vector<absl::Status> outcomes(taken_.size());
    Watch watch(taken_[0]->shared.get());
    std::vector<Entry> entries;
    size_t left = taken_[0]->shared->engine().info().max_batch;
    // A token for each first, then as much of the prompts as there is room for.
    size_t waiting = static_cast<size_t>(std::count_if(taken_.begin(), taken_.end(), Runs));
    for (const bool in_prompt : {false, true}) {
      for (size_t i = 0; i < taken_.size(); ++i) {
        inlay_generation& answer = *taken_[i];
        if (!Runs(&answer) || answer.steps->in_prompt() != in_prompt) continue;
        --waiting;
        // Others of the prompts get as much.
        const size_t most = in_prompt ? std::max<size_t>(left / (waiting + 1), 1) : left - waiting;
        absl::StatusOr<Generation::Step> step = answer.steps->Next(most);
        if (!step.ok()) {
          outcomes[i] = step.status();
          continue;
        }
        left -= step->tokens.size();
        entries.push_back({.index = i, .step = *step});
      }
    }
    INLAY_RETURN_IF_ERROR(Forward(entries, watch, absl::MakeSpan(outcomes)));
    std::move(end).Cancel();
    return outcomes;
  }

 private:
  struct Entry {
    size_t index;  // of the answer
    Generation::Step step;
  };

  Together() = default;

  static bool Runs(const inlay_generation* generation) {
    return generation->steps != nullptr && !generation->steps->done();
  }

  absl::Status Forward(absl::Span<const Entry> entries, Watch& watch,
                       absl::Span<absl::Status> outcomes) {
    if (entries.empty()) return absl::OkStatus();
    Engine& engine = taken_[0]->shared->engine();
    const size_t vocab_size = engine.info().vocab_size;
    std::vector<SequenceStep> steps;
    size_t rows = 0;
    for (const auto& [i, step] : entries) {
      const inlay_generation* const answer = taken_[i];
      steps.push_back(
          {.cache = &answer->use->cache(), .tokens = step.tokens, .logit_rows = step.logit_rows});
      // After the prompt no step is cancelled: the conversation must contain all text shown.
      if (answer->steps->in_prompt())
        steps.back().cancel = [&watch, answer] { return Stopping(*answer) || watch.Cancelled(); };
      rows += step.logit_rows;
    }
    std::vector<float>& memory = taken_[0]->logits;
    if (memory.size() < rows * vocab_size) memory.resize(rows * vocab_size);
    const FloatRows logits(memory.data(), rows, vocab_size);
    std::vector<absl::Status> advanced(steps.size());
    INLAY_RETURN_IF_ERROR(engine.Forward(steps, logits, nullptr, absl::MakeSpan(advanced)));
    size_t row = 0;
    for (size_t j = 0; j < entries.size(); ++j) {
      const auto& [i, step] = entries[j];
      Generation& generation = *taken_[i]->steps;
      outcomes[i] = advanced[j];
      if (advanced[j].ok()) outcomes[i] = generation.Accept(logits.Slice(row, step.logit_rows));
      row += step.logit_rows;
    }
    // Drafted tokens need memory: where there is too little of it, a token alone may still fit.
    for (const auto& [i, step] : entries) {
      inlay_generation& answer = *taken_[i];
      if (absl::IsResourceExhausted(outcomes[i]) && step.tokens.size() > 1 && Runs(&answer) &&
          !answer.steps->in_prompt()) {
        outcomes[i] = RunSteps(answer);
      }
    }
    return absl::OkStatus();
  }

  std::vector<inlay_generation*> taken_;
};

absl::Status NextPieces(absl::Span<inlay_generation* const> generations, inlay_piece* pieces) {
  if (generations.empty()) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(const auto pieces_of, ElementsOf("inlay_piece", pieces, generations.size(),
                                                          kSizeToStatus<inlay_piece>));
  INLAY_RETURN_IF_ERROR(CheckNotNull({{"a generation", generations[0]}}));
  // Held: the callback that is polled may free the model's handle, and answers their conversations.
  const std::shared_ptr<SharedModel> model = generations[0]->shared;
  INLAY_RETURN_IF_ERROR(CheckNotAsking(*model));
  const size_t most = model->engine().info().max_batch;
  if (generations.size() > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", generations.size(), " answers, more than the ", most, " tokens of one pass"));
  }
  return OrOutOfMemory("these answers", [&]() -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(Together together, Together::Of(generations));
    INLAY_ASSIGN_OR_RETURN(const std::vector<absl::Status> outcomes, together.Run());
    std::string sentences;
    for (size_t i = 0; i < generations.size(); ++i) {
      const absl::Status status = TakePiece(
          *generations[i], [&] { return outcomes[i]; }, pieces_of[i]);
      if (status.ok()) continue;
      INLAY_RETURN_IF_ERROR(Fill("inlay_piece",
                                 inlay_piece{.size = sizeof(inlay_piece),
                                             .text = nullptr,
                                             .text_size = 0,
                                             .tokens = nullptr,
                                             .token_count = 0,
                                             .done = 1,
                                             .reason = INLAY_STOP_CANCELLED,
                                             .log_probabilities = nullptr,
                                             .status = CodeOf(status)},
                                 pieces_of[i]));
      absl::StrAppend(&sentences, sentences.empty() ? "" : "; ", "answer ", i, ": ",
                      status.message());
    }
    if (!sentences.empty()) SetLastError(sentences);
    return absl::OkStatus();
  });
}

// Stops the answer, or has the call that runs it do so.
absl::Status StopAlone(inlay_generation& generation) {
  State state = generation.state.load();
  while (true) {
    if (state == State::kIdle) {
      INLAY_RETURN_IF_ERROR(CheckNotAsking(*generation.shared));
      if (generation.state.compare_exchange_strong(state, State::kRunning)) {
        return GiveBack(generation, Stop(generation));
      }
    } else if (state == State::kStopping ||
               generation.state.compare_exchange_strong(state, State::kStopping)) {
      return absl::OkStatus();
    }
  }
}

absl::StatusOr<int32_t> Sample(const inlay_cache& cache, const float* logits,
                               const inlay_options* options, size_t answer) {
  const SharedModel& model = *cache.shared;
  INLAY_ASSIGN_OR_RETURN(const inlay_options all, WithDefaults(options, model.loaded()));
  if (all.shape_kind != INLAY_SHAPE_NONE) {
    return absl::InvalidArgumentError("a single token cannot be kept to a shape");
  }
  INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache.conversation));
  const absl::Span<const int32_t> history = use.cache().tokens();
  if (answer > history.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an answer of ", answer, " tokens is longer than the conversation of ", history.size()));
  }
  INLAY_ASSIGN_OR_RETURN(const SamplingOptions sampling, SamplingOf(all, model.loaded()));
  INLAY_RETURN_IF_ERROR(CheckSampling(sampling));
  return Sampler(WithoutSuppressed(sampling, model.tokenizer()))
      .Sample(TokenLogits(model.tokenizer(), {logits, model.engine().info().vocab_size}), history,
              answer);
}

}  // namespace
}  // namespace inlay::c_api

using inlay::c_api::Call;
using inlay::c_api::CheckArray;
using inlay::c_api::CheckNotNull;

inlay_status inlay_default_options(const inlay_model* model, inlay_options* options) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"options", options}}));
    return inlay::c_api::Fill("inlay_options",
                              inlay::c_api::DefaultOptions(model->shared->loaded()), options);
  });
}

inlay_status inlay_generate(inlay_cache* cache, const int32_t* prompt, size_t count,
                            const inlay_options* options, inlay_text_callback callback, void* user,
                            inlay_stop_reason* reason) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}}));
    INLAY_RETURN_IF_ERROR(CheckArray("prompt", prompt, count));
    return inlay::c_api::Answer(*cache, {prompt, count}, options, callback, user, reason);
  });
}

inlay_status inlay_start_generation(inlay_cache* cache, const int32_t* prompt, size_t count,
                                    const inlay_options* options, inlay_generation** generation) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"generation", generation}}));
    INLAY_RETURN_IF_ERROR(CheckArray("prompt", prompt, count));
    INLAY_ASSIGN_OR_RETURN(auto started, inlay::c_api::Start(*cache, {prompt, count}, options));
    *generation = started.release();
    return absl::OkStatus();
  });
}

inlay_status inlay_next_piece(inlay_generation* generation, inlay_piece* piece) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"generation", generation}}));
    return inlay::c_api::NextPieceAlone(*generation, piece);
  });
}

inlay_status inlay_next_pieces(inlay_generation* const* generations, size_t count,
                               inlay_piece* pieces) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckArray("generations", generations, count));
    INLAY_RETURN_IF_ERROR(CheckArray("pieces", pieces, count));
    return inlay::c_api::NextPieces({generations, count}, pieces);
  });
}

inlay_status inlay_stop_generation(inlay_generation* generation) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"generation", generation}}));
    return inlay::c_api::StopAlone(*generation);
  });
}

void inlay_free_generation(inlay_generation* generation) { delete generation; }

inlay_status inlay_sample(const inlay_cache* cache, const float* logits,
                          const inlay_options* options, size_t answer, int32_t* token) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"logits", logits}, {"token", token}}));
    INLAY_ASSIGN_OR_RETURN(*token, inlay::c_api::Sample(*cache, logits, options, answer));
    return absl::OkStatus();
  });
}
