// Builds GGUF files byte by byte, right ones and wrong ones.
#ifndef INLAY_TESTS_IO_GGUF_BYTES_H_
#define INLAY_TESTS_IO_GGUF_BYTES_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/gguf/gguf.h"

namespace inlay {

// Appends whatever it is told to; nothing is checked or counted.
class GgufBytes {
 public:
  template <typename T>
  GgufBytes& Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  GgufBytes& U32(uint32_t value) { return Put(value); }
  GgufBytes& U64(uint64_t value) { return Put(value); }
  GgufBytes& Raw(absl::string_view text) {
    bytes_.append(text.data(), text.size());
    return *this;
  }
  GgufBytes& Text(absl::string_view text) { return U64(text.size()).Raw(text); }
  GgufBytes& Header(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    return Raw("GGUF").U32(version).U64(tensors).U64(keys);
  }
  GgufBytes& Key(absl::string_view name, GgufType type) {
    return Text(name).U32(static_cast<uint32_t>(type));
  }
  GgufBytes& Array(absl::string_view name, GgufType type, uint64_t count) {
    return Key(name, GgufType::kArray).U32(static_cast<uint32_t>(type)).U64(count);
  }
  GgufBytes& Tensor(absl::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                    uint64_t offset) {
    Text(name).U32(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) U64(dim);
    return U32(type).U64(offset);
  }
  GgufBytes& PadTo(size_t alignment) {
    while (bytes_.size() % alignment != 0) bytes_.push_back('\0');
    return *this;
  }
  GgufBytes& Zeros(size_t count) {
    bytes_.append(count, '\0');
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A parsed copy of bytes that ends where they end, so that a sanitizer sees any read beyond.
struct ParsedBytes {
  std::unique_ptr<uint8_t[]> copy;
  absl::StatusOr<GgufFile> file;
};

inline ParsedBytes ParseCopy(absl::string_view bytes) {
  std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  absl::StatusOr<GgufFile> file = GgufFile::Parse({copy.get(), bytes.size()}, "test.gguf");
  return {std::move(copy), std::move(file)};
}

// A right file with a value of every type and two tensors, "a" [4] F32 and "b" [32, 2] Q8_0.
inline std::string SmallFile(uint32_t version = 3) {
  GgufBytes file;
  file.Header(2, 15, version)
      .Key("u8", GgufType::kUint8)
      .Put<uint8_t>(200)
      .Key("i8", GgufType::kInt8)
      .Put<int8_t>(-100)
      .Key("u16", GgufType::kUint16)
      .Put<uint16_t>(60000)
      .Key("i16", GgufType::kInt16)
      .Put<int16_t>(-30000)
      .Key("u32", GgufType::kUint32)
      .U32(4000000000u)
      .Key("i32", GgufType::kInt32)
      .Put<int32_t>(-2000000000)
      .Key("f32", GgufType::kFloat32)
      .Put<float>(0.1f)
      .Key("flag", GgufType::kBool)
      .Put<uint8_t>(1)
      .Key("text", GgufType::kString)
      .Text("h\xC3\xA9llo")
      .Key("u64", GgufType::kUint64)
      .U64(UINT64_MAX)
      .Key("i64", GgufType::kInt64)
      .Put<int64_t>(-5)
      .Key("f64", GgufType::kFloat64)
      .Put<double>(0.1)
      .Array("ints", GgufType::kInt32, 3)
      .Put<int32_t>(1)
      .Put<int32_t>(-2)
      .Put<int32_t>(3)
      .Array("texts", GgufType::kString, 2)
      .Text("x")
      .Text("")
      .Array("floats", GgufType::kFloat32, 2)
      .Put<float>(1.5f)
      .Put<float>(-2.0f)
      .Tensor("b", {32, 2}, 8, 32)
      .Tensor("a", {4}, 0, 0)
      .PadTo(32)
      .Put<float>(1)
      .Put<float>(2)
      .Put<float>(3)
      .Put<float>(4)
      .PadTo(32)
      .Zeros(68);
  return file.bytes();
}

}  // namespace inlay

#endif  // INLAY_TESTS_IO_GGUF_BYTES_H_
