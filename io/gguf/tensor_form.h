// The forms that tensors have in a file: GGUF's own, and matrices packed for the kernels.
#ifndef INLAY_IO_GGUF_TENSOR_FORM_H_
#define INLAY_IO_GGUF_TENSOR_FORM_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/quant/weight_type.h"

namespace inlay {

// A packed file is a GGUF file with two additions. A matrix may be stored as the tiles of a
// PackedMatrix (ops/matmul/packed_matrix.h), those of experts one matrix after the other; its
// dimensions and type are still those of the matrix it was made from. And the last tensor holds
// the tokenizer's tables (io/tokenizer/ready_arrays.h). docs/packed-files.md describes both.
inline constexpr uint32_t kPackedFileVersion = 3;
inline constexpr absl::string_view kPackedVersionKey = "inlay.packed.version";  // uint32
inline constexpr absl::string_view kPackedLayoutKey = "inlay.packed.layout";    // uint32
inline constexpr absl::string_view kPackedTokenizerTensor = "inlay.tokenizer";  // F32, the last one
// Tensors start at a page boundary of systems with 4 KiB pages.
inline constexpr uint32_t kPackedAlignment = 4096;

struct TensorForm {
  WeightType type = WeightType::kF32;
  bool packed = false;
};

// The type id of a form in a file. If not packed, it is GGUF's. For a packed matrix the high 16
// bits are 1 + its PackedFormat, so that other GGUF readers refuse it as an unknown type.
uint32_t TensorFormId(const TensorForm& form);

// nullopt for an unknown type id, or for a packed format that does not belong to the type.
std::optional<TensorForm> FindTensorForm(uint32_t id);

// Bytes of a tensor whose dims[0] is a multiple of the type's quantization block size. nullopt when
// the number of bytes or elements overflows 64 bits.
std::optional<uint64_t> TensorBytes(absl::Span<const uint64_t> dims, const TensorForm& form);

}  // namespace inlay

#endif  // INLAY_IO_GGUF_TENSOR_FORM_H_
