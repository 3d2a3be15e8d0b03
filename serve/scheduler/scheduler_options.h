// The limits of the scheduler.
#ifndef INLAY_SERVE_SCHEDULER_SCHEDULER_OPTIONS_H_
#define INLAY_SERVE_SCHEDULER_SCHEDULER_OPTIONS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gemma_like/generation/draft_policy.h"
#include "ops/attention/kv_type.h"

namespace inlay {
class Engine;
}

namespace inlay::serve {

class SharedPrefixes;

struct SchedulerOptions {
  KvType kv_type = kDefaultKvType;
  size_t context = 4096;            // the longest conversation, in tokens
  size_t memory = size_t{1} << 30;  // bytes of conversations and snapshots
  // Tokens for which memory is promised at a time to answers without a bound of their own.
  size_t reserve = 256;
  size_t most_running = 64;   // answers that are computed at once
  size_t most_waiting = 256;  // requests that wait for their turn, besides those that need not
  // A step of the batch is meant to take so long while answers wait for their next token.
  absl::Duration step = absl::Milliseconds(100);
  size_t snapshot_stride = 512;  // tokens of a prompt between snapshots
  size_t draft = 4;              // tokens drafted, where few answers run; 0: none
  // Drafts instead of looking in the text. It has the model's vocabulary (see CheckDraftModel),
  // outlives the scheduler, and its conversations take an eighth of the memory.
  Engine* draft_model = nullptr;
  // What its drafts are taken to cost; nullopt: what they are measured to.
  std::optional<DraftCosts> draft_costs = std::nullopt;
  // Where other servers leave states of prompts, and find those of this one; null: nowhere.
  std::shared_ptr<SharedPrefixes> shared_prefixes = nullptr;
  // How long Drain waits for answers that it has cancelled. They end after the layer that is being
  // computed, and their listeners are told then.
  absl::Duration time_to_cancel = absl::Seconds(5);
  // Called with each error that an answer ends with, on the scheduler's thread. Returns the error
  // that its client is told instead. It must not throw. Null: clients are told the error itself.
  std::function<absl::Status(const absl::Status& error)> on_error = nullptr;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_SCHEDULER_OPTIONS_H_
