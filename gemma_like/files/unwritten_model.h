// A model file that is described as if it were written: for plans of models that are not there.
#ifndef INLAY_GEMMA_LIKE_FILES_UNWRITTEN_MODEL_H_
#define INLAY_GEMMA_LIKE_FILES_UNWRITTEN_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/files/synth.h"
#include "io/gguf/gguf.h"

namespace inlay {

// Addresses for the whole file, of which only what is not zero takes memory: the header, and
// tensors whose values the config fixes.
class UnwrittenModel {
 public:
  // The file that WriteSynth(model, quantization) would write; messages call it `name`.
  // ResourceExhausted when the process has no addresses for its size, or no memory for what is not
  // zero.
  static absl::StatusOr<UnwrittenModel> Create(const SynthModel& model,
                                               const Quantization& quantization,
                                               absl::string_view name);

  UnwrittenModel(UnwrittenModel&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)),
        size_(other.size_),
        file_(std::move(other.file_)) {}
  UnwrittenModel& operator=(UnwrittenModel&&) = delete;
  ~UnwrittenModel();

  const GgufFile& file() const { return *file_; }

 private:
  UnwrittenModel(uint8_t* bytes, size_t size) : bytes_(bytes), size_(size) {}
  absl::Status Write(size_t at, absl::Span<const uint8_t> bytes);

  uint8_t* bytes_;
  size_t size_;
  std::optional<GgufFile> file_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_UNWRITTEN_MODEL_H_
