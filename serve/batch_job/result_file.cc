#include "serve/batch_job/result_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/out_of_memory.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/file/atomic_file.h"
#include "io/file/file_kind.h"
#include "io/file/line_source.h"
#include "io/file/open_file.h"
#include "io/file/read_fully.h"
#include "serve/batch_job/result_line.h"
#include "serve/batch_job/shard.h"

namespace inlay::serve {
namespace {

// Where a result is in the journal of its shard.
struct Place {
  uint64_t offset = 0;
  size_t size = 0;  // 0: it was not found
};

absl::Status Write(AtomicFile& file, absl::string_view text) {
  return file.Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

// The results that a journal has, at their requests' places, and whether these are all of its
// shard's.
absl::StatusOr<bool> ReadPlaces(JournalReader& journal, const Shard& shard,
                                absl::Span<Place> places, std::vector<bool>& failed) {
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const std::optional<JournalEntry> entry, journal.Next());
    if (!entry.has_value()) break;
    places[entry->request] = {.offset = entry->offset, .size = entry->size};
    failed[entry->request] = entry->status != 200;
  }
  if (!journal.ended()) return false;
  for (size_t i = shard.index; i < places.size(); i += shard.count) {
    if (places[i].size == 0) return false;
  }
  return true;
}

// Whether the journal of a shard has its end, and, where failed requests are retried, has retried
// its own, and, where the job restarts, belongs to the restart.
absl::StatusOr<bool> IsDone(const std::string& out, const RequestFile& requests,
                            const JobIdentity& identity, const Shard& shard,
                            const JournalMode& mode) {
  const std::string path = JournalPath(out, shard);
  const std::optional<JournalEnd> end = FindJournalEnd(path);
  if (!end.has_value()) return false;
  if (mode.retry_failed && end->failed > 0 && !end->retried) return false;
  if (!mode.restart) return true;
  const absl::StatusOr<JournalReader> journal =
      JournalReader::Open(path, identity, shard, requests.size());
  if (absl::IsFailedPrecondition(journal.status())) return false;  // another job's
  INLAY_RETURN_IF_ERROR(journal.status());
  return journal->restarts();
}

absl::StatusOr<JoinOutcome> Join(const std::string& out, const RequestFile& requests,
                                 const JobIdentity& identity, size_t shards,
                                 const JournalMode& mode) {
  JoinOutcome all;
  for (size_t i = 0; i < shards; ++i) {
    INLAY_ASSIGN_OR_RETURN(const bool done, IsDone(out, requests, identity, {i, shards}, mode));
    if (!done) all.missing.push_back(i);
  }
  if (!all.missing.empty()) return all;
  std::vector<Place> places(requests.size());
  std::vector<bool> failed(requests.size());
  std::vector<JournalReader> journals;
  for (size_t i = 0; i < shards; ++i) {
    const Shard shard{i, shards};
    INLAY_ASSIGN_OR_RETURN(
        JournalReader journal,
        JournalReader::Open(JournalPath(out, shard), identity, shard, requests.size()));
    INLAY_ASSIGN_OR_RETURN(const bool whole,
                           ReadPlaces(journal, shard, absl::MakeSpan(places), failed));
    if (!whole) all.missing.push_back(i);
    journals.push_back(std::move(journal));
  }
  if (!all.missing.empty()) return all;
  all.failed = static_cast<size_t>(std::count(failed.begin(), failed.end(), true));
  INLAY_RETURN_IF_ERROR(CheckOutput(out));
  const bool replaces = mode.restart || mode.retry_failed;
  INLAY_ASSIGN_OR_RETURN(
      AtomicFile file,
      AtomicFile::Create(out, FileKind::kOther, replaces ? Replace::kSameKind : Replace::kNothing));
  for (size_t i = 0; i < places.size(); ++i) {
    const std::string path = JournalPath(out, {i % shards, shards});
    INLAY_ASSIGN_OR_RETURN(const std::string line, ReadAt(journals[i % shards].fd(),
                                                          places[i].offset, places[i].size, path));
    if (line.size() < places[i].size)
      return absl::DataLossError(absl::StrCat(path, " has become shorter"));
    INLAY_RETURN_IF_ERROR(Write(file, line));
    INLAY_RETURN_IF_ERROR(Write(file, "\n"));
  }
  INLAY_RETURN_IF_ERROR(file.Commit());
  // One that stays, because the process ends here, is removed when the job is asked for again.
  for (size_t i = 0; i < shards; ++i) unlink(JournalPath(out, {i, shards}).c_str());
  return all;
}

// In what a result differs from that of this request; "" where it does not. A text of a member
// that replies do not always have is compared where it is there.
std::string Difference(const ParsedResult& result, const BatchRequest& request,
                       const JobIdentity& identity) {
  const auto other = [](absl::string_view member, const std::string& is,
                        const std::string& wanted) {
    return absl::StrCat("has the ", member, " ", QuoteForMessage(is), " and not ",
                        QuoteForMessage(wanted));
  };
  if (result.custom_id != request.custom_id)
    return other("custom_id", result.custom_id, request.custom_id);
  if (result.fingerprint.value_or(identity.fingerprint) != identity.fingerprint)
    return other("system_fingerprint", *result.fingerprint, identity.fingerprint);
  if (result.model.value_or(identity.model) != identity.model)
    return other("model", *result.model, identity.model);
  if (result.created.value_or(identity.time) != identity.time) {
    return other("time of creation", absl::StrCat(*result.created),
                 absl::StrCat(identity.time, " (--time)"));
  }
  if (result.reply_id != ReplyId(identity, request))
    return "is of another request with this custom_id, or of other weights";
  return "";
}

absl::StatusOr<std::optional<size_t>> Read(const std::string& out, const RequestFile& requests,
                                           const JobIdentity& identity, const OnResult& on_result) {
  const absl::StatusOr<OpenFile> file = OpenFile::Open(out, O_RDONLY);
  if (absl::IsNotFound(file.status())) return std::nullopt;
  INLAY_RETURN_IF_ERROR(file.status());
  if (file->info().st_size == 0) return std::nullopt;
  const auto other_job = [&](const std::string& difference) {
    return absl::AlreadyExistsError(
        absl::StrCat(out, " exists and is not the output of this job: ", difference,
                     "; give another -o, or replace it with --restart"));
  };
  LineSource lines(file->fd(), out, LineSource::kAnyLength);
  size_t failed = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    INLAY_ASSIGN_OR_RETURN(const BatchRequest request, requests.Read(i));
    INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> line, lines.Next());
    if (!line.has_value()) {
      return other_job(
          absl::StrCat("it ends after ", Plural(i, "result"), " of ", requests.size()));
    }
    const absl::StatusOr<ParsedResult> result = ParseResultLine(line->text);
    const std::string difference =
        result.ok() ? Difference(*result, request, identity) : "is no result";
    if (!difference.empty()) return other_job(absl::StrCat("line ", i + 1, " ", difference));
    failed += result->status != 200;
    if (on_result) INLAY_RETURN_IF_ERROR(on_result(i, result->status, line->text));
  }
  INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> more, lines.Next());
  if (more.has_value())
    return other_job(absl::StrCat("it has more than ", Plural(requests.size(), "result")));
  return failed;
}

}  // namespace

absl::Status CheckOutput(const std::string& out) {
  INLAY_RETURN_IF_ERROR(CheckReplace(out, FileKind::kOther, Replace::kSameKind));
  const std::string parent = std::filesystem::path(out).parent_path();
  const std::string folder = parent.empty() ? "." : parent;
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("nothing can be written into ", folder, ", the folder of ", out));
  }
  const absl::StatusOr<OpenFile> file = OpenFile::Open(out, O_RDONLY);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  INLAY_RETURN_IF_ERROR(file.status());
  INLAY_ASSIGN_OR_RETURN(const std::string start, ReadAt(file->fd(), 0, kResultStart.size(), out));
  if (start.empty() || start == kResultStart) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(out, " exists and is not the output of a batch job: it is never written over"));
}

absl::StatusOr<JoinOutcome> JoinShards(const std::string& out, const RequestFile& requests,
                                       const JobIdentity& identity, size_t shards,
                                       const JournalMode& mode) {
  return OrOutOfMemory("the results of a job",
                       [&] { return Join(out, requests, identity, shards, mode); });
}

absl::StatusOr<std::optional<size_t>> ReadResults(const std::string& out,
                                                  const RequestFile& requests,
                                                  const JobIdentity& identity,
                                                  const OnResult& on_result) {
  return OrOutOfMemory("the results of a job",
                       [&] { return Read(out, requests, identity, on_result); });
}

std::optional<int64_t> CreationTimeIn(const std::string& out) {
  const absl::StatusOr<OpenFile> file = OpenFile::Open(out, O_RDONLY);
  if (!file.ok()) return std::nullopt;
  LineSource lines(file->fd(), out, LineSource::kAnyLength);
  while (true) {
    const absl::StatusOr<std::optional<LineSource::Line>> line = lines.Next();
    if (!line.ok() || !line->has_value()) return std::nullopt;
    const absl::StatusOr<ParsedResult> result = ParseResultLine((*line)->text);
    if (!result.ok()) return std::nullopt;
    if (result->created.has_value()) return result->created;
  }
}

}  // namespace inlay::serve
