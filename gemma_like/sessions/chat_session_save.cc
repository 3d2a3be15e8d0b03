// A chat in a file: the user's messages, then the conversation as KVCache saves it.
//
//   magic "inlaychat4"; number of turns, number of answers attempted; the fingerprint of the format
//   (ChatFormat::fingerprint); the system prompt, as the size in bytes and these bytes; for each
//   turn its first position, the one after its last, and the message and the answer, both as the
//   size in bytes and these bytes (2^64 - 1 and nothing for an answer that is not known); the XXH64
//   of all that; the conversation
//
// with all numbers uint64, little-endian. The third version, of magic "inlaychat3", has no
// fingerprint, and the second, of magic "inlaychat2", no system prompt either. In the first
// version, of magic "inlaychat\n", a turn has its first position and the message.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "cache/model_identity.h"
#include "gemma_like/sessions/chat_session.h"
#include "gemma_like/sessions/session.h"
#include "io/file/file_kind.h"

namespace inlay {
namespace {

constexpr absl::string_view kMagic = "inlaychat4", kThirdMagic = "inlaychat3",
                            kSecondMagic = "inlaychat2", kFirstMagic = "inlaychat\n";
constexpr size_t kMagicBytes = kMagic.size();
static_assert(kFirstMagic.size() == kMagicBytes && kSecondMagic.size() == kMagicBytes &&
              kThirdMagic.size() == kMagicBytes);
// The most bytes in front of the conversation: more than the texts of any that fits a model, and
// little enough to allocate even if only a damaged file asks for it.
constexpr uint64_t kMostSaid = uint64_t{64} << 20;

// The size of an answer that is not known.
constexpr uint64_t kAnswerUnknown = std::numeric_limits<uint64_t>::max();

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the saved chat is damaged: ", what));
}

// Reads the messages, which precede the conversation.
class HeadReader {
 public:
  explicit HeadReader(ByteSource& reader) : reader_(reader) {}

  absl::StatusOr<std::string> Text(uint64_t size) {
    const uint64_t most = std::min(kMostSaid - read_, reader_.remaining());
    if (size > most) {
      return Damaged(absl::StrCat("it needs ", size, " bytes where there can be ", most));
    }
    std::string text(size, '\0');
    INLAY_RETURN_IF_ERROR(reader_.Read({reinterpret_cast<uint8_t*>(text.data()), text.size()}));
    hash_.Update(text.data(), text.size());
    read_ += size;
    return text;
  }

  absl::StatusOr<uint64_t> Number() {
    INLAY_ASSIGN_OR_RETURN(const std::string bytes, Text(sizeof(uint64_t)));
    uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof(number));
    return number;
  }

  // The turn of this number, from 1, which begins at `least` or later; `end` is 0 in the first
  // version.
  absl::StatusOr<ChatSession::Turn> Turn(size_t number, bool first_version, size_t least) {
    ChatSession::Turn turn{.user = "", .answer = {}, .begin = 0, .end = 0, .before = nullptr};
    INLAY_ASSIGN_OR_RETURN(turn.begin, Number());
    if (!first_version) {
      INLAY_ASSIGN_OR_RETURN(turn.end, Number());
    }
    if (turn.begin < least) {
      return Damaged(absl::StrCat("turn ", number, " begins at position ", turn.begin, ", not at ",
                                  least, " or later"));
    }
    if (!first_version && turn.end <= turn.begin) {
      return Damaged(absl::StrCat("turn ", number, " begins at position ", turn.begin,
                                  " and ends at ", turn.end, ", not later"));
    }
    INLAY_ASSIGN_OR_RETURN(const uint64_t size, Number());
    INLAY_ASSIGN_OR_RETURN(turn.user, Text(size));
    if (first_version) return turn;
    INLAY_ASSIGN_OR_RETURN(const uint64_t answer_size, Number());
    if (answer_size != kAnswerUnknown) {
      INLAY_ASSIGN_OR_RETURN(turn.answer, Text(answer_size));
    }
    return turn;
  }

  uint64_t digest() const { return hash_.Digest(); }

 private:
  ByteSource& reader_;
  Xxh64 hash_;
  uint64_t read_ = 0;
};

// What precedes the conversation.
struct ChatHead {
  bool first_version = false;
  uint64_t answers = 0;
  std::optional<uint64_t> format = std::nullopt;     // its fingerprint, from version 4 on
  std::optional<std::string> system = std::nullopt;  // from version 3 on
  std::vector<ChatSession::Turn> turns = {};
};

absl::StatusOr<ChatHead> ReadHead(ByteSource& source) {
  HeadReader reader(source);
  INLAY_ASSIGN_OR_RETURN(const std::string magic,
                         reader.Text(std::min<uint64_t>(kMagicBytes, source.remaining())));
  ChatHead head{.first_version = magic == kFirstMagic};
  const bool has_format = magic == kMagic, has_system = has_format || magic == kThirdMagic;
  if (!has_system && magic != kSecondMagic && !head.first_version)
    return absl::InvalidArgumentError("it is not a saved chat");
  INLAY_ASSIGN_OR_RETURN(const uint64_t count, reader.Number());
  INLAY_ASSIGN_OR_RETURN(head.answers, reader.Number());
  if (has_format) {
    INLAY_ASSIGN_OR_RETURN(head.format, reader.Number());
  }
  if (has_system) {
    INLAY_ASSIGN_OR_RETURN(const uint64_t size, reader.Number());
    INLAY_ASSIGN_OR_RETURN(head.system, reader.Text(size));
  }
  std::vector<ChatSession::Turn>& turns = head.turns;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t least = turns.empty() ? 0 : turns.back().begin + (head.first_version ? 1 : 0);
    INLAY_ASSIGN_OR_RETURN(ChatSession::Turn turn,
                           reader.Turn(turns.size() + 1, head.first_version, least));
    if (turns.empty() && turn.begin != 0) return Damaged("the first turn does not begin at 0");
    if (head.first_version && !turns.empty()) turns.back().end = turn.begin;
    turns.push_back(std::move(turn));
  }
  const uint64_t digest = reader.digest();
  INLAY_ASSIGN_OR_RETURN(const uint64_t stored, reader.Number());
  if (stored != digest) return Damaged("the checksum of the messages is wrong");
  return head;
}

}  // namespace

absl::Status ChatSession::Save(StateWriter& writer, SavedPart part) const {
  return OrOutOfMemory("this chat", [&]() -> absl::Status {
    std::string head(kMagic);
    const auto add = [&head](uint64_t number) {
      head.append(reinterpret_cast<const char*>(&number), sizeof(number));
    };
    const auto add_text = [&](absl::string_view text) {
      add(text.size());
      absl::StrAppend(&head, text);
    };
    add(turns_.size());
    add(answers_);
    add(format_->fingerprint());
    add_text(system_);
    for (const Turn& turn : turns_) {
      add(turn.begin);
      add(turn.end);
      add_text(turn.user);
      if (turn.answer.has_value()) {
        add_text(*turn.answer);
      } else {
        add(kAnswerUnknown);
      }
    }
    add(Xxh64Of(head.data(), head.size()));
    if (head.size() > kMostSaid) {
      return absl::InvalidArgumentError(
          absl::StrCat("the system prompt, messages and answers of this chat take ", head.size(),
                       " bytes, more than the ", kMostSaid, " that can be saved"));
    }
    INLAY_RETURN_IF_ERROR(writer.Append(AsBytes(head)));
    return SaveSession(engine_, *cache_, writer, part);
  });
}

absl::StatusOr<std::vector<ChatSession::Turn>> ChatSession::ReadTurns(ByteSource& reader) {
  return OrOutOfMemory("a saved chat", [&]() -> absl::StatusOr<std::vector<Turn>> {
    INLAY_ASSIGN_OR_RETURN(ChatHead head, ReadHead(reader));
    return std::move(head.turns);
  });
}

absl::Status ChatSession::Load(ByteSource& reader, const LoadOptions& options) {
  return OrOutOfMemory("this chat", [&]() -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(ChatHead head, ReadHead(reader));
    std::vector<Turn>& turns = head.turns;
    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> cache, empty_->Fork());
    if (head.format.has_value() && *head.format != format_->fingerprint()) {
      // Its tokens are not those that the present format writes: they are read for their errors
      // alone, and the next answer computes the conversation anew from its texts.
      INLAY_ASSIGN_OR_RETURN(const ModelIdentity model, engine_.Identity());
      INLAY_ASSIGN_OR_RETURN(const LoadOutcome outcome, cache->Load(model, reader));
      INLAY_RETURN_IF_ERROR(AllowRecompute(
          options, "it was written by another chat template, or with other tools or thinking",
          outcome.difference.empty() ? cache->length() : outcome.tokens.size()));
      INLAY_ASSIGN_OR_RETURN(cache, empty_->Fork());
      for (Turn& turn : turns) turn.begin = 0;
    } else {
      INLAY_RETURN_IF_ERROR(LoadSession(engine_, reader, *cache, options));
      // A chat whose last turn begins where the conversation ends is computed anew from its texts.
      if (turns.empty() ? cache->length() > 0 : turns.back().begin > cache->length()) {
        return Damaged(
            absl::StrCat("it has ", turns.size(), " turns in ", cache->length(), " tokens"));
      }
      if (head.first_version && !turns.empty()) turns.back().end = cache->length();
    }
    cache_ = std::move(cache);
    turns_ = std::move(turns);
    if (head.system.has_value()) system_ = *std::move(head.system);
    answers_ = head.answers;
    return absl::OkStatus();
  });
}

}  // namespace inlay
