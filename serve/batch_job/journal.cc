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
constexpr int kVersion = 2;
// Bytes of a first line at most. All in it is short but for the defaults, which a command line has.
constexpr size_t kMostHeaderLine = size_t{4} << 20;

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

constexpr char kRetried[] = " retried";

// "end RESULTS FAILED" and perhaps kRetried.
std::optional<JournalEnd> EndOf(absl::string_view content) {
  if (!absl::ConsumePrefix(&content, "end ")) return std::nullopt;
  JournalEnd end;
  end.retried = absl::ConsumeSuffix(&content, kRetried);
  const std::pair<absl::string_view, absl::string_view> numbers = absl::StrSplit(content, ' ');
  return absl::SimpleAtoi(numbers.second, &end.failed) ? std::optional(end) : std::nullopt;
}

std::string Header(const JobIdentity& identity, const Shard& shard, bool restart) {
  return JournalLine(DumpJson({{"inlay_batch", kVersion},
                               {"shard", shard.Text()},
                               {"restart", restart},
                               {"job", ToJson(identity)}}));
}

absl::StatusOr<JournalHeader> ParseHeader(const std::string& path,
                                          const std::optional<LineSource::Line>& line) {
  const auto no_journal = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " exists and is not the journal of a batch job (its first line is damaged, or "
                     "it is another file): remove it, or give another -o"));
  };
  if (!line.has_value() || !line->ended) return no_journal();
  const std::optional<absl::string_view> content = ContentOf(line->text);
  if (!content.has_value()) return no_journal();
  INLAY_ASSIGN_OR_RETURN(const JsonDocument header, ParseJson("the journal's header", *content));
  const Json& version = JsonMember(*header, "inlay_batch");
  if (!version.is_number_integer()) return no_journal();
  if (version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has results in version ", DumpJson(version),
                     " of the journal, and this program reads version ", kVersion,
                     ": the program that wrote them goes on with the job, and --restart discards "
                     "these results"));
  }
  const Json& shard = JsonMember(*header, "shard");
  if (!shard.is_string()) return no_journal();
  return JournalHeader{.shard = JsonString(shard),
                       .restart = JsonMember(*header, "restart") == true,
                       .job = IdentityOf(JsonMember(*header, "job"))};
}

// What the first line says. Another file in the journal's place may have any length.
absl::StatusOr<JournalHeader> ReadHeader(const OpenFile& file, const std::string& path) {
  LineSource lines(file.fd(), path, kMostHeaderLine);
  const absl::StatusOr<std::optional<LineSource::Line>> line = lines.Next();
  const bool too_long = absl::IsInvalidArgument(line.status());
  if (too_long) return ParseHeader(path, std::nullopt);
  INLAY_RETURN_IF_ERROR(line.status());
  return ParseHeader(path, *line);
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
  INLAY_ASSIGN_OR_RETURN(const JournalHeader header, ReadHeader(file, path));
  INLAY_RETURN_IF_ERROR(CheckSameJob(path, header.job, identity));
  if (header.shard != shard.Text()) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has results of shard ",
                                                      PrintableName(header.shard), " and not of ",
                                                      shard.Text(), "; --restart discards them"));
  }
  JournalReader reader(path, std::move(file), shard, requests);
  INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> line, reader.lines_->Next());
  if (!line.has_value()) return absl::DataLossError(absl::StrCat(path, " has become shorter"));
  reader.restarts_ = header.restart;
  reader.whole_ = line->text.size() + 1;
  return reader;
}

absl::StatusOr<std::optional<JournalEntry>> JournalReader::Next() {
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const std::optional<LineSource::Line> line, lines_->Next());
    if (!line.has_value() || !line->ended) return std::nullopt;
    whole_ = line->offset + line->text.size() + 1;
    const std::optional<absl::string_view> content = ContentOf(line->text);
    ended_ = content.has_value() && EndOf(*content).has_value();
    if (ended_) {
      end_ = line->offset;
      continue;
    }
    std::optional<JournalEntry> entry = content.has_value() ? EntryOf(*content) : std::nullopt;
    const bool own = entry.has_value() && entry->request < requests_ &&
                     entry->request % shard_.count == shard_.index;
    if (own) {
      entry->offset = line->offset + line->text.size() - entry->size;
      return entry;
    }
    ++damaged_;
  }
}

absl::StatusOr<JournalHeader> ReadJournalHeader(const std::string& path) {
  INLAY_ASSIGN_OR_RETURN(const OpenFile file, OpenFile::Open(path, O_RDONLY));
  return ReadHeader(file, path);
}

std::optional<JournalEnd> FindJournalEnd(const std::string& path) {
  const absl::StatusOr<OpenFile> file = OpenFile::Open(path, O_RDONLY);
  if (!file.ok()) return std::nullopt;
  constexpr off_t kMostEnd = 128;  // "HASH end RESULTS FAILED retried\n"
  const off_t size = lseek(file->fd(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - kMostEnd);
  const absl::StatusOr<std::string> tail =
      ReadAt(file->fd(), static_cast<uint64_t>(from), static_cast<size_t>(kMostEnd), path);
  if (!tail.ok()) return std::nullopt;
  absl::string_view last = *tail;
  if (!absl::ConsumeSuffix(&last, "\n")) return std::nullopt;
  last.remove_prefix(last.rfind('\n') + 1);  // npos + 1 is 0
  const std::optional<absl::string_view> content = ContentOf(last);
  return content.has_value() ? EndOf(*content) : std::nullopt;
}

absl::Status RemoveJournal(const std::string& path) {
  const absl::Status read = ReadJournalHeader(path).status();
  if (absl::IsNotFound(read)) return absl::OkStatus();
  const bool other_version = absl::IsFailedPrecondition(read);
  if (!other_version) INLAY_RETURN_IF_ERROR(read);
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be removed"));
}

absl::StatusOr<Journal> Journal::Open(const std::string& path, const JobIdentity& identity,
                                      const Shard& shard, size_t requests,
                                      const JournalMode& mode) {
  INLAY_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(path));
  auto reader = JournalReader::Open(path, identity, shard, requests);
  if (mode.restart && !(reader.ok() && reader->restarts())) {
    INLAY_RETURN_IF_ERROR(RemoveJournal(path));
    reader = JournalReader::Open(path, identity, shard, requests);
  }
  if (absl::IsNotFound(reader.status())) {
    INLAY_ASSIGN_OR_RETURN(AtomicFile file,
                           AtomicFile::Create(path, FileKind::kOther, Replace::kNothing));
    const std::string header = Header(identity, shard, mode.restart);
    INLAY_RETURN_IF_ERROR(
        file.Write({reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
    INLAY_RETURN_IF_ERROR(file.Commit());
    reader = JournalReader::Open(path, identity, shard, requests);
  }
  INLAY_RETURN_IF_ERROR(reader.status());
  INLAY_ASSIGN_OR_RETURN(OpenFile file, OpenFile::Open(path, O_WRONLY | O_APPEND));
  Journal journal(path, shard, mode.retry_failed, std::move(lock), std::move(file));
  INLAY_RETURN_IF_ERROR(OrOutOfMemory("the requests of a job", [&]() -> absl::Status {
    journal.has_.resize(shard.SizeOf(requests));
    return journal.Read(*reader);
  }));
  if (ftruncate(journal.file_.fd(), static_cast<off_t>(journal.size_)) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be cut off"));
  return journal;
}

absl::Status Journal::Read(JournalReader& reader) {
  std::vector<bool> failed(has_.size());
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const std::optional<JournalEntry> entry, reader.Next());
    if (!entry.has_value()) break;
    has_[entry->request / shard_.count] = true;
    failed[entry->request / shard_.count] = entry->status != 200;
  }
  failed_ = static_cast<size_t>(std::count(failed.begin(), failed.end(), true));
  if (retries_) {
    for (size_t i = 0; i < has_.size(); ++i) has_[i] = has_[i] && !failed[i];
    retried_ = std::exchange(failed_, 0);
  }
  results_ = static_cast<size_t>(std::count(has_.begin(), has_.end(), true));
  damaged_ = reader.damaged();
  ended_ = reader.ended() && results_ == has_.size();
  // The end of a journal that lacks results is cut off: another shard would join it as it is.
  size_ = ended_ ? reader.whole() : reader.without_end();
  return absl::OkStatus();
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
  INLAY_RETURN_IF_ERROR(
      Write(absl::StrCat("end ", results_, " ", failed_, retries_ ? kRetried : "")));
  ended_ = true;
  return Sync();
}

}  // namespace inlay::serve
