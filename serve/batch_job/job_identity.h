// What determines the results of a batch job.
#ifndef INLAY_SERVE_BATCH_JOB_JOB_IDENTITY_H_
#define INLAY_SERVE_BATCH_JOB_JOB_IDENTITY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "io/json/parse_json.h"
#include "serve/batch_job/request_file.h"

namespace inlay::serve {

struct JobIdentity {
  std::string input;            // RequestFile::Content()
  std::string weights;          // what tells the model's weights from others
  std::string instruction_set;  // that computes
  std::string cache_type;       // of stored rows
  std::string model;            // as replies name it
  std::string chat_template;    // what tells it from others
  std::string defaults;         // JSON: what requests have where they leave it out
  size_t context = 0;           // the longest conversation, in tokens
  int64_t time = 0;             // seconds since 1970, as replies and chat templates are told
  // Of the service. It covers the program, too, and of the above all but the input, the model's
  // name and the time.
  std::string fingerprint;
};

Json ToJson(const JobIdentity& identity);
// The identity in what ToJson has made; members that are missing are empty or 0.
JobIdentity IdentityOf(const Json& json);

// Ok where `kept` is this identity; else FailedPrecondition with a sentence about `path`, where the
// results of `kept` are: the first difference, and with what the job goes on.
absl::Status CheckSameJob(const std::string& path, const JobIdentity& kept,
                          const JobIdentity& identity);

// The id of the reply to a request, from which its seed derives, too: 32 hexadecimal digits, which
// depend on the request and the weights alone.
std::string ReplyId(const JobIdentity& identity, const BatchRequest& request);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_JOB_IDENTITY_H_
