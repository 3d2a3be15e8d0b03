#include "tests/serve/http/raw_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/wait_until.h"

namespace inlay::serve {

std::string RawReply::Header(absl::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(key, name)) return value;
  }
  return "";
}

RawClient::RawClient(uint16_t port, const char* address, int receive_buffer) {
  const bool v6 = std::strchr(address, ':') != nullptr;
  fd_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return;
  if (receive_buffer > 0) {
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  }
  if (v6) {
    sockaddr_in6 to = {};
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    ::inet_pton(AF_INET6, address, &to.sin6_addr);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  } else {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    ::inet_pton(AF_INET, address, &to.sin_addr);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
}

bool RawClient::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(sent);
  }
  return true;
}

void RawClient::ShutdownSending() { ::shutdown(fd_, SHUT_WR); }

void RawClient::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void RawClient::Reset() {
  const linger at_once = {1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  Close();
}

bool RawClient::Fill() {
  pollfd readable = {fd_, POLLIN, 0};
  if (::poll(&readable, 1, kLongWaitMs) == 0) {
    ADD_FAILURE() << "the server sends nothing and does not end the connection";
    return false;
  }
  std::array<char, 16384> buffer;
  const ssize_t count = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (count <= 0) return false;
  in_.append(buffer.data(), count);
  return true;
}

bool RawClient::TakeLine(std::string* line) {
  size_t end;
  while ((end = in_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return false;
  }
  *line = in_.substr(0, end);
  in_.erase(0, end + 2);
  return true;
}

RawReply RawClient::ReadHeader() {
  RawReply reply;
  std::string line;
  if (!TakeLine(&line)) return reply;
  EXPECT_TRUE(absl::StartsWith(line, "HTTP/1.1 ")) << line;
  int status = 0;
  EXPECT_TRUE(absl::SimpleAtoi(line.substr(9, 3), &status)) << line;
  while (TakeLine(&line)) {
    if (line.empty()) {
      reply.status = status;
      break;
    }
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) {
      ADD_FAILURE() << "not a header: " << line;
      break;
    }
    reply.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return reply;
}

RawReply RawClient::Read(bool to_head) {
  RawReply reply = ReadHeader();
  if (reply.status == 0) return reply;
  uint64_t length = 0;
  if (to_head || reply.status < 200 || reply.status == 204 || reply.status == 304) {
    reply.whole = true;
  } else if (reply.Header("transfer-encoding") == "chunked") {
    ReadChunks(&reply);
  } else if (absl::SimpleAtoi(reply.Header("content-length"), &length)) {
    while (in_.size() < length && Fill()) {
    }
    reply.whole = in_.size() >= length;
    reply.body = in_.substr(0, length);
    in_.substr(length).swap(in_);  // keeps no more memory than what is left
  } else {
    reply.body = ReadToEnd();
    reply.whole = true;
  }
  return reply;
}

void RawClient::ReadChunks(RawReply* reply) {
  std::string line;
  while (TakeLine(&line)) {
    char* end = nullptr;
    const size_t size = std::strtoull(line.c_str(), &end, 16);
    if (line.empty() || *end != '\0') {
      ADD_FAILURE() << "not a chunk's size: " << line;
      return;
    }
    while (in_.size() < size + 2) {
      if (!Fill()) return;
    }
    reply->body += in_.substr(0, size);
    EXPECT_EQ(in_.substr(size, 2), "\r\n");
    in_.erase(0, size + 2);
    if (size == 0) {
      reply->whole = true;
      return;
    }
  }
}

bool RawClient::ReadUntil(absl::string_view text) {
  while (!absl::StrContains(in_, text)) {
    if (!Fill()) return false;
  }
  in_.erase(0, in_.find(std::string(text)) + text.size());
  return true;
}

std::string RawClient::ReadToEnd() {
  while (Fill()) {
  }
  return std::exchange(in_, std::string());
}

RawReply Get(uint16_t port, absl::string_view path, absl::string_view headers) {
  RawClient client(port);
  EXPECT_TRUE(client.connected());
  client.Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
                           headers, "\r\n"));
  return client.Read();
}

}  // namespace inlay::serve
