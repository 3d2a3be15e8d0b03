// The C API: models, conversations, passes, and what ends calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gemma_like/embed.h"
#include "gemma_like/fingerprint.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/load_model.h"
#include "gemma_like/perplexity.h"
#include "gemma_like/registry.h"
#include "tests/gemma_like/embedding_file.h"
#include "tests/gemma_like/inlay_c_fixture.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(InlayCTest, SaysWhatTheEngineSays) {
  const LoadedModel model = LoadBard();
  EXPECT_EQ(prompt_, *model.tokenizer->Encode(kPrompt));
  EXPECT_EQ(inlay_vocabulary_size(model_), 1024u);
  auto cache = Must(model.engine->CreateCache({.max_length = 200}));
  GenerateOptions options;
  options.sampling = SamplingOptions::From(model.engine->info().sampling);
  options.max_tokens = 20;
  const auto expected = Generate(*model.engine, *model.tokenizer, *cache, prompt_, options);
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(Answer(cache_), expected->text);
  EXPECT_EQ(inlay_cache_length(cache_), cache->length());
  std::string text(expected->text.size(), '\0');
  size_t size = 0;
  ASSERT_EQ(
      inlay_detokenize(model_, prompt_.data(), prompt_.size(), text.data(), text.size(), &size),
      INLAY_OK);
  EXPECT_EQ(text.substr(0, size), kPrompt);
}

TEST_F(InlayCTest, ForksRewindsSavesAndLoads) {
  inlay_cache* fork = nullptr;
  ASSERT_EQ(inlay_fork_cache(cache_, &fork), INLAY_OK);
  const std::string answer = Answer(cache_);
  EXPECT_EQ(inlay_cache_length(fork), 0u);
  EXPECT_EQ(Answer(fork), answer);

  const size_t length = inlay_cache_length(cache_);
  const std::string path = TempPath("conversation");
  ASSERT_EQ(inlay_save_cache(cache_, path.c_str()), INLAY_OK);
  const std::string second = Answer(cache_);
  size_t recomputed = 1;
  ASSERT_EQ(inlay_load_cache(fork, path.c_str(), 1, &recomputed), INLAY_OK) << inlay_last_error();
  EXPECT_EQ(recomputed, 0u);
  EXPECT_EQ(inlay_cache_length(fork), length);
  EXPECT_EQ(Answer(fork), second);
  std::remove(path.c_str());

  EXPECT_EQ(inlay_rewind_cache(fork, inlay_cache_length(fork) - 5), INLAY_OK);
  EXPECT_EQ(inlay_cache_length(fork), inlay_cache_length(cache_) - 5);
  EXPECT_EQ(inlay_rewind_cache(fork, 1000), INLAY_OUT_OF_RANGE);
  // What the header promises: 32 from the greatest length, however often one rewinds.
  const size_t greatest = inlay_cache_length(cache_);
  EXPECT_EQ(inlay_rewind_cache(fork, greatest - 20), INLAY_OK);
  EXPECT_EQ(inlay_rewind_cache(fork, greatest - 32), INLAY_OK);
  EXPECT_EQ(inlay_rewind_cache(fork, 0), INLAY_OK);

  // Waiting takes less memory, and what follows is the same.
  inlay_cache* waiting = nullptr;
  ASSERT_EQ(inlay_fork_cache(cache_, &waiting), INLAY_OK);
  size_t before = 0, trimmed = 0;
  ASSERT_EQ(inlay_cache_bytes(&waiting, 1, &before), INLAY_OK);
  ASSERT_EQ(inlay_trim_cache(waiting, 3), INLAY_OK) << inlay_last_error();
  ASSERT_EQ(inlay_cache_bytes(&waiting, 1, &trimmed), INLAY_OK);
  EXPECT_LT(trimmed, before);
  EXPECT_LE(inlay_cache_rewind_floor(waiting), greatest - 3);
  EXPECT_EQ(Answer(waiting), Answer(cache_));
  inlay_free_cache(waiting);
  EXPECT_EQ(inlay_trim_cache(nullptr, 0), INLAY_INVALID_ARGUMENT);

  // Of the first release: computed again, or refused.
  const char* old = "tests/gemma_like/sessions/testdata/session_version_2.bin";
  EXPECT_EQ(inlay_load_cache(fork, old, 1, &recomputed), INLAY_FAILED_PRECONDITION);
  EXPECT_THAT(inlay_last_error(), HasSubstr("it has version 2 of the format"));
  EXPECT_EQ(recomputed, 0u);
  ASSERT_EQ(inlay_load_cache(fork, old, 0, &recomputed), INLAY_OK) << inlay_last_error();
  EXPECT_EQ(recomputed, 15u);
  EXPECT_EQ(inlay_cache_length(fork), 15u);
  inlay_free_cache(fork);
}

TEST_F(InlayCTest, OlderStructsHaveTheDefaultsOfWhatTheyLack) {
  const std::string expected = Answer(cache_);
  struct {
    inlay_options options;
    char behind[8];
  } older = {options_, "intact"};
  older.options.size = offsetof(inlay_options, stop_texts);
  older.options.stop_text_count = 99;
  older.options.draft = 99;
  older.options.shape_kind = 99;
  inlay_cache* cache = NewCache();
  std::string text;
  EXPECT_EQ(inlay_generate(cache, prompt_.data(), prompt_.size(), &older.options, Collect, &text,
                           nullptr),
            INLAY_OK)
      << inlay_last_error();
  EXPECT_EQ(text, expected);
  inlay_free_cache(cache);
  older.options.top_k = 0;
  EXPECT_EQ(inlay_default_options(model_, &older.options), INLAY_OK);
  EXPECT_EQ(older.options.top_k, options_.top_k);
  EXPECT_EQ(older.options.draft, 99u) << "beyond the size";
  EXPECT_GE(inlay_interface_version(), 6);
  EXPECT_THAT(inlay_version(), HasSubstr("."));
}

TEST_F(InlayCTest, LogitsAndBatches) {
  const size_t vocab = inlay_vocabulary_size(model_);
  const LoadedModel model = LoadBard();
  auto expected_cache = Must(model.engine->CreateCache({.max_length = 200}));
  const std::vector<float> expected = Append(*model.engine, *expected_cache, prompt_);
  const float* last = &expected[(prompt_.size() - 1) * vocab];

  std::vector<float> logits(3 * vocab);
  ASSERT_EQ(inlay_append(cache_, prompt_.data(), prompt_.size(), logits.data()), INLAY_OK);
  EXPECT_TRUE(std::equal(last, last + vocab, logits.begin()));

  // Two conversations of different lengths and row types, and one that is too long.
  inlay_cache* whole = NewCache();
  inlay_cache* q8 = NewCache(INLAY_ROWS_Q8);
  const inlay_cache_options options = {sizeof(options), 2, INLAY_ROWS_F16, 0};
  inlay_cache* small = nullptr;
  ASSERT_EQ(inlay_create_cache(model_, &options, &small), INLAY_OK);
  EXPECT_EQ(inlay_cache_max_length(small), 2u);
  inlay_step steps[] = {
      {sizeof(inlay_step), q8, prompt_.data(), 3, 1, INLAY_ERROR},
      {sizeof(inlay_step), small, prompt_.data(), 3, 0, INLAY_ERROR},
      {sizeof(inlay_step), whole, prompt_.data(), prompt_.size(), 2, INLAY_ERROR},
  };
  EXPECT_EQ(inlay_forward(steps, 3, logits.data(), 3 * vocab - 1), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_cache_length(whole), 0u);
  ASSERT_EQ(inlay_forward(steps, 3, logits.data(), logits.size()), INLAY_OK) << inlay_last_error();
  EXPECT_EQ(steps[0].status, INLAY_OK);
  EXPECT_EQ(steps[1].status, INLAY_OUT_OF_RANGE);
  EXPECT_EQ(steps[2].status, INLAY_OK);
  EXPECT_EQ(inlay_cache_length(small), 0u);
  EXPECT_EQ(inlay_cache_length(q8), 3u);
  EXPECT_TRUE(
      std::equal(last - vocab, last + vocab, logits.begin() + static_cast<ptrdiff_t>(vocab)));

  EXPECT_EQ(inlay_cache_rewind_floor(whole), 0u) << "full attention goes back anywhere";
  EXPECT_GE(inlay_rewind_depth(whole), 32u);
  inlay_step sizeless = {0, whole, prompt_.data(), 1, 0, INLAY_OK};
  EXPECT_EQ(inlay_forward(&sizeless, 1, nullptr, 0), INLAY_INVALID_ARGUMENT);
  inlay_step unlike[] = {{sizeof(inlay_step), whole, prompt_.data(), 1, 0, INLAY_OK},
                         {sizeof(inlay_step) + 8, q8, prompt_.data(), 1, 0, INLAY_OK}};
  EXPECT_ERROR(inlay_forward(unlike, 2, nullptr, 0), INLAY_INVALID_ARGUMENT,
               "the size of inlay_step number 1 is 56, that of the first is 48");
  EXPECT_EQ(inlay_forward(nullptr, 1, nullptr, 0), INLAY_INVALID_ARGUMENT);
  for (inlay_cache* cache : {whole, q8, small}) inlay_free_cache(cache);
}

TEST_F(InlayCTest, LimitsOfMemory) {
  inlay_cache_options options = {sizeof(options), 200, INLAY_ROWS_F32, 1000};
  inlay_cache* cache = nullptr;
  EXPECT_EQ(inlay_create_cache(model_, &options, &cache), INLAY_RESOURCE_EXHAUSTED);
  EXPECT_THAT(inlay_last_error(), HasSubstr("more than the limit of 1000"));
  options.row_type = 17;
  EXPECT_EQ(inlay_create_cache(model_, &options, &cache), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(cache, nullptr);
}

TEST_F(InlayCTest, ErrorsAreCodesAndSentences) {
  inlay_model* none = nullptr;
  EXPECT_EQ(inlay_load_model("no/such/file", nullptr, &none), INLAY_NOT_FOUND);
  EXPECT_THAT(inlay_last_error(), HasSubstr("no/such/file"));
  EXPECT_EQ(inlay_load_model("LICENSE", nullptr, &none), INLAY_INVALID_ARGUMENT);
  const inlay_model_options negative = {sizeof(negative), -1, 0, 0};
  EXPECT_EQ(inlay_load_model(kBardPath, &negative, &none), INLAY_INVALID_ARGUMENT);
  EXPECT_THAT(inlay_last_error(), HasSubstr("threads is -1"));
  const inlay_model_options sizeless = {0, 1, 0, 0};
  EXPECT_EQ(inlay_load_model(kBardPath, &sizeless, &none), INLAY_INVALID_ARGUMENT);
  EXPECT_THAT(inlay_last_error(), HasSubstr("the size of inlay_model_options is 0"));
  EXPECT_EQ(inlay_load_model(nullptr, nullptr, &none), INLAY_INVALID_ARGUMENT);
  EXPECT_STREQ(inlay_last_error(), "path is NULL");
  EXPECT_EQ(none, nullptr);

  size_t count = 0;
  int32_t two[2] = {-1, -1};
  EXPECT_EQ(inlay_tokenize(model_, kPrompt, std::strlen(kPrompt), two, 2, &count),
            INLAY_OUT_OF_RANGE);
  EXPECT_EQ(count, prompt_.size());
  EXPECT_EQ(two[1], prompt_[1]);
  EXPECT_EQ(inlay_tokenize(model_, kPrompt, std::strlen(kPrompt), nullptr, 0, &count),
            INLAY_OUT_OF_RANGE);

  char text[16] = "untouched";
  for (const int32_t id : {-1, 1024, INT32_MAX}) {
    const int32_t ids[2] = {prompt_[0], id};
    EXPECT_EQ(inlay_detokenize(model_, ids, 2, text, sizeof(text), &count), INLAY_INVALID_ARGUMENT);
    EXPECT_EQ(inlay_last_error(),
              "token id " + std::to_string(id) + " at index 1 is outside 0 to 1023");
    EXPECT_STREQ(text, "untouched");
  }

  const int32_t outside = 5000;
  EXPECT_EQ(inlay_generate(cache_, &outside, 1, nullptr, nullptr, nullptr, nullptr),
            INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_generate(cache_, &outside, 0, nullptr, nullptr, nullptr, nullptr),
            INLAY_INVALID_ARGUMENT);
  options_.top_p = 7;
  EXPECT_EQ(
      inlay_generate(cache_, prompt_.data(), prompt_.size(), &options_, nullptr, nullptr, nullptr),
      INLAY_INVALID_ARGUMENT);
  EXPECT_THAT(inlay_last_error(), HasSubstr("7"));
  EXPECT_EQ(inlay_load_cache(cache_, "LICENSE", 0, nullptr), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_load_cache(cache_, "no/such/file", 0, nullptr), INLAY_NOT_FOUND);
  EXPECT_EQ(inlay_cache_length(cache_), 0u);

  // Another thread has its own.
  std::thread([] { EXPECT_STREQ(inlay_last_error(), ""); }).join();
  inlay_free_model(nullptr);
  inlay_free_cache(nullptr);
}

TEST_F(InlayCTest, TellsWhatAModelIs) {
  const LoadedModel model = LoadBard();
  const EngineInfo& expected = model.engine->info();
  inlay_model_info info = {};
  info.size = sizeof(info);
  ASSERT_EQ(inlay_get_model_info(model_, &info), INLAY_OK) << inlay_last_error();
  EXPECT_STREQ(info.config, "bard");
  EXPECT_EQ(info.vocabulary_size, expected.vocab_size);
  EXPECT_EQ(info.token_count, model.tokenizer->size());
  EXPECT_EQ(info.context_length, expected.context_length);
  EXPECT_EQ(info.embedding_dim, 0u);
  EXPECT_EQ(info.max_batch, expected.max_batch);
  EXPECT_EQ(info.layers, 8u);
  EXPECT_EQ(info.bos, model.tokenizer->bos().value_or(-1));
  EXPECT_EQ(info.eos, model.tokenizer->eos().value_or(-1));
  EXPECT_EQ(info.unknown, model.tokenizer->unk().value_or(-1));
  EXPECT_EQ(info.adds_bos, model.tokenizer->adds_bos() ? 1 : 0);
  EXPECT_EQ(info.has_template, 0);

  // A caller who knows the first fields alone.
  inlay_model_info older = {};
  older.size = offsetof(inlay_model_info, layers);
  older.layers = 99;
  ASSERT_EQ(inlay_get_model_info(model_, &older), INLAY_OK);
  EXPECT_EQ(older.max_batch, info.max_batch);
  EXPECT_EQ(older.layers, 99u);
  older.size = 1;
  EXPECT_ERROR(inlay_get_model_info(model_, &older), INLAY_INVALID_ARGUMENT, "is 1, not sizeof");

  char text[200];
  size_t size = 0;
  ASSERT_EQ(inlay_fingerprint(model_, INLAY_ROWS_Q8, text, sizeof(text), &size), INLAY_OK);
  EXPECT_EQ(text, Must(MakeFingerprint(*model.engine, KvType::kQ8)));
  EXPECT_EQ(size, std::strlen(text));
  EXPECT_EQ(inlay_fingerprint(model_, INLAY_ROWS_Q8, text, size, &size), INLAY_OUT_OF_RANGE);
  EXPECT_EQ(inlay_fingerprint(model_, INLAY_ROWS_Q8, text, size + 1, &size), INLAY_OK);
  EXPECT_ERROR(inlay_fingerprint(model_, 9, text, sizeof(text), &size), INLAY_INVALID_ARGUMENT,
               "row_type is 9");

  std::vector<std::string> configs;
  while (const char* name = inlay_config_name(configs.size())) configs.emplace_back(name);
  EXPECT_EQ(configs.size(), ConfigEntries().size());
  EXPECT_THAT(configs, Contains("bard"));
  EXPECT_EQ(inlay_config_name(SIZE_MAX), nullptr);
}

TEST_F(InlayCTest, TokenizesWithOptionsAndTellsTokens) {
  const LoadedModel model = LoadBard();
  const Tokenizer& tokenizer = *model.tokenizer;
  const int32_t eos = *tokenizer.eos();
  const std::string text = "Exit" + std::string(tokenizer.TokenText(eos));
  const auto tokens = [&](const inlay_tokenize_options* options) {
    std::vector<int32_t> ids(100);
    size_t count = 0;
    EXPECT_EQ(inlay_tokenize_with(model_, text.data(), text.size(), options, ids.data(), ids.size(),
                                  &count),
              INLAY_OK)
        << inlay_last_error();
    ids.resize(count);
    return ids;
  };
  inlay_tokenize_options options = {sizeof(options), -1, 0, 0};
  EXPECT_EQ(tokens(nullptr), *tokenizer.Encode(text));
  EXPECT_EQ(tokens(&options), *tokenizer.Encode(text));
  for (const bool bos : {false, true}) {
    for (const bool special : {false, true}) {
      options.add_bos = bos;
      options.parse_special = special;
      EncodeOptions encode;
      encode.add_bos = bos;
      encode.parse_special = special;
      EXPECT_EQ(tokens(&options), *tokenizer.Encode(text, encode));
      EXPECT_EQ(tokens(&options).back() == eos, special);
    }
  }
  size_t count = 0;
  options.add_bos = 2;
  EXPECT_ERROR(inlay_tokenize_with(model_, "a", 1, &options, nullptr, 0, &count),
               INLAY_INVALID_ARGUMENT, "add_bos is 2");
  options = {sizeof(options), 0, 0, 1};
  EXPECT_ERROR(inlay_tokenize_with(model_, "a", 1, &options, nullptr, 0, &count),
               INLAY_INVALID_ARGUMENT, "no other options");

  const auto token_text = [&](int32_t token, int form) {
    char piece[64];
    size_t size = 0;
    EXPECT_EQ(inlay_token_text(model_, token, form, piece, sizeof(piece), &size), INLAY_OK);
    return std::string(piece, size);
  };
  EXPECT_EQ(token_text(eos, INLAY_TOKEN_NAME), tokenizer.TokenText(eos));
  EXPECT_EQ(token_text(eos, INLAY_TOKEN_BYTES), "");
  EXPECT_EQ(token_text(prompt_[1], INLAY_TOKEN_BYTES), tokenizer.Piece(prompt_[1]));
  EXPECT_EQ(inlay_kind_of_token(model_, eos), INLAY_TOKEN_CONTROL | INLAY_TOKEN_END);
  EXPECT_EQ(inlay_kind_of_token(model_, prompt_[1]), 0);
  EXPECT_EQ(inlay_kind_of_token(model_, -1), 0);
  EXPECT_EQ(inlay_kind_of_token(model_, 5000), 0);
  size_t size = 0;
  EXPECT_ERROR(inlay_token_text(model_, eos, 7, nullptr, 0, &size), INLAY_INVALID_ARGUMENT,
               "form is 7");
  EXPECT_ERROR(inlay_token_text(model_, 1024, 0, nullptr, 0, &size), INLAY_INVALID_ARGUMENT,
               "token id 1024 at index 0 is outside 0 to 1023");
}

TEST_F(InlayCTest, TellsTokensAndSharedBytesOfConversations) {
  ASSERT_EQ(inlay_append(cache_, prompt_.data(), prompt_.size(), nullptr), INLAY_OK);
  const int32_t* tokens = inlay_cache_tokens(cache_);
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + inlay_cache_length(cache_)), prompt_);
  std::vector<int32_t> copied(prompt_.size() + 1, -1);
  size_t count = 0;
  EXPECT_EQ(inlay_copy_tokens(cache_, copied.data(), copied.size(), &count), INLAY_OK);
  EXPECT_EQ(count, prompt_.size());
  EXPECT_EQ(copied.back(), -1);
  copied.pop_back();
  EXPECT_EQ(copied, prompt_);
  EXPECT_ERROR(inlay_copy_tokens(cache_, copied.data(), 2, &count), INLAY_OUT_OF_RANGE,
               "room for 2");
  EXPECT_EQ(count, prompt_.size());
  inlay_cache* empty = NewCache();
  EXPECT_EQ(inlay_copy_tokens(empty, nullptr, 0, &count), INLAY_OK);
  EXPECT_EQ(count, 0u);
  inlay_free_cache(empty);

  inlay_cache* fork = nullptr;
  ASSERT_EQ(inlay_fork_cache(cache_, &fork), INLAY_OK);
  const auto bytes = [](std::vector<const inlay_cache*> caches) {
    size_t bytes = 0;
    EXPECT_EQ(inlay_cache_bytes(caches.data(), caches.size(), &bytes), INLAY_OK);
    return bytes;
  };
  const size_t one = bytes({cache_});
  EXPECT_GT(one, 0u);
  EXPECT_EQ(bytes({cache_, fork, nullptr, cache_}), one) << "a fork shares all that there is";
  ASSERT_EQ(inlay_append(fork, prompt_.data(), prompt_.size(), nullptr), INLAY_OK);
  EXPECT_GT(bytes({cache_, fork}), one);
  EXPECT_LE(bytes({cache_, fork}), one + bytes({fork}));
  inlay_free_cache(fork);
  EXPECT_EQ(bytes({}), 0u);
}

TEST_F(InlayCTest, MeasuresLikelihoods) {
  const LoadedModel model = LoadBard();
  std::vector<int32_t> tokens;
  while (tokens.size() < 70) tokens.insert(tokens.end(), prompt_.begin(), prompt_.end());
  auto cache = Must(model.engine->CreateCache({.max_length = 32}));
  const int32_t first = model.tokenizer->adds_bos() ? *model.tokenizer->bos() : -1;
  const LikelihoodSum expected =
      Must(Perplexity(*model.engine, *cache, tokens, first, {.chunk = 32}));
  inlay_likelihood likelihood = {};
  likelihood.size = sizeof(likelihood);
  ASSERT_EQ(inlay_perplexity(model_, tokens.data(), tokens.size(), 32, INLAY_ROWS_F16, &likelihood),
            INLAY_OK)
      << inlay_last_error();
  EXPECT_EQ(likelihood.scored, expected.count());
  EXPECT_EQ(likelihood.mean_nll, expected.mean());
  EXPECT_EQ(likelihood.mean_nll_error, expected.mean_error());
  EXPECT_EQ(likelihood.perplexity, expected.perplexity());
  EXPECT_EQ(likelihood.perplexity_error, expected.perplexity_error());
  // The result is checked first, before anything is computed.
  inlay_likelihood sizeless = {};
  EXPECT_ERROR(inlay_perplexity(model_, tokens.data(), tokens.size(), 3, 0, &sizeless),
               INLAY_INVALID_ARGUMENT, "the size of inlay_likelihood is 0");
  EXPECT_ERROR(inlay_perplexity(model_, tokens.data(), tokens.size(), 3, 0, nullptr),
               INLAY_INVALID_ARGUMENT, "inlay_likelihood is NULL");
  for (const size_t chunk : {size_t{3}, tokens.size() + 1}) {
    EXPECT_ERROR(inlay_perplexity(model_, tokens.data(), tokens.size(), chunk, 0, &likelihood),
                 INLAY_INVALID_ARGUMENT, "chunk is " + std::to_string(chunk));
  }

  const size_t vocab = inlay_vocabulary_size(model_);
  std::vector<float> logits(2 * vocab);
  inlay_step step = {sizeof(step), cache_, prompt_.data(), 3, 2, INLAY_ERROR};
  ASSERT_EQ(inlay_forward(&step, 1, logits.data(), logits.size()), INLAY_OK);
  double found[2];
  ASSERT_EQ(inlay_log_probabilities(model_, logits.data(), &prompt_[2], 2, found), INLAY_OK);
  for (size_t i = 0; i < 2; ++i) {
    double sum = 0;
    for (size_t j = 0; j < vocab; ++j) sum += std::exp(double{logits[i * vocab + j]});
    EXPECT_NEAR(found[i], logits[i * vocab + prompt_[2 + i]] - std::log(sum), 1e-9);
  }
  // However the program rounds.
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    double again[2];
    inlay_likelihood same = {};
    same.size = sizeof(same);
    std::fesetround(mode);
    const int status = inlay_log_probabilities(model_, logits.data(), &prompt_[2], 2, again);
    const int of_text =
        inlay_perplexity(model_, tokens.data(), tokens.size(), 32, INLAY_ROWS_F16, &same);
    std::fesetround(FE_TONEAREST);
    ASSERT_EQ(status, INLAY_OK);
    ASSERT_EQ(of_text, INLAY_OK);
    EXPECT_EQ(again[0], found[0]);
    EXPECT_EQ(again[1], found[1]);
    EXPECT_EQ(same.mean_nll, likelihood.mean_nll);
    EXPECT_EQ(same.perplexity_error, likelihood.perplexity_error);
  }
  logits[vocab + 3] = NAN;
  EXPECT_ERROR(inlay_log_probabilities(model_, logits.data(), &prompt_[2], 2, found),
               INLAY_DATA_LOSS, "row 1");
  const int32_t outside[] = {0, -3};
  EXPECT_ERROR(inlay_log_probabilities(model_, logits.data(), outside, 2, found),
               INLAY_INVALID_ARGUMENT, "token id -3 at index 1 is outside");
}

TEST_F(InlayCTest, EmbedsTexts) {
  const inlay_tokens text = {prompt_.data(), prompt_.size()};
  float none = 0;
  EXPECT_EQ(inlay_embed(model_, &text, 1, &none, 1), INLAY_FAILED_PRECONDITION);

  const std::string path = TempPath("embeds.gguf");
  WriteEmbeddingFile({.add_eos = true}, path);
  inlay_model* embeds = nullptr;
  ASSERT_EQ(inlay_load_model(path.c_str(), nullptr, &embeds), INLAY_OK) << inlay_last_error();
  const LoadedModel model = Must(LoadModel(path));
  std::remove(path.c_str());
  inlay_model_info info = {};
  info.size = sizeof(info);
  ASSERT_EQ(inlay_get_model_info(embeds, &info), INLAY_OK);
  const size_t dim = info.embedding_dim;
  ASSERT_GT(dim, 0u);
  const inlay_tokenize_options to_embed = {sizeof(to_embed), -1, 0, 1};
  std::vector<std::vector<int32_t>> texts(2, std::vector<int32_t>(64));
  for (size_t i = 0; i < 2; ++i) {
    const std::string words = i == 0 ? "Who is Romeo?" : "A plague";
    size_t count = 0;
    ASSERT_EQ(inlay_tokenize_with(embeds, words.data(), words.size(), &to_embed, texts[i].data(),
                                  64, &count),
              INLAY_OK)
        << inlay_last_error();
    texts[i].resize(count);
    EXPECT_EQ(texts[i], Must(EncodeToEmbed(*model.tokenizer, words, 64)));
  }
  const inlay_tokens spans[] = {{texts[0].data(), texts[0].size()},
                                {texts[1].data(), texts[1].size()}};
  std::vector<float> vectors(2 * dim);
  ASSERT_EQ(inlay_embed(embeds, spans, 2, vectors.data(), vectors.size()), INLAY_OK)
      << inlay_last_error();
  std::vector<float> expected;
  for (const std::vector<float>& vector : Must(EmbedTexts(*model.engine, texts)))
    expected.insert(expected.end(), vector.begin(), vector.end());
  EXPECT_EQ(vectors, expected);
  EXPECT_ERROR(inlay_embed(embeds, spans, 2, vectors.data(), 2 * dim - 1), INLAY_INVALID_ARGUMENT,
               "do not fit");
  inlay_free_model(embeds);
}

// Counts, and asks for an end from the `end`-th time on.
struct Poll {
  int asked = 0;
  int end = 1;
};

int CountPolls(void* user) {
  Poll& poll = *static_cast<Poll*>(user);
  return ++poll.asked >= poll.end;
}

TEST_F(InlayCTest, PollsEndLongCallsWithoutAnyChange) {
  const inlay_cache_options room = {sizeof(room), 1 << 20, INLAY_ROWS_F16, 0};
  inlay_cache* cache = nullptr;
  ASSERT_EQ(inlay_create_cache(model_, &room, &cache), INLAY_OK);
  std::vector<int32_t> long_prompt;
  // Longer than any machine computes before the first question.
  while (long_prompt.size() < 200'000)
    long_prompt.insert(long_prompt.end(), prompt_.begin(), prompt_.end());
  const size_t vocab = inlay_vocabulary_size(model_);
  std::vector<float> before(vocab), after(vocab);
  ASSERT_EQ(inlay_append(cache, prompt_.data(), prompt_.size(), before.data()), INLAY_OK);

  Poll poll;
  inlay_set_poll(CountPolls, &poll);
  EXPECT_ERROR(inlay_append(cache, long_prompt.data(), long_prompt.size(), nullptr),
               INLAY_CANCELLED, "cancelled");
  EXPECT_EQ(poll.asked, 1);
  poll = {.end = 3};
  EXPECT_EQ(inlay_generate(cache, long_prompt.data(), long_prompt.size(), &options_, nullptr,
                           nullptr, nullptr),
            INLAY_CANCELLED);
  EXPECT_EQ(poll.asked, 3);
  poll = {};
  inlay_generation* generation = nullptr;
  ASSERT_EQ(
      inlay_start_generation(cache, long_prompt.data(), long_prompt.size(), &options_, &generation),
      INLAY_OK);
  inlay_piece piece = {};
  piece.size = sizeof(piece);
  EXPECT_EQ(inlay_next_piece(generation, &piece), INLAY_CANCELLED);
  EXPECT_EQ(inlay_next_piece(generation, &piece), INLAY_FAILED_PRECONDITION);
  poll = {};
  inlay_likelihood likelihood = {};
  likelihood.size = sizeof(likelihood);
  EXPECT_EQ(inlay_perplexity(model_, long_prompt.data(), long_prompt.size(), 1000, 0, &likelihood),
            INLAY_CANCELLED);
  inlay_free_generation(generation);

  EXPECT_EQ(inlay_cache_length(cache), prompt_.size());
  // Goes on as long as it is told to.
  poll = {.end = 1 << 30};
  ASSERT_EQ(inlay_append(cache, prompt_.data(), 1, after.data()), INLAY_OK);
  ASSERT_EQ(inlay_append(cache_, prompt_.data(), prompt_.size(), after.data()), INLAY_OK);
  EXPECT_EQ(after, before);
  inlay_set_poll(nullptr, nullptr);
  ASSERT_EQ(inlay_append(cache_, prompt_.data(), 1, before.data()), INLAY_OK);
  inlay_step step = {sizeof(step), cache, prompt_.data(), 1, 1, INLAY_ERROR};
  ASSERT_EQ(inlay_rewind_cache(cache, prompt_.size()), INLAY_OK);
  ASSERT_EQ(inlay_forward(&step, 1, after.data(), vocab), INLAY_OK);
  EXPECT_EQ(after, before) << "the cancelled calls left the conversation's bits";
  inlay_free_cache(cache);
}

TEST_F(InlayCTest, ConversationsAreUsedByOneCallAtATime) {
  inlay_step twice[] = {{sizeof(inlay_step), cache_, prompt_.data(), 1, 0, INLAY_ERROR},
                        {sizeof(inlay_step), cache_, prompt_.data(), 1, 0, INLAY_ERROR}};
  EXPECT_ERROR(inlay_forward(twice, 2, nullptr, 0), INLAY_INVALID_ARGUMENT,
               "steps 0 and 1 are of the same conversation");
  EXPECT_EQ(inlay_cache_length(cache_), 0u);
  // While the callback of an answer runs, in this thread or another.
  const auto use = [](const char*, size_t, void* cache) {
    const int32_t token = 1;
    const inlay_status status = inlay_append(static_cast<inlay_cache*>(cache), &token, 1, nullptr);
    return status == INLAY_FAILED_PRECONDITION ? 1 : 0;
  };
  inlay_stop_reason reason = INLAY_STOP_END;
  ASSERT_EQ(inlay_generate(cache_, prompt_.data(), prompt_.size(), &options_, use, cache_, &reason),
            INLAY_OK);
  EXPECT_EQ(reason, INLAY_STOP_CANCELLED);

  // Sentences of a batch name the steps that failed.
  const inlay_cache_options two = {sizeof(two), 2, INLAY_ROWS_F32, 0};
  inlay_cache* small[2] = {};
  for (inlay_cache*& cache : small) ASSERT_EQ(inlay_create_cache(model_, &two, &cache), INLAY_OK);
  inlay_step steps[] = {{sizeof(inlay_step), small[0], prompt_.data(), 3, 0, INLAY_OK},
                        {sizeof(inlay_step), cache_, prompt_.data(), 1, 0, INLAY_ERROR},
                        {sizeof(inlay_step), small[1], prompt_.data(), 3, 0, INLAY_OK}};
  ASSERT_EQ(inlay_forward(steps, 3, nullptr, 0), INLAY_OK);
  EXPECT_EQ(steps[1].status, INLAY_OK);
  EXPECT_THAT(inlay_last_error(), HasSubstr("step 0: "));
  EXPECT_THAT(inlay_last_error(), HasSubstr("; step 2: "));
  for (inlay_cache* cache : small) inlay_free_cache(cache);
}

TEST_F(InlayCTest, PullsFromTheCacheWithoutANetwork) {
  char path[16] = "untouched";
  size_t size = 0;
  EXPECT_EQ(inlay_pull("no name of a model", path, sizeof(path), &size), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_pull(nullptr, path, sizeof(path), &size), INLAY_INVALID_ARGUMENT);
  EXPECT_STREQ(path, "untouched");
}

}  // namespace
}  // namespace inlay
