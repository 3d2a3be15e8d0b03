#include "gemma_like/generation/model_drafter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "ops/softmax.h"
#include "ops/views.h"

namespace inlay {
namespace {

// To check one more token in a pass, in passes of one token: measured for 2 to 8 tokens, see
// docs/kernels.md.
constexpr double kRowCost = 0.2;

// Where costs are measured, some calls draft nothing, so that the time of a pass without drafts is
// known: the first kPlainFirst of an answer, and every kPlainEvery-th one.
constexpr size_t kPlainFirst = 4;
constexpr size_t kPlainEvery = 64;

// Tokens of a new text that are read in one call.
constexpr size_t kSlice = 256;

size_t CommonLength(absl::Span<const int32_t> a, absl::Span<const int32_t> b) {
  const size_t shorter = std::min(a.size(), b.size());
  const auto end = std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(shorter), b.begin());
  return static_cast<size_t>(end.first - a.begin());
}

}  // namespace

absl::Status CheckDraftModel(const Engine& model, const Tokenizer& tokenizer,
                             const Engine& draft_model, const Tokenizer& draft_tokenizer) {
  if (draft_model.info().embedding_dim != 0)
    return absl::InvalidArgumentError("the draft model embeds texts and generates none");
  const size_t size = tokenizer.size(), draft_size = draft_tokenizer.size();
  if (size == 0 || draft_size == 0) {
    const size_t rows = model.info().vocab_size, draft_rows = draft_model.info().vocab_size;
    if (size == draft_size && rows == draft_rows) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the draft model has a vocabulary of ", draft_rows, " tokens, ", draft_size,
                     " of them with texts, the model one of ", rows, " and ", size));
  }
  // Beyond the shorter one there may be tokens that only fill the embedding up.
  for (size_t i = 0; i < std::min(size, draft_size); ++i) {
    const auto token = static_cast<int32_t>(i);
    const absl::string_view text = tokenizer.TokenText(token);
    const absl::string_view draft_text = draft_tokenizer.TokenText(token);
    if (text == draft_text) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the draft model has another vocabulary: its token ", token, " is ",
                     QuoteForMessage(draft_text), ", the model's is ", QuoteForMessage(text)));
  }
  return absl::OkStatus();
}

DraftCosts CostsOfDrafts(const Engine& model, const Engine& draft_model) {
  const auto bytes = [](const EngineInfo& info) {
    return info.work.layers.bytes + info.work.output.bytes;
  };
  return {.pass = bytes(draft_model.info()) / std::max(1.0, bytes(model.info())), .row = kRowCost};
}

absl::StatusOr<std::unique_ptr<ModelDrafter>> ModelDrafter::Create(Engine& draft_model,
                                                                   size_t vocab_size,
                                                                   const DraftCosts& costs,
                                                                   const CacheOptions& options,
                                                                   KvType type, DraftCostsAre are) {
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> empty, draft_model.CreateCache(options, type));
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> cache, empty->Fork());
  return std::unique_ptr<ModelDrafter>(
      new ModelDrafter(draft_model, vocab_size, costs, std::move(empty), std::move(cache), are));
}

ModelDrafter::ModelDrafter(Engine& draft_model, size_t vocab_size, const DraftCosts& costs,
                           std::unique_ptr<KVCache> empty, std::unique_ptr<KVCache> cache,
                           DraftCostsAre are)
    : draft_model_(draft_model),
      empty_(std::move(empty)),
      cache_(std::move(cache)),
      drawn_(std::min(vocab_size, draft_model.info().vocab_size)),
      assumed_(costs),
      measures_(are == DraftCostsAre::kMeasured),
      policy_(costs) {}

void ModelDrafter::StartAnswer(const SamplingOptions& sampling, size_t begin) {
  sampler_ = Sampler(sampling);
  answer_begin_ = begin;
  calls_ = 0;
}

void ModelDrafter::Pause() {
  (void)Empty();  // without memory for that it keeps what it has
  logits_ = std::vector<float>();
  calls_ = 0;  // else the pause would count as the time of a pass
}

void ModelDrafter::LearnFrom(absl::Span<const int32_t> tokens) {
  const size_t common = CommonLength(text_, tokens);
  // Otherwise the answer ended with the draft, or this is another conversation.
  if (common >= drafted_from_ && tokens.size() > common) policy_.Learn(common - drafted_from_);
}

bool ModelDrafter::Empty() {
  absl::StatusOr<std::unique_ptr<KVCache>> fresh = empty_->Fork();
  return fresh.ok() && cache_->Restore(std::move(**fresh)).ok();
}

bool ModelDrafter::Append(absl::Span<const int32_t> tokens, size_t logit_rows) {
  logits_.resize(draft_model_.info().vocab_size);
  const SequenceStep step{.cache = cache_.get(), .tokens = tokens, .logit_rows = logit_rows};
  return draft_model_.Forward({&step, 1}, FloatRows(logits_.data(), logit_rows, logits_.size()))
      .ok();
}

size_t ModelDrafter::Follow(absl::Span<const int32_t> tokens) {
  if (tokens.size() > cache_->max_length()) return 0;
  // The last token is always computed, for its logits.
  const size_t common = std::min(CommonLength(cache_->tokens(), tokens), tokens.size() - 1);
  if (common < cache_->length() && !cache_->Rewind(common).ok() && !Empty()) return 0;
  const absl::Span<const int32_t> missing = tokens.subspan(cache_->length());
  const size_t slice = std::min(kSlice, draft_model_.info().max_batch);
  if (missing.size() <= slice) return Append(missing, 1) ? missing.size() : 0;
  Append(missing.first(slice), 0);
  return 0;
}

std::vector<int32_t> ModelDrafter::Draft(absl::Span<const int32_t> tokens, size_t most) {
  const std::chrono::duration<double> since = Clock::now() - last_call_;
  // Of one pass alone: there were more where meanwhile nothing was to be drafted.
  if (calls_ > 0 && tokens.size() <= text_.size() + 1)
    times_.ModelPass(since.count(), 1 + text_.size() - drafted_from_);
  LearnFrom(tokens);
  text_.assign(tokens.begin(), tokens.end());
  drafted_from_ = tokens.size();
  std::vector<int32_t> draft = DraftNext(tokens, most);
  last_call_ = Clock::now();
  ++calls_;
  return draft;
}

std::vector<int32_t> ModelDrafter::DraftNext(absl::Span<const int32_t> tokens, size_t most) {
  if (tokens.empty() || most == 0) return {};
  if (measures_) {
    policy_.SetCosts(times_.CostsOr(assumed_));
    if (calls_ < kPlainFirst || calls_ % kPlainEvery == 0) return {};
  }
  if (!policy_.Begin()) return {};
  const Clock::time_point begin = Clock::now();
  const size_t read = Follow(tokens);
  if (read == 0) return {};
  double passes = 1;
  const size_t room = cache_->max_length() - cache_->length();
  while (true) {
    const absl::Span<const float> logits(logits_.data(), drawn_);
    const absl::StatusOr<int32_t> token =
        sampler_.Sample(logits, text_, text_.size() - std::min(text_.size(), answer_begin_));
    if (!token.ok()) break;
    const double all = LogSumExp(logits.data(), logits.size());
    if (!policy_.Add(std::exp(double{logits[static_cast<size_t>(*token)]} - all))) break;
    text_.push_back(*token);
    const size_t drafted = text_.size() - drafted_from_;
    if (drafted == most || drafted > room || !policy_.GoesOn()) break;
    if (!Append({&*token, 1}, 1)) break;
    ++passes;
  }
  // The token chosen last, and one drafted before it that the model found itself.
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  if (read <= 2) times_.DraftPass(seconds.count() / passes);
  return {text_.begin() + static_cast<ptrdiff_t>(drafted_from_), text_.end()};
}

}  // namespace inlay
