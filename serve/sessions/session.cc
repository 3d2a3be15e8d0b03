#include "serve/sessions/session.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace inlay::serve {
namespace {

using Kind = SessionTurn::Kind;

// Forgets what a turn's request and its reply said: it is another turn now.
void Forget(SessionTurn& turn, uint64_t version) {
  turn.version = version;
  turn.idempotency_key.clear();
  turn.request_hash = 0;
}

// The last turn with its first `count` tokens.
void CutLastTurn(Session& session, size_t count, uint64_t version, const ReadSessionAnswer& read) {
  SessionTurn& turn = session.turns.back();
  const bool in_prompt = count < turn.given;
  turn.tokens.resize(count);
  turn.given = std::min(turn.given, count);
  Forget(turn, version);
  if (turn.kind == Kind::kCut || (turn.kind == Kind::kAnswer && in_prompt)) {
    SessionTurn cut;
    cut.kind = Kind::kCut;
    cut.version = version;
    cut.parent = turn.parent;
    cut.keep = turn.keep;
    cut.tokens = std::move(turn.tokens);
    cut.given = count;
    cut.created = turn.created;
    turn = std::move(cut);
    return;
  }
  turn.reason = StopReason::kCancelled;
  turn.stop_text.clear();
  turn.usage.completion_tokens = count - turn.given;
  turn.usage.reasoning_tokens = std::min(turn.usage.reasoning_tokens, turn.usage.completion_tokens);
  const size_t last = session.turns.size() - 1;
  const size_t begin = session.turns[session.AnswerTurn(last)].answer_begin();
  const std::vector<int32_t> tokens = session.Tokens();
  turn.answer = read(session, last, absl::MakeConstSpan(tokens).subspan(begin));
}

// The text of a message: its content, or the texts among its parts.
std::string TextOf(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end()) return "";
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  if (!content->is_array()) return text;
  for (const Json& part : *content) {
    if (part.is_object() && part.contains("text") && part["text"].is_string())
      absl::StrAppend(&text, part["text"].get<std::string>(), " ");
  }
  return text;
}

// The first lines of a text as one, of at most `most` bytes.
std::string Line(absl::string_view text, size_t most) {
  std::string line;
  bool space = false;
  while (!text.empty()) {
    const CodePoint point = DecodeUtf8(text);
    const absl::string_view bytes = text.substr(0, point.length);
    text.remove_prefix(point.length);
    if (point.value <= ' ' || point.value == 0x7f) {
      space = !line.empty();
      continue;
    }
    if (!point.valid) continue;
    if (line.size() + (space ? 1 : 0) + bytes.size() > most) break;
    absl::StrAppend(&line, space ? " " : "", bytes);
    space = false;
  }
  return line;
}

}  // namespace

std::string Session::Title() const {
  std::string first;
  const JsonDocument all = Messages();
  for (const Json& message : *all) {
    const std::string line = Line(TextOf(message), kMostTitle);
    if (message.value("role", "") == "user" && !line.empty()) return line;
    if (first.empty()) first = line;
  }
  if (!first.empty() || turns.empty()) return first;
  return Line(turns.front().answer.said, kMostTitle);
}

std::vector<int32_t> Session::Tokens(size_t count) const {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < std::min(count, turns.size()); ++i) {
    tokens.resize(turns[i].keep);
    tokens.insert(tokens.end(), turns[i].tokens.begin(), turns[i].tokens.end());
  }
  return tokens;
}

JsonDocument Session::Messages(size_t count) const {
  JsonDocument all = messages;
  for (size_t i = 0; i < std::min(count, turns.size()); ++i) {
    const SessionTurn& turn = turns[i];
    if (turn.kind == Kind::kAnswer) {
      for (const Json& message : *turn.messages) all->push_back(message);
      all->push_back(*turn.answer.message);
    } else if (turn.kind == Kind::kContinuation) {
      all->back() = *turn.answer.message;
    }
  }
  return all;
}

bool Session::ends_with_answer() const {
  return !turns.empty() &&
         (turns.back().kind == Kind::kAnswer || turns.back().kind == Kind::kContinuation);
}

bool Session::is_chat() const { return turns.empty() || turns.back().kind != Kind::kRaw; }

bool Session::waits_for_messages() const {
  return turns.empty() && (!messages->empty() || !tools->is_null());
}

size_t Session::AnswerTurn(size_t turn) const {
  while (turns[turn].kind == Kind::kContinuation) --turn;
  return turn;
}

const SessionTurn* Session::FindKey(absl::string_view idempotency_key) const {
  if (idempotency_key.empty()) return nullptr;
  const auto turn = std::find_if(turns.begin(), turns.end(), [&](const SessionTurn& t) {
    return t.idempotency_key == idempotency_key;
  });
  return turn == turns.end() ? nullptr : &*turn;
}

absl::Status CheckSessionName(absl::string_view name) {
  constexpr size_t kLongest = 64;
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-';
  });
  if (!name.empty() && name.size() <= kLongest && plain) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the session's name ", QuoteForMessage(name),
                                                 " is not 1 to ", kLongest,
                                                 " of the characters A-Z, a-z, 0-9, _ and -"));
}

absl::Status RewindToVersion(Session& session, uint64_t version) {
  if (version == session.version) return absl::OkStatus();
  size_t count = 0;
  if (version != 0) {
    const auto turn = std::find_if(session.turns.begin(), session.turns.end(),
                                   [&](const SessionTurn& t) { return t.version == version; });
    if (turn == session.turns.end()) {
      return absl::NotFoundError(absl::StrCat(
          "the session ", session.name, " has no version ", version,
          ": there are 0, that of each of its turns, and the present one, ", session.version));
    }
    count = static_cast<size_t>(turn - session.turns.begin()) + 1;
  }
  if (count == session.turns.size()) return absl::OkStatus();
  session.turns.resize(count);
  ++session.version;
  return absl::OkStatus();
}

absl::Status RewindToPosition(Session& session, size_t position, const ReadSessionAnswer& read) {
  if (position > session.length()) {
    return absl::OutOfRangeError(absl::StrCat("position ", position, " is beyond the ",
                                              session.length(), " tokens of the session ",
                                              session.name));
  }
  if (position == session.length()) return absl::OkStatus();
  ++session.version;
  while (!session.turns.empty() && position <= session.turns.back().keep) session.turns.pop_back();
  if (session.length() == position) return absl::OkStatus();
  assert(!session.turns.empty());
  CutLastTurn(session, position - session.turns.back().keep, session.version, read);
  return absl::OkStatus();
}

}  // namespace inlay::serve
