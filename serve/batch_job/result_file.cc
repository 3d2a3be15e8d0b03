#include "serve/batch_job/result_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "io/file/atomic_file.h"
#include "io/file/file_kind.h"
#include "io/file/line_source.h"
#include "io/file/open_file.h"
#include "io/file/read_fully.h"
#include "serve/batch_job/journal.h"
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

// The results that a journal has, at their requests' places.
absl::StatusOr<JoinOutcome> ReadPlaces(JournalReader& journal, absl::Span<Place> places) {
  JoinOutcome outcome;
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const std::optional<JournalEntry> entry, journal.Next());
    if (!entry.has_value()) break;
    Place& place = places[entry->request];
    if (place.size == 0) outcome.failed += entry->status != 200;
    place = {.offset = entry->offset, .size = entry->size};
  }
  outcome.missing = journal.ended() ? 0 : 1;
  return outcome;
}

// Whether the journal of a shard has its end, and, where the job restarts, belongs to the restart.
absl::StatusOr<bool> IsDone(const std::string& out, const RequestFile& requests,
                            const JobIdentity& identity, const Shard& shard, bool restart) {
  const std::string path = JournalPath(out, shard);
  if (!HasJournalEnd(path)) return false;
  if (!restart) return true;
  const absl::StatusOr<JournalReader> journal =
      JournalReader::Open(path, identity, shard, requests.size());
  if (absl::IsFailedPrecondition(journal.status())) return false;  // another job's
  INLAY_RETURN_IF_ERROR(journal.status());
  return journal->restarts();
}

absl::StatusOr<JoinOutcome> Join(const std::string& out, const RequestFile& requests,
                                 const JobIdentity& identity, size_t shards, bool restart) {
  JoinOutcome all;
  for (size_t i = 0; i < shards; ++i) {
    INLAY_ASSIGN_OR_RETURN(const bool done, IsDone(out, requests, identity, {i, shards}, restart));
    all.missing += done ? 0 : 1;
  }
  if (all.missing > 0) return all;
  std::vector<Place> places(requests.size());
  std::vector<JournalReader> journals;
  for (size_t i = 0; i < shards; ++i) {
    const Shard shard{i, shards};
    INLAY_ASSIGN_OR_RETURN(
        JournalReader journal,
        JournalReader::Open(JournalPath(out, shard), identity, shard, requests.size()));
    INLAY_ASSIGN_OR_RETURN(const JoinOutcome one, ReadPlaces(journal, absl::MakeSpan(places)));
    all.missing += one.missing;
    all.failed += one.failed;
    journals.push_back(std::move(journal));
  }
  for (size_t i = 0; i < places.size() && all.missing == 0; ++i)
    all.missing += places[i].size == 0 ? 1 : 0;
  if (all.missing > 0) return all;
  INLAY_RETURN_IF_ERROR(CheckOutput(out));
  INLAY_ASSIGN_OR_RETURN(
      AtomicFile file,
      AtomicFile::Create(out, FileKind::kOther, restart ? Replace::kSameKind : Replace::kNothing));
  for (size_t i = 0; i < places.size(); ++i) {
    INLAY_ASSIGN_OR_RETURN(const std::string line, ReadAt(journals[i % shards].fd(),
                                                          places[i].offset, places[i].size, out));
    INLAY_RETURN_IF_ERROR(Write(file, line));
    INLAY_RETURN_IF_ERROR(Write(file, "\n"));
  }
  INLAY_RETURN_IF_ERROR(file.Commit());
  // One that stays, because the process ends here, is removed when the job is asked for again.
  for (size_t i = 0; i < shards; ++i) unlink(JournalPath(out, {i, shards}).c_str());
  return all;
}

absl::StatusOr<std::optional<size_t>> CountFailed(const std::string& out,
                                                  const RequestFile& requests,
                                                  const JobIdentity& identity) {
  const absl::StatusOr<OpenFile> file = OpenFile::Open(out, O_RDONLY);
  if (absl::IsNotFound(file.status())) return std::nullopt;
  INLAY_RETURN_IF_ERROR(file.status());
  LineSource lines(file->fd(), out, LineSource::kAnyLength);
  size_t failed = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    INLAY_ASSIGN_OR_RETURN(const BatchRequest request, requests.Read(i));
    INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> line, lines.Next());
    if (!line.has_value()) return std::nullopt;
    const absl::StatusOr<ParsedResult> result = ParseResultLine(line->text);
    if (!result.ok() || result->reply_id != ReplyId(identity, request)) return std::nullopt;
    failed += result->status != 200;
  }
  INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> more, lines.Next());
  return more.has_value() ? std::nullopt : std::optional(failed);
}

}  // namespace

absl::Status CheckOutput(const std::string& out) {
  INLAY_RETURN_IF_ERROR(CheckReplace(out, FileKind::kOther, Replace::kSameKind));
  const absl::StatusOr<OpenFile> file = OpenFile::Open(out, O_RDONLY);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  INLAY_RETURN_IF_ERROR(file.status());
  INLAY_ASSIGN_OR_RETURN(const std::string start, ReadAt(file->fd(), 0, kResultStart.size(), out));
  if (start.empty() || start == kResultStart) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(out, " exists and is not the output of a batch job: it is never written over"));
}

absl::StatusOr<JoinOutcome> JoinShards(const std::string& out, const RequestFile& requests,
                                       const JobIdentity& identity, size_t shards, bool restart) {
  return OrOutOfMemory("the results of a job",
                       [&] { return Join(out, requests, identity, shards, restart); });
}

absl::StatusOr<std::optional<size_t>> FailedResultsIn(const std::string& out,
                                                      const RequestFile& requests,
                                                      const JobIdentity& identity) {
  return OrOutOfMemory("the results of a job",
                       [&] { return CountFailed(out, requests, identity); });
}

}  // namespace inlay::serve
