#include "gemma_like/model/metadata_check.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "configs/metadata.h"
#include "gemma_like/model/ignored.h"

namespace inlay {
namespace {

// Names of the same key: that of llama.cpp's converter, and that of Ollama's or of older files.
struct OtherKey {
  absl::string_view usual;
  absl::string_view other;
};
constexpr OtherKey kOtherKeys[] = {
    {"rope.freq_base", "rope.global.freq_base"},
    {"rope.freq_base_swa", "rope.local.freq_base"},
    {"rope.scaling.factor", "rope.scale_linear"},
    {"rope.dimension_sections", "mrope_sections"},
    {"rope.dimension_sections", "rope.mrope_section"},
};

// Some writers store one value per layer where all are equal.
bool AllEqual(const GgufValue& found, int64_t value) {
  bool equal = found.size() > 0;
  for (size_t i = 0; equal && i < found.size(); ++i) equal = found.IntAt(i) == value;
  return equal;
}

// A flag, which some writers store as the integer 0 or 1.
std::optional<bool> FlagAt(const GgufValue& found, size_t i) {
  const std::optional<int64_t> number = found.IntAt(i);
  if (number == 0 || number == 1) return number == 1;
  return found.BoolAt(i);
}

// Whether the flags are those of MetadataCheck::Period with this number.
bool IsPeriodOf(const GgufValue& found, absl::Span<const bool> flags) {
  const std::optional<uint64_t> period = found.UintAt(0);
  // Of one layer it would be a flag for all.
  bool equal = period.has_value() && *period > 1;
  for (size_t i = 0; equal && i < flags.size(); ++i) equal = flags[i] == ((i + 1) % *period != 0);
  return equal;
}

// Ollama's first files of LFM2 have the heads of each layer, 0 where it does not attend; which
// layers these are is compared as head_count_kv.
bool EqualOrZero(const GgufValue& found, int64_t value) {
  bool any = false, fits = found.is_array();
  for (size_t i = 0; fits && i < found.size(); ++i) {
    any = any || found.IntAt(i) == value;
    fits = found.IntAt(i) == value || found.IntAt(i) == 0;
  }
  return any && fits;
}

bool EqualAsFloat(const GgufValue& found, std::optional<double> value) {
  const std::optional<double> number = found.is_array() ? std::nullopt : found.FloatAt(0);
  return number.has_value() && value.has_value() &&
         static_cast<float>(*number) == static_cast<float>(*value);
}

}  // namespace

MetadataCheck::MetadataCheck(const GgufFile& file, absl::string_view config_name,
                             absl::string_view architecture)
    : file_(file), config_name_(config_name), architecture_(architecture) {}

std::string MetadataCheck::FullKey(absl::string_view key) const {
  return absl::StrCat(architecture_, ".", key);
}

void MetadataCheck::Report(absl::string_view full_key, absl::string_view found,
                           absl::string_view wanted) {
  fit_.differences.push_back(
      absl::StrCat(full_key, " is ", found, " but config ", config_name_, " has ", wanted));
}

void MetadataCheck::Ignore(const GgufValue& value) {
  fit_.ignored_keys.push_back(absl::StrCat(value.key(), " (", value.ToString(), ")"));
}

void MetadataCheck::Compare(std::string_view key, bool absent_is_fine, absl::string_view wanted,
                            Equal equal, size_t shown) {
  ++checked_;
  bool any = false;
  const auto compare = [&](absl::string_view name) {
    const GgufValue* found = file_.Find(FullKey(name));
    if (found == nullptr) return;
    any = true;
    if (!equal(*found)) Report(FullKey(name), found->ToString(shown), wanted);
  };
  compare(ToAbsl(key));
  for (const OtherKey& names : kOtherKeys) {
    if (names.usual == ToAbsl(key)) compare(names.other);
  }
  if (!any && !absent_is_fine) Report(FullKey(ToAbsl(key)), "missing", wanted);
}

bool MetadataCheck::HasHidden(int64_t hidden) const {
  const GgufTensor* gate = file_.FindTensor("blk.0.ffn_gate.weight");
  return gate != nullptr && gate->dims[1] == static_cast<uint64_t>(hidden);
}

void MetadataCheck::Int(std::string_view key, int64_t value, std::optional<int64_t> absent) {
  const int64_t drafts = key == "block_count" ? DraftBlocks(file_) : 0;
  if (drafts > 0) {
    // They follow the blocks of the model and are counted with them.
    Compare(key, false, absl::StrCat(value, " beside ", drafts, " for drafts"),
            [&](const GgufValue& found) { return AllEqual(found, value + drafts); });
    return;
  }
  Compare(key, absent == value, absl::StrCat(value), [&](const GgufValue& found) {
    if (AllEqual(found, value)) return true;
    if (key == "attention.head_count" && EqualOrZero(found, value)) return true;
    // Ollama's first files of LFM2 have the number of config.json, before its rounding. The
    // matrices, whose shapes are checked later, say what it is.
    if (key != "feed_forward_length" || !HasHidden(value)) return false;
    Ignore(found);
    return true;
  });
}

void MetadataCheck::Float(std::string_view key, double value, std::optional<double> absent,
                          std::optional<double> mistaken) {
  Compare(key, absent == value, absl::StrCat(value), [&](const GgufValue& found) {
    if (EqualAsFloat(found, value)) return true;
    if (!EqualAsFloat(found, mistaken)) return false;
    Ignore(found);
    return true;
  });
}

void MetadataCheck::Flag(std::string_view key, bool value, std::optional<bool> absent) {
  Compare(key, absent == value, value ? "true" : "false",
          [&](const GgufValue& found) { return !found.is_array() && found.BoolAt(0) == value; });
}

void MetadataCheck::Text(std::string_view key, std::string_view value,
                         std::optional<std::string_view> absent,
                         std::optional<std::string_view> same) {
  Compare(key, absent == value, absl::StrCat("'", ToAbsl(value), "'"), [&](const GgufValue& found) {
    if (found.is_array()) return false;
    const std::optional<absl::string_view> text = found.StringAt(0);
    return text == ToAbsl(value) || (same.has_value() && text == ToAbsl(*same));
  });
}

void MetadataCheck::Period(std::string_view key, int layers, int period,
                           std::optional<int> absent) {
  Compare(key, absent == period, absl::StrCat(period), [&](const GgufValue& found) {
    if (!found.is_array()) return found.IntAt(0) == period;
    bool equal = found.size() == static_cast<size_t>(layers);
    for (int i = 0; equal && i < layers; ++i)
      equal = FlagAt(found, static_cast<size_t>(i)) == ((i + 1) % period != 0);
    return equal;
  });
}

void MetadataCheck::VocabSize(int least) {
  constexpr std::string_view kKey = "vocab_size";
  const std::string wanted = absl::StrCat("at least ", least);
  // The embedding says how many rows there are: tools that add or remove tokens or padding may
  // leave the key unchanged. Without an embedding, binding fails.
  const GgufTensor* embedding = file_.FindTensor("token_embd.weight");
  const GgufValue* tokens = file_.Find("tokenizer.ggml.tokens");
  const bool enough =
      embedding != nullptr && (embedding->dims[1] >= static_cast<uint64_t>(least) ||
                               (tokens != nullptr && embedding->dims[1] >= tokens->size()));
  Compare(kKey, /*absent_is_fine=*/true, wanted, [&](const GgufValue& found) {
    if (found.is_array() || !found.IntAt(0).has_value()) return false;
    return embedding != nullptr || *found.IntAt(0) >= least;
  });
  if (embedding != nullptr && !enough) {
    Report(FullKey(ToAbsl(kKey)),
           absl::StrCat(embedding->dims[1], " (the rows of token_embd.weight)"), wanted);
  }
}

void MetadataCheck::ContextLength() {
  // Positions are int32.
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  const std::string key = FullKey("context_length");
  const GgufValue* found = file_.Find(key);
  if (found == nullptr) return;
  const std::optional<uint64_t> tokens = found->is_array() ? std::nullopt : found->UintAt(0);
  if (tokens.has_value() && *tokens >= 1 && *tokens <= kMost) return;
  fit_.differences.push_back(
      absl::StrCat(key, " is ", found->ToString(), ", not a number of tokens from 1 to ", kMost));
}

void MetadataCheck::OwnOutput() {
  if (file_.FindTensor("token_embd.weight") == nullptr ||
      file_.FindTensor("output.weight") != nullptr) {
    return;
  }
  fit_.notes.push_back(
      "there is no output.weight, which models of this config have: token_embd.weight is used in "
      "its place");
}

void MetadataCheck::DenseMatrices() {
  if (file_.FindTensor("token_embd.weight") == nullptr ||
      file_.FindTensor("dense_2.weight") != nullptr ||
      file_.FindTensor("dense_3.weight") != nullptr) {
    return;
  }
  const bool named = file_.Find(FullKey("dense_2_feat_out")) != nullptr ||
                     file_.Find(FullKey("dense_3_feat_in")) != nullptr;
  fit_.notes.push_back(
      absl::StrCat("there are no dense_2.weight and dense_3.weight",
                   named ? ", although keys tell their sizes" : "",
                   ": embeddings are not those of the published model, which is converted with "
                   "--sentence-transformers-dense-modules"));
}

void MetadataCheck::CheckInts(std::string_view key, absl::Span<const int64_t> values) {
  const auto append = [](std::string* out, int64_t value) {
    absl::StrAppend(out, value == kAnyValue ? "any" : absl::StrCat(value));
  };
  const std::string wanted = absl::StrCat("[", absl::StrJoin(values, ", ", append), "]");
  // Values of the blocks for drafts, which may be any, follow those of the model's blocks.
  const size_t with_drafts = values.size() + static_cast<size_t>(DraftBlocks(file_));
  const auto compare = [&](const GgufValue& found) {
    bool equal = !found.is_array() || found.size() == values.size() || found.size() == with_drafts;
    for (size_t i = 0; equal && i < values.size(); ++i)
      equal = values[i] == kAnyValue || found.IntAt(found.is_array() ? i : 0) == values[i];
    return equal;
  };
  Compare(key, false, wanted, compare, with_drafts);
}

void MetadataCheck::CheckFlags(std::string_view key, absl::Span<const bool> values) {
  const auto append = [](std::string* out, bool value) {
    absl::StrAppend(out, value ? "true" : "false");
  };
  const auto compare = [&](const GgufValue& found) {
    if (!found.is_array()) return IsPeriodOf(found, values);
    bool equal = found.size() == values.size();
    for (size_t i = 0; equal && i < values.size(); ++i) equal = FlagAt(found, i) == values[i];
    return equal;
  };
  Compare(key, false, absl::StrCat("[", absl::StrJoin(values, ", ", append), "]"), compare,
          values.size());
}

void MetadataCheck::CheckSections(std::string_view key, absl::Span<const int64_t> values) {
  const auto compare = [&](const GgufValue& found) {
    bool equal = found.is_array() && found.size() <= values.size();
    for (size_t i = 0; equal && i < values.size(); ++i)
      equal = (i < found.size() ? found.IntAt(i) : 0) == values[i];
    return equal;
  };
  Compare(key, false, absl::StrCat("[", absl::StrJoin(values, ", "), "]"), compare, values.size());
}

void MetadataCheck::CheckTexts(std::string_view key, absl::Span<const std::string_view> values) {
  const auto append = [](std::string* out, std::string_view s) { absl::StrAppend(out, ToAbsl(s)); };
  const std::string wanted = absl::StrCat("[", absl::StrJoin(values, ", ", append), "]");
  const auto compare = [&](const GgufValue& found) {
    bool equal = found.is_array() && found.size() == values.size();
    for (size_t i = 0; equal && i < values.size(); ++i)
      equal = found.StringAt(i) == ToAbsl(values[i]);
    return equal;
  };
  Compare(key, false, wanted, compare, values.size());
}

}  // namespace inlay
