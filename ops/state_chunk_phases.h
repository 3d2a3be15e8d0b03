// The phases of a mixer with states in chunks: what all heads of a chunk share, then the heads.
#ifndef INLAY_OPS_STATE_CHUNK_PHASES_H_
#define INLAY_OPS_STATE_CHUNK_PHASES_H_

#include <cassert>
#include <cstddef>
#include <span>

#include "ops/item_finder.h"
#include "ops/team.h"

namespace inlay {

// Shares out the work on appends {chunks, count, row, dt [tokens, heads], ...} of one batch, of
// which there is one at least.
template <class Append>
class StateChunkPhases {
 public:
  StateChunkPhases(std::span<const Append> appends, Team& team) : appends_(appends), team_(team) {
    for (const Append& append : appends) {
      assert(append.row == tokens_);
      tokens_ += append.dt.rows;
      chunks_ += append.count;
    }
  }

  size_t tokens() const { return tokens_; }  // of all appends

  // Calls f(append, chunk, part) for each of `parts` parts of each chunk, in which a token takes
  // `multiplications`.
  template <class F>
  void ForChunks(size_t parts, size_t multiplications, const F& f) const {
    const double rows = static_cast<double>(tokens_) / static_cast<double>(chunks_);  // of a chunk
    Run(chunks_ * parts, rows * static_cast<double>(multiplications), [&](const Share& share) {
      ItemFinder finder(appends_, [&](const Append& append) { return append.count * parts; });
      for (size_t i = share.begin; i < share.end; ++i) {
        const auto [append, item] = finder.Find(i);
        f(append, append.chunks[item / parts], item % parts);
      }
    });
  }

  // Calls f(append, head, thread) for each of `heads` heads of each append, in which a token takes
  // `multiplications`, and the end of a chunk as many as two tokens.
  template <class F>
  void ForHeads(size_t heads, size_t multiplications, const F& f) const {
    const double rows = static_cast<double>(tokens_) / static_cast<double>(appends_.size());
    const auto work = [&](const Share& share) {
      for (size_t i = share.begin; i < share.end; ++i)
        f(appends_[i / heads], i % heads, share.thread);
    };
    Run(appends_.size() * heads, (rows + 2) * static_cast<double>(multiplications), work);
  }

 private:
  // One phase, in units that need `multiplications` each.
  template <class Work>
  void Run(size_t units, double multiplications, const Work& work) const {
    constexpr double kMultiplications = 30;  // per nanosecond
    const double time = static_cast<double>(units) * multiplications / kMultiplications;
    team_.Run(units, UnitsOfChunk(units, time, team_.threads()), work);
  }

  const std::span<const Append> appends_;
  Team& team_;
  size_t tokens_ = 0;  // of all appends
  size_t chunks_ = 0;  // of all appends
};

}  // namespace inlay

#endif  // INLAY_OPS_STATE_CHUNK_PHASES_H_
