#include "tests/io/store/redis_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/io/store/loopback.h"
#include "tests/wait_until.h"

namespace inlay {

RedisServer::RedisServer(const std::vector<std::string>& arguments, uint16_t port) {
  // Somebody else may take the port before the server does.
  for (int i = 0; i < 3 && !TryStart(arguments, port); ++i) Kill();
}

bool RedisServer::TryStart(const std::vector<std::string>& arguments, uint16_t port) {
  if (port == 0) {
    const auto [fd, free_port] = BindLoopback();
    if (fd < 0) return false;
    close(fd);
    port = free_port;
  }
  port_ = port;
  std::vector<std::string> command = {"redis-server",
                                      "--port",
                                      std::to_string(port),
                                      "--bind",
                                      "127.0.0.1",
                                      "--save",
                                      "",
                                      "--appendonly",
                                      "no",
                                      "--dir",
                                      folder_.path(),
                                      "--daemonize",
                                      "no"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  bool replies = false;
  return WaitUntil([&] {
           if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;  // it could not run
           // It connects before it has all it needs, as a cluster's second port; replies come
           // later.
           replies = pid_ > 0 && CanConnect(port) && !Ask({"PING"}).empty();
           return replies || pid_ <= 0;
         }) &&
         replies;
}

void RedisServer::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

std::string RedisServer::Ask(const std::vector<std::string>& commands) const {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = LoopbackAddress(port_);
  const timeval patience = {.tv_sec = 60, .tv_usec = 0};  // where another server has the port
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::string reply, text;
  for (const std::string& command : commands) text += command + "\r\n";
  text += "QUIT\r\n";
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) {
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;)
      reply.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return reply;
}

void RedisServer::Kill() {
  if (pid_ <= 0) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace inlay
