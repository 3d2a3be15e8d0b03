// Vocabularies as files from elsewhere have them: see docs/files.md.
#include "io/tokenizer/vocabulary.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/tokenizer/tokenizer.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tests/must.h"

namespace inlay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kNormal = 1;
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;
constexpr int32_t kUnused = 5;
constexpr int32_t kAfterGemmaBase = 260;  // id of the first token after GemmaBase
constexpr int32_t kFirstBpe = 257;        // and after BpeBase

std::vector<int32_t> EncodeTrusted(const Tokenizer& tokenizer, absl::string_view text,
                                   bool add_bos = false) {
  return *tokenizer.Encode(text, {.add_bos = add_bos, .parse_special = true});
}

// A vocabulary of bytes that begins as Gemma's: <pad>, <eos>, <bos>, <unk>; the byte tokens follow.
TestVocabulary GemmaBase() {
  TestVocabulary vocabulary;
  vocabulary.architecture = "gemma3";
  vocabulary.scores.emplace();
  for (const char* text : {"<pad>", "<eos>", "<bos>"}) vocabulary.Add(text, kControl);
  vocabulary.Add("<unk>", 2);
  const TestVocabulary bytes = SpmBase();
  for (size_t i = 3; i < bytes.tokens.size(); ++i) vocabulary.Add(bytes.tokens[i], bytes.types[i]);
  vocabulary.ids = {{"bos_token_id", 2}, {"eos_token_id", 1}, {"unknown_token_id", 3}};
  return vocabulary;
}

TEST(EndsOfGeneration, AreThoseThatTheKeysName) {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.ids = {{"eos_token_id", 20}, {"eot_token_id", 12}, {"eom_token_id", 11}};
  vocabulary.id_lists = {{"eos_token_ids", {20, 30}}};
  vocabulary.types[2] = kNormal;  // </s>
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(tokenizer->ends(), ElementsAre(11, 12, 20, 30));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(12));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(13));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(-1));
  EXPECT_EQ(tokenizer->eos(), 20);
}

TEST(EndsOfGeneration, AKeyMayHoldOneOrSeveral) {
  TestVocabulary vocabulary = BpeBase("dbrx");
  vocabulary.types[0] = kNormal;
  vocabulary.tokens[0] = "x";
  vocabulary.ids = {{"eos_token_ids", 4}};
  vocabulary.id_lists = {{"eos_token_id", {7, 5}}};
  EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(4, 5, 7));
  vocabulary.id_lists = {{"eos_token_id", {7, 257}}};
  EXPECT_THAT(std::string(vocabulary.Load().status().message()),
              AllOf(HasSubstr("'tokenizer.ggml.eos_token_id' is 257 in element 1, but"),
                    HasSubstr("257 tokens")));
  vocabulary.id_lists = {{"eos_token_id", {7, 0xFFFFFFFF}}};  // none
  EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(4, 7));
}

TEST(EndsOfGeneration, IdsOfNoTokenAreLeftOut) {
  TestVocabulary vocabulary = BpeBase("dbrx");
  vocabulary.ids.push_back({"eot_token_id", 1000});
  vocabulary.id_lists = {{"eos_token_ids", {5, 257, 4}}};
  EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(0, 4, 5));
  // A text could begin with this one.
  vocabulary.ids = {{"bos_token_id", 257}};
  EXPECT_THAT(std::string(vocabulary.Load().status().message()),
              HasSubstr("'tokenizer.ggml.bos_token_id' is 257, but"));
}

TEST(EndsOfGeneration, FillingInTheMiddleHasSome) {
  TestVocabulary vocabulary = BpeBase("dbrx");
  vocabulary.ids = {{"fim_pad_token_id", 7}, {"fim_rep_token_id", 8}, {"fim_sep_token_id", 9}};
  EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(0, 7, 8, 9));
  for (const char* text : {"<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}) {
    vocabulary = BpeBase("dbrx");
    vocabulary.Add(text, kControl);
    EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(0, kFirstBpe)) << text;
    vocabulary.types.back() = kUserDefined;
    EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(0, kFirstBpe)) << text;
    vocabulary.types.back() = kNormal;
    EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(0)) << text;
  }
}

// Type 0 is "undefined".
TEST(TypesOfTokens, ATokenWithoutTypeIsNormal) {
  TestVocabulary vocabulary = BpeBase("dbrx");
  vocabulary.Add("<abc>", kUserDefined);
  EXPECT_EQ(Must(vocabulary.Load())->FindSpecial("<abc>"), kFirstBpe);
  vocabulary.types.back() = 0;
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_EQ(tokenizer->FindSpecial("<abc>"), std::nullopt);
  EXPECT_FALSE(tokenizer->IsControl(kFirstBpe));
  EXPECT_EQ(tokenizer->Piece(kFirstBpe), "<abc>");
}

TEST(SuppressedTokens, AreThoseThatTheKeyNames) {
  TestVocabulary vocabulary = SpmBase();
  EXPECT_THAT(Must(vocabulary.Load())->suppressed(), ElementsAre());
  vocabulary.id_lists = {{"suppress_tokens", {30, 20, 30}}};
  EXPECT_THAT(Must(vocabulary.Load())->suppressed(), ElementsAre(20, 30));
  vocabulary.id_lists = {{"suppress_tokens", {30, 1000, 20}}};  // one of no token
  EXPECT_THAT(Must(vocabulary.Load())->suppressed(), ElementsAre(20, 30));
}

// Where eos_token_id names one of them.
TEST(EndsOfGeneration, AreFoundByTheirTexts) {
  for (const char* text : {"<eos>", "<end_of_turn>", "<turn|>", "<|im_end|>", "<|end_of_text|>",
                           "<|eot_id|>", "<|eom_id|>"}) {
    TestVocabulary vocabulary = BpeBase("dbrx");
    vocabulary.Add(text, kControl);
    EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(0, kFirstBpe)) << text;
    vocabulary.types.back() = kUnused;
    EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(0)) << text;
  }
  TestVocabulary qwen = BpeBase("dbrx");  // <|endoftext|> is 0
  qwen.Add("<|im_end|>", kControl);
  qwen.ids = {{"eos_token_id", kFirstBpe}};
  EXPECT_THAT(Must(qwen.Load())->ends(), ElementsAre(0, kFirstBpe));
}

TEST(EndsOfGeneration, ASentencesEndIsOneUnlessItIsHtml) {
  TestVocabulary nemotron = BpeBase("pixtral");
  nemotron.Add("</s>", kControl);
  EXPECT_THAT(Must(nemotron.Load())->ends(), ElementsAre(0, kFirstBpe));
  TestVocabulary gemma = GemmaBase();
  gemma.Add("</s>", kControl);
  EXPECT_THAT(Must(gemma.Load())->ends(), ElementsAre(1));
}

TEST(EndsOfGeneration, WaitingForAToolIsOne) {
  for (const char* text : {"<|tool_response>", "<start_function_response>"}) {
    TestVocabulary vocabulary = GemmaBase();
    vocabulary.Add(text, kUserDefined);
    EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(1, kAfterGemmaBase));
    vocabulary.types.back() = kControl;
    EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(1, kAfterGemmaBase));
    vocabulary.types.back() = kNormal;
    EXPECT_THAT(Must(vocabulary.Load())->ends(), ElementsAre(1));
  }
}

// Google's QAT files of Gemma 3, exports of fine-tuned models.
TEST(ControlTokens, AreFoundByTheirTextsWhateverTheirType) {
  for (const int32_t type : {kNormal, kUserDefined, kControl}) {
    TestVocabulary vocabulary = GemmaBase();
    vocabulary.types[1] = type;  // <eos>, which is normal in files of Gemma 4
    vocabulary.Add("<start_of_turn>", type);
    vocabulary.Add("<end_of_turn>", type);
    const auto tokenizer = Must(vocabulary.Load());
    EXPECT_EQ(tokenizer->FindSpecial("<start_of_turn>"), kAfterGemmaBase) << type;
    EXPECT_TRUE(tokenizer->IsControl(1));
    EXPECT_TRUE(tokenizer->IsControl(kAfterGemmaBase + 1));
    EXPECT_EQ(tokenizer->Piece(kAfterGemmaBase + 1), "");
    EXPECT_THAT(tokenizer->ends(), ElementsAre(1, kAfterGemmaBase + 1)) << type;
    EXPECT_THAT(EncodeTrusted(*tokenizer, "<start_of_turn>"), ElementsAre(kAfterGemmaBase));
    // What a user types stays letters.
    const auto typed = tokenizer->Encode("<start_of_turn><end_of_turn>", {.add_bos = false});
    ASSERT_TRUE(typed.ok());
    EXPECT_EQ(typed->size(), 28u) << type;
    EXPECT_EQ(tokenizer->Decode(*typed), "<start_of_turn><end_of_turn>");
  }
}

TEST(ControlTokens, OthersKeepTheirType) {
  TestVocabulary vocabulary = GemmaBase();
  vocabulary.Add("<strong>", kNormal);
  vocabulary.Add("<|tool_call>", kUserDefined);
  vocabulary.Add("<turn|>", kUnused);
  const auto tokenizer = Must(vocabulary.Load());
  for (int32_t id = kAfterGemmaBase; id < kAfterGemmaBase + 3; ++id)
    EXPECT_FALSE(tokenizer->IsControl(id));
  EXPECT_EQ(tokenizer->FindSpecial("<strong>"), std::nullopt);
}

// Google's QAT files of Gemma 4 have three texts twice.
TEST(DuplicateTexts, TheLeastIdStandsForTheText) {
  TestVocabulary spm = GemmaBase();
  spm.Add("ab", kNormal, /*score=*/-1);
  spm.Add("ab", kNormal, /*score=*/-1);
  spm.Add("<|x|>", kControl);
  spm.Add("<|x|>", kControl);
  const auto tokenizer = Must(spm.Load());
  EXPECT_THAT(*tokenizer->Encode("ab", {.add_bos = false}), ElementsAre(kAfterGemmaBase));
  EXPECT_EQ(tokenizer->FindSpecial("<|x|>"), kAfterGemmaBase + 2);
  EXPECT_EQ(tokenizer->Piece(kAfterGemmaBase + 1),
            "ab");  // what the model may generate nevertheless

  TestVocabulary bpe = BpeBase("gpt-2");
  bpe.Add("ab", kNormal);
  bpe.Add("ab", kNormal);
  bpe.merges = {{"a b", "a b"}};
  EXPECT_THAT(*Must(bpe.Load())->Encode("ab"), ElementsAre(kFirstBpe));
}

TEST(DuplicateTexts, AControlTokenIsNotReplacedByANormalOneOfItsText) {
  TestVocabulary vocabulary = GemmaBase();
  vocabulary.Add("<end_of_turn>", kNormal);
  vocabulary.Add("<end_of_turn>", kControl);
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_EQ(tokenizer->FindSpecial("<end_of_turn>"), kAfterGemmaBase + 1);
  EXPECT_FALSE(tokenizer->IsControl(kAfterGemmaBase));
  EXPECT_THAT(tokenizer->ends(), ElementsAre(1, kAfterGemmaBase + 1));
}

// Ollama's files of Gemma 3.
TEST(TokensWithoutRows, AreLeftOut) {
  TestVocabulary spm = GemmaBase();
  spm.Add("ab", kNormal);
  spm.Add("<end_of_turn>", kControl);
  spm.ids.push_back({"eot_token_id", kAfterGemmaBase + 1});
  spm.embedding_rows = kAfterGemmaBase + 1;
  auto tokenizer = Must(spm.Load());
  EXPECT_EQ(tokenizer->size(), kAfterGemmaBase + 1u);
  EXPECT_EQ(tokenizer->FindSpecial("<end_of_turn>"), std::nullopt);
  EXPECT_THAT(tokenizer->ends(), ElementsAre(1));
  EXPECT_EQ(tokenizer->TokenText(kAfterGemmaBase + 1), "");
  EXPECT_THAT(*tokenizer->Encode("ab", {.add_bos = false}), ElementsAre(kAfterGemmaBase));
  spm.embedding_rows = kAfterGemmaBase;  // "ab" too
  tokenizer = Must(spm.Load());
  EXPECT_THAT(*tokenizer->Encode("ab", {.add_bos = false}), ElementsAre(4 + 'a', 4 + 'b'));

  TestVocabulary bpe = BpeBase("gpt-2");
  bpe.Add("ab", kNormal);
  bpe.merges = {{"a b"}};
  bpe.embedding_rows = kFirstBpe;
  EXPECT_THAT(*Must(bpe.Load())->Encode("ab"), ElementsAre(1 + 'a', 1 + 'b'));
}

TEST(TokensWithoutRows, TheListsMustHaveOneLengthAllTheSame) {
  TestVocabulary vocabulary = GemmaBase();
  vocabulary.embedding_rows = 260;
  vocabulary.Add("ab", kNormal);
  vocabulary.scores->resize(260);
  EXPECT_THAT(std::string(vocabulary.Load().status().message()),
              AllOf(HasSubstr("scores' has 260"), HasSubstr("261 tokens")));
}

TEST(TokensWithoutRows, RowsWithoutTokensAreNone) {
  TestVocabulary vocabulary = GemmaBase();
  vocabulary.embedding_rows = 300;
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_EQ(tokenizer->size(), 260u);
  EXPECT_EQ(tokenizer->Piece(260), "");
}

// Where the key is missing.
TEST(SpacePrefix, GemmaHasNone) {
  TestVocabulary vocabulary = GemmaBase();
  vocabulary.Add("<start_of_turn>", kControl);
  const std::vector<int32_t> plain = {kAfterGemmaBase, 4 + 'a'};
  for (const char* architecture : {"gemma", "gemma2", "gemma3", "gemma4", "gemma-embedding"}) {
    vocabulary.architecture = architecture;
    EXPECT_EQ(EncodeTrusted(*Must(vocabulary.Load()), "<start_of_turn>a"), plain) << architecture;
  }
  for (const char* architecture : {"", "llama"}) {
    vocabulary.architecture = architecture;
    EXPECT_THAT(EncodeTrusted(*Must(vocabulary.Load()), "<start_of_turn>a"),
                ElementsAre(kAfterGemmaBase, 4 + ' ', 4 + 'a'))
        << architecture;
  }
  vocabulary.flags = {{"add_space_prefix", false}};  // the key counts
  EXPECT_EQ(EncodeTrusted(*Must(vocabulary.Load()), "<start_of_turn>a"), plain);
}

TEST(Bos, IsNotDoubledByATemplateThatPrintsIt) {
  TestVocabulary vocabulary = GemmaBase();
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(EncodeTrusted(*tokenizer, "<bos>a", /*add_bos=*/true), ElementsAre(2, 4 + 'a'));
  EXPECT_THAT(EncodeTrusted(*tokenizer, "<bos>", /*add_bos=*/true), ElementsAre(2));
  EXPECT_THAT(EncodeTrusted(*tokenizer, "a<bos>", /*add_bos=*/true), ElementsAre(2, 4 + 'a', 2));
  EXPECT_THAT(EncodeTrusted(*tokenizer, "<bos><bos>", /*add_bos=*/true), ElementsAre(2, 2));
  EXPECT_THAT(EncodeTrusted(*tokenizer, "<bos>a"), ElementsAre(2, 4 + 'a'));
  // Untrusted text cannot write it.
  EXPECT_EQ(tokenizer->Encode("<bos>", {.add_bos = true})->size(), 6u);
}

TEST(Bos, IsNotDoubledInPiecesEither) {
  const auto tokenizer = Must(GemmaBase().Load());
  auto stream = tokenizer->StartEncoding({.add_bos = true, .parse_special = true}, /*piece=*/1);
  ASSERT_TRUE(stream.ok());
  for (int round = 0; round < 2; ++round) {
    std::vector<int32_t> ids;
    for (const char c : std::string("<bos>ab")) {
      ASSERT_TRUE((*stream)->Push(absl::string_view(&c, 1), &ids).ok());
    }
    ASSERT_TRUE((*stream)->Finish(&ids).ok());
    EXPECT_THAT(ids, ElementsAre(2, 4 + 'a', 4 + 'b'));
  }
}

// Ollama's converter writes "default" for rules that it does not know.
TEST(PreTokenizers, AreTheFamilysWhereTheFileNamesNone) {
  const std::vector<std::pair<std::string, std::string>> families = {
      {"falcon-h1", "falcon-h1"},    {"lfm2", "lfm2"},     {"lfm2moe", "lfm2"},
      {"nemotron_h", "pixtral"},     {"qwen35", "qwen35"}, {"qwen35moe", "qwen35"},
      {"nemotron_h_moe", "pixtral"},
  };
  TestVocabulary vocabulary = BpeBase("default");
  for (const char* text : {"(a", "12"}) vocabulary.Add(text, kNormal);
  vocabulary.merges = {{"( a", "1 2"}};
  const auto encode = [&](const std::string& architecture, std::optional<std::string> pre) {
    vocabulary.architecture = architecture;
    vocabulary.pre = std::move(pre);
    return *Must(vocabulary.Load())->Encode("(a12e\xCC\x81");
  };
  const std::vector<int32_t> unnamed = encode("", "default");
  for (const auto& [architecture, pre] : families) {
    const std::vector<int32_t> named = encode(architecture, pre);
    EXPECT_NE(named, unnamed) << architecture;
    EXPECT_EQ(encode(architecture, "default"), named) << architecture;
    EXPECT_EQ(encode(architecture, std::nullopt), named) << architecture;
    EXPECT_EQ(encode(architecture, "gpt-2"), encode("", "gpt-2")) << "a name counts";
  }
  // Families whose models have different rules.
  for (const char* architecture : {"granite", "granitehybrid", "mamba2", "gptneox"}) {
    EXPECT_EQ(encode(architecture, "default"), unnamed) << architecture;
    EXPECT_EQ(encode(architecture, std::nullopt), unnamed) << architecture;
  }
}

TEST(PreTokenizers, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  const std::string message(BpeBase("klingon").Load().status().message());
  EXPECT_THAT(message, AllOf(HasSubstr("'klingon'"), HasSubstr("(default, gpt-2, "),
                             HasSubstr("falcon-h1"), HasSubstr("lfm2")));
}

}  // namespace
}  // namespace inlay
