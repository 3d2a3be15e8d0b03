// The C API: limits that hold, callbacks that free and compute, answers that other threads stop,
// arguments at their bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/gemma_like/inlay_c_fixture.h"
#include "tests/repetitions.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

class InlayCCallsTest : public InlayCTest {
 protected:
  // A prompt that no machine computes before the first question of a poll.
  std::vector<int32_t> LongPrompt() const {
    std::vector<int32_t> tokens;
    while (tokens.size() < 200'000) tokens.insert(tokens.end(), prompt_.begin(), prompt_.end());
    return tokens;
  }

  inlay_generation* Start(inlay_cache* cache, const std::vector<int32_t>& prompt) {
    inlay_generation* generation = nullptr;
    EXPECT_EQ(inlay_start_generation(cache, prompt.data(), prompt.size(), &options_, &generation),
              INLAY_OK)
        << inlay_last_error();
    return generation;
  }

  static inlay_piece NewPiece() {
    inlay_piece piece = {};
    piece.size = sizeof(piece);
    return piece;
  }
};

TEST_F(InlayCCallsTest, PerplexityRefusesIdsAnywhereInAChunk) {
  inlay_likelihood likelihood = {};
  likelihood.size = sizeof(likelihood);
  for (const int32_t id : {-1, 1024, 2'000'000'000, INT32_MIN}) {
    for (size_t i = 0; i < 16; ++i) {
      std::vector<int32_t> tokens(16, 5);
      tokens[i] = id;
      EXPECT_ERROR(
          inlay_perplexity(model_, tokens.data(), tokens.size(), 8, INLAY_ROWS_F16, &likelihood),
          INLAY_INVALID_ARGUMENT,
          "token id " + std::to_string(id) + " at index " + std::to_string(i) +
              " is outside 0 to 1023");
    }
  }
}

// The conversation's own tokens move while it grows.
TEST_F(InlayCCallsTest, ConversationsMayRepeatThemselves) {
  const size_t vocab = inlay_vocabulary_size(model_);
  std::vector<float> expected(vocab), found(vocab), in_batch(vocab);
  for (const size_t length : {1, 3, 8, 64, 200, 500}) {
    std::vector<int32_t> tokens;
    while (tokens.size() < length) tokens.insert(tokens.end(), prompt_.begin(), prompt_.end());
    tokens.resize(length);
    inlay_cache* caches[3];
    for (inlay_cache*& cache : caches) {
      cache = NewCache(INLAY_ROWS_F16, 2000);
      ASSERT_EQ(inlay_append(cache, tokens.data(), length, nullptr), INLAY_OK);
    }
    ASSERT_EQ(inlay_append(caches[0], tokens.data(), length, expected.data()), INLAY_OK);
    ASSERT_EQ(inlay_append(caches[1], inlay_cache_tokens(caches[1]), length, found.data()),
              INLAY_OK)
        << inlay_last_error();
    inlay_step step = {sizeof(step), caches[2], inlay_cache_tokens(caches[2]),
                       length,       1,         INLAY_ERROR};
    ASSERT_EQ(inlay_forward(&step, 1, in_batch.data(), vocab), INLAY_OK) << inlay_last_error();
    EXPECT_EQ(found, expected) << length;
    EXPECT_EQ(in_batch, expected) << length;
    for (inlay_cache* cache : caches) {
      ASSERT_EQ(inlay_cache_length(cache), 2 * length);
      const int32_t* held = inlay_cache_tokens(cache);
      EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), held + length)) << length;
      inlay_free_cache(cache);
    }
  }
}

TEST_F(InlayCCallsTest, AnswersAreStoppedByOtherThreads) {
  options_.max_tokens = 150;
  options_.ignore_end = 1;
  options_.draft = 4;
  for (int run = 0; run < Repetitions(60); ++run) {
    inlay_cache* cache = NewCache();
    inlay_generation* generation = Start(cache, prompt_);
    std::vector<int32_t> told;
    std::atomic<bool> started = false;
    std::thread reader([&] {
      inlay_piece piece = NewPiece();
      started = true;
      inlay_status status = INLAY_OK;
      while (piece.done == 0 && status == INLAY_OK) {
        status = inlay_next_piece(generation, &piece);
        if (status == INLAY_OK)
          told.insert(told.end(), piece.tokens, piece.tokens + piece.token_count);
      }
      EXPECT_TRUE(status == INLAY_OK || status == INLAY_FAILED_PRECONDITION ||
                  (status == INLAY_CANCELLED && told.empty()))
          << status;
    });
    while (!started) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(100 * run));
    EXPECT_EQ(inlay_stop_generation(generation), INLAY_OK) << inlay_last_error();
    reader.join();
    // The conversation has exactly what the reader was told, and is free.
    std::vector<int32_t> expected;
    if (!told.empty()) expected = prompt_;
    expected.insert(expected.end(), told.begin(), told.end());
    const int32_t* held = inlay_cache_tokens(cache);
    EXPECT_EQ(std::vector<int32_t>(held, held + inlay_cache_length(cache)), expected);
    EXPECT_EQ(inlay_append(cache, prompt_.data(), 1, nullptr), INLAY_OK) << inlay_last_error();
    inlay_free_generation(generation);
    inlay_free_cache(cache);
  }
}

struct InPrompt {
  inlay_generation* generation = nullptr;
  bool stops = false;  // itself
  std::atomic<bool> asked = false;
};

int WhileInPrompt(void* user) {
  InPrompt& state = *static_cast<InPrompt*>(user);
  state.asked = true;
  if (state.stops) {
    EXPECT_EQ(inlay_stop_generation(state.generation), INLAY_OK);
  }
  return 0;
}

TEST_F(InlayCCallsTest, PromptsAreStoppedByOtherThreadsAndCallbacks) {
  const std::vector<int32_t> prompt = LongPrompt();
  inlay_cache* cache = NewCache(INLAY_ROWS_F16, 1 << 20);
  for (const bool by_callback : {false, true}) {
    InPrompt state = {.generation = Start(cache, prompt), .stops = by_callback};
    std::thread reader([&] {
      inlay_set_poll(WhileInPrompt, &state);
      inlay_piece piece = NewPiece();
      EXPECT_EQ(inlay_next_piece(state.generation, &piece), INLAY_CANCELLED);
      EXPECT_EQ(inlay_next_piece(state.generation, &piece), INLAY_FAILED_PRECONDITION);
    });
    if (!by_callback) {
      while (!state.asked) std::this_thread::yield();
      inlay_piece piece = NewPiece();
      EXPECT_ERROR(inlay_next_piece(state.generation, &piece), INLAY_FAILED_PRECONDITION,
                   "another call uses the answer");
      EXPECT_EQ(inlay_stop_generation(state.generation), INLAY_OK) << inlay_last_error();
    }
    reader.join();
    EXPECT_EQ(inlay_cache_length(cache), 0u);
    inlay_free_generation(state.generation);
  }
  EXPECT_EQ(inlay_append(cache, prompt_.data(), 1, nullptr), INLAY_OK) << inlay_last_error();
  inlay_free_cache(cache);
}

struct Handles {
  inlay_model* model = nullptr;
  std::vector<inlay_cache*> caches;
  int called = 0;

  void Free() {
    inlay_free_model(model);
    for (inlay_cache* cache : caches) inlay_free_cache(cache);
    model = nullptr;
    caches.clear();
  }
};

TEST_F(InlayCCallsTest, CallbacksMayFreeTheHandles) {
  const std::string expected = Answer(cache_);
  const std::vector<int32_t> prompt = LongPrompt();
  struct Text {
    Handles handles;
    std::string all;
  } text;
  const auto free_at_third = [](const char* piece, size_t size, void* user) {
    Text& to = *static_cast<Text*>(user);
    to.all.append(piece, size);
    if (++to.handles.called == 3) to.handles.Free();
    return 0;
  };
  inlay_cache* cache = NewCache();
  text.handles = {.model = model_, .caches = {cache, cache_}};
  model_ = nullptr;
  cache_ = nullptr;
  EXPECT_EQ(inlay_generate(cache, prompt_.data(), prompt_.size(), &options_, free_at_third, &text,
                           nullptr),
            INLAY_OK)
      << inlay_last_error();
  EXPECT_EQ(text.handles.caches.size(), 0u);
  EXPECT_EQ(text.all, expected);

  // And the callbacks that are polled.
  const auto free_and_end = [](void* user) {
    Handles& handles = *static_cast<Handles*>(user);
    handles.Free();
    return ++handles.called >= 3 ? 1 : 0;
  };
  enum Way { kAppend, kForward, kGenerate, kPieces, kPerplexity };
  for (const Way way : {kAppend, kForward, kGenerate, kPieces, kPerplexity}) {
    Handles handles;
    const inlay_model_options one = {sizeof(one), 1, 0, 0};
    ASSERT_EQ(inlay_load_model(kBardPath, &one, &model_), INLAY_OK);
    handles.model = model_;
    inlay_model* const model = model_;
    inlay_cache* const freed = NewCache(INLAY_ROWS_F16, 1 << 20);
    inlay_generation* generation = way == kPieces ? Start(freed, prompt) : nullptr;
    handles.caches = {freed};
    inlay_set_poll(free_and_end, &handles);
    inlay_piece piece = NewPiece();
    inlay_likelihood likelihood = {};
    likelihood.size = sizeof(likelihood);
    inlay_status status = INLAY_CANCELLED;
    if (way == kAppend) status = inlay_append(freed, prompt.data(), prompt.size(), nullptr);
    if (way == kForward) {
      inlay_step step = {sizeof(step), freed, prompt.data(), 512, 0, INLAY_ERROR};
      status = inlay_forward(&step, 1, nullptr, 0);
      // One batch may end before the callback is asked.
      EXPECT_TRUE(status == INLAY_OK || status == INLAY_CANCELLED) << inlay_last_error();
      handles.Free();
      status = INLAY_CANCELLED;
    }
    if (way == kGenerate) {
      status =
          inlay_generate(freed, prompt.data(), prompt.size(), &options_, nullptr, nullptr, nullptr);
    }
    if (way == kPieces) status = inlay_next_piece(generation, &piece);
    if (way == kPerplexity) {
      status =
          inlay_perplexity(model, prompt.data(), prompt.size(), 1000, INLAY_ROWS_F16, &likelihood);
    }
    inlay_set_poll(nullptr, nullptr);
    EXPECT_EQ(status, INLAY_CANCELLED) << way << ": " << inlay_last_error();
    EXPECT_TRUE(handles.caches.empty()) << way;
    inlay_free_generation(generation);
  }
  model_ = nullptr;
}

// What a callback tries while a call with `model` asks it.
struct Tries {
  inlay_model* model = nullptr;
  inlay_cache* other = nullptr;        // of this model
  inlay_cache* elsewhere = nullptr;    // of another one
  inlay_generation* answer = nullptr;  // of this model, before its first piece
  std::vector<int32_t> tokens;
  std::string path;
  int depth = 0;
  bool tried = false;
};

void ExpectAllRefused(Tries& t) {
  const char* sentence = "cannot use the model of the call that asks it";
  const int32_t* tokens = t.tokens.data();
  inlay_likelihood likelihood = {};
  likelihood.size = sizeof(likelihood);
  inlay_piece piece = {};
  piece.size = sizeof(piece);
  inlay_step step = {sizeof(step), t.other, tokens, 1, 0, INLAY_ERROR};
  const inlay_tokens text = {tokens, 4};
  float none = 0;
  const inlay_status refused = INLAY_FAILED_PRECONDITION;
  EXPECT_ERROR(inlay_append(t.other, tokens, 3, nullptr), refused, sentence);
  EXPECT_ERROR(inlay_forward(&step, 1, nullptr, 0), refused, sentence);
  EXPECT_ERROR(inlay_generate(t.other, tokens, 3, nullptr, nullptr, nullptr, nullptr), refused,
               sentence);
  EXPECT_ERROR(inlay_next_piece(t.answer, &piece), refused, sentence);
  EXPECT_ERROR(inlay_stop_generation(t.answer), refused, sentence);
  EXPECT_ERROR(inlay_load_cache(t.other, t.path.c_str(), 0, nullptr), refused, sentence);
  EXPECT_ERROR(inlay_perplexity(t.model, tokens, 8, 8, INLAY_ROWS_F16, &likelihood), refused,
               sentence);
  EXPECT_ERROR(inlay_embed(t.model, &text, 1, &none, 1), refused, sentence);
  t.tried = true;
}

// Asked by a call with the first model it computes with the second one, and asked by that with the
// first again.
int TryAll(void* user) {
  Tries& t = *static_cast<Tries*>(user);
  if (t.tried) return 1;
  if (++t.depth == 1) {
    ExpectAllRefused(t);
    t.tried = false;
    EXPECT_EQ(inlay_append(t.elsewhere, t.tokens.data(), t.tokens.size(), nullptr),
              INLAY_CANCELLED);
  } else {
    ExpectAllRefused(t);
  }
  --t.depth;
  return t.tried ? 1 : 0;
}

TEST_F(InlayCCallsTest, CallbacksThatArePolledDoNotWaitForTheModel) {
  inlay_model* second = nullptr;
  ASSERT_EQ(inlay_load_model(kBardPath, nullptr, &second), INLAY_OK);
  const inlay_cache_options room = {sizeof(room), 1 << 20, INLAY_ROWS_F16, 0};
  Tries tries;
  tries.model = model_;
  tries.other = cache_;
  tries.tokens = LongPrompt();
  ASSERT_EQ(inlay_create_cache(second, &room, &tries.elsewhere), INLAY_OK);
  tries.path = TempPath("polled.kv");
  ASSERT_EQ(inlay_save_cache(cache_, tries.path.c_str()), INLAY_OK);
  inlay_cache* cache = NewCache(INLAY_ROWS_F16, 1 << 20);
  inlay_cache* answered = NewCache();
  tries.answer = Start(answered, prompt_);
  alarm(300);  // what waits for itself does so forever
  inlay_set_poll(TryAll, &tries);
  EXPECT_EQ(inlay_append(cache, tries.tokens.data(), tries.tokens.size(), nullptr),
            INLAY_CANCELLED);
  inlay_set_poll(nullptr, nullptr);
  alarm(0);
  EXPECT_TRUE(tries.tried);
  // All is as it was, the answer too.
  EXPECT_EQ(inlay_cache_length(cache_), 0u);
  inlay_piece piece = NewPiece();
  EXPECT_EQ(inlay_next_piece(tries.answer, &piece), INLAY_OK) << inlay_last_error();
  inlay_free_generation(tries.answer);
  for (inlay_cache* one : {cache, answered, tries.elsewhere}) inlay_free_cache(one);
  inlay_free_model(second);
  std::remove(tries.path.c_str());
}

TEST_F(InlayCCallsTest, ListsOfNothingMayBeNull) {
  size_t count = 9;
  ASSERT_EQ(inlay_cache_tokens(cache_), nullptr) << "an empty conversation's";
  char text[8];
  EXPECT_EQ(inlay_detokenize(model_, inlay_cache_tokens(cache_), 0, text, 8, &count), INLAY_OK);
  EXPECT_EQ(count, 0u);
  int32_t tokens[8];
  EXPECT_EQ(inlay_tokenize(model_, nullptr, 0, tokens, 8, &count), INLAY_OK);
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + count), Tokens(""));
  EXPECT_EQ(inlay_log_probabilities(model_, nullptr, nullptr, 0, nullptr), INLAY_OK);
  EXPECT_EQ(inlay_cache_bytes(nullptr, 0, &count), INLAY_OK);
  // Not enough for these, which say so.
  EXPECT_ERROR(inlay_append(cache_, nullptr, 0, nullptr), INLAY_INVALID_ARGUMENT,
               "the prompt is empty");
  EXPECT_ERROR(inlay_generate(cache_, nullptr, 0, nullptr, nullptr, nullptr, nullptr),
               INLAY_INVALID_ARGUMENT, "the prompt is empty");
  EXPECT_ERROR(inlay_forward(nullptr, 0, nullptr, 0), INLAY_INVALID_ARGUMENT, "there are no steps");
  inlay_likelihood likelihood = {};
  likelihood.size = sizeof(likelihood);
  EXPECT_ERROR(inlay_perplexity(model_, nullptr, 0, 8, INLAY_ROWS_F16, &likelihood),
               INLAY_INVALID_ARGUMENT, "chunk is 8");
  // Where there are some, NULL is still refused.
  EXPECT_ERROR(inlay_append(cache_, nullptr, 1, nullptr), INLAY_INVALID_ARGUMENT, "tokens is NULL");
  EXPECT_ERROR(inlay_generate(cache_, nullptr, 1, nullptr, nullptr, nullptr, nullptr),
               INLAY_INVALID_ARGUMENT, "prompt is NULL");
  EXPECT_ERROR(inlay_detokenize(model_, nullptr, 1, text, 8, &count), INLAY_INVALID_ARGUMENT,
               "tokens is NULL");
  EXPECT_ERROR(inlay_tokenize(model_, nullptr, 1, tokens, 8, &count), INLAY_INVALID_ARGUMENT,
               "text is NULL");
}

// A program of a later version, whose steps have more fields.
TEST_F(InlayCCallsTest, StepsAreAsFarApartAsTheirSizeSays) {
  struct LaterStep {
    inlay_step step;
    double more[3];
  };
  inlay_cache* other = NewCache();
  LaterStep steps[] = {
      {{sizeof(LaterStep), cache_, prompt_.data(), 3, 1, INLAY_ERROR}, {1, 2, 3}},
      {{sizeof(LaterStep), other, prompt_.data(), 4, 1, INLAY_ERROR}, {4, 5, 6}},
  };
  const size_t vocab = inlay_vocabulary_size(model_);
  std::vector<float> logits(2 * vocab), alone(vocab);
  ASSERT_EQ(inlay_forward(&steps[0].step, 2, logits.data(), logits.size()), INLAY_OK)
      << inlay_last_error();
  EXPECT_EQ(steps[1].step.status, INLAY_OK);
  EXPECT_EQ(steps[1].more[0], 4);
  EXPECT_EQ(inlay_cache_length(cache_), 3u);
  EXPECT_EQ(inlay_cache_length(other), 4u);
  inlay_free_cache(other);
  other = NewCache();
  ASSERT_EQ(inlay_append(other, prompt_.data(), 4, alone.data()), INLAY_OK);
  EXPECT_TRUE(
      std::equal(alone.begin(), alone.end(), logits.begin() + static_cast<ptrdiff_t>(vocab)));
  inlay_free_cache(other);
}

TEST_F(InlayCCallsTest, HandlesThatAreNullHaveNothing) {
  size_t size = 9, count = 9;
  EXPECT_EQ(inlay_kind_of_token(nullptr, 1), 0);
  EXPECT_EQ(inlay_chat_text(nullptr, &size), nullptr);
  EXPECT_EQ(inlay_chat_tokens(nullptr, &count), nullptr);
  EXPECT_EQ(size + count, 0u);
  EXPECT_EQ(inlay_vocabulary_size(nullptr), 0u);
  EXPECT_EQ(inlay_cache_tokens(nullptr), nullptr);
}

// The least limit with which a conversation is accepted.
size_t LeastLimit(const inlay_model* model, inlay_cache_options options) {
  options.limit_bytes = 1;
  inlay_cache* cache = nullptr;
  EXPECT_EQ(inlay_create_cache(model, &options, &cache), INLAY_RESOURCE_EXHAUSTED);
  const char* words = "may need ";
  const char* found = std::strstr(inlay_last_error(), words);
  return found == nullptr ? 0 : std::strtoull(found + std::strlen(words), nullptr, 10);
}

bool HasConfig(const std::string& name) {
  for (size_t i = 0; inlay_config_name(i) != nullptr; ++i) {
    if (inlay_config_name(i) == name) return true;
  }
  return false;
}

// What is accepted never fails for lack of memory, whatever is appended at a time.
TEST(InlayCLimitTest, TheLeastLimitIsEnoughForPromptsOfManyBatches) {
  const std::string tiny = "tests/golden/models/";
  const struct {
    const char* config;
    std::string path;
  } models[] = {{"bard", kBardPath},
                {"test_gemma3", tiny + "gemma3-tiny-q4_0.gguf"},
                {"test_mamba2", tiny + "mamba2-tiny-f16.gguf"},
                {"test_falcon_h1", tiny + "falcon-h1-tiny-q4_0.gguf"},
                {"test_lfm2", tiny + "lfm2-tiny-q6_k.gguf"},
                {"test_qwen35", tiny + "qwen35-tiny-f16.gguf"}};
  const std::string path = TempPath("limited.kv");
  for (const auto& [config, file] : models) {
    if (!HasConfig(config)) continue;
    SCOPED_TRACE(config);
    inlay_model* model = nullptr;
    ASSERT_EQ(inlay_load_model(file.c_str(), nullptr, &model), INLAY_OK) << inlay_last_error();
    const size_t max_length = kSanitized ? 1600 : 4096;
    inlay_cache_options options = {sizeof(options), max_length, INLAY_ROWS_F16, 0};
    options.limit_bytes = LeastLimit(model, options);
    const std::vector<int32_t> tokens(1000, 7);
    for (const size_t step : {size_t{513}, size_t{700}, size_t{1000}}) {
      inlay_cache* cache = nullptr;
      ASSERT_EQ(inlay_create_cache(model, &options, &cache), INLAY_OK) << inlay_last_error();
      while (inlay_cache_length(cache) < max_length) {
        const size_t count = std::min(step, max_length - inlay_cache_length(cache));
        ASSERT_EQ(inlay_append(cache, tokens.data(), count, nullptr), INLAY_OK)
            << step << " at " << inlay_cache_length(cache) << ": " << inlay_last_error();
      }
      inlay_free_cache(cache);
    }
    // An empty conversation has room for a saved one, also where it is computed again.
    for (const inlay_row_type type : {INLAY_ROWS_F16, INLAY_ROWS_F32}) {
      const inlay_cache_options saved_options = {sizeof(saved_options), max_length, type, 0};
      inlay_cache* saved = nullptr;
      ASSERT_EQ(inlay_create_cache(model, &saved_options, &saved), INLAY_OK);
      const std::vector<int32_t> all(max_length, 7);
      ASSERT_EQ(inlay_append(saved, all.data(), max_length, nullptr), INLAY_OK);
      ASSERT_EQ(inlay_save_cache(saved, path.c_str()), INLAY_OK);
      inlay_free_cache(saved);
      inlay_cache* empty = nullptr;
      ASSERT_EQ(inlay_create_cache(model, &options, &empty), INLAY_OK);
      size_t recomputed = 1;
      EXPECT_EQ(inlay_load_cache(empty, path.c_str(), 0, &recomputed), INLAY_OK)
          << inlay_last_error();
      EXPECT_EQ(recomputed, type == INLAY_ROWS_F16 ? 0 : max_length);
      inlay_free_cache(empty);
    }
    inlay_free_model(model);
  }
  std::remove(path.c_str());
}

TEST_F(InlayCCallsTest, LimitsRefuseAnyLengthAboveOneThatTheyRefuse) {
  inlay_cache_options options = {sizeof(options), 1'000, INLAY_ROWS_F16, 0};
  options.limit_bytes = LeastLimit(model_, options);
  bool refused = false;
  for (int bit = 0; bit <= 64; ++bit) {
    for (const size_t less : {size_t{64}, size_t{63}, size_t{1}, size_t{0}}) {
      const size_t power = bit == 64 ? 0 : size_t{1} << bit;
      if (bit < 64 && power <= less) continue;
      options.max_length = power - less;
      if (options.max_length == 0) continue;  // the default
      inlay_cache* cache = nullptr;
      const inlay_status status = inlay_create_cache(model_, &options, &cache);
      EXPECT_EQ(status, options.max_length <= 1'024 ? INLAY_OK : INLAY_RESOURCE_EXHAUSTED)
          << options.max_length;
      EXPECT_TRUE(!refused || status != INLAY_OK) << options.max_length;
      refused = refused || status != INLAY_OK;
      inlay_free_cache(cache);
    }
  }
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace inlay
