#include "base/out_of_memory.h"

#include <cstddef>
#include <limits>
#include <new>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/about.h"
#include "gtest/gtest.h"

namespace inlay {
namespace {

TEST(OrOutOfMemory, PassesOnWhatIsReturned) {
  EXPECT_EQ(*OrOutOfMemory("x", [] { return absl::StatusOr<int>(3); }), 3);
  EXPECT_EQ(OrOutOfMemory("x", [] { return absl::InvalidArgumentError("why"); }),
            absl::InvalidArgumentError("why"));
}

TEST(OrOutOfMemory, NamesWhatLackedMemory) {
  const auto status = OrOutOfMemory("this model", []() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "there is not enough memory for this model");
}

// As std::vector throws for a size that came from outside.
TEST(OrOutOfMemory, TakesASizeBeyondAnyForALackOfMemory) {
  const auto status = OrOutOfMemory("this list", []() -> absl::Status {
    std::vector<double>().reserve(std::numeric_limits<size_t>::max());
    return absl::OkStatus();
  });
  EXPECT_EQ(status.message(), "there is not enough memory for this list");
}

TEST(OrOutOfMemory, NamesWhatLackedAThread) {
  const auto status = OrOutOfMemory("this model", []() -> absl::StatusOr<int> {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  EXPECT_EQ(status.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.status().message().substr(0, 43), "the system refuses a thread for this model:");
}

// Such as std::filesystem::filesystem_error.
TEST(OrOutOfMemory, BlamesNoThreadForAnotherErrorOfTheSystem) {
  const auto status = OrOutOfMemory("this model", []() -> absl::StatusOr<int> {
    throw std::system_error(std::make_error_code(std::errc::permission_denied), "a/file");
  });
  EXPECT_EQ(status.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.status().message(), "this model: a/file: Permission denied");
}

// A client is told to come back for the one, and that it is at fault for the other.
TEST(OrOutOfMemory, TellsALackOfMemoryFromOtherBounds) {
  EXPECT_TRUE(IsOutOfMemory(OutOfMemoryError("x")));
  EXPECT_TRUE(IsOutOfMemory(absl::Status(absl::StatusCode::kResourceExhausted, "")));
  EXPECT_TRUE(IsOutOfMemory(OrOutOfMemory("x", []() -> absl::Status {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  })));
  EXPECT_TRUE(IsOutOfMemory(About("the file", OutOfMemoryError("x"))));
  EXPECT_TRUE(
      IsOutOfMemory(About("the file", absl::Status(absl::StatusCode::kResourceExhausted, ""))));
  EXPECT_FALSE(IsOutOfMemory(absl::ResourceExhaustedError("the queue is full")));
  EXPECT_FALSE(IsOutOfMemory(absl::InternalError("")));
  EXPECT_FALSE(IsOutOfMemory(absl::OkStatus()));
}

// Only what says that memory or threads are missing becomes a status.
TEST(OrOutOfMemory, LetsOtherExceptionsPass) {
  EXPECT_THROW((void)OrOutOfMemory("x", []() -> absl::Status { throw 1; }), int);
}

}  // namespace
}  // namespace inlay
