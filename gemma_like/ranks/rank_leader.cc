#include "gemma_like/ranks/rank_leader.h"

#include <new>
#include <utility>

#include "absl/types/span.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "cache/cache_bytes.h"
#include "cache/model_identity.h"
#include "gemma_like/model/batch_check.h"
#include "gemma_like/ranks/rank_load.h"
#include "gemma_like/ranks/rank_save.h"
#include "ops/team.h"

namespace inlay {

namespace {

constexpr size_t kReplaceFields = 3;  // of a kReplace, its command included

}  // namespace

// A model at the first rank.
class RankEngine final : public Engine {
 public:
  RankEngine(std::shared_ptr<RankLeader> leader, uint64_t number, std::unique_ptr<Engine> share)
      : leader_(std::move(leader)), number_(number), share_(std::move(share)) {
    unload_.Add(RankCommand::kUnload);
    unload_.Add(number_);
  }

  ~RankEngine() override {
    std::lock_guard<std::mutex> lock(leader_->calls_);
    leader_->Send(unload_);
  }

  const EngineInfo& info() const override { return share_->info(); }
  absl::StatusOr<ModelIdentity> Identity() override { return share_->Identity(); }
  CacheBytes PlanCache(KvType type) const override { return share_->PlanCache(type); }
  size_t CacheBytesRead(size_t length, KvType type) const override {
    return share_->CacheBytesRead(length, type);
  }

  absl::StatusOr<std::unique_ptr<KVCache>> CreateCache(const CacheOptions& options,
                                                       KvType type) const override {
    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> cache, share_->CreateCache(options, type));
    INLAY_RETURN_IF_ERROR(leader_->Follow(number_, options, *cache));
    return cache;
  }

  absl::Status Forward(absl::Span<const SequenceStep> steps, FloatRows logits,
                       const CancelCheck& cancel, absl::Span<absl::Status> outcomes) override {
    std::lock_guard<std::mutex> lock(leader_->calls_);
    RankMessage message;
    INLAY_RETURN_IF_ERROR(OrOutOfMemory("this batch", [&]() -> absl::Status {
      // Workers allocate their own result views, so only this rank can detect a wrong one.
      INLAY_RETURN_IF_ERROR(CheckBatch(steps, logits, outcomes, share_->info()));
      message.Add(RankCommand::kForward);
      message.Add(number_);
      message.Add(outcomes.empty());
      message.Add(steps.size());
      for (const SequenceStep& step : steps) {
        INLAY_ASSIGN_OR_RETURN(const uint64_t conversation, leader_->NumberOf(*step.cache));
        message.Add(conversation);
        message.Add(step.cache->length());
        message.AddArray(step.tokens);
        message.Add(step.logit_rows);
      }
      return absl::OkStatus();
    }));
    if (cancel && cancel()) return absl::CancelledError("cancelled before layer 0");
    leader_->Send(message);
    return share_->Forward(steps, logits, cancel, outcomes);
  }

  absl::Status Embed(absl::Span<const absl::Span<const int32_t>> texts, FloatRows embeddings,
                     const CancelCheck& cancel) override {
    std::lock_guard<std::mutex> lock(leader_->calls_);
    RankMessage message;
    INLAY_RETURN_IF_ERROR(OrOutOfMemory("this batch", [&] {
      if (share_->info().embedding_dim > 0)
        INLAY_RETURN_IF_ERROR(CheckTexts(texts, embeddings, share_->info()));
      message.Add(RankCommand::kEmbed);
      message.Add(number_);
      message.Add(texts.size());
      for (const absl::Span<const int32_t> text : texts) message.AddArray(text);
      return absl::OkStatus();
    }));
    leader_->Send(message);
    return share_->Embed(texts, embeddings, cancel);
  }

 private:
  const std::shared_ptr<RankLeader> leader_;
  const uint64_t number_;
  const std::unique_ptr<Engine> share_;
  RankMessage unload_;  // made here, where it may fail
};

RankLeader::RankLeader(std::shared_ptr<Ranks> ranks, ModelLoader load)
    : ranks_(std::move(ranks)), load_(std::move(load)) {
  stop_.Add(RankCommand::kStop);
}

RankLeader::~RankLeader() { stop_.Send(*ranks_); }

absl::StatusOr<LoadedModel> RankLeader::LoadModel(const std::string& path,
                                                  const EngineOptions& options) {
  std::lock_guard<std::mutex> lock(calls_);
  const uint64_t number = models_++;
  RankMessage message;
  INLAY_RETURN_IF_ERROR(OrOutOfMemory("this model", [&] {
    message.Add(RankCommand::kLoad);
    message.Add(number);
    message.AddText(path);
    message.Add(options.team != nullptr ? options.team->threads() : options.threads);
    message.Add(options.max_batch);
    message.Add(options.check_tensors);
    return absl::OkStatus();
  }));
  Send(message);
  try {
    INLAY_ASSIGN_OR_RETURN(LoadedModel model, LoadShare(ranks_, path, options, load_));
    model.engine =
        std::make_unique<RankEngine>(shared_from_this(), number, std::move(model.engine));
    return model;
  } catch (const std::bad_alloc&) {
    // The others wait for what this rank has to say of its share, for any time.
    ranks_->Fail("there is no memory to load a model");
  }
}

void RankLeader::Send(const RankMessage& message) {
  try {
    RankMessage all;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      all.Append(pending_);
      for (const uint64_t conversation : dropped_) {
        all.Add(RankCommand::kDrop);
        all.Add(conversation);
      }
      pending_.Clear();
      dropped_.clear();
    }
    all.Append(message);
    all.Send(*ranks_);
  } catch (const std::bad_alloc&) {
    ranks_->Fail("there is no memory to tell the other ranks what to do");
  }
}

void RankLeader::Tell(RankCommand command, std::initializer_list<uint64_t> fields) {
  // Replaced must not need memory. Each conversation can replace another one once; there may be one
  // more of them after this.
  pending_.Reserve(1 + fields.size() + (numbers_.size() + 1) * kReplaceFields);
  pending_.Add(command);
  for (const uint64_t field : fields) pending_.Add(field);
}

void RankLeader::TellOfNew(const KVCache& cache, RankCommand command,
                           std::initializer_list<uint64_t> fields) {
  std::map<const KVCache*, uint64_t> added = {{&cache, conversations_}};
  // Dropped must not need memory, for these and those that nobody was told of yet.
  dropped_.reserve(dropped_.size() + numbers_.size() + 1);
  Tell(command, fields);
  numbers_.merge(added);
  ++conversations_;
}

absl::StatusOr<uint64_t> RankLeader::NumberOf(const KVCache& cache) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto at = numbers_.find(&cache);
  if (at != numbers_.end()) return at->second;
  return absl::InvalidArgumentError(
      "the conversation was not made by a model that these ranks compute");
}

absl::Status RankLeader::Follow(uint64_t model, const CacheOptions& options, KVCache& cache) {
  return OrOutOfMemory("a conversation", [&] {
    std::lock_guard<std::mutex> lock(mutex_);
    TellOfNew(cache, RankCommand::kCreate,
              {model, conversations_, options.max_length, static_cast<uint64_t>(cache.kv_type())});
    cache.SetFollower(shared_from_this());
    return absl::OkStatus();
  });
}

absl::Status RankLeader::Forked(const KVCache& cache, const KVCache& fork) {
  INLAY_ASSIGN_OR_RETURN(const uint64_t number, NumberOf(cache));
  return OrOutOfMemory("a fork of this conversation", [&] {
    std::lock_guard<std::mutex> lock(mutex_);
    TellOfNew(fork, RankCommand::kFork, {number, conversations_});
    return absl::OkStatus();
  });
}

absl::Status RankLeader::Rewound(const KVCache& cache, size_t position) {
  INLAY_ASSIGN_OR_RETURN(const uint64_t number, NumberOf(cache));
  return OrOutOfMemory("a rewind of this conversation", [&] {
    std::lock_guard<std::mutex> lock(mutex_);
    Tell(RankCommand::kRewind, {number, position});
    return absl::OkStatus();
  });
}

absl::Status RankLeader::Trimmed(const KVCache& cache, size_t rewind) {
  INLAY_ASSIGN_OR_RETURN(const uint64_t number, NumberOf(cache));
  return OrOutOfMemory("this conversation", [&] {
    std::lock_guard<std::mutex> lock(mutex_);
    Tell(RankCommand::kTrim, {number, rewind});
    return absl::OkStatus();
  });
}

absl::Status RankLeader::Replaced(const KVCache& cache, const KVCache& snapshot) {
  INLAY_ASSIGN_OR_RETURN(const uint64_t number, NumberOf(cache));
  INLAY_ASSIGN_OR_RETURN(const uint64_t by, NumberOf(snapshot));
  std::lock_guard<std::mutex> lock(mutex_);
  // Tell has left room for it: what was half done is undone by this, where memory has run out.
  pending_.Add(RankCommand::kReplace);
  pending_.Add(number);
  pending_.Add(by);
  return absl::OkStatus();
}

absl::Status RankLeader::SaveParts(const KVCache& cache, uint64_t seed, ByteSink& sink) {
  INLAY_ASSIGN_OR_RETURN(const uint64_t number, NumberOf(cache));
  std::lock_guard<std::mutex> lock(calls_);
  return OrOutOfMemory("a saved conversation", [&] {
    PartTransfer transfer(*ranks_);
    RankMessage message;
    message.Add(RankCommand::kSaveParts);
    message.Add(number);
    message.Add(seed);
    Send(message);
    return transfer.Save(cache, seed, &sink);
  });
}

absl::Status RankLeader::LoadParts(KVCache& cache, uint64_t seed, absl::Span<const int32_t> tokens,
                                   ByteSource& source) {
  INLAY_ASSIGN_OR_RETURN(const uint64_t number, NumberOf(cache));
  std::lock_guard<std::mutex> lock(calls_);
  return OrOutOfMemory("a saved conversation", [&]() -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes,
                           PartTransfer::ReadSizes(*ranks_, seed, source));
    PartTransfer transfer(*ranks_);
    RankMessage message;
    message.Add(RankCommand::kLoadParts);
    message.Add(number);
    message.Add(seed);
    message.AddArray(tokens);
    message.AddArray(absl::MakeConstSpan(sizes));
    Send(message);
    return transfer.Load(cache, seed, tokens, sizes, &source);
  });
}

void RankLeader::Dropped(const KVCache& cache) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto at = numbers_.find(&cache);
  if (at == numbers_.end()) return;
  dropped_.push_back(at->second);
  numbers_.erase(at);
}

}  // namespace inlay
