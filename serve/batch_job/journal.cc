#include "serve/batch_job/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/format.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "io/file/atomic_file.h"
#include "io/file/has_name.h"
#include "io/file/read_fully.h"
#include "io/file/write_fully.h"
#include "io/json/parse_json.h"

namespace inlay::serve {
namespace {

constexpr size_t kHashDigits = 16;
constexpr int kVersion = 1;

std::string JournalLine(absl::string_view content) {
  return absl::StrCat(absl::Hex(Xxh64Of(content.data(), content.size()), absl::kZeroPad16), " ",
                      content, "\n");
}

// What follows the hash, where that is right.
std::optional<absl::string_view> ContentOf(absl::string_view line) {
  if (line.size() <= kHashDigits || line[kHashDigits] != ' ') return std::nullopt;
  const absl::string_view content = line.substr(kHashDigits + 1);
  const std::string hash = Format("%016x", Xxh64Of(content.data(), content.size()));
  return absl::StartsWith(line, hash) ? std::optional(content) : std::nullopt;
}

bool IsEnd(absl::string_view content) { return absl::StartsWith(content, "end "); }

std::string Header(const JobIdentity& identity, const Shard& shard, bool restart) {
  return JournalLine(DumpJson({{"inlay_batch", kVersion},
                               {"shard", shard.Text()},
                               {"restart", restart},
                               {"job", ToJson(identity)}}));
}

// Whether a restart of this job and shard began the journal, whose header this is.
absl::StatusOr<bool> ReadHeader(const std::string& path, absl::string_view line,
                                const JobIdentity& identity, const Shard& shard) {
  const auto no_journal = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " exists and is not the journal of a batch job"));
  };
  const std::optional<absl::string_view> content = ContentOf(line);
  if (!content.has_value()) return no_journal();
  INLAY_ASSIGN_OR_RETURN(const Json header, ParseJson("the journal's header", *content));
  // Of any type: a member that is no number is another file's.
  if (!header.is_object() || header.value("inlay_batch", Json()) != kVersion) return no_journal();
  INLAY_RETURN_IF_ERROR(CheckSameJob(path, header.value("job", Json()), identity));
  const Json kept = header.value("shard", Json());
  if (!kept.is_string()) return no_journal();
  if (kept != shard.Text()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has results of shard ", PrintableName(kept.get<std::string>()),
                     " and not of ", shard.Text(), "; --restart discards them"));
  }
  return header.value("restart", Json()) == true;
}

// "REQUEST STATUS RESULT"
std::optional<JournalEntry> EntryOf(absl::string_view content) {
  const std::pair<absl::string_view, absl::string_view> first =
      absl::StrSplit(content, absl::MaxSplits(' ', 1));
  const std::pair<absl::string_view, absl::string_view> second =
      absl::StrSplit(first.second, absl::MaxSplits(' ', 1));
  JournalEntry entry;
  uint64_t request = 0;
  if (!absl::SimpleAtoi(first.first, &request) || !absl::SimpleAtoi(second.first, &entry.status) ||
      second.second.empty()) {
    return std::nullopt;
  }
  entry.request = request;
  entry.size = second.second.size();
  return entry;
}

}  // namespace

JournalReader::JournalReader(std::string path, OpenFile file, Shard shard, size_t requests)
    : path_(std::move(path)),
      file_(std::move(file)),
      shard_(shard),
      requests_(requests),
      lines_(std::make_unique<LineSource>(file_.fd(), path_, LineSource::kAnyLength)) {}

absl::StatusOr<JournalReader> JournalReader::Open(const std::string& path,
                                                  const JobIdentity& identity, const Shard& shard,
                                                  size_t requests) {
  INLAY_ASSIGN_OR_RETURN(OpenFile file, OpenFile::Open(path, O_RDONLY));
  JournalReader reader(path, std::move(file), shard, requests);
  INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> line, reader.lines_->Next());
  const bool whole = line.has_value() && line->ended;
  INLAY_ASSIGN_OR_RETURN(reader.restarts_,
                         ReadHeader(path, whole ? line->text : "", identity, shard));
  reader.whole_ = line->text.size() + 1;
  return reader;
}

absl::StatusOr<std::optional<JournalEntry>> JournalReader::Next() {
  if (ended_) return std::nullopt;
  INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> line, lines_->Next());
  if (!line.has_value() || !line->ended) return std::nullopt;
  const std::optional<absl::string_view> content = ContentOf(line->text);
  if (!content.has_value()) return std::nullopt;
  std::optional<JournalEntry> entry;
  if (IsEnd(*content)) {
    ended_ = true;
  } else {
    entry = EntryOf(*content);
    const bool own = entry.has_value() && entry->request < requests_ &&
                     entry->request % shard_.count == shard_.index;
    if (!own) return std::nullopt;
    entry->offset = line->offset + line->text.size() - entry->size;
  }
  whole_ = line->offset + line->text.size() + 1;
  return entry;
}

bool HasJournalEnd(const std::string& path) {
  const absl::StatusOr<OpenFile> file = OpenFile::Open(path, O_RDONLY);
  if (!file.ok()) return false;
  constexpr off_t kMostEnd = 128;  // "HASH end RESULTS FAILED\n"
  const off_t size = lseek(file->fd(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - kMostEnd);
  const absl::StatusOr<std::string> tail =
      ReadAt(file->fd(), static_cast<uint64_t>(from), static_cast<size_t>(kMostEnd), path);
  if (!tail.ok()) return false;
  absl::string_view last = *tail;
  if (!absl::ConsumeSuffix(&last, "\n")) return false;
  last.remove_prefix(last.rfind('\n') + 1);  // npos + 1 is 0
  const std::optional<absl::string_view> content = ContentOf(last);
  return content.has_value() && IsEnd(*content);
}

absl::Status RemoveJournal(const std::string& path, const JobIdentity& identity, const Shard& shard,
                           size_t requests) {
  const absl::Status opened = JournalReader::Open(path, identity, shard, requests).status();
  if (absl::IsNotFound(opened)) return absl::OkStatus();
  // Those of other jobs and shards are journals, too.
  if (!opened.ok() && !absl::IsFailedPrecondition(opened)) return opened;
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be removed"));
}

absl::StatusOr<Journal> Journal::Open(const std::string& path, const JobIdentity& identity,
                                      const Shard& shard, size_t requests, bool restart) {
  INLAY_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(path));
  auto reader = JournalReader::Open(path, identity, shard, requests);
  if (restart && !(reader.ok() && reader->restarts())) {
    INLAY_RETURN_IF_ERROR(RemoveJournal(path, identity, shard, requests));
    reader = JournalReader::Open(path, identity, shard, requests);
  }
  if (absl::IsNotFound(reader.status())) {
    INLAY_ASSIGN_OR_RETURN(AtomicFile file,
                           AtomicFile::Create(path, FileKind::kOther, Replace::kNothing));
    const std::string header = Header(identity, shard, restart);
    INLAY_RETURN_IF_ERROR(
        file.Write({reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
    INLAY_RETURN_IF_ERROR(file.Commit());
    reader = JournalReader::Open(path, identity, shard, requests);
  }
  INLAY_RETURN_IF_ERROR(reader.status());
  INLAY_ASSIGN_OR_RETURN(OpenFile file, OpenFile::Open(path, O_WRONLY | O_APPEND));
  Journal journal(path, shard, std::move(lock), std::move(file));
  INLAY_RETURN_IF_ERROR(OrOutOfMemory("the requests of a job", [&]() -> absl::Status {
    journal.has_.resize(shard.SizeOf(requests));
    while (true) {
      INLAY_ASSIGN_OR_RETURN(const std::optional<JournalEntry> entry, reader->Next());
      if (!entry.has_value()) return absl::OkStatus();
      if (journal.Has(entry->request)) continue;
      journal.has_[entry->request / shard.count] = true;
      ++journal.results_;
      journal.failed_ += entry->status != 200;
    }
  }));
  journal.ended_ = reader->ended();
  if (journal.ended_ && journal.results_ < journal.has_.size()) {
    return absl::DataLossError(absl::StrCat(path, " has an end, but ", journal.results_, " of ",
                                            journal.has_.size(),
                                            " results; remove it to have them computed again"));
  }
  journal.size_ = reader->whole();
  if (ftruncate(journal.file_.fd(), static_cast<off_t>(journal.size_)) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be cut off"));
  return journal;
}

bool Journal::exists() const { return HasName(file_.fd(), path_); }

absl::Status Journal::Write(absl::string_view content) {
  return OrOutOfMemory("a result", [&]() -> absl::Status {
    const std::string line = JournalLine(content);
    if (const int error = WriteFully(file_.fd(), line).error; error != 0) {
      // What was written of the line is cut off now, or when the journal is read.
      [[maybe_unused]] const int cut = ftruncate(file_.fd(), static_cast<off_t>(size_));
      return absl::ErrnoToStatus(error, absl::StrCat(path_, " cannot be written"));
    }
    size_ += line.size();
    synced_ = false;
    return absl::OkStatus();
  });
}

absl::Status Journal::Append(size_t request, int status, absl::string_view line) {
  assert(!Has(request) && request % shard_.count == shard_.index && !ended_);
  INLAY_RETURN_IF_ERROR(Write(absl::StrCat(request, " ", status, " ", line)));
  has_[request / shard_.count] = true;
  ++results_;
  failed_ += status != 200;
  return absl::OkStatus();
}

absl::Status Journal::Sync() {
  if (synced_) return absl::OkStatus();
  if (fdatasync(file_.fd()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, " cannot be synced"));
  synced_ = true;
  return absl::OkStatus();
}

absl::Status Journal::End() {
  assert(results_ == has_.size());
  if (ended_) return absl::OkStatus();
  INLAY_RETURN_IF_ERROR(Write(absl::StrCat("end ", results_, " ", failed_)));
  ended_ = true;
  return Sync();
}

}  // namespace inlay::serve
