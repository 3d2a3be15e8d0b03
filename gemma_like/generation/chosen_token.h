// A generated token and how likely it was.
#ifndef INLAY_GEMMA_LIKE_GENERATION_CHOSEN_TOKEN_H_
#define INLAY_GEMMA_LIKE_GENERATION_CHOSEN_TOKEN_H_

#include <cstdint>
#include <vector>

namespace inlay {

struct TokenChance {
  int32_t token;
  float
      logprob;  // the natural logarithm of the model's own probability, before any sampling option
};

struct ChosenToken {
  int32_t token;
  float logprob;
  std::vector<TokenChance> top;  // the likeliest tokens, as many as asked for
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_CHOSEN_TOKEN_H_
