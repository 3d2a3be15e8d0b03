#include "cache/block_pool.h"

#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace inlay {

using block_internal::Header;

namespace {

// The header precedes the data and occupies one alignment unit, so that the data stays aligned.
static_assert(sizeof(Header) <= kBlockAlignment);

void* Data(Header* header) { return reinterpret_cast<char*>(header) + kBlockAlignment; }

// Large pages have 2 MiB on x86 and with Arm's small pages. A slab is a multiple of that, and large
// enough for the rest behind its last block to be a few percent.
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kSlabBytes = 8 * kLargePage;
constexpr size_t kMostSlabBlock = kSlabBytes / 16;
// Smaller blocks and pools are not worth pages of that size.
constexpr size_t kLeastSlabBlock = size_t{32} << 10;
constexpr size_t kLargePool = size_t{32} << 20;

// What a block takes with its header, or 0 when that does not fit into a size_t.
size_t PaddedBytes(size_t bytes) {
  const size_t padded = (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  return padded < bytes || padded + kBlockAlignment < padded ? 0 : padded + kBlockAlignment;
}

Header* NewBlock(size_t bytes, BlockPool* pool) {
  const size_t padded = PaddedBytes(bytes);
  void* memory = padded == 0 ? nullptr : std::aligned_alloc(kBlockAlignment, padded);
  if (memory == nullptr) return nullptr;
  return new (memory) Header{.references = 0, .bytes = bytes, .pool = pool};
}

char* NewSlab() {
  void* memory = std::aligned_alloc(kLargePage, kSlabBytes);
#ifdef MADV_HUGEPAGE
  // Only advice: without large pages the slab has small ones.
  if (memory != nullptr) (void)madvise(memory, kSlabBytes, MADV_HUGEPAGE);
#endif
  return static_cast<char*>(memory);
}

// Returns the whole pages of a free block to the system.
void DropPages([[maybe_unused]] Header* header) {
#ifdef MADV_DONTNEED
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto data = reinterpret_cast<uintptr_t>(Data(header));
  const uintptr_t begin = (data + page - 1) / page * page;
  const uintptr_t end = (data + header->bytes) / page * page;
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
#endif
}

void DeleteBlock(Header* header) {
  header->~Header();
  std::free(header);
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

void* BlockRef::data() const { return header_ == nullptr ? nullptr : Data(header_); }

bool BlockRef::unique() const {
  return header_ != nullptr && header_->references.load(std::memory_order_acquire) == 1;
}

BlockPool::~BlockPool() {
  assert(used_ == 0 && "a block outlived its pool");
  ReleaseFree();
  for (void* slab : slabs_) std::free(slab);
}

BlockPool::SizeClass* BlockPool::SizeClassOf(size_t bytes) {
  try {
    return &classes_.try_emplace(bytes).first->second;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Header* BlockPool::NextOfSlab(size_t bytes, SizeClass& size_class) {
  const size_t padded = PaddedBytes(bytes);
  if (used_ < kLargePool || bytes < kLeastSlabBlock || padded > kMostSlabBlock) return nullptr;
  if (static_cast<size_t>(size_class.slab_end - size_class.slab) < padded) {
    try {
      slabs_.reserve(slabs_.size() + 1);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    char* const slab = NewSlab();
    if (slab == nullptr) return nullptr;
    slabs_.push_back(slab);
    size_class.slab = slab;
    size_class.slab_end = slab + kSlabBytes;
  }
  char* const memory = std::exchange(size_class.slab, size_class.slab + padded);
  return new (memory) Header{.references = 0, .bytes = bytes, .pool = this, .in_slab = true};
}

BlockRef BlockPool::Allocate(size_t bytes) {
  assert(bytes > 0);
  Header* header = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > options_.limit_bytes || used_ > options_.limit_bytes - bytes) return BlockRef();
    SizeClass* const size_class = SizeClassOf(bytes);
    if (size_class == nullptr) return BlockRef();
    if (size_class->free != nullptr) {
      header = std::exchange(size_class->free, size_class->free->next_free);
      if (header->resident) free_ -= bytes;
      header->resident = true;
    }
    // Free blocks of other sizes must not push the total above the limit.
    if (free_ > 0 && used_ + free_ > options_.limit_bytes - bytes) ReleaseFree();
    if (header == nullptr) header = NextOfSlab(bytes, *size_class);
    used_ += bytes;
  }
  if (header == nullptr) header = NewBlock(bytes, this);
  if (header == nullptr) {
    std::lock_guard<std::mutex> lock(mutex_);
    used_ -= bytes;
    return BlockRef();
  }
  header->references.store(1, std::memory_order_relaxed);
  // All bits set is a NaN in f32, f16 and bf16.
  if (options_.poison) std::memset(Data(header), 0xFF, bytes);
  return BlockRef(header);
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
  free_ += header->bytes;  // its memory is resident
  header->next_free = std::exchange(classes_.find(header->bytes)->second.free, header);
}

void BlockPool::ReleaseFree() {
  for (auto& [bytes, size_class] : classes_) {
    Header* next = std::exchange(size_class.free, nullptr);
    while (next != nullptr) {
      Header* const header = std::exchange(next, next->next_free);
      if (!header->in_slab) {
        DeleteBlock(header);
        continue;
      }
      if (std::exchange(header->resident, false)) DropPages(header);
      header->next_free = std::exchange(size_class.free, header);
    }
  }
  free_ = 0;
}

}  // namespace inlay
