#include "tools/footer.h"
#include "tools/format.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace inlay {
namespace {

std::string Rate(size_t tokens, double seconds) {
  std::string line = Format("%d token%s in %.2f s", tokens, tokens == 1 ? "" : "s", seconds);
  if (tokens > 0 && seconds > 0) AppendFormat(&line, ", %.1f tokens/s", tokens / seconds);
  return line;
}

// How good the guesses were, where there were any.
std::string Acceptance(const GenerateResult& result) {
  if (result.drafted_tokens == 0) return "";
  return Format(", %d of %d guesses accepted (%.0f %%)", result.accepted_tokens,
                result.drafted_tokens,
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

std::string TimingsFooter(const GenerateResult& result, uint64_t seed, double load_seconds,
                          bool color) {
  const std::string lines =
      absl::StrCat("[", RatesText(result), "]\n", Format("[loaded in %.2f s", load_seconds),
                   "; stopped by: ", StopReasonName(result.stop_reason), "; seed ", seed, "]\n");
  return color ? absl::StrCat("\033[2m", lines, "\033[0m") : lines;
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
          {"accepted_tokens", result.accepted_tokens}};
}

bool HasColor(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && (no_color == nullptr || *no_color == 0) && term != nullptr &&
         absl::string_view(term) != "dumb";
}

}  // namespace inlay
