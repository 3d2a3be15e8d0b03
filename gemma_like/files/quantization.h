// Chooses the weight type of each tensor when a file is quantized.
#ifndef INLAY_GEMMA_LIKE_FILES_QUANTIZATION_H_
#define INLAY_GEMMA_LIKE_FILES_QUANTIZATION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/progress.h"
#include "io/file/file_kind.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "ops/quant/weight_type.h"

namespace inlay {

// A type for a whole file: one weight type, or one of the mixes that files are commonly published
// in.
struct Quantization {
  WeightType type = WeightType::kF16;
  bool mix = false;  // Q4_K_M, Q5_K_M: some matrices, where precision matters most, as Q6_K

  // All names that Parse() takes.
  static absl::Span<const absl::string_view> Names();

  // "Q4_0", "BF16", "Q4_K_M", in any case. InvalidArgument, with all names.
  static absl::StatusOr<Quantization> Parse(absl::string_view name);

  // The type for a matrix of this name whose rows have `cols` elements, in a model of `layers`
  // layers. Rows that are not whole blocks of 256 get the type of small blocks with about as many
  // bits, and rows that are not whole blocks of 32 get F16. Routers of experts stay F32.
  WeightType TypeFor(absl::string_view tensor, size_t cols, size_t layers) const;

  // Sets what files of quantized weights say of themselves: general.file_type, llama.cpp's number
  // for this type, and general.quantization_version.
  void Describe(GgufWriter& writer) const;
};

// What Requantize does to a file, for people.
struct QuantizationPlan {
  // Matrices that cannot have the type `wanted`, since their rows of `cols` elements are not whole
  // blocks of it.
  struct Fallback {
    WeightType wanted, stored;
    uint64_t cols;
    size_t matrices;
  };
  uint64_t bytes_before = 0, bytes_after = 0;  // of all tensors
  std::vector<Fallback> fallbacks = {};
  // How many matrices of each quantized type are converted to another one.
  std::map<WeightType, size_t> requantized = {};
};

// InvalidArgument as in Requantize.
absl::StatusOr<QuantizationPlan> PlanQuantization(const GgufFile& file,
                                                  const Quantization& quantization);

// Writes the file's matrices in another type, everything else unchanged. Matrices that are already
// quantized are dequantized first. Replaces an older file at `path` only when all is written and
// `replace` allows it; see CheckReplace. InvalidArgument when the file says that it has more layers
// than its tensors can be of. DataLoss, before anything is written, when CheckTensors
// finds a weight that is not finite; InvalidArgument naming the tensor and the element when one is
// too large for the new type. `threads` share the work, and the file has the same bytes for any
// number of them. `progress` counts bytes that are read.
absl::Status Requantize(const GgufFile& file, const Quantization& quantization,
                        const std::string& path, Replace replace = Replace::kSameKind,
                        size_t threads = 1, const Progress& progress = nullptr);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_QUANTIZATION_H_
