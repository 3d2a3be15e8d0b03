// Templates that read contents as lists of parts, and what they are given.
#include "gemma_like/chat/content_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gemma_like/chat/chat_renderer.h"
#include "nlohmann/json.hpp"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/must.h"

namespace inlay {
namespace {

using nlohmann::json;

// In the manner of SmolVLM and Idefics.
constexpr char kParts[] =
    "{% for m in messages %}{{ m.role[0] }}:{% for c in m.content %}"
    "{% if c.type == 'text' %}{{ c.text }}{% elif c.type == 'image' %}<image>{% endif %}"
    "{% endfor %}{% for c in m.tool_calls or [] %}({{ c.function.arguments.at }}){% endfor %}|"
    "{% endfor %}";
// Looks for parts in what the user says, and for texts elsewhere.
constexpr char kPartsOfUsers[] =
    "{% for m in messages %}{{ m.role[0] }}:"
    "{{ m.content[0]['text'] if m.role == 'user' else m.content }}|{% endfor %}";
constexpr char kEither[] =
    "{% for m in messages %}{{ m.role[0] }}:{% if m.content is string %}{{ m.content }}"
    "{% else %}{% for c in m.content %}{{ c.text }}{% endfor %}{% endif %}|{% endfor %}";
constexpr char kTexts[] = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}|{% endfor %}";
constexpr char kNeither[] = "{% for m in messages %}{{ m.role[0] }}:{{ m.text }}|{% endfor %}";

json MessageOfRole(const char* role, const json& content) {
  return {{"role", role}, {"content", content}};
}

class ContentPartsTest : public testing::Test {
 protected:
  ChatRenderer Of(const std::string& source) {
    return Must(ChatRenderer::CreateFrom(*tokenizer_, source, "its template"));
  }
  ContentParts Parts(const std::string& source) { return Of(source).content_parts(false); }
  absl::StatusOr<jinja::Text> Render(const std::string& source, const json& messages) {
    return Of(source).RenderText(Must(ChatInput::Parse(messages.dump())));
  }
  std::string Written(const std::string& source, const json& messages) {
    return std::string(Must(Render(source, messages)).bytes());
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = MustLoad(SpmBase());
  const json chat_ = json::parse(R"([
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": "Hi"},
      {"role": "assistant", "tool_calls": [
          {"id": "call00000", "function": {"name": "f", "arguments": {"at": 1}}}]},
      {"role": "tool", "content": "2"},
      {"role": "assistant", "content": "Yes"}])");
};

TEST_F(ContentPartsTest, TextsAreMadeWhatTheTemplateReads) {
  EXPECT_EQ(Parts(kParts),
            (ContentParts{.user = true, .system = true, .assistant = true, .result = true}));
  EXPECT_EQ(Written(kParts, chat_), "s:Be brief.|u:Hi|a:(1)|t:2|a:Yes|");
  EXPECT_EQ(Parts(kPartsOfUsers), ContentParts{.user = true});
  EXPECT_EQ(Written(kPartsOfUsers, chat_), "s:Be brief.|u:Hi|a:|t:2|a:Yes|");
  for (const char* source : {kEither, kTexts}) {
    EXPECT_EQ(Parts(source), ContentParts()) << source;
    EXPECT_EQ(Written(source, chat_), "s:Be brief.|u:Hi|a:|t:2|a:Yes|");
  }
}

// Whichever of the two a template reads, texts of a list are on lines of their own.
TEST_F(ContentPartsTest, ListsAreOneText) {
  const json x = {{"type", "text"}, {"text", "x"}}, no = {{"type", "refusal"}, {"refusal", "No."}};
  for (const char* source : {kParts, kPartsOfUsers, kEither, kTexts}) {
    EXPECT_EQ(Written(source, json::array({MessageOfRole("user", json::array({x, x})),
                                           MessageOfRole("assistant", json::array({no})),
                                           MessageOfRole("user", json::array())})),
              "u:x\nx|a:No.|u:|");
  }
  const std::string alternates =
      "{% for m in messages %}{{ raise_exception('no') if not loop.first and "
      "m.role == messages[loop.index0 - 1].role }}{% endfor %}";
  const json two =
      json::array({MessageOfRole("user", json::array({x})), MessageOfRole("user", "y")});
  EXPECT_EQ(Written(alternates + kParts, two), "u:x\n\ny|");
  const jinja::Text text =
      Must(Render(kTexts, json::array({MessageOfRole("user", json::array({x, x}))})));
  for (size_t i = 2; i < 5; ++i) EXPECT_EQ(text.OriginAt(i), jinja::Origin::kMessage);
}

// A picture, a sound or what else the model cannot read.
TEST_F(ContentPartsTest, RefusesWhatIsNoText) {
  const json x = {{"type", "text"}, {"text", "x"}};
  const struct {
    json content;
    const char* sentence;
  } kCases[] = {
      {json::array({x, {{"type", "image_url"}, {"image_url", {{"url", "u"}}}}}),
       "message 1: part 1 of its content is of the type 'image_url', but only texts are read"},
      {json::array({{{"text", "x"}}}), "message 1: part 0 of its content has no type"},
      {json::array({"x"}), "message 1: part 0 of its content has no type"},
      {json::array({{{"type", "text"}, {"text", 1}}}),
       "message 1: part 0 of its content has no text"},
      {x, "message 1: its content is neither a text nor a list of parts"},
      {5, "message 1: its content is neither a text nor a list of parts"},
  };
  for (const char* source : {kParts, kTexts}) {
    for (const auto& [content, sentence] : kCases) {
      const absl::Status refused =
          Render(source,
                 json::array({MessageOfRole("system", "s"), MessageOfRole("user", content)}))
              .status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(refused.message(), sentence);
    }
  }
}

// No text of a message becomes the template's by it.
TEST_F(ContentPartsTest, TextsStayTheMessages) {
  const jinja::Text text = Must(Render(kParts, json::array({MessageOfRole("user", "<s>")})));
  ASSERT_EQ(text.bytes(), "u:<s>|");
  EXPECT_EQ(text.OriginAt(1), jinja::Origin::kTemplate);
  for (size_t i = 2; i < 5; ++i) EXPECT_EQ(text.OriginAt(i), jinja::Origin::kMessage);
}

TEST_F(ContentPartsTest, RefusesChatsOfWhichTheTemplateLeavesOutTheUser) {
  EXPECT_EQ(Parts(kNeither), ContentParts{.user_is_lost = true});
  const absl::Status refused = Render(kNeither, chat_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "its template leaves out what the user says: it writes the content of messages neither "
            "as a text nor as a list of parts");
  EXPECT_EQ(Written(kNeither, json::array({MessageOfRole("system", "x")})), "s:|")
      << "no user says anything";
  // A user who is heard after a system's message only.
  EXPECT_EQ(Written("{% for m in messages if messages[0].role == 'system' %}{{ m.content }}|"
                    "{% endfor %}",
                    chat_),
            "Be brief.|Hi||2|Yes|");
}

TEST_F(ContentPartsTest, NothingIsKnownOfTemplatesThatRefuse) {
  const std::string refuses = "{{ raise_exception('not today') }}";
  EXPECT_EQ(Parts(refuses), ContentParts());
  EXPECT_EQ(Render(refuses, chat_).status().message(), "not today");
}

// Such a list is in what these write, but not as its text.
TEST_F(ContentPartsTest, AListThatIsWrittenAsItIsHasNotBeenRead) {
  const std::string no_texts = "{{ raise_exception('no') if messages[0].content is string }}";
  for (const char* writes : {"{{ messages[0].content }}", "{{ messages[0].content | tojson }}"}) {
    EXPECT_EQ(Parts(no_texts + writes), ContentParts()) << writes;
    EXPECT_EQ(Render(no_texts + writes, chat_).status().message(), "no");
  }
  // Words of the template's own.
  EXPECT_EQ(Parts(std::string("{\"type\": \"text\"}") + kTexts), ContentParts());
}

}  // namespace
}  // namespace inlay
