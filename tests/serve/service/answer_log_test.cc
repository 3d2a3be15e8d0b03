#include "serve/service/answer_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/must.h"
#include "tests/serve/service/short_record.h"
#include "tests/temp_folder.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// What a log has noted.
class Notes {
 public:
  std::function<void(absl::string_view)> Taker() {
    return [this](absl::string_view sentence) {
      const std::lock_guard lock(mutex_);
      all_.emplace_back(sentence);
    };
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

// A named pipe with its reading end open, which nothing reads.
class Pipe {
 public:
  Pipe() {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    fd_ = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~Pipe() {
    close(fd_);
    unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  // All that is there now.
  std::string Read() {
    std::string bytes(size_t{1} << 20, '\0');
    const ssize_t n = read(fd_, bytes.data(), bytes.size());
    bytes.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return bytes;
  }

 private:
  const std::string path_ = TempPath("log.fifo");
  int fd_ = -1;
};

TEST(AnswerLogTest, AppendsToAFileOfItsOwnersAlone) {
  const std::string path = TempPath("answers.jsonl");
  for (int i = 0; i < 2; ++i) Must(AnswerLog::Open(path))->Append([] { return ShortRecord(); });
  EXPECT_EQ(Contents(path), RecordLine(ShortRecord()) + RecordLine(ShortRecord()));
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_THAT(AnswerLog::Open("/nowhere/log").status().message(), HasSubstr("/nowhere/log"));
}

// The answer itself is there all the same.
TEST(AnswerLogTest, ARecordThatFindsNoMemoryIsLostAndNothingElse) {
  const std::string path = TempPath("no_memory.jsonl");
  {
    const auto log = Must(AnswerLog::Open(path));
    log->Append([]() -> AnswerRecord { throw std::bad_alloc(); });
    EXPECT_EQ(log->lost(), 1u);
    EXPECT_EQ(log->waiting_bytes(), 0u);
    log->Append([] { return ShortRecord(); });
  }
  EXPECT_EQ(Contents(path), RecordLine(ShortRecord()));
}

TEST(AnswerLogTest, PartOfARecordTakesNoOtherWithIt) {
  const std::string path = TempPath("torn.jsonl"), record = RecordLine(ShortRecord());
  std::ofstream(path) << "{\"id\"";  // of a server that was killed
  Notes notes;
  const auto log = Must(AnswerLog::Open(path, {.note = notes.Taker()}));
  const auto append = [&] {
    log->Append([] { return ShortRecord(); });
    EXPECT_TRUE(WaitUntil([&] { return log->waiting_bytes() == 0; }));
  };
  append();
  std::string expected = "{\"id\"\n" + record;
  EXPECT_EQ(Contents(path), expected);

  // A limit on files' length ends a write early, as a full disk does.
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = expected.size() + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  append();
  append();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(log->lost(), 2u);
  EXPECT_TRUE(WaitUntil([&] { return !notes.all().empty(); }));
  EXPECT_THAT(notes.all(), ElementsAre(HasSubstr(path)));
  for (int i = 0; i < 2; ++i) append();
  expected += record.substr(0, 10) + "\n" + record + record;
  EXPECT_EQ(Contents(path), expected);
  ASSERT_TRUE(WaitUntil([&] { return notes.all().size() == 2; }));
  EXPECT_EQ(notes.all()[1], "answers are logged again");
}

TEST(AnswerLogTest, ADiskThatIsFullIsToldOnce) {
  Notes notes;
  const auto log = Must(AnswerLog::Open("/dev/full", {.note = notes.Taker()}));
  for (int i = 0; i < 3; ++i) log->Append([] { return ShortRecord(); });
  EXPECT_TRUE(WaitUntil([&] { return log->lost() == 3 && !notes.all().empty(); }));
  EXPECT_THAT(notes.all(),
              ElementsAre(HasSubstr("answers are not logged for now: cannot write /dev/full")));
}

TEST(AnswerLogTest, AppendsWithoutWaitingForAReader) {
  Pipe pipe;
  Notes notes;
  const size_t most = 100'000;
  const auto log =
      Must(AnswerLog::Open(pipe.path(), {.note = notes.Taker(), .most_waiting_bytes = most}));
  AnswerRecord long_one = ShortRecord();
  long_one.prompt.assign(1000, 12345);
  for (int i = 0; i < 100; ++i) log->Append([&] { return long_one; });
  EXPECT_LE(log->waiting_bytes(), most);
  EXPECT_TRUE(WaitUntil([&] { return !notes.all().empty(); }));
  EXPECT_THAT(notes.all(), ElementsAre(HasSubstr("lines wait already for " + pipe.path())));
  const uint64_t lost = log->lost();
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, 100u);
  std::string read;
  EXPECT_TRUE(WaitUntil([&] {
    read += pipe.Read();
    return log->waiting_bytes() == 0;
  }));
  read += pipe.Read();
  const std::vector<std::string> lines = absl::StrSplit(read, '\n', absl::SkipEmpty());
  ASSERT_THAT(lines, SizeIs(100 - lost));
  for (const std::string& line : lines) EXPECT_EQ(line + "\n", RecordLine(long_one));
  ASSERT_TRUE(WaitUntil([&] { return notes.all().size() == 2; }));
  EXPECT_EQ(notes.all()[1], "answers are logged again");
}

TEST(AnswerLogTest, EndsWhereNothingReads) {
  Pipe pipe;
  Notes notes;
  AnswerRecord long_one = ShortRecord();
  long_one.prompt.assign(1000, 12345);
  {
    const auto log = Must(AnswerLog::Open(
        pipe.path(), {.note = notes.Taker(), .time_to_finish = absl::Milliseconds(100)}));
    for (int i = 0; i < 100; ++i) log->Append([&] { return long_one; });
  }
  EXPECT_THAT(notes.all(), ElementsAre(HasSubstr("takes no more bytes")));
}

TEST(AnswerLogTest, OpensAFileThatHasTakenItsPlace) {
  const std::string path = TempPath("rotated.jsonl");
  const auto log = Must(AnswerLog::Open(path));
  const auto append = [&](const std::string& id) {
    log->Append([&] { return ShortRecord(id); });
    EXPECT_TRUE(WaitUntil([&] { return log->waiting_bytes() == 0; }));
  };
  append("a");
  ASSERT_EQ(rename(path.c_str(), (path + ".1").c_str()), 0);
  append("b");
  ASSERT_TRUE(log->Reopen().ok());
  append("c");
  EXPECT_EQ(Contents(path + ".1"), RecordLine(ShortRecord("a")) + RecordLine(ShortRecord("b")));
  EXPECT_EQ(Contents(path), RecordLine(ShortRecord("c")));
  // Where that fails all goes on.
  ASSERT_EQ(rename(path.c_str(), (path + ".2").c_str()), 0);
  std::ofstream(path) << "a letter\n";
  EXPECT_EQ(log->Reopen().code(), absl::StatusCode::kInvalidArgument);
  append("d");
  EXPECT_EQ(Contents(path + ".2"), RecordLine(ShortRecord("c")) + RecordLine(ShortRecord("d")));
  EXPECT_EQ(Contents(path), "a letter\n");
}

TEST(AnswerLogTest, AppendsToNothingButALog) {
  const std::string path = TempPath("other");
  const auto open = [&](const std::string& contents) {
    std::ofstream(path) << contents;
    const absl::Status status = AnswerLog::Open(path).status();
    EXPECT_EQ(Contents(path), contents);
    return status;
  };
  const std::string record = RecordLine(ShortRecord());
  for (const std::string& contents :
       {std::string(), record, record + record, record.substr(0, 1), record.substr(0, 50),
        record.substr(0, 50) + "\n" + record, record + "{\"id\""})
    EXPECT_TRUE(open(contents).ok()) << contents;
  for (const std::string& contents :
       {std::string("GGUF\x03"), std::string("\x7f") + "ELF", std::string("inlaykv\n"),
        std::string("inlaychat 1"), std::string("text"), std::string("\n"), std::string("{}\n"),
        std::string("{\"id\": \"batch_1\", \"custom_id\": \"a\"}\n")}) {
    const absl::Status status = open(contents);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << contents;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + " is no log of answers"));
  }
}

}  // namespace
}  // namespace inlay::serve
