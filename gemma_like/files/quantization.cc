#include "gemma_like/files/quantization.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/model/check_tensors.h"
#include "io/gguf/gguf_writer.h"
#include "ops/first_row.h"
#include "ops/quant/dequantize.h"
#include "ops/quant/quantize.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {
namespace {

constexpr absl::string_view kNames[] = {"F32",  "F16",  "BF16",   "Q8_0",   "Q4_0",   "Q4_1",
                                        "Q5_0", "Q5_1", "IQ4_NL", "IQ4_XS", "MXFP4",  "Q2_K",
                                        "Q3_K", "Q4_K", "Q5_K",   "Q6_K",   "Q4_K_M", "Q5_K_M"};

// The type of small blocks (32) with about as many bits as this type of super-blocks (256).
WeightType SmallBlockType(WeightType type) {
  switch (type) {
    case WeightType::kQ2_K:
    case WeightType::kQ3_K:
      return WeightType::kQ4_0;
    case WeightType::kQ4_K:
      return WeightType::kQ5_0;
    case WeightType::kQ5_K:
      return WeightType::kQ5_1;
    case WeightType::kQ6_K:
      return WeightType::kQ8_0;
    case WeightType::kIQ4_XS:
      return WeightType::kIQ4_NL;
    default:
      return WeightType::kF16;
  }
}

// "blk.7.ffn_down.weight" -> 7; no value without a layer.
std::optional<size_t> LayerOf(absl::string_view tensor) {
  if (!absl::StartsWith(tensor, "blk.")) return std::nullopt;
  const absl::string_view rest = tensor.substr(4);
  uint32_t layer = 0;
  if (!absl::SimpleAtoi(rest.substr(0, rest.find('.')), &layer)) return std::nullopt;
  return layer;
}

// The layers whose sensitive matrices a mix gives more bits: the first and the last eighth, and
// every third between.
bool GetsMoreBits(size_t layer, size_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

// How many layers the file says it has. InvalidArgument for more than it can have: each has a
// tensor at least, and in a file of the last ones alone (blocks that draft) their names say so.
absl::StatusOr<size_t> LayersOf(const GgufFile& file) {
  INLAY_ASSIGN_OR_RETURN(const absl::string_view architecture,
                         file.GetString("general.architecture"));
  const std::string key = absl::StrCat(architecture, ".block_count");
  INLAY_ASSIGN_OR_RETURN(const uint64_t layers, file.GetUint(key));
  size_t most = file.tensors().size();
  for (const GgufTensor& tensor : file.tensors()) {
    if (const auto layer = LayerOf(tensor.name)) most = std::max(most, *layer + 1);
  }
  if (layers <= most) return layers;
  return absl::InvalidArgumentError(absl::StrCat(file.name(), ": '", key, "' is ", layers,
                                                 ", more than the ", most,
                                                 " layers that its tensors can be of"));
}

// Whether the tensor is multiplied as a matrix. The weights of convolutions are not; files of all
// families have them in F32, and other engines expect that.
bool IsMatrix(const GgufTensor& tensor) {
  return tensor.n_dims >= 2 && absl::EndsWith(tensor.name, ".weight") && tensor.dims[1] > 1 &&
         !absl::EndsWith(tensor.name, "ssm_conv1d.weight") &&
         !absl::EndsWith(tensor.name, "shortconv.conv.weight") &&
         !absl::EndsWith(tensor.name, "_norm.weight");
}

// The matrix that makes Gemma 4's per-layer inputs. Other engines leave it as it is, too: its error
// would be in the input of every layer.
bool StaysAsItIs(absl::string_view tensor) { return tensor == "per_layer_model_proj.weight"; }

// The type that the matrix has where its rows are whole blocks of it.
WeightType WantedType(const Quantization& quantization, absl::string_view tensor, size_t layers) {
  if (absl::EndsWith(tensor, "ffn_gate_inp.weight") ||
      absl::EndsWith(tensor, "ffn_gate_inp_shexp.weight")) {
    return WeightType::kF32;
  }
  if (StaysAsItIs(tensor)) return WeightType::kF16;
  if (!quantization.mix) return quantization.type;
  const std::optional<size_t> layer = LayerOf(tensor);  // none: the embedding or the output
  const bool sensitive =
      absl::StrContains(tensor, "attn_v.") || absl::StrContains(tensor, "ffn_down");
  return !layer.has_value() || (sensitive && GetsMoreBits(*layer, layers)) ? WeightType::kQ6_K
                                                                           : quantization.type;
}

// llama.cpp's enum llama_ftype. Its Q2_K, Q3_K, Q4_K and Q5_K without more are mixes; those whose
// matrices all have one type are called small (_S).
uint32_t FileType(const Quantization& quantization) {
  switch (quantization.type) {
    case WeightType::kF32:
      return 0;
    case WeightType::kF16:
      return 1;
    case WeightType::kQ4_0:
      return 2;
    case WeightType::kQ4_1:
      return 3;
    case WeightType::kQ8_0:
      return 7;
    case WeightType::kQ5_0:
      return 8;
    case WeightType::kQ5_1:
      return 9;
    case WeightType::kQ3_K:
      return 11;
    case WeightType::kQ4_K:
      return quantization.mix ? 15 : 14;
    case WeightType::kQ5_K:
      return quantization.mix ? 17 : 16;
    case WeightType::kQ6_K:
      return 18;
    case WeightType::kQ2_K:
      return 21;
    case WeightType::kIQ4_NL:
      return 25;
    case WeightType::kIQ4_XS:
      return 30;
    case WeightType::kBF16:
      return 32;
    case WeightType::kMXFP4:
      return 38;
    default:
      return 1024;  // "guessed": no type that is written
  }
}

bool IsQuantized(WeightType type) { return GetWeightTypeInfo(type).block_size > 1; }

WeightType NewType(const GgufTensor& tensor, const Quantization& quantization, size_t layers) {
  if (StaysAsItIs(tensor.name)) return tensor.type;
  return IsMatrix(tensor) ? quantization.TypeFor(tensor.name, tensor.dims[0], layers) : tensor.type;
}

// The index of the first value of `row` that is too large for the type in which it is stored, as
// `read` says what was stored; their number if there is none. F16, which is also the type of the
// blocks' scales, ends at 65504 and becomes infinite beyond. No quantized type holds more than
// 65504 * 128 * 32; for values whose squares overflow, the search for a scale may end with zeros
// instead of infinities.
size_t FirstTooLarge(const std::vector<float>& row, const std::vector<float>& read) {
  constexpr float kBeyondAll = 1e9f;
  for (size_t i = 0; i < row.size(); ++i) {
    const float from = std::abs(row[i]), made = std::abs(read[i]);
    if (!std::isfinite(made) || (from >= kBeyondAll && made <= from / 2)) return i;
  }
  return row.size();
}

// Converts the rows of a tensor to another type, some at a time and by all threads.
class RowConverter {
 public:
  RowConverter(const GgufFile& file, const GgufTensor& tensor, const WeightTypeInfo& to, Team& team)
      : file_(file),
        tensor_(tensor),
        to_(to),
        team_(team),
        from_{.data = tensor.data.data(),
              .type = tensor.type,
              .rows = tensor.num_elements() / tensor.dims[0],
              .cols = tensor.dims[0]},
        row_bytes_(from_.cols / to.block_size * to.block_bytes),
        rows_(team.threads(), std::vector<float>(from_.cols)),
        read_(rows_) {}

  size_t rows() const { return from_.rows; }
  // How many rows to convert at a time: enough for all threads, and few megabytes.
  size_t most() const { return std::max<size_t>(1, kFloatsAtATime / from_.cols); }

  // The rows [first, first + count), valid until the next call. InvalidArgument naming the first
  // element that is too large.
  absl::StatusOr<absl::Span<const uint8_t>> Convert(size_t first, size_t count) {
    bytes_.resize(count * row_bytes_);
    const Team::Region region(team_);
    const size_t first_bad = FirstRow(team_, count, from_.cols, [&](size_t row, size_t thread) {
      return FirstTooLargeOf(first + row, thread, &bytes_[row * row_bytes_]) < from_.cols;
    });
    if (first_bad < count) return TooLarge(first + first_bad);
    return absl::MakeConstSpan(bytes_);
  }

 private:
  static constexpr size_t kFloatsAtATime = size_t{1} << 21;

  // Converts a row, and says which of its values is too large.
  size_t FirstTooLargeOf(size_t row, size_t thread, uint8_t* bytes) {
    std::vector<float>&values = rows_[thread], &read = read_[thread];
    DequantizeRow(from_, row, values.data());
    QuantizeRow(to_.type, values.data(), from_.cols, bytes);
    DequantizeRow({.data = bytes, .type = to_.type, .rows = 1, .cols = from_.cols}, 0, read.data());
    return FirstTooLarge(values, read);
  }

  absl::Status TooLarge(size_t row) {
    std::vector<uint8_t> bytes(row_bytes_);
    const size_t i = FirstTooLargeOf(row, 0, bytes.data());
    return absl::InvalidArgumentError(
        absl::StrCat(file_.name(), ": tensor '", tensor_.name, "' has the value ", rows_[0][i],
                     " at ", ElementName(tensor_, row, i), ", which would be ", read_[0][i], " as ",
                     std::string(to_.name)));
  }

  const GgufFile& file_;
  const GgufTensor& tensor_;
  const WeightTypeInfo& to_;
  Team& team_;
  const WeightMatrix from_;
  const size_t row_bytes_;
  std::vector<std::vector<float>> rows_, read_;  // [threads][cols]
  std::vector<uint8_t> bytes_;
};

// Tells progress in bytes of tensors. They are read twice, for the check and for the conversion,
// which takes most of the time: the check counts as an eighth of it.
class QuantizeProgress {
 public:
  QuantizeProgress(const GgufFile& file, const Progress& progress) : progress_(progress) {
    for (const GgufTensor& tensor : file.tensors()) bytes_ += tensor.data.size();
  }

  Progress OfCheck() const {
    return [this](uint64_t done, uint64_t) { Tell(done / 8); };
  }
  void Add(uint64_t bytes) {
    done_ += bytes;
    Tell(bytes_ / 8 + done_);
  }

 private:
  void Tell(uint64_t done) const {
    if (progress_) progress_(done, bytes_ / 8 + bytes_);
  }

  const Progress& progress_;
  uint64_t bytes_ = 0, done_ = 0;
};

}  // namespace

absl::Span<const absl::string_view> Quantization::Names() { return kNames; }

absl::StatusOr<Quantization> Quantization::Parse(absl::string_view name) {
  absl::string_view base = name;
  const bool mix = absl::EndsWithIgnoreCase(name, "_K_M");
  if (mix) base.remove_suffix(2);
  const WeightTypeInfo* info = FindWeightType(std::string_view(base.data(), base.size()));
  if (info == nullptr || !info->is_written ||
      (mix && info->type != WeightType::kQ4_K && info->type != WeightType::kQ5_K)) {
    return absl::InvalidArgumentError(absl::StrCat("type ", QuoteForMessage(name),
                                                   " is not one of ", absl::StrJoin(kNames, ", ")));
  }
  return Quantization{.type = info->type, .mix = mix};
}

WeightType Quantization::TypeFor(absl::string_view tensor, size_t cols, size_t layers) const {
  WeightType wanted = WantedType(*this, tensor, layers);
  if (cols % GetWeightTypeInfo(wanted).block_size != 0) wanted = SmallBlockType(wanted);
  return cols % GetWeightTypeInfo(wanted).block_size == 0 ? wanted : WeightType::kF16;
}

void Quantization::Describe(GgufWriter& writer) const {
  constexpr uint32_t kQuantizationVersion = 2;  // of the blocks' layouts, since 2023
  writer.SetUint32("general.file_type", FileType(*this));
  writer.SetUint32("general.quantization_version", kQuantizationVersion);
}

absl::StatusOr<QuantizationPlan> PlanQuantization(const GgufFile& file,
                                                  const Quantization& quantization) {
  INLAY_ASSIGN_OR_RETURN(const size_t layers, LayersOf(file));
  QuantizationPlan plan;
  for (const GgufTensor& tensor : file.tensors()) {
    const WeightType stored = NewType(tensor, quantization, layers);
    const WeightTypeInfo& info = GetWeightTypeInfo(stored);
    plan.bytes_before += tensor.data.size();
    plan.bytes_after += tensor.num_elements() / info.block_size * info.block_bytes;
    if (IsQuantized(tensor.type) && stored != tensor.type) ++plan.requantized[tensor.type];
    if (!IsMatrix(tensor) || StaysAsItIs(tensor.name)) continue;
    const WeightType wanted = WantedType(quantization, tensor.name, layers);
    if (stored == wanted) continue;
    const uint64_t cols = tensor.dims[0];
    const auto same = std::find_if(
        plan.fallbacks.begin(), plan.fallbacks.end(), [&](const QuantizationPlan::Fallback& known) {
          return known.wanted == wanted && known.stored == stored && known.cols == cols;
        });
    if (same != plan.fallbacks.end()) {
      ++same->matrices;
    } else {
      plan.fallbacks.push_back({.wanted = wanted, .stored = stored, .cols = cols, .matrices = 1});
    }
  }
  return plan;
}

absl::Status Requantize(const GgufFile& file, const Quantization& quantization,
                        const std::string& path, Replace replace, size_t threads,
                        const Progress& progress) {
  if (file.packed()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(), " is a packed file; quantize the GGUF file that it was made from"));
  }
  INLAY_ASSIGN_OR_RETURN(const size_t layers, LayersOf(file));
  // Quantized types have no NaN but in their scales: most of them would turn it into a number.
  Team team(threads);
  QuantizeProgress told(file, progress);
  INLAY_RETURN_IF_ERROR(CheckTensors(file, team, told.OfCheck()));
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata()) {
    // The writer decides the alignment; the others are of the old types.
    if (entry.key() == "general.file_type" || entry.key() == "general.alignment" ||
        entry.key() == "general.quantization_version")
      continue;
    writer.SetValue(entry.key(), entry.value);
  }
  quantization.Describe(writer);
  for (const GgufTensor& tensor : file.tensors()) {
    INLAY_RETURN_IF_ERROR(writer.AddTensor(tensor.name,
                                           absl::MakeConstSpan(tensor.dims).first(tensor.n_dims),
                                           NewType(tensor, quantization, layers)));
  }
  INLAY_RETURN_IF_ERROR(writer.Open(path, replace));
  for (const GgufTensor& tensor : file.tensors()) {
    const WeightTypeInfo& to = GetWeightTypeInfo(NewType(tensor, quantization, layers));
    if (to.type == tensor.type) {
      INLAY_RETURN_IF_ERROR(writer.AppendData(tensor.data));
      told.Add(tensor.data.size());
      continue;
    }
    RowConverter converter(file, tensor, to, team);
    for (size_t first = 0; first < converter.rows(); first += converter.most()) {
      const size_t count = std::min(converter.most(), converter.rows() - first);
      INLAY_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                             converter.Convert(first, count));
      INLAY_RETURN_IF_ERROR(writer.AppendData(bytes));
      told.Add(tensor.data.size() / converter.rows() * count);
    }
  }
  INLAY_RETURN_IF_ERROR(file.CheckWhole());
  return writer.Finish();
}

}  // namespace inlay
