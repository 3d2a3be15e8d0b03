// What a config says about its model's text: the chat template, how to sample.
#ifndef INLAY_CONFIGS_TEXT_DEFAULTS_H_
#define INLAY_CONFIGS_TEXT_DEFAULTS_H_

namespace inlay {

// How a conversation is written as one text.
enum class ChatTemplate { kNone, kGemma, kGemma4, kGranite, kChatMl };

// Sampling settings used where the user gives none. A temperature of 0 is greedy; top_k 0, top_p 1
// and min_p 0 are off.
struct SamplingDefaults {
  float temperature = 0.8f;
  int top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.0f;
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_TEXT_DEFAULTS_H_
