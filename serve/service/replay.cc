#include "serve/service/replay.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "serve/service/answer_record.h"

namespace inlay::serve {
namespace {

// Compares an answer with the recorded one when it has ended.
class ReplayListener final : public AnswerListener {
 public:
  ReplayListener(Visit visit, AnswerRecord record, bool same_server)
      : visit_(std::move(visit)), record_(std::move(record)), same_server_(same_server) {}
  void OnStart(const AnswerUsage&) override {}
  bool OnUpdate(const AnswerUpdate&) override { return true; }
  void OnEnd(const AnswerEnd& end) override {
    if (visit_.access != nullptr) visit_.access->AddAnswer(end);
    if (!end.status.ok()) return visit_.Fail(end.status);
    const std::optional<AnswerDifference> difference = Compare(record_.tokens, end.tokens);
    Json body = {{"same", !difference.has_value()}, {"same_fingerprint", same_server_}};
    if (difference.has_value()) {
      const auto token = [](std::optional<int32_t> id) { return id ? Json(*id) : Json(nullptr); };
      body["token"] = difference->token;
      body["recorded"] = token(difference->expected);
      body["recomputed"] = token(difference->recomputed);
    }
    visit_.Send(std::move(body));
  }

 private:
  const Visit visit_;
  const AnswerRecord record_;
  const bool same_server_;
};

}  // namespace

void ReplayAnswer(Scheduler& scheduler, AnswerGrammars& grammars,
                  const std::string& engine_fingerprint, const Visit& visit) {
  const absl::StatusOr<AnswerRecord> record = ParseRecord(visit.request.body);
  if (!record.ok()) return visit.Fail(record.status());
  absl::StatusOr<GenerateOptions> options = ReplayOptions(*record, grammars);
  if (!options.ok()) return visit.Fail(options.status());
  AnswerRequest request{.prompt = record->prompt, .options = *std::move(options)};
  request.owner = request.prefix_owner = visit.client.owner;
  request.priority = visit.client.priority;
  request.deadline = visit.deadline;
  const auto listener = std::make_shared<ReplayListener>(
      visit.WithoutRequest(), *record, record->engine_fingerprint == engine_fingerprint);
  const absl::StatusOr<uint64_t> id = scheduler.Submit(std::move(request), listener);
  if (!id.ok()) return visit.Fail(id.status());
  visit.reply->OnGone([&scheduler, id = *id] { scheduler.Cancel(id); });
}

}  // namespace inlay::serve
