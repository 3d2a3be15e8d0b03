// What determines the results of a batch job.
#ifndef INLAY_SERVE_BATCH_JOB_JOB_IDENTITY_H_
#define INLAY_SERVE_BATCH_JOB_JOB_IDENTITY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"
#include "serve/batch_job/request_file.h"

namespace inlay::serve {

struct JobIdentity {
  std::string input;          // RequestFile::Content()
  std::string fingerprint;    // of the service: the program, the weights, ...
  std::string model;          // as replies name it
  std::string chat_template;  // what tells it from others
  size_t context = 0;         // the longest conversation, in tokens
  int64_t time = 0;           // seconds since 1970, as replies and chat templates are told
};

Json ToJson(const JobIdentity& identity);

// Ok where `kept`, from ToJson, is this identity; else FailedPrecondition with a sentence about
// `path`, where the results of `kept` are, that names the first difference.
absl::Status CheckSameJob(const std::string& path, const Json& kept, const JobIdentity& identity);

// The id of the reply to a request: 32 hexadecimal digits, which depend on all of the identity but
// the input, and on all of the request.
std::string ReplyId(const JobIdentity& identity, const BatchRequest& request);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_JOB_IDENTITY_H_
