// The file that answers are written down in, so that they can be computed again and compared.
#ifndef INLAY_SERVE_SERVICE_ANSWER_LOG_H_
#define INLAY_SERVE_SERVICE_ANSWER_LOG_H_

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
#include "serve/service/answer_record.h"

namespace inlay::serve {

// Appends records to a file on a thread of its own: whoever has an answer waits for no disk and for
// no reader of a pipe. Safe to use from several threads.
class AnswerLog {
 public:
  struct Options {
    // Told, on the log's thread, when records begin to be lost and when they are written again.
    std::function<void(absl::string_view sentence)> note = nullptr;
    // Records that wait take at most so much memory; those beyond are lost.
    size_t most_waiting_bytes = size_t{64} << 20;
    // How long the destructor waits for them to be written.
    absl::Duration time_to_finish = absl::Seconds(5);
  };

  // Opens the file or makes it, accessible to its owner alone (0600). InvalidArgument for a file
  // that holds anything but records, to which nothing is to be appended. The errors name the file.
  // A named pipe is waited for until something reads it.
  static absl::StatusOr<std::unique_ptr<AnswerLog>> Open(const std::string& path, Options options);
  static absl::StatusOr<std::unique_ptr<AnswerLog>> Open(const std::string& path) {
    return Open(path, Options());
  }
  // Writes what waits, within the options' time.
  ~AnswerLog();
  AnswerLog(const AnswerLog&) = delete;
  AnswerLog& operator=(const AnswerLog&) = delete;

  // Takes the record that make() returns to be written, or counts it as lost, also where make() or
  // this finds no memory. It does not wait.
  void Append(absl::FunctionRef<AnswerRecord()> make);

  // Opens the path anew, as after the file was renamed: the records that follow go there. After an
  // error all stays as it was.
  absl::Status Reopen();

  // Records that were lost: the file did not take them, too many waited, or there was no memory.
  uint64_t lost() const;
  // Memory of those that wait.
  size_t waiting_bytes() const;

 private:
  struct File {
    explicit File(int fd) : fd(fd) {}
    ~File();
    const int fd;
    bool within_a_line = false;  // it ends with part of a record
  };

  // `flags`: for open(), besides what every log has.
  static absl::StatusOr<std::shared_ptr<File>> OpenFile(const std::string& path, int flags);
  AnswerLog(std::string path, std::shared_ptr<File> file, Options options)
      : path_(std::move(path)), options_(std::move(options)), file_(std::move(file)) {}

  // On the log's thread, as the next ones.
  void Run();
  absl::Status Write(File& file, const AnswerRecord& record);
  // Waits until the file may take bytes again. DeadlineExceeded once the log's end has no more
  // time.
  absl::Status WaitToWrite(const File& file);
  void TellOverflow();
  void TellLoss(const absl::Status& why);
  void TellEndOfLosses();

  const std::string path_;
  const Options options_;
  mutable std::mutex mutex_;         // guards the members below, but for the last two
  std::condition_variable changed_;  // something waits, or the end has begun
  std::shared_ptr<File> file_;       // which the next record is written to
  std::deque<AnswerRecord> waiting_;
  size_t waiting_bytes_ = 0;  // of these and of the one that is written
  uint64_t lost_ = 0;
  bool overflowed_ = false;  // records were lost since too many waited, and that was not told yet
  bool ends_ = false;
  absl::Time end_ = absl::InfiniteFuture();  // when what waits is given up; see SteadyNow()
  bool failing_ = false;                     // the thread's own: a loss was told, and no end of it
  std::thread thread_;                       // from the first record on; last: it uses all others
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_ANSWER_LOG_H_
