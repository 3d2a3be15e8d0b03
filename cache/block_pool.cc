#include "cache/block_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/cpu/large_pages.h"

namespace inlay {

using block_internal::Header;
using block_internal::Slab;

namespace {

// A block in a slab shares its first and its last page with its neighbours, so these two pages
// cannot be returned to the system. Only blocks of so many pages are in slabs that two of these are
// a small part.
constexpr size_t kLeastSlabPages = 16;
// Blocks of a size get slabs once they take as many bytes as one: a slab that is hardly used is
// then a small part.
constexpr size_t kSlabBytes = 8 * kLargePage;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// What a block takes of memory, or 0 when that does not fit into a size_t.
size_t PaddedBytes(size_t bytes) {
  const size_t padded = (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  return padded < bytes || padded + kBlockAlignment < padded ? 0 : padded;
}

// The header precedes the data of a block of its own and occupies one alignment unit, so that the
// data stays aligned.
static_assert(sizeof(Header) <= kBlockAlignment);

Header* NewBlock(size_t bytes, BlockPool* pool) {
  const size_t padded = PaddedBytes(bytes);
  if (padded == 0) return nullptr;
  void* const memory = std::aligned_alloc(kBlockAlignment, kBlockAlignment + padded);
  if (memory == nullptr) return nullptr;
  auto* const header = new (memory) Header;
  header->data = static_cast<char*>(memory) + kBlockAlignment;
  header->bytes = bytes;
  header->pool = pool;
  return header;
}

void DeleteBlock(Header* header) {
  header->~Header();
  std::free(header);
}

// Returns the whole pages of a free block to the system.
void DropPages([[maybe_unused]] const Header& header) {
#ifdef MADV_DONTNEED
  const uintptr_t page = PageBytes();
  const auto data = reinterpret_cast<uintptr_t>(header.data);
  const uintptr_t begin = (data + page - 1) / page * page;
  const uintptr_t end = (data + header.bytes) / page * page;
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
#endif
}

}  // namespace

BlockRef::BlockRef(const BlockRef& other) : header_(other.header_) {
  if (header_ != nullptr) header_->references.fetch_add(1, std::memory_order_relaxed);
}

BlockRef::~BlockRef() {
  // Release: this owner's reads and writes come before whatever the next owner does with the block.
  if (header_ != nullptr && header_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    header_->pool->Return(header_);
  }
}

void* BlockRef::data() const { return header_ == nullptr ? nullptr : header_->data; }

bool BlockRef::unique() const {
  return header_ != nullptr && header_->references.load(std::memory_order_acquire) == 1;
}

BlockPool::~BlockPool() {
  assert(used_ == 0 && "a block outlived its pool");
  ReleaseFree();
}

BlockPool::SizeClass* BlockPool::SizeClassOf(size_t bytes) {
  try {
    return &classes_.try_emplace(bytes).first->second;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void BlockPool::AddSlab(size_t bytes, SizeClass& size_class) {
  const size_t padded = PaddedBytes(bytes);
  if (padded == 0 || padded > kSlabBytes || size_class.blocks < kSlabBytes / padded) return;
  if (bytes < kLeastSlabPages * PageBytes()) return;
  const size_t count = kSlabBytes / padded;
  Slab slab;
  try {
    slabs_.reserve(slabs_.size() + 1);
    slab.headers = std::make_unique<Header[]>(count);
  } catch (const std::bad_alloc&) {
    return;
  }
  slab.memory.reset(AllocateLargePages(count * padded));
  if (slab.memory == nullptr) return;
  for (size_t i = count; i-- > 0;) {
    Header& header = slab.headers[i];
    header.data = static_cast<char*>(slab.memory.get()) + i * padded;
    header.bytes = bytes;
    header.pool = this;
    header.in_slab = true;
    header.resident = false;
    header.next_free = std::exchange(size_class.free, &header);
  }
  slabs_.push_back(std::move(slab));
}

BlockRef BlockPool::Allocate(size_t bytes) {
  assert(bytes > 0);
  Header* header = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > options_.limit_bytes || used_ > options_.limit_bytes - bytes) return BlockRef();
    SizeClass* const size_class = SizeClassOf(bytes);
    if (size_class == nullptr) return BlockRef();
    if (size_class->free == nullptr) AddSlab(bytes, *size_class);
    if (size_class->free != nullptr) {
      header = std::exchange(size_class->free, size_class->free->next_free);
      if (header->resident) free_ -= bytes;
      header->resident = true;
    }
    // Free blocks of other sizes must not push the total above the limit.
    if (free_ > 0 && used_ + free_ > options_.limit_bytes - bytes) ReleaseFree();
    if (header == nullptr) ++size_class->blocks;
    used_ += bytes;
  }
  if (header == nullptr) header = NewBlock(bytes, this);
  if (header == nullptr) {
    std::lock_guard<std::mutex> lock(mutex_);
    // What the pool itself keeps may be enough: free blocks of other sizes.
    if (free_ > 0) {
      ReleaseFree();
      header = NewBlock(bytes, this);
    }
    if (header == nullptr) {
      used_ -= bytes;
      --classes_.find(bytes)->second.blocks;
      return BlockRef();
    }
  }
  header->references.store(1, std::memory_order_relaxed);
  // All bits set is a NaN in f32, f16 and bf16.
  if (options_.poison) std::memset(header->data, 0xFF, bytes);
  return BlockRef(header);
}

absl::StatusOr<BlockRef> BlockPool::AllocateFor(size_t position, size_t bytes) {
  BlockRef block = Allocate(bytes);
  if (block) return block;
  return absl::ResourceExhaustedError(absl::StrCat("the cache needs a block of ", bytes,
                                                   " bytes for position ", position, " but ",
                                                   WhyNot(bytes)));
}

size_t BlockPool::used_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return used_;
}

std::string BlockPool::WhyNot(size_t bytes) const {
  const size_t used = used_bytes();
  if (used <= options_.limit_bytes && bytes <= options_.limit_bytes - used)
    return "the system has no more memory";
  return absl::StrCat(used, " of ", options_.limit_bytes, " bytes are in use");
}

void BlockPool::Return(Header* header) {
  std::lock_guard<std::mutex> lock(mutex_);
  used_ -= header->bytes;
  free_ += header->bytes;  // it was written
  header->next_free = std::exchange(classes_.find(header->bytes)->second.free, header);
}

void BlockPool::ReleaseFree() {
  for (const Slab& slab : slabs_) {
    const size_t padded = PaddedBytes(slab.headers[0].bytes), count = kSlabBytes / padded;
    const auto is_free = [](const Header& header) {
      return header.resident && header.references.load(std::memory_order_relaxed) == 0;
    };
    if (std::any_of(&slab.headers[0], &slab.headers[count], is_free))
      KeepSmallPages(slab.memory.get(), count * padded);
  }
  for (auto& [bytes, size_class] : classes_) {
    Header* next = std::exchange(size_class.free, nullptr);
    while (next != nullptr) {
      Header* const header = std::exchange(next, next->next_free);
      if (!header->in_slab) {
        --size_class.blocks;
        DeleteBlock(header);
        continue;
      }
      if (std::exchange(header->resident, false)) DropPages(*header);
      header->next_free = std::exchange(size_class.free, header);
    }
  }
  free_ = 0;
}

}  // namespace inlay
