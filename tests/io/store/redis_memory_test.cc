// A connection to Redis when memory runs out: the next command never gets the reply to this one.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "io/store/redis_connection.h"
#include "tests/failing_memory.h"
#include "tests/io/store/evil_server.h"
#include "tests/must.h"

namespace inlay {
namespace {

// Answers each command of two words, neither of which has a line's end, with its second word.
void Echo(int fd, EvilServer&) {
  std::string received;
  char buffer[4096];
  while (true) {
    // "*2", and the size and the text of either word, are lines.
    size_t end = 0;
    absl::string_view word;
    for (int line = 0; line < 5 && end != std::string::npos; ++line) {
      const size_t begin = end;
      end = received.find("\r\n", begin);
      if (end == std::string::npos) break;
      word = absl::string_view(received).substr(begin, end - begin);
      end += 2;
    }
    if (end != std::string::npos && !received.empty()) {
      if (!EvilServer::Send(fd, absl::StrCat("$", word.size(), "\r\n", word, "\r\n"))) return;
      received.erase(0, end);
      continue;
    }
    const ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
    if (n <= 0) return;
    received.append(buffer, static_cast<size_t>(n));
  }
}

TEST(RedisMemoryTest, ALackOfMemoryLeavesNoReplyToAnEarlierCommand) {
  EvilServer server(Echo);
  const auto connect = [&] {
    return Must(RedisConnection::Connect({.port = server.port(), .timeout = absl::Minutes(1)},
                                         /*max_reply=*/1 << 20));
  };
  std::unique_ptr<RedisConnection> connection = connect();
  // Longer than what a string holds without memory of its own.
  const std::string secret(100, 's'), other(100, 'o');
  bool failed = true;
  int broken = 0;
  for (long allocation = 0; failed; ++allocation) {
    bool has_reply = false;
    failing_memory::FailAfter(allocation, failing_memory::Fault::kOnce,
                              failing_memory::Threads::kThisOne);
    try {
      has_reply = connection->Command({"ECHO", secret}).ok();
    } catch (const std::bad_alloc&) {
    }
    failing_memory::Stop();
    failed = failing_memory::has_failed;
    EXPECT_EQ(has_reply, !failed) << "allocation " << allocation;
    const auto next = connection->Command({"ECHO", other});
    EXPECT_EQ(next.ok(), !connection->broken()) << "allocation " << allocation;
    if (next.ok()) {
      EXPECT_EQ(next->text, other) << "allocation " << allocation;
      continue;
    }
    ++broken;
    connection.reset();  // the server has one at a time
    connection = connect();
  }
  EXPECT_GT(broken, 0) << "no allocation failed after the command was sent";
}

}  // namespace
}  // namespace inlay
