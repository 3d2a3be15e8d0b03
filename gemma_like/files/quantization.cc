#include "gemma_like/files/quantization.h"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/model/check_tensors.h"
#include "io/gguf/gguf_writer.h"
#include "ops/quant/dequantize.h"
#include "ops/quant/quantize.h"
#include "ops/views.h"

namespace inlay {
namespace {

constexpr absl::string_view kNames =
    "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, IQ4_XS, MXFP4, Q2_K, Q3_K, Q4_K, Q5_K, "
    "Q6_K, Q4_K_M, Q5_K_M";

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

// "blk.7.ffn_down.weight" -> 7; -1 without a layer.
int LayerOf(absl::string_view tensor) {
  if (!absl::StartsWith(tensor, "blk.")) return -1;
  const absl::string_view rest = tensor.substr(4);
  int layer = -1;
  return absl::SimpleAtoi(rest.substr(0, rest.find('.')), &layer) ? layer : -1;
}

// The layers whose sensitive matrices a mix gives more bits: the first and the last eighth, and
// every third between.
bool GetsMoreBits(int layer, int layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

// Whether the tensor is multiplied as a matrix. The weights of convolutions are not; files of all
// families have them in F32, and other engines expect that.
bool IsMatrix(const GgufTensor& tensor) {
  return tensor.n_dims >= 2 && absl::EndsWith(tensor.name, ".weight") && tensor.dims[1] > 1 &&
         !absl::EndsWith(tensor.name, "ssm_conv1d.weight") &&
         !absl::EndsWith(tensor.name, "shortconv.conv.weight") &&
         !absl::EndsWith(tensor.name, "_norm.weight");
}

WeightType NewType(const GgufTensor& tensor, const Quantization& quantization, size_t layers) {
  return IsMatrix(tensor) ? quantization.TypeFor(tensor.name, tensor.dims[0], layers) : tensor.type;
}

// InvalidArgument when `row`, row number `index` of the tensor, has a value that is too large for
// the type in which `bytes` store it. F16, which is also the type of the blocks' scales, ends at
// 65504 and becomes infinite beyond. No quantized type holds more than 65504 * 128 * 32; for values
// whose squares overflow, the search for a scale may end with zeros instead of infinities.
absl::Status CheckFits(const GgufFile& file, const GgufTensor& tensor, size_t index,
                       const std::vector<float>& row, const WeightTypeInfo& to,
                       const std::vector<uint8_t>& bytes) {
  constexpr float kBeyondAll = 1e9f;
  std::vector<float> read(row.size());
  DequantizeRow({.data = bytes.data(), .type = to.type, .rows = 1, .cols = row.size()}, 0,
                read.data());
  for (size_t i = 0; i < row.size(); ++i) {
    const float from = std::abs(row[i]), made = std::abs(read[i]);
    if (std::isfinite(made) && (from < kBeyondAll || made > from / 2)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(), ": tensor '", tensor.name, "' has the value ", row[i], " at ",
        ElementName(tensor, index, i), ", which would be ", read[i], " as ", std::string(to.name)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Quantization> Quantization::Parse(absl::string_view name) {
  absl::string_view base = name;
  const bool mix = absl::EndsWithIgnoreCase(name, "_K_M");
  if (mix) base.remove_suffix(2);
  const WeightTypeInfo* info = FindWeightType(std::string_view(base.data(), base.size()));
  if (info == nullptr || !info->is_written ||
      (mix && info->type != WeightType::kQ4_K && info->type != WeightType::kQ5_K)) {
    return absl::InvalidArgumentError(
        absl::StrCat("type ", QuoteForMessage(name), " is not one of ", kNames));
  }
  return Quantization{.type = info->type, .mix = mix};
}

WeightType Quantization::TypeFor(absl::string_view tensor, size_t cols, size_t layers) const {
  if (absl::EndsWith(tensor, "ffn_gate_inp.weight") ||
      absl::EndsWith(tensor, "ffn_gate_inp_shexp.weight")) {
    return WeightType::kF32;
  }
  WeightType wanted = type;
  if (mix) {
    const int layer = LayerOf(tensor);
    const bool sensitive =
        absl::StrContains(tensor, "attn_v.") || absl::StrContains(tensor, "ffn_down");
    const bool outer = layer < 0;  // the embedding and the output
    if (outer || (sensitive && GetsMoreBits(layer, static_cast<int>(layers))))
      wanted = WeightType::kQ6_K;
  }
  if (cols % GetWeightTypeInfo(wanted).block_size != 0) wanted = SmallBlockType(wanted);
  return cols % GetWeightTypeInfo(wanted).block_size == 0 ? wanted : WeightType::kF16;
}

absl::Status Requantize(const GgufFile& file, const Quantization& quantization,
                        const std::string& path, Replace replace) {
  if (file.packed()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(), " is a packed file; quantize the GGUF file that it was made from"));
  }
  INLAY_ASSIGN_OR_RETURN(const absl::string_view architecture,
                         file.GetString("general.architecture"));
  INLAY_ASSIGN_OR_RETURN(const uint64_t layers,
                         file.GetUint(absl::StrCat(architecture, ".block_count")));
  // Quantized types have no NaN but in their scales: most of them would turn it into a number.
  INLAY_RETURN_IF_ERROR(CheckTensors(file));
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata()) {
    // The first only labels the old type; the writer decides the second.
    if (entry.key() == "general.file_type" || entry.key() == "general.alignment") continue;
    writer.SetValue(entry.key(), entry.value);
  }
  for (const GgufTensor& tensor : file.tensors()) {
    INLAY_RETURN_IF_ERROR(writer.AddTensor(tensor.name,
                                           absl::MakeConstSpan(tensor.dims).first(tensor.n_dims),
                                           NewType(tensor, quantization, layers)));
  }
  INLAY_RETURN_IF_ERROR(writer.Open(path, replace));
  std::vector<float> row;
  std::vector<uint8_t> bytes;
  for (const GgufTensor& tensor : file.tensors()) {
    const WeightTypeInfo& to = GetWeightTypeInfo(NewType(tensor, quantization, layers));
    if (to.type == tensor.type) {
      INLAY_RETURN_IF_ERROR(writer.AppendData(tensor.data));
      continue;
    }
    const size_t cols = tensor.dims[0];
    const WeightMatrix from = {.data = tensor.data.data(),
                               .type = tensor.type,
                               .rows = tensor.num_elements() / cols,
                               .cols = cols};
    row.resize(cols);
    bytes.resize(cols / to.block_size * to.block_bytes);
    for (size_t r = 0; r < from.rows; ++r) {
      DequantizeRow(from, r, row.data());
      QuantizeRow(to.type, row.data(), cols, bytes.data());
      INLAY_RETURN_IF_ERROR(CheckFits(file, tensor, r, row, to, bytes));
      INLAY_RETURN_IF_ERROR(writer.AppendData(bytes));
    }
  }
  INLAY_RETURN_IF_ERROR(file.CheckWhole());
  return writer.Finish();
}

}  // namespace inlay
