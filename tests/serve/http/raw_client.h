// A client of the tests: sends any bytes, reads replies, ends connections in every way.
#ifndef INLAY_TESTS_SERVE_HTTP_RAW_CLIENT_H_
#define INLAY_TESTS_SERVE_HTTP_RAW_CLIENT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

struct RawReply {
  int status = 0;  // 0: the connection ended before a whole header came
  HttpHeaders headers;
  std::string body;  // of chunks: put together
  bool whole = false;
  // The value of the first header of this name, in any case of letters; "" when there is none.
  std::string Header(absl::string_view name) const;
};

class RawClient {
 public:
  // Connects. `receive_buffer` above 0 makes the system hold few bytes that were not read.
  explicit RawClient(uint16_t port, const char* address = "127.0.0.1", int receive_buffer = 0);
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  // False when the server does not take the bytes any more.
  bool Send(absl::string_view bytes);
  void ShutdownSending();
  void Close();
  // Ends the connection with a reset.
  void Reset();

  // The next reply, without a body if it is one to HEAD. Those to Expect come as others do.
  RawReply Read(bool to_head = false);
  // The header of the next reply, then what has come of the body piece by piece as one text.
  RawReply ReadHeader();
  // Reads until all of `text` has come; false when the connection ends first.
  bool ReadUntil(absl::string_view text);
  // Waits for the connection's end and returns what came before.
  std::string ReadToEnd();

 private:
  bool Fill();  // reads some bytes; false at the end. Fails the test after a long time without any.
  bool TakeLine(std::string* line);
  void ReadChunks(RawReply* reply);

  int fd_ = -1;
  bool connected_ = false;
  std::string in_;
};

// Sends a request without a body to the server at `port` and returns the reply.
RawReply Get(uint16_t port, absl::string_view path, absl::string_view headers = "");

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_HTTP_RAW_CLIENT_H_
