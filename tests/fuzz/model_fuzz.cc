// A model's file, packed or not, with a few wrong bytes: refused, or it runs without harm and no
// token is chosen from logits that are not numbers.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gemma_like/generation/sampler.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/tiny_models.h"
#include "tests/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  FuzzInput input(data, size);
  const size_t variant = input.UpTo(2 * TinyModels().size() - 1);
  const TinyModel& tiny = TinyModels()[variant / 2];
  std::string bytes = variant % 2 == 0 ? tiny.bytes : tiny.packed_bytes;
  Patch(input, bytes);
  ParsedCopy parsed = ParseModel(bytes);
  if (!parsed.file.ok()) return 0;
  auto engine =
      tiny.family.config.load(std::make_shared<const GgufFile>(*std::move(parsed.file)), {});
  if (!engine.ok()) {
    INLAY_FUZZ_CHECK(!engine.status().message().empty());
    return 0;
  }
  const auto cache = Must((*engine)->CreateCache({.max_length = 100}, tiny.family.type));
  std::vector<float> logits;
  std::vector<int32_t> tokens(40);
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<int32_t>(i * 7 % (*engine)->info().vocab_size);
  MustAppend(**engine, *cache, tokens, &logits);
  Sampler sampler({.temperature = 0.5f, .top_k = 3, .repeat_penalty = 1.5f});
  for (int i = 0; i < 3; ++i) {
    const auto token = sampler.Sample(logits, cache->tokens());
    if (!token.ok()) break;
    for (const float logit : logits) INLAY_FUZZ_CHECK(std::isfinite(logit));
    INLAY_FUZZ_CHECK(*token >= 0 && static_cast<size_t>(*token) < logits.size());
    MustAppend(**engine, *cache, {&*token, 1}, &logits);
  }
  return 0;
}
