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
#include "cache/hybrid_cache.h"
#include "cache/out_of_memory.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "gemma_like/arena.h"
#include "gemma_like/batch_check.h"
#include "gemma_like/bind_weights.h"
#include "gemma_like/block.h"
#include "gemma_like/engine.h"
#include "gemma_like/forward_state.h"
#include "gemma_like/memory_plan.h"
#include "gemma_like/metadata_check.h"
#include "gemma_like/packed_file.h"
#include "gemma_like/strings.h"
#include "gemma_like/token_work.h"
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
            .scratch = ScratchFloats(options.max_batch) * sizeof(float) +
                       RoundedBytes(options.max_batch, binder.widest())};
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
  using Distinct = DistinctLayers<typename Config::Layers>;
  using Angles = std::array<FloatRows, static_cast<size_t>(Distinct::kSize)>;

  // What MatMulInput keeps at most of so many rows of at most `cols` columns.
  static constexpr size_t RoundedBytes(size_t rows, size_t cols) {
    ForEachLayerType<Config>([&]<class Layer>(int) {
      if constexpr (Layer::Mlp::kKind == MlpKind::kMoe) {
        cols = std::max<size_t>(cols, Layer::Mlp::kShape.used_experts * Layer::Mlp::kShape.hidden);
      }
    });
    return rows * cols * (sizeof(QuantizedBlock) / kQuantBlock + sizeof(Bf16));
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
    model->weights_.layers.ForEach([&]<class Layer>(LayerAt, const LayerWeights<Layer>& layer) {
      model->info_.layer_work += WorkOfLayer<Layer>(layer);
    });
    model->info_.output_work = WorkOf(model->weights_.output);
    return model;
  }

  absl::Status RunBatch(absl::Span<const SequenceStep> steps, FloatRows logits,
                        const CancelCheck& cancel) {
    INLAY_RETURN_IF_ERROR(CheckBatch(steps, logits, info_));
    absl::InlinedVector<BatchPart<Config>, 8> parts;
    absl::InlinedVector<Transaction, 8> transactions;
    size_t rows = 0;
    for (const SequenceStep& step : steps) {
      auto* cache =
          static_cast<HybridCache<Config>*>(step.cache);  // CheckBatch compared the config's name
      INLAY_ASSIGN_OR_RETURN(Transaction transaction, cache->Begin(step.tokens));
      transactions.push_back(std::move(transaction));
      parts.push_back(
          {.cache = cache, .row = rows, .rows = step.tokens.size(), .position = cache->length()});
      rows += step.tokens.size();
    }
    Arena::Scope scope(arena_);
    ForwardState<Config> state{.residual = arena_.Rows(rows, Config::kModelDim),
                               .parts = parts,
                               .arena = arena_,
                               .input = input_,
                               .pool = pool_};
    Embed(steps, state.residual);
    INLAY_RETURN_IF_ERROR(RunLayers(state, cancel));
    // Of a large vocabulary the output takes longer than a layer.
    if (cancel && cancel()) return absl::CancelledError("cancelled before the output");
    Output(steps, state.residual, logits);
    INLAY_RETURN_IF_ERROR(file_->CheckWhole());  // rows of it were read
    for (Transaction& transaction : transactions) transaction.Commit();
    return absl::OkStatus();
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

  // The residual stream, the rotations of each distinct layer type, and the largest need of a
  // layer.
  static constexpr size_t ScratchFloats(size_t rows) {
    size_t angles = 0;
    size_t layer =
        Arena::Floats(rows, Config::kModelDim);  // the output's gathered rows come after the layers
    ForEachLayerType<Config>([&]<class Layer>(int) {
      if constexpr (kIsAttention<Layer>) angles += Arena::Floats(rows, Layer::kShape.head_dim);
      layer = std::max(layer, Block<Config, Layer>::ScratchFloats(rows));
    });
    return Arena::Floats(rows, Config::kModelDim) + angles + layer;
  }

  void Embed(absl::Span<const SequenceStep> steps, FloatRows x) {
    size_t row = 0;
    for (const SequenceStep& step : steps) {
      for (int32_t token : step.tokens)
        DequantizeRow(weights_.embedding, static_cast<size_t>(token), x.Row(row++));
    }
    if constexpr (Config::kEmbeddingScale != 1.0f) Scale(Config::kEmbeddingScale, x);
  }

  Angles ComputeAngles(const ForwardState<Config>& s) {
    Angles angles;
    ForEachLayerType<Config>([&]<class Layer>(int index) {
      if constexpr (kIsAttention<Layer>) {
        if constexpr (Layer::kRope.base != 0) {
          FloatRows& rows = angles[static_cast<size_t>(index)];
          rows = s.arena.Rows(s.residual.rows, Layer::kShape.head_dim);
          for (const BatchPart<Config>& part : s.parts) {
            ForRows(pool_, part.rows, [&](size_t begin, size_t end) {
              RopeAngles(part.position + begin, Layer::kRope.base, Layer::kRope.scale,
                         rows.Slice(part.row + begin, end - begin));
            });
          }
        }
      }
    });
    return angles;
  }

  absl::Status RunLayers(const ForwardState<Config>& s, const CancelCheck& cancel) {
    const Angles angles = ComputeAngles(s);
    absl::Status status;
    weights_.layers.ForEach([&]<class Layer>(LayerAt at, const LayerWeights<Layer>& weights) {
      if (!status.ok()) return;
      if (cancel && cancel()) {
        status = absl::CancelledError(absl::StrCat("cancelled before layer ", at.index));
        return;
      }
      Block<Config, Layer>::Forward(weights, at.ordinal, angles[kLayerTypeIndex<Config, Layer>], s);
    });
    return status;
  }

  void Output(absl::Span<const SequenceStep> steps, ConstFloatRows residual, FloatRows logits) {
    if (logits.rows == 0) return;
    FloatRows wanted = arena_.Rows(logits.rows, Config::kModelDim);
    size_t from = 0;
    size_t to = 0;
    for (const SequenceStep& step : steps) {
      from += step.tokens.size();
      for (size_t i = step.logit_rows; i > 0; --i) {
        std::copy_n(residual.Row(from - i), Config::kModelDim, wanted.Row(to++));
      }
    }
    RmsNorm(wanted, weights_.output_norm.data(), Config::kNormEpsilon, wanted);
    input_.Set(wanted);
    MatMul(weights_.output, input_, logits, pool_);
    if constexpr (Config::kLogitDivisor != 1.0f) Scale(1.0f / Config::kLogitDivisor, logits);
    if constexpr (Config::kLogitSoftCap != 0.0f) SoftCap(Config::kLogitSoftCap, logits);
  }

  std::shared_ptr<const GgufFile> file_;
  EngineInfo info_;
  ModelWeights<Config> weights_;
  std::mutex mutex_;  // guards what follows, which serves one call at a time
  ThreadPool pool_;
  Arena arena_;
  MatMulInput input_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_H_
