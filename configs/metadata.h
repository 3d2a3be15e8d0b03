// The metadata keys that follow from a config's layers, for any family.
#ifndef INLAY_CONFIGS_METADATA_H_
#define INLAY_CONFIGS_METADATA_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "configs/config.h"
#include "configs/layer.h"
#include "configs/pattern.h"

namespace inlay {

// A config's Metadata<Config>(v) passes each key (without the architecture's prefix) and the value
// that its files must have to a visitor. Config is the checkpoint's struct, so that members which
// it redefines override its family's. A reader's visitor compares, a writer's writes:
//   v.Int(key, value)            an unsigned integer; a file without the key is refused
//   v.Int(key, value, absent)    the same, but a file without the key means `absent`
//   v.Float(key, value[, absent[, mistaken]])
//                                a file whose value is `mistaken` is accepted with a note: some
//                                converter writes it for models that do not have it
//   v.Flag(key, value[, absent])
//   v.Text(key, value[, absent[, same]])
//                                `same` is another text that means the same
//   v.Period(key, layers, period[, absent])
//                                layers period - 1, 2 * period - 1, ... are not sliding; a file
//                                may store a flag for each layer instead, true for those that are
//   v.Ints(key, array)           one integer for each layer, kAnyValue where any is accepted; a
//                                file may store a single one when all are equal
//   v.Flags(key, array)          one flag for each layer; a file may store a period instead
//   v.Texts(key, array)          one text for each layer
//   v.Sections(key, array)       integers; a file may leave out zeros at the end
//   v.VocabSize(least)           the rows of the embedding, which may be more, and fewer if they
//                                are no fewer than the file's tokens; "vocab_size" only where there
//                                is no embedding
// Every key that changes what the model computes must be passed, also keys that its files usually
// lack: `absent` is the value that a missing key stands for.
inline constexpr int64_t kAnyValue = -1;

// One value per layer: f.operator()<Layer>() for each.
template <class T, class C, class F>
constexpr std::array<T, static_cast<size_t>(C::Layers::kSize)> PerLayerValues(F f) {
  std::array<T, static_cast<size_t>(C::Layers::kSize)> values{};
  ForEachLayer<C>(
      [&]<class L>(int i) { values[static_cast<size_t>(i)] = f.template operator()<L>(); });
  return values;
}

// The name of each layer's mixer, "" for a layer without one, as stored by files that list their
// layers.
template <class C>
constexpr auto MixerNames() {
  return PerLayerValues<std::string_view, C>([]<class L>() {
    std::string_view name;
    ForEachMixer<L>([&]<class M>(size_t) { name = M::kName; });
    return name;
  });
}

// The multiplier of all mixer and MLP outputs; none where they differ.
template <class C>
constexpr std::optional<float> BranchMultiplier() {
  std::optional<float> multiplier;
  bool agree = true;
  const auto see = [&](float m) {
    agree = agree && multiplier.value_or(m) == m;
    multiplier = m;
  };
  ForEachLayerType<C>([&]<class L>(int) {
    for (float m : L::kMixerMultipliers) see(m);
    if (L::kHasMlp) see(L::kMlpMultiplier);
  });
  if (!agree) return std::nullopt;
  return multiplier;
}

namespace metadata_internal {

// A visitor of a part's Metadata that records the value of one key that may differ from layer to
// layer.
struct PerLayerFinder {
  std::string_view key;
  std::optional<int64_t> found;

  constexpr void PerLayer(std::string_view k, int64_t value, int64_t = kAnyValue) {
    if (k == key) found = value;
  }
  constexpr void Int(std::string_view, int64_t, std::optional<int64_t> = {}) {}
  constexpr void Float(std::string_view, double, std::optional<double> = {}) {}
  constexpr void Flag(std::string_view, bool, std::optional<bool> = {}) {}
  constexpr void Text(std::string_view, std::string_view, std::optional<std::string_view> = {},
                      std::optional<std::string_view> = {}) {}
};

// A visitor that checks whether all parts that pass a key pass the same value.
class AgreementCheck {
 public:
  constexpr void PerLayer(std::string_view, int64_t, int64_t = kAnyValue) {}
  constexpr void Int(std::string_view key, int64_t value, std::optional<int64_t> = {}) {
    See({key, static_cast<double>(value), {}});
  }
  constexpr void Float(std::string_view key, double value, std::optional<double> = {}) {
    See({key, value, {}});
  }
  constexpr void Flag(std::string_view key, bool value, std::optional<bool> = {}) {
    See({key, value ? 1.0 : 0.0, {}});
  }
  constexpr void Text(std::string_view key, std::string_view value,
                      std::optional<std::string_view> = {}, std::optional<std::string_view> = {}) {
    See({key, 0, value});
  }
  constexpr bool agrees() const { return agrees_; }
  // False if some keys were not compared, for lack of room.
  constexpr bool has_room() const { return has_room_; }

 private:
  struct Entry {
    std::string_view key;
    double number = 0;
    std::string_view text;
  };

  constexpr void See(const Entry& entry) {
    for (size_t i = 0; i < count_; ++i) {
      if (entries_[i].key != entry.key) continue;
      agrees_ = agrees_ && entries_[i].number == entry.number && entries_[i].text == entry.text;
      return;
    }
    has_room_ = has_room_ && count_ < entries_.size();
    if (has_room_) entries_[count_++] = entry;
  }

  std::array<Entry, 128> entries_{};  // a layer kind has about ten keys
  size_t count_ = 0;
  bool has_room_ = true;
  bool agrees_ = true;
};

template <class C>
constexpr AgreementCheck CheckAgreement() {
  AgreementCheck check;
  ForEachLayerType<C>(
      [&]<class L>(int) { ForEachPart<L>([&]<class P>() { P::template Metadata<C>(check); }); });
  return check;
}

// A visitor of the parts' Metadata that forwards each key once; a key that may differ from layer to
// layer is forwarded with the values of all layers.
template <class C, class Visitor>
class LayerKeys {
 public:
  explicit LayerKeys(Visitor& visitor) : visitor_(visitor) {}

  void Int(std::string_view key, int64_t value, std::optional<int64_t> absent = {}) {
    if (IsNew(key)) visitor_.Int(key, value, absent);
  }
  void Float(std::string_view key, double value, std::optional<double> absent = {}) {
    if (IsNew(key)) visitor_.Float(key, value, absent);
  }
  void Flag(std::string_view key, bool value, std::optional<bool> absent = {}) {
    if (IsNew(key)) visitor_.Flag(key, value, absent);
  }
  void Text(std::string_view key, std::string_view value,
            std::optional<std::string_view> absent = {},
            std::optional<std::string_view> same = {}) {
    if (IsNew(key)) visitor_.Text(key, value, absent, same);
  }
  // An integer of this layer; layers whose parts do not pass the key have `elsewhere`, which may be
  // kAnyValue.
  void PerLayer(std::string_view key, int64_t, int64_t elsewhere = kAnyValue) {
    if (!IsNew(key)) return;
    const auto values = PerLayerValues<int64_t, C>([&]<class L>() {
      PerLayerFinder finder{key, {}};
      ForEachPart<L>([&]<class P>() { P::template Metadata<C>(finder); });
      return finder.found.value_or(elsewhere);
    });
    const bool one_value = std::count(values.begin(), values.end(), values[0]) ==
                           static_cast<std::ptrdiff_t>(values.size());
    if (one_value) {
      visitor_.Int(key, values[0]);
    } else {
      visitor_.Ints(key, values);
    }
  }

 private:
  bool IsNew(std::string_view key) {
    if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) return false;
    seen_.push_back(key);
    return true;
  }

  Visitor& visitor_;
  std::vector<std::string_view> seen_;
};

}  // namespace metadata_internal

// The keys that every architecture has, and those of every part of every layer.
template <class C, class Visitor>
void CommonMetadata(Visitor& v) {
  constexpr metadata_internal::AgreementCheck kCheck = metadata_internal::CheckAgreement<C>();
  static_assert(kCheck.agrees(),
                "two layers give one metadata key different values, which no file can say");
  static_assert(kCheck.has_room(),
                "the layers have more metadata keys than AgreementCheck has room for");
  v.Int("embedding_length", C::kModelDim);
  v.Int("block_count", C::Layers::kSize);
  v.VocabSize(C::kVocabSize);
  v.Float("attention.layer_norm_rms_epsilon", C::kNormEpsilon, C::kAbsentNormEpsilon);
  metadata_internal::LayerKeys<C, Visitor> keys(v);
  ForEachLayerType<C>(
      [&]<class L>(int) { ForEachPart<L>([&]<class P>() { P::template Metadata<C>(keys); }); });
}

}  // namespace inlay

#endif  // INLAY_CONFIGS_METADATA_H_
