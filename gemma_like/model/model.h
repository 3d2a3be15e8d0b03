// A model whose config is its type: weights bound to typed views, and the forward pass as a fold
// over its layers.
#ifndef INLAY_GEMMA_LIKE_MODEL_MODEL_H_
#define INLAY_GEMMA_LIKE_MODEL_MODEL_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/unreadable_weights.h"
#include "cache/cache_plan.h"
#include "cache/fingerprint.h"
#include "cache/hybrid_cache.h"
#include "cache/model_identity.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "gemma_like/engine.h"
#include "gemma_like/files/packed_file.h"
#include "gemma_like/files/weights_hash.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/model/arena.h"
#include "gemma_like/model/batch_check.h"
#include "gemma_like/model/bind_weights.h"
#include "gemma_like/model/block.h"
#include "gemma_like/model/file_sampling.h"
#include "gemma_like/model/memory_plan.h"
#include "gemma_like/model/metadata_check.h"
#include "gemma_like/model/running_batch.h"
#include "gemma_like/model/schedule.h"
#include "gemma_like/model/weight_binder.h"
#include "gemma_like/model/weights.h"
#include "gemma_like/numerics.h"
#include "gemma_like/ranks/rank_pass.h"
#include "gemma_like/ranks/ranks.h"
#include "gemma_like/strings.h"
#include "gemma_like/usable_cores.h"
#include "io/gguf/gguf.h"
#include "ops/cpu/cpu_target.h"
#include "ops/cpu/kernel_memory.h"
#include "ops/matmul/operand.h"
#include "ops/pooling.h"
#include "ops/row_ops.h"
#include "ops/team.h"

namespace inlay {

template <ModelConfig Config>
class Model final : public Engine {
  static_assert(CheckConfig<Config>());
  // The last layer whose mixers store state: after it, only the rows whose logits are wanted are
  // needed.
  static constexpr int kLastStoring = LastLayerWithStorage<Config>();
  static_assert(kLastStoring >= 0, "a model must have a layer that stores state");
  static constexpr bool kEmbeds = EmbedsTexts<Config>();
  // Of all layers' inputs.
  static constexpr size_t kInputCols = kLayerInputDim<Config> * size_t{Config::Layers::kSize};

 public:
  // Binds a file whose metadata and tensors agree with the config, or returns an error that names
  // what differs. Keeps the file mapped.
  static absl::StatusOr<std::unique_ptr<Model>> Load(std::shared_ptr<const GgufFile> file,
                                                     const EngineOptions& options) {
    return OrOutOfMemory("this model", [&] { return Bind(std::move(file), options); });
  }

  // The tensors of such a file that Load packs.
  static absl::StatusOr<PackedTensors> FindPackedTensors(const GgufFile& file) {
    const WeightBinder binder = Ask(file, {});
    INLAY_RETURN_IF_ERROR(binder.Finish());
    return binder.packed();
  }

  // What Load will allocate for this file, with options that it accepts. Tensors that do not fit
  // the config are not counted: loading reports them.
  static ModelMemory PlanMemory(const GgufFile& file, const EngineOptions& options) {
    const WeightBinder binder = Ask(file, ShareOf(options.ranks.get()));
    const size_t threads = TeamThreads(options);
    size_t scratch =
        ScratchFloats(MaxBatch(options), threads) * sizeof(float) + PlannedKernelMemory(threads);
    if constexpr (kEmbeds) {
      // The conversations of EmbedTexts: each text may begin a block of its own.
      constexpr CacheBytes kText = ConfigCacheBytes<Config, F32Storage>();
      scratch += kText.At(MaxBatch(options)) + (kMostTexts - 1) * kText.At(1);
    }
    return {.weights = binder.bytes(), .scratch = scratch};
  }

  // What a rank's token costs, from the file's header alone, once a conversation has `length`
  // tokens.
  static absl::StatusOr<PlannedWork> PlanWork(const GgufFile& file, RankShare share,
                                              size_t length) {
    WeightBinder binder(file, share);
    const auto shapes = std::make_unique<ModelWeights<Config>>();
    BindWeights(binder, *shapes);
    INLAY_RETURN_IF_ERROR(binder.Finish());
    PlannedWork plan{WorkOfModel(*shapes, share)};
    plan.weights = static_cast<double>(binder.bytes());
    plan.cache = static_cast<double>(ConfigCacheBytes<Config>(share).At(length));
    plan.cache_read = static_cast<double>(ConfigCacheBytesRead<Config>(length, share));
    return plan;
  }

  const EngineInfo& info() const override { return info_; }

  absl::StatusOr<ModelIdentity> Identity() override {
    return OrOutOfMemory("this model", [&]() -> absl::StatusOr<ModelIdentity> {
      ModelIdentity identity{.weights_hash = weights_hash_.Get(),
                             .numerics_version = kNumericsVersion,
                             .instruction_set = ChosenArithmetic()};
      INLAY_RETURN_IF_ERROR(file_->CheckWhole());
      return identity;
    });
  }

  absl::StatusOr<std::unique_ptr<KVCache>> CreateCache(
      const CacheOptions& options, KvType type = kDefaultKvType) const override {
    return OrOutOfMemory("a conversation", [&]() -> absl::StatusOr<std::unique_ptr<KVCache>> {
      CacheOptions with_vocabulary = options;
      with_vocabulary.vocab_size = info_.vocab_size;
      return WithStorage(type, [&](auto policy) -> std::unique_ptr<KVCache> {
        return std::make_unique<HybridCache<Config>>(policy, with_vocabulary, share());
      });
    });
  }

  CacheBytes PlanCache(KvType type) const override {
    return WithStorage(type, [this]<class Policy>(Policy) {
      return ConfigCacheBytes<Config, Policy>(LargestShare(share()));
    });
  }

  size_t CacheBytesRead(size_t length, KvType type) const override {
    return WithStorage(type, [&]<class Policy>(Policy) {
      return ConfigCacheBytesRead<Config, Policy>(length, share());
    });
  }

  absl::Status Forward(absl::Span<const SequenceStep> steps, FloatRows logits,
                       const CancelCheck& cancel = nullptr,
                       absl::Span<absl::Status> outcomes = {}) override {
    if constexpr (kEmbeds) {
      return absl::FailedPreconditionError(
          absl::StrCat("a model of config ", info_.config_name,
                       " embeds texts: it computes no logits, from which to generate text"));
    } else {
      return OrOutOfMemory("this batch", [&] {
        const absl::Status status = CheckBatch(steps, logits, outcomes, info_);
        if (!status.ok()) return status;
        return OnAllRanks([&] { return RunPass(steps, logits, cancel, outcomes); });
      });
    }
  }

  absl::Status Embed(absl::Span<const absl::Span<const int32_t>> texts, FloatRows embeddings,
                     const CancelCheck& cancel = nullptr) override {
    if constexpr (kEmbeds) {
      return OrOutOfMemory("this batch", [&]() -> absl::Status {
        INLAY_RETURN_IF_ERROR(CheckTexts(texts, embeddings, info_));
        return OnAllRanks([&] { return EmbedTexts(texts, embeddings, cancel); });
      });
    } else {
      return absl::FailedPreconditionError(absl::StrCat(
          "a model of config ", info_.config_name, " generates text: it computes no embeddings"));
    }
  }

 private:
  RankShare share() const { return ranks_ ? ShareOf(&ranks_->group()) : RankShare(); }

  // A binder that was asked for every tensor that a model of this config reads from the file, of
  // whose matrices it has a share.
  static WeightBinder Ask(const GgufFile& file, RankShare share) {
    WeightBinder binder(file, share);
    const auto nothing = std::make_unique<ModelWeights<Config>>();
    BindWeights(binder, *nothing);
    return binder;
  }

  static ModelWork WorkOfModel(const ModelWeights<Config>& weights, RankShare share) {
    ModelWork work;
    if constexpr (kInputCols > 0) work.layers += WorkOfGathered({&weights.inputs.projection});
    weights.layers.ForEach([&]<class L>(LayerAt at, const LayerWeights<L>& layer) {
      (at.index > kLastStoring ? work.output : work.layers) += WorkOfLayer<L>(layer, share);
    });
    if constexpr (kEmbeds) {
      for (const PackedMatrix& dense : weights.dense) work.output += WorkOfGathered({&dense});
    } else {
      work.output += WorkOfGathered({&weights.output});
    }
    return work;
  }

  static absl::StatusOr<std::unique_ptr<Model>> Bind(std::shared_ptr<const GgufFile> file,
                                                     const EngineOptions& options) {
    INLAY_RETURN_IF_ERROR(CheckMaxBatch(options.max_batch));
    const std::vector<std::string> differences = CompareMetadata<Config>(*file).differences;
    if (!differences.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file->name(), ": ", differences.front()));
    }
    INLAY_RETURN_IF_ERROR(CheckPackedFor(*file, ToAbsl(Config::kName)));
    std::unique_ptr<Model> model(new Model(std::move(file), options));
    {
      const Team::Region region(*model->team_);
      const RankShare share = ShareOf(options.ranks.get());
      WeightBinder binder(*model->file_, share, *model->team_,
                          Ask(*model->file_, share).packed_bytes(), options.progress);
      BindWeights(binder, model->weights_);
      INLAY_RETURN_IF_ERROR(binder.Finish());
    }
    model->info_.ranks = ShareOf(options.ranks.get()).count;
    model->info_.work = WorkOfModel(model->weights_, ShareOf(options.ranks.get()));
    if constexpr (kInputCols > 0) model->schedule_.Add({&model->weights_.inputs.projection});
    model->weights_.layers.ForEach([&]<class L>(LayerAt, const LayerWeights<L>& layer) {
      ForEachPartWeights<L>(layer, [&]<class P>(const auto& part) {
        LayerKind<P>::ListProducts(part, model->schedule_);
      });
    });
    model->info_.vocab_size = model->weights_.embedding.rows();
    if (options.ranks != nullptr) {
      model->ranks_.emplace(options.ranks, model->info_.vocab_size);
    }
    if constexpr (kEmbeds) {
      for (const PackedMatrix& dense : model->weights_.dense) model->schedule_.Add({&dense});
    } else {
      model->schedule_.Add({&model->weights_.output});
    }
    if (options.hash_weights) model->weights_hash_.Start();
    return model;
  }

  // Each text, which has been checked, is a conversation of one step, which is forgotten
  // afterwards.
  absl::Status EmbedTexts(absl::Span<const absl::Span<const int32_t>> texts, FloatRows embeddings,
                          const CancelCheck& cancel) {
    std::vector<HybridCache<Config>> caches;
    caches.reserve(texts.size());
    std::vector<SequenceStep> steps;
    for (const absl::Span<const int32_t> text : texts) {
      caches.emplace_back(F32Storage(),
                          CacheOptions{.max_length = text.size(), .vocab_size = info_.vocab_size},
                          share());
      // The last layer computes all rows, as for logits after each token.
      steps.push_back({.cache = &caches.back(), .tokens = text, .logit_rows = text.size()});
    }
    return RunPass(steps, embeddings, cancel, {});
  }

  // Containers may run out of memory, but only before anything is committed. The other ranks would
  // wait for this one then.
  absl::Status OnAllRanks(absl::FunctionRef<absl::Status()> run) {
    if (!ranks_) return run();
    try {
      return run();
    } catch (const std::bad_alloc&) {
      ranks_->group().Fail("there is no memory for a batch");
    }
  }

  // The steps have been checked. The results are logits or embeddings.
  absl::Status RunPass(absl::Span<const SequenceStep> steps, FloatRows results,
                       const CancelCheck& cancel, absl::Span<absl::Status> outcomes) {
    const Team::Region region(*team_);
    const Arena::Scope scope(arena_);
    RunningBatch<Config> batch{.steps = steps,
                               .outcomes = outcomes,
                               .running = {},
                               .transactions = {},
                               .pass = {.residual = {},
                                        .inputs = {},
                                        .caches = {},
                                        .segments = {},
                                        .shared = {},
                                        .pass = {.arena = arena_,
                                                 .team = *team_,
                                                 .schedule = Schedule::Cursor(schedule_),
                                                 .norm_epsilon = Config::kNormEpsilon,
                                                 .ranks = ranks_ ? &*ranks_ : nullptr}},
                               .tokens = 0,
                               .cancelled = {}};
    std::fill(outcomes.begin(), outcomes.end(), absl::OkStatus());
    INLAY_RETURN_IF_ERROR(batch.Begin());
    if (batch.running.empty()) return absl::OkStatus();
    const size_t rows = batch.NumberRows();
    batch.tokens = rows;
    batch.pass.residual = arena_.Rows(rows, Config::kModelDim);
    batch.pass.inputs = arena_.Rows(rows, kInputCols);
    LookUp(batch);
    if constexpr (kInputCols > 0) {
      weights_.inputs.Add(batch.pass.residual, batch.pass.inputs, batch.pass.pass);
    }
    INLAY_RETURN_IF_ERROR(RunLayers(batch, cancel));
    // With a large vocabulary the output costs more time than a layer.
    if (batch.Poll(cancel, 0)) return absl::CancelledError("cancelled before the output");
    if constexpr (kEmbeds) {
      Pool(batch, results);
    } else {
      Output(batch, results);
    }
    INLAY_RETURN_IF_ERROR(CheckFile());  // rows of it were read
    for (Transaction& transaction : batch.transactions) transaction.Commit();
    return absl::OkStatus();
  }

  // The file is what it was, at all ranks.
  absl::Status CheckFile() {
    absl::Status status = file_->CheckWhole();
    if (ranks_ && ranks_->AnyOf(!status.ok()) && status.ok()) {
      status = absl::DataLossError(
          absl::StrCat(file_->name(), " has changed, or could not be read, at another rank"));
    }
    return MarkUnreadableWeights(std::move(status));
  }

  Model(std::shared_ptr<const GgufFile> file, const EngineOptions& options)
      : file_(std::move(file)),
        weights_hash_(file_),
        info_(MakeInfo(*file_, options)),
        team_(options.team != nullptr ? options.team
                                      : std::make_shared<Team>(TeamThreads(options))),
        arena_(ScratchFloats(MaxBatch(options), team_->threads())),
        schedule_(team_->threads()) {}

  static size_t TeamThreads(const EngineOptions& options) {
    if (options.team != nullptr) return options.team->threads();
    return options.threads == 0 ? UsableCores() : options.threads;
  }

  // A text to embed is one batch.
  static size_t MaxBatch(const EngineOptions& options) {
    return std::max(options.max_batch, size_t{Config::kEmbedding.max_tokens});
  }

  static EngineInfo MakeInfo(const GgufFile& file, const EngineOptions& options) {
    // A run-time limit, which the config does not fix. Files without the key are rare and old.
    constexpr size_t kUnknownContext = 2048;
    constexpr size_t kLongest =
        kEmbeds ? size_t{Config::kEmbedding.max_tokens} : std::numeric_limits<size_t>::max();
    const auto context =
        file.GetUint(absl::StrCat(ToAbsl(Config::kArchitecture), ".context_length"));
    return {.config_name = ToAbsl(Config::kName),
            .config_fingerprint = ConfigFingerprint<Config>(),
            .vocab_size = 0,  // known once the weights are bound
            .layers = Config::Layers::kSize,
            .max_batch = MaxBatch(options),
            .context_length =
                std::min(context.ok() ? static_cast<size_t>(*context) : kUnknownContext, kLongest),
            .embedding_dim = kEmbeds ? size_t{Config::kModelDim} : 0,
            .chat_template = Config::kChatTemplate,
            .sampling = ReadFileSampling(file, Config::kSampling).defaults,
            .work = {}};  // known once the weights are bound
  }

  // What Pool needs.
  static constexpr size_t PoolFloats() {
    constexpr size_t kDim = Config::kModelDim, kDense = Config::kEmbedding.dense_dim;
    return Arena::Floats(kMostTexts, kDim) + Pass::OperandFloats(kMostTexts, kDim) +
           Arena::Floats(kMostTexts, kDense) + Pass::OperandFloats(kMostTexts, kDense) +
           Arena::Floats(kMostTexts, kDim);
  }

  // The residual stream, the rows whose logits are wanted, what the layers of each mixer share and
  // the largest need of a layer, which covers the output's operand too, or of pooling.
  static constexpr size_t ScratchFloats(size_t rows, size_t threads) {
    size_t shared = 0;
    size_t layer = kEmbeds ? PoolFloats() : 0;
    if constexpr (kInputCols > 0) {
      layer =
          std::max(layer, LayerInputWeights::ScratchFloats(rows, Config::kModelDim, kInputCols));
    }
    ForEachLayerType<Config>([&]<class L>(int) {
      ForEachMixer<L>([&]<class M>(size_t) { shared += LayerKind<M>::SharedFloats(rows); });
      layer =
          std::max(layer, Block<Config, L>::ScratchFloats(
                              {.rows = rows, .model_dim = Config::kModelDim, .threads = threads}));
    });
    return Arena::Floats(rows, Config::kModelDim) + Arena::Floats(rows, kInputCols) +
           Arena::Floats(1, rows) + shared + layer;
  }

  void LookUp(RunningBatch<Config>& batch) {
    const FloatRows x = batch.pass.residual;
    ForRows(*team_, x.rows, Config::kModelDim + kInputCols, [&](size_t first, size_t last) {
      const absl::Span<const SegmentRows> segments(batch.pass.segments);
      ForSegments(segments, first, last, [&](const SegmentRows& segment, size_t begin, size_t end) {
        const auto index = static_cast<size_t>(&segment - segments.data());
        const auto& tokens = batch.steps[batch.running[index]].tokens;
        for (size_t i = begin; i < end; ++i) {
          weights_.embedding.Read(static_cast<size_t>(tokens[i]), x.Row(segment.row + i));
          if constexpr (kInputCols > 0) {
            weights_.inputs.LookUp(tokens[i], batch.pass.inputs.Row(segment.row + i));
          }
        }
      });
      if constexpr (Config::kEmbeddingScale != 1.0f) {
        Scale(Config::kEmbeddingScale, x.Slice(first, last - first));
      }
    });
  }

  static void MakeShared(PassState<Config>& s) {
    std::apply(
        [&]<class... M>(SharedOf<M>&... shared) {
          ((shared.value = LayerKind<M>::MakeShared(s.segments, s.residual.rows, s.pass)), ...);
        },
        s.shared);
  }

  // For each sequence, the rows after its step's last logit_rows tokens are wanted.
  absl::Status RunLayers(RunningBatch<Config>& batch, const CancelCheck& cancel) {
    PassState<Config>& s = batch.pass;
    // The scope of what the layers share, which is computed again when the segments change.
    std::optional<Arena::Scope> shared(arena_);
    const auto share_again = [&] {
      shared.reset();
      shared.emplace(arena_);
      MakeShared(s);
    };
    MakeShared(s);
    absl::Status status;
    weights_.layers.ForEach([&]<class L>(LayerAt at, const LayerWeights<L>& weights) {
      if (!status.ok()) return;
      if (batch.Poll(cancel, batch.running.size())) {
        status = absl::CancelledError(absl::StrCat("cancelled before layer ", at.index));
        return;
      }
      const absl::StatusOr<bool> changed = batch.DropCancelled(at.index);
      status = changed.status();
      if (!status.ok() || s.residual.rows == 0) return;
      if (*changed) share_again();
      const size_t outputs = batch.Outputs();
      const bool narrows = at.index == kLastStoring && outputs < s.residual.rows;
      const int32_t* out_rows = narrows ? batch.Narrow(outputs) : nullptr;
      Block<Config, L>::Forward(weights, at, out_rows, narrows ? outputs : s.residual.rows, s);
      if (narrows && at.index + 1 < Config::Layers::kSize) {
        batch.ContinueWithOutputs();
        share_again();
      }
    });
    return status;
  }

  // Pools the rows of each text after the last norm.
  void Pool(RunningBatch<Config>& batch, FloatRows embeddings) {
    const Arena::Scope scope(arena_);
    Pass& pass = batch.pass.pass;
    const FloatRows hidden = batch.pass.residual;
    ForRows(*team_, hidden.rows, 2 * Config::kModelDim, [&](size_t begin, size_t end) {
      const FloatRows slice = hidden.Slice(begin, end - begin);
      RmsNorm(slice, weights_.output_norm.data(), Config::kNormEpsilon, slice);
    });
    const absl::Span<const SegmentRows> texts(batch.pass.segments);
    FloatRows pooled = arena_.Rows(texts.size(), Config::kModelDim);
    const size_t work = hidden.rows / texts.size() * Config::kModelDim;
    ForRows(*team_, texts.size(), work, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        MeanOfRows(hidden.Slice(texts[i].row, texts[i].rows), pooled.Row(i));
      }
    });
    for (const PackedMatrix& dense : weights_.dense) {
      const Operand x = pass.MakeOperand(pooled, OperandForms::For({&dense}));
      pooled = arena_.Rows(texts.size(), dense.whole_rows());
      pass.Multiply(dense, x, pooled);
    }
    ScaleToLength1(pooled);
    for (size_t i = 0; i < texts.size(); ++i) {
      std::copy_n(pooled.Row(i), pooled.cols, embeddings.Row(i));
    }
  }

  // The residual stream's rows are those whose logits are wanted, if any are.
  void Output(RunningBatch<Config>& batch, FloatRows logits) {
    const size_t rows = batch.Outputs();
    if (rows == 0) return;
    const FloatRows wanted = batch.pass.residual;
    const FloatRows results = logits.Slice(0, rows);
    Pass& pass = batch.pass.pass;
    const Operand x = pass.MakeOperand(
        wanted, OperandForms::For({&weights_.output}), [&](size_t begin, size_t end) {
          const FloatRows slice = wanted.Slice(begin, end - begin);
          RmsNorm(slice, weights_.output_norm.data(), Config::kNormEpsilon, slice);
        });
    pass.Multiply(weights_.output, x, results, GatherTo::kFirst);
    if (share().rank != 0) return;
    if constexpr (Config::kLogitDivisor != 1.0f || Config::kLogitSoftCap != 0.0f) {
      constexpr size_t kChunk = 4096;
      team_->Run(results.cols, std::max<size_t>(1, kChunk / rows), [&](const Share& share) {
        const FloatRows columns = results.Columns(share.begin, share.end - share.begin);
        if constexpr (Config::kLogitDivisor != 1.0f) Scale(1.0f / Config::kLogitDivisor, columns);
        if constexpr (Config::kLogitSoftCap != 0.0f) SoftCap(Config::kLogitSoftCap, columns);
      });
    }
    if (batch.running.size() < batch.steps.size()) batch.SpreadLogits(logits);
  }

  std::shared_ptr<const GgufFile> file_;
  WeightsHash weights_hash_;  // of the file
  EngineInfo info_;
  ModelWeights<Config> weights_;
  // A region of the team guards the members below, which serve one call at a time.
  std::shared_ptr<Team> team_;
  Arena arena_;
  Schedule schedule_;
  std::optional<RankPass> ranks_;  // empty for one process alone
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_MODEL_H_
