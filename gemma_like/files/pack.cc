#include "gemma_like/files/pack.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gemma_like/files/packed_file.h"
#include "gemma_like/files/weights_hash.h"
#include "io/gguf/gguf_writer.h"
#include "io/gguf/tensor_form.h"
#include "ops/matmul/packed_matrix.h"

namespace inlay {
namespace {

constexpr absl::string_view kEmbedding = "token_embd.weight";
constexpr absl::string_view kOutput = "output.weight";

struct TensorToWrite {
  absl::string_view name;
  const GgufTensor* from;
  bool packed;
};

// In the file's order. For a tied output the embedding is written packed too, beside the embedding
// itself, whose rows are looked up.
std::vector<TensorToWrite> TensorsToWrite(const GgufFile& file, const PackedTensors& packed) {
  std::vector<TensorToWrite> tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    const bool pack = packed.contains(std::string(tensor.name));
    if (tensor.name != kEmbedding) {
      tensors.push_back({tensor.name, &tensor, pack});
      continue;
    }
    tensors.push_back({tensor.name, &tensor, false});
    if (pack) tensors.push_back({kOutput, &tensor, true});
  }
  return tensors;
}

absl::Status AppendTensor(const TensorToWrite& tensor, Team& team, GgufWriter& writer) {
  const GgufTensor& from = *tensor.from;
  if (tensor.packed == from.packed) return writer.AppendData(from.data);
  const uint64_t count = from.dims[2] * from.dims[3];
  for (uint64_t i = 0; i < count; ++i) {
    const PackedMatrix matrix =
        PackedMatrix::Pack({.data = from.data.data() + from.data.size() / count * i,
                            .type = from.type,
                            .rows = from.dims[1],
                            .cols = from.dims[0]},
                           team);
    if (matrix.empty()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory to pack tensor '", from.name, "'"));
    }
    INLAY_RETURN_IF_ERROR(writer.AppendData({matrix.tile(0), matrix.bytes()}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AtomicFile> WritePacked(const GgufFile& file, const ConfigEntry& config, Team& team,
                                       AtomicFile out) {
  INLAY_RETURN_IF_ERROR(CheckPackedFor(file, config.name));
  INLAY_ASSIGN_OR_RETURN(const PackedTensors packed, config.packed_tensors(file));

  const std::vector<TensorToWrite> tensors = TensorsToWrite(file, packed);
  const uint64_t weights_hash = WeightsHashOf(file);
  PackedFingerprint fingerprint(config.name, weights_hash);
  GgufWriter writer(kPackedAlignment);
  for (const TensorToWrite& tensor : tensors) {
    const GgufTensor& from = *tensor.from;
    INLAY_RETURN_IF_ERROR(writer.AddTensor(
        tensor.name, absl::MakeConstSpan(from.dims).first(from.n_dims), from.type, tensor.packed));
    fingerprint.Add(tensor.name, {from.type, tensor.packed}, from.dims);
  }
  for (const GgufEntry& key : file.metadata()) {
    if (key.key() != "general.alignment" && !absl::StartsWith(key.key(), "inlay.packed."))
      writer.SetValue(key.key(), key.value);
  }
  writer.SetUint32(kPackedVersionKey, kPackedFileVersion);
  writer.SetUint32(kPackedLayoutKey, kPackedLayoutVersion);
  writer.SetString(kPackedConfigKey, config.name);
  writer.SetUint64(kPackedWeightsKey, weights_hash);
  writer.SetUint64(kPackedFingerprintKey, fingerprint.Digest());
  INLAY_RETURN_IF_ERROR(writer.Open(std::move(out)));
  for (const TensorToWrite& tensor : tensors)
    INLAY_RETURN_IF_ERROR(AppendTensor(tensor, team, writer));
  return writer.Release();
}

absl::Status WritePacked(const GgufFile& file, Team& team, const std::string& path,
                         Replace replace) {
  INLAY_ASSIGN_OR_RETURN(const ConfigEntry* config, FindConfig(file));
  INLAY_ASSIGN_OR_RETURN(AtomicFile out, AtomicFile::Create(path, FileKind::kModel, replace));
  INLAY_ASSIGN_OR_RETURN(AtomicFile written, WritePacked(file, *config, team, std::move(out)));
  return written.Commit();
}

}  // namespace inlay
