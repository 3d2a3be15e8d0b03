#include "serve/batch_job/kept_journals.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/out_of_memory.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/file/file_lock.h"
#include "serve/batch_job/journal.h"
#include "serve/batch_job/result_file.h"

namespace inlay::serve {
namespace {

constexpr size_t kMostNamed = 4;

// Where the journals of a job's shards are, that of `first` first.
std::vector<std::string> JournalPaths(const std::string& out, const Shard& first) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < first.count; ++i) {
    paths.push_back(
        JournalPath(out, {.index = (first.index + i) % first.count, .count = first.count}));
  }
  return paths;
}

// The shard whose journal has this name beside an output of the name `out`, as JournalPath has it.
std::optional<Shard> ShardOfName(absl::string_view name, absl::string_view out) {
  if (!absl::ConsumePrefix(&name, out) || !absl::ConsumePrefix(&name, ".part")) return std::nullopt;
  if (name.empty()) return Shard{};
  if (!absl::ConsumePrefix(&name, ".")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> numbers = absl::StrSplit(name, "-of-");
  Shard shard;
  const bool is_shard = absl::SimpleAtoi(numbers.first, &shard.index) &&
                        absl::SimpleAtoi(numbers.second, &shard.count);
  return is_shard && shard.index < shard.count ? std::optional(shard) : std::nullopt;
}

// The journals beside `out` that are of another number of shards, in their order.
absl::StatusOr<std::vector<Shard>> OtherCounts(const std::string& out, size_t shards) {
  const std::filesystem::path path = out;
  const std::string name = path.filename();
  std::filesystem::path folder = path.parent_path();
  if (folder.empty()) folder = ".";
  std::vector<Shard> others;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::optional<Shard> shard = ShardOfName(at->path().filename().string(), name);
    if (!shard.has_value() || shard->count == shards) continue;
    const absl::Status header = ReadJournalHeader(JournalPath(out, *shard)).status();
    const bool other_version = absl::IsFailedPrecondition(header);
    if (header.ok() || other_version) others.push_back(*shard);
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("the folder ", folder.string(), " cannot be read"));
  }
  std::sort(others.begin(), others.end(), [](const Shard& a, const Shard& b) {
    return std::pair(a.count, a.index) < std::pair(b.count, b.index);
  });
  return others;
}

absl::Status CheckOthers(const std::string& out, size_t shards, bool restart) {
  INLAY_ASSIGN_OR_RETURN(const std::vector<Shard> others, OtherCounts(out, shards));
  if (others.empty()) return absl::OkStatus();
  if (restart) {
    for (const Shard& shard : others) {
      const std::string path = JournalPath(out, shard);
      INLAY_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(path));
      INLAY_RETURN_IF_ERROR(RemoveJournal(path));
    }
    return absl::OkStatus();
  }
  const size_t count = others.front().count;
  std::vector<std::string> names;
  for (size_t i = 0; i < others.size() && i < kMostNamed; ++i)
    names.push_back(PrintableName(JournalPath(out, others[i])));
  if (others.size() > kMostNamed)
    names.push_back(absl::StrCat(others.size() - kMostNamed, " more"));
  return absl::FailedPreconditionError(
      absl::StrCat(absl::StrJoin(names, ", "), others.size() == 1 ? " has" : " have",
                   " results of this output in ", Plural(count, "shard"), ", not in ", shards,
                   ": with --shard ", count == 1 ? "0" : "I", "/", count,
                   ", as before, the job goes on, and --restart discards these results"));
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> FindJobTime(const std::string& out, const Shard& shard,
                                                   const std::string& input, bool restart) {
  return OrOutOfMemory("the time of a job", [&]() -> absl::StatusOr<std::optional<int64_t>> {
    for (const std::string& path : JournalPaths(out, shard)) {
      const absl::StatusOr<JournalHeader> header = ReadJournalHeader(path);
      if (header.ok() && (!restart || header->restart) && header->job.input == input)
        return header->job.time;
    }
    if (restart) return std::nullopt;
    return CreationTimeIn(out);
  });
}

absl::Status CheckOtherShards(const std::string& out, const JobIdentity& identity,
                              const Shard& shard) {
  return OrOutOfMemory("the shards of a job", [&]() -> absl::Status {
    for (const std::string& path : JournalPaths(out, shard)) {
      if (path == JournalPath(out, shard)) continue;
      const absl::StatusOr<JournalHeader> header = ReadJournalHeader(path);
      const bool other_version = absl::IsFailedPrecondition(header.status());
      if (other_version) return header.status();
      // Another file in its place is an error once it is to be joined.
      if (header.ok()) INLAY_RETURN_IF_ERROR(CheckSameJob(path, header->job, identity));
    }
    return absl::OkStatus();
  });
}

absl::Status CheckOtherCounts(const std::string& out, size_t shards, bool restart) {
  return OrOutOfMemory("the shards of a job", [&] { return CheckOthers(out, shards, restart); });
}

}  // namespace inlay::serve
