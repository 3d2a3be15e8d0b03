// Finds the owner of an item where several things have items and all items are numbered
// consecutively.
#ifndef INLAY_OPS_ITEM_FINDER_H_
#define INLAY_OPS_ITEM_FINDER_H_

#include <cstddef>
#include <span>

namespace inlay {

// Used by phases whose units are the items of all segments of a batch: count(thing) returns the
// number of items of a thing.
template <class Thing, class Count>
class ItemFinder {
 public:
  ItemFinder(std::span<const Thing> things, Count count) : thing_(things.data()), count_(count) {}

  struct Found {
    const Thing& thing;
    size_t item;  // index among the thing's own items
  };
  // Item numbers must not decrease from call to call.
  Found Find(size_t item) {
    for (size_t n; item - first_ >= (n = count_(*thing_)); ++thing_) first_ += n;
    return {*thing_, item - first_};
  }

 private:
  const Thing* thing_;
  Count count_;
  size_t first_ = 0;  // number of *thing_'s first item
};

}  // namespace inlay

#endif  // INLAY_OPS_ITEM_FINDER_H_
