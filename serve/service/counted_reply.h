// A reply that is counted by its status.
#ifndef INLAY_SERVE_SERVICE_COUNTED_REPLY_H_
#define INLAY_SERVE_SERVICE_COUNTED_REPLY_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "serve/http/http_server.h"
#include "serve/service/service_stats.h"

namespace inlay::serve {

// Passes all on. A stream counts when it starts, whatever it ends with. What the HTTP server itself
// replies with in its place, as where there is no memory, counts there: see Service::OnRefusal.
class CountedReply final : public HttpReply {
 public:
  CountedReply(std::shared_ptr<HttpReply> reply, std::shared_ptr<ReplyCounts> counts)
      : reply_(std::move(reply)), counts_(std::move(counts)) {}

  void Send(int status, absl::string_view content_type, std::string body,
            HttpHeaders headers) override {
    Count(status);
    reply_->Send(status, content_type, std::move(body), std::move(headers));
  }
  void StartStream(int status, absl::string_view content_type, HttpHeaders headers) override {
    Count(status);
    reply_->StartStream(status, content_type, std::move(headers));
  }
  void Write(std::string piece) override { reply_->Write(std::move(piece)); }
  void Finish() override { reply_->Finish(); }
  void FailWithoutMemory() noexcept override { reply_->FailWithoutMemory(); }
  void OnGone(std::function<void()> gone) override { reply_->OnGone(std::move(gone)); }

 private:
  void Count(int status) {
    if (!counted_.exchange(true)) counts_->Add(status);
  }

  const std::shared_ptr<HttpReply> reply_;
  const std::shared_ptr<ReplyCounts> counts_;
  std::atomic<bool> counted_ = false;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_COUNTED_REPLY_H_
