// What a file is, and what may take its place.
#include "io/file/file_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "io/file/mapped_file.h"
#include "tests/io/file/folder_test.h"

namespace inlay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FileKindTest : public FolderTest<> {
 protected:
  FileKind KindOf(const std::string& bytes) {
    const absl::StatusOr<FileKind> kind = KindOfFile(Make("kind", bytes));
    EXPECT_TRUE(kind.ok()) << kind.status();
    return kind.value_or(FileKind::kEmpty);
  }

  std::string Refusal(const std::string& path, FileKind kind) {
    const absl::Status status = CheckReplace(path, kind, Replace::kSameKind);
    EXPECT_FALSE(status.ok()) << path;
    EXPECT_FALSE(absl::IsAlreadyExists(status)) << status;
    return std::string(status.message());
  }
};

TEST_F(FileKindTest, IsToldByTheFirstAndLastBytes) {
  EXPECT_EQ(KindOf(""), FileKind::kEmpty);
  EXPECT_EQ(KindOf("G"), FileKind::kOther);
  EXPECT_EQ(KindOf("GGUF\3"), FileKind::kModel);
  EXPECT_EQ(KindOf("inlaykv\n and more"), FileKind::kSession);
  EXPECT_EQ(KindOf("inlaychat\n"), FileKind::kChat);
  EXPECT_EQ(KindOf("\x7f"
                   "ELF"),
            FileKind::kProgram);
  EXPECT_EQ(KindOf("#!/bin/sh\n"), FileKind::kOther);
  EXPECT_EQ(KindOf("#!/bin/sh\n" + std::string(100, 'x') + "INLAYEND"), FileKind::kProgram);
  EXPECT_EQ(KindOf("To be, or not to be"), FileKind::kOther);
  EXPECT_TRUE(absl::IsNotFound(KindOfFile(Path("none")).status()));
}

TEST_F(FileKindTest, NewAndEmptyFilesMayBeWritten) {
  const std::string empty = Make("empty", "");
  for (const FileKind kind : {FileKind::kModel, FileKind::kSession, FileKind::kProgram}) {
    EXPECT_TRUE(CheckReplace(Path("none"), kind, Replace::kNothing).ok());
    EXPECT_TRUE(CheckReplace(empty, kind, Replace::kNothing).ok());
  }
}

TEST_F(FileKindTest, AFileOfTheSameKindOnlyWhereThatIsAllowed) {
  const std::string model = Make("model", kModelMagic);
  EXPECT_TRUE(CheckReplace(model, FileKind::kModel, Replace::kSameKind).ok());
  const absl::Status status = CheckReplace(model, FileKind::kModel, Replace::kNothing);
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(model));
}

TEST_F(FileKindTest, AFileOfAnotherKindNever) {
  const std::string model = Make("model", kModelMagic), text = Make("text", "To be");
  const std::string session = Make("session", kSessionMagic), chat = Make("chat", kChatMagic);
  EXPECT_EQ(Refusal(session, FileKind::kModel),
            session + " is a saved conversation, not a model file, and is never written over");
  EXPECT_EQ(Refusal(model, FileKind::kChat),
            model + " is a model file, not a saved chat, and is never written over");
  EXPECT_THAT(Refusal(chat, FileKind::kSession), HasSubstr("is a saved chat, not"));
  EXPECT_THAT(Refusal(text, FileKind::kProgram), HasSubstr("of another kind, not a program"));
  EXPECT_THAT(Refusal(folder_, FileKind::kModel), HasSubstr("not a regular file"));
  // A store keeps any bytes, but is not made of models.
  for (const std::string& path : {session, chat, text})
    EXPECT_TRUE(CheckReplace(path, FileKind::kState, Replace::kSameKind).ok()) << path;
  EXPECT_THAT(Refusal(model, FileKind::kState), HasSubstr("is a model file"));
}

TEST_F(FileKindTest, AFileInUseNeverWhateverItsName) {
  const std::string model = Make("model", kModelMagic);
  ASSERT_EQ(link(model.c_str(), Path("hard").c_str()), 0);
  ASSERT_EQ(symlink("model", Path("soft").c_str()), 0);
  absl::StatusOr<MappedFile> mapped = MappedFile::Open(model);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  const MappedFile moved = *std::move(mapped);
  {
    const absl::StatusOr<MappedFile> again = MappedFile::Open(Path("soft"));
    ASSERT_TRUE(again.ok());
  }
  for (const char* name : {"model", "hard", "soft"}) {
    EXPECT_THAT(Refusal(Path(name), FileKind::kModel),
                AllOf(HasSubstr(Path(name)), HasSubstr("in use")));
  }
  mapped = absl::CancelledError();
}

TEST_F(FileKindTest, AFileNoLongerInUseIsAnyFile) {
  const std::string model = Make("model", kModelMagic);
  { const absl::StatusOr<MappedFile> mapped = MappedFile::Open(model); }
  EXPECT_TRUE(CheckReplace(model, FileKind::kModel, Replace::kSameKind).ok());
}

}  // namespace
}  // namespace inlay
