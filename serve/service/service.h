// What the server replies to each request.
#ifndef INLAY_SERVE_SERVICE_SERVICE_H_
#define INLAY_SERVE_SERVICE_SERVICE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/load_model.h"
#include "serve/http/http_server.h"
#include "serve/service/api_keys.h"
#include "serve/service/service_options.h"

namespace inlay::serve {

// Replies to requests with the answers of one model. Safe to use from several threads.
class Service {
 public:
  // `model` and `keys` must outlive the service. Without a renderer (a model that knows no chats)
  // chats are refused with its error. Errors: those of MakeFingerprint, SharedPrefixes::Create and
  // Scheduler::Create.
  static absl::StatusOr<std::unique_ptr<Service>> Create(const LoadedModel& model,
                                                         absl::StatusOr<ChatRenderer> renderer,
                                                         const ApiKeys& keys,
                                                         ServiceOptions options);
  virtual ~Service() = default;

  // See HttpOptions::admit: without a key only what is open to all is let in, and no body. With
  // one, no body to a path that does not exist.
  virtual std::optional<Refusal> Admit(const HttpRequest& request, bool has_body) const = 0;

  // See HttpOptions::on_refusal: counts it among the replies, logs it, and tells
  // ServiceOptions::note of a 500 or 503.
  virtual void OnRefusal(absl::string_view id, absl::string_view path, int status,
                         absl::string_view message) noexcept = 0;

  // See HttpHandler.
  virtual void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) = 0;

  // Refuses new answers and embeddings, and returns once the others have ended: those that have not
  // after `most` with Unavailable. Within that time, or within five seconds where it is less, it
  // also waits until the turns of sessions that have ended are stored.
  virtual void Drain(absl::Duration most) = 0;

  // How /metrics learns of open connections.
  virtual void CountConnections(std::function<size_t()> count) = 0;

  // What determines the bytes of an answer besides its request: see Fingerprints::service.
  virtual const std::string& service_fingerprint() const = 0;

  // OK while the model can be read. Else why it cannot, which fails every answer from now on; the
  // message names the file, and is for the operator.
  virtual absl::Status weights() const = 0;

  // The longest conversation in tokens, or text where the model embeds: see Scheduler::context().
  virtual size_t context() const = 0;

 protected:
  Service() = default;
};

// The body of an error that the HTTP server itself replies with, in the shape that clients of this
// path expect.
std::string HttpErrorBody(absl::string_view path, int status, absl::string_view message);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SERVICE_H_
