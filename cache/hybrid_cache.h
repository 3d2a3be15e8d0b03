// The statically typed cache of one conversation: each layer's storage is chosen by its type.
#ifndef INLAY_CACHE_HYBRID_CACHE_H_
#define INLAY_CACHE_HYBRID_CACHE_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/rank_share.h"
#include "cache/block_pool.h"
#include "cache/cache_options.h"
#include "cache/fingerprint.h"
#include "cache/kv_cache.h"
#include "cache/layers.h"
#include "cache/serialize.h"
#include "cache/storage.h"
#include "cache/storage_policy.h"
#include "configs/config.h"
#include "configs/pattern.h"

namespace inlay {

template <class M>
struct CheckedMixerStorage {
  static_assert(
      requires { sizeof(MixerStorage<M>); }, "a mixer needs its MixerStorage from cache/layers.h");
  using Type = typename MixerStorage<M>::Type;
};
template <class M>
using MixerStorageType = typename CheckedMixerStorage<M>::Type;
// The cache of one layer: the storages of its mixers.
template <class Layer>
using LayerStorage = ForMixers<Layer, StorageTuple, MixerStorageType>;

namespace cache_internal {

template <class Policy>
struct MakeStorage {
  template <class... M>
  static auto Of(Mixers<M...>, [[maybe_unused]] RankShare share) {
    return StorageTuple<MixerStorageType<M>...>(MixerStorage<M>::template Make<Policy>(share)...);
  }
};

}  // namespace cache_internal

// One conversation with a model of this config. Movable; a fork shares memory with its origin until
// either of them writes.
template <ModelConfig Config>
class HybridCache final : public KVCache {
  static_assert(CheckConfig<Config>());

 public:
  // The largest append, in tokens. A text to embed is one append; it has no rings.
  template <class Policy>
  static constexpr size_t kMaxAppend = EmbedsTexts<Config>() ? size_t{Config::kEmbedding.max_tokens}
                                                             : Policy::kMaxAppend;

  // Of a model that several ranks compute, `share` is the rank: it may store some of the heads
  // alone.
  template <class Policy>
  HybridCache(Policy, const CacheOptions& options, RankShare share = {})
      : KVCache(options.pool != nullptr ? options.pool : std::make_shared<BlockPool>(),
                {.max_length = options.max_length,
                 .max_append = kMaxAppend<Policy>,
                 .rewind_depth = Policy::kRewindDepth,
                 .vocab_size =
                     options.vocab_size != 0 ? options.vocab_size : size_t{Config::kVocabSize},
                 .kv_type = Policy::kKvType,
                 .parts = share.count,
                 .config_fingerprint = ConfigFingerprint<Config>(),
                 .fingerprint = StorageFingerprint<Config, Policy>(share.count)}) {
    storage_.ForEach([&]<class L>(LayerAt, LayerStorage<L>& storage) {
      storage = cache_internal::MakeStorage<Policy>::Of(typename L::Mixers(), share);
    });
  }
  HybridCache(HybridCache&&) noexcept = default;
  HybridCache& operator=(HybridCache&& other) noexcept {
    // Before the base: the old blocks return to the old pool, which the base then releases.
    storage_ = std::move(other.storage_);
    KVCache::operator=(std::move(other));
    return *this;
  }

  absl::string_view config_name() const override {
    return absl::string_view(Config::kName.data(), Config::kName.size());
  }

  // What the `mixer`-th mixer of the `ordinal`-th layer of this type stores or, if it stores
  // nothing, reads.
  template <class Layer, size_t mixer>
  auto& StorageOf(int ordinal) {
    using M = std::tuple_element_t<mixer, ForMixers<Layer, std::tuple, std::type_identity_t>>;
    if constexpr (requires { typename M::StorageOwner; }) {
      using Owner = StorageLayer<Config, typename M::StorageOwner>;
      return storage_.template Get<typename Owner::Layer>(Owner::kOrdinal)
          .template Get<Owner::kMixer>();
    } else {
      return storage_.template Get<Layer>(ordinal).template Get<mixer>();
    }
  }

  // Fork with the static type; may throw std::bad_alloc.
  HybridCache ForkCache() const {
    assert(!transaction_open());
    return HybridCache(*this);
  }

  void VisitBlocks(BlockVisitor visit) const override {
    storage_.ForEach(
        [&]<class L>(LayerAt, const LayerStorage<L>& storage) { storage.VisitBlocks(visit); });
  }

 protected:
  absl::Status PrepareLayers(size_t count) override {
    absl::Status status;
    storage_.ForEach([&]<class L>(LayerAt, LayerStorage<L>& storage) {
      if (status.ok()) status = storage.Prepare(pool(), length(), count);
    });
    return status;
  }

  void CommitLayers(size_t new_length) override {
    storage_.ForEach(
        [&]<class L>(LayerAt, LayerStorage<L>& storage) { storage.Commit(new_length); });
  }

  void AbortLayers() override {
    storage_.ForEach([&]<class L>(LayerAt, LayerStorage<L>& storage) { storage.Abort(length()); });
  }

  std::unique_ptr<KVCache> Copy() const override {
    return std::make_unique<HybridCache>(ForkCache());
  }

  void MoveFrom(KVCache&& other) override { *this = static_cast<HybridCache&&>(other); }

  void TruncateLayers(size_t position) override {
    storage_.ForEach(
        [&]<class L>(LayerAt, LayerStorage<L>& storage) { storage.Truncate(position); });
  }

  void TrimLayers(size_t rewind) override {
    storage_.ForEach([&]<class L>(LayerAt, LayerStorage<L>& storage) {
      storage.Trim(pool(), length(), rewind);
    });
  }

  size_t LayersRewindFloor() const override {
    size_t floor = 0;
    storage_.ForEach([&]<class L>(LayerAt, const LayerStorage<L>& storage) {
      floor = std::max(floor, storage.RewindFloor());
    });
    return floor;
  }

  absl::Status SaveLayers(SectionWriter& writer) const override {
    absl::Status status;
    storage_.ForEach([&]<class L>(LayerAt at, const LayerStorage<L>& storage) {
      if (status.ok()) status = writer.AppendUint(static_cast<uint64_t>(at.index));
      if (status.ok()) status = storage.Save(writer, length(), rewind_depth());
      if (status.ok()) status = writer.EndSection();
    });
    return status;
  }

  absl::Status LoadLayers(SectionReader& reader, size_t length) override {
    absl::Status status;
    storage_.ForEach([&]<class L>(LayerAt at, LayerStorage<L>& storage) {
      if (status.ok()) status = reader.BeginLayer(at.index);
      if (status.ok()) status = storage.Load(reader, pool(), length, rewind_depth());
      if (status.ok()) status = reader.EndSection();
    });
    return status;
  }

 private:
  HybridCache(const HybridCache& other) = default;

  PerLayer<Config, LayerStorage> storage_;
};

// An empty conversation for a model of this config.
template <ModelConfig Config, class Policy = DefaultStorage>
HybridCache<Config> CreateKVCache(const CacheOptions& options = {}) {
  return HybridCache<Config>(Policy(), options);
}

}  // namespace inlay

#endif  // INLAY_CACHE_HYBRID_CACHE_H_
