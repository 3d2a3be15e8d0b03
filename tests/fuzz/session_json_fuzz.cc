// Any bytes as the document of a session: refused with a sentence in UTF-8, or a session that is
// written as it was read, and stays one where it is cut at any token or version.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/utf8.h"
#include "io/json/parse_json.h"
#include "serve/sessions/session.h"
#include "serve/sessions/session_json.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/refusal.h"

namespace inlay::serve {
namespace {

using Kind = SessionTurn::Kind;

// Of the document that a session is written as.
Session ReadAgain(const Session& session) {
  const std::string text = DumpJson(SessionDocument(session));
  const absl::StatusOr<JsonDocument> document = ParseJson("the document", text);
  INLAY_FUZZ_CHECK(document.ok());
  absl::StatusOr<Session> again = ParseSession(**document);
  INLAY_FUZZ_CHECK(again.ok());
  INLAY_FUZZ_CHECK(again->Tokens() == session.Tokens());
  return *std::move(again);
}

// What the server asks a session for.
void CheckUse(const Session& session) {
  const size_t messages = session.Messages()->size();
  INLAY_FUZZ_CHECK(messages >= session.messages->size());
  INLAY_FUZZ_CHECK(session.Tokens().size() == session.length());
  INLAY_FUZZ_CHECK(session.Title().size() <= Session::kMostTitle && IsValidUtf8(session.Title()));
  for (size_t i = 0; i < session.turns.size(); ++i) {
    const Kind kind = session.turns[i].kind;
    if (kind != Kind::kAnswer && kind != Kind::kContinuation) continue;
    INLAY_FUZZ_CHECK(session.turns[session.AnswerTurn(i)].kind == Kind::kAnswer);
  }
  if (session.ends_with_answer()) {
    INLAY_FUZZ_CHECK(session.Messages()->back() == *session.turns.back().answer.message);
  }
}

// An answer that is read again: its tokens as text.
SessionAnswer ReadAsText(const Session&, size_t, absl::Span<const int32_t> tokens) {
  SessionAnswer answer;
  for (const int32_t token : tokens) absl::StrAppend(&answer.said, token, " ");
  *answer.message = {{"role", "assistant"}, {"content", answer.said}};
  return answer;
}

void CheckRewind(Session session, size_t position) {
  const std::vector<int32_t> tokens = session.Tokens();
  INLAY_FUZZ_CHECK(RewindToPosition(session, position, ReadAsText).ok());
  INLAY_FUZZ_CHECK(session.Tokens() ==
                   std::vector<int32_t>(tokens.begin(), tokens.begin() + position));
  CheckUse(ReadAgain(session));
}

}  // namespace
}  // namespace inlay::serve

// The first two bytes say where the session is cut.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  using namespace inlay::serve;
  FuzzInput input(data, size);
  const size_t cut = input.UpTo(UINT16_MAX);
  const absl::StatusOr<JsonDocument> document = ParseJson("the document", input.Rest());
  if (!document.ok()) return 0;
  const absl::StatusOr<Session> session = ParseSession(**document);
  if (!IsRead(session)) return 0;
  CheckUse(*session);
  const Session again = ReadAgain(*session);
  INLAY_FUZZ_CHECK(DumpJson(SessionDocument(again)) == DumpJson(SessionDocument(*session)));
  CheckRewind(*session, cut % (session->length() + 1));
  if (!session->turns.empty()) {
    Session before = *session;
    const uint64_t version = session->turns[cut % session->turns.size()].version;
    INLAY_FUZZ_CHECK(RewindToVersion(before, version).ok());
    CheckUse(ReadAgain(before));
  }
  return 0;
}
