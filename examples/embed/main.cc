// Loads a model, starts a conversation, and streams text: embed [MODEL]
#include <cstdio>

#include "inlay/inlay.h"

int main(int argc, char** argv) {
  auto model = inlay::LoadModel(argc > 1 ? argv[1] : DEMO_MODEL, {.threads = 2});
  if (!model.ok()) return std::fprintf(stderr, "%s\n", model.status().ToString().c_str()), 1;

  auto prompt = model->tokenizer->Encode("ROMEO:\n");
  auto cache = model->engine->CreateCache({.max_length = 1024});
  if (!prompt.ok() || !cache.ok()) return 1;
  auto result = inlay::Generate(
      *model->engine, *model->tokenizer, **cache, *prompt, {.max_tokens = 60},
      [](absl::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  return result.ok() ? 0 : 1;
}
