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

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "configs/config.h"
#include "gemma_like/strings.h"
#include "io/gguf/gguf.h"

namespace inlay {

// The visitor that a config's Metadata() is given to compare a file; see configs/metadata.h.
// Collects one sentence for each key that differs.
class MetadataCheck {
 public:
  MetadataCheck(const GgufFile& file, absl::string_view config_name,
                absl::string_view architecture);

  void Int(std::string_view key, int64_t value, std::optional<int64_t> absent = std::nullopt);
  // Equal as float, which is how files store it.
  void Float(std::string_view key, double value, std::optional<double> absent = std::nullopt);
  void Flag(std::string_view key, bool value, std::optional<bool> absent = std::nullopt);
  void Text(std::string_view key, std::string_view value,
            std::optional<std::string_view> absent = std::nullopt);
  void VocabSize(int least);
  template <size_t n>
  void Ints(std::string_view key, const std::array<int64_t, n>& values) {
    CheckInts(key, values);
  }
  template <size_t n>
  void Texts(std::string_view key, const std::array<std::string_view, n>& values) {
    CheckTexts(key, values);
  }

  // How many keys were compared, and what differs.
  int checked() const { return checked_; }
  const std::vector<std::string>& differences() const { return differences_; }

 private:
  void CheckInts(std::string_view key, absl::Span<const int64_t> values);
  void CheckTexts(std::string_view key, absl::Span<const std::string_view> values);
  // The value of a key, or nullptr; a missing key is a difference unless `absent` equals `wanted`.
  const GgufValue* FindOrReport(std::string_view key, bool absent_is_fine,
                                absl::string_view wanted);
  void Report(std::string_view key, absl::string_view found, absl::string_view wanted);
  std::string FullKey(std::string_view key) const;

  const GgufFile& file_;
  std::string config_name_;
  std::string architecture_;
  int checked_ = 0;
  std::vector<std::string> differences_;
};

// One sentence for each difference between the file's metadata and the config.
template <ModelConfig Config>
std::vector<std::string> MetadataDifferences(const GgufFile& file) {
  MetadataCheck check(file, ToAbsl(Config::kName), ToAbsl(Config::kArchitecture));
  Config::template Metadata<Config>(check);
  return check.differences();
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_METADATA_CHECK_H_
