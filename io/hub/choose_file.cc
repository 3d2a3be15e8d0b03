#include "io/hub/choose_file.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/plural.h"
#include "base/printable.h"
#include "io/gguf/gguf_split.h"

namespace inlay {
namespace {

constexpr absl::string_view kUsualType = "Q4_K_M";
constexpr int kMostBits = 64;                  // per weight, that a name may claim
constexpr absl::string_view kDynamic = "UD-";  // before a type, in names of files

bool IsTypeCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Whether a word in capitals is one of the names of types: F32, F16, BF16, and those with a number
// of bits after Q, IQ, TQ, MXFP or NVFP.
bool IsTypeWord(absl::string_view word) {
  for (const absl::string_view name : {"F32", "F16", "BF16", "FP16", "FP32"}) {
    if (word == name) return true;
  }
  for (const absl::string_view prefix : {"Q", "IQ", "TQ", "MXFP", "NVFP"}) {
    absl::string_view rest = word;
    if (absl::ConsumePrefix(&rest, prefix) && !rest.empty() && IsDigit(rest.front()) &&
        (rest.size() == 1 || rest[1] == '_'))
      return true;
  }
  return false;
}

// Approximate hundredths of a bit per weight, for comparisons only: the number in the type's name
// and what its suffix adds. Nothing for names without a number.
std::optional<int> BitsOf(absl::string_view type) {
  absl::ConsumePrefix(&type, kDynamic);
  const size_t at = type.find_first_of("0123456789");
  if (at == absl::string_view::npos) return std::nullopt;
  const size_t end = std::min(type.find_first_not_of("0123456789", at), type.size());
  int bits = 0;
  if (!absl::SimpleAtoi(type.substr(at, end - at), &bits) || bits > kMostBits) return std::nullopt;
  static constexpr std::pair<absl::string_view, int> kSuffixes[] = {
      {"", 0},      {"_0", 50},    {"_1", 100},    {"_K", 60},   {"_K_S", 50},
      {"_K_M", 85}, {"_K_L", 100}, {"_K_XL", 110}, {"_XXS", 10}, {"_XS", 30},
      {"_S", 40},   {"_M", 70},    {"_NL", 50},
  };
  for (const auto& [suffix, more] : kSuffixes) {
    if (type.substr(end) == suffix) return 100 * bits + more;
  }
  return 100 * bits + 50;
}

// Without ".gguf" and the number of a part, in capitals.
std::string Stem(absl::string_view path) {
  const auto split = SplitName::Parse(path);
  return absl::AsciiStrToUpper(split.has_value() ? absl::string_view(split->prefix)
                                                 : absl::StripSuffix(path, ".gguf"));
}

// A model as one file or several.
struct Candidate {
  std::string name;           // the path of the file, or of the first part
  std::string type;           // QuantizationOf(name)
  std::vector<size_t> files;  // by part
  size_t parts = 1;
};

std::vector<Candidate> FindCandidates(absl::Span<const std::string> paths) {
  std::vector<Candidate> candidates;
  std::map<std::pair<std::string, size_t>, std::map<size_t, size_t>> splits;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!IsModelPath(paths[i])) continue;
    if (const auto split = SplitName::Parse(paths[i]); split.has_value()) {
      splits[{split->prefix, split->count}].emplace(split->number, i);
    } else {
      candidates.push_back({paths[i], QuantizationOf(paths[i]), {i}, 1});
    }
  }
  for (const auto& [key, parts] : splits) {
    Candidate candidate = {SplitName{key.first, 1, key.second}.PathOf(1), "", {}, key.second};
    candidate.type = QuantizationOf(candidate.name);
    for (const auto& [number, file] : parts) candidate.files.push_back(file);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

// Whether `type`, in capitals, stands in the path as a word of its own.
bool HasWord(absl::string_view path, absl::string_view type) {
  const std::string stem = Stem(path);
  for (size_t at = stem.find(type.data(), 0, type.size()); at != std::string::npos;
       at = stem.find(type.data(), at + 1, type.size())) {
    const bool begins = at == 0 || !IsTypeCharacter(stem[at - 1]);
    const size_t end = at + type.size();
    if (begins && (end == stem.size() || !IsTypeCharacter(stem[end]))) return true;
  }
  return false;
}

// How well the candidate is what `type` names: 0 exactly, 1 but for "UD-", 2 by a word of its path;
// nothing where it is not. `wanted` is `type` in capitals.
std::optional<int> MatchOf(const Candidate& candidate, absl::Span<const std::string> paths,
                           absl::string_view type, absl::string_view wanted) {
  if (type.empty()) return 0;
  if (absl::EndsWith(type, ".gguf")) {
    const bool is_it = std::any_of(candidate.files.begin(), candidate.files.end(),
                                   [&](size_t i) { return paths[i] == type; });
    return is_it ? std::optional<int>(0) : std::nullopt;
  }
  if (candidate.type == wanted) return 0;
  if (candidate.type == absl::StrCat(kDynamic, wanted)) return 1;
  return HasWord(candidate.name, wanted) ? std::optional<int>(2) : std::nullopt;
}

// The distance from the usual choice, to be compared; the least is the best.
std::pair<int, int> Distance(absl::string_view type) {
  const std::optional<int> bits = type.empty() ? std::nullopt : BitsOf(type);
  if (!bits.has_value()) return {std::numeric_limits<int>::max(), 0};
  // Of two that are equally far the one with more bits.
  return {std::abs(*bits - *BitsOf(kUsualType)), -*bits};
}

std::string TypesOf(const std::vector<Candidate>& candidates) {
  constexpr size_t kMostNamed = 40;
  std::set<std::string> types;
  for (const Candidate& candidate : candidates)
    types.insert(PrintableName(candidate.type.empty() ? candidate.name : candidate.type));
  const bool all = types.size() <= kMostNamed;
  while (types.size() > kMostNamed) types.erase(std::prev(types.end()));
  return absl::StrCat(absl::StrJoin(types, ", "), all ? "" : ", ...");
}

}  // namespace

std::string QuantizationOf(absl::string_view path) {
  const std::string stem = Stem(path);
  // The last word that is a type: names begin with the model's, whose size may look like one.
  for (size_t end = stem.size(); end > 0;) {
    size_t begin = end;
    while (begin > 0 && IsTypeCharacter(stem[begin - 1])) --begin;
    // A word may also begin after an underscore: model_Q8_0.
    for (size_t at = begin; at < end; ++at) {
      if (at != begin && stem[at - 1] != '_') continue;
      const absl::string_view word = absl::string_view(stem).substr(at, end - at);
      if (!IsTypeWord(word)) continue;
      const bool dynamic = absl::EndsWith(absl::string_view(stem).substr(0, at), kDynamic);
      return absl::StrCat(dynamic ? kDynamic : "", word);
    }
    end = begin == 0 ? 0 : begin - 1;
  }
  return "";
}

bool IsModelPath(absl::string_view path) {
  if (!absl::EndsWithIgnoreCase(path, ".gguf")) return false;
  const std::string file = absl::AsciiStrToLower(path.substr(path.rfind('/') + 1));
  for (const absl::string_view other :
       {"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"}) {
    if (absl::StrContains(file, other)) return false;
  }
  return true;
}

std::optional<std::string> ListedType(absl::string_view path) {
  if (!IsModelPath(path)) return std::nullopt;
  const auto split = SplitName::Parse(path);
  if (split.has_value() && split->number != 1) return std::nullopt;
  std::string type = QuantizationOf(path);
  return type.empty() ? std::string(path) : type;
}

absl::StatusOr<std::vector<size_t>> ChooseFiles(absl::Span<const std::string> paths,
                                                absl::string_view type, absl::string_view who) {
  const std::vector<Candidate> candidates = FindCandidates(paths);
  if (candidates.empty()) return absl::NotFoundError(absl::StrCat(who, " has no model in GGUF"));
  const std::string wanted = absl::AsciiStrToUpper(type);
  const Candidate* best = nullptr;
  // Compared in this order: the match, the distance, the length of the path, the path.
  using Key = std::tuple<int, std::pair<int, int>, size_t, absl::string_view>;
  Key best_key;
  for (const Candidate& candidate : candidates) {
    const std::optional<int> match = MatchOf(candidate, paths, type, wanted);
    if (!match.has_value()) continue;
    const Key key = {*match, type.empty() ? Distance(candidate.type) : std::pair(0, 0),
                     candidate.name.size(), candidate.name};
    if (best != nullptr && best_key <= key) continue;
    best = &candidate;
    best_key = key;
  }
  if (best == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(who, " has no ", QuoteForMessage(type), "; it has ", TypesOf(candidates)));
  }
  if (best->files.size() != best->parts) {
    return absl::DataLossError(absl::StrCat(who, " has ", best->files.size(), " of the ",
                                            Plural(best->parts, "part"), " of ",
                                            QuoteForMessage(best->name)));
  }
  return best->files;
}

}  // namespace inlay
