#include "serve/service/metrics.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"

namespace inlay::serve {
namespace {

// The shortest decimal number that is read as the same one: with fewer digits a sum would stop to
// grow by short durations once it is large.
std::string Exact(double number) {
  std::array<char, 32> digits;
  const std::to_chars_result end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return std::string(digits.data(), end.ptr);
}

// In double quotes, as the value of a label.
std::string Quoted(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(Printable(text), {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

class Page {
 public:
  template <class Number>
  void Gauge(absl::string_view name, absl::string_view help, Number value) {
    PlainGauge(absl::StrCat("inlay_", name), help, value);
  }
  // Under a name that all programs use.
  template <class Number>
  void PlainGauge(absl::string_view name, absl::string_view help, Number value) {
    Head(name, help, "gauge");
    absl::StrAppend(&text_, name, " ", value, "\n");
  }
  void Counter(absl::string_view name, absl::string_view help, uint64_t value) {
    Head(absl::StrCat("inlay_", name), help, "counter");
    absl::StrAppend(&text_, "inlay_", name, " ", value, "\n");
  }
  void BuildInfo(const ServiceStats::Server& server) {
    Head("inlay_build_info", "Always 1; the labels tell what this server is.", "gauge");
    absl::StrAppend(&text_, "inlay_build_info{version=", Quoted(server.version),
                    ",model=", Quoted(server.model), ",fingerprint=", Quoted(server.fingerprint),
                    "} 1\n");
  }
  void RepliesByClass(const ReplyCounts& replies) {
    Head("inlay_replies_total",
         "Replies by the class of their status, without those of /health and /metrics.", "counter");
    for (int digit = ReplyCounts::kFirst; digit <= ReplyCounts::kLast; ++digit) {
      absl::StrAppend(&text_, "inlay_replies_total{status=\"", digit, "xx\"} ",
                      replies.of_class[static_cast<size_t>(digit - ReplyCounts::kFirst)].load(),
                      "\n");
    }
  }
  void Durations(absl::string_view name, absl::string_view help, const Histogram& histogram) {
    Head(absl::StrCat("inlay_", name), help, "histogram");
    uint64_t up_to = 0;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      up_to += histogram.counts[i];
      const std::string bound =
          i < Histogram::kBounds.size() ? absl::StrCat(Histogram::kBounds[i]) : std::string("+Inf");
      absl::StrAppend(&text_, "inlay_", name, "_bucket{le=\"", bound, "\"} ", up_to, "\n");
    }
    absl::StrAppend(&text_, "inlay_", name, "_sum ", Exact(histogram.sum), "\n");
    absl::StrAppend(&text_, "inlay_", name, "_count ", up_to, "\n");
  }
  std::string Take() && { return std::move(text_); }

 private:
  void Head(absl::string_view name, absl::string_view help, absl::string_view type) {
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  std::string text_;
};

void AddScheduler(const SchedulerStats& stats, Page& page) {
  page.Gauge("answers_waiting", "Answers that wait for their turn.", stats.waiting);
  page.Gauge("answers_running", "Answers that are computed.", stats.running);
  page.Gauge("batch_tokens", "Tokens of the last step.", stats.batch_tokens);
  page.Gauge("reserved_bytes", "Memory promised to running answers.", stats.reserved_bytes);
  page.Gauge("used_bytes", "Memory of conversations and snapshots.", stats.used_bytes);
  page.Gauge("memory_bytes", "The limit of both.", stats.memory_bytes);
  page.Gauge("snapshots", "Stored prefixes.", stats.snapshots);
  page.Gauge("snapshot_bytes", "Their memory.", stats.snapshot_bytes);
  page.Counter("steps_total", "Steps of the batch.", stats.steps);
  page.Counter("requests_total", "Requests accepted.", stats.requests);
  page.Counter("requests_refused_total", "Requests refused for a full queue.", stats.refused);
  page.Counter("answers_total", "Answers that ended as they should.", stats.answers);
  page.Counter("answers_failed_total", "Answers that ended with an error.", stats.failed);
  page.Counter("answers_timed_out_total", "Answers that the deadline ended.", stats.timed_out);
  page.Counter("answers_cancelled_total", "Answers that were cancelled.", stats.cancelled);
  page.Counter("pauses_total", "Answers paused for lack of memory.", stats.pauses);
  page.Counter("prompt_tokens_total", "Tokens of prompts.", stats.prompt_tokens);
  page.Counter("cached_tokens_total", "Of these, reused.", stats.cached_tokens);
  page.Counter("computed_tokens_total", "Tokens of prompts that were computed.",
               stats.computed_tokens);
  page.Counter("generated_tokens_total", "Tokens of answers.", stats.generated_tokens);
  page.Counter("drafted_tokens_total", "Tokens drafted and checked.", stats.drafted_tokens);
  page.Counter("accepted_tokens_total", "Of these, accepted.", stats.accepted_tokens);
  if (stats.shared.has_value()) {
    const SharedPrefixStats& shared = *stats.shared;
    page.Gauge("shared_prefixes_up", "1 while prefixes are shared with other servers.",
               shared.up ? 1 : 0);
    page.Gauge("shared_prefixes_waiting", "States that wait to be stored.", shared.waiting);
    page.Counter("shared_prefix_hits_total", "Prompts that began with another server's state.",
                 stats.shared_hits);
    page.Counter("shared_prefix_tokens_total", "Tokens of prompts that were reused by that.",
                 stats.shared_tokens);
    page.Counter("shared_prefix_misses_total", "Prompts for which no state was there.",
                 shared.misses);
    page.Counter("shared_prefix_late_total", "Prompts whose state did not come in time.",
                 shared.late);
    page.Counter("shared_prefix_refused_total", "States that were damaged or not this server's.",
                 shared.refused);
    page.Counter("shared_prefix_fetched_bytes_total", "Bytes of states that were fetched.",
                 shared.fetched_bytes);
    page.Counter("shared_prefix_stored_total", "States stored, or found to be stored.",
                 shared.stored);
    page.Counter("shared_prefix_stored_bytes_total", "Their bytes.", shared.stored_bytes);
  }
  page.Durations("queue_seconds", "From a request to its place in the batch.", stats.queue_seconds);
  page.Durations("first_token_seconds", "From a request to its first token.", stats.first_token);
  page.Durations("answer_seconds", "From a request to the end of its answer.",
                 stats.answer_seconds);
  page.Durations("between_tokens_seconds", "From a step of an answer to its next.",
                 stats.between_tokens);
  page.Durations("step_seconds", "Time of a step.", stats.step_seconds);
}

void AddEmbeddings(const EmbeddingCounts& counts, Page& page) {
  page.Gauge("embeddings_waiting", "Requests for embeddings that are computed or wait for that.",
             counts.taken_places.load());
  page.Counter("embeddings_total", "Requests for embeddings accepted.", counts.requests);
  page.Counter("embeddings_refused_total", "Requests for embeddings refused for a full queue.",
               counts.refused);
  page.Counter("embeddings_failed_total", "Requests for embeddings that ended with an error.",
               counts.failed);
  page.Counter("embedded_tokens_total", "Tokens of texts that were embedded.", counts.tokens);
}

void AddServer(const ServiceStats::Server& server, Page& page) {
  page.BuildInfo(server);
  page.PlainGauge("process_start_time_seconds", "When the process was started, since 1970.",
                  Exact(server.started));
  if (server.resident_bytes.has_value()) {
    page.PlainGauge("process_resident_memory_bytes", "Resident memory of the process.",
                    *server.resident_bytes);
  }
  page.Gauge("draining", "1 while the server lets its last answers end.", server.draining ? 1 : 0);
  page.Gauge("model_readable", "0 once the model's file has changed or could not be read.",
             server.model_is_readable ? 1 : 0);
  page.Counter("key_reloads_failed_total", "Attempts to read the API keys again that failed.",
               server.failed_key_reloads);
}

void AddSessions(const ServiceStats::Sessions& sessions, Page& page) {
  page.Gauge("sessions_up", "1 while the store of sessions can be reached.", sessions.up ? 1 : 0);
  page.Gauge("sessions_in_use", "Sessions that requests are changing now.", sessions.in_use);
  if (sessions.count.has_value())
    page.Gauge("sessions", "Sessions that are kept.", *sessions.count);
  if (!sessions.memory.has_value()) return;
  page.Gauge("session_bytes", "Sessions that are kept in memory.", sessions.memory->bytes);
  page.Gauge("session_memory_bytes", "Their limit.", sessions.memory->most_bytes);
}

}  // namespace

std::string MetricsText(const ServiceStats& stats) {
  Page page;
  if (stats.server.has_value()) AddServer(*stats.server, page);
  page.Gauge("connections", "Open connections.", stats.connections);
  if (stats.replies != nullptr) page.RepliesByClass(*stats.replies);
  if (stats.answer_log.has_value()) {
    page.Counter("answer_log_failed_total", "Answers that could not be logged.",
                 stats.answer_log->lost);
    page.Gauge("answer_log_waiting_bytes", "Memory of answers that wait to be logged.",
               stats.answer_log->waiting_bytes);
  }
  if (stats.lost_access_lines.has_value()) {
    page.Counter("access_log_failed_total", "Requests that could not be logged.",
                 *stats.lost_access_lines);
  }
  if (stats.sessions.has_value()) AddSessions(*stats.sessions, page);
  if (stats.embeddings != nullptr) AddEmbeddings(*stats.embeddings, page);
  if (stats.scheduler.has_value()) AddScheduler(*stats.scheduler, page);
  return std::move(page).Take();
}

}  // namespace inlay::serve
