#include "serve/batch_job/request_loop.h"

#include <atomic>
#include <cassert>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/out_of_memory.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "base/wait_for.h"
#include "serve/batch_job/result_line.h"
#include "serve/service/service.h"

namespace inlay::serve {
namespace {

constexpr absl::Duration kReplyPoll = absl::Milliseconds(50);

struct Reply {
  size_t request = 0;
  int status = 0;  // 0: there was no memory for a reply
  std::string body;
};

// Replies that wait to be written down. Any thread may add some, which allocates nothing.
class ReplyBox {
 public:
  void Add(std::list<Reply>& replies) {
    const std::lock_guard lock(mutex_);
    replies_.splice(replies_.end(), replies);
    added_.notify_one();
  }
  // All replies, once there are any; none after `most`.
  std::list<Reply> Take(absl::Duration most) {
    std::unique_lock lock(mutex_);
    WaitFor(added_, lock, most, [this] { return !replies_.empty(); });
    return std::exchange(replies_, {});
  }

 private:
  std::mutex mutex_;  // guards replies_
  std::condition_variable added_;
  std::list<Reply> replies_;
};

// Puts the reply to one request into the box.
class BoxedReply final : public HttpReply {
 public:
  BoxedReply(std::shared_ptr<ReplyBox> box, size_t request)
      : box_(std::move(box)), reply_(1, Reply{.request = request, .status = 0, .body = ""}) {}
  ~BoxedReply() override { Add(0, ""); }

  void Send(int status, absl::string_view, std::string body, HttpHeaders) override {
    Add(status, std::move(body));
  }
  // Streams are refused before, so that there are none.
  void StartStream(int, absl::string_view, HttpHeaders) override {}
  void Write(std::string) override {}
  void Finish() override {}
  void FailWithoutMemory() noexcept override { Add(0, ""); }
  void OnGone(std::function<void()>) override {}

 private:
  void Add(int status, std::string body) {
    if (sent_.exchange(true)) return;
    reply_.front().status = status;
    reply_.front().body = std::move(body);
    box_->Add(reply_);
  }

  const std::shared_ptr<ReplyBox> box_;
  std::list<Reply> reply_;  // one, until it is sent
  std::atomic<bool> sent_ = false;
};

class Loop {
 public:
  Loop(const RequestFile& requests, const JobIdentity& identity, const Shard& shard,
       const HttpHandler& handler, Journal& journal, const RequestLoopOptions& options)
      : requests_(requests),
        identity_(identity),
        shard_(shard),
        handler_(handler),
        journal_(journal),
        options_(options),
        next_(shard.index),
        kept_(journal.results()) {}

  absl::Status Run() {
    const absl::Status answered = AnswerAll();
    if (answered.ok()) return journal_.End();
    // What came before the error outlives a loss of power, too; that error counts.
    (void)journal_.Sync();
    return answered;
  }

 private:
  absl::Status AnswerAll() {
    const size_t total = shard_.SizeOf(requests_.size());
    // Steady: a clock that is set back must not keep results from the disk.
    absl::Time synced = SteadyNow();
    while (journal_.results() < total) {
      const bool stops = options_.stop && options_.stop();
      if (!stops) INLAY_RETURN_IF_ERROR(SubmitSome());
      if (in_flight_ == 0 && !stops) return OutOfMemoryForSome();
      for (const Reply& reply : box_->Take(stops ? absl::ZeroDuration() : kReplyPoll))
        INLAY_RETURN_IF_ERROR(Take(reply));
      if (stops) return absl::CancelledError("interrupted");
      if (options_.progress) {
        options_.progress({.kept = kept_,
                           .results = journal_.results(),
                           .failed = journal_.failed(),
                           .total = total});
      }
      if (const absl::Time now = SteadyNow(); now - synced >= options_.sync) {
        INLAY_RETURN_IF_ERROR(journal_.Sync());
        synced = now;
      }
    }
    return absl::OkStatus();
  }

  absl::Status OutOfMemoryForSome() const {
    assert(!refused_.empty());
    INLAY_ASSIGN_OR_RETURN(const BatchRequest first, requests_.Read(refused_.front()));
    return absl::ResourceExhaustedError(
        absl::StrCat("there is not enough memory for ", Plural(refused_.size(), "request"),
                     ", though nothing else is computed; the first has the custom_id ",
                     QuoteForMessage(first.custom_id)));
  }

  absl::Status SubmitSome() {
    for (; next_ < requests_.size() && in_flight_ < options_.most_in_flight;
         next_ += shard_.count) {
      if (!journal_.Has(next_)) INLAY_RETURN_IF_ERROR(Submit(next_));
    }
    if (in_flight_ > 0 || next_ < requests_.size() || again_.empty()) return absl::OkStatus();
    last_try_ = true;
    const size_t request = again_.front();
    again_.pop_front();
    return Submit(request);
  }

  absl::Status Submit(size_t number) {
    INLAY_ASSIGN_OR_RETURN(BatchRequest request, requests_.Read(number));
    return OrOutOfMemory("a request", [&]() -> absl::Status {
      ++in_flight_;
      auto reply = std::make_shared<BoxedReply>(box_, number);
      if (request.stream) {
        reply->Send(400, "", HttpErrorBody(request.url, 400, "a batch has no streams"), {});
        return absl::OkStatus();
      }
      std::string id = ReplyId(identity_, request);
      handler_({.method = "POST",
                .path = std::move(request.url),
                .query = "",
                .headers = {},
                .body = std::move(request.body),
                .id = std::move(id)},
               std::move(reply));
      return absl::OkStatus();
    });
  }

  absl::Status Take(const Reply& reply) {
    --in_flight_;
    const bool refused = reply.status == 429 || reply.status == 503 || reply.status == 0;
    return OrOutOfMemory("a result", [&]() -> absl::Status {
      if (refused) {
        if (options_.check_handler) INLAY_RETURN_IF_ERROR(options_.check_handler());
        (last_try_ ? refused_ : again_).push_back(reply.request);
        return absl::OkStatus();
      }
      INLAY_ASSIGN_OR_RETURN(const BatchRequest request, requests_.Read(reply.request));
      return journal_.Append(
          reply.request, reply.status,
          ResultLine(ReplyId(identity_, request), request.custom_id, reply.status, reply.body));
    });
  }

  const RequestFile& requests_;
  const JobIdentity& identity_;
  const Shard shard_;
  const HttpHandler& handler_;
  Journal& journal_;
  const RequestLoopOptions& options_;
  const std::shared_ptr<ReplyBox> box_ = std::make_shared<ReplyBox>();
  size_t next_;               // the first request that was not submitted
  const size_t kept_;         // results from earlier runs
  size_t in_flight_ = 0;      // requests whose replies have not been taken
  std::deque<size_t> again_;  // refused for lack of memory
  // All others have their results, and those of `again_` are submitted one after the other.
  bool last_try_ = false;
  std::deque<size_t> refused_;  // refused in that last try as well
};

}  // namespace

absl::Status AnswerRequests(const RequestFile& requests, const JobIdentity& identity,
                            const Shard& shard, const HttpHandler& handler, Journal& journal,
                            const RequestLoopOptions& options) {
  return OrOutOfMemory("the requests of a job", [&] {
    return Loop(requests, identity, shard, handler, journal, options).Run();
  });
}

}  // namespace inlay::serve
