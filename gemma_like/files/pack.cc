#include "gemma_like/files/pack.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/status_macros.h"
#include "gemma_like/files/packed_file.h"
#include "gemma_like/files/weights_hash.h"
#include "io/gguf/gguf_writer.h"
#include "io/gguf/tensor_form.h"
#include "io/tokenizer/load_tokenizer.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/quant/weight_matrix.h"

namespace inlay {
namespace {

constexpr absl::string_view kEmbedding = "token_embd.weight";
constexpr absl::string_view kOutput = "output.weight";

// A tensor of the packed file: the rows [first_row, first_row + rows) of each matrix of `from`.
struct TensorToWrite {
  std::string name;
  const GgufTensor* from;
  bool packed;
  uint64_t first_row = 0;
  uint64_t rows = 0;

  std::array<uint64_t, 4> Dims() const {
    return {from->dims[0], rows, from->dims[2], from->dims[3]};
  }
  uint64_t from_bytes() const { return from->data.size() / from->dims[1] * rows; }
};

// In the file's order. For a tied output the embedding is written packed too, beside the embedding
// itself, whose rows are looked up.
std::vector<TensorToWrite> TensorsToWrite(const GgufFile& file, const PackedTensors& packed) {
  std::vector<TensorToWrite> tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    const auto parts = packed.find(tensor.name);
    if (parts == packed.end() || tensor.name == kEmbedding)
      tensors.push_back({tensor.name, &tensor, false, 0, tensor.dims[1]});
    if (parts == packed.end()) continue;
    uint64_t first_row = 0;
    for (const PackedPart& part : parts->second) {
      const absl::string_view name = part.name == kEmbedding ? kOutput : part.name;
      tensors.push_back({std::string(name), &tensor, true, first_row, part.rows});
      first_row += part.rows;
    }
  }
  return tensors;
}

absl::Status AppendTensor(const TensorToWrite& tensor, Team& team, GgufWriter& writer) {
  const GgufTensor& from = *tensor.from;
  if (tensor.packed == from.packed) return writer.AppendData(from.data);
  const uint64_t count = from.dims[2] * from.dims[3];
  for (uint64_t i = 0; i < count; ++i) {
    const WeightMatrix all{.data = from.data.data() + from.data.size() / count * i,
                           .type = from.type,
                           .rows = from.dims[1],
                           .cols = from.dims[0]};
    const PackedMatrix matrix = PackedMatrix::Pack(all.Slice(tensor.first_row, tensor.rows), team);
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
                                       AtomicFile out, const Progress& progress) {
  INLAY_RETURN_IF_ERROR(CheckPackedFor(file, config.name));
  INLAY_ASSIGN_OR_RETURN(const PackedTensors packed, config.packed_tensors(file));
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(file));

  const std::vector<TensorToWrite> tensors = TensorsToWrite(file, packed);
  const uint64_t weights_hash = WeightsHashOf(file);
  PackedFingerprint fingerprint(config.name, weights_hash);
  GgufWriter writer(kPackedAlignment);
  for (const TensorToWrite& tensor : tensors) {
    const GgufTensor& from = *tensor.from;
    const std::array<uint64_t, 4> dims = tensor.Dims();
    INLAY_RETURN_IF_ERROR(writer.AddTensor(
        tensor.name, absl::MakeConstSpan(dims).first(from.n_dims), from.type, tensor.packed));
    fingerprint.Add(tensor.name, {from.type, tensor.packed}, dims);
  }
  const std::string tables = tokenizer->ReadyArrays();
  if (!tables.empty()) {
    INLAY_RETURN_IF_ERROR(writer.AddTensor(kPackedTokenizerTensor, {tables.size() / sizeof(float)},
                                           WeightType::kF32));
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
  uint64_t total = 0, done = 0;
  for (const TensorToWrite& tensor : tensors) total += tensor.from_bytes();
  for (const TensorToWrite& tensor : tensors) {
    INLAY_RETURN_IF_ERROR(AppendTensor(tensor, team, writer));
    done += tensor.from_bytes();
    if (progress) progress(done, total);
  }
  INLAY_RETURN_IF_ERROR(writer.AppendData(AsBytes(tables.data(), tables.size())));
  INLAY_RETURN_IF_ERROR(file.CheckWhole());  // all of it was read
  return writer.Release();
}

absl::Status WritePacked(const GgufFile& file, Team& team, const std::string& path, Replace replace,
                         const Progress& progress) {
  INLAY_ASSIGN_OR_RETURN(const ConfigEntry* config, FindConfig(file));
  INLAY_ASSIGN_OR_RETURN(AtomicFile out, AtomicFile::Create(path, FileKind::kModel, replace));
  INLAY_ASSIGN_OR_RETURN(AtomicFile written,
                         WritePacked(file, *config, team, std::move(out), progress));
  return written.Commit();
}

}  // namespace inlay
