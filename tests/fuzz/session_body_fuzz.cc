// Any bytes as the body of a request to /v1/sessions: refused with a sentence in UTF-8, or within
// its bounds. A new session can be stored and loaded, and a turn is a call that a session can have.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"
#include "serve/service/session_body.h"
#include "serve/service/session_probabilities.h"
#include "serve/sessions/session.h"
#include "serve/sessions/session_json.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/refusal.h"

namespace inlay::serve {
namespace {

void CheckNewSession(absl::string_view body) {
  absl::StatusOr<Session> session = ParseNewSession(body, {});
  if (!IsRead(session)) return;
  INLAY_FUZZ_CHECK(session->turns.empty() && *session->Messages() == *session->messages);
  // As the server completes it.
  session->name = "a";
  session->vocabulary = "v";
  const std::string text = DumpJson(SessionDocument(*session));
  const absl::StatusOr<JsonDocument> document = ParseJson("the document", text);
  INLAY_FUZZ_CHECK(document.ok());
  const absl::StatusOr<Session> loaded = ParseSession(**document);
  INLAY_FUZZ_CHECK(loaded.ok());
  INLAY_FUZZ_CHECK(DumpJson(SessionDocument(*loaded)) == text);
}

// A session that has tools, or none.
Session SessionWith(const char* tools) {
  Session session;
  *session.tools = Json::parse(tools);
  return session;
}

void CheckTurn(absl::string_view body) {
  const absl::StatusOr<TurnBody> turn = ParseTurn(body);
  if (!IsRead(turn)) return;
  INLAY_FUZZ_CHECK(turn->rest->is_object() && turn->idempotency_key.size() <= 200);
  INLAY_FUZZ_CHECK(turn->rest->contains(turn->raw ? "prompt" : "messages"));
  for (const char* tools : {"null", R"([{"type": "function", "function": {"name": "f"}}])"}) {
    const absl::StatusOr<Call> call = CallOf(*turn, SessionWith(tools), {});
    if (!IsRead(call)) continue;
    INLAY_FUZZ_CHECK(call->choices == 1 && !call->logprobs && !call->shape.has_value());
    INLAY_FUZZ_CHECK(call->prompts.size() == (turn->raw ? 1 : 0));
    INLAY_FUZZ_CHECK(turn->raw || !call->messages->empty());
  }
}

void CheckFork(absl::string_view body) {
  const absl::StatusOr<ForkBody> fork = ParseFork(body);
  if (!IsRead(fork)) return;
  INLAY_FUZZ_CHECK(!fork->place.version.has_value() || !fork->place.position.has_value());
}

void CheckRewind(absl::string_view body) {
  const absl::StatusOr<RewindBody> rewind = ParseRewind(body);
  if (!IsRead(rewind)) return;
  INLAY_FUZZ_CHECK(rewind->place.version.has_value() != rewind->place.position.has_value());
}

void CheckProbabilities(absl::string_view body) {
  const absl::StatusOr<ProbabilitiesBody> asked = ParseProbabilities(body);
  if (!IsRead(asked)) return;
  INLAY_FUZZ_CHECK(asked->begin >= 1 && asked->begin < asked->end && asked->top <= 20);
  INLAY_FUZZ_CHECK(asked->end - asked->begin <= kMostProbabilities);
}

}  // namespace
}  // namespace inlay::serve

// The first byte says what kind of request the others are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay::serve;
  if (size == 0) return 0;
  const absl::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr void (*kChecks[])(absl::string_view) = {CheckNewSession, CheckTurn, CheckFork,
                                                    CheckRewind, CheckProbabilities};
  const size_t kind = data[0] % 8;
  if (kind < std::size(kChecks)) kChecks[kind](body);
  return 0;
}
