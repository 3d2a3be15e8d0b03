// Model files whose matrices are already packed for the kernels, so that loading does not pack
// them.
#ifndef INLAY_GEMMA_LIKE_FILES_PACKED_FILE_H_
#define INLAY_GEMMA_LIKE_FILES_PACKED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/xxh64.h"
#include "io/gguf/tensor_form.h"
#include "ops/matmul/packed_matrix.h"

namespace inlay {

class GgufFile;

// A matrix of a packed file, or one for each expert: some rows of a tensor of the file that it was
// made from.
struct PackedPart {
  std::string name;
  size_t rows = 0;
};

// The tensors that a config wants packed, by their names in the file. Each has one part of the same
// name, unless it holds the rows of several matrices of the config one after the other; then these
// are its parts, in order.
using PackedTensors = std::unordered_map<std::string, std::vector<PackedPart>>;

// Keys of a packed file, beside those of io/gguf/tensor_form.h.
inline constexpr absl::string_view kPackedConfigKey = "inlay.packed.config";  // its name
// The WeightsHash of the file that it was made from: conversations saved with one continue with the
// other.
inline constexpr absl::string_view kPackedWeightsKey = "inlay.packed.weights_hash";
// A hash of the other keys, and of each tensor's name, form and dimensions.
inline constexpr absl::string_view kPackedFingerprintKey = "inlay.packed.fingerprint";

// Computes the value of kPackedFingerprintKey.
class PackedFingerprint {
 public:
  PackedFingerprint(absl::string_view config_name, uint64_t weights_hash) {
    Text(config_name);
    Number(weights_hash);
    Number(kPackedFileVersion);
    Number(kPackedLayoutVersion);
  }
  void Add(absl::string_view name, const TensorForm& form, absl::Span<const uint64_t> dims) {
    Text(name);
    Number(TensorFormId(form));
    for (const uint64_t dim : dims) Number(dim);
  }
  uint64_t Digest() const { return hash_.Digest(); }

 private:
  void Text(absl::string_view text) {
    Number(text.size());
    hash_.Update(text.data(), text.size());
  }
  void Number(uint64_t number) { hash_.Update(&number, sizeof(number)); }

  Xxh64 hash_;
};

// Ok for a file that is not packed, or one packed for the config of this name whose fingerprint is
// right.
absl::Status CheckPackedFor(const GgufFile& file, absl::string_view config_name);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_PACKED_FILE_H_
