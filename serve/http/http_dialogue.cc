// What the bytes of a connection mean: requests, their checks, their replies.
#include <sys/random.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "serve/http/held_body.h"
#include "serve/http/http_connection.h"
#include "serve/http/reply_head.h"
#include "serve/http/request_checks.h"

namespace inlay::serve {
namespace {

// The client's id of the request, or a random one.
std::string RequestId(const HttpRequest& request) {
  const absl::string_view id = request.Header("x-request-id");
  if (IsRequestId(id)) return std::string(id);
  std::string random(16, '\0');
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return "unknown";
  }
  return absl::BytesToHexString(random);
}

}  // namespace

void HttpConnection::Advance() {
  while (true) {
    if (state_ == State::kIdle) {
      // Some clients send empty lines after a body.
      in_.erase(0, std::min(in_.find_first_not_of("\r\n"), in_.size()));
      if (in_.empty()) return FreeText(in_);
      Restart();
    }
    if (state_ != State::kHeader && state_ != State::kBody) return;
    const RequestParser::Progress progress = parser_->Parse(in_);
    if (!HoldBody()) continue;
    switch (progress) {
      case RequestParser::Progress::kMore:
        return;
      case RequestParser::Progress::kHeader:
        OnHeader();
        break;
      case RequestParser::Progress::kDone:
        Dispatch();
        break;
      case RequestParser::Progress::kFailed:
        Refuse(parser_->failure().status, parser_->failure().message);
        break;
    }
  }
}

void HttpConnection::Restart() {
  parser_ =
      std::make_unique<RequestParser>(owner_->options().most_header, owner_->options().most_body);
  path_.clear();
  state_ = State::kHeader;
  idle_since_ = kNotIdle;
  // The first request's time has begun with the connection.
  if (reused_) SetDeadline(owner_->options().header_timeout);
  reused_ = true;
}

void HttpConnection::OnHeader() {
  HttpRequest& request = parser_->request();
  RequestHead head;
  head.method = request.method;
  head.target = OriginForm(parser_->target(), request.Header("host"));
  head.http_1_1 = parser_->http_1_1();
  head.has_body = parser_->HasBody();
  head.headers = &request.headers;
  const absl::string_view path = head.target.substr(0, head.target.find('?'));
  path_ = DecodePath(path).value_or("");
  MakeQueue(parser_->WantsKeepAlive());
  if (const auto refusal = CheckRequest(head, owner_->options())) {
    return Refuse(refusal->status, refusal->message);
  }
  request.path = path_;
  if (path.size() < head.target.size()) {
    request.query = std::string(head.target.substr(path.size() + 1));
  }
  if (request.method == "HEAD") request.method = "GET";
  if (owner_->options().admit && (head.has_body || request.method != "OPTIONS")) {
    if (const auto refusal = owner_->options().admit(request, head.has_body))
      return Refuse(refusal->status, refusal->message);
  }
  // After what admits, so that who asks for a path that does not exist hears of that.
  if (const auto refusal = CheckBody(head)) return Refuse(refusal->status, refusal->message);
  if (head.has_body) request.held_body = std::make_shared<HeldBody>(owner_->body_bytes());
  state_ = State::kBody;
  SetDeadline(owner_->options().body_timeout);
  if (head.has_body && head.http_1_1 && in_.empty() && !request.Header("expect").empty()) {
    out_ = "HTTP/1.1 100 Continue\r\n\r\n";
    Flush();
  }
}

// Counts what has come of a body, and refuses the request where all bodies become too much.
bool HttpConnection::HoldBody() {
  const HttpRequest& request = parser_->request();
  const size_t most = owner_->options().most_bodies;
  if (request.held_body == nullptr || request.held_body->GrowTo(request.body.size(), most))
    return true;
  Refuse(503, absl::StrCat("the bodies of requests that the server reads or works on would take "
                           "more than ",
                           most, " bytes with this one"));
  return false;
}

void HttpConnection::MakeQueue(bool keep_alive) {
  HttpRequest& request = parser_->request();
  request.id = RequestId(request);
  ReplyForm form;
  form.http_1_1 = parser_->http_1_1();
  form.without_body = request.method == "HEAD";
  form.keep_alive = keep_alive;
  form.id = request.id;
  const absl::string_view origin = request.Header("origin");
  if (IsAllowedOrigin(origin, request.Header("host"), owner_->options())) {
    form.origin = std::string(origin);
  }
  reply_ = std::make_shared<ReplyQueue>(std::move(form), owner_->options().most_queued, this);
  last_taken_ = false;
}

void HttpConnection::Dispatch() {
  HttpRequest request = std::move(parser_->request());
  parser_.reset();
  if (in_.empty()) FreeText(in_);
  state_ = State::kReply;
  SetDeadline(absl::InfiniteDuration());
  if (request.method == "OPTIONS") return ReplyToOptions(request);
  const std::shared_ptr<ReplyQueue> queue = reply_;
  const std::shared_ptr<HttpReply> reply = MakeReply(queue);  // abandons the queue after the catch
  try {
    owner_->handler()(std::move(request), reply);
  } catch (const std::bad_alloc&) {
    queue->FailWithoutMemory();
  } catch (const std::length_error&) {
    queue->FailWithoutMemory();
  } catch (const std::exception&) {
    queue->Abandon();
  }
}

void HttpConnection::ReplyToOptions(const HttpRequest& request) {
  HttpHeaders headers = {{"Allow", std::string(kAllowedMethods)}};
  if (!request.Header("access-control-request-method").empty() &&
      !request.Header("origin").empty()) {
    headers.emplace_back("Access-Control-Allow-Methods", kAllowedMethods);
    const absl::string_view names = request.Header("access-control-request-headers");
    if (IsHeaderList(names)) headers.emplace_back("Access-Control-Allow-Headers", names);
    // A page of another network asks for leave to reach this one.
    if (request.Header("access-control-request-private-network") == "true") {
      headers.emplace_back("Access-Control-Allow-Private-Network", "true");
    }
    headers.emplace_back("Access-Control-Max-Age", "600");  // seconds
  }
  reply_->Send(204, "text/plain; charset=utf-8", "", headers);
}

// The server's own reply, after which the connection ends: where a request is refused, its end may
// be unknown or far away.
void HttpConnection::Refuse(int status, absl::string_view message) {
  if (reply_ == nullptr) MakeQueue(false);
  ReplyForm form = reply_->form();
  form.keep_alive = false;
  reply_->Close();
  reply_ = std::make_shared<ReplyQueue>(std::move(form), owner_->options().most_queued, this);
  last_taken_ = false;
  state_ = State::kReply;
  SetDeadline(absl::InfiniteDuration());
  if (owner_->options().on_refusal)
    owner_->options().on_refusal(reply_->form().id, path_, status, message);
  HttpHeaders headers;
  if (status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  if (status == 405) headers.emplace_back("Allow", kAllowedMethods);
  if (status == 503) headers.emplace_back("Retry-After", "1");
  reply_->Send(status, kErrorType, ErrorReplyBody(owner_->options(), path_, status, message),
               headers);
  parser_.reset();  // with what has come of the body; `message` may be the parser's
}

void HttpConnection::OnDeadline() {
  if (state_ == State::kHeader) return Refuse(408, "the request's header took too long to come");
  if (state_ == State::kBody) return Refuse(408, "the request's body took too long to come");
  Close();
}

void HttpConnection::OnReplySent() {
  const bool goes_on = reply_->KeepsConnection() && !owner_->draining() && !ended_;
  reply_->Close();
  reply_.reset();
  parser_.reset();
  last_taken_ = false;
  if (!goes_on) return Linger();
  state_ = State::kIdle;
  idle_since_ = std::chrono::steady_clock::now().time_since_epoch().count();
  FreeText(path_);
  SetDeadline(owner_->options().idle_timeout);
  Advance();
  Read();
}

}  // namespace inlay::serve
