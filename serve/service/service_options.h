// How the service answers.
#ifndef INLAY_SERVE_SERVICE_SERVICE_OPTIONS_H_
#define INLAY_SERVE_SERVICE_SERVICE_OPTIONS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "io/store/state_store.h"
#include "serve/api/parse_options.h"
#include "serve/prefixes/shared_prefixes.h"
#include "serve/scheduler/scheduler_options.h"
#include "serve/service/access_log.h"
#include "serve/service/answer_log.h"

namespace inlay::serve {

struct ServiceOptions {
  std::string model_name;  // as replies and /v1/models name it
  SchedulerOptions scheduler;
  bool page = true;             // a web page at "/", without a key
  bool share_prefixes = false;  // among the keys, too
  bool open_metrics = false;    // /metrics without a key
  // Where servers find each other's prefixes; none: each has its own alone.
  std::optional<SharedPrefixesOptions> shared_prefixes = std::nullopt;
  ParseOptions parsing;                                // of requests
  absl::Duration deadline = absl::InfiniteDuration();  // of a request, from its arrival
  absl::Duration ping = absl::Seconds(15);             // between signs of life of a stream
  // Where it is set, replies hold nothing that is random, timed or dependent on other requests: a
  // reply is named after HttpRequest::id, which must be a text of letters and digits, and its seed
  // derives from that where the request has none; it was created at this time, which is also what
  // chat templates are told, in UTC; and it counts no tokens as cached.
  std::optional<absl::Time> reproducible_at;
  std::shared_ptr<AnswerLog> answer_log;  // which each answer is appended to; null: none
  // Which each request is noted in, but for those of the page, /health and /metrics; null: none.
  std::shared_ptr<AccessLog> access_log = nullptr;
  // Where sessions are kept; null: in memory, as long as the service lives, in at most a quarter of
  // SchedulerOptions::memory and 1 GiB.
  std::shared_ptr<StateStore> sessions = nullptr;
  // How long they are kept: see SessionLimits::ttl.
  absl::Duration session_ttl = absl::ZeroDuration();
  // Told what the operator is to know and clients are not: errors of the store of sessions in full,
  // and failures of the server's own (see Failures). On any thread; may be null.
  std::function<void(absl::string_view sentence)> note = nullptr;
  // Refuse turns of sessions that have turns of another fingerprint.
  bool own_sessions_only = false;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SERVICE_OPTIONS_H_
