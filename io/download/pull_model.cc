#include "io/download/pull_model.h"

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/download/fetch_blob.h"
#include "io/download/http_getter.h"
#include "io/download/hub_reply.h"
#include "io/hub/choose_file.h"
#include "io/hub/repo_listing.h"

namespace inlay {
namespace {

constexpr absl::Duration kReplyTime = absl::Minutes(2);  // for a list or a HEAD request

// A path as part of an address: RFC 3986's unreserved characters and slashes stay.
std::string PercentEncoded(absl::string_view path) {
  std::string encoded;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || absl::StrContains("-._~/", absl::string_view(&c, 1))) {
      encoded.push_back(c);
    } else {
      absl::StrAppend(&encoded, "%", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return encoded;
}

class Puller {
 public:
  Puller(const HubName& name, const PullOptions& options, const PullObserver& observer)
      : name_(name), options_(options), observer_(observer), cache_(options.cache_folder) {}

  absl::StatusOr<PulledModel> Run() {
    if (options_.access.offline) return FromCache(absl::NotFoundError("HF_HUB_OFFLINE is set"));
    auto model = FromHub();
    // A failure that may pass takes nothing from a model that is here, whichever request it meets.
    return absl::IsUnavailable(model.status()) ? FromCache(model.status()) : std::move(model);
  }

 private:
  absl::StatusOr<PulledModel> FromHub() {
    INLAY_ASSIGN_OR_RETURN(getter_, HttpGetter::Create(options_.access));
    INLAY_ASSIGN_OR_RETURN(const RepoListing listing, List());
    INLAY_ASSIGN_OR_RETURN(std::vector<BlobRequest> blobs, Choose(listing));
    return Fetch(listing, std::move(blobs));
  }

  // `why` the hub is not asked further.
  absl::StatusOr<PulledModel> FromCache(const absl::Status& why) {
    auto files = cache_.Find(name_);
    if (!files.ok()) {
      return absl::Status(why.code(),
                          absl::StrCat(why.message(), ", and ", files.status().message()));
    }
    if (observer_.note)
      observer_.note(absl::StrCat(why.message(), "; using the files in the cache"));
    PulledModel model;
    model.files = *std::move(files);
    model.type = QuantizationOf(model.files.front());
    for (const std::string& file : model.files) {
      struct stat info;
      if (stat(file.c_str(), &info) == 0) model.bytes += static_cast<uint64_t>(info.st_size);
    }
    return model;
  }

  // What the repository has. With files in the cache a failure is not worth waiting.
  absl::StatusOr<RepoListing> List() {
    const bool is_cached = cache_.Find(name_).ok();
    Retry retry(options_.retry, observer_);
    while (true) {
      absl::Duration least;
      auto listing = ListOnce(&least);
      if (!absl::IsUnavailable(listing.status()) || is_cached) return listing;
      INLAY_RETURN_IF_ERROR(retry.Wait(listing.status(), least));
    }
  }

  absl::StatusOr<RepoListing> ListOnce(absl::Duration* least) {
    std::string body;
    HttpGet get = {.url = absl::StrCat(options_.access.endpoint, "/api/models/", name_.Id(),
                                       "/revision/main?blobs=true"),
                   .time_limit = kReplyTime};
    get.on_body = [&](absl::Span<const uint8_t> bytes) -> absl::Status {
      if (bytes.size() > kMostListingBytes - body.size()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the hub's reply for ", name_.Id(), " is longer than ", kMostListingBytes, " bytes"));
      }
      body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return absl::OkStatus();
    };
    INLAY_ASSIGN_OR_RETURN(const HttpReplyHead head, getter_->Get(get));
    if (head.succeeded()) return ParseRepoListing(name_.Id(), body);
    *least = RetryAfter(head, absl::Now());
    return RefusalOf(head, name_.Id(), options_.access.endpoint, has_token());
  }

  absl::StatusOr<std::vector<BlobRequest>> Choose(const RepoListing& listing) {
    std::vector<std::string> paths;
    for (const HubFile& file : listing.files) paths.push_back(file.path);
    INLAY_ASSIGN_OR_RETURN(const std::vector<size_t> chosen,
                           ChooseFiles(paths, name_.type, name_.Id()));
    std::vector<BlobRequest> blobs;
    for (const size_t i : chosen) {
      const HubFile& file = listing.files[i];
      paths_.push_back(file.path);
      BlobRequest blob = {
          .name = name_,
          .what = absl::StrCat(name_.Id(), ", ", file.path),
          .url = absl::StrCat(options_.access.endpoint, "/", name_.Id(), "/resolve/",
                              listing.commit, "/", PercentEncoded(file.path)),
          .commit = listing.commit,
          .size = file.size.value_or(0),
          .hash = file.hash,
          .endpoint = options_.access.endpoint,
          .has_token = has_token()};
      if (!file.size.has_value() || file.hash.empty()) INLAY_RETURN_IF_ERROR(AskForHash(&blob));
      blobs.push_back(std::move(blob));
    }
    return blobs;
  }

  // For hubs whose lists have names alone.
  absl::Status AskForHash(BlobRequest* blob) {
    Retry retry(options_.retry, observer_);
    while (true) {
      absl::Duration least;
      const absl::Status status = AskForHashOnce(blob, &least);
      if (!absl::IsUnavailable(status)) return status;
      INLAY_RETURN_IF_ERROR(retry.Wait(status, least));
    }
  }

  absl::Status AskForHashOnce(BlobRequest* blob, absl::Duration* least) {
    INLAY_ASSIGN_OR_RETURN(
        const HttpReplyHead head,
        getter_->Get({.url = blob->url, .head_only = true, .time_limit = kReplyTime}));
    if (!head.succeeded() && !head.redirects()) {
      *least = RetryAfter(head, absl::Now());
      return RefusalOf(head, blob->what, blob->endpoint, blob->has_token);
    }
    const std::optional<uint64_t> size = SizeOf(head);
    blob->hash = HashOf(head);
    blob->size = size.value_or(0);
    if (size.has_value() && !blob->hash.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("the hub names no size and hash for ",
                                                      PrintableName(blob->what),
                                                      ", by which it could be checked"));
  }

  absl::StatusOr<PulledModel> Fetch(const RepoListing& listing, std::vector<BlobRequest> blobs) {
    PulledModel model;
    model.type = QuantizationOf(paths_.front());
    for (const BlobRequest& blob : blobs) model.bytes += blob.size;
    uint64_t before = 0;  // bytes of the files that are there
    for (const BlobRequest& blob : blobs) {
      const auto at = [&](uint64_t bytes) {
        if (observer_.progress) observer_.progress(before + bytes, model.bytes);
      };
      INLAY_ASSIGN_OR_RETURN(const uint64_t transferred,
                             FetchBlob(*getter_, cache_, blob, options_.retry, observer_, at));
      model.transferred += transferred;
      before += blob.size;
    }
    // The first part last: who looks for a model looks for it.
    for (size_t i = blobs.size(); i-- > 0;)
      INLAY_RETURN_IF_ERROR(cache_.Link(name_, listing.commit, paths_[i], blobs[i].hash));
    INLAY_RETURN_IF_ERROR(cache_.WriteRef(name_, listing.commit));
    for (const std::string& path : paths_)
      model.files.push_back(cache_.SnapshotPath(name_, listing.commit, path));
    return model;
  }

  bool has_token() const { return !options_.access.token.empty(); }

  const HubName& name_;
  const PullOptions& options_;
  const PullObserver& observer_;
  const HubCache cache_;
  std::unique_ptr<HttpGetter> getter_;
  std::vector<std::string> paths_;  // of the chosen files, in the repository
};

}  // namespace

absl::StatusOr<PulledModel> PullModel(const HubName& name, const PullOptions& options,
                                      const PullObserver& observer) {
  return OrOutOfMemory("pulling a model", [&] { return Puller(name, options, observer).Run(); });
}

}  // namespace inlay
