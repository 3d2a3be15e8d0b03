// In which order waiting requests get their turn.
#ifndef INLAY_SERVE_SCHEDULER_FAIR_QUEUE_H_
#define INLAY_SERVE_SCHEDULER_FAIR_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace inlay::serve {

// Higher priorities go first. Among equals, owners take turns by the tokens that they were given so
// far (start-time fair queueing: Goyal, Vin, Cheng 1996), and an owner's requests keep their order.
// What a request will be given is known only afterwards, so tokens are charged as they are given.
// An owner who was away has saved nothing up.
template <class Item>
class FairQueue {
 public:
  // `order` is unique; an item with a smaller one goes before the owner's others. The item is still
  // the caller's if memory runs out (std::bad_alloc).
  void Push(int priority, int32_t owner, uint64_t order, Item&& item) {
    Clock& clock = clocks_[-priority];
    // What was given while nobody waited was taken from nobody.
    if (clock.waiting == 0) clock.now = clock.most;
    Lane& lane = lanes_[{-priority, owner}];
    if (lane.items.empty()) lane.served = std::max(lane.served, clock.now);
    lane.items.emplace(order, std::move(item));
    ++clock.waiting;
    ++size_;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The item whose turn it is; the queue must not be empty.
  const Item& front() { return Turn()->second.items.begin()->second; }

  // Removes the item whose turn it is. Its owner is charged with one token, so that owners
  // alternate where several items go before anything is given to them.
  Item Pop() {
    const auto turn = Turn();
    Lane& lane = turn->second;
    Clock& clock = clocks_.find(turn->first.first)->second;
    clock.now = lane.served;
    lane.served += 1;
    clock.most = std::max(clock.most, lane.served);
    Item item = std::move(lane.items.begin()->second);
    lane.items.erase(lane.items.begin());
    --clock.waiting;
    --size_;
    if (lane.items.empty() && lanes_.size() > kMostIdle) Forget();
    return item;
  }

  // Charges an owner with the tokens that an item of this priority was given. std::bad_alloc where
  // memory runs out, with no change.
  void Charge(int priority, int32_t owner, size_t tokens) {
    Clock& clock = clocks_[-priority];
    const auto [lane, is_new] = lanes_.try_emplace({-priority, owner});
    double& served = lane->second.served;
    if (is_new) served = clock.now;
    served += static_cast<double>(tokens);
    clock.most = std::max(clock.most, served);
  }

  // Removes all items for which `gone(item)` is true, after f(item).
  template <class Gone, class F>
  void RemoveIf(const Gone& gone, const F& f) {
    for (auto& [key, lane] : lanes_) {
      for (auto it = lane.items.begin(); it != lane.items.end();) {
        if (!gone(it->second)) {
          ++it;
          continue;
        }
        f(it->second);
        it = lane.items.erase(it);
        --clocks_.find(key.first)->second.waiting;
        --size_;
      }
    }
  }

 private:
  static constexpr size_t kMostIdle = 1024;

  struct Lane {
    std::map<uint64_t, Item> items;  // by order
    double served = 0;               // tokens, on the priority's clock
  };
  using Lanes = std::map<std::pair<int, int32_t>, Lane>;  // by descending priority, owner

  typename Lanes::iterator Turn() {
    auto best = lanes_.end();
    for (auto it = lanes_.begin(); it != lanes_.end(); ++it) {
      if (it->second.items.empty()) continue;
      if (best != lanes_.end() && it->first.first != best->first.first) break;
      if (best == lanes_.end() || it->second.served < best->second.served) best = it;
    }
    return best;
  }

  void Forget() {
    std::erase_if(lanes_, [&](const auto& lane) {
      return lane.second.items.empty() &&
             lane.second.served <= clocks_.find(lane.first.first)->second.now;
    });
  }

  struct Clock {
    double now = 0;      // what the owner whose turn it was last had been given before it
    double most = 0;     // that any owner was given
    size_t waiting = 0;  // items
  };

  Lanes lanes_;
  // Of each priority, by descending one. With one clock for all, whoever has been given much at one
  // priority would set back who comes new to another.
  std::map<int, Clock> clocks_;
  size_t size_ = 0;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_FAIR_QUEUE_H_
