// Copies of GGUF files that differ in something.
#ifndef INLAY_TESTS_IO_GGUF_CHANGED_GGUF_H_
#define INLAY_TESTS_IO_GGUF_CHANGED_GGUF_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "ops/quant/weight_type.h"

namespace inlay {

// A tensor as a file stores it.
struct StoredTensor {
  std::string name;
  std::vector<uint64_t> dims;
  WeightType type = WeightType::kF32;
  std::string data;
};

// What a copy of a file differs in.
struct GgufChange {
  std::vector<std::string> without_keys = {};
  std::function<void(GgufWriter&)> add_keys = [](GgufWriter&) {};
  std::function<void(std::vector<StoredTensor>&)> tensors = [](std::vector<StoredTensor>&) {};
};

inline void WriteChanged(const GgufFile& file, const GgufChange& change, const std::string& path) {
  GgufWriter writer;
  change.add_keys(writer);
  for (const GgufEntry& entry : file.metadata()) {
    const auto& without = change.without_keys;
    if (std::find(without.begin(), without.end(), entry.key()) == without.end())
      writer.SetValue(entry.key(), entry.value);
  }
  std::vector<StoredTensor> tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    tensors.push_back({std::string(tensor.name),
                       {tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims},
                       tensor.type,
                       {tensor.data.begin(), tensor.data.end()}});
  }
  change.tensors(tensors);
  for (const StoredTensor& tensor : tensors)
    ASSERT_TRUE(writer.AddTensor(tensor.name, tensor.dims, tensor.type).ok());
  const absl::Status opened = writer.Open(path);
  ASSERT_TRUE(opened.ok()) << opened;
  for (const StoredTensor& tensor : tensors) {
    const auto* data = reinterpret_cast<const uint8_t*>(tensor.data.data());
    ASSERT_TRUE(writer.AppendData({data, tensor.data.size()}).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
}

}  // namespace inlay

#endif  // INLAY_TESTS_IO_GGUF_CHANGED_GGUF_H_
