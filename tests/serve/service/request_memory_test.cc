// What holds the JSON of requests ends without memory: its destructors would end the process.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemma_like/grammar/call_rules.h"
#include "gemma_like/grammar/schema_document.h"
#include "serve/api/parse_call.h"
#include "serve/service/session_body.h"
#include "serve/sessions/session_json.h"
#include "tests/failing_memory.h"
#include "tests/must.h"
#include "tests/serve/sessions/session_maker.h"

namespace inlay::serve {
namespace {

// Lists and objects in each other, as nlohmann's values of such take memory when they end.
constexpr char kSchema[] =
    R"({"type":"object","properties":{"the first":{"enum":[[1],[2,[3]]]},"the second":{}}})";

std::string Tools() {
  return absl::StrCat(R"("tools":[{"type":"function","function":{"name":"f","parameters":)",
                      kSchema, "}}]");
}

template <class Holder>
void ExpectToEndWithoutMemory(Holder holder) {
  {
    const Holder last = std::move(holder);
    failing_memory::FailAfter(0, failing_memory::Fault::kFromThenOn);
  }
  failing_memory::Stop();
  EXPECT_FALSE(failing_memory::has_failed) << "it takes some";
}

TEST(RequestMemoryTest, ACallEndsWithoutMemory) {
  ExpectToEndWithoutMemory(Must(ParseCall(
      Protocol::kResponses,
      absl::StrCat(R"({"input":"a","chat_template_kwargs":{"a":[[1],[{"b":2}]]},)",
                   R"("tools":[{"type":"function","name":"f","parameters":)", kSchema, "}]}"))));
}

TEST(RequestMemoryTest, WhatAnswersAreKeptToEndsWithoutMemory) {
  CallRules rules{.tools = {{.name = "f", .parameters = Must(ParseJson("it", kSchema))}}};
  rules.schema = Must(ParseJson("it", kSchema));
  ExpectToEndWithoutMemory(std::move(rules));
  ExpectToEndWithoutMemory(Must(SchemaDocument::Parse(kSchema)));
}

TEST(RequestMemoryTest, ATurnOfASessionEndsWithoutMemory) {
  ExpectToEndWithoutMemory(Must(ParseTurn(
      R"({"parent":0,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]})")));
}

TEST(RequestMemoryTest, ASessionEndsWithoutMemory) {
  Session session =
      Must(ParseNewSession(absl::StrCat(R"({"name":"a","system":"Be brief.",)", Tools(),
                                        R"(,"chat_template_kwargs":{"a":[[1],[{"b":2}]]}})"),
                           {}));
  SessionTurn& turn = AddTurn(session, SessionTurn::Kind::kAnswer, 0, {1}, {2});
  turn.variables = session.variables;
  (*turn.answer.message)["tool_calls"] = Json::array({{{"id", "c"}}});
  const Json document = SessionDocument(session);
  ExpectToEndWithoutMemory(std::move(session));
  // As it is read from a store.
  ExpectToEndWithoutMemory(Must(ParseSession(document)));
}

}  // namespace
}  // namespace inlay::serve
