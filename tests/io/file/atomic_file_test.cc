// Files that are written aside: their names, permissions and links, on file systems with and
// without nameless files.
#include "io/file/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/io/file/folder_test.h"

namespace {
int umask_calls = 0;
bool nameless_files = true;
}  // namespace

// In the C library's place.
extern "C" mode_t umask(mode_t mask) noexcept {
  ++umask_calls;
  return static_cast<mode_t>(syscall(SYS_umask, mask));
}

extern "C" int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE
                          ? static_cast<mode_t>(va_arg(rest, int))
                          : 0;
  va_end(rest);
  if ((flags & O_TMPFILE) == O_TMPFILE && !nameless_files) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

namespace inlay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Twice: with O_TMPFILE, and on a file system that has no such files.
class AtomicFileTest : public FolderTest<::testing::TestWithParam<bool>> {
 protected:
  AtomicFileTest() { nameless_files = GetParam(); }
  ~AtomicFileTest() override { nameless_files = true; }

  static absl::Status Write(const std::string& path, absl::string_view bytes,
                            FileKind kind = FileKind::kOther,
                            Replace replace = Replace::kSameKind) {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(path, kind, replace);
    if (!file.ok()) return file.status();
    EXPECT_TRUE(file->Write(AsBytes(bytes)).ok());
    return file->Commit();
  }
};

INSTANTIATE_TEST_SUITE_P(FileSystems, AtomicFileTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Nameless" : "Named"; });

TEST_P(AtomicFileTest, AFileAppearsOnlyWhenItIsComplete) {
  Make("x", "old");
  {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(Path("x"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Write(AsBytes("half")).ok());
    EXPECT_EQ(Contents(Path("x")), "old");
    EXPECT_EQ(NumFiles(), GetParam() ? 1u : 2u);
  }
  EXPECT_EQ(Contents(Path("x")), "old");
  EXPECT_EQ(NumFiles(), 1u);

  for (const char* name : {"x", "new"}) {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(Path(name));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->path(), Path(name));
    const std::string large(200000, 'z');
    ASSERT_TRUE(file->Write(AsBytes("new")).ok());
    ASSERT_TRUE(file->Write(AsBytes(large)).ok());
    ASSERT_TRUE(file->Write(AsBytes("end")).ok());
    EXPECT_EQ(file->size(), large.size() + 6);
    AtomicFile moved = *std::move(file);
    ASSERT_TRUE(moved.Commit().ok());
    EXPECT_EQ(Contents(Path(name)), "new" + large + "end");
  }
  EXPECT_EQ(NumFiles(), 2u);
}

TEST_P(AtomicFileTest, CannotWriteWhereThereIsNoFolderOrNoFile) {
  EXPECT_THAT(std::string(AtomicFile::Create(Path("no/x")).status().message()),
              HasSubstr("no/x cannot be created"));
  EXPECT_THAT(std::string(AtomicFile::Create(folder_).status().message()),
              HasSubstr("not a regular file"));
}

// The umask is all threads': who changes it, even for an instant, changes what others create.
TEST_P(AtomicFileTest, NewFilesHaveTheirKindsPermissions) {
  for (const mode_t mask : {mode_t{022}, mode_t{027}, mode_t{077}}) {
    const mode_t before = umask(mask);
    umask_calls = 0;
    for (const auto& [kind, mode] : {std::pair(FileKind::kModel, mode_t{0666}),
                                     {FileKind::kOther, mode_t{0666}},
                                     {FileKind::kProgram, mode_t{0777}},
                                     {FileKind::kSession, mode_t{0600}},
                                     {FileKind::kChat, mode_t{0600}},
                                     {FileKind::kState, mode_t{0600}}}) {
      ASSERT_TRUE(Write(Path("x"), "x", kind).ok());
      EXPECT_EQ(Permissions(Path("x")), mode & ~mask) << static_cast<int>(kind);
      fs::remove(Path("x"));
    }
    EXPECT_EQ(umask_calls, 0);
    umask(before);
  }
}

TEST_P(AtomicFileTest, ExistingFilesKeepTheirPermissions) {
  const std::string session(kSessionMagic), program =
                                                "\x7f"
                                                "ELF";
  for (const mode_t mode : {0600, 0640, 0644, 0660, 0666, 0400, 0444}) {
    const std::string path = Make("x", session);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    ASSERT_TRUE(Write(path, session + "new", FileKind::kSession).ok());
    EXPECT_EQ(Contents(path), session + "new");
    EXPECT_EQ(Permissions(path), mode);
    fs::remove(path);
  }
  // Who may read a program may run the one that takes its place.
  const std::string path = Make("program", program);
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_TRUE(Write(path, program, FileKind::kProgram).ok());
  EXPECT_EQ(Permissions(path), mode_t{0750});
}

// Nobody else can read what is written before it has the old file's permissions.
TEST_P(AtomicFileTest, IsNeverWiderThanWhatItReplaces) {
  const std::string path = Make("x", "old");
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  absl::StatusOr<AtomicFile> file = AtomicFile::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(Permissions(entry.path()), mode_t{0600}) << entry.path();
}

TEST_P(AtomicFileTest, FollowsSymbolicLinks) {
  ASSERT_EQ(mkdir(Path("there").c_str(), 0700), 0);
  const std::string real = Make("there/real", "old");
  ASSERT_EQ(symlink("there/real", Path("relative").c_str()), 0);
  ASSERT_EQ(symlink(real.c_str(), Path("absolute").c_str()), 0);
  ASSERT_EQ(symlink("relative", Path("twice").c_str()), 0);
  ASSERT_EQ(symlink("there/new", Path("dangling").c_str()), 0);
  ASSERT_EQ(chmod(real.c_str(), 0640), 0);
  for (const std::string name : {"relative", "absolute", "twice", "dangling"}) {
    ASSERT_TRUE(Write(Path(name), name).ok()) << name;
    EXPECT_TRUE(fs::is_symlink(Path(name))) << name;
    EXPECT_EQ(Contents(name == "dangling" ? Path("there/new") : real), name);
  }
  EXPECT_EQ(Permissions(real), mode_t{0640});
  EXPECT_EQ(NumFiles(), 5u);  // the folder and the links

  ASSERT_EQ(symlink("circle", Path("circle").c_str()), 0);
  const absl::Status circle = Write(Path("circle"), "x");
  EXPECT_THAT(std::string(circle.message()), HasSubstr(Path("circle") + " cannot be"));
}

TEST_P(AtomicFileTest, ReplacesNoFileThatHasAppearedMeanwhile) {
  for (const Replace replace : {Replace::kNothing, Replace::kSameKind}) {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(Path("x"), FileKind::kOther, replace);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Write(AsBytes("mine")).ok());
    Make("x", "another's");
    const absl::Status status = file->Commit();
    if (replace == Replace::kNothing) {
      EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
      EXPECT_EQ(Contents(Path("x")), "another's");
    } else {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(Contents(Path("x")), "mine");
    }
    file = absl::CancelledError();
    EXPECT_EQ(NumFiles(), 1u);
    fs::remove(Path("x"));
  }
  // Of another kind.
  absl::StatusOr<AtomicFile> file = AtomicFile::Create(Path("x"), FileKind::kModel);
  ASSERT_TRUE(file.ok()) << file.status();
  Make("x", "notes");
  EXPECT_THAT(std::string(file->Commit().message()), HasSubstr("never written over"));
  EXPECT_EQ(Contents(Path("x")), "notes");
}

}  // namespace
}  // namespace inlay
