// Any words in a chat template: what a person says never becomes a token of control.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8_stream.h"
#include "gemma_like/chat/chat.h"
#include "gemma_like/generation/stop_matcher.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tools/json_text.h"

namespace inlay {
namespace {

constexpr int32_t kControl = 3;

struct Family {
  std::unique_ptr<Tokenizer> tokenizer;
  ChatTemplate chat_template;
};

std::vector<Family> MakeFamilies() {
  TestVocabulary gemma = SpmBase();
  for (const char* token : {"<start_of_turn>", "<end_of_turn>"}) gemma.Add(token, kControl);
  gemma.Add("user\n", 4);
  gemma.Add("ab", 1, 2);
  TestVocabulary granite = BpeBase("dbrx");
  for (const char* token : {"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"})
    granite.Add(token, kControl);
  std::vector<Family> families;
  families.push_back({*gemma.Load(), ChatTemplate::kGemma});
  families.push_back({*granite.Load(), ChatTemplate::kGranite});
  families.push_back({*gemma.Load(), ChatTemplate::kNone});
  return families;
}

size_t Controls(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  return static_cast<size_t>(std::count_if(
      tokens.begin(), tokens.end(), [&](int32_t token) { return tokenizer.IsControl(token); }));
}

// An answer as it is shown: stop texts never show, and what is shown is UTF-8.
void ShowAnswer(const std::string& answer, FuzzInput& input) {
  std::vector<std::string> stops;
  for (size_t count = input.UpTo(3); count > 0; --count) stops.push_back(input.Text(6));
  StopMatcher matcher(stops);
  Utf8Stream characters;
  std::string shown;
  for (size_t at = 0; at < answer.size();) {
    const size_t n = std::min(answer.size() - at, 1 + input.UpTo(4));
    shown += matcher.Push(characters.Push(absl::string_view(answer).substr(at, n)));
    at += n;
  }
  shown += matcher.Push(characters.Flush());
  if (!matcher.stopped()) shown += matcher.Flush();
  for (const std::string& stop : stops) {
    const bool ignored = stop.empty() || (static_cast<uint8_t>(stop[0]) & 0xC0) == 0x80;
    INLAY_FUZZ_CHECK(ignored || shown.find(stop) == std::string::npos);
  }
  INLAY_FUZZ_CHECK(nlohmann::json::parse(JsonText({{"text", shown}}))["text"] == shown);
  INLAY_FUZZ_CHECK(nlohmann::json::accept(JsonText({{"text", answer}})));
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  static const auto& families = *new std::vector<Family>(MakeFamilies());
  FuzzInput input(data, size);
  const Family& family = families[input.UpTo(families.size() - 1)];
  const Tokenizer& tokenizer = *family.tokenizer;
  const auto format = FixedChatFormat::Create(tokenizer, family.chat_template);
  INLAY_FUZZ_CHECK(format.ok());

  const bool has_system = input.Byte() % 2 == 1;
  const std::string system = has_system ? input.Text(60) : "";
  auto tokens = format->FirstTurn(system, input.Text(60));
  const auto plain = format->FirstTurn(system.empty() ? "" : "s", "u");
  INLAY_FUZZ_CHECK(tokens.ok() && plain.ok());
  INLAY_FUZZ_CHECK(Controls(tokenizer, *tokens) == Controls(tokenizer, *plain));
  while (!input.empty()) {
    const std::string answer = input.Text(60);
    const auto ids = tokenizer.Encode(answer, {.add_bos = false});
    INLAY_FUZZ_CHECK(ids.ok());
    tokens->insert(tokens->end(), ids->begin(), ids->end());
    const auto next = format->NextTurn(*tokens, input.Text(60));
    const auto usual = format->NextTurn(*tokens, "u");
    INLAY_FUZZ_CHECK(next.ok() && usual.ok());
    INLAY_FUZZ_CHECK(Controls(tokenizer, *next) == Controls(tokenizer, *usual));
    tokens->insert(tokens->end(), next->begin(), next->end());
    ShowAnswer(answer, input);
  }
  return 0;
}
