#include "gemma_like/model/metadata_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "configs/metadata.h"

namespace inlay {

MetadataCheck::MetadataCheck(const GgufFile& file, absl::string_view config_name,
                             absl::string_view architecture)
    : file_(file), config_name_(config_name), architecture_(architecture) {}

std::string MetadataCheck::FullKey(std::string_view key) const {
  return absl::StrCat(architecture_, ".", ToAbsl(key));
}

void MetadataCheck::Report(std::string_view key, absl::string_view found,
                           absl::string_view wanted) {
  differences_.push_back(
      absl::StrCat(FullKey(key), " is ", found, " but config ", config_name_, " has ", wanted));
}

const GgufValue* MetadataCheck::FindOrReport(std::string_view key, bool absent_is_fine,
                                             absl::string_view wanted) {
  ++checked_;
  const GgufValue* value = file_.Find(FullKey(key));
  if (value == nullptr && !absent_is_fine) Report(key, "missing", wanted);
  return value;
}

void MetadataCheck::Int(std::string_view key, int64_t value, std::optional<int64_t> absent) {
  const std::string wanted = absl::StrCat(value);
  const GgufValue* found = FindOrReport(key, absent == value, wanted);
  if (found == nullptr) return;
  // Some writers store one value per layer where all are equal.
  bool equal = found->size() > 0;
  for (size_t i = 0; i < found->size(); ++i) equal = equal && found->IntAt(i) == value;
  if (!equal) Report(key, found->ToString(), wanted);
}

void MetadataCheck::Float(std::string_view key, double value, std::optional<double> absent) {
  const std::string wanted = absl::StrCat(value);
  const GgufValue* found = FindOrReport(key, absent == value, wanted);
  if (found == nullptr) return;
  const std::optional<double> number = found->is_array() ? std::nullopt : found->FloatAt(0);
  if (!number.has_value() || static_cast<float>(*number) != static_cast<float>(value)) {
    Report(key, found->ToString(), wanted);
  }
}

void MetadataCheck::Flag(std::string_view key, bool value, std::optional<bool> absent) {
  const std::string wanted = value ? "true" : "false";
  const GgufValue* found = FindOrReport(key, absent == value, wanted);
  if (found == nullptr) return;
  if (found->is_array() || found->BoolAt(0) != value) Report(key, found->ToString(), wanted);
}

void MetadataCheck::VocabSize(int least) {
  constexpr std::string_view kKey = "vocab_size";
  const std::string wanted = absl::StrCat("at least ", least);
  // The embedding says how many rows there are, since tools that add tokens may leave the key
  // unchanged; without an embedding, binding fails.
  if (const GgufValue* found = FindOrReport(kKey, /*absent_is_fine=*/true, wanted)) {
    const std::optional<int64_t> rows = found->is_array() ? std::nullopt : found->IntAt(0);
    if (!rows.has_value() || *rows < least) return Report(kKey, found->ToString(), wanted);
  }
  const GgufTensor* embedding = file_.FindTensor("token_embd.weight");
  if (embedding != nullptr && embedding->dims[1] < static_cast<uint64_t>(least)) {
    Report(kKey, absl::StrCat(embedding->dims[1], " (the rows of token_embd.weight)"), wanted);
  }
}

void MetadataCheck::Text(std::string_view key, std::string_view value,
                         std::optional<std::string_view> absent) {
  const std::string wanted = absl::StrCat("'", ToAbsl(value), "'");
  const GgufValue* found = FindOrReport(key, absent == value, wanted);
  if (found == nullptr) return;
  if (found->is_array() || found->StringAt(0) != ToAbsl(value))
    Report(key, found->ToString(), wanted);
}

void MetadataCheck::CheckInts(std::string_view key, absl::Span<const int64_t> values) {
  const auto append = [](std::string* out, int64_t value) {
    absl::StrAppend(out, value == kAnyValue ? "any" : absl::StrCat(value));
  };
  const std::string wanted = absl::StrCat("[", absl::StrJoin(values, ", ", append), "]");
  const GgufValue* found = FindOrReport(key, false, wanted);
  if (found == nullptr) return;
  bool equal = found->is_array() ? found->size() == values.size() : true;
  for (size_t i = 0; equal && i < values.size(); ++i) {
    equal = values[i] == kAnyValue || found->IntAt(found->is_array() ? i : 0) == values[i];
  }
  if (!equal) Report(key, found->ToString(values.size()), wanted);
}

void MetadataCheck::CheckTexts(std::string_view key, absl::Span<const std::string_view> values) {
  const std::string wanted = absl::StrCat(
      "[",
      absl::StrJoin(values, ", ",
                    [](std::string* out, std::string_view s) { absl::StrAppend(out, ToAbsl(s)); }),
      "]");
  const GgufValue* found = FindOrReport(key, false, wanted);
  if (found == nullptr) return;
  bool equal = found->is_array() && found->size() == values.size();
  for (size_t i = 0; equal && i < values.size(); ++i)
    equal = found->StringAt(i) == ToAbsl(values[i]);
  if (!equal) Report(key, found->ToString(values.size()), wanted);
}

}  // namespace inlay
