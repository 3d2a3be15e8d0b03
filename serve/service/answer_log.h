// Answers written down so that they can be computed again and compared.
#ifndef INLAY_SERVE_SERVICE_ANSWER_LOG_H_
#define INLAY_SERVE_SERVICE_ANSWER_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay::serve {

// One answer, with all that determines it.
struct AnswerRecord {
  std::string id;           // of the request
  std::string time;         // RFC 3339
  std::string client;       // the name of its key
  std::string fingerprint;  // of the server
  std::vector<int32_t> prompt;
  GenerateOptions options;                          // without a grammar
  std::optional<AnswerShape> shape = std::nullopt;  // what the grammar is compiled from
  std::vector<int32_t> tokens;
  StopReason reason = StopReason::kEndOfGeneration;
};

// A record as one line of JSON, which ends with a newline, and back. InvalidArgument for what is no
// record.
std::string RecordLine(const AnswerRecord& record);
absl::StatusOr<AnswerRecord> ParseRecord(absl::string_view line);

// Where a recomputed answer parts from the recorded one.
struct AnswerDifference {
  size_t token;                     // index in the answer
  std::optional<int32_t> expected;  // none: the answer ended
  std::optional<int32_t> recomputed;
};

// The first difference between two answers' tokens; none where they are the same.
std::optional<AnswerDifference> Compare(const std::vector<int32_t>& expected,
                                        const std::vector<int32_t>& recomputed);

// The options to compute a recorded answer again with: an answer that was cut short, because its
// reader had enough or the context was full, is computed as far as it went. Fails with the errors
// of AnswerGrammars::Get for an answer that had a shape.
absl::StatusOr<GenerateOptions> ReplayOptions(const AnswerRecord& record, AnswerGrammars& grammars);

// A file to which records are appended. Safe to use from several threads.
class AnswerLog {
 public:
  // Opens the file or makes it, accessible to its owner alone (0600). The errors name it.
  static absl::StatusOr<std::unique_ptr<AnswerLog>> Open(const std::string& path);
  ~AnswerLog();
  AnswerLog(const AnswerLog&) = delete;
  AnswerLog& operator=(const AnswerLog&) = delete;

  // Appends a record in one write, on a line of its own whatever was left by a write that failed.
  absl::Status Append(const AnswerRecord& record);

 private:
  AnswerLog(std::string path, int fd, bool within_a_line)
      : path_(std::move(path)), fd_(fd), within_a_line_(within_a_line) {}
  const std::string path_;
  const int fd_;
  std::mutex mutex_;
  bool within_a_line_;  // guarded by mutex_: the file ends with part of a record
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_ANSWER_LOG_H_
