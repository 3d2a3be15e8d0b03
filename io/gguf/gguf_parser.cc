#include "io/gguf/gguf_parser.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "io/file/bundle.h"
#include "io/file/file_kind.h"
#include "io/file/mapped_file.h"
#include "io/gguf/foreign_file.h"
#include "io/gguf/tensor_form.h"
#include "ops/matmul/packed_matrix.h"

namespace inlay {
namespace {

constexpr absl::string_view kMagic = kModelMagic;
constexpr uint32_t kDefaultAlignment = 32;  // by the format's definition
constexpr uint32_t kLeastAlignment = 8;     // aligns float64 and all quantization blocks in memory
constexpr uint32_t kMostAlignment = 65536;  // the largest page size in use

// The minimum sizes of metadata entries, tensors and strings: they bound a count that a file claims
// before memory is allocated for it. Entry: length and text of the key, type, value.
constexpr uint64_t kLeastEntryBytes = 8 + 1 + 4 + 1;
// Tensor: length and text of the name, number of dimensions, one dimension, type, offset.
constexpr uint64_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr uint64_t kLeastStringBytes = 8;  // its length

// " (NAME)" for a type that other programs write, or once wrote, and that is not read; else "".
std::string NameOfUnreadType(uint32_t id) {
  constexpr std::pair<uint32_t, absl::string_view> kNames[] = {
      {4, "Q4_2"},   {5, "Q4_3"},        {9, "Q8_1"},        {15, "Q8_K"},       {19, "IQ1_S"},
      {24, "I8"},    {25, "I16"},        {26, "I32"},        {27, "I64"},        {28, "F64"},
      {29, "IQ1_M"}, {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},   {33, "Q4_0_8_8"},   {34, "TQ1_0"},
      {35, "TQ2_0"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {40, "NVFP4"},
      {41, "Q1_0"},  {42, "Q2_0"},
  };
  for (const auto& [known, name] : kNames) {
    if (known == id) return absl::StrCat(" (", name, ")");
  }
  return "";
}

bool IsPowerOfTwo(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

// `a` rounded up to a multiple of the power of two `unit`; both far below 2^63.
uint64_t RoundUp(uint64_t a, uint64_t unit) { return (a + unit - 1) & ~(unit - 1); }

}  // namespace

absl::Status GgufParser::Run() {
  if (reinterpret_cast<uintptr_t>(bytes_.data()) % kLeastAlignment != 0) {
    return Refuse("its bytes lie in memory at an address that is not a multiple of ",
                  kLeastAlignment);
  }
  file_.file_size_ = bytes_.size();
  INLAY_RETURN_IF_ERROR(ReadHeader());
  INLAY_RETURN_IF_ERROR(ReadMetadata());
  INLAY_RETURN_IF_ERROR(ReadAlignment());
  INLAY_RETURN_IF_ERROR(ReadPackedVersions());
  INLAY_RETURN_IF_ERROR(ReadTensorInfos());
  INLAY_RETURN_IF_ERROR(PlaceTensorData());
  return SetTokenizerApart();
}

absl::StatusOr<absl::Span<const uint8_t>> GgufParser::ReadBytes(uint64_t size,
                                                                absl::string_view what) {
  if (size > Left()) {
    return Refuse("the file is truncated: it ends after ", Plural(bytes_.size(), "byte"),
                  ", inside ", what, ", which needs ", Plural(size, "byte"), " from byte ",
                  position_, "; download it again");
  }
  const auto out = bytes_.subspan(position_, static_cast<size_t>(size));
  position_ += static_cast<size_t>(size);
  return out;
}

template <typename T>
absl::StatusOr<T> GgufParser::Read(absl::string_view what) {
  INLAY_ASSIGN_OR_RETURN(const auto bytes, ReadBytes(sizeof(T), what));
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

absl::StatusOr<absl::string_view> GgufParser::ReadString(absl::string_view what) {
  INLAY_ASSIGN_OR_RETURN(const uint64_t size, Read<uint64_t>(what));
  INLAY_ASSIGN_OR_RETURN(const auto bytes, ReadBytes(size, what));
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

absl::StatusOr<absl::string_view> GgufParser::ReadName(absl::string_view what, uint64_t longest) {
  INLAY_ASSIGN_OR_RETURN(const absl::string_view name, ReadString(what));
  if (name.empty()) return Refuse(what, " is empty");
  if (name.size() > longest) {
    return Refuse(what, ", ", QuoteForMessage(name), ", is ", name.size(),
                  " bytes long, more than ", longest);
  }
  if (name.find('\0') != absl::string_view::npos) {
    return Refuse(what, ", ", QuoteForMessage(name), ", contains a NUL byte");
  }
  if (!IsValidUtf8(name)) return Refuse(what, ", ", QuoteForMessage(name), ", is not UTF-8");
  return name;
}

absl::Status GgufParser::ReadHeader() {
  // Fewer bytes than the magic number may be the beginning of it.
  const absl::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  if (!absl::StartsWith(kMagic, text.substr(0, kMagic.size()))) {
    return Refuse("not a GGUF file: ", DescribeForeignFile(bytes_));
  }
  INLAY_RETURN_IF_ERROR(ReadBytes(kMagic.size(), "the magic number").status());
  INLAY_ASSIGN_OR_RETURN(const uint32_t version, Read<uint32_t>("the version"));
  if (version != 0 && (version & 0xFFFF) == 0) {
    return Refuse("its version reads as ", version,
                  ", so it is in big-endian byte order, but only little-endian files are read; "
                  "download or convert the little-endian one");
  }
  if (version == 1) {
    return Refuse(
        "GGUF version 1 is outdated; versions 2 and 3 are read: download a newer file of "
        "the model or convert it again");
  }
  if (version != 2 && version != 3) {
    return Refuse("GGUF version ", version, " is unknown; versions 2 and 3 are read");
  }
  file_.version_ = version;
  INLAY_ASSIGN_OR_RETURN(num_tensors_, Read<uint64_t>("the number of tensors"));
  INLAY_ASSIGN_OR_RETURN(num_entries_, Read<uint64_t>("the number of metadata keys"));
  const uint64_t most_tensors = Left() / kLeastTensorBytes;
  if (num_tensors_ > most_tensors) {
    return Refuse("it claims ", num_tensors_, " tensors, but its ", bytes_.size(),
                  " bytes can describe at most ", most_tensors);
  }
  const uint64_t most_entries = Left() / kLeastEntryBytes;
  if (num_entries_ > most_entries) {
    return Refuse("it claims ", num_entries_, " metadata keys, but its ", bytes_.size(),
                  " bytes can hold at most ", most_entries);
  }
  if (std::max(num_tensors_, num_entries_) > NameIndex::kMostNames) {
    return Refuse("it has ", num_entries_, " metadata keys and ", num_tensors_,
                  " tensors; more than ", NameIndex::kMostNames, " of either are not read");
  }
  return absl::OkStatus();
}

// Values are read in place, many times, and a mapped file may change at any time. So the metadata
// is copied as soon as its size is known, and the copy is checked again.
absl::Status GgufParser::ReadMetadata() {
  const absl::Span<const uint8_t> whole = bytes_;
  const size_t begin = position_;
  INLAY_RETURN_IF_ERROR(CheckEntries());
  const size_t end = position_;
  const absl::Span<const uint8_t> metadata = whole.subspan(begin, end - begin);
  file_.metadata_bytes_.assign(metadata.begin(), metadata.end());
  file_.Forget(metadata);
  bytes_ = file_.metadata_bytes_;
  position_ = 0;
  INLAY_RETURN_IF_ERROR(CheckEntries());
  if (Left() > 0) return Refuse("its metadata changed while it was read");
  bytes_ = whole;
  position_ = end;
  return IndexEntries();
}

absl::Status GgufParser::CheckEntries() {
  for (uint64_t i = 0; i < num_entries_; ++i) {
    const std::string what = absl::StrCat("metadata key ", i);
    INLAY_ASSIGN_OR_RETURN(const absl::string_view key, ReadName(what, kLongestGgufKey));
    INLAY_RETURN_IF_ERROR(CheckValue(key));
  }
  return absl::OkStatus();
}

absl::Status GgufParser::IndexEntries() {
  std::vector<GgufEntry>& entries = file_.metadata_;
  entries.reserve(static_cast<size_t>(num_entries_));
  file_.key_index_.Reset(static_cast<size_t>(num_entries_));
  const uint8_t* entry = file_.metadata_bytes_.data();
  for (size_t i = 0; i < num_entries_; ++i) {
    entries.push_back({GgufValue(entry)});
    entry = entries[i].value.Encoded().end();
    if (!file_.key_index_.Insert(i, [&](size_t j) { return entries[j].key(); }))
      return Refuse("metadata key ", QuoteForMessage(entries[i].key()), " is there twice");
  }
  return absl::OkStatus();
}

absl::Status GgufParser::CheckValue(absl::string_view key) {
  const std::string what = absl::StrCat("the value of key ", QuoteForMessage(key));
  INLAY_ASSIGN_OR_RETURN(const uint32_t id, Read<uint32_t>(what));
  const GgufType type = static_cast<GgufType>(id);
  if (type == GgufType::kArray) return CheckArray(key);
  if (type == GgufType::kString) {
    return ReadString(what).status();
  }
  if (GgufTypeSize(type) == 0) {
    return Refuse(what, " has the unknown type ", id, "; known are 0 to 12");
  }
  return CheckNumbers(type, false, 1, key);
}

absl::Status GgufParser::CheckArray(absl::string_view key) {
  const std::string what = absl::StrCat("the array of key ", QuoteForMessage(key));
  INLAY_ASSIGN_OR_RETURN(const uint32_t id, Read<uint32_t>(what));
  INLAY_ASSIGN_OR_RETURN(const uint64_t count, Read<uint64_t>(what));
  const GgufType type = static_cast<GgufType>(id);
  if (type == GgufType::kArray) return Refuse(what, " holds arrays, which is not supported");
  if (type != GgufType::kString) {
    if (GgufTypeSize(type) == 0) {
      return Refuse(what, " has elements of the unknown type ", id, "; known are 0 to 12");
    }
    return CheckNumbers(type, true, count, key);
  }
  const uint64_t most = Left() / kLeastStringBytes;
  if (count > most) {
    return Refuse(what, " claims ", Plural(count, "string"), ", but the ", Plural(Left(), "byte"),
                  " left can hold at most ", most);
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t size = 0;
    if (Left() >= sizeof(size)) std::memcpy(&size, bytes_.data() + position_, sizeof(size));
    // Reports the error.
    if (Left() < sizeof(size) || Left() - sizeof(size) < size) return ReadString(what).status();
    position_ += sizeof(size) + static_cast<size_t>(size);
  }
  return absl::OkStatus();
}

absl::Status GgufParser::CheckNumbers(GgufType type, bool is_array, uint64_t count,
                                      absl::string_view key) {
  const std::string what = absl::StrCat("the value of key ", QuoteForMessage(key));
  const uint64_t most = Left() / GgufTypeSize(type);
  if (is_array && count > most) {
    return Refuse("the array of key ", QuoteForMessage(key), " claims ", Plural(count, "element"),
                  " of ", GgufTypeName(type), ", but the ", Plural(Left(), "byte"),
                  " left can hold at most ", most);
  }
  INLAY_ASSIGN_OR_RETURN(const auto payload, ReadBytes(count * GgufTypeSize(type), what));
  if (type == GgufType::kBool) {
    const auto bad = std::find_if(payload.begin(), payload.end(), [](uint8_t b) { return b > 1; });
    if (bad != payload.end()) {
      return Refuse(what, " has the byte ", static_cast<uint32_t>(*bad),
                    " for a bool, which must be 0 or 1");
    }
  }
  return absl::OkStatus();
}

absl::Status GgufParser::ReadAlignment() {
  constexpr absl::string_view kKey = "general.alignment";
  file_.alignment_ = kDefaultAlignment;
  const GgufValue* value = file_.Find(kKey);
  if (value == nullptr) return absl::OkStatus();
  if (value->is_array() || value->element_type() != GgufType::kUint32) {
    return file_.WrongType(kKey, *value, "a uint32");
  }
  const uint64_t alignment = *value->UintAt(0);
  if (!IsPowerOfTwo(alignment) || alignment < kLeastAlignment || alignment > kMostAlignment) {
    return Refuse("key '", kKey, "' is ", alignment, ", but must be a power of two from ",
                  kLeastAlignment, " to ", kMostAlignment);
  }
  file_.alignment_ = static_cast<uint32_t>(alignment);
  return absl::OkStatus();
}

absl::Status GgufParser::ReadPackedVersions() {
  if (file_.Find(kPackedVersionKey) == nullptr) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(const uint64_t version, file_.GetUint(kPackedVersionKey));
  INLAY_ASSIGN_OR_RETURN(const uint64_t layout, file_.GetUint(kPackedLayoutKey));
  if (version != kPackedFileVersion || layout != kPackedLayoutVersion) {
    return Refuse("packed by another version of inlay (", version, ".", layout,
                  ", but this one reads ", kPackedFileVersion, ".", kPackedLayoutVersion,
                  "); pack its GGUF file again");
  }
  file_.packed_ = true;
  return absl::OkStatus();
}

absl::Status GgufParser::ReadTensorInfos() {
  for (uint64_t i = 0; i < num_tensors_; ++i) {
    GgufTensor tensor;
    TensorPlace place;
    place.index = file_.tensors_.size();
    const std::string what = absl::StrCat("the name of tensor ", i);
    INLAY_ASSIGN_OR_RETURN(const absl::string_view name, ReadName(what, kLongestGgufTensorName));
    tensor.name = std::string(name);
    INLAY_RETURN_IF_ERROR(ReadTensorShape(&tensor, &place));
    file_.tensors_.push_back(std::move(tensor));
    places_.push_back(place);
  }
  return IndexTensors();
}

absl::Status GgufParser::IndexTensors() {
  file_.tensor_index_.Reset(file_.tensors_.size());
  for (size_t i = 0; i < file_.tensors_.size(); ++i) {
    const auto name_of = [&](size_t j) { return absl::string_view(file_.tensors_[j].name); };
    if (!file_.tensor_index_.Insert(i, name_of))
      return Refuse("tensor ", QuoteForMessage(file_.tensors_[i].name), " is there twice");
  }
  return absl::OkStatus();
}

absl::Status GgufParser::ReadTensorShape(GgufTensor* tensor, TensorPlace* place) {
  const std::string what = absl::StrCat("tensor ", QuoteForMessage(tensor->name));
  INLAY_ASSIGN_OR_RETURN(tensor->n_dims, Read<uint32_t>(what));
  if (tensor->n_dims < 1 || tensor->n_dims > tensor->dims.size()) {
    return Refuse(what, " has ", tensor->n_dims, " dimensions, outside 1 to ", tensor->dims.size());
  }
  for (uint32_t d = 0; d < tensor->n_dims; ++d) {
    INLAY_ASSIGN_OR_RETURN(tensor->dims[d], Read<uint64_t>(what));
    if (tensor->dims[d] == 0) return Refuse(what, " has length 0 in dimension ", d);
  }
  INLAY_ASSIGN_OR_RETURN(const uint32_t type_id, Read<uint32_t>(what));
  INLAY_ASSIGN_OR_RETURN(place->offset, Read<uint64_t>(what));
  const std::optional<TensorForm> form = FindTensorForm(type_id);
  if (!form.has_value() || (form->packed && !file_.packed_)) {
    const std::string name = NameOfUnreadType(type_id);
    return Refuse(
        what, " has type ", type_id, name, ", which is not a weight type that can be read",
        name.empty() ? "" : "; download another quantization of the model, such as Q4_K_M");
  }
  tensor->type = form->type;
  tensor->packed = form->packed;
  const WeightTypeInfo& type = GetWeightTypeInfo(form->type);
  const absl::string_view type_name(type.name.data(), type.name.size());
  if (tensor->dims[0] % type.block_size != 0) {
    return Refuse(what, " has rows of ", tensor->dims[0], " elements, not a multiple of ",
                  type.block_size, " as ", type_name, " needs");
  }
  const std::optional<uint64_t> size =
      TensorBytes(absl::MakeConstSpan(tensor->dims).first(tensor->n_dims), *form);
  if (!size.has_value()) {
    return Refuse(what, " of ", type_name, ", ", tensor->ShapeString(),
                  ", has a size beyond 2^64 bytes");
  }
  place->size = *size;
  return absl::OkStatus();
}

// That the data of all tensors is aligned and lies within the file, if it begins at `start`.
absl::Status GgufParser::CheckPlaces(uint64_t start) {
  uint64_t needed = 0;
  for (const TensorPlace& place : places_) {
    const std::string what =
        absl::StrCat("the data of tensor ", QuoteForMessage(file_.tensors_[place.index].name));
    if (place.offset % file_.alignment_ != 0) {
      return Refuse(what, " has offset ", place.offset, ", not a multiple of the alignment ",
                    file_.alignment_);
    }
    uint64_t end = 0;
    if (__builtin_add_overflow(place.offset, place.size, &end) ||
        __builtin_add_overflow(end, start, &end)) {
      return Refuse(what, " takes ", Plural(place.size, "byte"), " at offset ", place.offset,
                    ", beyond 2^64 bytes");
    }
    needed = std::max(needed, end);
  }
  if (needed > bytes_.size()) {
    return Refuse("the file is truncated: it has ", Plural(bytes_.size(), "byte"),
                  ", but its tensors need at least ", needed,
                  "; download it again, or join it if it was cut into pieces");
  }
  return absl::OkStatus();
}

absl::Status GgufParser::PlaceTensorData() {
  if (places_.empty()) return absl::OkStatus();
  const uint64_t start = RoundUp(position_, file_.alignment_);
  INLAY_RETURN_IF_ERROR(CheckPlaces(start));
  for (const TensorPlace& place : places_) {
    GgufTensor& tensor = file_.tensors_[place.index];
    const std::string what = absl::StrCat("the data of tensor ", QuoteForMessage(tensor.name));
    tensor.data =
        bytes_.subspan(static_cast<size_t>(start + place.offset), static_cast<size_t>(place.size));
    if (tensor.packed && reinterpret_cast<uintptr_t>(tensor.data.data()) % kTileAlignment != 0) {
      return Refuse(what, " is packed, but at no multiple of ", kTileAlignment, " bytes");
    }
  }
  std::sort(places_.begin(), places_.end(),
            [](const TensorPlace& a, const TensorPlace& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < places_.size(); ++i) {
    const TensorPlace& before = places_[i - 1];
    if (before.offset + before.size > places_[i].offset) {
      return Refuse("the data of tensor ", QuoteForMessage(file_.tensors_[before.index].name),
                    " ends at offset ", before.offset + before.size, ", inside that of tensor ",
                    QuoteForMessage(file_.tensors_[places_[i].index].name), " at ",
                    places_[i].offset);
    }
  }
  return absl::OkStatus();
}

// What a packed file holds of the tokenizer is no weight.
absl::Status GgufParser::SetTokenizerApart() {
  std::vector<GgufTensor>& tensors = file_.tensors_;
  if (!file_.packed_ || tensors.empty()) return absl::OkStatus();
  const GgufTensor& last = tensors.back();
  if (last.name != kPackedTokenizerTensor || last.packed || last.type != WeightType::kF32)
    return absl::OkStatus();
  file_.tokenizer_tables_ = last.data;
  tensors.pop_back();
  return IndexTensors();
}

absl::StatusOr<GgufFile> GgufParser::Open(const std::string& path) {
  GgufFile file;
  file.name_ = path;
  INLAY_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  const absl::Span<const uint8_t> all = mapped.bytes();
  file.files_.push_back({path, std::move(mapped)});
  const absl::StatusOr<absl::Span<const uint8_t>> bundled = FindBundle(all, path);
  absl::Status status =
      bundled.ok() ? GgufParser(bundled->empty() ? all : *bundled, &file).Run() : bundled.status();
  if (bundled.ok() && bundled->empty() && IsBundledProgram(all)) {
    status = absl::DataLossError(absl::StrCat(
        path, " was made with a model inside, which is missing: the file was cut or stripped"));
  }
  // Checked before the parser's status, since a file that changed can cause any error there.
  INLAY_RETURN_IF_ERROR(file.CheckWhole());
  if (!status.ok()) return status;
  return file;
}

absl::StatusOr<GgufFile> GgufParser::Parse(absl::Span<const uint8_t> bytes,
                                           absl::string_view name) {
  GgufFile file;
  file.name_ = std::string(name);
  INLAY_RETURN_IF_ERROR(GgufParser(bytes, &file).Run());
  return file;
}

}  // namespace inlay
