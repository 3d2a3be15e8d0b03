// inlay inspect.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cache/cache_plan.h"
#include "configs/bard.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_value.h"
#include "io/gguf/gguf_writer.h"
#include "tests/gemma_like/embedding_file.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/tools/program.h"
#include "tools/json_text.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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

// What is shown may then be of two files.
TEST(Inspect, AFileThatChangesMeanwhileIsAnError) {
  const std::string model = ScratchPath("model.gguf"), pipe = ScratchPath("pipe");
  WriteFile(model, ReadFile(kDemoModel));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto change = [&](pid_t) {
    const int shown = open(pipe.c_str(), O_RDONLY);
    fcntl(shown, F_SETPIPE_SZ, 4096);  // the program waits until somebody reads the rest
    char bytes[4096];
    EXPECT_EQ(read(shown, bytes, 1), 1);
    const auto before = std::filesystem::last_write_time(model);
    std::filesystem::last_write_time(model, before + std::chrono::seconds(1));
    while (read(shown, bytes, sizeof(bytes)) > 0) {
    }
    close(shown);
  };
  ExpectError(RunProgram({"inspect", "-o", "json", "-m", model},
                         {.output_path = pipe, .while_running = change}),
              1, HasSubstr("model.gguf has changed since it was opened"));
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
  EXPECT_EQ(memory["bytes_per_trimmed_snapshot"], kBytes.trimmed);
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

// The demo model with further tensors.
void WriteWithTensors(const std::string& path, const std::vector<std::string>& names) {
  const auto file = GgufFile::Open("models/bard.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto add = [&](std::vector<StoredTensor>& tensors) {
    for (const std::string& name : names)
      tensors.push_back({name, {4}, WeightType::kF32, std::string(16, '\0')});
  };
  WriteChanged(*file, {.tensors = add}, path);
}

TEST(Inspect, ListsWhatTheModelIsRunWithout) {
  const std::string path = ScratchPath("vision.gguf");
  WriteWithTensors(path, {"v.blk.0.ln1.weight", "mm.input_projection.weight", "mtp.fc.weight"});
  const ProgramResult text = RunProgram({"inspect", "-m", path});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("\nignored\n  2 tensors of vision (v., mm.)"),
                              HasSubstr("32 bytes"), HasSubstr("mtp.")));
  const auto ignored = RunProgram({"inspect", "-m", path, "-o", "json"}).Json()["ignored"];
  const nlohmann::json vision = {
      {"what", "vision"}, {"prefixes", {"v.", "mm."}}, {"count", 2}, {"bytes", 32}};
  EXPECT_EQ(ignored["tensors"][0], vision);
  EXPECT_EQ(ignored["tensors"].size(), 2u);
  EXPECT_TRUE(ignored["keys"].empty());
  EXPECT_THAT(RunProgram({"inspect"}).out, Not(HasSubstr("ignored")));
  unlink(path.c_str());
}

// A model that is not run as its config has it: said by inspect and by what runs it.
TEST(Inspect, TellsWhatTheFileLacks) {
  const std::string path = ScratchPath("embedding.gguf");
  WriteEmbeddingFile({}, path);
  const ProgramResult text = RunProgram({"inspect", "-m", path});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("\nnotes\n  there are no dense_2.weight and dense_3.weight"));
  const auto notes = RunProgram({"inspect", "-m", path, "-o", "json"}).Json()["notes"];
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0].get<std::string>(), HasSubstr("not those of the published model"));
  const ProgramResult embedded = RunProgram({"embed", "-m", path, "To be"});
  EXPECT_EQ(embedded.status, 0);
  EXPECT_EQ(embedded.err, absl::StrCat(path, ": ", notes[0].get<std::string>(), "\n"));
  EXPECT_THAT(RunProgram({"inspect"}).out, Not(HasSubstr("\nnotes\n")));
  unlink(path.c_str());
}

TEST(Inspect, TellsOfTensorsThatTheConfigDoesNotUse) {
  const std::string path = ScratchPath("surplus.gguf");
  WriteWithTensors(path, {"blk.0.surplus.weight"});
  constexpr char kSentence[] = "has a tensor 'blk.0.surplus.weight' that its config does not use";
  const ProgramResult text = RunProgram({"inspect", "-m", path});
  ExpectError(text, 1, HasSubstr(kSentence));
  EXPECT_THAT(text.out, HasSubstr("config bard"));
  const auto json = RunProgram({"inspect", "-m", path, "-o", "json"}).Json();
  EXPECT_EQ(json["config"]["name"], "bard");
  EXPECT_THAT(json["error"], HasSubstr(kSentence));
  unlink(path.c_str());
}

// Commands that run a model say it in one line, however often they load it.
TEST(IgnoredParts, AreNotedOnce) {
  const std::string path = ScratchPath("vision.gguf");
  WriteWithTensors(path, {"v.blk.0.ln1.weight", "v.blk.0.ln2.weight"});
  const std::string note = path + ": ignoring 2 tensors of vision (v.)\n";
  const ProgramResult answer = RunProgram({"generate", "-m", path, "-p", "A", "-n", "1"});
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.err, HasSubstr(note));
  const ProgramResult bench =
      RunProgram({"bench", "-m", path, "-t", "1,2", "-p", "1", "-n", "1", "-r", "1"});
  EXPECT_EQ(bench.status, 0);
  EXPECT_EQ(bench.err, note);
  unlink(path.c_str());
}

}  // namespace
}  // namespace inlay
