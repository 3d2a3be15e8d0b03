#include "gemma_like/weights_hash.h"

#include <algorithm>
#include <cstddef>

#include "gemma_like/packed_file.h"
#include "ops/xxh64.h"

namespace inlay {

uint64_t WeightsHash(const GgufFile& file) {
  if (file.packed()) return file.GetUint(kPackedWeightsKey).value_or(0);  // checked when it loads
  // Each sample costs at most one page of the file; vectors are read whole.
  constexpr size_t kSamples = 4;
  constexpr size_t kSampleBytes = 64;
  constexpr size_t kWholeBytes = 4096;
  Xxh64 hash;
  for (const GgufTensor& tensor : file.tensors()) {
    hash.Update(tensor.name.data(), tensor.name.size());
    hash.Update(tensor.dims.data(), sizeof(tensor.dims));
    hash.Update(&tensor.type, sizeof(tensor.type));
    const size_t size = tensor.data.size();
    if (size <= kWholeBytes) {
      hash.Update(tensor.data.data(), size);
      continue;
    }
    for (size_t i = 0; i < kSamples; ++i) {
      hash.Update(tensor.data.data() + (size - kSampleBytes) * i / (kSamples - 1), kSampleBytes);
    }
  }
  return hash.Digest();
}

}  // namespace inlay
