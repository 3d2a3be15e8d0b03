#include "base/out_of_memory.h"

#include <new>
#include <system_error>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  EXPECT_EQ(status, absl::ResourceExhaustedError("there is not enough memory for this model"));
}

TEST(OrOutOfMemory, NamesWhatLackedAThread) {
  const auto status = OrOutOfMemory("this model", []() -> absl::StatusOr<int> {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  EXPECT_EQ(status.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.status().message().substr(0, 43), "the system refuses a thread for this model:");
}

// Only what says that memory or threads are missing becomes a status.
TEST(OrOutOfMemory, LetsOtherExceptionsPass) {
  EXPECT_THROW((void)OrOutOfMemory("x", []() -> absl::Status { throw 1; }), int);
}

}  // namespace
}  // namespace inlay
