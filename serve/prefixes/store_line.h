// One thread's connection to the store of snapshots, which rests after failures.
#ifndef INLAY_SERVE_PREFIXES_STORE_LINE_H_
#define INLAY_SERVE_PREFIXES_STORE_LINE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "io/store/snapshot_store.h"
#include "serve/notes/note.h"

namespace inlay::serve {

// What a line does with the store.
enum class StoreUse { kReads, kWrites };

// Tells once that snapshots are no longer read, or only that none are stored, and once that all
// lines work again. Safe to use from several threads.
class OutageNotes {
 public:
  // `note` may be null.
  explicit OutageNotes(std::function<void(absl::string_view sentence)> note)
      : note_(std::move(note)) {}

  // A line of this use has begun to fail, and works again.
  void Begin(StoreUse use, const absl::Status& why);
  void End(StoreUse use);
  // The number of lines that do not work now. It does not wait for whoever is being told.
  size_t down() const { return down_; }

 private:
  const Note note_;
  // Held while a sentence is told, too, so that they come in their order. Guards changes of the
  // members below.
  std::mutex mutex_;
  std::atomic<size_t> down_ = 0;
  size_t reads_down_ = 0;  // of these
};

// For one thread, which connects when connected() is false, uses store() and says what came of it.
class StoreLine {
 public:
  // After a second failure in a row it rests for `rest`, and after each further one twice as long,
  // up to a minute. The first one may be a connection that was idle for too long for the server.
  StoreLine(std::unique_ptr<SnapshotStore> store, StoreUse use, absl::Duration rest,
            OutageNotes& notes)
      : store_(std::move(store)), use_(use), rest_(rest), notes_(notes) {}

  SnapshotStore& store() { return *store_; }
  bool connected() const { return connected_; }

  // How long to rest before Connect.
  absl::Duration Rest() const;
  // Tries once; the outcome is connected().
  void Connect();

  // What came of the last use of the store.
  void Failed(const absl::Status& why);
  void Succeeded();

 private:
  const std::unique_ptr<SnapshotStore> store_;
  const StoreUse use_;
  const absl::Duration rest_;
  OutageNotes& notes_;
  bool connected_ = false;
  bool reachable_ = true;  // as far as is known
  bool noted_ = false;
  int failures_ = 0;  // in a row
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_PREFIXES_STORE_LINE_H_
