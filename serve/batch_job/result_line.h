// One result of a batch, as OpenAI's batches have them.
#ifndef INLAY_SERVE_BATCH_JOB_RESULT_LINE_H_
#define INLAY_SERVE_BATCH_JOB_RESULT_LINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay::serve {

// What each result begins with.
inline constexpr absl::string_view kResultStart = R"({"id":"batch_req_)";

// {"id", "custom_id", "response": {"status_code", "request_id", "body"}, "error": null} on one
// line, without a newline. `reply_id`: see ReplyId; `body`: the reply's JSON on one line, whose
// bytes stay as they are.
std::string ResultLine(absl::string_view reply_id, absl::string_view custom_id, int status,
                       absl::string_view body);

struct ParsedResult {
  std::string reply_id;
  std::string custom_id;
  int status = 0;
  // Of the reply, where it names them: those to errors and embeddings do not name all.
  std::optional<std::string> model;
  std::optional<std::string> fingerprint;
  std::optional<int64_t> created;  // seconds since 1970
};

// InvalidArgument for a line that ResultLine does not make.
absl::StatusOr<ParsedResult> ParseResultLine(absl::string_view line);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_RESULT_LINE_H_
