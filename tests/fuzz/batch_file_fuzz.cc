// Any bytes as the files of a batch job: a file of requests, a line of results, or a journal. Each
// is refused with a sentence in UTF-8, or read within its bounds; of a journal damaged lines are
// left out.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "base/xxh64.h"
#include "io/json/parse_json.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/journal.h"
#include "serve/batch_job/request_file.h"
#include "serve/batch_job/result_line.h"
#include "serve/batch_job/shard.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/refusal.h"

namespace inlay::serve {
namespace {

// A file without a place on a disk.
class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view bytes) : fd_(memfd_create("batch", MFD_CLOEXEC)) {
    INLAY_FUZZ_CHECK(fd_ >= 0 && pwrite(fd_, bytes.data(), bytes.size(), 0) ==
                                     static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { close(fd_); }
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  const int fd_;
};

void CheckRequests(absl::string_view bytes) {
  const MemoryFile file(bytes);
  const absl::StatusOr<RequestFile> requests = RequestFile::Open(file.path());
  if (!IsRead(requests)) return;
  INLAY_FUZZ_CHECK(requests->size() > 0);
  INLAY_FUZZ_CHECK(requests->first_to_embed().has_value() ||
                   requests->first_to_answer().has_value());
  std::set<std::string> ids;
  for (size_t i = 0; i < requests->size(); ++i) {
    const absl::StatusOr<BatchRequest> request = requests->Read(i);
    INLAY_FUZZ_CHECK(request.ok());
    INLAY_FUZZ_CHECK(ids.insert(request->custom_id).second);
    INLAY_FUZZ_CHECK(Json::accept(request->body));
  }
}

void CheckResult(absl::string_view line) {
  const absl::StatusOr<ParsedResult> result = ParseResultLine(line);
  if (!IsRead(result)) return;
  for (const std::string& text : {result->reply_id, result->custom_id, result->model.value_or(""),
                                  result->fingerprint.value_or("")})
    INLAY_FUZZ_CHECK(IsValidUtf8(text));
}

constexpr Shard kShard = {.index = 1, .count = 3};
constexpr size_t kRequests = 20;

// Lines as they are, but that a '#' at the beginning stands for the hash of what follows the space
// after it, which no fuzzer finds.
std::string WithHashes(absl::string_view text) {
  std::string journal;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!journal.empty()) journal += "\n";
    if (line.substr(0, 2) == "# ") {
      const absl::string_view content = line.substr(2);
      absl::StrAppend(&journal,
                      absl::Hex(Xxh64Of(content.data(), content.size()), absl::kZeroPad16), " ",
                      content);
    } else {
      absl::StrAppend(&journal, line);
    }
  }
  return journal;
}

// The lines of a journal that follow its first one, or a whole one.
void CheckJournal(absl::string_view text, bool is_whole) {
  static const std::string* const header =
      new std::string(absl::StrCat("# ",
                                   DumpJson({{"inlay_batch", 2},
                                             {"shard", kShard.Text()},
                                             {"restart", true},
                                             {"job", ToJson(JobIdentity{})}}),
                                   "\n"));
  const std::string bytes = WithHashes(is_whole ? text : absl::StrCat(*header, text));
  const MemoryFile file(bytes);
  absl::StatusOr<JournalReader> journal =
      JournalReader::Open(file.path(), JobIdentity{}, kShard, kRequests);
  INLAY_FUZZ_CHECK(is_whole || journal.ok());
  if (!journal.ok()) {
    INLAY_FUZZ_CHECK(absl::IsInvalidArgument(journal.status()) ||
                     absl::IsFailedPrecondition(journal.status()));
    INLAY_FUZZ_CHECK(IsValidUtf8(journal.status().message()));
    return;
  }
  while (true) {
    const absl::StatusOr<std::optional<JournalEntry>> entry = journal->Next();
    INLAY_FUZZ_CHECK(entry.ok());
    if (!entry->has_value()) break;
    const JournalEntry& result = **entry;
    INLAY_FUZZ_CHECK(result.request < kRequests && result.request % kShard.count == kShard.index);
    INLAY_FUZZ_CHECK(result.offset + result.size < bytes.size());
    INLAY_FUZZ_CHECK(bytes[result.offset + result.size] == '\n');
    INLAY_FUZZ_CHECK(bytes.find('\n', result.offset) == result.offset + result.size);
  }
  INLAY_FUZZ_CHECK(journal->without_end() <= journal->whole() && journal->whole() <= bytes.size());
  INLAY_FUZZ_CHECK(journal->ended() || !FindJournalEnd(file.path()).has_value());
}

}  // namespace
}  // namespace inlay::serve

// The first byte says what the others are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay::serve;
  if (size == 0) return 0;
  const size_t kind = data[0] % 4;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (kind == 0) CheckRequests(bytes);
  if (kind == 1) CheckResult(bytes);
  if (kind > 1) CheckJournal(bytes, /*is_whole=*/kind == 3);
  return 0;
}
