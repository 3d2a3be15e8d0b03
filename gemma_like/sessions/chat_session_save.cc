// A chat in a file: the user's messages, then the conversation as KVCache saves it.
//
//   magic "inlaychat3"; number of turns, number of answers attempted; the system prompt, as the
//   size in bytes and these bytes; for each turn its first position, the one after its last, and
//   the message and the answer, both as the size in bytes and these bytes (2^64 - 1 and nothing for
//   an answer that is not known); the XXH64 of all that; the conversation
//
// with all numbers uint64, little-endian. The second version, of magic "inlaychat2", has no system
// prompt. In the first version, of magic "inlaychat\n", a turn has its first position and the
// message.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "gemma_like/sessions/chat_session.h"
#include "gemma_like/sessions/session.h"
#include "io/file/file_kind.h"

namespace inlay {
namespace {

constexpr absl::string_view kMagic = "inlaychat3", kSecondMagic = "inlaychat2",
                            kFirstMagic = "inlaychat\n";
constexpr size_t kMagicBytes = kMagic.size();
static_assert(kFirstMagic.size() == kMagicBytes && kSecondMagic.size() == kMagicBytes);
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
    INLAY_RETURN_IF_ERROR(
        writer.Append({reinterpret_cast<const uint8_t*>(head.data()), head.size()}));
    return SaveSession(engine_, *cache_, writer, part);
  });
}

absl::Status ChatSession::Load(ByteSource& reader, const LoadOptions& options) {
  return OrOutOfMemory("this chat", [&]() -> absl::Status {
    HeadReader head(reader);
    INLAY_ASSIGN_OR_RETURN(const std::string magic,
                           head.Text(std::min<uint64_t>(kMagicBytes, reader.remaining())));
    const bool first_version = magic == kFirstMagic;
    const bool has_system = magic == kMagic;
    if (magic != kMagic && magic != kSecondMagic && !first_version)
      return absl::InvalidArgumentError("it is not a saved chat");
    INLAY_ASSIGN_OR_RETURN(const uint64_t count, head.Number());
    INLAY_ASSIGN_OR_RETURN(const uint64_t answers, head.Number());
    std::string system = system_;
    if (has_system) {
      INLAY_ASSIGN_OR_RETURN(const uint64_t size, head.Number());
      INLAY_ASSIGN_OR_RETURN(system, head.Text(size));
    }
    std::vector<Turn> turns;
    for (uint64_t i = 0; i < count; ++i) {
      const size_t least = turns.empty() ? 0 : turns.back().begin + (first_version ? 1 : 0);
      INLAY_ASSIGN_OR_RETURN(Turn turn, head.Turn(turns.size() + 1, first_version, least));
      if (turns.empty() && turn.begin != 0) return Damaged("the first turn does not begin at 0");
      if (first_version && !turns.empty()) turns.back().end = turn.begin;
      turns.push_back(std::move(turn));
    }
    const uint64_t digest = head.digest();
    INLAY_ASSIGN_OR_RETURN(const uint64_t stored, head.Number());
    if (stored != digest) return Damaged("the checksum of the messages is wrong");

    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> cache, empty_->Fork());
    INLAY_RETURN_IF_ERROR(LoadSession(engine_, reader, *cache, options));
    // A chat whose last turn begins where the conversation ends is computed anew from its texts.
    if (turns.empty() ? cache->length() > 0 : turns.back().begin > cache->length()) {
      return Damaged(
          absl::StrCat("it has ", turns.size(), " turns in ", cache->length(), " tokens"));
    }
    if (first_version && !turns.empty()) turns.back().end = cache->length();
    cache_ = std::move(cache);
    turns_ = std::move(turns);
    system_ = std::move(system);
    answers_ = answers;
    return absl::OkStatus();
  });
}

}  // namespace inlay
