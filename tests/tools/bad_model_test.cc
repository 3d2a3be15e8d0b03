// Model files that are wrong in one thing: each is refused by a sentence that names it.
#include <gtest/gtest.h>

#include <functional>

#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What a copy of the demo model differs in.
struct Change {
  std::string without_key = {};
  std::function<void(GgufWriter&)> add_keys = {};
  std::string tensor = {};  // left out, or
  std::string new_name = {};
  std::vector<uint64_t> new_dims = {};  // of as many elements
};

void WriteChanged(const std::string& path, const Change& change) {
  const auto file = GgufFile::Open(kDemoModel);
  ASSERT_TRUE(file.ok()) << file.status();
  GgufWriter writer;
  for (const GgufEntry& entry : file->metadata()) {
    if (entry.key() != change.without_key) writer.SetValue(entry.key(), entry.value);
  }
  if (change.add_keys) change.add_keys(writer);
  std::vector<const GgufTensor*> kept;
  for (const GgufTensor& tensor : file->tensors()) {
    const bool changed = tensor.name == change.tensor;
    if (changed && change.new_name.empty() && change.new_dims.empty()) continue;
    const auto dims = absl::MakeConstSpan(tensor.dims).first(tensor.n_dims);
    const auto status = writer.AddTensor(
        changed && !change.new_name.empty() ? absl::string_view(change.new_name) : tensor.name,
        changed && !change.new_dims.empty() ? change.new_dims : dims, tensor.type);
    ASSERT_TRUE(status.ok()) << status;
    kept.push_back(&tensor);
  }
  ASSERT_TRUE(writer.Open(path).ok());
  for (const GgufTensor* tensor : kept) ASSERT_TRUE(writer.AppendData(tensor->data).ok());
  ASSERT_TRUE(writer.Finish().ok());
}

class BadModel : public testing::Test {
 protected:
  BadModel() : path_(ScratchPath("gguf")) {}
  ~BadModel() override { unlink(path_.c_str()); }

  // Every command that runs the model refuses it alike.
  void ExpectRefused(const testing::Matcher<std::string>& message) {
    ExpectError(RunProgram({"generate", "-m", path_, "-p", "A", "-n", "1"}), 1, message);
    ExpectError(RunProgram({"logits", "-m", path_, "--tokens", "2"}), 1, message);
    ExpectError(RunProgram({"perplexity", "-m", path_, "-f", "tests/golden/demo/heldout.txt"}), 1,
                message);
  }

  std::string path_;
};

TEST_F(BadModel, MustBeAGgufFile) {
  path_ = "LICENSE";
  ExpectRefused(HasSubstr("LICENSE"));
  path_ = "docs";
  ExpectRefused(HasSubstr("docs is a folder without a model"));
  path_ = "no/such/model.gguf";
  ExpectRefused(HasSubstr("no/such/model.gguf"));
  path_ = ScratchPath("empty");
  WriteFile(path_, "");
  ExpectRefused(HasSubstr("empty"));
}

TEST_F(BadModel, MustBeWhole) {
  const std::string whole = ReadFile(kDemoModel);
  for (size_t bytes : {size_t{7}, size_t{1000}, size_t{20'000}, size_t{40'000}, whole.size() / 2,
                       whole.size() - 1}) {
    WriteFile(path_, whole.substr(0, bytes));
    ExpectError(RunProgram({"generate", "-m", path_, "-p", "A", "-n", "1"}), 1, HasSubstr(path_));
    ExpectError(RunProgram({"inspect", "-m", path_}), 1, HasSubstr(path_));
  }
}

TEST_F(BadModel, MustAgreeWithItsConfig) {
  WriteChanged(path_, {.without_key = "bard.attention.sliding_window", .add_keys = [](auto& w) {
                         w.SetUint32("bard.attention.sliding_window", 65);
                       }});
  ExpectRefused(
      AllOf(HasSubstr("bard.attention.sliding_window"), HasSubstr("65"), HasSubstr("64")));
  const ProgramResult inspected = RunProgram({"inspect", "-m", path_});
  ExpectError(inspected, 1, HasSubstr("bard.attention.sliding_window"));
  EXPECT_THAT(inspected.out, HasSubstr("blk.7.attn_q.weight"));
  WriteChanged(path_, {.without_key = "bard.ssm.state_size"});
  ExpectRefused(HasSubstr("bard.ssm.state_size"));
}

TEST_F(BadModel, MustHaveAKnownArchitecture) {
  WriteChanged(path_, {.without_key = "general.architecture",
                       .add_keys = [](auto& w) { w.SetString("general.architecture", "blur"); }});
  ExpectRefused(AllOf(HasSubstr("'blur'"), HasSubstr("bard")));
}

TEST_F(BadModel, MustHaveAKnownTokenizer) {
  WriteChanged(path_, {.without_key = "tokenizer.ggml.model",
                       .add_keys = [](auto& w) { w.SetString("tokenizer.ggml.model", "runes"); }});
  ExpectRefused(AllOf(HasSubstr("tokenizer"), HasSubstr("'runes'")));
}

TEST_F(BadModel, MustHaveEveryTensor) {
  WriteChanged(path_, {.tensor = "blk.3.attn_k.weight"});
  ExpectRefused(HasSubstr("blk.3.attn_k.weight"));
  WriteChanged(path_, {.tensor = "blk.3.attn_k.weight", .new_name = "blk.3.attn_b.weight"});
  ExpectRefused(HasSubstr("blk.3.attn_k.weight"));
}

TEST_F(BadModel, MustHaveTensorsOfTheRightShape) {
  WriteChanged(path_, {.tensor = "blk.3.attn_k.weight", .new_dims = {128, 256}});
  ExpectRefused(AllOf(HasSubstr("blk.3.attn_k.weight"), HasSubstr("128"), HasSubstr("256")));
}

}  // namespace
}  // namespace inlay
