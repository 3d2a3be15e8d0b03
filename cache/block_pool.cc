#include "cache/block_pool.h"

#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace inlay {

using block_internal::Header;

namespace {

// The header precedes the data and occupies one alignment unit, so that the data stays aligned.
static_assert(sizeof(Header) <= kBlockAlignment);

void* Data(Header* header) { return reinterpret_cast<char*>(header) + kBlockAlignment; }

Header* NewBlock(size_t bytes, BlockPool* pool) {
  const size_t padded = (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  if (padded < bytes || padded + kBlockAlignment < padded) return nullptr;
  void* memory = std::aligned_alloc(kBlockAlignment, padded + kBlockAlignment);
  if (memory == nullptr) return nullptr;
  return new (memory) Header{.references = 0, .bytes = bytes, .pool = pool};
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
}

Header** BlockPool::FreeList(size_t bytes) {
  try {
    return &free_blocks_.try_emplace(bytes, nullptr).first->second;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

BlockRef BlockPool::Allocate(size_t bytes) {
  assert(bytes > 0);
  Header* header = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > options_.limit_bytes || used_ > options_.limit_bytes - bytes) return BlockRef();
    Header** const first = FreeList(bytes);
    if (first == nullptr) return BlockRef();
    if (*first != nullptr) {
      header = std::exchange(*first, (*first)->next_free);
      free_ -= bytes;
    } else if (free_ > 0 && used_ + free_ > options_.limit_bytes - bytes) {
      ReleaseFree();  // free blocks of other sizes must not push the total above the limit
    }
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
  free_ += header->bytes;
  header->next_free = std::exchange(free_blocks_.find(header->bytes)->second, header);
}

void BlockPool::ReleaseFree() {
  for (auto& [bytes, first] : free_blocks_) {
    while (first != nullptr) DeleteBlock(std::exchange(first, first->next_free));
  }
  free_ = 0;
}

}  // namespace inlay
