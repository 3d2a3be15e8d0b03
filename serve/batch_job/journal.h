// The results of a shard as they come, so that a job goes on after any end of its process.
//
// A journal is a text file. Each line begins with the hash (XXH64, 16 hexadecimal digits) of what
// follows on it after a space:
//
//   HASH {"inlay_batch": 2, "shard": "0/4", "restart": true, "job": the job's identity}
//   HASH REQUEST STATUS RESULT     (the request's number, its HTTP status, the line of the output)
//   HASH end RESULTS FAILED        (once each request of the shard has its result)
//
// The first line is there from the beginning, since the file appears with it; "restart" tells that
// a restart of the job began the journal, and is false where it is missing. Of several results of a
// request the last one counts, and of several ends one that is the last line. " retried" follows
// FAILED where JournalMode::retry_failed was set.
//
// A process that is killed leaves at most its last line incomplete, which is cut off. A loss of
// power may leave anything after what was synced, and a disk or a person may damage any line: one
// whose hash is wrong is left out, and what it held is computed again.
#ifndef INLAY_SERVE_BATCH_JOB_JOURNAL_H_
#define INLAY_SERVE_BATCH_JOB_JOURNAL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file/file_lock.h"
#include "io/file/line_source.h"
#include "io/file/open_file.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/shard.h"

namespace inlay::serve {

// A result that a journal has.
struct JournalEntry {
  size_t request = 0;
  int status = 0;
  uint64_t offset = 0;  // of its line of the output, in the journal
  size_t size = 0;      // bytes of that line, without a newline
};

// What a journal's first line says.
struct JournalHeader {
  std::string shard;     // Shard::Text()
  bool restart = false;  // a restart of the job began it
  JobIdentity job;
};

// NotFound where there is no file; InvalidArgument where it is no journal; FailedPrecondition, with
// a sentence that names the version, where it is a journal of another one.
absl::StatusOr<JournalHeader> ReadJournalHeader(const std::string& path);

// Reads a journal, which may grow meanwhile.
class JournalReader {
 public:
  // The errors of ReadJournalHeader, and FailedPrecondition for a journal of another job or shard,
  // with a sentence that says which (see CheckSameJob).
  static absl::StatusOr<JournalReader> Open(const std::string& path, const JobIdentity& identity,
                                            const Shard& shard, size_t requests);

  // The next result; nothing after the last one. It never tells a request that the shard does not
  // have. The same one may come again: where it was retried, or where two processes have written
  // the journal on a file system without locks. The last one counts.
  absl::StatusOr<std::optional<JournalEntry>> Next();

  // Whether a restart of the job began the journal.
  bool restarts() const { return restarts_; }
  // Whether the journal's last line is its end; known once Next() has returned nothing.
  bool ended() const { return ended_; }
  // Lines that were read and left out, as they are damaged.
  size_t damaged() const { return damaged_; }
  // The bytes of the lines that were read: all but a last one without a newline.
  uint64_t whole() const { return whole_; }
  // The same without the end, where that is the last line.
  uint64_t without_end() const { return ended_ ? end_ : whole_; }
  int fd() const { return file_.fd(); }

 private:
  JournalReader(std::string path, OpenFile file, Shard shard, size_t requests);

  std::string path_;
  OpenFile file_;
  Shard shard_;
  size_t requests_;
  std::unique_ptr<LineSource> lines_;
  uint64_t whole_ = 0;
  uint64_t end_ = 0;  // the offset of the last end
  size_t damaged_ = 0;
  bool restarts_ = false;
  bool ended_ = false;
};

// What a journal's end says.
struct JournalEnd {
  size_t failed = 0;     // results with a status other than 200
  bool retried = false;  // JournalMode::retry_failed was set, so that `failed` have failed again
};

// The end that is the file's last line, without reading the rest. Nothing where there is none, or
// no file.
std::optional<JournalEnd> FindJournalEnd(const std::string& path);

// Removes a journal of any job, shard and version, if it is there; another file stays:
// InvalidArgument.
absl::Status RemoveJournal(const std::string& path);

// What a job does with results that are kept.
struct JournalMode {
  // Discard a journal that exists, unless a restart of the same job and shard began it: else a
  // restart that is interrupted again and again would never be done.
  bool restart = false;
  // Have requests answered again whose results have a status other than 200.
  bool retry_failed = false;
};

// A journal that is written. One process at a time has it.
class Journal {
 public:
  // Begins the journal, or goes on with one of the same job and shard. Unavailable when another
  // process has it, otherwise the errors of JournalReader::Open.
  static absl::StatusOr<Journal> Open(const std::string& path, const JobIdentity& identity,
                                      const Shard& shard, size_t requests, const JournalMode& mode);

  const std::string& path() const { return path_; }
  bool Has(size_t request) const { return has_[request / shard_.count]; }
  size_t results() const { return results_; }
  size_t failed() const { return failed_; }    // of these, how many have a status other than 200
  size_t retried() const { return retried_; }  // results that JournalMode::retry_failed leaves out
  size_t damaged() const { return damaged_; }  // lines that were left out
  bool ended() const { return ended_; }
  // Whether the file still has its name: the process that joins the shards removes it.
  bool exists() const;

  // Appends the result of a request that has none: its HTTP status and its line of the output. It
  // outlives this process, and a loss of power once Sync() has returned. After an error the journal
  // is as it was, or is read so.
  absl::Status Append(size_t request, int status, absl::string_view line);
  absl::Status Sync();
  // Every request has its result.
  absl::Status End();

 private:
  Journal(std::string path, Shard shard, bool retries, FileLock lock, OpenFile file)
      : path_(std::move(path)),
        shard_(shard),
        retries_(retries),
        lock_(std::move(lock)),
        file_(std::move(file)) {}
  // What the journal has.
  absl::Status Read(JournalReader& reader);
  absl::Status Write(absl::string_view content);

  std::string path_;
  Shard shard_;
  bool retries_;  // JournalMode::retry_failed
  FileLock lock_;
  OpenFile file_;
  uint64_t size_ = 0;      // bytes
  std::vector<bool> has_;  // of the shard's requests
  size_t results_ = 0;
  size_t failed_ = 0;
  size_t retried_ = 0;
  size_t damaged_ = 0;
  bool ended_ = false;
  bool synced_ = true;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_JOURNAL_H_
