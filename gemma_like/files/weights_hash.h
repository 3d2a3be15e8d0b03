// A hash that identifies a model's weights.
#ifndef INLAY_GEMMA_LIKE_FILES_WEIGHTS_HASH_H_
#define INLAY_GEMMA_LIKE_FILES_WEIGHTS_HASH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "base/xxh64.h"
#include "io/gguf/gguf.h"

namespace inlay {

// The XXH64 of the names, shapes, types and data of all tensors of a file, in its order. Hashing
// costs 0.15 s for a gigabyte in memory (one core of an EPYC 9005), otherwise as long as the disk
// needs, so it can be done in the background. For a packed file it is known at once: the file
// stores the hash of the GGUF file that it was made from.
class WeightsHash {
 public:
  explicit WeightsHash(std::shared_ptr<const GgufFile> file);
  WeightsHash(const WeightsHash&) = delete;
  WeightsHash& operator=(const WeightsHash&) = delete;
  ~WeightsHash();

  // Starts hashing in another thread, if the system provides one. To be called at most once.
  void Start();

  // Hashes what remains and returns the hash. May be called from any thread.
  uint64_t Get();

 private:
  // Hashes the next piece; false when all pieces are hashed.
  bool Advance();

  const std::shared_ptr<const GgufFile> file_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;  // guards hash_, tensor_ and offset_
  Xxh64 hash_;
  size_t tensor_ = 0;  // the next to read
  size_t offset_ = 0;  // in its data
  std::thread thread_;
};

// The same in one call.
uint64_t WeightsHashOf(const GgufFile& file);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_WEIGHTS_HASH_H_
