// Parses one request of HTTP/1.1 or 1.0 from bytes that arrive piece by piece.
#ifndef INLAY_SERVE_HTTP_REQUEST_PARSER_H_
#define INLAY_SERVE_HTTP_REQUEST_PARSER_H_

#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "serve/http/http_server.h"
#include "serve/http/request_checks.h"

namespace inlay::serve {

class RequestParser : private boost::beast::http::basic_parser<true> {
 public:
  enum class Progress {
    kMore,    // all that can be read was; more bytes are needed
    kHeader,  // the header has just ended; Parse goes on with the body
    kDone,    // the request has ended; what is left in the input belongs to the next one
    kFailed,  // failure() says why; where the request ends is unknown
  };

  // In bytes: of the request line and the headers together, and of the body.
  RequestParser(size_t most_header, size_t most_body);

  // Reads from the front of `in` and erases what it has read.
  Progress Parse(std::string& in);

  // What has been read; the path, the query and the id are the caller's to fill in.
  HttpRequest& request() { return request_; }
  const std::string& target() const { return target_; }
  bool http_1_1() const { return http_1_1_; }
  const Refusal& failure() const { return failure_; }

  // Only after kHeader: whether the client wants to send more requests, whether a body follows.
  bool WantsKeepAlive() const { return keep_alive(); }
  bool HasBody() const { return !is_done(); }

 private:
  using ErrorCode = boost::beast::error_code;
  using StringView = boost::beast::string_view;

  Progress FailAs(const ErrorCode& error);
  Progress CheckSizes(Progress progress, size_t unread);

  void on_request_impl(boost::beast::http::verb method, StringView method_text, StringView target,
                       int version, ErrorCode& error) override;
  void on_response_impl(int code, StringView reason, int version, ErrorCode& error) override;
  void on_field_impl(boost::beast::http::field name, StringView name_text, StringView value,
                     ErrorCode& error) override;
  void on_header_impl(ErrorCode& error) override;
  void on_body_init_impl(boost::optional<std::uint64_t> const& size, ErrorCode& error) override;
  std::size_t on_body_impl(StringView body, ErrorCode& error) override;
  void on_chunk_header_impl(std::uint64_t size, StringView extensions, ErrorCode& error) override;
  std::size_t on_chunk_body_impl(std::uint64_t remain, StringView body, ErrorCode& error) override;
  void on_finish_impl(ErrorCode& error) override;

  const size_t most_header_;
  const size_t most_body_;
  size_t header_bytes_ = 0;  // read so far
  bool header_ended_ = false;
  bool http_1_1_ = true;
  std::string target_;
  HttpRequest request_;
  Refusal failure_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_REQUEST_PARSER_H_
