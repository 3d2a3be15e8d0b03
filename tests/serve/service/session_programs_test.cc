// Random programs over /v1/sessions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/serve/service/session_routes_fixture.h"

namespace inlay::serve {
namespace {

// Any turns, forks, rewinds, retries and restarts, compared with what a plain model of sessions
// says: the tokens of every version, and that each answer is that to its prompt alone.
class Programs : public SessionRoutesTest {
 protected:
  struct Known {
    uint64_t version = 0;
    std::vector<int32_t> tokens;
    std::map<uint64_t, std::vector<int32_t>> versions = {{0, {}}};  // still there
    json last_body, last_reply;                                     // of a turn with a key
  };

  size_t Below(size_t n) { return static_cast<size_t>(random_() % n); }
  std::string Pick() {
    auto it = known_.begin();
    std::advance(it, static_cast<ptrdiff_t>(Below(known_.size())));
    return it->first;
  }

  void Say(const std::string& name) {
    Known& known = known_[name];
    if (known.tokens.size() > 300) return GoBack(name);
    const int seed = static_cast<int>(Below(1000)), most = static_cast<int>(Below(6));
    json body = {{"parent", known.version}, {"seed", seed}, {"max_tokens", most}};
    if (most == 0) body["max_tokens"] = 1;
    const bool goes_on = ends_with_answer_[name] && Below(4) == 0;
    if (goes_on) {
      body["prompt"] = Below(2) == 0 ? "" : " and";
    } else {
      body["content"] = absl::StrCat("line ", Below(100));
    }
    if (Below(2) == 0) body["idempotency_key"] = absl::StrCat("key ", ++keys_given_);
    const json reply = Post(absl::StrCat("/", name, "/turns"), body);
    const std::vector<int32_t> tokens = Tokens(name);
    ASSERT_EQ(reply["version"], known.version + 1);
    ASSERT_EQ(reply["end"], tokens.size());
    const size_t begin = reply["begin"], answer = reply["answer"];
    ASSERT_LE(begin, known.tokens.size());
    ASSERT_TRUE(std::equal(tokens.begin(), tokens.begin() + begin, known.tokens.begin()));
    if (ends_with_answer_[name]) {
      ASSERT_EQ(begin, known.tokens.size());
    }
    const std::string text = reply["message"]["content"];
    const std::string alone =
        Alone({tokens.begin(), tokens.begin() + answer}, seed, body["max_tokens"].get<int>());
    ASSERT_THAT(text, testing::EndsWith(alone));
    if (!goes_on) {
      ASSERT_EQ(text, alone);
    }
    known.version = reply["version"];
    known.tokens = tokens;
    known.versions[known.version] = tokens;
    ends_with_answer_[name] = true;
    if (body.contains("idempotency_key")) {
      known.last_body = body;
      known.last_reply = reply;
    }
  }

  // What is left of a session whose tokens are cut.
  void Cut(const std::string& name, const json& shown) {
    Known& known = known_[name];
    known.version = shown["version"];
    std::map<uint64_t, std::vector<int32_t>> left = {{0, {}}};
    bool has_key = false;
    for (const json& turn : shown["turns"]) {
      const uint64_t version = turn["version"];
      left[version] = version == known.version ? known.tokens : known.versions.at(version);
      has_key =
          has_key || (known.last_reply.is_object() && version == known.last_reply["version"] &&
                      turn.contains("idempotency_key"));
    }
    if (!has_key) known.last_body = json();
    known.versions = std::move(left);
    const json& turns = shown["turns"];
    ends_with_answer_[name] = !turns.empty() && (turns.back()["kind"] == "answer" ||
                                                 turns.back()["kind"] == "continuation");
  }

  void GoBack(const std::string& name) {
    Known& known = known_[name];
    json body;
    if (Below(2) == 0) {
      auto it = known.versions.begin();
      std::advance(it, static_cast<ptrdiff_t>(Below(known.versions.size())));
      body["version"] = it->first;
      known.tokens = std::vector<int32_t>(it->second);
    } else {
      const size_t position = Below(known.tokens.size() + 1);
      body["position"] = position;
      known.tokens.resize(position);
    }
    Cut(name, Post(absl::StrCat("/", name, "/rewind"), body));
    ASSERT_EQ(Tokens(name), known.tokens) << body;
  }

  void Fork(const std::string& name) {
    const std::string copy = absl::StrCat("s", known_.size());
    json body = {{"name", copy}};
    Known known = known_[name];
    if (Below(2) == 0) {
      const size_t position = Below(known.tokens.size() + 1);
      body["position"] = position;
      known.tokens.resize(position);
    }
    const json shown = Post(absl::StrCat("/", name, "/fork"), body);
    known_[copy] = known;
    Cut(copy, shown);
    known_[copy].last_body = json();
    ASSERT_EQ(Tokens(copy), known.tokens);
    ASSERT_EQ(Tokens(name), known_[name].tokens);
  }

  void Retry(const std::string& name) {
    const Known& known = known_[name];
    if (known.last_body.is_null()) return;
    ASSERT_EQ(Post(absl::StrCat("/", name, "/turns"), known.last_body), known.last_reply);
    ASSERT_EQ(Get(absl::StrCat("/", name))["version"], known.version);
  }

  std::mt19937 random_{1};
  std::map<std::string, Known> known_;
  std::map<std::string, bool> ends_with_answer_;
  int keys_given_ = 0;
};

TEST_F(Programs, AreWhatAPlainModelSays) {
  Post("", {{"name", "s0"}});
  known_["s0"];
  for (int step = 0; step < 150 && !HasFatalFailure(); ++step) {
    SCOPED_TRACE(step);
    const std::string name = Pick();
    const size_t what = Below(20);
    if (what < 10) {
      Say(name);
    } else if (what < 13) {
      GoBack(name);
    } else if (what < 15 && known_.size() < 5) {
      Fork(name);
    } else if (what < 19) {
      Retry(name);
    } else {
      Start();
    }
  }
}

}  // namespace
}  // namespace inlay::serve
