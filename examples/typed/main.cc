// Continues a text by a model that is a type: its layers, their cache and its forward pass are
// fixed when this is compiled, and files of other models are refused. typed [MODEL]
#include <cstdio>
#include <memory>
#include <string>

#include "inlay/configs/bard.h"
#include "inlay/gemma_like/model/model.h"
#include "inlay/inlay.h"
#include "inlay/io/tokenizer/load_tokenizer.h"

absl::Status Run(const std::string& path) {
  auto file = inlay::GgufFile::Open(path);
  if (!file.ok()) return file.status();
  auto tokenizer = inlay::LoadTokenizer(*file);
  if (!tokenizer.ok()) return tokenizer.status();
  auto prompt = (*tokenizer)->Encode("ROMEO:\n");
  if (!prompt.ok()) return prompt.status();
  auto shared = std::make_shared<const inlay::GgufFile>(*std::move(file));
  auto model = inlay::Model<inlay::Bard>::Load(shared, {.threads = 2});
  if (!model.ok()) return model.status();

  inlay::HybridCache<inlay::Bard> cache = inlay::CreateKVCache<inlay::Bard>({.max_length = 256});
  return inlay::Generate(
             **model, **tokenizer, cache, *prompt, {.max_tokens = 60},
             [](absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); })
      .status();
}

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : DEMO_MODEL);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
