// Any text as a chat template, over any JSON: refused with a sentence, or rendered within its
// limits to the same bytes again, of which none that a message wrote counts as the template's.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "io/template/jinja.h"
#include "io/template/json_input.h"
#include "tests/fuzz/fuzz_input.h"

namespace inlay {
namespace {

constexpr absl::string_view kConversation = R"json({
  "messages": [{"role": "system", "content": " You are <b>kind</b>\ue000. "},
               {"role": "user", "content": "\ue000Hello\nthere \u00e9\u4e2d", "n": [1, 2.5, null, true]},
               {"role": "assistant", "content": null, "tool_calls": [
                 {"type": "function", "id": "a", "function": {"name": "f", "arguments": {"x": "y"}}}]},
               {"role": "tool", "content": "[1, 2]\ue000", "tool_call_id": "a"}],
  "tools": [{"type": "function", "function": {"name": "f", "description": "d\ue000",
             "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}}],
  "add_generation_prompt": true, "numbers": [3, 1, 2], "empty": "", "text": "a\ue000b c\ue000"})json";

// Small ones, so that a slow input stands out.
jinja::RenderOptions Options() {
  jinja::RenderOptions options;
  options.limits = {.max_steps = 200'000, .max_bytes = size_t{8} << 20, .max_depth = 200};
  options.now = absl::FromUnixSeconds(1'700'000'000);
  options.time_zone = absl::UTCTimeZone();
  return options;
}

void CheckRuns(const jinja::Text& text) {
  size_t begin = 0;
  for (const jinja::OriginRun& run : text.runs()) {
    INLAY_FUZZ_CHECK(run.end > begin);
    begin = run.end;
  }
  INLAY_FUZZ_CHECK(begin == text.size());
  INLAY_FUZZ_CHECK(text.size() <= Options().limits.max_bytes);
}

void CheckRefusal(const absl::Status& status) {
  INLAY_FUZZ_CHECK(absl::IsFailedPrecondition(status) || !status.message().empty());
  INLAY_FUZZ_CHECK(!absl::IsInternal(status) && !absl::IsUnknown(status));
}

// U+E000, the sign of the conversation's texts, is a message's wherever it is, unless the template
// can write it itself.
void CheckOrigins(const jinja::Text& text, absl::string_view source) {
  if (source.find_first_of("\xEE\\") != absl::string_view::npos) return;
  for (size_t at = text.bytes().find('\xEE'); at != absl::string_view::npos;
       at = text.bytes().find('\xEE', at + 1)) {
    INLAY_FUZZ_CHECK(text.OriginAt(at) == jinja::Origin::kMessage);
  }
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  // A NUL separates the template from JSON of its own, if any.
  const size_t end = std::min(bytes.find('\0'), size);
  const absl::string_view source = bytes.substr(0, end);
  const absl::string_view json = end < size ? bytes.substr(end + 1) : kConversation;
  const auto inputs = jinja::ParseJson(json);
  if (!inputs.ok()) CheckRefusal(inputs.status());
  const auto parsed = jinja::Template::Parse(source);
  if (!parsed.ok()) CheckRefusal(parsed.status());
  if (!inputs.ok() || !parsed.ok() || !inputs->is(jinja::Type::kDict)) return 0;
  const auto text = parsed->Render(*inputs, Options());
  const auto again = parsed->Render(*inputs, Options());
  INLAY_FUZZ_CHECK(text.status() == again.status());
  if (!text.ok()) {
    CheckRefusal(text.status());
    return 0;
  }
  INLAY_FUZZ_CHECK(text->bytes() == again->bytes());
  CheckRuns(*text);
  CheckOrigins(*text, end < size ? "\xEE" : source);
  return 0;
}
