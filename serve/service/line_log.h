// A file that lines are appended to by many threads, none of which waits for it.
#ifndef INLAY_SERVE_SERVICE_LINE_LOG_H_
#define INLAY_SERVE_SERVICE_LINE_LOG_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "serve/notes/note.h"

namespace inlay::serve {

struct LineLogOptions {
  // Told, on the log's thread, when lines begin to be lost and when they are written again.
  std::function<void(absl::string_view sentence)> note = nullptr;
  // Bytes of memory of the lines that wait, at most; those beyond are lost.
  size_t most_waiting_bytes = size_t{64} << 20;
  // How long the destructor waits for them to be written.
  absl::Duration time_to_finish = absl::Seconds(5);
};

// Makes and appends lines on a thread of its own: whoever has one to log waits for no disk and for
// no reader of a pipe. Safe to use from several threads.
class LineLog {
 public:
  // What is logged.
  struct Kind {
    absl::string_view log;   // what the file is: "log of answers"
    absl::string_view line;  // what a line of it is: "the record of an answer"
    absl::string_view what;  // what it tells of: "answers"
    // Whether a log may begin with this line, of which the end may be missing.
    bool (*may_begin_with)(absl::string_view line);
  };
  // A line that waits.
  struct Line {
    std::function<std::string()> make;  // with the newline
    size_t bytes = 0;                   // of memory until then, about
  };

  // Opens the file or makes it, accessible to its owner alone (0600). InvalidArgument for a file
  // that holds anything but lines of this kind, to which nothing is to be appended. The errors name
  // the file. A named pipe is waited for until something reads it.
  static absl::StatusOr<std::unique_ptr<LineLog>> Open(const std::string& path, const Kind& kind,
                                                       LineLogOptions options);
  // Writes what waits, within the options' time.
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  // Takes the line that take() returns to be written, or counts it as lost, also where take() or
  // this finds no memory. It does not wait.
  void Append(absl::FunctionRef<Line()> take);

  // Opens the path anew, as after the file was renamed: the lines that follow go there. After an
  // error all stays as it was.
  absl::Status Reopen();

  // Lines that were lost: the file did not take them, too many waited, or there was no memory.
  uint64_t lost() const;
  // Memory of those that wait.
  size_t waiting_bytes() const;

 private:
  struct File {
    explicit File(int fd) : fd(fd) {}
    ~File();
    const int fd;
    bool within_a_line = false;  // it ends with part of one
  };

  // `flags`: for open(), besides what every log has.
  static absl::StatusOr<std::shared_ptr<File>> OpenFile(const std::string& path, const Kind& kind,
                                                        int flags);
  LineLog(std::string path, const Kind& kind, std::shared_ptr<File> file, LineLogOptions options)
      : path_(std::move(path)),
        kind_(kind),
        options_(std::move(options)),
        note_(options_.note),
        file_(std::move(file)) {}

  // On the log's thread, as the next ones.
  void Run();
  absl::Status Write(File& file, const Line& line);
  // Waits until the file may take bytes again. DeadlineExceeded once the log's end has no more
  // time.
  absl::Status WaitToWrite(const File& file);
  void TellOverflow();
  void TellLoss(const absl::Status& why);
  void TellEndOfLosses();

  const std::string path_;
  const Kind kind_;
  const LineLogOptions options_;
  const Note note_;
  mutable std::mutex mutex_;         // guards the members below, but for the last two
  std::condition_variable changed_;  // something waits, or the end has begun
  std::shared_ptr<File> file_;       // which the next line is written to
  std::deque<Line> waiting_;
  size_t waiting_bytes_ = 0;  // of these and of the one that is written
  uint64_t lost_ = 0;
  bool overflowed_ = false;  // lines were lost since too many waited, and that was not told yet
  bool ends_ = false;
  absl::Time end_ = absl::InfiniteFuture();  // when what waits is given up; see SteadyNow()
  bool failing_ = false;                     // the thread's own: a loss was told, and no end of it
  std::thread thread_;                       // from the first record on; last: it uses all others
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_LINE_LOG_H_
