#include "serve/batch_job/request_file.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/about.h"
#include "base/format.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "io/file/has_name.h"
#include "io/file/line_source.h"
#include "io/file/read_fully.h"
#include "io/json/parse_json.h"
#include "serve/http/http_server.h"

namespace inlay::serve {
namespace {

constexpr absl::string_view kUrls[] = {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                       "/v1/embeddings", "/v1/messages"};

// A body as long as the server takes, and what is around it.
const size_t kLongestLine = HttpOptions().most_body + (size_t{1} << 20);

absl::StatusOr<std::string> TextMember(const Json& object, const char* name) {
  const auto at = object.find(name);
  if (at != object.end() && at->is_string()) return at->get<std::string>();
  return absl::InvalidArgumentError(absl::StrCat("the request needs \"", name, "\", a string"));
}

uint64_t HashOf(absl::string_view text) { return Xxh64Of(text.data(), text.size()); }

bool IsBlank(absl::string_view line) {
  return line.find_first_not_of(" \t\r") == absl::string_view::npos;
}

}  // namespace

absl::StatusOr<BatchRequest> ParseBatchRequest(absl::string_view line) {
  INLAY_ASSIGN_OR_RETURN(const Json json, ParseJson("the request", line));
  if (!json.is_object()) return absl::InvalidArgumentError("the request is not a JSON object");
  BatchRequest request;
  INLAY_ASSIGN_OR_RETURN(request.custom_id, TextMember(json, "custom_id"));
  if (request.custom_id.empty()) return absl::InvalidArgumentError("\"custom_id\" is empty");
  INLAY_ASSIGN_OR_RETURN(const std::string method, TextMember(json, "method"));
  if (method != "POST") {
    return absl::InvalidArgumentError(
        absl::StrCat("\"method\" is ", QuoteForMessage(method), ", not POST"));
  }
  INLAY_ASSIGN_OR_RETURN(request.url, TextMember(json, "url"));
  if (std::find(std::begin(kUrls), std::end(kUrls), request.url) == std::end(kUrls)) {
    return absl::InvalidArgumentError(absl::StrCat("\"url\" is ", QuoteForMessage(request.url),
                                                   ", not one of ", absl::StrJoin(kUrls, ", ")));
  }
  const auto body = json.find("body");
  if (body == json.end() || !body->is_object())
    return absl::InvalidArgumentError("the request needs \"body\", an object");
  const auto stream = body->find("stream");
  request.stream = stream != body->end() && stream->is_boolean() && stream->get<bool>();
  request.body = DumpJson(*body);
  return request;
}

absl::StatusOr<RequestFile> RequestFile::Open(const std::string& path) {
  absl::StatusOr<OpenFile> opened = OpenFile::Open(path, O_RDONLY);
  if (absl::IsInvalidArgument(opened.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(opened.status().message(), ": a job that goes on reads it again"));
  }
  INLAY_RETURN_IF_ERROR(opened.status());
  RequestFile file(path, *std::move(opened));
  file.modified_ = absl::FromUnixSeconds(file.file_.info().st_mtime);
  INLAY_RETURN_IF_ERROR(
      OrOutOfMemory(absl::StrCat("the requests of ", path), [&]() -> absl::Status {
        INLAY_RETURN_IF_ERROR(file.Scan());
        return file.CheckIdsDiffer();
      }));
  return file;
}

absl::Status RequestFile::Scan() {
  LineSource lines(file_.fd(), path_, kLongestLine);
  Xxh64 hash;
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> line, lines.Next());
    if (!line.has_value()) break;
    hash.Update(line->text.data(), line->text.size());
    if (line->ended) hash.Update("\n", 1);
    bytes_ = line->offset + line->text.size() + (line->ended ? 1 : 0);
    if (IsBlank(line->text)) continue;
    const absl::StatusOr<BatchRequest> request = ParseBatchRequest(line->text);
    if (!request.ok()) return About(absl::StrCat(path_, ":", lines.number()), request.status());
    places_.push_back({.offset = line->offset,
                       .id_hash = HashOf(request->custom_id),
                       .hash = HashOf(line->text)});
  }
  hash_ = hash.Digest();
  if (!places_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path_, " has no requests"));
}

absl::Status RequestFile::CheckIdsDiffer() const {
  std::vector<uint64_t> order(places_.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::sort(order.begin(), order.end(), [this](uint64_t a, uint64_t b) {
    return std::pair(places_[a].id_hash, a) < std::pair(places_[b].id_hash, b);
  });
  const auto same_hash = [this](uint64_t a, uint64_t b) {
    return places_[a].id_hash == places_[b].id_hash;
  };
  // Requests of one hash are neighbours, the earlier ones first.
  for (auto at = order.begin();
       (at = std::adjacent_find(at, order.end(), same_hash)) != order.end(); ++at) {
    for (auto later = at + 1; later != order.end() && same_hash(*at, *later); ++later) {
      INLAY_ASSIGN_OR_RETURN(const BatchRequest a, Read(*at));
      INLAY_ASSIGN_OR_RETURN(const BatchRequest b, Read(*later));
      if (a.custom_id != b.custom_id) continue;
      INLAY_ASSIGN_OR_RETURN(const uint64_t line_a, LineAt(places_[*at].offset));
      INLAY_ASSIGN_OR_RETURN(const uint64_t line_b, LineAt(places_[*later].offset));
      return absl::InvalidArgumentError(absl::StrCat(path_, ":", line_b, ": the custom_id ",
                                                     QuoteForMessage(b.custom_id),
                                                     " is also that of line ", line_a));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> RequestFile::LineAt(uint64_t offset) const {
  LineSource lines(file_.fd(), path_, kLongestLine);
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> line, lines.Next());
    if (!line.has_value() || line->offset >= offset) return lines.number();
  }
}

std::string RequestFile::Content() const { return Format("%d bytes, xxh64 %016x", bytes_, hash_); }

bool RequestFile::IsFile(const std::string& path) const { return HasName(file_.fd(), path); }

absl::StatusOr<BatchRequest> RequestFile::Read(size_t request) const {
  const Place& place = places_[request];
  // There may be any number of empty lines before the next one.
  const uint64_t end = request + 1 < places_.size() ? places_[request + 1].offset : bytes_;
  return OrOutOfMemory("a request", [&]() -> absl::StatusOr<BatchRequest> {
    INLAY_ASSIGN_OR_RETURN(const std::string bytes,
                           ReadAt(file_.fd(), place.offset,
                                  std::min<uint64_t>(end - place.offset, kLongestLine), path_));
    const absl::string_view line = absl::string_view(bytes).substr(0, bytes.find('\n'));
    if (HashOf(line) == place.hash) return ParseBatchRequest(line);
    return absl::FailedPreconditionError(
        absl::StrCat(path_, " has changed since the job has read it"));
  });
}

}  // namespace inlay::serve
