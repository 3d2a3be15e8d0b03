// Strict reader of GGUF model files: metadata and tensors as checked views into the mapped file.
#ifndef INLAY_IO_GGUF_GGUF_H_
#define INLAY_IO_GGUF_GGUF_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/file/mapped_file.h"
#include "io/gguf/gguf_value.h"
#include "io/gguf/name_index.h"
#include "io/gguf/tensor_form.h"
#include "ops/quant/weight_type.h"

namespace inlay {

struct GgufEntry {
  GgufValue value;

  absl::string_view key() const { return value.key(); }
};

// Data is stored row by row: dims[0] is the length of a row (the fastest dimension) and a multiple
// of the type's quantization block size. If `packed`, it is stored tile by tile instead (see
// io/gguf/tensor_form.h), aligned to 64 bytes. `data` holds exactly the tensor's bytes, aligned to
// the file's alignment.
struct GgufTensor {
  std::string name;
  uint32_t n_dims = 0;                          // 1 to 4
  std::array<uint64_t, 4> dims = {1, 1, 1, 1};  // each >= 1; 1 from n_dims on
  WeightType type = WeightType::kF32;
  bool packed = false;
  absl::Span<const uint8_t> data;

  uint64_t num_elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  // "256 x 1024", the fastest dimension first.
  std::string ShapeString() const;
};

// A parsed file, or several that a model is split into. Views, keys, names and values are valid as
// long as the object (and, after Parse, the bytes), also when the object is moved.
//
// Versions 2 and 3, little-endian. Everything is checked before use: a file is accepted whole or
// refused with one sentence that names the file, the item, its value and the limit. Metadata needs
// the memory of its bytes plus 14 bytes for each key. It and the tensors' names and shapes are
// copies, which stay as they were checked when the file changes.
//   - counts and lengths fit in the bytes that are left; nothing is allocated before that is known
//   - keys: 1 to 65535 bytes, tensor names: 1 to 64 bytes, both UTF-8 without NUL and unique
//   - flags are 0 or 1, arrays hold no arrays
//   - general.alignment, if given, is a uint32, a power of two from 8 to 65536
//   - tensors: 1 to 4 dimensions of at least 1, a known type, rows of whole quantization
//     blocks, a size without overflow, and data that is aligned, inside the file, and overlaps no
//     other tensor's
//   - packed matrices: only in a file of kPackedFileVersion and kPackedLayoutVersion
//
// A model may be split into files NAME-00001-of-00003.gguf and so on, which lie in one folder (see
// io/gguf/gguf_split.h). They are seen as one: the metadata of the first, without the keys that
// concern the split, and the tensors of all, one file's after the other's. Each is checked as above
// with its own alignment; together they must have every part once, the number of tensors that they
// declare, and no tensor twice.
class GgufFile {
 public:
  // The file at `path`, or the one bundled with the program there (io/file/bundle.h). For any part
  // of a split model, all its files; NotFound names one that is missing.
  static absl::StatusOr<GgufFile> Open(const std::string& path);

  // `bytes` must start at a multiple of 8 and outlive the result; messages call the file `name`.
  // A part of a split model is refused.
  static absl::StatusOr<GgufFile> Parse(absl::Span<const uint8_t> bytes, absl::string_view name);

  GgufFile(GgufFile&&) = default;
  GgufFile& operator=(GgufFile&&) = default;

  const std::string& name() const { return name_; }
  uint32_t version() const { return version_; }
  uint32_t alignment() const { return alignment_; }
  // Whether the file may hold packed matrices.
  bool packed() const { return packed_; }
  // Bytes of all files.
  uint64_t file_size() const { return file_size_; }
  // How many files there are: more than one for a split model.
  size_t num_files() const { return files_.empty() ? 1 : files_.size(); }

  // Releases the memory of these bytes of tensor data until they are read again.
  void Forget(absl::Span<const uint8_t> data) const;

  // Copies these bytes of tensor data to `to`, of a file as MappedFile::Read does. Thread-safe.
  void Read(absl::Span<const uint8_t> data, uint8_t* to) const;

  // DataLoss once a file is not what it was when it was opened, or could not be read: what was read
  // of it may then be wrong. See MappedFile::CheckWhole.
  absl::Status CheckWhole() const;

  // Metadata and tensors in file order.
  absl::Span<const GgufEntry> metadata() const { return metadata_; }
  absl::Span<const GgufTensor> tensors() const { return tensors_; }

  // What a packed file holds of the tokenizer (Tokenizer::ReadyArrays); empty where there is none.
  // It is none of the tensors.
  absl::Span<const uint8_t> tokenizer_tables() const { return tokenizer_tables_; }

  // nullptr when there is none.
  const GgufValue* Find(absl::string_view key) const;
  const GgufTensor* FindTensor(absl::string_view name) const;

  // Typed access. NotFound when the key is missing; InvalidArgument, naming the key, its type and
  // the wanted one, when the value has another type or does not fit.
  //
  // Writers differ in whether they store one value or one for each layer. So an array of equal
  // elements, at least one, counts as their value here,
  absl::StatusOr<uint64_t> GetUint(absl::string_view key) const;  // any integer type, >= 0
  absl::StatusOr<int64_t> GetInt(absl::string_view key) const;    // any integer type
  absl::StatusOr<double> GetFloat(absl::string_view key) const;   // float32 or float64
  absl::StatusOr<bool> GetBool(absl::string_view key) const;
  absl::StatusOr<absl::string_view> GetString(absl::string_view key) const;

  // and a single number as an array of one here.
  absl::StatusOr<GgufStrings> GetStrings(absl::string_view key) const;        // only an array
  absl::StatusOr<std::vector<int64_t>> GetInts(absl::string_view key) const;  // integers or bools
  absl::StatusOr<std::vector<float>> GetFloats(absl::string_view key) const;  // float32

 private:
  friend class GgufParser;
  friend class GgufJoiner;
  GgufFile() = default;

  // `wanted` is for messages. FindOne takes what counts as one value.
  absl::StatusOr<const GgufValue*> FindWanted(absl::string_view key,
                                              absl::string_view wanted) const;
  absl::StatusOr<const GgufValue*> FindOne(absl::string_view key, absl::string_view wanted) const;
  absl::Status WrongType(absl::string_view key, const GgufValue& value,
                         absl::string_view wanted) const;

  struct OpenFile {
    std::string path;
    MappedFile mapped;
  };

  // Which of the files these bytes are mapped from; nullptr after Parse.
  const MappedFile* FileOf(absl::Span<const uint8_t> data) const;

  std::string name_;
  std::vector<OpenFile> files_;  // none after Parse
  uint32_t version_ = 0;
  uint32_t alignment_ = 0;
  bool packed_ = false;
  uint64_t file_size_ = 0;
  std::vector<uint8_t> metadata_bytes_;
  std::vector<GgufEntry> metadata_;  // in metadata_bytes_
  std::vector<GgufTensor> tensors_;
  absl::Span<const uint8_t> tokenizer_tables_;
  NameIndex key_index_;
  NameIndex tensor_index_;
};

}  // namespace inlay

#endif  // INLAY_IO_GGUF_GGUF_H_
