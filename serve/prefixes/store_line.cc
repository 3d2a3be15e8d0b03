#include "serve/prefixes/store_line.h"

#include <algorithm>
#include <utility>

#include "base/out_of_memory.h"

namespace inlay::serve {
namespace {

constexpr absl::Duration kLongestRest = absl::Minutes(1);

}  // namespace

void OutageNotes::Begin(StoreUse use, const absl::Status& why) {
  const std::lock_guard lock(mutex_);
  const bool reads = use == StoreUse::kReads;
  // Who was told that none are read need not be told that none are stored.
  const bool told = (reads ? reads_down_ : down_.load()) > 0;
  ++down_;
  if (reads) ++reads_down_;
  if (told) return;
  note_.Tell(reads ? "prefixes are not shared for now, and prompts are computed: "
                   : "prefixes are not stored for now: ",
             why.message());
}

void OutageNotes::End(StoreUse use) {
  const std::lock_guard lock(mutex_);
  if (use == StoreUse::kReads) --reads_down_;
  if (--down_ == 0) note_.Tell("prefixes are shared again");
}

absl::Duration StoreLine::Rest() const {
  if (failures_ < 2) return absl::ZeroDuration();
  return std::min(kLongestRest, rest_ * (1 << std::min(failures_ - 2, 16)));
}

void StoreLine::Connect() {
  const absl::Status status =
      OrOutOfMemory("a connection to Redis", [this] { return store_->Connect(); });
  if (!status.ok()) {
    Failed(status);
    reachable_ = false;
    return;
  }
  connected_ = true;
  // What was not reached is reached again. What was reached and failed has yet to work.
  if (!std::exchange(reachable_, true)) Succeeded();
}

void StoreLine::Failed(const absl::Status& why) {
  connected_ = false;
  ++failures_;
  if (failures_ < 2 || noted_) return;
  noted_ = true;
  notes_.Begin(use_, why);
}

void StoreLine::Succeeded() {
  failures_ = 0;
  if (!noted_) return;
  noted_ = false;
  notes_.End(use_);
}

}  // namespace inlay::serve
