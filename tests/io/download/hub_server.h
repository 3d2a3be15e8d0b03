// A server that answers as Hugging Face's hub does, or as wrongly as a test wants.
#ifndef INLAY_TESTS_IO_DOWNLOAD_HUB_SERVER_H_
#define INLAY_TESTS_IO_DOWNLOAD_HUB_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace inlay {

struct HubServerRequest {
  std::string method;
  std::string target;                          // "/USER/REPO/resolve/COMMIT/PATH"
  std::map<std::string, std::string> headers;  // by name in lower case

  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct HubServerReply {
  int status = 200;
  std::map<std::string, std::string> headers;  // with Content-Length, where the body has its length
  std::string body = {};
  size_t cut = std::string::npos;  // bytes of the body after which the connection is closed
  size_t piece = 1 << 16;          // bytes that are sent at once
  int pause = 0;                   // milliseconds after each piece
};

// Serves on 127.0.0.1 until it is destroyed. The repository user/repo has the files that were
// added, at the commit kHubCommit. Its files are on another host: "localhost", at the same port.
class HubServer {
 public:
  HubServer();
  ~HubServer();
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  // "http://127.0.0.1:PORT"
  std::string url() const;
  uint16_t port() const { return port_; }

  // Adds a file to user/repo; its SHA-256.
  std::string AddFile(const std::string& path, const std::string& bytes);

  // Called with each request and the right reply to it, which it may change. On any thread.
  using Change = std::function<void(const HubServerRequest& request, HubServerReply& reply)>;
  void SetChange(Change change);

  // All requests so far.
  std::vector<HubServerRequest> requests() const;
  // How many of them are for a file's bytes.
  size_t downloads() const;

 private:
  struct File {
    std::string path, bytes, hash;
  };
  void Accept();
  void Serve(int fd);
  HubServerReply ReplyTo(const HubServerRequest& request) const;
  std::string Listing() const;

  int listener_ = -1;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<File> files_;
  std::vector<HubServerRequest> requests_;
  Change change_;
  std::vector<std::thread> threads_;
  std::vector<int> connections_;
  bool stops_ = false;
  std::thread acceptor_;
};

inline constexpr char kHubCommit[] = "0123456789abcdef0123456789abcdef01234567";

// "/cdn/", under which files' bytes are.
inline constexpr char kHubCdn[] = "/cdn/";

// The SHA-256 of bytes, in hexadecimal digits.
std::string Sha256(const std::string& bytes);

// Bytes that compress badly and differ everywhere.
std::string SomeBytes(size_t size, uint64_t seed = 1);

}  // namespace inlay

#endif  // INLAY_TESTS_IO_DOWNLOAD_HUB_SERVER_H_
