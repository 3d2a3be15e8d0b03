#include "io/tokenizer/ready_arrays.h"

#include "absl/strings/str_cat.h"

namespace inlay {

absl::StatusOr<absl::Span<const uint8_t>> FindReadyArrays(const GgufFile& file) {
  const GgufTensor* const tensor = file.FindTensor(kTokenizerTensor);
  if (tensor == nullptr || tensor->packed || tensor->type != WeightType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(), ": tensor '", kTokenizerTensor, "' is ",
        tensor == nullptr ? "missing" : "not F32", "; pack the model's GGUF file again"));
  }
  return tensor->data;
}

absl::Status DamagedArrays(const GgufFile& file) {
  return absl::DataLossError(absl::StrCat(file.name(), ": tensor '", kTokenizerTensor,
                                          "' is damaged; pack the model's GGUF file again"));
}

}  // namespace inlay
