// Writer of GGUF version 3 files: metadata and tensor descriptions first, then the data in order.
#ifndef INLAY_IO_GGUF_GGUF_WRITER_H_
#define INLAY_IO_GGUF_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/file/atomic_file.h"
#include "io/gguf/gguf_value.h"
#include "io/gguf/tensor_form.h"
#include "ops/quant/weight_type.h"

namespace inlay {

// Usage: any number of Set... and AddTensor, then Open, AppendData until every tensor is complete,
// Finish. Without Finish there is no new file, and an existing one of that name is unchanged.
class GgufWriter {
 public:
  // Tensors are aligned to 32 bytes, the format's default.
  GgufWriter() = default;
  // Tensors are aligned to `alignment` bytes: a power of two from 8 to 65536.
  explicit GgufWriter(uint32_t alignment);

  bool Has(absl::string_view key) const { return keys_.count(std::string(key)) > 0; }
  // A key must be new, 1 to 65535 bytes; a violation is reported by Open.
  void SetUint32(absl::string_view key, uint32_t value);
  void SetInt32(absl::string_view key, int32_t value);
  void SetUint64(absl::string_view key, uint64_t value);
  void SetFloat32(absl::string_view key, float value);
  void SetBool(absl::string_view key, bool value);
  void SetBools(absl::string_view key, absl::Span<const bool> values);
  void SetString(absl::string_view key, absl::string_view value);
  void SetStrings(absl::string_view key, absl::Span<const std::string> values);
  void SetInt32s(absl::string_view key, absl::Span<const int32_t> values);
  void SetFloat32s(absl::string_view key, absl::Span<const float> values);
  // A copy of a value of any type that was read from a file.
  void SetValue(absl::string_view key, const GgufValue& value);

  // Describes the next tensor, its 1 to 4 dimensions with the fastest one first. Refused: a name
  // that is empty, longer than 64 bytes or not new, a dimension of 0, a row that is not a whole
  // number of quantization blocks, a size that overflows.
  absl::Status AddTensor(absl::string_view name, absl::Span<const uint64_t> dims, WeightType type,
                         bool packed = false);

  // Everything up to the data, which begins where this ends, and the bytes that the data has: for
  // who wants to know of a file without writing it. The error of a Set... above.
  absl::StatusOr<std::string> Header() const;
  uint64_t data_size() const { return data_size_; }

  // Writes everything up to the data. `replace` says what may be replaced; see CheckReplace.
  absl::Status Open(const std::string& path, Replace replace = Replace::kSameKind);
  // The same after the bytes already written to `file`, whose number must be a multiple of the
  // alignment.
  absl::Status Open(AtomicFile file);

  // The next bytes of the data, tensor after tensor in the order of AddTensor: `bytes` belong to
  // one tensor and must not go beyond its end. Padding is added here.
  absl::Status AppendData(absl::Span<const uint8_t> bytes);

  // Checks that no data is missing, and gives the file its name.
  absl::Status Finish();
  // The same, but leaves it to the caller to write more and to give the file its name.
  absl::StatusOr<AtomicFile> Release();

 private:
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;
    TensorForm form;
    uint64_t size;
    uint64_t offset;
  };

  void AddKey(absl::string_view key);
  void AddScalar(absl::string_view key, GgufType type, const void* value);
  void AddNumbers(absl::string_view key, GgufType type, size_t count, const void* values);
  absl::Status Pad();

  uint64_t alignment_ = 32;
  std::string metadata_;
  absl::Status metadata_status_;
  std::unordered_set<std::string> keys_;
  std::vector<Tensor> tensors_;
  std::unordered_set<std::string> names_;
  uint64_t data_size_ = 0;  // of the tensors so far, padding included
  std::optional<AtomicFile> file_;
  size_t current_ = 0;    // the tensor whose data comes next
  uint64_t written_ = 0;  // bytes of it so far
};

}  // namespace inlay

#endif  // INLAY_IO_GGUF_GGUF_WRITER_H_
