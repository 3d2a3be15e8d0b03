// The service without a network: what a model that knows no chats is good for, and many clients at
// once.
#include "serve/service/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/fingerprint.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "nlohmann/json.hpp"
#include "serve/service/answer_log.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/temp_folder.h"

namespace inlay::serve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(ServiceTest, WithoutChatsCompletionsAreAnswered) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  ServiceOptions options;
  options.model_name = "m";
  const auto service = Must(Service::Create(
      model, absl::InvalidArgumentError("this model knows no chats"), keys, options));
  const auto ask = [&](const char* method, const char* path, const json& body) {
    const auto reply = Ask(*service, method, path, body.is_null() ? "" : body.dump());
    reply->Wait();
    return reply;
  };
  const auto completion =
      ask("POST", "/v1/completions", {{"prompt", "ROMEO:"}, {"max_tokens", 2}, {"model", "m"}});
  EXPECT_EQ(completion->status(), 200) << completion->body();
  const json chat = {{"model", "m"}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  for (const char* path : {"/v1/chat/completions", "/apply-template"}) {
    const auto refused = ask("POST", path, chat);
    EXPECT_EQ(refused->status(), 400) << path;
    EXPECT_THAT(refused->body(), HasSubstr("this model knows no chats"));
  }
  EXPECT_EQ(ask("GET", "/v1/sessions", nullptr)->status(), 400);
  EXPECT_EQ(ask("GET", "/v1/completions", nullptr)->status(), 405);
  EXPECT_THAT(ask("GET", "/v1/completions", nullptr)->body(), HasSubstr("takes POST, not GET"));
  const auto outside = ask("POST", "/detokenize", {{"tokens", {5, 1024}}});
  EXPECT_EQ(outside->status(), 400);
  EXPECT_THAT(outside->body(),
              HasSubstr("token id 1024 at index 1 of tokens is outside 0 to 1023"));
}

// A fingerprint promises the same bytes for the same request: what makes other tokens of it, or
// another text or end, must be in there.
TEST(ServiceTest, TheFingerprintTellsWhatDeterminesAnAnswer) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  const auto fingerprint = [&](absl::string_view chat_template, size_t context, bool drops = true) {
    ServiceOptions options;
    options.scheduler.context = context;
    options.parsing.drop_billing_line = drops;
    auto renderer = chat_template.empty()
                        ? absl::StatusOr<ChatRenderer>(absl::InvalidArgumentError("no chats"))
                        : ChatRenderer::CreateFrom(*model.tokenizer, chat_template);
    return Must(Service::Create(model, std::move(renderer), keys, options))->service_fingerprint();
  };
  const std::string one = fingerprint("{{ messages[0].content }}", 200);
  EXPECT_EQ(one, fingerprint("{{ messages[0].content }}", 200));
  EXPECT_THAT(one, HasSubstr(Must(MakeFingerprint(*model.engine, KvType::kF16)) + "/"));
  EXPECT_NE(one, fingerprint("{{ messages[0].content }}.", 200));
  EXPECT_NE(one, fingerprint("", 200));
  EXPECT_NE(one, fingerprint("{{ messages[0].content }}", 201));
  EXPECT_NE(one, fingerprint("{{ messages[0].content }}", 200, /*drops=*/false));
}

TEST(ServiceTest, TheFingerprintTellsTheDefaultsOfRequests) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  const auto fingerprint = [&](const CallDefaults& defaults) {
    ServiceOptions options;
    options.parsing.defaults = defaults;
    return Must(Service::Create(model, absl::InvalidArgumentError("no chats"), keys, options))
        ->service_fingerprint();
  };
  const std::string none = fingerprint({});
  EXPECT_EQ(none, fingerprint({}));
  CallDefaults warm, bounded, thoughtless;
  warm.sampling.temperature = 0.5f;
  bounded.max_tokens = 5;
  thoughtless.template_variables = {{"enable_thinking", false}};
  for (const CallDefaults& defaults : {warm, bounded, thoughtless})
    EXPECT_NE(none, fingerprint(defaults)) << ToJson(defaults).dump();
}

TEST(ServiceTest, ControlTokensInTextsAreOptedInTo) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  const auto service =
      Must(Service::Create(model, absl::InvalidArgumentError("no chats"), keys, {}));
  const auto prompt_tokens = [&](bool special) {
    const json body = {
        {"prompt", "a" + std::string(model.tokenizer->TokenText(model.tokenizer->eos().value()))},
        {"max_tokens", 1},
        {"parse_special", special}};
    const auto reply = Ask(*service, "POST", "/v1/completions", body.dump());
    reply->Wait();
    return json::parse(reply->body())["usage"]["prompt_tokens"].get<int>();
  };
  EXPECT_GT(prompt_tokens(false), prompt_tokens(true));
}

TEST(ServiceTest, TheFingerprintTellsTokenizersApart) {
  const auto hash = [](std::function<void(GgufWriter&)> add) {
    GgufWriter writer;
    writer.SetString("general.architecture", "none");
    writer.SetStrings("tokenizer.ggml.tokens", {"a", "b"});
    add(writer);
    const std::string path = TempPath("tokenizer.gguf");
    EXPECT_TRUE(writer.Open(path).ok());
    EXPECT_TRUE(writer.Finish().ok());
    return TokenizerHash(Must(GgufFile::Open(path)));
  };
  const uint64_t one = hash([](GgufWriter&) {});
  EXPECT_EQ(one, hash([](GgufWriter& w) { w.SetString("general.name", "other"); }));
  EXPECT_NE(one, hash([](GgufWriter& w) { w.SetUint32("tokenizer.ggml.eos_token_id", 1); }));
  EXPECT_NE(one, hash([](GgufWriter& w) { w.SetString("tokenizer.chat_template", "x"); }));
}

// What can never succeed must not look as if it might later: clients would ask again.
TEST(ServiceTest, RequestsBeyondWhatTheServerHasAreErrorsOfTheirs) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  ServiceOptions options;
  options.scheduler.most_running = 2;
  options.scheduler.most_waiting = 3;
  const auto service = Must(Service::Create(
      model,
      ChatRenderer::CreateFrom(*model.tokenizer,
                               "{{ messages[0].content }}{{ 'a' * (messages[0].content | int) }}"),
      keys, options));
  const auto ask = [&](const char* path, const json& body) {
    const auto reply = Ask(*service, "POST", path, body.dump());
    reply->Wait();
    return reply;
  };
  json texts = {"a", "b", "c", "d", "e"};
  const auto five = ask("/v1/completions", {{"prompt", texts}, {"max_tokens", 1}});
  EXPECT_EQ(five->status(), 200) << five->body();
  texts.push_back("f");
  const auto six = ask("/v1/completions", {{"prompt", texts}, {"max_tokens", 1}});
  EXPECT_EQ(six->status(), 400);
  EXPECT_THAT(six->body(), HasSubstr("prompt has 6 prompts, more than the 5"));

  const json chat = {{"model", "m"},
                     {"max_tokens", 1},
                     {"messages", {{{"role", "user"}, {"content", "1000000000"}}}}};
  for (const char* path :
       {"/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/apply-template"}) {
    json body = chat;
    if (std::string(path).ends_with("count_tokens")) body.erase("max_tokens");
    const auto large = ask(path, body);
    EXPECT_EQ(large->status(), 400) << path;
    EXPECT_EQ(large->Header("Retry-After"), "");
    EXPECT_THAT(large->body(), HasSubstr("the template needs more than"));
  }
  // What is to be made shorter has the code that clients look for.
  json long_chat = chat;
  long_chat["messages"][0]["content"] = "100000";
  for (const json& body : {long_chat, chat}) {
    const json error = ask("/v1/chat/completions", body)->Json()["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded") << error;
  }
}

// Tools of the Responses protocol are strict unless they say otherwise, where they can be.
TEST(ServiceTest, ToolsOfResponsesAreStrictIfPossible) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  const auto service = Must(Service::Create(
      model,
      ChatRenderer::CreateFrom(*model.tokenizer, "{{ messages[0].content }}{# <tool_call> #}"),
      keys, {}));
  const auto status = [&](const json& strict) {
    json tool = {{"type", "function"},
                 {"name", "f"},
                 {"parameters", {{"type", "array"}, {"uniqueItems", true}}}};
    if (!strict.is_discarded()) tool["strict"] = strict;
    const auto reply = Ask(
        *service, "POST", "/v1/responses",
        json{{"model", "m"}, {"input", "hi"}, {"max_output_tokens", 2}, {"tools", {tool}}}.dump());
    reply->Wait();
    return reply->status();
  };
  EXPECT_EQ(status(true), 400);
  for (const json& strict : {json(false), json(nullptr), json(json::value_t::discarded)})
    EXPECT_EQ(status(strict), 200) << strict.type_name();
}

TEST(ServiceTest, ModelsAsEachProtocolHasThem) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  ServiceOptions options;
  options.model_name = "m";
  const auto service =
      Must(Service::Create(model, absl::InvalidArgumentError("no chats"), keys, options));
  const auto ask = [&](const char* path, bool of_anthropic) {
    HttpRequest request;
    request.method = "GET";
    request.path = path;
    if (of_anthropic) request.headers.emplace_back("anthropic-version", "2023-06-01");
    const auto reply = std::make_shared<FakeReply>();
    service->Handle(std::move(request), reply);
    return reply->Json();
  };
  EXPECT_FALSE(ask("/v1/models", false).contains("has_more"));
  EXPECT_FALSE(ask("/v1/models/m", false).contains("type"));
  const json list = ask("/v1/models", true);
  EXPECT_EQ(ask("/v1/models/", true), list);
  EXPECT_EQ(list["has_more"], false);
  EXPECT_EQ(list["first_id"], "m");
  EXPECT_EQ(list["last_id"], "m");
  EXPECT_EQ(list["data"][0], ask("/v1/models/m", true));
  const json one = list["data"][0];
  EXPECT_EQ(one["type"], "model");
  EXPECT_EQ(one["id"], "m");
  EXPECT_EQ(one["display_name"], "m");
  absl::Time created;
  EXPECT_TRUE(
      absl::ParseTime(absl::RFC3339_full, one["created_at"].get<std::string>(), &created, nullptr));
  EXPECT_EQ(absl::ToUnixSeconds(created), one["created"]);
}

TEST(ServiceTest, ADeadlineEndsReplaysToo) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  ServiceOptions options;
  options.deadline = absl::ZeroDuration();
  const auto service =
      Must(Service::Create(model, absl::InvalidArgumentError("no chats"), keys, options));
  AnswerRecord record;
  record.prompt = Must(model.tokenizer->Encode("To be"));
  record.tokens = record.prompt;
  record.options.max_tokens = 5;
  const auto reply = Ask(*service, "POST", "/v1/replay", RecordLine(record));
  reply->Wait();
  EXPECT_EQ(reply->status(), 504) << reply->body();
  EXPECT_EQ(reply->Header("x-should-retry"), "false");
}

// As evaluation harnesses ask: how likely a text is after another, without an answer or with one
// token that they leave out.
TEST(ServiceTest, CompletionsEchoPromptsWithTheirProbabilities) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  const auto service =
      Must(Service::Create(model, absl::InvalidArgumentError("no chats"), keys, ServiceOptions()));
  const auto ask = [&](json body) {
    const auto reply = Ask(*service, "POST", "/v1/completions", body.dump());
    reply->Wait();
    EXPECT_EQ(reply->status(), 200) << body << reply->body();
    return reply;
  };
  const auto logprobs = [](const json& reply, size_t choice = 0) {
    return reply["choices"][choice]["logprobs"];
  };
  // An answer and its probabilities, and then both as a prompt.
  const std::string first = "To be, or not to be: that is";
  const json answer =
      ask({{"prompt", first}, {"max_tokens", 12}, {"seed", 3}, {"logprobs", 2}, {"echo", true}})
          ->Json();
  const std::string text = answer["choices"][0]["text"];
  EXPECT_THAT(text, testing::StartsWith(first));
  const json told = logprobs(answer);
  std::vector<int32_t> tokens = Must(model.tokenizer->Encode(first));
  const size_t given = tokens.size();
  ASSERT_EQ(told["tokens"].size(), given + 12);
  EXPECT_TRUE(told["token_logprobs"][0].is_null());
  EXPECT_TRUE(told["top_logprobs"][0].is_null());
  EXPECT_EQ(told["text_offset"][given], first.size());
  std::string joined;
  for (size_t i = 0; i < told["tokens"].size(); ++i) {
    EXPECT_EQ(told["text_offset"][i], joined.size()) << i;
    if (i == 0) continue;  // BOS, which is not in the text
    EXPECT_EQ(told["top_logprobs"][i].size(), 2u);
    joined += told["tokens"][i];
  }
  EXPECT_EQ(told["tokens"][0], "<s>");
  EXPECT_EQ(joined, text);
  const json alone =
      ask({{"prompt", first}, {"max_tokens", 12}, {"seed", 3}, {"logprobs", 2}})->Json();
  EXPECT_EQ(
      json(std::vector<json>(told["token_logprobs"].begin() + given, told["token_logprobs"].end())),
      logprobs(alone)["token_logprobs"]);

  // Without an answer; several prompts and several answers, each with its prompt's.
  json body = {
      {"prompt", {first, text}}, {"max_tokens", 0}, {"logprobs", 2}, {"echo", true}, {"n", 2}};
  const json whole = ask(body)->Json();
  ASSERT_EQ(whole["choices"].size(), 4u);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 0);
  for (size_t i = 0; i < 4; ++i) {
    const json& choice = whole["choices"][i];
    EXPECT_EQ(choice["text"], i < 2 ? first : text);
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(choice["logprobs"], logprobs(whole, i / 2 * 2));
  }
  for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    const json list = logprobs(whole)[key];
    EXPECT_EQ(list, json(std::vector<json>(told[key].begin(), told[key].begin() + given))) << key;
  }
  // Streamed, the same.
  body["stream"] = true;
  std::map<size_t, json> lists;
  std::map<size_t, std::string> texts;
  for (const json& event : ask(body)->Events()) {
    if (!event.is_object()) continue;
    for (const json& choice : event["choices"]) {
      texts[choice["index"]] += choice["text"];
      for (const auto& [key, list] : choice["logprobs"].items())
        for (const json& item : list) lists[choice["index"]][key].push_back(item);
    }
  }
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lists[i], logprobs(whole, i));
    EXPECT_EQ(whole["choices"][i]["text"], texts[i]);
  }
  // A prompt of one token, and an answer that ends at once: its end is a token like any other, for
  // who counts on one.
  const int32_t end = model.tokenizer->ends().front();
  const json ended = ask({{"prompt", {tokens[0]}},
                          {"max_tokens", 1},
                          {"logit_bias", {{std::to_string(end), 100}}},
                          {"logprobs", 1},
                          {"echo", true}})
                         ->Json();
  EXPECT_EQ(logprobs(ended)["tokens"].size(), 2u);
  EXPECT_EQ(ended["usage"]["completion_tokens"], 0);
  EXPECT_EQ(ended["choices"][0]["finish_reason"], "stop");
  body = {{"prompt", {tokens[0]}}, {"max_tokens", 0}, {"logprobs", 1}, {"echo", true}};
  EXPECT_EQ(logprobs(ask(body)->Json())["token_logprobs"], json::array({nullptr}));
}

// A choice of tools is kept by a model that would never call by itself, in the words of each
// protocol.
TEST(ServiceTest, CallsThatAreDemandedCome) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  ServiceOptions options;
  options.model_name = "m";
  const auto service_of = [&](const char* source) {
    return Must(
        Service::Create(model, ChatRenderer::CreateFrom(*model.tokenizer, source), keys, options));
  };
  constexpr const char* kTemplate = "{{ messages[-1].content }}{# <tool_call> #}";
  const auto service = service_of(kTemplate);
  const json schema = json::parse(R"({"type": "object", "properties": {"on": {"type": "boolean"}},
                                      "required": ["on"], "additionalProperties": false})");
  const json hello = {{{"role", "user"}, {"content", "hi"}}};
  const auto ask = [&](Service& from, const char* path, const json& body) {
    const auto reply = Ask(from, "POST", path, body.dump());
    reply->Wait();
    return reply;
  };
  const auto expect_call = [](const json& name, const json& arguments) {
    EXPECT_EQ(name, "switch");
    EXPECT_TRUE(arguments["on"].is_boolean() && arguments.size() == 1) << arguments;
  };
  json tools = {{{"type", "function"}, {"function", {{"name", "look"}}}},
                {{"type", "function"}, {"function", {{"name", "switch"}, {"parameters", schema}}}}};
  const json chosen = {{"type", "function"}, {"function", {{"name", "switch"}}}};
  json chat = {{"model", "m"}, {"messages", hello}, {"tools", tools}, {"tool_choice", chosen}};
  for (int seed = 0; seed < 3; ++seed) {
    chat["seed"] = seed;
    const json choice = ask(*service, "/v1/chat/completions", chat)->Json()["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u) << choice;
    const json& function = choice["message"]["tool_calls"][0]["function"];
    expect_call(function["name"], json::parse(function["arguments"].get<std::string>()));
  }
  const json response =
      ask(*service, "/v1/responses",
          {{"model", "m"},
           {"input", "hi"},
           {"parallel_tool_calls", false},
           {"tools", {{{"type", "function"}, {"name", "switch"}, {"parameters", schema}}}},
           {"tool_choice", "required"}})
          ->Json();
  ASSERT_EQ(response["output"].size(), 1u) << response;
  expect_call(response["output"][0]["name"],
              json::parse(response["output"][0]["arguments"].get<std::string>()));
  const json message = ask(*service, "/v1/messages",
                           {{"model", "m"},
                            {"messages", hello},
                            {"max_tokens", 200},
                            {"tools", {{{"name", "switch"}, {"input_schema", schema}}}},
                            {"tool_choice", {{"type", "tool"}, {"name", "switch"}}}})
                           ->Json();
  EXPECT_EQ(message["stop_reason"], "tool_use");
  ASSERT_EQ(message["content"].size(), 1u) << message;
  expect_call(message["content"][0]["name"], message["content"][0]["input"]);

  // What cannot be kept is refused by name if the tool is strict; otherwise the call has any
  // object.
  json& function = chat["tools"][1]["function"];
  function["parameters"]["properties"]["on"] = {{"uniqueItems", true}};
  chat["max_tokens"] = 40;
  const auto loose = ask(*service, "/v1/chat/completions", chat);
  EXPECT_EQ(loose->status(), 200);
  EXPECT_THAT(loose->body(), HasSubstr("switch")) << "a call, or the text of one that was cut";
  function["strict"] = true;
  const auto refused = ask(*service, "/v1/chat/completions", chat);
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), HasSubstr("the tool 'switch': the JSON schema's keyword"));
  const auto other = service_of("{{ messages[-1].content }}{# <|tool_call>call:<tool_call|> #}");
  chat["tools"] = tools;
  const auto unknown = ask(*other, "/v1/chat/completions", chat);
  EXPECT_EQ(unknown->status(), 400);
  EXPECT_THAT(unknown->body(), HasSubstr("tool_choice can only be auto or none"));
}

// As results of a batch are written down: nothing of a reply depends on when it was asked for and
// what was computed before.
TEST(ServiceTest, ReproducibleRepliesHaveTheSameBytes) {
  const LoadedModel model = LoadBard();
  const ApiKeys keys;
  ServiceOptions options;
  options.model_name = "m";
  options.reproducible_at = absl::FromUnixSeconds(86400);
  const auto make = [&] {
    return Must(Service::Create(
        model,
        ChatRenderer::CreateFrom(*model.tokenizer,
                                 "{{ messages[-1].content }} {{ strftime_now('%Y-%m-%d') }}"),
        keys, options));
  };
  const std::string prompt = "To be, or not to be, that is the question: whether it is nobler";
  const json chat = {{"messages", {{{"role", "user"}, {"content", prompt}}}}, {"max_tokens", 8}};
  const std::vector<std::pair<const char*, json>> requests = {
      {"/v1/chat/completions", chat},
      {"/v1/messages", chat},
      {"/v1/completions", {{"prompt", prompt}, {"max_tokens", 8}}},
      {"/v1/responses", {{"input", prompt}, {"max_output_tokens", 16}, {"store", false}}}};
  const auto ask = [&](Service& service, size_t i, const std::string& id) {
    const auto reply = std::make_shared<FakeReply>();
    service.Handle({.method = "POST",
                    .path = requests[i].first,
                    .query = "",
                    .headers = {},
                    .body = requests[i].second.dump(),
                    .id = id},
                   reply);
    reply->Wait();
    EXPECT_EQ(reply->status(), 200) << reply->body();
    return reply;
  };
  const auto service = make();
  for (size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(requests[i].first);
    const auto first = ask(*make(), i, "a1");
    EXPECT_EQ(ask(*service, i, "a1")->body(), first->body());
    EXPECT_EQ(ask(*service, i, "a1")->body(), first->body()) << "its prompt is stored by now";
    const json told = first->Json();
    EXPECT_THAT(told["id"].get<std::string>(), testing::EndsWith("a1"));
    for (const char* key : {"created", "created_at"}) {
      EXPECT_EQ(told.value(key, 86400), 86400);
    }
    EXPECT_NE(ask(*service, i, "a2")->Json()["seed"], told["seed"]);
  }
  const auto text = Ask(*service, "POST", "/apply-template", chat.dump());
  text->Wait();
  EXPECT_EQ(text->Json()["prompt"], prompt + " 1970-01-02");
}

// The text of a completion, streamed or whole.
std::string TextOf(FakeReply& reply, bool stream) {
  if (!stream) return reply.Json()["choices"][0]["text"];
  std::string text;
  for (const json& event : reply.Events()) {
    if (event.is_object() && !event["choices"].empty())
      text += event["choices"][0].value("text", "");
  }
  return text;
}

// Run with ThreadSanitizer by scripts/sanitize: clients stream, leave, and look at figures, while
// signs of life are sent and keys change.
TEST(ServiceTest, ClientsOfManyThreads) {
  const LoadedModel model = LoadBard();
  ApiKeys keys;
  ASSERT_TRUE(keys.Replace("key-of-one one\nkey-of-two two").ok());
  ServiceOptions options;
  options.model_name = "m";
  options.scheduler.context = 256;
  options.ping = absl::Milliseconds(3);
  const auto service =
      Must(Service::Create(model, absl::InvalidArgumentError("no chats"), keys, options));
  const auto ask = [&](int question, bool stream, const std::string& key) {
    const json body = {{"prompt", absl::StrCat("Question ", question)},
                       {"max_tokens", 12},
                       {"seed", 7},
                       {"model", "m"},
                       {"stream", stream}};
    return Ask(*service, "POST", "/v1/completions", body.dump(), key);
  };
  std::vector<std::string> alone;
  for (int i = 0; i < 3; ++i) {
    const auto reply = ask(i, /*stream=*/false, "key-of-one");
    reply->Wait();
    alone.push_back(TextOf(*reply, /*stream=*/false));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        const bool stream = (t + i) % 2 == 0, leaves = (t + i) % 5 == 0;
        const auto reply = ask(i % 3, stream, t % 2 == 0 ? "key-of-one" : "key-of-two");
        Ask(*service, "GET", "/metrics", "", "key-of-one")->Wait();
        if (leaves) reply->Leave();
        reply->Wait();
        if (!leaves) {
          EXPECT_EQ(TextOf(*reply, stream), alone[i % 3]) << reply->body();
        }
        EXPECT_TRUE(keys.Replace("key-of-one one\nkey-of-two two").ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  service->Drain(absl::InfiniteDuration());
  EXPECT_EQ(Ask(*service, "GET", "/health")->status(), 503);
}

}  // namespace
}  // namespace inlay::serve
