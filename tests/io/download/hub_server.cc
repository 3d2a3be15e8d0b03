#include "tests/io/download/hub_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "io/download/blob_digest.h"
#include "nlohmann/json.hpp"
#include "tests/io/store/loopback.h"

namespace inlay {
namespace {

// Reads up to the empty line; false where the client has gone.
bool ReadRequest(int fd, HubServerRequest* request) {
  std::string text;
  while (!absl::EndsWith(text, "\r\n\r\n")) {
    char c;
    if (recv(fd, &c, 1, 0) != 1) return false;
    text.push_back(c);
  }
  std::vector<std::string> lines = absl::StrSplit(text, "\r\n", absl::SkipEmpty());
  const std::vector<std::string> first = absl::StrSplit(lines[0], ' ');
  request->method = first.at(0);
  request->target = first.at(1);
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<std::string, std::string> header =
        absl::StrSplit(lines[i], absl::MaxSplits(": ", 1));
    request->headers[absl::AsciiStrToLower(header.first)] = header.second;
  }
  return true;
}

bool SendAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// Whether the connection can go on.
bool SendReply(int fd, const HubServerRequest& request, const HubServerReply& reply) {
  std::string head = absl::StrCat("HTTP/1.1 ", reply.status, " Status\r\n");
  for (const auto& [name, value] : reply.headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
  const bool has_length = reply.headers.count("Content-Length") > 0;
  if (!has_length) absl::StrAppend(&head, "Connection: close\r\n");
  absl::StrAppend(&head, "\r\n");
  if (!SendAll(fd, head.data(), head.size())) return false;
  if (request.method == "HEAD") return has_length;
  const size_t size = std::min(reply.cut, reply.body.size());
  for (size_t at = 0; at < size; at += reply.piece) {
    if (!SendAll(fd, reply.body.data() + at, std::min(reply.piece, size - at))) return false;
    if (reply.pause > 0) std::this_thread::sleep_for(std::chrono::milliseconds(reply.pause));
  }
  return has_length && reply.cut >= reply.body.size();
}

}  // namespace

HubServer::HubServer() {
  std::tie(listener_, port_) = BindLoopback();
  EXPECT_EQ(listen(listener_, 64), 0);
  acceptor_ = std::thread([this] { Accept(); });
}

HubServer::~HubServer() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    shutdown(listener_, SHUT_RDWR);
    for (const int fd : connections_) shutdown(fd, SHUT_RDWR);
    threads.swap(threads_);
  }
  acceptor_.join();
  for (std::thread& thread : threads) thread.join();
  close(listener_);
}

std::string HubServer::url() const { return absl::StrCat("http://127.0.0.1:", port_); }

std::string HubServer::AddFile(const std::string& path, const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  files_.push_back({path, bytes, Sha256(bytes)});
  return files_.back().hash;
}

void HubServer::SetChange(Change change) {
  const std::lock_guard lock(mutex_);
  change_ = std::move(change);
}

std::vector<HubServerRequest> HubServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

size_t HubServer::downloads() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(
      requests_.begin(), requests_.end(),
      [](const HubServerRequest& request) { return absl::StartsWith(request.target, kHubCdn); }));
}

void HubServer::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (fd < 0 || stops_) {
      if (fd >= 0) close(fd);
      return;
    }
    connections_.push_back(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void HubServer::Serve(int fd) {
  HubServerRequest request;
  while (ReadRequest(fd, &request)) {
    HubServerReply reply;
    Change change;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      reply = ReplyTo(request);
      change = change_;
    }
    if (change) change(request, reply);
    if (!SendReply(fd, request, reply)) break;
    request = {};
  }
  const std::lock_guard lock(mutex_);
  std::erase(connections_, fd);
  close(fd);
}

std::string HubServer::Listing() const {
  nlohmann::json siblings = nlohmann::json::array({{{"rfilename", "README.md"}, {"size", 3}}});
  for (const File& file : files_) {
    siblings.push_back(
        {{"rfilename", file.path},
         {"size", file.bytes.size()},
         {"blobId", "89abcdef0123456789abcdef0123456789abcdef"},
         {"lfs", {{"sha256", file.hash}, {"size", file.bytes.size()}, {"pointerSize", 134}}}});
  }
  return nlohmann::json({{"id", "user/repo"}, {"sha", kHubCommit}, {"siblings", siblings}}).dump();
}

HubServerReply HubServer::ReplyTo(const HubServerRequest& request) const {
  HubServerReply reply;
  const auto finish = [&] {
    reply.headers["Content-Length"] = absl::StrCat(reply.body.size());
    return reply;
  };
  // A proxy is asked with the whole address.
  absl::string_view target = request.target;
  if (absl::ConsumePrefix(&target, "http://"))
    target.remove_prefix(std::min(target.find('/'), target.size()));
  if (target == "/api/models/user/repo/revision/main?blobs=true") {
    reply.headers["Content-Type"] = "application/json; charset=utf-8";
    reply.body = Listing();
    return finish();
  }
  for (const File& file : files_) {
    if (target == absl::StrCat("/user/repo/resolve/", kHubCommit, "/", file.path)) {
      reply.status = 302;
      reply.headers["Location"] = absl::StrCat("http://localhost:", port_, kHubCdn, file.hash);
      reply.headers["X-Repo-Commit"] = kHubCommit;
      reply.headers["X-Linked-Size"] = absl::StrCat(file.bytes.size());
      reply.headers["X-Linked-Etag"] = absl::StrCat("\"", file.hash, "\"");
      reply.body = "Found. Redirecting";
      return finish();
    }
    if (target != absl::StrCat(kHubCdn, file.hash)) continue;
    const std::string range = request.Header("range");
    absl::string_view first = range;
    size_t offset = 0;
    if (absl::ConsumePrefix(&first, "bytes=") &&
        absl::SimpleAtoi(absl::StripSuffix(first, "-"), &offset)) {
      reply.status = offset < file.bytes.size() ? 206 : 416;
      reply.headers["Content-Range"] =
          absl::StrCat("bytes ", offset, "-", file.bytes.size() - 1, "/", file.bytes.size());
    }
    reply.headers["ETag"] = "\"of-the-other-host\"";
    if (reply.status != 416) reply.body = file.bytes.substr(offset);
    return finish();
  }
  reply.status = 404;
  reply.headers["X-Error-Code"] = "RepoNotFound";
  reply.headers["X-Error-Message"] = "Repository not found";
  return finish();
}

std::string Sha256(const std::string& bytes) {
  auto digest = BlobDigest::Begin(BlobDigest::Kind::kSha256, bytes.size());
  EXPECT_TRUE(digest.ok()) << digest.status();
  EXPECT_TRUE(digest->Update({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}).ok());
  return digest->Finish().value();
}

std::string SomeBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

}  // namespace inlay
