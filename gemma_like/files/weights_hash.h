// A number that tells models' weights apart.
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

// The XXH64 of the names, shapes, types and data of all tensors of a file, in its order. Reading
// takes 0.15 s for a gigabyte in memory (one core of an EPYC 9005), and as long as the disk needs
// for others, so it can be done in the background. Of a packed file it is known at once: what it
// was for the file that it was made from.
class WeightsHash {
 public:
  explicit WeightsHash(std::shared_ptr<const GgufFile> file);
  WeightsHash(const WeightsHash&) = delete;
  WeightsHash& operator=(const WeightsHash&) = delete;
  ~WeightsHash();

  // Goes on by itself in another thread, if the system gives one. Once.
  void Start();

  // Does what is left to do and returns the hash. From any thread.
  uint64_t Get();

 private:
  // Reads a little more; false when all was read.
  bool Advance();

  const std::shared_ptr<const GgufFile> file_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;  // of all that follows
  Xxh64 hash_;
  size_t tensor_ = 0;  // the next to read of
  size_t offset_ = 0;  // in its data
  std::thread thread_;
};

// The same in one call.
uint64_t WeightsHashOf(const GgufFile& file);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_WEIGHTS_HASH_H_
