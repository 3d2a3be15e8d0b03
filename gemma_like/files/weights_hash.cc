#include "gemma_like/files/weights_hash.h"

#include <system_error>
#include <utility>

#include "absl/types/span.h"
#include "gemma_like/files/packed_file.h"
#include "ops/signals_blocked.h"

namespace inlay {
namespace {

// Hashed under one lock: the most that Get() waits for the other thread, about a millisecond in
// memory.
constexpr size_t kPieceBytes = size_t{16} << 20;

}  // namespace

WeightsHash::WeightsHash(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}

WeightsHash::~WeightsHash() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void WeightsHash::Start() {
  if (file_->packed()) return;
  const SignalsBlocked signals;
  try {
    thread_ = std::thread([this] {
      while (!stop_ && Advance()) {
      }
    });
  } catch (const std::system_error&) {
    // Get() hashes everything.
  }
}

bool WeightsHash::Advance() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (tensor_ == file_->tensors().size()) return false;
  const GgufTensor& tensor = file_->tensors()[tensor_];
  if (offset_ == 0) {
    hash_.Update(tensor.name.data(), tensor.name.size());
    hash_.Update(tensor.dims.data(), sizeof(tensor.dims));
    hash_.Update(&tensor.type, sizeof(tensor.type));
  }
  const absl::Span<const uint8_t> piece = tensor.data.subspan(offset_, kPieceBytes);
  hash_.Update(piece.data(), piece.size());
  file_->Forget(piece);
  offset_ += piece.size();
  if (offset_ == tensor.data.size()) {
    ++tensor_;
    offset_ = 0;
  }
  return true;
}

uint64_t WeightsHash::Get() {
  if (file_->packed()) return file_->GetUint(kPackedWeightsKey).value_or(0);  // checked at load
  while (Advance()) {
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  return hash_.Digest();
}

uint64_t WeightsHashOf(const GgufFile& file) {
  // The pointer owns nothing: the file is the caller's.
  return WeightsHash(std::shared_ptr<const GgufFile>(std::shared_ptr<void>(), &file)).Get();
}

}  // namespace inlay
