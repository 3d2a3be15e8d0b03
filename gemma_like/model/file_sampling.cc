#include "gemma_like/model/file_sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "gemma_like/generation/sampler.h"
#include "io/gguf/gguf.h"

namespace inlay {
namespace {

// Writers differ in the types that they give to these keys.
std::optional<double> NumberOf(const GgufValue& value) {
  if (value.is_array()) return std::nullopt;
  if (const auto integer = value.IntAt(0)) return static_cast<double>(*integer);
  return value.FloatAt(0);
}

// The nearest that a float can be: the bounds of all settings are far within.
float FloatOf(double number) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(number, -kMost, kMost));
}

std::optional<int> IntegerOf(double number) {
  if (number != std::floor(number)) return std::nullopt;  // NaN, too
  constexpr double kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::clamp(number, -kMost, kMost));
}

// Sets what the key `name`, without its prefix, stands for. False where it stands for nothing that
// SamplingDefaults has, or where `number` has a fraction and must have none.
bool Set(absl::string_view name, double number, SamplingDefaults& defaults) {
  if (name == "temp") {
    defaults.temperature = FloatOf(number);
  } else if (name == "top_p") {
    defaults.top_p = FloatOf(number);
  } else if (name == "min_p") {
    defaults.min_p = FloatOf(number);
  } else if (name == "penalty_repeat") {
    defaults.repeat_penalty = FloatOf(number);
  } else if (name == "top_k" || name == "penalty_last_n") {
    const std::optional<int> integer = IntegerOf(number);
    if (!integer.has_value()) return false;
    if (name == "top_k") {
      defaults.top_k = std::max(*integer, 0);  // below 0 means all, too
    } else {                                   // -1: the whole context
      defaults.repeat_last_n = *integer == -1 ? std::numeric_limits<int>::max() : *integer;
    }
  } else {
    return false;
  }
  return true;
}

// Whether the key, without its prefix, changes nothing where Inlay does not have its sampler: the
// sampler is off by this value, or is switched on by another key, which is then named.
bool ChangesNothing(absl::string_view name, std::optional<double> number) {
  if (name == "mirostat" || name == "xtc_probability") return number == 0.0;
  return name == "mirostat_tau" || name == "mirostat_eta" || name == "xtc_threshold";
}

}  // namespace

FileSampling ReadFileSampling(const GgufFile& file, const SamplingDefaults& config) {
  FileSampling sampling{.defaults = config, .ignored_keys = {}};
  for (const GgufEntry& entry : file.metadata()) {
    absl::string_view name = entry.key();
    if (!absl::ConsumePrefix(&name, kFileSamplingPrefix)) continue;
    const std::optional<double> number = NumberOf(entry.value);
    if (ChangesNothing(name, number)) continue;
    SamplingDefaults changed = sampling.defaults;
    std::string problem = entry.value.ToString();
    if (number.has_value() && Set(name, *number, changed)) {
      const absl::Status status = CheckSampling(SamplingOptions::From(changed));
      if (status.ok()) {
        sampling.defaults = changed;
        continue;
      }
      problem = std::string(status.message());
    }
    sampling.ignored_keys.push_back(absl::StrCat(PrintableName(entry.key()), " (", problem, ")"));
  }
  return sampling;
}

}  // namespace inlay
