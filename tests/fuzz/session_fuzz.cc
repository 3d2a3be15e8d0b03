// A saved conversation or chat with a few wrong bytes, whose checksums may have been made right
// again: refused without a change, or what was loaded can be used.
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/xxh64.h"
#include "cache/model_identity.h"
#include "cache/serialize.h"
#include "gemma_like/chat/chat.h"
#include "gemma_like/sessions/chat_session.h"
#include "io/store/state_store_memory.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/tiny_models.h"
#include "tests/must.h"

namespace inlay {
namespace {

constexpr size_t kMostTokens = 200;
constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8};
constexpr size_t kChatMagicBytes = 10;

const ModelIdentity kModel = {
    .weights_hash = 0x1234, .numerics_version = 7, .instruction_set = "AVX2"};

std::string Save(const KVCache& cache) {
  std::vector<uint8_t> bytes;
  MemorySink sink(bytes);
  INLAY_FUZZ_CHECK(cache.Save(kModel, sink).ok());
  return std::string(bytes.begin(), bytes.end());
}

// True where the cache is what was saved.
absl::StatusOr<bool> Load(KVCache& cache, const std::string& bytes) {
  MemorySource source({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  const absl::StatusOr<LoadOutcome> outcome = cache.Load(kModel, source);
  if (!outcome.ok()) return outcome.status();
  INLAY_FUZZ_CHECK(outcome->tokens.empty() || !outcome->difference.empty());
  return outcome->difference.empty();
}

std::unique_ptr<KVCache> NewCache(const Engine& engine, KvType type) {
  return Must(engine.CreateCache({.max_length = kMostTokens + 100}, type));
}

// Writes right checksums wherever a section's claims let one be found.
class Repair {
 public:
  explicit Repair(std::string& bytes) : bytes_(bytes) {}

  void Conversation() {
    uint64_t length = 0;
    if (!Number(32, &length) || !Section(kSavedHeaderBytes - 8)) return;
    if (length > kMostTokens || !Section(length * sizeof(int32_t))) return;
    uint64_t rows = 0;
    while (Number(16, &rows) && rows <= bytes_.size() && Section(24 + rows)) {
    }
  }

  void Chat() {
    uint64_t turns = 0, size = 0;
    if (!Number(kChatMagicBytes, &turns)) return;
    size_t head = kChatMagicBytes + 16;
    const bool first_version = bytes_[kChatMagicBytes - 1] == '\n';
    for (; turns > 0; --turns) {
      head += first_version ? 8 : 16;
      for (int text = 0; text < (first_version ? 1 : 2); ++text) {
        if (!Number(head, &size) || size > bytes_.size()) return;
        head += 8 + size;
      }
    }
    if (!Section(head)) return;
    seed_ = 0;
    Conversation();
  }

 private:
  bool Number(size_t after, uint64_t* number) const {
    if (after + sizeof(*number) > bytes_.size() - at_) return false;
    std::memcpy(number, bytes_.data() + at_ + after, sizeof(*number));
    return true;
  }

  bool Section(size_t size) {
    if (size + sizeof(seed_) > bytes_.size() - at_) return false;
    seed_ = Xxh64Of(bytes_.data() + at_, size, seed_);
    std::memcpy(bytes_.data() + at_ + size, &seed_, sizeof(seed_));
    at_ += size + sizeof(seed_);
    return true;
  }

  std::string& bytes_;
  size_t at_ = 0;
  uint64_t seed_ = 0;
};

// Conversations of these lengths, saved once and kept.
const std::string& Saved(size_t family, KvType type, size_t length) {
  static auto& known = *new std::map<std::tuple<size_t, KvType, size_t>, std::string>;
  auto [at, is_new] = known.try_emplace({family, type, length});
  if (!is_new) return at->second;
  Engine& engine = *TinyModels()[family].engine;
  const auto cache = NewCache(engine, type);
  std::vector<float> logits;
  if (length > 0) MustAppend(engine, *cache, std::vector<int32_t>(length, 5), &logits);
  return at->second = Save(*cache);
}

void TryConversation(FuzzInput& input, size_t family) {
  static constexpr size_t kLengths[] = {0, 1, 5, 31, 32, 33, 64, 70, 96, 150};
  const KvType type = kTypes[input.UpTo(3)];
  const bool repair = input.Byte() % 4 != 0;
  std::string bytes = Saved(family, type, kLengths[input.UpTo(9)]);
  Patch(input, bytes);
  if (repair) Repair(bytes).Conversation();

  Engine& engine = *TinyModels()[family].engine;
  const auto cache = NewCache(engine, type);
  INLAY_FUZZ_CHECK(*Load(*cache, Saved(family, type, 33)));
  const std::string before = Save(*cache);
  if (const absl::StatusOr<bool> loaded = Load(*cache, bytes); !loaded.ok() || !*loaded) {
    INLAY_FUZZ_CHECK(loaded.ok() || !loaded.status().message().empty());
    INLAY_FUZZ_CHECK(Save(*cache) == before);
    return;
  }
  std::vector<float> logits;
  MustAppend(engine, *Must(cache->Fork()), std::vector<int32_t>(40, 3), &logits);
  INLAY_FUZZ_CHECK(
      cache->Rewind(cache->length() - std::min(cache->length(), cache->rewind_depth())).ok());
  MustAppend(engine, *cache, {{1, 2}}, &logits);
  INLAY_FUZZ_CHECK(*Load(*NewCache(engine, type), Save(*cache)));
}

ChatSession NewChat(Engine& engine) {
  GenerateOptions options;
  options.max_tokens = 12;
  return Must(ChatSession::Create(engine, TinyTokenizer(),
                                  std::make_shared<const FixedChatFormat>(*FixedChatFormat::Create(
                                      TinyTokenizer(), ChatTemplate::kNone)),
                                  NewCache(engine, KvType::kF32), "SYSTEM", options));
}

std::string SaveChat(const ChatSession& chat) {
  MemoryStore store;
  INLAY_FUZZ_CHECK(chat.Save(**store.Put("chat")).ok());
  const auto reader = *store.Get("chat");
  std::string bytes(reader->remaining(), '\0');
  INLAY_FUZZ_CHECK(reader->Read({reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}).ok());
  return bytes;
}

void TryChat(FuzzInput& input, size_t family) {
  Engine& engine = *TinyModels()[family].engine;
  static auto& known = *new std::map<size_t, std::string>;
  auto [at, is_new] = known.try_emplace(family);
  if (is_new) {
    ChatSession chat = NewChat(engine);
    for (const char* said : {"HELLO", "", "THERE YOU ARE"}) {
      INLAY_FUZZ_CHECK(chat.Say(said, nullptr, nullptr).ok());
    }
    at->second = SaveChat(chat);
  }
  std::string bytes = at->second;
  const bool repair = input.Byte() % 4 != 0;
  Patch(input, bytes);
  if (repair) Repair(bytes).Chat();

  MemoryStore store;
  const auto writer = *store.Put("chat");
  INLAY_FUZZ_CHECK(
      writer->Append({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).ok());
  INLAY_FUZZ_CHECK(writer->Commit().ok());
  ChatSession chat = NewChat(engine);
  const std::string before = SaveChat(chat);
  if (const absl::Status status = chat.Load(**store.Get("chat")); !status.ok()) {
    INLAY_FUZZ_CHECK(!status.message().empty());
    INLAY_FUZZ_CHECK(SaveChat(chat) == before);
    return;
  }
  chat.Regenerate(nullptr, nullptr).IgnoreError();
  chat.Say("AGAIN", nullptr, nullptr).IgnoreError();
  for (size_t turns = chat.turns().size(); turns > 0; --turns) {
    INLAY_FUZZ_CHECK(chat.turns().size() == turns);
    INLAY_FUZZ_CHECK(chat.Rewind(1).ok());
  }
  INLAY_FUZZ_CHECK(chat.cache().length() == 0);
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  FuzzInput input(data, size);
  const size_t family = input.UpTo(TinyModels().size() - 1);
  if (input.Byte() % 3 == 0) {
    TryChat(input, family);
  } else {
    TryConversation(input, family);
  }
  return 0;
}
