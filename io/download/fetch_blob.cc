#include "io/download/fetch_blob.h"

#include <sys/stat.h>

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/download/blob_digest.h"
#include "io/download/hub_reply.h"
#include "io/download/incomplete_file.h"
#include "io/file/file_lock.h"

namespace inlay {
namespace {

constexpr absl::Duration kLockPause = absl::Milliseconds(100);

// "bytes 100-999/1000"
struct ContentRange {
  uint64_t first = 0;
  std::optional<uint64_t> total;
};

std::optional<ContentRange> ParseContentRange(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "bytes ")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> range = absl::StrSplit(text, '/');
  ContentRange result;
  uint64_t total = 0;
  if (!absl::SimpleAtoi(range.first.substr(0, range.first.find('-')), &result.first))
    return std::nullopt;
  if (absl::SimpleAtoi(range.second, &total)) result.total = total;
  return result;
}

// Waits while another process has the lock.
absl::StatusOr<FileLock> WaitForLock(const std::string& path, const BlobRequest& request,
                                     const PullObserver& observer) {
  for (bool told = false;;) {
    auto lock = FileLock::Acquire(path);
    if (!absl::IsUnavailable(lock.status())) return lock;
    if (!std::exchange(told, true) && observer.note)
      observer.note(absl::StrCat("another program is getting ", PrintableName(request.what),
                                 "; waiting for it"));
    INLAY_RETURN_IF_ERROR(observer.CheckCancelled());
    absl::SleepFor(kLockPause);
  }
}

BlobDigest::Kind DigestKind(absl::string_view hash) {
  return hash.size() == 64 ? BlobDigest::Kind::kSha256 : BlobDigest::Kind::kGitBlob;
}

// One blob on its way into the cache.
class BlobTransfer {
 public:
  BlobTransfer(HttpGetter& getter, const BlobRequest& request, IncompleteFile file,
               BlobDigest digest, const std::function<void(uint64_t)>& at)
      : getter_(getter),
        request_(request),
        file_(std::move(file)),
        digest_(std::move(digest)),
        at_(at) {}

  uint64_t transferred() const { return transferred_; }

  // Goes on until all bytes are there, and checks them.
  absl::Status Run(const RetryPolicy& policy, const PullObserver& observer) {
    if (file_.size() > request_.size) {
      INLAY_RETURN_IF_ERROR(file_.Clear());
    } else if (file_.size() > 0) {
      has_old_ = true;
      INLAY_RETURN_IF_ERROR(file_.Read([&](auto bytes) { return digest_.Update(bytes); }));
    }
    while (true) {
      at_(file_.size());
      INLAY_RETURN_IF_ERROR(GetRest(policy, observer));
      INLAY_ASSIGN_OR_RETURN(const std::string hash, digest_.Finish());
      if (hash == request_.hash) return file_.Complete();
      if (!has_old_) {
        file_.Remove();
        return absl::DataLossError(absl::StrCat(PrintableName(request_.what),
                                                " arrived damaged: its hash is ", hash,
                                                ", and the hub says ", request_.hash));
      }
      if (observer.note)
        observer.note(absl::StrCat("what an earlier download of ", PrintableName(request_.what),
                                   " left was damaged; starting over"));
      INLAY_RETURN_IF_ERROR(StartOver());
    }
  }

 private:
  absl::Status StartOver() {
    has_old_ = false;
    INLAY_RETURN_IF_ERROR(file_.Clear());
    INLAY_ASSIGN_OR_RETURN(digest_, BlobDigest::Begin(DigestKind(request_.hash), request_.size));
    return absl::OkStatus();
  }

  absl::Status GetRest(const RetryPolicy& policy, const PullObserver& observer) {
    Retry retry(policy, observer);
    // The most bytes that were there: what is sent once more, by a server without ranges, is no
    // progress.
    uint64_t most = file_.size();
    while (file_.size() < request_.size) {
      INLAY_RETURN_IF_ERROR(CheckRoom());
      absl::Duration least;
      const absl::Status status = GetOnce(observer, &least);
      if (status.ok() && file_.size() == request_.size) break;
      if (absl::IsDataLoss(status)) {
        file_.Remove();
        return status;
      }
      if (file_.size() > most) {
        most = file_.size();
        retry.Reset();
      }
      INLAY_RETURN_IF_ERROR(retry.Wait(status.ok() ? Interrupted() : status, least));
    }
    return absl::OkStatus();
  }

  absl::Status Interrupted() const {
    return absl::UnavailableError(
        absl::StrCat("the reply ended after ", file_.size(), " of ", request_.size, " bytes"));
  }

  absl::Status CheckRoom() const {
    const uint64_t needed = request_.size - file_.size();
    const uint64_t free = file_.Free();
    if (free >= needed) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no room on the disk: ", needed, " more bytes of ",
                     PrintableName(request_.what), " are to come, and ", free, " are free"));
  }

  // One request. Ok, or Unavailable, may leave bytes missing.
  absl::Status GetOnce(const PullObserver& observer, absl::Duration* least) {
    HttpGet get = {.url = request_.url, .offset = resumes_ ? file_.size() : 0};
    if (get.offset == 0 && file_.size() > 0) INLAY_RETURN_IF_ERROR(StartOver());
    get.on_head = [&](const HttpReplyHead& head) { return CheckHead(head, get.offset); };
    get.on_body = [&](absl::Span<const uint8_t> bytes) -> absl::Status {
      if (bytes.size() > request_.size - file_.size()) {
        return absl::DataLossError(absl::StrCat(PrintableName(request_.what), " has more than the ",
                                                request_.size, " bytes that the hub says"));
      }
      INLAY_RETURN_IF_ERROR(file_.Append(bytes));
      INLAY_RETURN_IF_ERROR(digest_.Update(bytes));
      transferred_ += bytes.size();
      at_(file_.size());
      return observer.CheckCancelled();
    };
    INLAY_ASSIGN_OR_RETURN(const HttpReplyHead head, getter_.Get(get));
    if (head.succeeded()) return absl::OkStatus();
    *least = RetryAfter(head, absl::Now());
    if (head.status == 416 && get.offset > 0) {  // that there is nothing from there on
      resumes_ = false;
      return absl::UnavailableError("the server does not go on where the download was interrupted");
    }
    return RefusalOf(head, request_.what, request_.endpoint, request_.has_token);
  }

  // Whether a reply is the one asked for. A server that sends all bytes again is taken at its word.
  absl::Status CheckHead(const HttpReplyHead& head, uint64_t offset) {
    INLAY_RETURN_IF_ERROR(CheckMetadata(head));
    if (!head.succeeded()) return absl::OkStatus();
    if (head.status == 206) {
      const auto range = ParseContentRange(head.Header("content-range"));
      if (range.has_value() && range->first == offset &&
          range->total.value_or(request_.size) == request_.size)
        return absl::OkStatus();
      resumes_ = false;
      return absl::UnavailableError(absl::StrCat("the server sends other bytes (",
                                                 PrintableName(head.Header("content-range")),
                                                 ") than those from ", offset, " on"));
    }
    if (head.status != 200) {
      return absl::FailedPreconditionError(absl::StrCat("the server replies to the request for ",
                                                        PrintableName(request_.what), " with HTTP ",
                                                        head.status));
    }
    uint64_t length = 0;
    if (absl::SimpleAtoi(head.Header("content-length"), &length) && length != request_.size) {
      return absl::FailedPreconditionError(
          absl::StrCat("the server sends ", length, " bytes for ", PrintableName(request_.what),
                       ", and the hub says that it has ", request_.size));
    }
    return offset > 0 ? StartOver() : absl::OkStatus();
  }

  // The hub names commit, size and hash in its own reply, which may redirect to another server.
  // That server's etag is one of its own.
  absl::Status CheckMetadata(const HttpReplyHead& head) const {
    const auto differs = [](absl::string_view value, absl::string_view expected) {
      return !value.empty() && value != expected;
    };
    if (!differs(head.Header("x-repo-commit"), request_.commit) &&
        !differs(head.Header("x-linked-size"), absl::StrCat(request_.size)) &&
        !differs(TagOf(head.Header("x-linked-etag")), request_.hash))
      return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("the hub contradicts itself about the commit, size or hash of ",
                     PrintableName(request_.what), "; try again"));
  }

  HttpGetter& getter_;
  const BlobRequest& request_;
  IncompleteFile file_;
  BlobDigest digest_;
  const std::function<void(uint64_t)>& at_;
  uint64_t transferred_ = 0;
  // Whether some of the bytes are of an earlier process; if they are wrong, that is no error yet.
  bool has_old_ = false;
  bool resumes_ = true;  // false once the server failed to send the rest of a file
};

}  // namespace

bool HasBlob(const HubCache& cache, const BlobRequest& request) {
  struct stat info;
  return stat(cache.BlobPath(request.name, request.hash).c_str(), &info) == 0 &&
         S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) == request.size;
}

absl::StatusOr<uint64_t> FetchBlob(HttpGetter& getter, const HubCache& cache,
                                   const BlobRequest& request, const RetryPolicy& policy,
                                   const PullObserver& observer,
                                   const std::function<void(uint64_t)>& at) {
  if (HasBlob(cache, request)) return 0;
  INLAY_RETURN_IF_ERROR(cache.MakeFolders(request.name));
  INLAY_ASSIGN_OR_RETURN(
      const FileLock lock,
      WaitForLock(cache.LockPath(request.name, request.hash), request, observer));
  if (HasBlob(cache, request)) return 0;  // the other process got it
  INLAY_ASSIGN_OR_RETURN(IncompleteFile file,
                         IncompleteFile::Open(cache.BlobPath(request.name, request.hash)));
  INLAY_ASSIGN_OR_RETURN(BlobDigest digest,
                         BlobDigest::Begin(DigestKind(request.hash), request.size));
  BlobTransfer transfer(getter, request, std::move(file), std::move(digest), at);
  INLAY_RETURN_IF_ERROR(transfer.Run(policy, observer));
  return transfer.transferred();
}

}  // namespace inlay
