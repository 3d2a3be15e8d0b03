#include "io/download/http_getter.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "io/download/curl_library.h"

namespace inlay {
namespace {

constexpr int kMostRedirections = 10;
constexpr size_t kMostHeaderBytes = size_t{256} << 10;  // of one reply
constexpr size_t kMostRefusalBytes = size_t{1} << 20;   // read of the body of a reply that failed
constexpr long kConnectSeconds = 15;
constexpr long kStallSeconds = 30;  // without a byte

// An address, taken apart.
struct Address {
  std::string url;
  std::string scheme;
  std::string host;
  std::string port;

  bool HasOriginOf(const Address& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
};

class AddressParser {
 public:
  explicit AddressParser(const CurlLibrary& curl) : curl_(curl), url_(curl.url()) {}
  AddressParser(const AddressParser&) = delete;
  AddressParser& operator=(const AddressParser&) = delete;
  ~AddressParser() { curl_.url_cleanup(url_); }

  // `location` may be relative to the address that was read before.
  absl::StatusOr<Address> Read(const std::string& location) {
    Address address;
    if (url_ == nullptr) return absl::ResourceExhaustedError("no memory for an address");
    if (curl_.url_set(url_, CURLUPART_URL, location.c_str(), CURLU_DISALLOW_USER) != CURLUE_OK ||
        !GetPart(CURLUPART_URL, &address.url) || !GetPart(CURLUPART_SCHEME, &address.scheme) ||
        !GetPart(CURLUPART_HOST, &address.host) || !GetPart(CURLUPART_PORT, &address.port)) {
      return absl::InvalidArgumentError(
          absl::StrCat(QuoteForMessage(location), " is not an address that can be asked"));
    }
    absl::AsciiStrToLower(&address.scheme);
    absl::AsciiStrToLower(&address.host);
    return address;
  }

 private:
  bool GetPart(CURLUPart part, std::string* text) {
    char* value = nullptr;
    if (curl_.url_get(url_, part, &value, CURLU_DEFAULT_PORT) != CURLUE_OK) return false;
    *text = value;
    curl_.free(value);
    return true;
  }

  const CurlLibrary& curl_;
  CURLU* url_;
};

// What libcurl's callbacks see of one request.
struct Exchange {
  explicit Exchange(const HttpGet& request) : request(request) {}

  const HttpGet& request;
  HttpReplyHead head;
  bool head_ended = false;
  size_t header_bytes = 0;
  size_t refusal_bytes = 0;
  absl::Status error;  // of a callback

  // Whether to go on.
  bool AddHeaderLine(absl::string_view line) {
    header_bytes += line.size();
    if (header_bytes > kMostHeaderBytes) {
      error = absl::InvalidArgumentError(
          absl::StrCat("a reply has more than ", kMostHeaderBytes, " bytes of headers"));
      return false;
    }
    line = absl::StripAsciiWhitespace(line);
    if (absl::StartsWith(line, "HTTP/")) {  // the first line, also of what follows a 100
      head = {};
      head_ended = false;
      const size_t space = line.find(' ');
      if (space == absl::string_view::npos ||
          !absl::SimpleAtoi(line.substr(space + 1, 3), &head.status))
        head.status = 0;
      return true;
    }
    if (!line.empty()) {
      const size_t colon = line.find(':');
      if (colon == absl::string_view::npos) return true;
      head.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
          std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
      return true;
    }
    if (head.status < 200 || head_ended) return true;  // interim replies; trailers
    head_ended = true;
    if (request.on_head) error = request.on_head(head);
    return error.ok();
  }

  bool AddBody(absl::Span<const uint8_t> bytes) {
    if (head.succeeded()) {
      if (request.on_body) error = request.on_body(bytes);
      return error.ok();
    }
    refusal_bytes += bytes.size();
    return refusal_bytes <= kMostRefusalBytes;
  }
};

absl::Status ThrewError() noexcept {
  try {
    return absl::InternalError("what takes a reply threw an exception");
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kInternal, "");
  }
}

// Calls `act` for libcurl, through which no exception may go. Its result is whether to go on.
template <class Act>
size_t ForCurl(Exchange& exchange, size_t bytes, const Act& act) {
  try {
    return act() ? bytes : 0;
  } catch (const std::bad_alloc&) {
    exchange.error = absl::Status(absl::StatusCode::kResourceExhausted, "");
    return 0;
  } catch (...) {
    exchange.error = ThrewError();
    return 0;
  }
}

size_t OnHeaderLine(char* data, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  const size_t bytes = size * count;
  return ForCurl(exchange, bytes, [&] { return exchange.AddHeaderLine({data, bytes}); });
}

size_t OnBodyBytes(char* data, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  const size_t bytes = size * count;
  return ForCurl(exchange, bytes, [&] {
    return exchange.AddBody({reinterpret_cast<const uint8_t*>(data), bytes});
  });
}

class CurlGetter final : public HttpGetter {
 public:
  CurlGetter(const CurlLibrary& curl, CURL* handle, Address endpoint, std::string token)
      : curl_(curl), handle_(handle), endpoint_(std::move(endpoint)), token_(std::move(token)) {}
  ~CurlGetter() override { curl_.easy_cleanup(handle_); }

  absl::StatusOr<HttpReplyHead> Get(const HttpGet& request) override {
    AddressParser parser(curl_);
    std::string location = request.url;
    for (int sent = 0; sent <= kMostRedirections; ++sent) {
      INLAY_ASSIGN_OR_RETURN(const Address address, parser.Read(location));
      INLAY_RETURN_IF_ERROR(CheckScheme(address));
      if (sent > 0 && request.head_only && !address.HasOriginOf(endpoint_)) return last_;
      INLAY_ASSIGN_OR_RETURN(last_, GetOnce(request, address));
      if (!last_.redirects()) return last_;
      location = std::string(last_.Header("location"));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        PrintableName(request.url), " redirects more than ", kMostRedirections, " times"));
  }

 private:
  absl::Status CheckScheme(const Address& address) const {
    if (address.scheme == "https") return absl::OkStatus();
    if (address.scheme == "http" && endpoint_.scheme == "http") return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the address ", QuoteForMessage(address.url), " is refused: it is not https"));
  }

  absl::StatusOr<HttpReplyHead> GetOnce(const HttpGet& request, const Address& address) {
    curl_.easy_reset(handle_);
    Exchange exchange(request);
    char words[CURL_ERROR_SIZE] = "";
    const std::string range = absl::StrCat(request.offset, "-");
    const std::string authorization = absl::StrCat("Authorization: Bearer ", token_);
    curl_slist* headers = nullptr;
    const auto free_headers = absl::MakeCleanup([&] { curl_.slist_free_all(headers); });
    if (!token_.empty() && address.HasOriginOf(endpoint_)) {
      headers = curl_.slist_append(nullptr, authorization.c_str());
      if (headers == nullptr) return absl::ResourceExhaustedError("no memory for a request");
    }
    const auto set = [&](CURLoption option, auto value) {
      curl_.easy_setopt(handle_, option, value);
    };
    set(CURLOPT_URL, address.url.c_str());
    SetProtocols();
    set(CURLOPT_FOLLOWLOCATION, 0L);  // Get() does, and decides what goes along
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_USERAGENT, "inlay/" INLAY_VERSION);
    if (request.head_only) set(CURLOPT_NOBODY, 1L);
    if (request.offset > 0) set(CURLOPT_RANGE, range.c_str());
    set(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // those of a proxy
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kStallSeconds);
    if (request.time_limit != absl::InfiniteDuration())
      set(CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(request.time_limit)));
    if (const char* file = std::getenv("SSL_CERT_FILE"); file != nullptr && *file != 0)
      set(CURLOPT_CAINFO, file);
    set(CURLOPT_ERRORBUFFER, words);
    set(CURLOPT_HEADERFUNCTION, &OnHeaderLine);
    set(CURLOPT_HEADERDATA, &exchange);
    set(CURLOPT_WRITEFUNCTION, &OnBodyBytes);
    set(CURLOPT_WRITEDATA, &exchange);
    const CURLcode code = curl_.easy_perform(handle_);
    INLAY_RETURN_IF_ERROR(exchange.error);
    // Of a reply that failed or redirects, the head is enough.
    const bool is_enough = exchange.head_ended && !exchange.head.succeeded();
    if (code == CURLE_OK || is_enough) return std::move(exchange.head);
    return Failure(code, address, *words != 0 ? words : curl_.easy_strerror(code));
  }

  void SetProtocols() {
    const bool with_http = endpoint_.scheme == "http";
#if LIBCURL_VERSION_NUM >= 0x075500
    if (curl_.easy_setopt(handle_, CURLOPT_PROTOCOLS_STR, with_http ? "http,https" : "https") ==
        CURLE_OK)
      return;
    constexpr auto kProtocols = static_cast<CURLoption>(181);  // CURLOPT_PROTOCOLS, before 7.85
#else
    constexpr CURLoption kProtocols = CURLOPT_PROTOCOLS;
#endif
    curl_.easy_setopt(handle_, kProtocols,
                      static_cast<long>(CURLPROTO_HTTPS | (with_http ? CURLPROTO_HTTP : 0)));
  }

  static absl::Status Failure(CURLcode code, const Address& address, absl::string_view words) {
    const std::string message =
        absl::StrCat(PrintableName(address.host), ": ", PrintableName(words));
    switch (code) {
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
        return absl::FailedPreconditionError(message);
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_URL_MALFORMAT:
        return absl::InvalidArgumentError(message);
      case CURLE_OUT_OF_MEMORY:
        return absl::ResourceExhaustedError(message);
      default:
        return absl::UnavailableError(message);
    }
  }

  const CurlLibrary& curl_;
  CURL* const handle_;
  const Address endpoint_;
  const std::string token_;
  HttpReplyHead last_;
};

}  // namespace

absl::string_view HttpReplyHead::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? absl::string_view() : absl::string_view(found->second);
}

bool HttpReplyHead::redirects() const {
  return (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) &&
         headers.count("location") > 0;
}

absl::StatusOr<std::unique_ptr<HttpGetter>> HttpGetter::Create(const HubAccess& access) {
  INLAY_ASSIGN_OR_RETURN(const CurlLibrary* curl, CurlLibrary::Get());
  INLAY_ASSIGN_OR_RETURN(Address endpoint, AddressParser(*curl).Read(access.endpoint));
  CURL* handle = curl->easy_init();
  if (handle == nullptr) return absl::ResourceExhaustedError("no memory for a download");
  return std::make_unique<CurlGetter>(*curl, handle, std::move(endpoint), access.token);
}

}  // namespace inlay
