// The file that answers are written down in, so that they can be computed again and compared.
#ifndef INLAY_SERVE_SERVICE_ANSWER_LOG_H_
#define INLAY_SERVE_SERVICE_ANSWER_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "serve/service/answer_record.h"
#include "serve/service/line_log.h"

namespace inlay::serve {

// Appends records to a file without waiting for it: see LineLog. Safe to use from several threads.
class AnswerLog {
 public:
  // As LineLog::Open.
  static absl::StatusOr<std::unique_ptr<AnswerLog>> Open(const std::string& path,
                                                         LineLogOptions options = {});

  // Takes the record that make() returns to be written, or counts it as lost, also where make() or
  // this finds no memory. It does not wait.
  void Append(absl::FunctionRef<AnswerRecord()> make);

  // As LineLog's.
  absl::Status Reopen() { return lines_->Reopen(); }
  uint64_t lost() const { return lines_->lost(); }
  size_t waiting_bytes() const { return lines_->waiting_bytes(); }

 private:
  explicit AnswerLog(std::unique_ptr<LineLog> lines) : lines_(std::move(lines)) {}

  const std::unique_ptr<LineLog> lines_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_ANSWER_LOG_H_
