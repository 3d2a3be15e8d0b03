#include "gemma_like/files/packed_file.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/gguf/gguf.h"

namespace inlay {

absl::Status CheckPackedFor(const GgufFile& file, absl::string_view config_name) {
  if (!file.packed()) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(const absl::string_view packed_for, file.GetString(kPackedConfigKey));
  if (packed_for != config_name) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), " is packed for config ",
                                                   QuoteForMessage(packed_for), ", not for '",
                                                   config_name, "'"));
  }
  INLAY_ASSIGN_OR_RETURN(const uint64_t weights_hash, file.GetUint(kPackedWeightsKey));
  INLAY_ASSIGN_OR_RETURN(const uint64_t expected, file.GetUint(kPackedFingerprintKey));
  PackedFingerprint fingerprint(packed_for, weights_hash);
  for (const GgufTensor& tensor : file.tensors())
    fingerprint.Add(tensor.name, {tensor.type, tensor.packed}, tensor.dims);
  if (fingerprint.Digest() != expected) {
    return absl::DataLossError(absl::StrCat(file.name(), ": the fingerprint of the packed file is ",
                                            absl::Hex(fingerprint.Digest()), ", but it says ",
                                            absl::Hex(expected), "; pack its GGUF file again"));
  }
  return absl::OkStatus();
}

}  // namespace inlay
