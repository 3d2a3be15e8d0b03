#include "cache/block_pool.h"

#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>

namespace inlay {

using block_internal::Header;

namespace {

// The header lies in front of the data and takes one alignment unit, so that the data stays
// aligned.
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

BlockRef BlockPool::Allocate(size_t bytes) {
  assert(bytes > 0);
  Header* header = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > options_.limit_bytes || used_ > options_.limit_bytes - bytes) return BlockRef();
    auto it = free_blocks_.find(bytes);
    if (it != free_blocks_.end() && !it->second.empty()) {
      header = it->second.back();
      it->second.pop_back();
      free_ -= bytes;
    } else if (free_ > 0 && used_ + free_ > options_.limit_bytes - bytes) {
      ReleaseFree();  // blocks of other sizes must not keep this one from the limit
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

void BlockPool::Return(Header* header) {
  std::lock_guard<std::mutex> lock(mutex_);
  used_ -= header->bytes;
  free_ += header->bytes;
  free_blocks_[header->bytes].push_back(header);
}

void BlockPool::ReleaseFree() {
  for (auto& [bytes, blocks] : free_blocks_) {
    for (Header* header : blocks) DeleteBlock(header);
    blocks.clear();
  }
  free_ = 0;
}

}  // namespace inlay
