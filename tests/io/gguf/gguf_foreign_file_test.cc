// Files of other kinds under the name of a model: each is called what it is.
#include "io/gguf/foreign_file.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/io/gguf/gguf_bytes.h"

namespace inlay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Message(absl::string_view bytes) {
  return std::string(ParseCopy(bytes).file.status().message());
}

TEST(ForeignFileTest, WebPages) {
  for (const char* page : {"<!DOCTYPE html><html>", "\n  <!doctype HTML>", "<html lang=\"en\">"}) {
    EXPECT_THAT(Message(page), AllOf(HasSubstr("test.gguf: not a GGUF file: it is an HTML page"),
                                     HasSubstr("download the file itself")));
  }
  EXPECT_THAT(Message("{\"error\": \"not found\"}"),
              AllOf(HasSubstr("JSON text"), HasSubstr("download the GGUF file")));
}

TEST(ForeignFileTest, GitLfsPointers) {
  EXPECT_THAT(Message("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 5\n"),
              AllOf(HasSubstr("Git LFS pointer"), HasSubstr("git lfs pull")));
}

TEST(ForeignFileTest, CheckpointsOfOtherFormats) {
  const std::string json = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string safetensors = GgufBytes().Text(json).Zeros(4).bytes();
  EXPECT_THAT(Message(safetensors), AllOf(HasSubstr("a safetensors file"), HasSubstr("convert")));
  EXPECT_THAT(Message("PK\x03\x04..."), AllOf(HasSubstr("ZIP archive"), HasSubstr("PyTorch")));
  EXPECT_THAT(Message("\x80\x02}q"), AllOf(HasSubstr("Python pickle"), HasSubstr("convert")));
  EXPECT_THAT(Message("\x80\x05}q"), HasSubstr("Python pickle"));
  EXPECT_THAT(Message("\x80\x06}q"), HasSubstr("it starts with"));
  EXPECT_THAT(Message("lmgg\1\2\3\4"), HasSubstr("the GGML format"));
  EXPECT_THAT(Message("tjgg\1\2\3\4"), HasSubstr("the GGJT format"));
  EXPECT_THAT(Message("\x1f\x8b\x08\x00"), AllOf(HasSubstr("gzip"), HasSubstr("gunzip")));
}

TEST(ForeignFileTest, OthersAreShownByTheirBeginning) {
  EXPECT_THAT(Message("Invalid username or password."),
              HasSubstr("it starts with 'Inva' instead of 'GGUF'"));
  EXPECT_THAT(Message(absl::string_view("\0\1\2\3\4", 5)), HasSubstr("instead of 'GGUF'"));
  EXPECT_THAT(Message("{"), HasSubstr("JSON"));
}

}  // namespace
}  // namespace inlay
