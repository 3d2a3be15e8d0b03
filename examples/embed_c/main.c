/* Two ways to go on from one prompt, and back again: embed_c [MODEL [PROMPT]] */
#include <stdio.h>
#include <string.h>

#include "inlay/inlay_c.h"

#ifndef DEMO_MODEL /* where CMakeLists.txt does not tell it */
#define DEMO_MODEL "models/bard.gguf"
#endif

enum { kMostTokens = 256 };

static int Print(const char* text, size_t size, void* user) {
  fwrite(text, 1, size, (FILE*)user);
  return 0; /* go on */
}

static int Fail(void) {
  fprintf(stderr, "%s\n", inlay_last_error());
  return 1;
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : DEMO_MODEL;
  const char* prompt = argc > 2 ? argv[2] : "ROMEO:\n";
  inlay_model* model = NULL;
  inlay_cache* cache = NULL;
  inlay_cache* fork = NULL;
  inlay_options options = {0};
  int32_t tokens[kMostTokens];
  size_t count = 0;
  int status = 0;

  if (inlay_load_model(path, NULL, &model) != INLAY_OK) return Fail();
  options.size = sizeof(options);
  if (inlay_default_options(model, &options) != INLAY_OK) return Fail();
  options.max_tokens = 40;
  if (inlay_tokenize(model, prompt, strlen(prompt), tokens, kMostTokens, &count) != INLAY_OK) {
    inlay_free_model(model);
    return Fail();
  }
  if (count == 0) { /* a model that begins no text with a token of its own */
    fprintf(stderr, "the prompt is empty\n");
    inlay_free_model(model);
    return 1;
  }
  /* All of the prompt but its last token is read once, for both ways. */
  if (inlay_create_cache(model, NULL, &cache) != INLAY_OK ||
      (count > 1 && inlay_append(cache, tokens, count - 1, NULL) != INLAY_OK) ||
      inlay_fork_cache(cache, &fork) != INLAY_OK ||
      inlay_generate(cache, tokens + count - 1, 1, &options, Print, stdout, NULL) != INLAY_OK) {
    status = Fail();
  }
  if (status == 0) {
    printf("\n--- or ---\n");
    options.seed = 1;
    if (inlay_generate(fork, tokens + count - 1, 1, &options, Print, stdout, NULL) != INLAY_OK)
      status = Fail();
  }
  if (status == 0) {
    /* As if the first answer had never been given. */
    printf("\n--- the first again ---\n");
    options.seed = 0;
    if (inlay_rewind_cache(cache, count - 1) != INLAY_OK ||
        inlay_generate(cache, tokens + count - 1, 1, &options, Print, stdout, NULL) != INLAY_OK) {
      status = Fail();
    }
    printf("\n");
  }
  inlay_free_cache(fork);
  inlay_free_cache(cache);
  inlay_free_model(model);
  return status;
}
