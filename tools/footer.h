// The timings of an answer, for people (a footer) and for programs (JSON).
#ifndef INLAY_TOOLS_FOOTER_H_
#define INLAY_TOOLS_FOOTER_H_

#include <cstdint>
#include <string>

#include "gemma_like/generation/generate.h"
#include "nlohmann/json.hpp"

namespace inlay {

// "prompt: 5 tokens in 0.01 s, 500.0 tokens/s; generated: ..."
std::string RatesText(const GenerateResult& result);

// Two lines.
std::string TimingsFooter(const GenerateResult& result, uint64_t seed, double load_seconds);

// Seconds, tokens and tokens per second (null where none were counted).
nlohmann::ordered_json TimingsJson(const GenerateResult& result, double load_seconds);

}  // namespace inlay

#endif  // INLAY_TOOLS_FOOTER_H_
