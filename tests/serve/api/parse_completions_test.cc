#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/serve/api/call_text.h"

namespace inlay::serve {
namespace {

std::string ParseCompletion(absl::string_view request) {
  return Parsed(Protocol::kCompletions, request);
}

TEST(ParseCompletions, ReadsPrompts) {
  const ParseTable table = {
      {"'a'", "['a']"},
      {"''", "['']"},
      {"['a','b']", "['a','b']"},
      {"[1,2147483647]", "[[1,2147483647]]"},
      {"[[1],[2,3]]", "[[1],[2,3]]"},
      {"['a',[1]]", "['a',[1]]"},
  };
  for (const auto& [prompt, expected] : table) {
    EXPECT_EQ(ParseCompletion(absl::StrCat("{'prompt':", prompt, "}")),
              Quoted(absl::StrCat("{'prompts':", expected, ",'max_tokens':16}")));
  }
}

TEST(ParseCompletions, ControlTokensAreOptedInTo) {
  EXPECT_EQ(ParseCompletion("{'prompt':'a','parse_special':true}"),
            Quoted("{'prompts':['a'],'parse_special':true,'max_tokens':16}"));
  EXPECT_EQ(ParseCompletion("{'prompt':'a','parse_special':1}"),
            Quoted("parse_special must be true or false, not a number"));
}

TEST(ParseCompletions, RefusesPromptsByName) {
  const ParseTable table = {
      {"null", "prompt must be given"},
      {"7", "prompt must be a string, a list of strings or a list of tokens, not a number"},
      {"[]", "prompt must not be empty"},
      {"[[]]", "prompt[0] must not be empty"},
      {"[-1]", "prompt[0] must be the number of a token, 0 to 2147483647, not -1"},
      {"[1,2147483648]",
       "prompt[1] must be the number of a token, 0 to 2147483647, not 2147483648"},
      {"[1,'a']", "prompt[1] must be the number of a token, 0 to 2147483647, not a string"},
      {"['a',1]", "prompt[1] must be a string or a list of tokens, not a number"},
      {"[[1],[0.5]]", "prompt[1][0] must be the number of a token, 0 to 2147483647, not 0.5"},
      {"[{}]", "prompt[0] must be a string or a list of tokens, not an object"},
  };
  for (const auto& [prompt, expected] : table)
    EXPECT_EQ(ParseCompletion(absl::StrCat("{'prompt':", prompt, "}")), Quoted(expected));
  std::string many = "'a'";
  for (int i = 0; i < 128; ++i) many += ",'a'";
  EXPECT_EQ(ParseCompletion(absl::StrCat("{'prompt':[", many, "]}")),
            "prompt has 129 entries, more than 128");
}

// A value of two bytes takes many more here.
TEST(ParseCompletions, BoundsTheValuesOfARequest) {
  // Besides the zeros there are the object, its prompt and the list.
  const auto body = [](size_t zeros) {
    std::string text = "{'prompt':'a','x':[0";
    for (size_t i = 1; i < zeros; ++i) text += ",0";
    return text + "]}";
  };
  EXPECT_EQ(ParseCompletion(body((size_t{1} << 21) - 3)),
            Quoted("~x~ is not a field that this server knows"));
  EXPECT_EQ(ParseCompletion(body((size_t{1} << 21) - 2)),
            "the body holds more than 2097152 values");
}

TEST(ParseCompletions, ReadsFields) {
  const ParseTable table = {
      {"'max_tokens':0", "{'prompts':['a'],'max_tokens':0}"},
      {"'echo':true,'n':2,'best_of':2",
       "{'prompts':['a'],'echo':true,'max_tokens':16,'choices':2}"},
      {"'logprobs':0", "{'prompts':['a'],'max_tokens':16,'logprobs':true}"},
      {"'echo':true,'logprobs':1,'max_tokens':0",
       "{'prompts':['a'],'echo':true,'max_tokens':0,'logprobs':true,'top_logprobs':1}"},
      {"'logprobs':5", "{'prompts':['a'],'max_tokens':16,'logprobs':true,'top_logprobs':5}"},
      {"'stop':'b','seed':3,'stream':true,'temperature':1,'user':'u','suffix':''",
       "{'prompts':['a'],'temperature':1.0,'seed':3,'max_tokens':16,'stop_texts':['b'],"
       "'stream':true}"},
      {"'logprobs':6", "logprobs must be a whole number from 0 to 5, not 6"},
      {"'best_of':2", "best_of must equal n: this server does not choose among answers"},
      {"'suffix':'b'", "suffix is not supported"},
      {"'n_predict':5", "n_predict is not supported: use max_tokens"},
      {"'max_tokens':-1", "{'prompts':['a']}"},
      {"'max_completion_tokens':3", "{'prompts':['a'],'max_tokens':3}"},
      {"'messages':[1]", "~messages~ is not a field that this server knows"},
  };
  for (const auto& [fields, expected] : table)
    EXPECT_EQ(ParseCompletion(absl::StrCat("{'prompt':'a',", fields, "}")), Quoted(expected));
}

}  // namespace
}  // namespace inlay::serve
