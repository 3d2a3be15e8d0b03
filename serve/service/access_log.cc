#include "serve/service/access_log.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "io/json/parse_json.h"

namespace inlay::serve {
namespace {

constexpr absl::string_view kAccessBegin = "{\"time\"";

bool MayBeginAccessLog(absl::string_view line) {
  return !line.empty() &&
         (absl::StartsWith(line, kAccessBegin) || absl::StartsWith(kAccessBegin, line));
}

constexpr LineLog::Kind kRequests = {.log = "log of requests",
                                     .line = "the line of a request",
                                     .what = "requests",
                                     .may_begin_with = MayBeginAccessLog};

// In seconds, to the microsecond.
double Rounded(absl::Duration duration) {
  return std::round(absl::ToDoubleSeconds(duration) * 1e6) / 1e6;
}

// What a record takes while it waits, about.
size_t MemoryOf(const AccessRecord& record) {
  return sizeof(record) + record.id.size() + record.client.size() + record.method.size() +
         record.path.size();
}

}  // namespace

std::string AccessLine(const AccessRecord& record) {
  Json line = {{"time", absl::FormatTime(absl::RFC3339_full, record.arrived, absl::UTCTimeZone())}};
  const auto add_text = [&line](const char* key, const std::string& text) {
    if (!text.empty()) line[key] = text;
  };
  add_text("id", record.id);
  add_text("client", record.client);
  add_text("method", record.method);
  line["path"] = record.path;
  line["status"] = record.status;
  line["seconds"] = Rounded(record.seconds);
  if (record.first.has_value()) line["first_seconds"] = Rounded(*record.first);
  line["bytes"] = record.bytes;
  if (record.tokens.has_value()) {
    line["prompt_tokens"] = record.tokens->prompt;
    line["cached_tokens"] = record.tokens->cached;
    line["completion_tokens"] = record.tokens->completion;
  }
  if (record.client_gone) line["client_gone"] = true;
  return absl::StrCat(DumpJson(std::move(line)), "\n");
}

absl::StatusOr<std::unique_ptr<AccessLog>> AccessLog::Open(const std::string& path,
                                                           LineLogOptions options) {
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<LineLog> lines,
                         LineLog::Open(path, kRequests, std::move(options)));
  return std::unique_ptr<AccessLog>(new AccessLog(std::move(lines)));
}

void AccessLog::Append(absl::FunctionRef<AccessRecord()> make) noexcept {
  lines_->Append([&]() -> LineLog::Line {
    AccessRecord record = make();
    const size_t bytes = MemoryOf(record);
    return {.make = [record = std::move(record)] { return AccessLine(record); }, .bytes = bytes};
  });
}

std::shared_ptr<Access> Access::Begin(std::shared_ptr<AccessLog> log, const HttpRequest& request) {
  return log == nullptr ? nullptr : std::make_shared<Access>(std::move(log), request);
}

Access::Access(std::shared_ptr<AccessLog> log, const HttpRequest& request)
    : log_(std::move(log)), begin_(SteadyNow()) {
  record_.arrived = absl::Now();
  record_.id = request.id;
  record_.method = request.method;
  record_.path = request.path;
}

void Access::SetClient(const std::string& name) {
  const std::lock_guard lock(mutex_);
  record_.client = name;
}

void Access::AddAnswer(const AnswerEnd& end) {
  const AnswerUsage& usage = end.usage;
  const bool first = end.choice == 0;
  AddTokens({.prompt = first ? usage.prompt_tokens : 0,
             .cached = first ? usage.cached_tokens : 0,
             .completion = usage.completion_tokens});
}

void Access::AddTokens(const AccessTokens& tokens) {
  const std::lock_guard lock(mutex_);
  if (!record_.tokens.has_value()) record_.tokens.emplace();
  record_.tokens->prompt += tokens.prompt;
  record_.tokens->cached += tokens.cached;
  record_.tokens->completion += tokens.completion;
}

void Access::StartReply(int status, bool is_stream) {
  const std::lock_guard lock(mutex_);
  record_.status = status;
  if (is_stream) record_.first = SteadyNow() - begin_;
}

void Access::AddBytes(size_t bytes) {
  const std::lock_guard lock(mutex_);
  record_.bytes += bytes;
}

void Access::ClientGone() {
  const std::lock_guard lock(mutex_);
  record_.client_gone = true;
}

void Access::End() noexcept {
  AccessRecord record;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    record = std::move(record_);
  }
  record.seconds = SteadyNow() - begin_;
  log_->Append([&] { return std::move(record); });
}

}  // namespace inlay::serve
