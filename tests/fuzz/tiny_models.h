// One tiny model per family, written, loaded and kept for as long as the program runs.
#ifndef INLAY_TESTS_FUZZ_TINY_MODELS_H_
#define INLAY_TESTS_FUZZ_TINY_MODELS_H_

#include <memory>
#include <string>
#include <vector>

#include "gemma_like/engine.h"
#include "io/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/gemma_like/family_fixture.h"

namespace inlay {

struct TinyModel {
  Family family;
  std::string bytes;         // of its file, in which some matrices are Q8_0
  std::string packed_bytes;  // of that file packed
  std::unique_ptr<Engine> engine;
};

// In the order of AllFamilies().
std::vector<TinyModel>& TinyModels();

// Has as many tokens as a tiny model.
const Tokenizer& TinyTokenizer();

// `bytes` as a file, in memory of its own that ends where they end.
struct ParsedCopy {
  std::shared_ptr<const AlignedCopy> copy;
  absl::StatusOr<GgufFile> file;
};
ParsedCopy ParseModel(const std::string& bytes);

// Appends `tokens` and checks that it can be done; logits after the last go to `logits`, which is
// resized.
void MustAppend(Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens,
                std::vector<float>* logits);

}  // namespace inlay

#endif  // INLAY_TESTS_FUZZ_TINY_MODELS_H_
