// Files that hubs have beside a text model: each is told what it is.
#include "gemma_like/model/companion_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/gemma_like/model/metadata_file.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

std::string Told(const std::function<void(GgufWriter&)>& write) {
  GgufWriter writer;
  write(writer);
  return std::string(FindFor(writer).status().message());
}

TEST(CompanionFile, IsToldByItsKeys) {
  const std::vector<std::pair<std::function<void(GgufWriter&)>, const char*>> files = {
      {[](GgufWriter& w) {
         w.SetString("general.architecture", "gemma3");
         w.SetString("general.type", "adapter");
         w.SetString("adapter.type", "lora");
       },
       " is a LoRA adapter, which is merged into its model first: llama.cpp's llama-export-lora "
       "writes the merged file"},
      {[](GgufWriter& w) {
         w.SetString("general.architecture", "gemma3");
         w.SetString("adapter.type", "ia3");
       },
       " is an adapter of type 'ia3', which is merged"},
      {[](GgufWriter& w) {
         w.SetString("general.architecture", "gemma3");
         w.SetString("general.type", "adapter");
       },
       " is an adapter, which is merged"},
      {[](GgufWriter& w) { w.SetString("general.type", "imatrix"); },
       " is an importance matrix, which guides the quantization of a model"},
      {[](GgufWriter& w) { w.SetUint32("imatrix.chunk_count", 3); }, " is an importance matrix"},
      {[](GgufWriter& w) { w.SetString("general.architecture", "controlvector"); },
       " is a control vector, "},
      {[](GgufWriter& w) {
         w.SetString("general.architecture", "gemma3");
         w.SetString("general.type", "mmproj");
       },
       " has the type 'mmproj': it is the vision or audio part of a model"}};
  for (const auto& [write, sentence] : files) EXPECT_THAT(Told(write), HasSubstr(sentence));
}

// Whatever the file holds beside: its makers say that it is none.
TEST(CompanionFile, ACompleteModelMaySayThatItIsNone) {
  const GgufFile bard = Must(GgufFile::Open("models/bard.gguf"));
  const TempFolder folder;
  const std::string path = folder.Path("changed");
  for (const char* type : {"adapter", "imatrix"}) {
    WriteChanged(bard,
                 {.without_keys = {"general.type"},
                  .add_keys = [&](GgufWriter& w) { w.SetString("general.type", type); }},
                 path);
    EXPECT_THAT(std::string(FindConfig(Must(GgufFile::Open(path))).status().message()),
                HasSubstr(path + " is an "));
  }
  // A model that an importance matrix guided says so.
  WriteChanged(
      bard, {.add_keys = [&](GgufWriter& w) { w.SetString("quantize.imatrix.file", "imatrix"); }},
      path);
  EXPECT_TRUE(FindConfig(Must(GgufFile::Open(path))).ok());
}

TEST(CompanionFile, LayersThatDraftAreNoModel) {
  const char* const model = "tests/golden/models/qwen35-mtp-tiny-q4_0.gguf";
  const GgufFile file = Must(GgufFile::Open(model));
  EXPECT_EQ(DescribeCompanion(file), "");
  const std::string last =
      "blk." + std::to_string(Must(file.GetUint("qwen35.block_count")) - 1) + ".";
  const TempFolder folder;
  const std::string path = folder.Path("changed");
  WriteChanged(file,
               {.tensors =
                    [&](std::vector<StoredTensor>& tensors) {
                      std::erase_if(tensors, [&](const StoredTensor& tensor) {
                        return tensor.name.starts_with("blk.") && !tensor.name.starts_with(last);
                      });
                    }},
               path);
  EXPECT_THAT(std::string(FindConfig(Must(GgufFile::Open(path))).status().message()),
              HasSubstr(path + " has only the layers that draft for a model"));
}

}  // namespace
}  // namespace inlay
