#include "serve/http/request_parser.h"

#include <boost/beast/http/error.hpp>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace inlay::serve {

namespace http = boost::beast::http;

RequestParser::RequestParser(size_t most_header, size_t most_body)
    : most_header_(most_header), most_body_(most_body) {
  eager(false);  // stop after the header
  header_limit(static_cast<std::uint32_t>(most_header));
  body_limit(most_body);
}

RequestParser::Progress RequestParser::Parse(std::string& in) {
  if (is_done()) return Progress::kDone;
  size_t read = 0;
  Progress progress = Progress::kMore;
  while (progress == Progress::kMore && read < in.size()) {
    ErrorCode error;
    const size_t count = put({in.data() + read, in.size() - read}, error);
    read += count;
    if (!header_ended_) header_bytes_ += count;
    if (error == http::error::need_more) break;
    if (error) {
      progress = FailAs(error);
    } else if (!header_ended_ && is_header_done()) {
      header_ended_ = true;
      progress = Progress::kHeader;
    } else if (is_done()) {
      progress = Progress::kDone;
    }
  }
  in.erase(0, read);
  return progress == Progress::kFailed ? progress : CheckSizes(progress, in.size());
}

RequestParser::Progress RequestParser::CheckSizes(Progress progress, size_t unread) {
  // The parser's own limit sees one call at a time.
  if (header_bytes_ + (header_ended_ ? 0 : unread) > most_header_) {
    return FailAs(http::error::header_limit);
  }
  // The line before a chunk, or the trailer, as neither counts as body.
  if (header_ended_ && progress == Progress::kMore && unread > most_header_) {
    return FailAs(http::error::bad_chunk_extension);
  }
  return progress;
}

RequestParser::Progress RequestParser::FailAs(const ErrorCode& error) {
  if (error == http::error::header_limit) {
    failure_ = {431, absl::StrCat("the request's header is longer than ", most_header_, " bytes")};
  } else if (error == http::error::body_limit) {
    failure_ = {413, absl::StrCat("the request's body is longer than ", most_body_, " bytes")};
  } else {
    failure_ = {400, absl::StrCat("the request is not HTTP/1.1: ", error.message())};
  }
  return Progress::kFailed;
}

void RequestParser::on_request_impl(http::verb, StringView method_text, StringView target,
                                    int version, ErrorCode&) {
  request_.method.assign(method_text.data(), method_text.size());
  target_.assign(target.data(), target.size());
  http_1_1_ = version == 11;
}

void RequestParser::on_response_impl(int, StringView, int, ErrorCode&) {}

void RequestParser::on_field_impl(http::field, StringView name_text, StringView value, ErrorCode&) {
  // Headers that come after the body were checked by nobody.
  if (header_ended_) return;
  request_.headers.emplace_back(std::string(name_text.data(), name_text.size()),
                                std::string(value.data(), value.size()));
}

void RequestParser::on_header_impl(ErrorCode&) {}

void RequestParser::on_body_init_impl(boost::optional<std::uint64_t> const&, ErrorCode&) {}

std::size_t RequestParser::on_body_impl(StringView body, ErrorCode&) {
  request_.body.append(body.data(), body.size());
  return body.size();
}

void RequestParser::on_chunk_header_impl(std::uint64_t, StringView, ErrorCode&) {}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, StringView body, ErrorCode&) {
  request_.body.append(body.data(), body.size());
  return body.size();
}

void RequestParser::on_finish_impl(ErrorCode&) {}

}  // namespace inlay::serve
