#include "serve/service/answer_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "io/file/file_kind.h"
#include "io/file/write_fully.h"
#include "io/json/parse_json.h"

namespace inlay::serve {
namespace {

constexpr size_t kLongestFirstLine = size_t{16} << 20;  // that is looked at
constexpr absl::string_view kRecordBegin = "{\"id\"";

// Whether a server may have written this as the first line of a log: as a record, or as part of one
// when it was killed or found the disk full.
bool MayBeOfALog(absl::string_view line) {
  if (ParseRecord(line).ok()) return true;
  const bool begins = absl::StartsWith(line, kRecordBegin) || absl::StartsWith(kRecordBegin, line);
  return begins && !line.empty() && !ParseJson("the line", line).ok();
}

// InvalidArgument where the file, if there is one, holds anything but records. One that cannot be
// read is taken for a log.
absl::Status CheckHoldsRecords(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
    return absl::OkStatus();
  const auto refused = [&path](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no log of answers, and nothing is appended to it: it ", what));
  };
  const absl::StatusOr<FileKind> kind = KindOfFile(path);
  if (!kind.ok()) return absl::OkStatus();
  if (*kind == FileKind::kModel) return refused("is a model file");
  if (*kind == FileKind::kProgram) return refused("is a program");
  if (*kind == FileKind::kSession) return refused("is a saved conversation");
  if (*kind == FileKind::kChat) return refused("is a saved chat");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::OkStatus();
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  std::string line;
  std::vector<char> piece(size_t{64} << 10);
  while (line.size() < kLongestFirstLine) {
    const ssize_t n = read(fd, piece.data(), piece.size());
    if (n <= 0) break;
    const absl::string_view bytes(piece.data(), static_cast<size_t>(n));
    const size_t end = bytes.find('\n');
    absl::StrAppend(&line, bytes.substr(0, end));
    if (end != absl::string_view::npos) break;
  }
  if (MayBeOfALog(line)) return absl::OkStatus();
  return refused("does not begin with the record of an answer");
}

// Whether the file, which is open as `fd`, ends with part of a line, as a server that was killed or
// found the disk full leaves it. True as well where that cannot be read.
bool EndsWithinALine(const std::string& path, int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return false;
  const int reader = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (reader < 0) return true;
  char last = 0;
  const bool read = pread(reader, &last, 1, info.st_size - 1) == 1;
  close(reader);
  return !read || last != '\n';
}

// What a record takes while it waits, about.
size_t MemoryOf(const AnswerRecord& record) {
  size_t bytes = sizeof(record) + (record.prompt.size() + record.tokens.size()) * sizeof(int32_t);
  for (const std::string& text : record.options.stop_texts) bytes += text.size();
  if (record.shape.has_value()) bytes += record.shape->source.size();
  return bytes;
}

}  // namespace

AnswerLog::File::~File() { close(fd); }

absl::StatusOr<std::shared_ptr<AnswerLog::File>> AnswerLog::OpenFile(const std::string& path,
                                                                     int flags) {
  INLAY_RETURN_IF_ERROR(CheckHoldsRecords(path));
  const int fd = open(path.c_str(), flags | O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  auto file = std::make_shared<File>(fd);
  file->within_a_line = EndsWithinALine(path, fd);
  return file;
}

absl::StatusOr<std::unique_ptr<AnswerLog>> AnswerLog::Open(const std::string& path,
                                                           Options options) {
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<File> file, OpenFile(path, 0));
  // A pipe that is full is waited for by WaitToWrite.
  if (fcntl(file->fd, F_SETFL, O_APPEND | O_NONBLOCK) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return std::unique_ptr<AnswerLog>(new AnswerLog(path, std::move(file), std::move(options)));
}

AnswerLog::~AnswerLog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    end_ = SteadyNow() + options_.time_to_finish;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void AnswerLog::Append(absl::FunctionRef<AnswerRecord()> make) {
  const absl::Status taken = OrOutOfMemory("a record", [&]() -> absl::Status {
    AnswerRecord record = make();
    const size_t bytes = MemoryOf(record);
    const std::lock_guard lock(mutex_);
    // One at least waits, whatever its size.
    if (!waiting_.empty() && waiting_bytes_ + bytes > options_.most_waiting_bytes) {
      overflowed_ = true;
      return absl::ResourceExhaustedError("");
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    waiting_.push_back(std::move(record));
    waiting_bytes_ += bytes;
    changed_.notify_one();
    return absl::OkStatus();
  });
  if (taken.ok()) return;
  const std::lock_guard lock(mutex_);
  ++lost_;
}

absl::Status AnswerLog::Reopen() {
  // Without waiting: a pipe that nothing reads is an error.
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<File> file, OpenFile(path_, O_NONBLOCK));
  const std::lock_guard lock(mutex_);
  file_.swap(file);
  return absl::OkStatus();
}

uint64_t AnswerLog::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

size_t AnswerLog::waiting_bytes() const {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_;
}

void AnswerLog::Run() {
  while (true) {
    AnswerRecord record;
    std::shared_ptr<File> file;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (SteadyNow() > end_) {
        lost_ += waiting_.size();
        waiting_.clear();
      }
      if (waiting_.empty()) return;
      record = std::move(waiting_.front());
      waiting_.pop_front();
      file = file_;
    }
    const size_t bytes = MemoryOf(record);
    const absl::Status status = OrOutOfMemory("a record", [&] { return Write(*file, record); });
    bool all_written = false;
    {
      const std::lock_guard lock(mutex_);
      waiting_bytes_ -= bytes;
      if (!status.ok()) ++lost_;
      all_written = status.ok() && waiting_.empty();
    }
    if (!status.ok()) TellLoss(status);
    TellOverflow();
    if (all_written) TellEndOfLosses();
  }
}

absl::Status AnswerLog::Write(File& file, const AnswerRecord& record) {
  // An empty line is skipped by who reads the log, but what follows on part of a record is lost.
  const std::string line = absl::StrCat(file.within_a_line ? "\n" : "", RecordLine(record));
  absl::string_view rest = line;
  while (true) {
    const auto [written, error] = WriteFully(file.fd, rest);
    rest.remove_prefix(written);
    if (written > 0) file.within_a_line = !rest.empty();
    if (error == 0) return absl::OkStatus();
    if (error != EAGAIN) return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path_));
    INLAY_RETURN_IF_ERROR(WaitToWrite(file));
  }
}

absl::Status AnswerLog::WaitToWrite(const File& file) {
  constexpr int kMilliseconds = 50;  // between looks at the members
  pollfd ready = {.fd = file.fd, .events = POLLOUT, .revents = 0};
  while (poll(&ready, 1, kMilliseconds) == 0) {
    TellOverflow();
    const std::lock_guard lock(mutex_);
    if (SteadyNow() > end_)
      return absl::DeadlineExceededError(absl::StrCat(path_, " takes no more bytes"));
  }
  return absl::OkStatus();
}

void AnswerLog::TellOverflow() {
  size_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(overflowed_, false)) return;
    bytes = waiting_bytes_;
  }
  TellLoss(OrOutOfMemory("a note", [&] {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes of records wait already for ", path_));
  }));
}

void AnswerLog::TellLoss(const absl::Status& why) {
  if (std::exchange(failing_, true) || options_.note == nullptr) return;
  (void)OrOutOfMemory("a note", [&] {
    options_.note(absl::StrCat("answers are not logged for now: ", why.message()));
    return absl::OkStatus();
  });
}

void AnswerLog::TellEndOfLosses() {
  if (!std::exchange(failing_, false) || options_.note == nullptr) return;
  (void)OrOutOfMemory("a note", [&] {
    options_.note("answers are logged again");
    return absl::OkStatus();
  });
}

}  // namespace inlay::serve
