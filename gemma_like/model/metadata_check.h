// Compares a file's metadata with a config.
#ifndef INLAY_GEMMA_LIKE_MODEL_METADATA_CHECK_H_
#define INLAY_GEMMA_LIKE_MODEL_METADATA_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "configs/config.h"
#include "gemma_like/strings.h"
#include "io/gguf/gguf.h"

namespace inlay {

// How a file fits a config: one sentence for each key that differs, the keys that are known to be
// wrong in some files and were ignored, with their values, and one sentence for each tensor that a
// model of this config has and that is replaced or left out since the file lacks it.
struct MetadataFit {
  std::vector<std::string> differences;
  std::vector<std::string> ignored_keys;
  std::vector<std::string> notes;
};

// The visitor that a config's Metadata() is given to compare a file; see configs/metadata.h. Where
// a key has other names in the files of other converters, each that the file has is compared.
class MetadataCheck {
 public:
  MetadataCheck(const GgufFile& file, absl::string_view config_name,
                absl::string_view architecture);

  void Int(std::string_view key, int64_t value, std::optional<int64_t> absent = std::nullopt);
  // Equal as float, which is how files store it.
  void Float(std::string_view key, double value, std::optional<double> absent = std::nullopt,
             std::optional<double> mistaken = std::nullopt);
  void Flag(std::string_view key, bool value, std::optional<bool> absent = std::nullopt);
  void Text(std::string_view key, std::string_view value,
            std::optional<std::string_view> absent = std::nullopt,
            std::optional<std::string_view> same = std::nullopt);
  void Period(std::string_view key, int layers, int period,
              std::optional<int> absent = std::nullopt);
  void VocabSize(int least);
  template <size_t n>
  void Ints(std::string_view key, const std::array<int64_t, n>& values) {
    CheckInts(key, values);
  }
  template <size_t n>
  void Flags(std::string_view key, const std::array<bool, n>& values) {
    CheckFlags(key, values);
  }
  template <size_t n>
  void Sections(std::string_view key, const std::array<int64_t, n>& values) {
    CheckSections(key, values);
  }
  template <size_t n>
  void Texts(std::string_view key, const std::array<std::string_view, n>& values) {
    CheckTexts(key, values);
  }

  // A key that no config fixes: the longest conversation in tokens. A file may lack it.
  void ContextLength();
  // That the file lacks output.weight, or the matrices dense_2 and dense_3, of a model with them.
  void OwnOutput();
  void DenseMatrices();

  // How many keys were compared, and the result.
  int checked() const { return checked_; }
  const MetadataFit& fit() const { return fit_; }

 private:
  using Equal = absl::FunctionRef<bool(const GgufValue&)>;

  void CheckInts(std::string_view key, absl::Span<const int64_t> values);
  void CheckFlags(std::string_view key, absl::Span<const bool> values);
  void CheckSections(std::string_view key, absl::Span<const int64_t> values);
  void CheckTexts(std::string_view key, absl::Span<const std::string_view> values);
  // Reports the key's values that are not equal, with at most `shown` elements of each, and a
  // missing key unless that is fine.
  void Compare(std::string_view key, bool absent_is_fine, absl::string_view wanted, Equal equal,
               size_t shown = 8);
  void Report(absl::string_view full_key, absl::string_view found, absl::string_view wanted);
  void Ignore(const GgufValue& value);
  // Whether the first layer's MLP has `hidden` rows.
  bool HasHidden(int64_t hidden) const;
  std::string FullKey(absl::string_view key) const;

  const GgufFile& file_;
  std::string config_name_;
  std::string architecture_;
  int checked_ = 0;
  MetadataFit fit_;
};

template <ModelConfig Config>
MetadataFit CompareMetadata(const GgufFile& file) {
  MetadataCheck check(file, ToAbsl(Config::kName), ToAbsl(Config::kArchitecture));
  check.ContextLength();
  Config::template Metadata<Config>(check);
  if constexpr (!Config::kTiedOutput) check.OwnOutput();
  if constexpr (Config::kEmbedding.dense_dim > 0) check.DenseMatrices();
  return check.fit();
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_METADATA_CHECK_H_
