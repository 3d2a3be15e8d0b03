// Model files whose matrices are packed for the kernels already, so that starting costs nothing.
#ifndef INLAY_GEMMA_LIKE_PACKED_FILE_H_
#define INLAY_GEMMA_LIKE_PACKED_FILE_H_

#include <string>
#include <unordered_set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/atomic_file.h"
#include "io/gguf.h"
#include "ops/team.h"

namespace inlay {

struct ConfigEntry;

// Names of the tensors that a config wants packed.
using PackedTensors = std::unordered_set<std::string>;

// Keys of a packed file, beside those of io/tensor_form.h.
inline constexpr absl::string_view kPackedConfigKey = "inlay.packed.config";  // its name
// WeightsHash of the file that it was made from: conversations with one go on with the other.
inline constexpr absl::string_view kPackedWeightsKey = "inlay.packed.weights_hash";
// A hash of the other keys, and of each tensor's name, form and dimensions.
inline constexpr absl::string_view kPackedFingerprintKey = "inlay.packed.fingerprint";

// Ok for a file that is not packed, or one packed for the config of this name whose fingerprint is
// right.
absl::Status CheckPackedFor(const GgufFile& file, absl::string_view config_name);

// Writes `file` packed: the matrices as `team` packs them, all else as it is. Goes through for a
// packed file too. `replace` says what may be replaced; see CheckReplace. Errors are those of
// loading the file and of writing.
absl::Status WritePacked(const GgufFile& file, Team& team, const std::string& path,
                         Replace replace = Replace::kSameKind);

// The same, for a file of this config, behind what was written to `out`, a multiple of
// kPackedAlignment bytes, which is given back with its end still open.
absl::StatusOr<AtomicFile> WritePacked(const GgufFile& file, const ConfigEntry& config, Team& team,
                                       AtomicFile out);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_PACKED_FILE_H_
