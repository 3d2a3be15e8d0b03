// What templates render, compared with what Jinja2 itself recorded (record.py): the same bytes, or
// both refuse.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "gtest/gtest.h"
#include "io/template/jinja.h"
#include "io/template/json_input.h"
#include "nlohmann/json.hpp"

namespace inlay::jinja {
namespace {

using Json = nlohmann::ordered_json;

// The folder of the templates and of records.json; INLAY_TEMPLATES names another one.
std::string Folder() {
  const char* folder = std::getenv("INLAY_TEMPLATES");
  return folder == nullptr ? "tests/io/template/templates" : folder;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The inputs, as record.py passes them: the caller's tokens are trusted.
Value Inputs(const Json& json) {
  const auto inputs = ParseJson(json.dump());
  EXPECT_TRUE(inputs.ok()) << inputs.status();
  const auto dict = std::make_shared<DictRep>();
  for (const auto& [name, value] : inputs->dict().entries()) {
    const bool token = absl::EndsWith(name.bytes(), "_token") && value.is(Type::kString);
    dict->Set(name, token ? Value::String(value.bytes(), Origin::kTemplate) : value);
  }
  dict->Finish(nullptr);
  return Value::Dict(dict);
}

RenderOptions Options() {
  RenderOptions options;
  options.time_zone = absl::UTCTimeZone();
  options.now = absl::FromCivil(absl::CivilSecond(2026, 3, 4, 5, 6, 7), options.time_zone) +
                absl::Microseconds(89);
  return options;
}

// The sign that only messages write, and never the template: all of its bytes are messages'. So is
// everything between two of them where a message looks like a control token.
void CheckOrigins(const Text& text) {
  const std::string bytes(text.bytes());
  size_t begin = 0;
  for (const OriginRun& run : text.runs()) {
    ASSERT_LT(begin, run.end);
    if (run.origin == Origin::kTemplate) {
      const std::string part = bytes.substr(begin, run.end - begin);
      EXPECT_EQ(part.find("\xC2\xA7"), std::string::npos) << part;
    }
    begin = run.end;
  }
  ASSERT_EQ(begin, bytes.size());
  for (const std::string forged : {"§<|im_end|>§", "§</s>§", "§[INST]§", "§<think>§"}) {
    for (size_t at = bytes.find(forged); at != std::string::npos; at = bytes.find(forged, at + 1)) {
      for (size_t i = at; i < at + forged.size(); ++i)
        ASSERT_EQ(text.OriginAt(i), Origin::kMessage) << forged << " at byte " << i;
    }
  }
}

void Compare(const Template& parsed, const Json& inputs, const Json& recorded) {
  const auto text = parsed.Render(Inputs(inputs), Options());
  if (recorded.contains("text")) {
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(std::string(text->bytes()), recorded["text"].get<std::string>());
    CheckOrigins(*text);
  } else if (recorded.contains("raised")) {
    EXPECT_EQ(text.status(), absl::FailedPreconditionError(recorded["raised"].get<std::string>()));
  } else {
    EXPECT_FALSE(text.ok()) << "rendered " << text->bytes() << "\ninstead of refusing with "
                            << recorded["refused"].get<std::string>();
    EXPECT_FALSE(absl::IsFailedPrecondition(text.status())) << text.status();
    EXPECT_TRUE(absl::StrContains(text.status().message(), "line ")) << text.status();
  }
}

class RecordTest : public testing::TestWithParam<std::string> {};

const Json& Records() {
  static const Json* records = new Json(Json::parse(ReadFile(Folder() + "/records.json")));
  return *records;
}

TEST_P(RecordTest, AsJinja) {
  const Json& record = Records()["templates"][GetParam()];
  const auto parsed = Template::Parse(ReadFile(Folder() + "/" + GetParam()));
  if (record.contains("refused")) {
    EXPECT_FALSE(parsed.ok()) << record["refused"].get<std::string>();
    EXPECT_TRUE(absl::StrContains(parsed.status().message(), "line ")) << parsed.status();
    return;
  }
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  for (const Json& result : record["results"]) {
    const auto input = result["input"].get<std::string>();
    SCOPED_TRACE(input);
    Compare(*parsed, Records()["inputs"][input], result);
  }
}

TEST(SnippetTest, AsJinja) {
  if (!Records().contains("snippets")) GTEST_SKIP() << "there are none in this folder";
  for (const Json& snippet : Records()["snippets"]) {
    const auto source = snippet["source"].get<std::string>();
    SCOPED_TRACE(source);
    const auto parsed = Template::Parse(source);
    if (parsed.ok()) {
      Compare(*parsed, Records()["snippet_inputs"], snippet);
    } else {
      EXPECT_TRUE(snippet.contains("refused")) << parsed.status();
      EXPECT_TRUE(absl::StrContains(parsed.status().message(), "line ")) << parsed.status();
    }
  }
}

std::vector<std::string> TemplateNames() {
  std::vector<std::string> names;
  for (const auto& [name, record] : Records()["templates"].items()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Templates, RecordTest, testing::ValuesIn(TemplateNames()),
                         [](const auto& info) {
                           std::string name;
                           for (const char c : info.param)
                             name += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace inlay::jinja
