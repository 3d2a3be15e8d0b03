#include "serve/api/token_requests.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/api/embeddings.h"
#include "tests/serve/api/call_text.h"
#include "tests/serve/api/reply_script.h"

namespace inlay::serve {
namespace {

template <class T>
std::string ErrorOf(const absl::StatusOr<T>& request) {
  return std::string(request.status().message());
}

TEST(Tokenize, ReadsRequests) {
  auto request = ParseTokenize(Quoted("{'content':'a'}"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->content, "a");
  EXPECT_FALSE(request->add_special);
  EXPECT_TRUE(request->parse_special);
  EXPECT_FALSE(request->with_pieces);
  request = ParseTokenize(Quoted(
      "{'content':'','add_special':true,'parse_special':false,'with_pieces':true,'model':'m'}"));
  ASSERT_TRUE(request.ok());
  EXPECT_TRUE(request->add_special);
  EXPECT_FALSE(request->parse_special);
  EXPECT_TRUE(request->with_pieces);
  EXPECT_EQ(ErrorOf(ParseTokenize("{}")), "content must be given");
  EXPECT_EQ(ErrorOf(ParseTokenize(Quoted("{'content':['a']}"))),
            "content must be a string, not a list");
  EXPECT_EQ(ErrorOf(ParseTokenize(Quoted("{'content':'a','x':1}"))),
            "'x' is not a field that this server knows");
}

TEST(Tokenize, WritesReplies) {
  TokenizeRequest request;
  EXPECT_EQ(TokenizeBody(request, {3 + 'a', 1}, ByteTokenizer()), Quoted("{'tokens':[100,1]}"));
  request.with_pieces = true;
  EXPECT_EQ(TokenizeBody(request, {3 + 'a', 1, 3 + 0xC3}, ByteTokenizer()),
            Quoted("{'tokens':[{'id':100,'piece':'a'},{'id':1,'piece':'<s>'},"
                   "{'id':198,'piece':[195]}]}"));
  EXPECT_EQ(TokenizeBody(request, {}, ByteTokenizer()), Quoted("{'tokens':[]}"));
}

TEST(Detokenize, ReadsRequestsAndWritesReplies) {
  const auto request = ParseDetokenize(Quoted("{'tokens':[1,2]}"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(ParseDetokenize(Quoted("{'tokens':[]}"))->tokens.empty());
  EXPECT_EQ(ErrorOf(ParseDetokenize("{}")), "tokens must be given");
  EXPECT_EQ(ErrorOf(ParseDetokenize(Quoted("{'tokens':['a']}"))),
            "tokens[0] must be the number of a token, 0 to 2147483647, not a string");
  EXPECT_EQ(DetokenizeBody("a"), Quoted("{'content':'a'}"));
  EXPECT_EQ(ApplyTemplateBody("a"), Quoted("{'prompt':'a'}"));
  EXPECT_EQ(CountTokensBody(5), Quoted("{'input_tokens':5}"));
}

TEST(Embeddings, ReadsRequests) {
  auto request = ParseEmbeddings(
      Quoted("{'model':'m','input':['a',[1]],'encoding_format':'base64','dimensions':2}"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->inputs,
            (std::vector<TextOrTokens>{std::string("a"), std::vector<int32_t>{1}}));
  EXPECT_TRUE(request->base64);
  EXPECT_TRUE(CheckDimensions(*request, 2).ok());
  EXPECT_EQ(CheckDimensions(*request, 3).message(),
            "dimensions must be 3, which this model's vectors have, not 2");
  request = ParseEmbeddings(Quoted("{'input':'a','encoding_format':'float','user':'u'}"));
  ASSERT_TRUE(request.ok());
  EXPECT_FALSE(request->base64);
  EXPECT_TRUE(CheckDimensions(*request, 3).ok());
  EXPECT_EQ(ErrorOf(ParseEmbeddings("{}")), "input must be given");
  EXPECT_EQ(ErrorOf(ParseEmbeddings(Quoted("{'input':'a','encoding_format':'int8'}"))),
            "encoding_format must be float or base64, not 'int8'");
  EXPECT_EQ(ErrorOf(ParseEmbeddings(Quoted("{'input':'a','dimensions':0}"))),
            "dimensions must be a whole number from 1 to 1048576, not 0");
  EXPECT_EQ(ErrorOf(ParseEmbeddings(Quoted("{'input':'a','x':0}"))),
            "'x' is not a field that this server knows");
}

TEST(Embeddings, WritesReplies) {
  const std::vector<std::vector<float>> vectors = {{0.5f, -2}, {1, 0}};
  EmbeddingsRequest request;
  EXPECT_EQ(EmbeddingsBody(request, "M", vectors, 7),
            Quoted("{'object':'list','data':[{'object':'embedding','index':0,'embedding':"
                   "[0.5,-2.0]},{'object':'embedding','index':1,'embedding':[1.0,0.0]}],"
                   "'model':'M','usage':{'prompt_tokens':7,'total_tokens':7}}"));
  request.base64 = true;
  EXPECT_EQ(Json::parse(EmbeddingsBody(request, "M", vectors, 7))["data"][0]["embedding"],
            "AAAAPwAAAMA=");
}

}  // namespace
}  // namespace inlay::serve
