// Connections to Redis when memory runs out: the next command never gets the reply to this one, and
// what ends takes none.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "io/store/redis_connection.h"
#include "io/store/redis_connections.h"
#include "io/store/state_store.h"
#include "io/store/state_store_redis.h"
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

TEST(RedisMemoryTest, AConnectionIsGivenBackWithoutMemory) {
  EvilServer server(Echo);
  RedisConnections connections({.port = server.port(), .timeout = absl::Minutes(1)},
                               /*max_reply=*/1 << 20);
  {
    const RedisConnections::Lease lease = Must(connections.Get());
    failing_memory::FailAfter(0, failing_memory::Fault::kFromThenOn,
                              failing_memory::Threads::kThisOne);
  }
  failing_memory::Stop();
  EXPECT_FALSE(failing_memory::has_failed) << "it takes none";
}

// Answers what a store asks as it writes a state: that the connection is there, that the key is
// free, that a chunk was put, which ends with the seconds that it is kept, and that the chunks were
// deleted.
void TakeChunks(int fd, EvilServer&) {
  std::string received;
  std::vector<char> buffer(1 << 20);
  while (true) {
    const ssize_t n = recv(fd, buffer.data(), buffer.size(), 0);
    if (n <= 0) return;
    received.append(buffer.data(), static_cast<size_t>(n));
    const absl::string_view beginning = absl::string_view(received).substr(0, 20);
    absl::string_view answer;
    if (absl::StrContains(beginning, "PING")) answer = "+PONG\r\n";
    if (absl::StrContains(beginning, "TYPE")) answer = "+none\r\n";
    if (absl::StrContains(beginning, "UNLINK")) answer = ":1\r\n";
    if (absl::EndsWith(received, "\r\n3600\r\n")) answer = ":1\r\n";
    if (answer.empty()) continue;
    if (!EvilServer::Send(fd, answer)) return;
    received.clear();
  }
}

TEST(RedisMemoryTest, AStateThatStaysUnfinishedIsGivenUpWithoutMemory) {
  EvilServer server(TakeChunks);
  const std::unique_ptr<StateStore> store =
      Must(OpenRedisStore({.port = server.port(), .timeout = absl::Minutes(1)}));
  const std::vector<uint8_t> chunk(size_t{1} << 20);
  for (const failing_memory::Fault fault :
       {failing_memory::Fault::kOnce, failing_memory::Fault::kFromThenOn}) {
    bool failed = true;
    for (long allocation = 0; failed; ++allocation) {
      std::unique_ptr<StateWriter> writer = Must(store->Put("a"));
      ASSERT_TRUE(writer->Append(chunk).ok());
      failing_memory::FailAfter(allocation, fault, failing_memory::Threads::kThisOne);
      writer.reset();
      failing_memory::Stop();
      failed = failing_memory::has_failed;
      EXPECT_TRUE(failed || allocation > 0) << "deleting the chunks took no memory";
    }
  }
}

}  // namespace
}  // namespace inlay
