// A request with its reply and its client.
#ifndef INLAY_SERVE_SERVICE_VISIT_H_
#define INLAY_SERVE_SERVICE_VISIT_H_

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "io/json/parse_json.h"
#include "serve/api/call.h"
#include "serve/api/reply.h"
#include "serve/http/http_server.h"
#include "serve/service/access_log.h"
#include "serve/service/api_keys.h"
#include "serve/service/failures.h"

namespace inlay::serve {

// What clients are told of repeating a request that failed so. They repeat most by themselves; one
// that nothing here can answer, or not within its time, would fail again.
inline HttpHeaders RetryHeaders(const absl::Status& status) {
  if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status))
    return {{"Retry-After", "1"}};
  if (absl::IsUnimplemented(status) || absl::IsDeadlineExceeded(status))
    return {{"x-should-retry", "false"}};
  return {};
}

// What a route has to know of a request, and how it replies to it.
struct Visit {
  HttpRequest request;
  std::shared_ptr<HttpReply> reply;
  ApiClient client;
  Protocol protocol;
  absl::Time deadline = absl::InfiniteFuture();  // of the answer; see SteadyNow()
  std::shared_ptr<Failures> failures = nullptr;  // which errors are told to; null: nobody
  std::shared_ptr<Access> access = nullptr;      // null: requests are not logged

  // For an answer that takes its time: all but the request, whose body would count towards
  // HttpOptions::most_bodies until the answer ends.
  Visit WithoutRequest() const {
    return {.request = {},
            .reply = reply,
            .client = client,
            .protocol = protocol,
            .deadline = deadline,
            .failures = failures,
            .access = access};
  }

  // What the client is told of an error; the operator is told of the server's own: see Failures.
  absl::Status ForClient(const absl::Status& error) const noexcept {
    return failures == nullptr ? error : failures->ForClient(error);
  }

  void Send(Json body) const { SendText(DumpJson(std::move(body))); }
  void SendText(std::string body) const { reply->Send(200, "application/json", std::move(body)); }
  // Replies with an error, also where there is no memory for that, as the status may say.
  void Fail(const absl::Status& error) const noexcept { SendError(ForClient(error)); }
  // The same of one that ForClient has returned.
  void SendError(const absl::Status& status) const noexcept {
    try {
      HttpHeaders headers = RetryHeaders(status);
      if (absl::IsUnauthenticated(status)) headers.emplace_back("WWW-Authenticate", "Bearer");
      reply->Send(HttpStatusOf(status), "application/json", ErrorBody(protocol, status),
                  std::move(headers));
    } catch (const std::exception&) {
      reply->FailWithoutMemory();
    }
  }
};

// Of a request for an answer to a model that gives none.
inline absl::Status EmbedsOnly() {
  return absl::UnimplementedError("this model embeds texts and generates none");
}

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_VISIT_H_
