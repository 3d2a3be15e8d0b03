#include "tools/footer.h"

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/plural.h"

namespace inlay {
namespace {

std::string Rate(size_t tokens, double seconds) {
  std::string line = absl::StrCat(Plural(tokens, "token"), Format(" in %.2f s", seconds));
  if (tokens > 0 && seconds > 0) AppendFormat(&line, ", %.1f tokens/s", tokens / seconds);
  return line;
}

// The share of drafted tokens that were accepted, if any were drafted.
std::string Acceptance(const GenerateResult& result) {
  if (result.drafted_tokens == 0) return "";
  return Format(", %d of %d drafted %s accepted (%.0f %%)", result.accepted_tokens,
                result.drafted_tokens, result.drafted_tokens == 1 ? "token" : "tokens",
                100.0 * static_cast<double>(result.accepted_tokens) /
                    static_cast<double>(result.drafted_tokens));
}

nlohmann::ordered_json RateJson(size_t tokens, double seconds) {
  if (tokens == 0 || seconds <= 0) return nullptr;
  return static_cast<double>(tokens) / seconds;
}

}  // namespace

std::string RatesText(const GenerateResult& result) {
  return absl::StrCat("prompt: ", Rate(result.prompt_tokens, result.prompt_seconds),
                      "; generated: ", Rate(result.tokens.size(), result.decode_seconds),
                      Acceptance(result));
}

std::string TimingsFooter(const GenerateResult& result, uint64_t seed, double load_seconds) {
  return absl::StrCat("[", RatesText(result), "]\n", Format("[loaded in %.2f s", load_seconds),
                      "; stopped by: ", StopReasonName(result.stop_reason), "; seed ", seed, "]\n");
}

nlohmann::ordered_json TimingsJson(const GenerateResult& result, double load_seconds) {
  return {{"load_seconds", load_seconds},
          {"prompt_tokens", result.prompt_tokens},
          {"prompt_seconds", result.prompt_seconds},
          {"prompt_tokens_per_second", RateJson(result.prompt_tokens, result.prompt_seconds)},
          {"generated_tokens", result.tokens.size()},
          {"generated_seconds", result.decode_seconds},
          {"generated_tokens_per_second", RateJson(result.tokens.size(), result.decode_seconds)},
          {"drafted_tokens", result.drafted_tokens},
          {"accepted_tokens", result.accepted_tokens},
          {"forced_tokens", result.forced_tokens}};
}

}  // namespace inlay
