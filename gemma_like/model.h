// A model whose config is its type: weights bound to typed views, and the forward pass as a fold
// over its layers.
#ifndef INLAY_GEMMA_LIKE_MODEL_H_
#define INLAY_GEMMA_LIKE_MODEL_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cache/cache_plan.h"
#include "cache/fingerprint.h"
#include "cache/hybrid_cache.h"
#include "cache/out_of_memory.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "gemma_like/arena.h"
#include "gemma_like/batch_check.h"
#include "gemma_like/bind_weights.h"
#include "gemma_like/block.h"
#include "gemma_like/engine.h"
#include "gemma_like/layer_kind.h"
#include "gemma_like/memory_plan.h"
#include "gemma_like/metadata_check.h"
#include "gemma_like/packed_file.h"
#include "gemma_like/strings.h"
#include "gemma_like/weight_binder.h"
#include "gemma_like/weights.h"
#include "gemma_like/weights_hash.h"
#include "io/gguf.h"
#include "io/status_macros.h"
#include "ops/dequantize.h"
#include "ops/matmul.h"
#include "ops/quantized_rows.h"
#include "ops/row_ops.h"
#include "ops/thread_pool.h"

namespace inlay {

template <ModelConfig Config>
class Model final : public Engine {
  static_assert(CheckConfig<Config>());
  // The last layer whose mixers keep something of the past: nobody reads rows after it whose logits
  // are not wanted.
  static constexpr int kLastStoring = LastLayerWithStorage<Config>();
  static_assert(kLastStoring >= 0, "a model must have a layer that keeps something of the past");

 public:
  // Binds a file whose metadata and tensors agree with the config, or says which does not. Keeps
  // the file mapped.
  static absl::StatusOr<std::unique_ptr<Model>> Load(std::shared_ptr<const GgufFile> file,
                                                     const EngineOptions& options) {
    return OrOutOfMemory("this model", [&] { return Bind(std::move(file), options); });
  }

  // The tensors of such a file that Load makes packed matrices of.
  static absl::StatusOr<PackedTensors> FindPackedTensors(const GgufFile& file) {
    const WeightBinder binder = Ask(file);
    INLAY_RETURN_IF_ERROR(binder.Finish());
    return binder.packed();
  }

  // What Load will allocate for this file. What does not fit the config counts as nothing: loading
  // will say so.
  static ModelMemory PlanMemory(const GgufFile& file, const EngineOptions& options) {
    const WeightBinder binder = Ask(file);
    return {.weights = binder.bytes(),
            .scratch =
                ScratchFloats(options.max_batch) * sizeof(float) + RoundedBytes(options.max_batch)};
  }

  const EngineInfo& info() const override { return info_; }

  std::unique_ptr<KVCache> CreateCache(const CacheOptions& options,
                                       KvType type = KvType::kF32) const override {
    return WithStorage(type, [&](auto policy) -> std::unique_ptr<KVCache> {
      return std::make_unique<HybridCache<Config>>(policy, options);
    });
  }

  CacheBytes PlanCache(KvType type) const override {
    return WithStorage(type,
                       []<class Policy>(Policy) { return ConfigCacheBytes<Config, Policy>(); });
  }

  size_t CacheBytesRead(size_t length, KvType type) const override {
    return WithStorage(type, [length]<class Policy>(Policy) {
      return ConfigCacheBytesRead<Config, Policy>(length);
    });
  }

  absl::Status Forward(absl::Span<const SequenceStep> steps, FloatRows logits,
                       const CancelCheck& cancel = nullptr) override {
    std::lock_guard<std::mutex> lock(mutex_);
    // Containers may lack memory before anything is committed.
    return OrOutOfMemory("this batch", [&] { return RunBatch(steps, logits, cancel); });
  }

 private:
  // What the two inputs of products keep at most of so many rows: x of the model dim, and what
  // parts multiply inside.
  static constexpr size_t RoundedBytes(size_t rows) {
    size_t inner = 0;
    ForEachLayerType<Config>(
        [&]<class L>(int) { inner = std::max(inner, Block<Config, L>::InnerCols()); });
    return rows * (Config::kModelDim + inner) *
           (sizeof(QuantizedBlock) / kQuantBlock + sizeof(Bf16));
  }

  // A binder that was asked for all that a model of this config takes from the file.
  static WeightBinder Ask(const GgufFile& file) {
    WeightBinder binder(file);
    const auto nothing = std::make_unique<ModelWeights<Config>>();
    BindWeights(binder, *nothing);
    return binder;
  }

  static absl::StatusOr<std::unique_ptr<Model>> Bind(std::shared_ptr<const GgufFile> file,
                                                     const EngineOptions& options) {
    const std::vector<std::string> differences = MetadataDifferences<Config>(*file);
    if (!differences.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(file->name(), ": ", differences.front()));
    }
    INLAY_RETURN_IF_ERROR(CheckPackedFor(*file, ToAbsl(Config::kName)));
    std::unique_ptr<Model> model(new Model(std::move(file), options));
    WeightBinder binder(*model->file_, model->pool_, Ask(*model->file_).packed_bytes());
    BindWeights(binder, model->weights_);
    INLAY_RETURN_IF_ERROR(binder.Finish());
    model->weights_.layers.ForEach([&]<class L>(LayerAt, const LayerWeights<L>& layer) {
      model->info_.layer_work += WorkOfLayer<L>(layer);
    });
    model->info_.output_work = WorkOf(model->weights_.output);
    return model;
  }

  absl::Status RunBatch(absl::Span<const SequenceStep> steps, FloatRows logits,
                        const CancelCheck& cancel) {
    INLAY_RETURN_IF_ERROR(CheckBatch(steps, logits, info_));
    absl::InlinedVector<HybridCache<Config>*, 8> caches;
    absl::InlinedVector<Transaction, 8> transactions;
    size_t rows = 0;
    for (const SequenceStep& step : steps) {
      // CheckBatch compared the config's fingerprint.
      auto* cache = static_cast<HybridCache<Config>*>(step.cache);
      INLAY_ASSIGN_OR_RETURN(Transaction transaction, cache->Begin(step.tokens));
      transactions.push_back(std::move(transaction));
      caches.push_back(cache);
      rows += step.tokens.size();
    }
    Arena::Scope scope(arena_);
    PassState<Config> state{
        .residual = arena_.Rows(rows, Config::kModelDim),
        .caches = caches,
        .segments = SegmentsOf(steps),
        .shared = {},
        .x = x_,
        .pass = {
            .arena = arena_, .inner = inner_, .pool = pool_, .norm_epsilon = Config::kNormEpsilon}};
    Embed(steps, state.residual);
    INLAY_RETURN_IF_ERROR(RunLayers(steps, logits.rows, state, cancel));
    // Of a large vocabulary the output takes longer than a layer.
    if (cancel && cancel()) return absl::CancelledError("cancelled before the output");
    Output(state.residual, logits);
    INLAY_RETURN_IF_ERROR(file_->CheckWhole());  // rows of it were read
    for (Transaction& transaction : transactions) transaction.Commit();
    return absl::OkStatus();
  }

  // Each with all of its rows as outputs.
  static auto SegmentsOf(absl::Span<const SequenceStep> steps) {
    absl::InlinedVector<SegmentRows, 8> segments;
    size_t row = 0;
    for (const SequenceStep& step : steps) {
      const size_t rows = step.tokens.size();
      segments.push_back({.position = step.cache->length(),
                          .row = row,
                          .rows = rows,
                          .out_row = row,
                          .out_rows = rows});
      row += rows;
    }
    return segments;
  }

  Model(std::shared_ptr<const GgufFile> file, const EngineOptions& options)
      : file_(std::move(file)),
        info_(MakeInfo(*file_, options)),
        pool_(options.threads),
        arena_(ScratchFloats(options.max_batch)) {}

  static EngineInfo MakeInfo(const GgufFile& file, const EngineOptions& options) {
    // The config does not fix it: a run-time limit. Files without the key are rare and old.
    constexpr size_t kUnknownContext = 2048;
    const auto context =
        file.GetUint(absl::StrCat(ToAbsl(Config::kArchitecture), ".context_length"));
    return {.config_name = ToAbsl(Config::kName),
            .config_fingerprint = ConfigFingerprint<Config>(),
            .vocab_size = Config::kVocabSize,
            .layers = Config::Layers::kSize,
            .max_batch = options.max_batch,
            .context_length = context.ok() ? static_cast<size_t>(*context) : kUnknownContext,
            .weights_hash = WeightsHash(file),
            .tokenizer = Config::kTokenizer,
            .chat_template = Config::kChatTemplate,
            .sampling = Config::kSampling,
            .layer_work = {},  // known once the weights are bound
            .output_work = {}};
  }

  // The residual stream, the rows whose logits are wanted, what each mixer's layers share and the
  // largest need of a layer.
  static constexpr size_t ScratchFloats(size_t rows) {
    size_t shared = 0;
    size_t layer = 0;
    ForEachLayerType<Config>([&]<class L>(int) {
      ForEachMixer<L>([&]<class M>(size_t) { shared += LayerKind<M>::SharedFloats(rows); });
      layer = std::max(layer, Block<Config, L>::ScratchFloats(rows));
    });
    // Made again for the rows that go on where layers follow the last one with storage.
    if (kLastStoring + 1 < Config::Layers::kSize) shared *= 2;
    return Arena::Floats(rows, Config::kModelDim) + Arena::Floats(1, rows) + shared + layer;
  }

  void Embed(absl::Span<const SequenceStep> steps, FloatRows x) {
    size_t row = 0;
    for (const SequenceStep& step : steps) {
      for (int32_t token : step.tokens)
        DequantizeRow(weights_.embedding, static_cast<size_t>(token), x.Row(row++));
    }
    if constexpr (Config::kEmbeddingScale != 1.0f) Scale(Config::kEmbeddingScale, x);
  }

  static void MakeShared(PassState<Config>& s) {
    std::apply(
        [&]<class... M>(SharedOf<M>&... shared) {
          ((shared.value = LayerKind<M>::MakeShared(s.segments, s.residual.rows, s.pass)), ...);
        },
        s.shared);
  }

  // Of each sequence the last logit_rows of its step are wanted, `outputs` in all.
  absl::Status RunLayers(absl::Span<const SequenceStep> steps, size_t outputs, PassState<Config>& s,
                         const CancelCheck& cancel) {
    MakeShared(s);
    absl::Status status;
    weights_.layers.ForEach([&]<class L>(LayerAt at, const LayerWeights<L>& weights) {
      if (status.ok() && cancel && cancel()) {
        status = absl::CancelledError(absl::StrCat("cancelled before layer ", at.index));
      }
      if (!status.ok() || s.residual.rows == 0) return;
      const bool narrows = at.index == kLastStoring && outputs < s.residual.rows;
      const int32_t* out_rows = narrows ? Narrow(steps, outputs, s) : nullptr;
      Block<Config, L>::Forward(weights, at.ordinal, out_rows, narrows ? outputs : s.residual.rows,
                                s);
      if (narrows && at.index + 1 < Config::Layers::kSize) GoOnWithOutputs(s);
    });
    return status;
  }

  // Makes the wanted rows the outputs of the segments, and lists them.
  const int32_t* Narrow(absl::Span<const SequenceStep> steps, size_t outputs,
                        PassState<Config>& s) {
    int32_t* const rows = arena_.Ints(outputs);
    size_t out = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      SegmentRows& segment = s.segments[i];
      segment.out_row = out;
      segment.out_rows = steps[i].logit_rows;
      for (size_t r = segment.rows - segment.out_rows; r < segment.rows; ++r) {
        rows[out++] = static_cast<int32_t>(segment.row + r);
      }
    }
    return rows;
  }

  // After the layer that narrowed: its outputs are the rows of the layers that follow.
  static void GoOnWithOutputs(PassState<Config>& s) {
    for (SegmentRows& segment : s.segments) {
      segment.position = segment.OutPosition();
      segment.row = segment.out_row;
      segment.rows = segment.out_rows;
    }
    MakeShared(s);
  }

  // `wanted` are the residual stream's rows of which logits are asked for, if any.
  void Output(FloatRows wanted, FloatRows logits) {
    if (logits.rows == 0) return;
    RmsNorm(wanted, weights_.output_norm.data(), Config::kNormEpsilon, wanted);
    x_.Set(wanted);
    MatMul(weights_.output, x_, logits, pool_);
    if constexpr (Config::kLogitDivisor != 1.0f) Scale(1.0f / Config::kLogitDivisor, logits);
    if constexpr (Config::kLogitSoftCap != 0.0f) SoftCap(Config::kLogitSoftCap, logits);
  }

  std::shared_ptr<const GgufFile> file_;
  EngineInfo info_;
  ModelWeights<Config> weights_;
  std::mutex mutex_;  // guards what follows, which serves one call at a time
  ThreadPool pool_;
  Arena arena_;
  MatMulInput x_;      // of the model dim: what parts and the output matrix read
  MatMulInput inner_;  // inside parts
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_H_
