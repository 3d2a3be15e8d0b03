// The statically typed cache of one conversation: each layer's storage is chosen by its type.
#ifndef INLAY_CACHE_HYBRID_CACHE_H_
#define INLAY_CACHE_HYBRID_CACHE_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cache/block_pool.h"
#include "cache/fingerprint.h"
#include "cache/kv_blocks.h"
#include "cache/kv_cache.h"
#include "cache/serialize.h"
#include "cache/ssd_slots.h"
#include "configs/config.h"
#include "configs/pattern.h"
#include "ops/attention.h"
#include "ops/ssd.h"

namespace inlay {

// How a cache stores rows, and what it guarantees.
template <KvType kKvType_>
struct StoragePolicy {
  static constexpr KvType kKvType = kKvType_;
  // The largest append, in tokens: sliding windows keep room for one.
  static constexpr size_t kMaxAppend = 512;
  // A rewind by up to so many tokens always succeeds. State-space layers keep the chunk before the
  // current one, so this is what they give; sliding windows are given as many rows more.
  static constexpr size_t kRewindDepth = SsdSlots::kRewindDepth;
};

using F32Storage = StoragePolicy<KvType::kF32>;
using F16Storage = StoragePolicy<KvType::kF16>;
using BF16Storage = StoragePolicy<KvType::kBF16>;
using Q8Storage = StoragePolicy<KvType::kQ8>;

// f(policy) with the policy of this type of rows.
template <class F>
auto WithStorage(KvType type, F f) {
  switch (type) {
    case KvType::kF16:
      return f(F16Storage());
    case KvType::kBF16:
      return f(BF16Storage());
    case KvType::kQ8:
      return f(Q8Storage());
    case KvType::kF32:
      break;
  }
  return f(F32Storage());
}

// What a layer keeps of the past, by its type.
template <class Layer>
using LayerStorage = std::conditional_t<kIsAttention<Layer>, KvBlocks, SsdSlots>;

template <class Layer>
constexpr SsdShape SsdShapeOf() {
  constexpr Mamba2Shape kShape = Layer::kShape;
  return {.heads = kShape.heads,
          .head_dim = kShape.head_dim,
          .groups = kShape.groups,
          .state_dim = kShape.state_dim,
          .conv_width = kShape.conv_width};
}

template <class Layer, class Policy>
constexpr KvShape KvShapeOf() {
  return {.kv_heads = Layer::kShape.kv_heads,
          .head_dim = Layer::kShape.head_dim,
          .type = Policy::kKvType};
}

template <class Layer, class Policy>
LayerStorage<Layer> MakeLayerStorage() {
  if constexpr (kIsAttention<Layer>) {
    constexpr size_t kWindow = Layer::kWindow;
    constexpr size_t kRing =
        kWindow == 0 ? 0 : KvBlocks::RingBlocks(kWindow, Policy::kMaxAppend, Policy::kRewindDepth);
    return KvBlocks(KvShapeOf<Layer, Policy>(), kWindow, kRing);
  } else {
    return SsdSlots(SsdShapeOf<Layer>());
  }
}

struct CacheOptions {
  // The longest conversation, in tokens.
  size_t max_length = 4096;
  // Where blocks come from; a pool of its own without limit if null. Caches that share a pool share
  // its limit.
  std::shared_ptr<BlockPool> pool = nullptr;
};

// One conversation with a model of this config. Movable; Fork and copying share memory until one
// side writes.
template <ModelConfig Config>
class HybridCache final : public KVCache {
  static_assert(CheckConfig<Config>());

 public:
  template <class Policy>
  HybridCache(Policy, const CacheOptions& options)
      : KVCache(options.pool != nullptr ? options.pool : std::make_shared<BlockPool>(),
                {.max_length = options.max_length,
                 .max_append = Policy::kMaxAppend,
                 .rewind_depth = Policy::kRewindDepth,
                 .vocab_size = Config::kVocabSize,
                 .kv_type = Policy::kKvType,
                 .fingerprint = ConfigFingerprint<Config, Policy>()}) {
    storage_.ForEach([]<class Layer>(LayerAt, LayerStorage<Layer>& storage) {
      storage = MakeLayerStorage<Layer, Policy>();
    });
  }
  HybridCache(HybridCache&&) noexcept = default;
  HybridCache& operator=(HybridCache&& other) noexcept {
    storage_ =
        std::move(other.storage_);  // before the base, whose old pool the old blocks return to
    KVCache::operator=(std::move(other));
    return *this;
  }

  absl::string_view config_name() const override {
    return absl::string_view(Config::kName.data(), Config::kName.size());
  }

  // The storage of the `ordinal`-th layer of this type.
  template <class Layer>
  LayerStorage<Layer>& Storage(int ordinal) {
    return storage_.template Get<Layer>(ordinal);
  }

  size_t RewindFloor() const override {
    size_t floor = 0;
    storage_.ForEach([&]<class Layer>(LayerAt, const LayerStorage<Layer>& storage) {
      floor = std::max(floor, storage.RewindFloor());
    });
    return floor;
  }

  HybridCache ForkCache() const {
    assert(!transaction_open());
    return HybridCache(*this);
  }
  std::unique_ptr<KVCache> Fork() const override {
    return std::make_unique<HybridCache>(ForkCache());
  }

  void Restore(KVCache&& snapshot) override {
    auto& other = static_cast<HybridCache&>(snapshot);
    assert(!transaction_open() && other.traits().fingerprint == traits().fingerprint);
    assert(other.length() <= max_length());
    const size_t limit = max_length();
    *this = std::move(other);
    set_max_length(limit);
  }

  size_t allocated_bytes() const override {
    size_t bytes = 0;
    storage_.ForEach([&]<class Layer>(LayerAt, const LayerStorage<Layer>& storage) {
      bytes += storage.allocated_bytes();
    });
    return bytes;
  }

  void VisitBlocks(absl::FunctionRef<void(const void* block, size_t bytes)> visit) const override {
    storage_.ForEach([&]<class Layer>(LayerAt, const LayerStorage<Layer>& storage) {
      storage.VisitBlocks(visit);
    });
  }

 protected:
  absl::Status PrepareLayers(size_t count) override {
    absl::Status status;
    storage_.ForEach([&]<class Layer>(LayerAt, LayerStorage<Layer>& storage) {
      if (status.ok()) status = storage.Prepare(pool(), length(), count);
    });
    return status;
  }

  void CommitLayers(size_t new_length) override {
    storage_.ForEach([&]<class Layer>(LayerAt, LayerStorage<Layer>& storage) {
      if constexpr (!kIsAttention<Layer>) storage.Commit(new_length);
    });
  }

  void AbortLayers() override {
    storage_.ForEach([&]<class Layer>(LayerAt, LayerStorage<Layer>& storage) {
      if constexpr (kIsAttention<Layer>) {
        storage.Truncate(length());
      } else {
        storage.Abort();
      }
    });
  }

  void TruncateLayers(size_t position) override {
    storage_.ForEach(
        [&]<class Layer>(LayerAt, LayerStorage<Layer>& storage) { storage.Truncate(position); });
  }

  absl::Status SaveLayers(SectionWriter& writer) const override {
    absl::Status status;
    storage_.ForEach([&]<class Layer>(LayerAt at, const LayerStorage<Layer>& storage) {
      if (status.ok()) status = writer.AppendUint(static_cast<uint64_t>(at.index));
      if (status.ok()) status = storage.Save(writer, length(), rewind_depth());
      if (status.ok()) status = writer.EndSection();
    });
    return status;
  }

  absl::Status LoadLayers(SectionReader& reader, size_t length) override {
    absl::Status status;
    storage_.ForEach([&]<class Layer>(LayerAt at, LayerStorage<Layer>& storage) {
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
template <ModelConfig Config, class Policy = F32Storage>
HybridCache<Config> CreateKVCache(const CacheOptions& options = {}) {
  return HybridCache<Config>(Policy(), options);
}

}  // namespace inlay

#endif  // INLAY_CACHE_HYBRID_CACHE_H_
