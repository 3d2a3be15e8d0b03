// The file that each request is noted in: who asked for what, when, and what it took; no texts.
#ifndef INLAY_SERVE_SERVICE_ACCESS_LOG_H_
#define INLAY_SERVE_SERVICE_ACCESS_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "serve/http/http_server.h"
#include "serve/scheduler/answer_request.h"
#include "serve/service/line_log.h"

namespace inlay::serve {

// Of the answers to a request.
struct AccessTokens {
  uint64_t prompt = 0;
  uint64_t cached = 0;  // of the prompt
  uint64_t completion = 0;
};

// What the log tells of a request.
struct AccessRecord {
  absl::Time arrived;
  std::string id = {};      // the reply's x-request-id
  std::string client = {};  // the name of its key; "" where no key was found
  // "" where the HTTP server itself has replied: Service::OnRefusal.
  std::string method = {};
  std::string path = {};
  // Of HTTP. 0: no reply began. What the HTTP server sends then has a record of its own, of the
  // same id.
  int status = 0;
  absl::Duration seconds = absl::ZeroDuration();  // to the reply's end, which may not be sent yet
  std::optional<absl::Duration> first = std::nullopt;  // to a stream's beginning
  uint64_t bytes = 0;                                  // of the reply's body
  bool client_gone = false;                            // before the reply's end
  std::optional<AccessTokens> tokens = std::nullopt;   // where something was answered
};

// A record as one line of JSON, which ends with a newline.
std::string AccessLine(const AccessRecord& record);

// Appends records to a file without waiting for it: see LineLog. Safe to use from several threads.
class AccessLog {
 public:
  // As LineLog::Open.
  static absl::StatusOr<std::unique_ptr<AccessLog>> Open(const std::string& path,
                                                         LineLogOptions options = {});

  // Takes the record that make() returns to be written, or counts it as lost, also where make() or
  // this finds no memory. It does not wait.
  void Append(absl::FunctionRef<AccessRecord()> make) noexcept;

  // As LineLog's.
  absl::Status Reopen() { return lines_->Reopen(); }
  uint64_t lost() const { return lines_->lost(); }

 private:
  explicit AccessLog(std::unique_ptr<LineLog> lines) : lines_(std::move(lines)) {}

  const std::unique_ptr<LineLog> lines_;
};

// A request on its way into the log: what is known of it by now. Safe to use from several threads;
// what comes after the reply's end is not logged.
class Access {
 public:
  // From now on; null where there is no log.
  static std::shared_ptr<Access> Begin(std::shared_ptr<AccessLog> log, const HttpRequest& request);
  Access(std::shared_ptr<AccessLog> log, const HttpRequest& request);
  // Logs a request to which nobody replied to the end.
  ~Access() { End(); }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  void SetClient(const std::string& name);
  // Adds the tokens of an answer; several answers to one prompt have its tokens in common.
  void AddAnswer(const AnswerEnd& end);
  // Adds to the tokens so far.
  void AddTokens(const AccessTokens& tokens);
  void StartReply(int status, bool is_stream);
  void AddBytes(size_t bytes);
  void ClientGone();
  // Of the reply: logs the request, once.
  void End() noexcept;

 private:
  const std::shared_ptr<AccessLog> log_;
  const absl::Time begin_;  // a value of SteadyNow()
  std::mutex mutex_;        // guards the next two members
  AccessRecord record_;
  bool ended_ = false;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_ACCESS_LOG_H_
