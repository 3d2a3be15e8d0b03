// A reply that the server's figures and its access log have.
#ifndef INLAY_SERVE_SERVICE_RECORDED_REPLY_H_
#define INLAY_SERVE_SERVICE_RECORDED_REPLY_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "serve/http/http_server.h"
#include "serve/service/access_log.h"
#include "serve/service/service_stats.h"

namespace inlay::serve {

// Passes all on. Counts the reply by its status, a stream when it starts, whatever it ends with;
// and logs what `access` was told, which may be null, at the reply's end. What the HTTP server
// itself replies with in its place, as where there is no memory, is counted and logged by
// Service::OnRefusal, under the same id.
class RecordedReply final : public HttpReply {
 public:
  RecordedReply(std::shared_ptr<HttpReply> reply, std::shared_ptr<ReplyCounts> counts,
                std::shared_ptr<Access> access)
      : reply_(std::move(reply)), counts_(std::move(counts)), access_(std::move(access)) {}

  void Send(int status, absl::string_view content_type, std::string body,
            HttpHeaders headers) override {
    Count(status, /*is_stream=*/false);
    if (access_ != nullptr) access_->AddBytes(body.size());
    reply_->Send(status, content_type, std::move(body), std::move(headers));
    End();
  }
  void StartStream(int status, absl::string_view content_type, HttpHeaders headers) override {
    Count(status, /*is_stream=*/true);
    reply_->StartStream(status, content_type, std::move(headers));
  }
  void Write(std::string piece) override {
    if (access_ != nullptr) access_->AddBytes(piece.size());
    reply_->Write(std::move(piece));
  }
  void Finish() override {
    reply_->Finish();
    End();
  }
  void FailWithoutMemory() noexcept override {
    reply_->FailWithoutMemory();
    End();
  }
  void OnGone(std::function<void()> gone) override {
    if (access_ == nullptr) return reply_->OnGone(std::move(gone));
    reply_->OnGone([access = access_, gone = std::move(gone)] {
      access->ClientGone();
      gone();
    });
  }

 private:
  void Count(int status, bool is_stream) {
    if (counted_.exchange(true)) return;
    counts_->Add(status);
    if (access_ != nullptr) access_->StartReply(status, is_stream);
  }
  void End() noexcept {
    if (access_ != nullptr) access_->End();
  }

  const std::shared_ptr<HttpReply> reply_;
  const std::shared_ptr<ReplyCounts> counts_;
  const std::shared_ptr<Access> access_;
  std::atomic<bool> counted_ = false;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_RECORDED_REPLY_H_
