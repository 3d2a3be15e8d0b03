// Describes a model file with random weights for a config.
#ifndef INLAY_GEMMA_LIKE_FILES_DESCRIBE_SYNTH_H_
#define INLAY_GEMMA_LIKE_FILES_DESCRIBE_SYNTH_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "configs/config.h"
#include "configs/metadata.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/model/bind_weights.h"
#include "gemma_like/model/file_rows.h"
#include "gemma_like/model/layer_binder.h"
#include "gemma_like/model/tensor_use.h"
#include "gemma_like/strings.h"
#include "io/gguf/gguf_writer.h"
#include "ops/matmul/packed_matrix.h"

namespace inlay {

// The visitor that writes what configs/metadata.h describes.
class MetadataWriter {
 public:
  MetadataWriter(absl::string_view architecture, GgufWriter& writer)
      : architecture_(architecture), writer_(writer) {}

  void Int(std::string_view key, int64_t value, std::optional<int64_t> = std::nullopt) {
    writer_.SetUint32(Key(key), static_cast<uint32_t>(value));
  }
  void Float(std::string_view key, double value, std::optional<double> = std::nullopt,
             std::optional<double> = std::nullopt) {
    writer_.SetFloat32(Key(key), static_cast<float>(value));
  }
  void Flag(std::string_view key, bool value, std::optional<bool> = std::nullopt) {
    writer_.SetBool(Key(key), value);
  }
  void Text(std::string_view key, std::string_view value,
            std::optional<std::string_view> = std::nullopt,
            std::optional<std::string_view> = std::nullopt) {
    writer_.SetString(Key(key), ToAbsl(value));
  }
  void Period(std::string_view key, int, int period, std::optional<int> = std::nullopt) {
    Int(key, period);
  }
  void VocabSize(int value) { Int("vocab_size", value); }
  // One number where the layers that do not accept any have one, as in published files.
  template <size_t n>
  void Ints(std::string_view key, const std::array<int64_t, n>& values) {
    const int64_t largest = *std::max_element(values.begin(), values.end());
    const auto is_any = [](int64_t value) { return value == kAnyValue; };
    const bool one = std::all_of(values.begin(), values.end(),
                                 [&](int64_t value) { return is_any(value) || value == largest; });
    if (one && std::any_of(values.begin(), values.end(), is_any)) return Int(key, largest);
    writer_.SetInt32s(Key(key), std::vector<int32_t>(values.begin(), values.end()));
  }
  template <size_t n>
  void Sections(std::string_view key, const std::array<int64_t, n>& values) {
    Ints(key, values);
  }
  template <size_t n>
  void Flags(std::string_view key, const std::array<bool, n>& values) {
    writer_.SetBools(Key(key), values);
  }
  template <size_t n>
  void Texts(std::string_view key, const std::array<std::string_view, n>& values) {
    writer_.SetStrings(Key(key), std::vector<std::string>(values.begin(), values.end()));
  }

 private:
  std::string Key(std::string_view key) const {
    return absl::StrCat(architecture_, ".", ToAbsl(key));
  }

  std::string architecture_;
  GgufWriter& writer_;
};

// The binder that records every tensor and returns empty results; see bind_weights.h.
class TensorLister {
 public:
  explicit TensorLister(std::vector<SynthTensor>& tensors) : tensors_(tensors) {}

  bool Has(absl::string_view) const { return false; }
  bool AnyLayerHas(absl::string_view) const { return true; }
  size_t Rows(absl::string_view, size_t usual) const { return usual; }
  FileRows InFile(absl::string_view name, size_t rows, size_t cols, TensorUse use) {
    Packed(name, rows, cols, use);
    return {};
  }
  // A tied output requests the embedding a second time.
  PackedMatrix Packed(absl::string_view name, size_t rows, size_t cols, TensorUse use) {
    if (tensors_.empty() || name != tensors_.front().name) Add(name, {cols, rows}, use);
    return {};
  }
  std::vector<std::vector<PackedMatrix>> Packed(absl::string_view, size_t count,
                                                absl::Span<const StackedMatrix> matrices,
                                                size_t cols, TensorUse use) {
    std::vector<std::vector<PackedMatrix>> nothing;
    for (const StackedMatrix& matrix : matrices) {
      std::vector<uint64_t> dims = {cols, matrix.rows};
      if (count > 1) dims.push_back(count);
      Add(matrix.name, std::move(dims), use);
      nothing.emplace_back(count);
    }
    return nothing;
  }
  std::vector<float> Vector(absl::string_view name, TensorUse use, size_t cols, size_t rows = 1) {
    Add(name, rows == 1 ? std::vector<uint64_t>{cols} : std::vector<uint64_t>{cols, rows}, use);
    return {};
  }
  std::vector<float> Transposed(absl::string_view name, TensorUse use, size_t rows, size_t cols) {
    Add(name, {cols, rows}, use);
    return {};
  }

  void Unused(absl::string_view) {}
  void Constants(absl::string_view name, absl::Span<const float> values) {
    const bool is_new =
        std::none_of(tensors_.begin(), tensors_.end(),
                     [&](const SynthTensor& tensor) { return tensor.name == name; });
    if (!is_new) return;
    Add(name, {values.size()}, TensorUse::kNorm);
    tensors_.back().values.assign(values.begin(), values.end());
  }

 private:
  void Add(absl::string_view name, std::vector<uint64_t> dims, TensorUse use) {
    tensors_.push_back({.name = std::string(name), .dims = std::move(dims), .use = use});
  }

  std::vector<SynthTensor>& tensors_;
};

template <ModelConfig Config>
SynthModel DescribeSynth() {
  SynthModel model;
  model.layers = Config::Layers::kSize;
  model.chat_template = Config::kChatTemplate;
  GgufWriter& metadata = *model.metadata;
  const std::string architecture(ToAbsl(Config::kArchitecture));
  metadata.SetString("general.architecture", architecture);
  metadata.SetString("general.name", absl::StrCat(ToAbsl(Config::kName), " with random weights"));
  // The config does not fix it; the value is far beyond what random weights are run with.
  metadata.SetUint32(absl::StrCat(architecture, ".context_length"), 131072);
  MetadataWriter writer(architecture, metadata);
  Config::template Metadata<Config>(writer);
  TensorLister lister(model.tensors);
  auto nothing = std::make_unique<ModelWeights<Config>>();
  BindWeights(lister, *nothing);
  ScaleForStability({.model_dim = Config::kModelDim,
                     .embedding_scale = Config::kEmbeddingScale,
                     .branch_scale = BranchMultiplier<Config>().value_or(1.0f),
                     .layers = Config::Layers::kSize},
                    model.tensors);
  return model;
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_DESCRIBE_SYNTH_H_
