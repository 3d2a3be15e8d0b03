// Reference-counted memory blocks of a few fixed sizes: what every layer's memory of the past is
// made of.
#ifndef INLAY_CACHE_BLOCK_POOL_H_
#define INLAY_CACHE_BLOCK_POOL_H_

#include <atomic>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace inlay {

class BlockPool;

namespace block_internal {
struct Header {
  std::atomic<size_t> references;
  size_t bytes;
  BlockPool* pool;
  Header* next_free = nullptr;  // while it waits in its pool
};
}  // namespace block_internal

// A share in a block. Copying shares the block, the last share returns it to its pool. A block that
// is shared must not be written: whoever wants to write one that is not unique() allocates its own
// and copies what it needs.
class BlockRef {
 public:
  BlockRef() = default;
  BlockRef(const BlockRef& other);
  BlockRef(BlockRef&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(header_, other.header_);
    return *this;
  }
  ~BlockRef();

  explicit operator bool() const { return header_ != nullptr; }
  // The block's memory, aligned to kBlockAlignment; nullptr for an empty reference.
  void* data() const;
  // True when no other reference to the block exists, so that it may be written.
  bool unique() const;

 private:
  friend class BlockPool;
  explicit BlockRef(block_internal::Header* header) : header_(header) {}
  block_internal::Header* header_ = nullptr;
};

inline constexpr size_t kBlockAlignment = 64;  // a cache line, and the widest vector

// Hands out blocks up to a limit. Sizes are few (one or two per distinct layer type) and returned
// blocks are kept for the next request of the same size, so memory cannot fragment: a request fails
// only when the bytes in use and the bytes asked for exceed the limit together, or the system has
// no memory. Thread-safe. Must outlive its blocks.
class BlockPool {
 public:
  struct Options {
    size_t limit_bytes = std::numeric_limits<size_t>::max();
    bool poison = false;  // fill handed-out blocks with NaN bit patterns: for tests of what reads
                          // unwritten memory
  };
  BlockPool() : BlockPool(Options()) {}
  explicit BlockPool(Options options) : options_(options) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // A block of `bytes` > 0 with unspecified contents, or an empty reference when the limit or the
  // memory is exhausted.
  BlockRef Allocate(size_t bytes);

  // Bytes of the blocks that are referenced now.
  size_t used_bytes() const;
  size_t limit_bytes() const { return options_.limit_bytes; }

  // Why Allocate has just given nothing, for a message: "3 of 4 bytes are in use", or that the
  // system has no more.
  std::string WhyNot(size_t bytes) const;

 private:
  friend class BlockRef;
  void Return(block_internal::Header* header);
  // The list for this size, made when it is new; nullptr without memory for that. mutex_ held.
  block_internal::Header** FreeList(size_t bytes);
  void ReleaseFree();  // gives all returned blocks back to the system; mutex_ held

  const Options options_;
  mutable std::mutex mutex_;
  size_t used_ = 0;
  size_t free_ = 0;
  // By size, the first of a list. Lists go through the blocks themselves: returning one takes no
  // memory, so it cannot fail.
  std::map<size_t, block_internal::Header*> free_blocks_;
};

}  // namespace inlay

#endif  // INLAY_CACHE_BLOCK_POOL_H_
