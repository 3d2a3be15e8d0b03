// Saved sequences written by hand.
#ifndef INLAY_TESTS_CACHE_PUT_BYTES_H_
#define INLAY_TESTS_CACHE_PUT_BYTES_H_

#include <cstdint>
#include <vector>

namespace inlay {

using Bytes = std::vector<uint8_t>;

template <class T>
void Put(Bytes& bytes, T value) {
  const auto* data = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof(value));
}

}  // namespace inlay

#endif  // INLAY_TESTS_CACHE_PUT_BYTES_H_
