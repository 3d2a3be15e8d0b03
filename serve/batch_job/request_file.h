// The requests of a batch job: a file of JSON lines, as OpenAI's batches have them.
#ifndef INLAY_SERVE_BATCH_JOB_REQUEST_FILE_H_
#define INLAY_SERVE_BATCH_JOB_REQUEST_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "io/file/open_file.h"

namespace inlay::serve {

// {"custom_id", "method": "POST", "url", "body": an object}; other members have no effect.
struct BatchRequest {
  std::string custom_id;
  std::string url;      // one of those that ParseBatchRequest takes
  std::string body;     // JSON
  bool stream = false;  // the body asks for a stream
};

// InvalidArgument where `line` is no such request, or one for a url other than
// /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings and /v1/messages.
absl::StatusOr<BatchRequest> ParseBatchRequest(absl::string_view line);

// Keeps of each request where it is in the file, not the request: 24 bytes.
class RequestFile {
 public:
  // Reads and checks the whole file. InvalidArgument where lines are no requests, or have the
  // custom_id of an earlier one: it names the first 20 of them and says how many there are; also
  // for a file without requests, for a compressed one and for what is no regular file. Empty lines
  // are skipped.
  static absl::StatusOr<RequestFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  size_t size() const { return places_.size(); }
  // When the file was modified last.
  absl::Time modified() const { return modified_; }
  // What tells this file's content from others: its length and a hash.
  std::string Content() const;
  // The number, from 1, of the first line with a request for embeddings, or of the first with one
  // for an answer; nothing where there is none.
  std::optional<uint64_t> first_to_embed() const { return first_to_embed_; }
  std::optional<uint64_t> first_to_answer() const { return first_to_answer_; }
  // Whether `path` leads to the same file.
  bool IsFile(const std::string& path) const;

  // The request of this number, from 0. FailedPrecondition when the file is no longer what it was
  // when it was opened.
  absl::StatusOr<BatchRequest> Read(size_t request) const;

 private:
  struct Place {
    uint64_t offset;
    uint64_t id_hash;  // of the custom_id
    uint64_t hash;     // of the line
  };

  RequestFile(std::string path, OpenFile file) : path_(std::move(path)), file_(std::move(file)) {}
  absl::Status Scan();
  absl::Status CheckIdsDiffer() const;
  // The error for lines whose custom_id another one has: pairs of a later and an earlier request.
  absl::Status SameIdError(std::vector<std::pair<uint64_t, uint64_t>> same) const;
  // The number of the line at `offset`, from 1.
  absl::StatusOr<uint64_t> LineAt(uint64_t offset) const;

  std::string path_;
  OpenFile file_;
  absl::Time modified_;
  std::vector<Place> places_;
  uint64_t bytes_ = 0;
  uint64_t hash_ = 0;
  std::optional<uint64_t> first_to_embed_, first_to_answer_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_REQUEST_FILE_H_
