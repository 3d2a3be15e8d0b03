// A small model that embeds texts, with the demo model's vocabulary.
#ifndef INLAY_TESTS_GEMMA_LIKE_EMBEDDING_FILE_H_
#define INLAY_TESTS_GEMMA_LIKE_EMBEDDING_FILE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "configs/test_twins.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/must.h"

namespace inlay {

struct EmbeddingFile {
  WeightType type = WeightType::kF32;
  std::vector<int> dense = {};       // which of the matrices dense_2 and dense_3 there are
  std::optional<bool> add_eos = {};  // tokenizer.ggml.add_eos_token
  double norm_scale = 1;             // the weights of the last norm are multiplied by it
};

inline void WriteEmbeddingFile(const EmbeddingFile& options, const std::string& path) {
  using Config = TestGemmaEmbedding;
  SynthModel model = Must(FindConfig(absl::string_view("test-gemma-embedding")))->synth();
  constexpr uint64_t kDim = Config::kModelDim, kDense = Config::kEmbedding.dense_dim;
  for (const int which : options.dense) {
    model.tensors.push_back({.name = absl::StrCat("dense_", which, ".weight"),
                             .dims = which == 2 ? std::vector<uint64_t>{kDim, kDense}
                                                : std::vector<uint64_t>{kDense, kDim}});
  }
  for (SynthTensor& tensor : model.tensors) {
    if (tensor.name == "output_norm.weight") tensor.scale *= options.norm_scale;
  }
  // The metadata as a file, to be copied with another tokenizer.
  const std::string metadata = path + ".metadata";
  ASSERT_TRUE(model.metadata->Open(metadata).ok());
  ASSERT_TRUE(model.metadata->Finish().ok());
  const GgufFile without = Must(GgufFile::Open(metadata)),
                 bard = Must(GgufFile::Open("models/bard.gguf"));
  model.metadata = std::make_unique<GgufWriter>();
  for (const auto& [file, tokenizer] : {std::pair(&without, false), {&bard, true}}) {
    for (const GgufEntry& entry : file->metadata()) {
      if (absl::StartsWith(entry.key(), "tokenizer.") != tokenizer) continue;
      if (entry.key() == "tokenizer.ggml.add_eos_token") continue;
      model.metadata->SetValue(entry.key(), entry.value);
    }
  }
  if (options.add_eos.has_value()) {
    model.metadata->SetBool("tokenizer.ggml.add_eos_token", *options.add_eos);
  }
  const absl::Status status = WriteSynth(std::move(model), {.type = options.type}, 3, path);
  ASSERT_TRUE(status.ok()) << status;
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_EMBEDDING_FILE_H_
