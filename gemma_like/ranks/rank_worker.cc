#include "gemma_like/ranks/rank_worker.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cache/block_pool.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/ranks/rank_load.h"
#include "gemma_like/ranks/rank_message.h"
#include "gemma_like/ranks/rank_save.h"

namespace inlay {
namespace {

class Worker {
 public:
  Worker(std::shared_ptr<Ranks> ranks, ModelLoader load)
      : ranks_(std::move(ranks)), load_(std::move(load)) {}

  // Does what a message says. False at the end.
  bool Do(ReceivedMessage message) {
    while (!message.empty()) {
      switch (message.TakeCommand()) {
        case RankCommand::kLoad:
          Load(message);
          break;
        case RankCommand::kUnload:
          models_.erase(message.Take());
          break;
        case RankCommand::kCreate:
          Create(message);
          break;
        case RankCommand::kFork:
          Fork(message);
          break;
        case RankCommand::kRewind:
          Rewind(message);
          break;
        case RankCommand::kTrim:
          Trim(message);
          break;
        case RankCommand::kReplace:
          Replace(message);
          break;
        case RankCommand::kDrop:
          conversations_.erase(message.Take());
          break;
        case RankCommand::kSaveParts:
          SaveParts(message);
          break;
        case RankCommand::kLoadParts:
          LoadParts(message);
          break;
        case RankCommand::kForward:
          Forward(message);
          break;
        case RankCommand::kEmbed:
          Embed(message);
          break;
        case RankCommand::kStop:
          return false;
      }
    }
    return true;
  }

 private:
  // Ends all ranks when what the first has done cannot be done here.
  void Require(const absl::Status& status) {
    if (!status.ok()) ranks_->Fail(status.message());
  }

  void Load(ReceivedMessage& message) {
    const uint64_t number = message.Take();
    const std::string path = message.TakeText();
    EngineOptions options;
    options.threads = message.Take();
    options.max_batch = message.Take();
    options.check_tensors = message.Take() != 0;
    absl::StatusOr<LoadedModel> model = LoadShare(ranks_, path, options, load_);
    if (model.ok()) models_[number] = std::move(model->engine);  // else the first rank says why
  }

  void Create(ReceivedMessage& message) {
    const Engine& model = *models_.at(message.Take());
    const uint64_t number = message.Take();
    const CacheOptions options{.max_length = message.Take(), .pool = pool_};
    absl::StatusOr<std::unique_ptr<KVCache>> cache =
        model.CreateCache(options, static_cast<KvType>(message.Take()));
    Require(cache.status());
    conversations_[number] = *std::move(cache);
  }

  void Fork(ReceivedMessage& message) {
    absl::StatusOr<std::unique_ptr<KVCache>> fork = conversations_.at(message.Take())->Fork();
    Require(fork.status());
    conversations_[message.Take()] = *std::move(fork);
  }

  void Rewind(ReceivedMessage& message) {
    KVCache& cache = *conversations_.at(message.Take());
    Require(cache.Rewind(message.Take()));
  }

  void Trim(ReceivedMessage& message) {
    KVCache& cache = *conversations_.at(message.Take());
    Require(cache.Trim(message.Take()));
  }

  void Replace(ReceivedMessage& message) {
    KVCache& cache = *conversations_.at(message.Take());
    Require(cache.Restore(std::move(*conversations_.at(message.Take()))));
  }

  void SaveParts(ReceivedMessage& message) {
    const KVCache& cache = *conversations_.at(message.Take());
    PartTransfer(*ranks_).Save(cache, message.Take(), nullptr).IgnoreError();
  }

  void LoadParts(ReceivedMessage& message) {
    KVCache& cache = *conversations_.at(message.Take());
    const uint64_t seed = message.Take();
    const std::vector<int32_t> tokens = message.TakeArray<int32_t>();
    const std::vector<uint64_t> sizes = message.TakeArray<uint64_t>();
    // An error is the first rank's, too, which drops the conversation.
    PartTransfer(*ranks_).Load(cache, seed, tokens, sizes, nullptr).IgnoreError();
  }

  void Forward(ReceivedMessage& message) {
    Engine& model = *models_.at(message.Take());
    const bool together = message.Take() != 0;
    std::vector<SequenceStep> steps(message.Take());
    std::vector<std::vector<int32_t>> tokens;
    size_t rows = 0;
    for (SequenceStep& step : steps) {
      const uint64_t number = message.Take();
      step.cache = conversations_.at(number).get();
      const size_t length = message.Take();
      if (step.cache->length() != length) {
        ranks_->Fail(absl::StrCat("conversation ", number, " has ", step.cache->length(),
                                  " tokens at rank ", ranks_->rank(), ", not ", length));
      }
      tokens.push_back(message.TakeArray<int32_t>());
      step.tokens = tokens.back();
      step.logit_rows = message.Take();
      rows += step.logit_rows;
    }
    std::vector<absl::Status> outcomes(together ? 0 : steps.size());
    // What is wrong with a batch is wrong at all ranks; the first one says so.
    model.Forward(steps, Results(rows, model.info().vocab_size), nullptr, absl::MakeSpan(outcomes))
        .IgnoreError();
  }

  void Embed(ReceivedMessage& message) {
    Engine& model = *models_.at(message.Take());
    std::vector<std::vector<int32_t>> tokens(message.Take());
    std::vector<absl::Span<const int32_t>> texts;
    for (std::vector<int32_t>& text : tokens) {
      text = message.TakeArray<int32_t>();
      texts.push_back(text);
    }
    model.Embed(texts, Results(texts.size(), model.info().embedding_dim)).IgnoreError();
  }

  // Memory for results that the first rank has. Only what is written here is touched.
  FloatRows Results(size_t rows, size_t cols) {
    if (rows * cols > results_size_) {
      results_.reset();
      results_size_ = 0;
      results_.reset(new float[rows * cols]);
      results_size_ = rows * cols;
    }
    return FloatRows(results_.get(), rows, cols);
  }

  const std::shared_ptr<Ranks> ranks_;
  const ModelLoader load_;
  // The first rank's pool has the limit.
  const std::shared_ptr<BlockPool> pool_ = std::make_shared<BlockPool>();
  std::map<uint64_t, std::unique_ptr<Engine>> models_;
  std::map<uint64_t, std::unique_ptr<KVCache>> conversations_;
  std::unique_ptr<float[]> results_;
  size_t results_size_ = 0;
};

}  // namespace

void ServeRank(const std::shared_ptr<Ranks>& ranks, ModelLoader load) {
  try {
    Worker worker(ranks, std::move(load));
    while (worker.Do(ReceivedMessage::Receive(*ranks))) {
    }
  } catch (const std::bad_alloc&) {
    ranks->Fail(absl::StrCat("rank ", ranks->rank(), " has no memory left"));
  }
}

}  // namespace inlay
