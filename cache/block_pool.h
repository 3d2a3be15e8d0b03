// Reference-counted memory blocks of a few fixed sizes, which hold the cache of every layer.
#ifndef INLAY_CACHE_BLOCK_POOL_H_
#define INLAY_CACHE_BLOCK_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace inlay {

class BlockPool;

namespace block_internal {
struct Header {
  void* data = nullptr;
  size_t bytes = 0;
  BlockPool* pool = nullptr;
  std::atomic<size_t> references = 0;
  bool in_slab = false;         // part of a slab, which the pool frees as a whole
  bool resident = true;         // may have memory of the system; false only of free blocks
  Header* next_free = nullptr;  // in the pool's free list
};

// Memory for many blocks of one size, in large pages. The headers are apart: whoever writes a block
// first has its pages cleared, on all threads at a time where several write.
struct Slab {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory;
  std::unique_ptr<Header[]> headers;
};
}  // namespace block_internal

// A counted reference to a pool block. Copies refer to the same block, and the last one returns it
// to its pool. A shared block must not be written: to change a block that is not unique(), allocate
// a new one and copy what is still needed.
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

// Allocates blocks up to a limit in bytes. There are few sizes (one or two per distinct layer type)
// and returned blocks are kept for the next request of the same size, so memory cannot fragment: a
// request fails only when the bytes in use plus the bytes requested exceed the limit, or when the
// system has no memory even after the pool has returned all free blocks to it. Once many blocks of
// a size are in use, more of them come from slabs of large pages: a conversation's blocks are
// written soon after they are allocated, and small pages take several times as long to be cleared.
// Thread-safe. Must outlive its blocks.
class BlockPool {
 public:
  struct Options {
    size_t limit_bytes = std::numeric_limits<size_t>::max();
    // For tests: fills new blocks with NaN bit patterns, to detect reads of unwritten memory.
    bool poison = false;
  };
  BlockPool() : BlockPool(Options()) {}
  explicit BlockPool(Options options) : options_(options) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // A block of `bytes` > 0 with unspecified contents, or an empty reference when the limit or the
  // memory is exhausted.
  BlockRef Allocate(size_t bytes);

  // The same for the rows or the state of a conversation from `position` on. Instead of an empty
  // reference, ResourceExhausted with the position, the bytes and the reason.
  absl::StatusOr<BlockRef> AllocateFor(size_t position, size_t bytes);

  // Bytes of the blocks that are referenced now.
  size_t used_bytes() const;
  size_t limit_bytes() const { return options_.limit_bytes; }

 private:
  friend class BlockRef;
  // The blocks of one size.
  struct SizeClass {
    // The list of those not in use. It is linked through the headers: returning a block allocates
    // nothing, so it cannot fail.
    block_internal::Header* free = nullptr;
    size_t blocks = 0;  // outside of slabs, in use or not
  };

  // Why Allocate has just failed, as a clause for a message: "3 of 4 bytes are in use", or that the
  // system has no more memory.
  std::string WhyNot(size_t bytes) const;

  void Return(block_internal::Header* header);
  // Created if it is new; nullptr without memory for that. Requires mutex_.
  SizeClass* SizeClassOf(size_t bytes);
  // Adds a slab's blocks to the free ones where blocks of this size are large and many enough, and
  // there is memory. Requires mutex_.
  void AddSlab(size_t bytes, SizeClass& size_class);
  void ReleaseFree();  // returns the memory of free blocks to the system; requires mutex_

  const Options options_;
  mutable std::mutex mutex_;
  size_t used_ = 0;
  size_t free_ = 0;  // bytes of free blocks that are resident
  std::map<size_t, SizeClass> classes_;
  std::vector<block_internal::Slab> slabs_;
};

}  // namespace inlay

#endif  // INLAY_CACHE_BLOCK_POOL_H_
