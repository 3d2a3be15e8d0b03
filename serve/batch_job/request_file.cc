#include "serve/batch_job/request_file.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
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

constexpr absl::string_view kEmbeddingsUrl = "/v1/embeddings";
constexpr absl::string_view kUrls[] = {"/v1/chat/completions", "/v1/completions", "/v1/responses",
                                       kEmbeddingsUrl, "/v1/messages"};

// A body as long as the server takes, and what is around it.
const size_t kLongestLine = HttpOptions().most_body + (size_t{1} << 20);

absl::StatusOr<std::string> TextMember(const Json& object, const char* name) {
  const auto at = object.find(name);
  if (at != object.end() && at->is_string()) return at->get<std::string>();
  return absl::InvalidArgumentError(absl::StrCat("the request needs \"", name, "\", a string"));
}

uint64_t HashOf(absl::string_view text) { return Xxh64Of(text.data(), text.size()); }

// What is wrong with lines of a file, of which the first ones are named.
class WrongLines {
 public:
  explicit WrongLines(const std::string& path) : path_(path) {}

  void Add(uint64_t line, absl::string_view what) {
    if (++count_ <= kMostNamed)
      absl::StrAppend(&text_, text_.empty() ? "" : "; ", path_, ":", line, ": ", what);
  }
  // Counts a line that is not named.
  void AddMore() { ++count_; }
  bool names_more() const { return count_ < kMostNamed; }
  absl::Status status() const {
    if (count_ == 0) return absl::OkStatus();
    if (count_ == 1) return absl::InvalidArgumentError(text_);
    return absl::InvalidArgumentError(absl::StrCat(path_, " has ", count_, " wrong lines",
                                                   count_ > kMostNamed ? ", first " : ": ", text_));
  }

 private:
  static constexpr size_t kMostNamed = 20;

  const std::string& path_;
  size_t count_ = 0;
  std::string text_;
};

// The program that made a compressed file, by the file's first bytes; "" for another file.
absl::string_view CompressorOf(absl::string_view start) {
  constexpr std::pair<absl::string_view, absl::string_view> kMagic[] = {
      {"\x1f\x8b", "gzip"},
      {"\x28\xb5\x2f\xfd", "zstd"},
      {"\xfd"
       "7zXZ",
       "xz"},
      {"BZh", "bzip2"}};
  for (const auto& [magic, program] : kMagic) {
    if (absl::StartsWith(start, magic)) return program;
  }
  return "";
}

bool IsBlank(absl::string_view line) {
  return line.find_first_not_of(" \t\r") == absl::string_view::npos;
}

}  // namespace

absl::StatusOr<BatchRequest> ParseBatchRequest(absl::string_view line) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument document, ParseJson("the request", line));
  const Json& json = *document;
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
    return absl::InvalidArgumentError(absl::StrCat(
        opened.status().message(), "; a job that goes on reads its file of requests again"));
  }
  INLAY_RETURN_IF_ERROR(opened.status());
  RequestFile file(path, *std::move(opened));
  file.modified_ = absl::FromUnixSeconds(file.file_.info().st_mtime);
  INLAY_ASSIGN_OR_RETURN(const std::string start, ReadAt(file.file_.fd(), 0, 8, path));
  if (const absl::string_view program = CompressorOf(start); !program.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is compressed by ", program,
                     ": unpack it first, as its lines are read in any order"));
  }
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
  WrongLines wrong(path_);
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> line, lines.Next());
    if (!line.has_value()) break;
    hash.Update(line->text.data(), line->text.size());
    if (line->ended) hash.Update("\n", 1);
    bytes_ = line->offset + line->text.size() + (line->ended ? 1 : 0);
    if (IsBlank(line->text)) continue;
    const absl::StatusOr<BatchRequest> request = ParseBatchRequest(line->text);
    if (absl::IsInvalidArgument(request.status())) {
      wrong.Add(lines.number(), request.status().message());
      continue;
    }
    INLAY_RETURN_IF_ERROR(request.status());
    std::optional<uint64_t>& first =
        request->url == kEmbeddingsUrl ? first_to_embed_ : first_to_answer_;
    if (!first.has_value()) first = lines.number();
    places_.push_back({.offset = line->offset,
                       .id_hash = HashOf(request->custom_id),
                       .hash = HashOf(line->text)});
  }
  hash_ = hash.Digest();
  INLAY_RETURN_IF_ERROR(wrong.status());
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
  std::vector<std::pair<uint64_t, uint64_t>> same;
  // Requests of one hash are neighbours, the earlier ones first.
  for (auto at = order.begin();
       (at = std::adjacent_find(at, order.end(), same_hash)) != order.end();) {
    const auto end =
        std::find_if(at, order.end(), [&](uint64_t other) { return !same_hash(*at, other); });
    std::map<std::string, uint64_t> first;
    for (; at != end; ++at) {
      INLAY_ASSIGN_OR_RETURN(BatchRequest request, Read(*at));
      const auto [had, is_new] = first.emplace(std::move(request.custom_id), *at);
      if (!is_new) same.emplace_back(*at, had->second);
    }
  }
  return SameIdError(std::move(same));
}

absl::Status RequestFile::SameIdError(std::vector<std::pair<uint64_t, uint64_t>> same) const {
  std::sort(same.begin(), same.end());
  WrongLines wrong(path_);
  for (const auto& [later, earlier] : same) {
    if (!wrong.names_more()) {
      wrong.AddMore();
      continue;
    }
    INLAY_ASSIGN_OR_RETURN(const BatchRequest request, Read(later));
    INLAY_ASSIGN_OR_RETURN(const uint64_t line, LineAt(places_[later].offset));
    INLAY_ASSIGN_OR_RETURN(const uint64_t before, LineAt(places_[earlier].offset));
    wrong.Add(line, absl::StrCat("the custom_id ", QuoteForMessage(request.custom_id),
                                 " is also that of line ", before));
  }
  return wrong.status();
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
