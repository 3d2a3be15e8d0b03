// The bytes that a fuzzer tries, taken apart into numbers and texts, and the checks on what
// happens.
#ifndef INLAY_TESTS_FUZZ_FUZZ_INPUT_H_
#define INLAY_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "absl/types/span.h"

// Each fuzzer defines this one function; libFuzzer calls it, and so does replay_test.cc.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Ends the process, which is what a fuzzer takes for a finding.
#define INLAY_FUZZ_CHECK(condition)                                                            \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      std::fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                            \
    }                                                                                          \
  } while (false)

namespace inlay {

// Reads from the front. When nothing is left, numbers are 0 and texts empty, so that every input
// means something.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : bytes_(data, size) {}

  bool empty() const { return bytes_.empty(); }

  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_.front();
    bytes_.remove_prefix(1);
    return byte;
  }

  // 0 to `most`.
  size_t UpTo(size_t most) {
    size_t number = 0;
    for (size_t range = most; range > 0; range >>= 8) number = number << 8 | Byte();
    return most == SIZE_MAX ? number : number % (most + 1);
  }

  // A text whose size comes first.
  std::string Text(size_t most) {
    const size_t size = UpTo(most);
    return Take(std::min(size, bytes_.size()));
  }
  std::string Rest() { return Take(bytes_.size()); }

 private:
  std::string Take(size_t size) {
    std::string text(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_.remove_prefix(size);
    return text;
  }

  absl::Span<const uint8_t> bytes_;
};

// Bytes that start where a mapped file's might, for packed tensors too, and end where they end, so
// that a sanitizer sees any read beyond.
class AlignedCopy {
 public:
  AlignedCopy(const void* data, size_t size)
      : size_(size), data_(static_cast<uint8_t*>(::operator new(size, kAlignment))) {
    if (size > 0) std::memcpy(data_.get(), data, size);
  }
  absl::Span<const uint8_t> bytes() const { return {data_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(uint8_t* p) const { ::operator delete(p, kAlignment); }
  };
  size_t size_;
  std::unique_ptr<uint8_t[], Free> data_;
};

// Changes bytes that were right: overwrites a few here and there, and may cut the end off.
inline void Patch(FuzzInput& input, std::string& bytes) {
  if (input.Byte() % 8 == 1) bytes.resize(input.UpTo(bytes.size()));
  for (size_t count = input.UpTo(20); count > 0 && !bytes.empty() && !input.empty(); --count) {
    const size_t at = input.UpTo(bytes.size() - 1);
    const std::string with = input.Text(std::min<size_t>(bytes.size() - at, 8));
    bytes.replace(at, with.size(), with);
  }
}

}  // namespace inlay

#endif  // INLAY_TESTS_FUZZ_FUZZ_INPUT_H_
