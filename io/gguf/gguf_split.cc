#include "io/gguf/gguf_split.h"

#include <unistd.h>

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_parser.h"

namespace inlay {
namespace {

constexpr absl::string_view kExtension = ".gguf";
constexpr absl::string_view kOf = "-of-";
constexpr size_t kDigits = 5;

bool TakeSuffix(absl::string_view* text, absl::string_view suffix) {
  if (!absl::EndsWith(*text, suffix)) return false;
  text->remove_suffix(suffix.size());
  return true;
}

// Removes five digits from the end of `text` and returns their number.
std::optional<size_t> TakeNumber(absl::string_view* text) {
  if (text->size() < kDigits) return std::nullopt;
  const absl::string_view digits = text->substr(text->size() - kDigits);
  size_t number = 0;
  for (const char c : digits) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
    number = number * 10 + static_cast<size_t>(c - '0');
  }
  text->remove_suffix(kDigits);
  return number;
}

std::string Suffix(size_t part, size_t count) { return Format("-%05d-of-%05d.gguf", part, count); }

// What the metadata of a part says.
struct Place {
  uint64_t number = 0;  // from 0
  uint64_t count = 0;
  std::optional<uint64_t> tensors;  // of all parts
};

std::string Name(const Place& place) {
  return absl::StrCat("part ", place.number + 1, " of ", place.count);
}

// Nothing for a whole file.
absl::StatusOr<std::optional<Place>> PlaceOf(const GgufFile& file) {
  if (file.Find(kSplitCountKey) == nullptr) return std::optional<Place>();
  Place place;
  INLAY_ASSIGN_OR_RETURN(place.count, file.GetUint(kSplitCountKey));
  if (place.count <= 1) return std::optional<Place>();
  INLAY_ASSIGN_OR_RETURN(place.number, file.GetUint(kSplitNumberKey));
  if (place.number >= place.count) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), ": key '", kSplitNumberKey, "' is ",
                                                   place.number, ", but '", kSplitCountKey,
                                                   "' is only ", place.count));
  }
  if (file.Find(kSplitTensorsKey) != nullptr) {
    INLAY_ASSIGN_OR_RETURN(place.tensors, file.GetUint(kSplitTensorsKey));
  }
  if (file.packed()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(), ": it is both packed and split, but packed models are single files"));
  }
  return std::optional<Place>(place);
}

// A part other than the one that was opened first, whose place is `first`.
absl::StatusOr<GgufFile> OpenPart(const std::string& path, uint64_t number, const Place& first,
                                  absl::string_view first_path) {
  absl::StatusOr<GgufFile> part = GgufParser::Open(path);
  const std::string wanted = Name({.number = number, .count = first.count, .tensors = {}});
  if (absl::IsNotFound(part.status())) {
    return absl::NotFoundError(absl::StrCat(first_path, " is ", Name(first),
                                            " of a split model, but ", wanted, ", ", path,
                                            ", is missing; all parts must be in one folder"));
  }
  INLAY_RETURN_IF_ERROR(part.status());
  INLAY_ASSIGN_OR_RETURN(const std::optional<Place> place, PlaceOf(*part));
  if (!place.has_value() || place->number != number || place->count != first.count) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": it must be ", wanted,
                                                   " of a split model, but it says that it is ",
                                                   place.has_value() ? Name(*place) : "whole"));
  }
  if (place->tensors != first.tensors) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": key '", kSplitTensorsKey,
                                                   "' differs from that of ", first_path,
                                                   ", so they are not parts of the same model"));
  }
  return part;
}

}  // namespace

std::optional<SplitName> SplitName::Parse(absl::string_view path) {
  SplitName name;
  if (!TakeSuffix(&path, kExtension)) return std::nullopt;
  const std::optional<size_t> count = TakeNumber(&path);
  if (!count.has_value() || !TakeSuffix(&path, kOf)) return std::nullopt;
  const std::optional<size_t> number = TakeNumber(&path);
  if (!number.has_value() || !TakeSuffix(&path, "-")) return std::nullopt;
  if (*number < 1 || *number > *count) return std::nullopt;
  return SplitName{.prefix = std::string(path), .number = *number, .count = *count};
}

std::string SplitName::PathOf(size_t part) const {
  return absl::StrCat(prefix, Suffix(part, count));
}

std::vector<std::string> GgufPaths(const std::string& path) {
  std::vector<std::string> paths = {path};
  const std::optional<SplitName> name = SplitName::Parse(path);
  if (!name.has_value()) return paths;
  for (size_t part = 1; part <= name->count; ++part) {
    if (part == name->number) continue;
    std::string other = name->PathOf(part);
    if (access(other.c_str(), F_OK) == 0) paths.push_back(std::move(other));
  }
  return paths;
}

// Joins the parts of a split model to one GgufFile: the metadata of the first, the tensors of all.
class GgufJoiner {
 public:
  // `parts` in order, at least one. `name` is the result's.
  static absl::StatusOr<GgufFile> Join(std::vector<GgufFile> parts, const std::string& name) {
    GgufFile whole = std::move(parts[0]);
    whole.name_ = name;
    std::vector<size_t> ends = {whole.tensors_.size()};  // in whole.tensors_, of each part's
    for (size_t i = 1; i < parts.size(); ++i) {
      GgufFile& part = parts[i];
      whole.tensors_.insert(whole.tensors_.end(), part.tensors_.begin(), part.tensors_.end());
      ends.push_back(whole.tensors_.size());
      whole.files_.push_back(std::move(part.files_[0]));
      whole.file_size_ += part.file_size_;
    }
    DropSplitKeys(&whole);
    INLAY_RETURN_IF_ERROR(IndexTensors(ends, &whole));
    return whole;
  }

 private:
  // They say nothing of the whole, and what copies its metadata must not copy them.
  static void DropSplitKeys(GgufFile* whole) {
    std::vector<GgufEntry>& entries = whole->metadata_;
    std::erase_if(entries, [](const GgufEntry& entry) {
      return entry.key() == kSplitNumberKey || entry.key() == kSplitCountKey ||
             entry.key() == kSplitTensorsKey;
    });
    whole->key_index_.Reset(entries.size());
    for (size_t i = 0; i < entries.size(); ++i)
      whole->key_index_.Insert(i, [&](size_t j) { return entries[j].key(); });
  }

  // `ends`: where in the list the tensors of each file end.
  static absl::Status IndexTensors(const std::vector<size_t>& ends, GgufFile* whole) {
    const std::vector<GgufTensor>& tensors = whole->tensors_;
    const auto name_of = [&](size_t i) { return absl::string_view(tensors[i].name); };
    const auto path_of = [&](size_t i) {
      size_t file = 0;
      while (i >= ends[file]) ++file;
      return absl::string_view(whole->files_[file].path);
    };
    whole->tensor_index_.Reset(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (whole->tensor_index_.Insert(i, name_of)) continue;
      const size_t before = *whole->tensor_index_.Find(tensors[i].name, name_of);
      return absl::InvalidArgumentError(
          absl::StrCat(path_of(i), ": tensor ", QuoteForMessage(tensors[i].name), " is also in ",
                       path_of(before), ", another part of the model"));
    }
    return absl::OkStatus();
  }
};

// GgufFile's functions that know of split models are here, so that gguf.cc and the parser, which
// this depends on, see one file only.
absl::StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  INLAY_ASSIGN_OR_RETURN(GgufFile opened, GgufParser::Open(path));
  INLAY_ASSIGN_OR_RETURN(const std::optional<Place> place, PlaceOf(opened));
  if (!place.has_value()) return opened;
  const std::optional<SplitName> name = SplitName::Parse(path);
  if (!name.has_value() || name->number != place->number + 1 || name->count != place->count) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is ", Name(*place), " of a split model, so its name must end in ",
        Suffix(static_cast<size_t>(place->number + 1), static_cast<size_t>(place->count)),
        " for the other parts to be found"));
  }
  std::vector<GgufFile> parts;
  for (size_t i = 0; i < place->count; ++i) {
    if (i == place->number) {
      parts.push_back(std::move(opened));
      continue;
    }
    INLAY_ASSIGN_OR_RETURN(GgufFile part, OpenPart(name->PathOf(i + 1), i, *place, path));
    parts.push_back(std::move(part));
  }
  INLAY_ASSIGN_OR_RETURN(GgufFile whole, GgufJoiner::Join(std::move(parts), path));
  if (place->tensors.has_value() && whole.tensors().size() != *place->tensors) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the ", place->count, " parts of the model have ", whole.tensors().size(),
        " tensors, but key '", kSplitTensorsKey, "' is ", *place->tensors));
  }
  return whole;
}

absl::StatusOr<GgufFile> GgufFile::Parse(absl::Span<const uint8_t> bytes, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(GgufFile file, GgufParser::Parse(bytes, name));
  INLAY_ASSIGN_OR_RETURN(const std::optional<Place> place, PlaceOf(file));
  if (place.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": it is ", Name(*place),
                     " of a split model, which can only be opened by the path of a file"));
  }
  return file;
}

}  // namespace inlay
