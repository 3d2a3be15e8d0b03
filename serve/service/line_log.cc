#include "serve/service/line_log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "io/file/file_kind.h"
#include "io/file/write_fully.h"

namespace inlay::serve {
namespace {

constexpr size_t kLongestFirstLine = size_t{16} << 20;  // that is looked at

// InvalidArgument where the file, if there is one, holds anything but lines of this kind. One that
// cannot be read is taken for a log.
absl::Status CheckIsLog(const std::string& path, const LineLog::Kind& kind) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
    return absl::OkStatus();
  const auto refused = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no ", kind.log, ", and nothing is appended to it: it ", what));
  };
  const absl::StatusOr<FileKind> file = KindOfFile(path);
  if (!file.ok()) return absl::OkStatus();
  if (*file == FileKind::kModel) return refused("is a model file");
  if (*file == FileKind::kProgram) return refused("is a program");
  if (*file == FileKind::kSession) return refused("is a saved conversation");
  if (*file == FileKind::kChat) return refused("is a saved chat");
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
  if (kind.may_begin_with(line)) return absl::OkStatus();
  return refused(absl::StrCat("does not begin with ", kind.line));
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

}  // namespace

LineLog::File::~File() { close(fd); }

absl::StatusOr<std::shared_ptr<LineLog::File>> LineLog::OpenFile(const std::string& path,
                                                                 const Kind& kind, int flags) {
  INLAY_RETURN_IF_ERROR(CheckIsLog(path, kind));
  const int fd = open(path.c_str(), flags | O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  auto file = std::make_shared<File>(fd);
  file->within_a_line = EndsWithinALine(path, fd);
  return file;
}

absl::StatusOr<std::unique_ptr<LineLog>> LineLog::Open(const std::string& path, const Kind& kind,
                                                       LineLogOptions options) {
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<File> file, OpenFile(path, kind, 0));
  // A pipe that is full is waited for by WaitToWrite.
  if (fcntl(file->fd, F_SETFL, O_APPEND | O_NONBLOCK) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return std::unique_ptr<LineLog>(new LineLog(path, kind, std::move(file), std::move(options)));
}

LineLog::~LineLog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    end_ = SteadyNow() + options_.time_to_finish;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LineLog::Append(absl::FunctionRef<Line()> take) {
  const absl::Status taken = OrOutOfMemory("a line", [&]() -> absl::Status {
    Line line = take();
    const size_t bytes = line.bytes;
    const std::lock_guard lock(mutex_);
    // One at least waits, whatever its size.
    if (!waiting_.empty() && waiting_bytes_ + bytes > options_.most_waiting_bytes) {
      overflowed_ = true;
      return absl::ResourceExhaustedError("");
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    waiting_.push_back(std::move(line));
    waiting_bytes_ += bytes;
    changed_.notify_one();
    return absl::OkStatus();
  });
  if (taken.ok()) return;
  const std::lock_guard lock(mutex_);
  ++lost_;
}

absl::Status LineLog::Reopen() {
  // Without waiting: a pipe that nothing reads is an error.
  INLAY_ASSIGN_OR_RETURN(std::shared_ptr<File> file, OpenFile(path_, kind_, O_NONBLOCK));
  const std::lock_guard lock(mutex_);
  file_.swap(file);
  return absl::OkStatus();
}

uint64_t LineLog::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

size_t LineLog::waiting_bytes() const {
  const std::lock_guard lock(mutex_);
  return waiting_bytes_;
}

void LineLog::Run() {
  while (true) {
    Line line;
    std::shared_ptr<File> file;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (SteadyNow() > end_) {
        lost_ += waiting_.size();
        waiting_.clear();
      }
      if (waiting_.empty()) return;
      line = std::move(waiting_.front());
      waiting_.pop_front();
      file = file_;
    }
    const absl::Status status = OrOutOfMemory("a line", [&] { return Write(*file, line); });
    bool all_written = false;
    {
      const std::lock_guard lock(mutex_);
      waiting_bytes_ -= line.bytes;
      if (!status.ok()) ++lost_;
      all_written = status.ok() && waiting_.empty();
    }
    if (!status.ok()) TellLoss(status);
    TellOverflow();
    if (all_written) TellEndOfLosses();
  }
}

absl::Status LineLog::Write(File& file, const Line& line) {
  // An empty line is skipped by who reads the log, but what follows on part of a line is lost.
  const std::string text = absl::StrCat(file.within_a_line ? "\n" : "", line.make());
  absl::string_view rest = text;
  while (true) {
    const auto [written, error] = WriteFully(file.fd, rest);
    rest.remove_prefix(written);
    if (written > 0) file.within_a_line = !rest.empty();
    if (error == 0) return absl::OkStatus();
    if (error != EAGAIN) return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path_));
    INLAY_RETURN_IF_ERROR(WaitToWrite(file));
  }
}

absl::Status LineLog::WaitToWrite(const File& file) {
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

void LineLog::TellOverflow() {
  size_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(overflowed_, false)) return;
    bytes = waiting_bytes_;
  }
  TellLoss(OrOutOfMemory("a note", [&] {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes of lines wait already for ", path_));
  }));
}

void LineLog::TellLoss(const absl::Status& why) {
  if (!std::exchange(failing_, true))
    note_.Tell(kind_.what, " are not logged for now: ", why.message());
}

void LineLog::TellEndOfLosses() {
  if (std::exchange(failing_, false)) note_.Tell(kind_.what, " are logged again");
}

}  // namespace inlay::serve
