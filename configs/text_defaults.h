// What a config says about its model's text: the chat template, how to sample.
#ifndef INLAY_CONFIGS_TEXT_DEFAULTS_H_
#define INLAY_CONFIGS_TEXT_DEFAULTS_H_

namespace inlay {

// How a conversation is written as one text; gemma_like/chat/builtin_templates.h has their names.
enum class ChatTemplate { kNone, kGemma, kGemma4, kGranite, kChatMl };

// Sampling settings used where neither the user nor the model file gives any. A temperature of 0 is
// greedy; top_k 0, top_p 1, min_p 0 and repeat_penalty 1 are off.
struct SamplingDefaults {
  float temperature = 0.8f;
  int top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.0f;
  float repeat_penalty = 1.0f;
  int repeat_last_n = 64;  // tokens to which the penalty applies
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_TEXT_DEFAULTS_H_
