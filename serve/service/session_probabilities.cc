#include "serve/service/session_probabilities.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/sampler.h"
#include "io/json/parse_json.h"
#include "serve/api/field_reader.h"
#include "serve/api/reply_parts.h"
#include "serve/api/request_json.h"

namespace inlay::serve {
namespace {

constexpr int64_t kMostPosition = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostTop = 20;

size_t NeedPosition(FieldReader& body, absl::string_view key) {
  if (body.Find(key) == nullptr) body.Fail(key, "must be given: a position in the tokens");
  return static_cast<size_t>(body.Integer(key, 1, kMostPosition).value_or(1));
}

Json TokenJson(const Tokenizer& tokenizer, int32_t token, float logprob) {
  return {{"id", token},
          {"text", std::string(tokenizer.TokenBytes(token))},
          {"logprob", Logprob(logprob)}};
}

// Collects the probabilities, and sends them at the end.
class ProbabilitiesListener final : public AnswerListener,
                                    public std::enable_shared_from_this<ProbabilitiesListener> {
 public:
  // `reply` has all but the tokens.
  ProbabilitiesListener(const ProbabilitiesHost& host, Visit visit, Json reply)
      : host_(host), visit_(std::move(visit)), reply_(std::move(reply)) {}

  void OnStart(const AnswerUsage&) override {}
  bool OnUpdate(const AnswerUpdate& update) override {
    chosen_.insert(chosen_.end(), update.chosen.begin(), update.chosen.end());
    return true;
  }
  void OnEnd(const AnswerEnd& end) override {
    if (visit_.access != nullptr) visit_.access->AddAnswer(end);
    // Thousands of tokens take their time to be written, which the scheduler has not.
    const absl::Status status = OrOutOfMemory("this reply", [&] {
      INLAY_RETURN_IF_ERROR(end.status);
      host_.writers.Add([self = shared_from_this()] { self->Send(); });
      return absl::OkStatus();
    });
    if (!status.ok()) visit_.Fail(status);
  }

 private:
  void Send() {
    const absl::Status status = OrOutOfMemory("this reply", [&] {
      Json& tokens = reply_["tokens"] = Json::array();
      for (const ChosenToken& chosen : chosen_) {
        Json& token = tokens.emplace_back(TokenJson(host_.tokenizer, chosen.token, chosen.logprob));
        Json& top = token["top"] = Json::array();
        for (const TokenChance& chance : chosen.top)
          top.push_back(TokenJson(host_.tokenizer, chance.token, chance.logprob));
      }
      std::string text = DumpJson(std::move(reply_));
      visit_.SendText(std::move(text));
      return absl::OkStatus();
    });
    if (!status.ok()) visit_.Fail(status);
  }

  const ProbabilitiesHost host_;
  const Visit visit_;
  Json reply_;
  std::vector<ChosenToken> chosen_;
};

}  // namespace

absl::StatusOr<ProbabilitiesBody> ParseProbabilities(absl::string_view text) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseRequestJson("the body", text));
  absl::Status error;
  FieldReader body(*json, "", &error);
  ProbabilitiesBody asked;
  asked.begin = NeedPosition(body, "begin");
  asked.end = NeedPosition(body, "end");
  asked.top = static_cast<size_t>(body.Integer("top", 0, kMostTop).value_or(0));
  if (asked.end <= asked.begin) {
    body.Fail("end", absl::StrCat("must be more than begin, ", asked.begin, ", not ", asked.end));
  } else if (asked.end - asked.begin > kMostProbabilities) {
    body.Fail("end", absl::StrCat("must be at most ", kMostProbabilities, " more than begin, ",
                                  asked.begin, ", not ", asked.end));
  }
  body.Finish();
  INLAY_RETURN_IF_ERROR(error);
  return asked;
}

absl::Status ReplyProbabilities(const ProbabilitiesHost& host, const Session& session,
                                AnswerRequest request, const Visit& visit) {
  INLAY_ASSIGN_OR_RETURN(const ProbabilitiesBody asked, ParseProbabilities(visit.request.body));
  if (asked.end > session.length()) {
    return absl::OutOfRangeError(absl::StrCat("end is ", asked.end, ", beyond the ",
                                              session.length(), " tokens of the session ",
                                              session.name));
  }
  request.prompt = session.Tokens();
  request.prompt.resize(asked.end);
  request.options = GenerateOptions();
  request.options.max_tokens = 0;
  request.options.top_chances = asked.top;
  request.options.score_from = asked.begin;
  Json reply = {{"object", "session.probabilities"},
                {"session", session.name},
                {"version", session.version},
                {"begin", asked.begin},
                {"end", asked.end}};
  const auto listener =
      std::make_shared<ProbabilitiesListener>(host, visit.WithoutRequest(), std::move(reply));
  INLAY_ASSIGN_OR_RETURN(const uint64_t id, host.scheduler.Submit(std::move(request), listener));
  visit.reply->OnGone([&scheduler = host.scheduler, id] { scheduler.Cancel(id); });
  return absl::OkStatus();
}

}  // namespace inlay::serve
