// A store that asks another one, for tests that change what some of it does.
#ifndef INLAY_TESTS_IO_STORE_FORWARDING_STORE_H_
#define INLAY_TESTS_IO_STORE_FORWARDING_STORE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/store/state_store.h"

namespace inlay {

class ForwardingStore : public StateStore {
 public:
  explicit ForwardingStore(std::shared_ptr<StateStore> store) : store_(std::move(store)) {}

  absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                       StateTag replaced) override {
    return store_->PutOver(key, replaced);
  }
  absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override {
    return store_->Get(key);
  }
  absl::Status Delete(absl::string_view key) override { return store_->Delete(key); }
  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override {
    return store_->List(prefix);
  }
  absl::StatusOr<size_t> Count(absl::string_view prefix) override { return store_->Count(prefix); }
  std::optional<size_t> KnownCount() override { return store_->KnownCount(); }
  absl::Status MarkUsed(absl::string_view key) override { return store_->MarkUsed(key); }
  absl::StatusOr<std::vector<std::string>> ListUnused(absl::string_view prefix,
                                                      absl::Duration time) override {
    return store_->ListUnused(prefix, time);
  }
  absl::Status DeleteUnused(absl::string_view key, absl::Duration time) override {
    return store_->DeleteUnused(key, time);
  }

 private:
  const std::shared_ptr<StateStore> store_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_IO_STORE_FORWARDING_STORE_H_
