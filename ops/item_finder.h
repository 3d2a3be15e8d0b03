// Finds whose an item is where some things have items and all items are numbered in a row.
#ifndef INLAY_OPS_ITEM_FINDER_H_
#define INLAY_OPS_ITEM_FINDER_H_

#include <cstddef>
#include <span>

namespace inlay {

// For the chunks of a phase over all segments of a batch: count(thing) says how many items it has.
template <class Thing, class Count>
class ItemFinder {
 public:
  ItemFinder(std::span<const Thing> things, Count count) : thing_(things.data()), count_(count) {}

  struct Found {
    const Thing& thing;
    size_t item;  // among the thing's own
  };
  // Item numbers must not descend from call to call.
  Found Find(size_t item) {
    for (size_t n; item - first_ >= (n = count_(*thing_)); ++thing_) first_ += n;
    return {*thing_, item - first_};
  }

 private:
  const Thing* thing_;
  Count count_;
  size_t first_ = 0;  // number of its first item
};

}  // namespace inlay

#endif  // INLAY_OPS_ITEM_FINDER_H_
