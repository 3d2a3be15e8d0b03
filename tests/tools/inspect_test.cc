// inlay inspect.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cache/cache_plan.h"
#include "configs/bard.h"
#include "io/gguf/gguf_value.h"
#include "tests/tools/program.h"
#include "tools/json_text.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Inspect, TellsWhatTheFileHolds) {
  const ProgramResult text = RunProgram({"inspect"});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.err, IsEmpty());
  EXPECT_THAT(text.out, AllOf(HasSubstr("bard.context_length"), HasSubstr("blk.7.attn_q.weight"),
                              HasSubstr("256 x 1024"), HasSubstr("F16"),
                              HasSubstr("sliding attention 64"), HasSubstr("per token")));
  const auto json = RunProgram({"inspect", "-o", "json"}).Json();
  EXPECT_EQ(json["metadata"]["bard.attention.head_count_kv"],
            nlohmann::json({0, 2, 0, 2, 0, 2, 0, 2}));
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"].size(), 1024u);
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.add_bos_token"], true);
  EXPECT_EQ(json["tensors"].size(), 98u);
  const nlohmann::json embedding = {
      {"name", "token_embd.weight"}, {"shape", {256, 1024}}, {"type", "F16"}, {"bytes", 524288}};
  EXPECT_EQ(json["tensors"][0], embedding);
  EXPECT_EQ(json["config"]["name"], "bard");
  EXPECT_EQ(json["config"]["layers"].size(), 8u);
}

TEST(Inspect, TellsTheMemoryPlan) {
  constexpr CacheBytes kBytes = ConfigCacheBytes<Bard, F16Storage>();
  const auto memory =
      RunProgram({"inspect", "-o", "json", "-c", "1000", "--cache-type", "f16"}).Json()["memory"];
  EXPECT_EQ(memory["cache_type"], "f16");
  EXPECT_EQ(memory["context"], 1000);
  EXPECT_EQ(memory["bytes_constant"], kBytes.constant);
  // Two full layers, keys and values of two heads of 64 in two bytes each.
  EXPECT_EQ(memory["bytes_per_token"], 2 * 2 * 2 * 64 * 2);
  EXPECT_EQ(memory["bytes_per_conversation"], kBytes.At(1000));
  EXPECT_EQ(memory["bytes_per_snapshot"], kBytes.snapshot);
  EXPECT_EQ(memory["bytes_per_kept_snapshot"], kBytes.Kept());
  const auto q8 = RunProgram({"inspect", "-o", "json", "--cache-type", "q8"}).Json()["memory"];
  // Of each head of keys and of values: an element in one byte, and a scale in four.
  EXPECT_EQ(q8["bytes_per_token"], 2 * 2 * 2 * (64 + 4));
  EXPECT_EQ(RunProgram({"inspect", "-o", "json"}).Json()["memory"]["context"], 2048);
}

// As many keys as fit into a file take no more than it does.
TEST(Inspect, MetadataTakesTwiceItsBytesAtMost) {
  constexpr uint64_t kKeys = 1'000'000;
  std::string bytes = "GGUF";
  const auto put = [&](auto x) { bytes.append(reinterpret_cast<const char*>(&x), sizeof(x)); };
  put(uint32_t{3});
  put(uint64_t{0});  // tensors
  put(kKeys + 1);
  for (uint64_t i = 0; i < kKeys; ++i) {
    put(uint64_t{4});
    for (int digit = 0; digit < 4; ++digit) bytes += static_cast<char>('!' + (i >> 5 * digit) % 32);
    put(GgufType::kBool);
    bytes += '\1';
  }
  put(uint64_t{1});
  bytes += 'a';
  put(GgufType::kArray);
  put(GgufType::kString);
  put(kKeys);  // empty strings
  bytes.append(kKeys * sizeof(uint64_t), '\0');
  const std::string path = ScratchPath("keys.gguf");
  WriteFile(path, bytes);
  const size_t base = RunProgram({"inspect", "-m", "tests/golden/vocab/llama-spm.gguf"}).peak_bytes;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"inspect"}, {"inspect", "-o", "json"}, {"tokenize"}}) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"-m", path});
    const ProgramResult result = RunProgram(all, {.output_path = "/dev/null"});
    ExpectError(result, 1, HasSubstr("is missing"));
    EXPECT_LT(result.peak_bytes, base + 2 * bytes.size() + (size_t{4} << 20)) << arguments.back();
  }
  unlink(path.c_str());
}

// What is written piece by piece is what a document would be.
TEST(Inspect, WritesJsonAsAWhole) {
  const ProgramResult result = RunProgram({"inspect", "-o", "json"});
  EXPECT_EQ(result.out, JsonText(nlohmann::ordered_json::parse(result.out)));
}

TEST(Inspect, ShowsFilesThatFitNoConfig) {
  const std::string vocabulary = "tests/golden/vocab/llama-spm.gguf";
  const ProgramResult text = RunProgram({"inspect", "-m", vocabulary});
  ExpectError(text, 1, AllOf(HasSubstr("'llama'"), HasSubstr("bard")));
  EXPECT_THAT(text.out, HasSubstr("tokenizer.ggml.tokens"));
  const ProgramResult json = RunProgram({"inspect", "-m", vocabulary, "-o", "json"});
  ExpectError(json, 1, HasSubstr("'llama'"));
  EXPECT_EQ(json.Json()["config"], nullptr);
  EXPECT_THAT(json.Json()["error"], HasSubstr("'llama'"));
}

}  // namespace
}  // namespace inlay
