// The checks behind GgufFile: one pass over the bytes of a file, front to back.
#ifndef INLAY_IO_GGUF_GGUF_PARSER_H_
#define INLAY_IO_GGUF_GGUF_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/gguf/gguf.h"

namespace inlay {

class GgufParser {
 public:
  // GgufFile::Open and GgufFile::Parse for one file, which may be a part of a split model.
  static absl::StatusOr<GgufFile> Open(const std::string& path);
  static absl::StatusOr<GgufFile> Parse(absl::Span<const uint8_t> bytes, absl::string_view name);

 private:
  GgufParser(absl::Span<const uint8_t> bytes, GgufFile* file) : bytes_(bytes), file_(*file) {}

  // Fills the file. After an error, which says what is wrong, the file must not be used.
  absl::Status Run();

  struct TensorPlace {
    uint64_t offset;  // from the start of the data section
    uint64_t size;
    size_t index;  // in file_.tensors_
  };

  absl::Status ReadHeader();
  absl::Status ReadMetadata();
  absl::Status CheckEntries();
  absl::Status IndexEntries();
  absl::Status ReadAlignment();
  absl::Status ReadPackedVersions();
  absl::Status ReadTensorInfos();
  absl::Status IndexTensors();
  absl::Status SetTokenizerApart();
  absl::Status ReadTensorShape(GgufTensor* tensor, TensorPlace* place);
  absl::Status CheckPlaces(uint64_t start);
  absl::Status PlaceTensorData();

  // Check a value and advance past it.
  absl::Status CheckValue(absl::string_view key);
  absl::Status CheckArray(absl::string_view key);
  absl::Status CheckNumbers(GgufType type, bool is_array, uint64_t count, absl::string_view key);

  // The next bytes of the file; `what` names them in the message if the file ends too early.
  template <typename T>
  absl::StatusOr<T> Read(absl::string_view what);
  absl::StatusOr<absl::Span<const uint8_t>> ReadBytes(uint64_t size, absl::string_view what);
  absl::StatusOr<absl::string_view> ReadString(absl::string_view what);
  // A key or a tensor's name.
  absl::StatusOr<absl::string_view> ReadName(absl::string_view what, uint64_t longest);

  uint64_t Left() const { return bytes_.size() - position_; }

  template <typename... Args>
  absl::Status Refuse(const Args&... args) const {
    return absl::InvalidArgumentError(absl::StrCat(file_.name_, ": ", args...));
  }

  absl::Span<const uint8_t> bytes_;
  size_t position_ = 0;  // <= bytes_.size()
  GgufFile& file_;
  uint64_t num_entries_ = 0;
  uint64_t num_tensors_ = 0;
  std::vector<TensorPlace> places_;
};

}  // namespace inlay

#endif  // INLAY_IO_GGUF_GGUF_PARSER_H_
