// The byte streams that saved conversations are written to and read from.
#ifndef INLAY_BASE_BYTE_STREAM_H_
#define INLAY_BASE_BYTE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

// The `size` bytes of an object or array, or those of a text.
inline absl::Span<const uint8_t> AsBytes(const void* data, size_t size) {
  return {static_cast<const uint8_t*>(data), size};
}
inline absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return AsBytes(text.data(), text.size());
}

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual absl::Status Append(absl::Span<const uint8_t> bytes) = 0;
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `into` with the next bytes. Asking for more than remaining() is an error.
  virtual absl::Status Read(absl::Span<uint8_t> into) = 0;
  // How many bytes are left. A file or a server claims this number, so do not rely on it before
  // they have been read.
  virtual uint64_t remaining() const = 0;
};

// Appends to a vector, which must outlive it.
class MemorySink final : public ByteSink {
 public:
  explicit MemorySink(std::vector<uint8_t>& bytes) : bytes_(bytes) {}
  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return absl::OkStatus();
  }

 private:
  std::vector<uint8_t>& bytes_;
};

// Reads from bytes that must outlive it.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}
  absl::Status Read(absl::Span<uint8_t> into) override {
    if (into.size() > bytes_.size()) {
      return absl::OutOfRangeError(
          absl::StrCat(into.size(), " bytes are needed but ", bytes_.size(), " are left"));
    }
    if (!into.empty()) std::memcpy(into.data(), bytes_.data(), into.size());
    bytes_.remove_prefix(into.size());
    return absl::OkStatus();
  }
  uint64_t remaining() const override { return bytes_.size(); }

 private:
  absl::Span<const uint8_t> bytes_;
};

}  // namespace inlay

#endif  // INLAY_BASE_BYTE_STREAM_H_
