// The end of a server, as its sessions see it.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/io/store/forwarding_store.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/serve/service/session_routes_fixture.h"

namespace inlay::serve {
namespace {

// The states of another store, which take their time to be stored.
class SlowStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                       StateTag replaced) override {
    absl::SleepFor(absl::Milliseconds(50));
    return ForwardingStore::PutOver(key, replaced);
  }
};

// More turns end than are stored at a time, and nobody waits for them any more.
TEST_F(SessionRoutesTest, TurnsThatHaveEndedAreStoredBeforeTheServerEnds) {
  states_ = std::make_shared<SlowStore>(std::make_shared<FileStore>(folder_.path()));
  Start();
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) {
    names.push_back(absl::StrCat("talk-", i));
    Post("", {{"name", names.back()}});
  }
  std::vector<std::shared_ptr<FakeReply>> replies;
  for (const std::string& name : names) {
    json body = Turn(0, "ROMEO:");
    body["background"] = true;
    body["stream"] = true;
    body["ignore_eos"] = true;
    replies.push_back(
        Ask(*service_, "POST", absl::StrCat("/v1/sessions/", name, "/turns"), body.dump()));
  }
  for (const auto& reply : replies) reply->WaitFor("delta");
  service_->Drain(absl::Seconds(60));
  service_ = nullptr;
  states_ = nullptr;
  Start();
  for (const std::string& name : names) {
    EXPECT_EQ(Get(absl::StrCat("/", name))["turns"].size(), 1u) << name;
  }
}

}  // namespace
}  // namespace inlay::serve
