// Which tokens a grammar accepts next, in every configuration.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_TOKEN_MASKS_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_TOKEN_MASKS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gemma_like/grammar/automaton.h"
#include "gemma_like/grammar/plain_steps.h"
#include "gemma_like/grammar/token_trie.h"

namespace inlay {

// The tokens that a frame accepts do not depend on what follows it, unless the frame ends within
// the token. So the mask of a frame is found once, together with the places in the trie where the
// frame may end, and the mask of a configuration is put together from those of its frames and from
// what follows at these places. Masks are kept, the most recently used ones. Many have the same
// tokens, as those of a string have for every number of characters that it may still get as long as
// no token has so many; these tokens are kept once.
//
// Whether an answer takes too much work does not depend on what was kept.
//
// Not thread-safe. The automaton and the trie must outlive it.
class TokenMasks {
 public:
  using Config = Automaton::Config;

  // `ends` are accepted exactly where the text is complete. About `cache_bytes` of masks are kept,
  // and the automaton is compacted when it takes more than `state_bytes`.
  TokenMasks(Automaton& automaton, const TokenTrie& trie, absl::Span<const int32_t> ends,
             size_t state_bytes, size_t cache_bytes);

  // The tokens whose bytes are accepted next. The automaton may be compacted, which changes the
  // number `config`. ResourceExhausted if that takes more than kMostWork steps, or one of the
  // configurations has too many ways to read the text.
  absl::StatusOr<std::shared_ptr<const TokenBits>> Of(Config* config);

  // In states of the grammar, and what steps cost beyond these (Automaton::HeavyWorkOf).
  static constexpr uint64_t kMostWork = PlainSteps::kMostWork;

 private:
  using Part = TokenTrie::Part;

  // A node with more below, where the frame may end.
  struct Leaf {
    const Part* part;
    uint32_t node;
  };

  // What masks have in common.
  struct SharedBits {
    TokenBits bits;
    uint64_t hash = 0;  // once they are kept
    size_t masks = 0;   // that are kept and have them
  };

  struct Mask {
    explicit Mask(size_t words)
        : shared(std::make_shared<SharedBits>(SharedBits{TokenBits(words)})) {}

    TokenBits& bits() { return shared->bits; }
    size_t bytes() const { return sizeof(Mask) + leaves.capacity() * sizeof(Leaf); }

    std::shared_ptr<SharedBits> shared;  // changed only while it is this mask's alone
    std::vector<Leaf> leaves = {};
    bool leaves_plain = false;  // it may end after a plain token, or within one
    uint64_t work = 0;          // what it took, as kMostWork
  };

  // A walk through the trie: what it finds, and the configurations that it must not lose when the
  // automaton is compacted.
  struct Walk {
    Mask* mask;
    std::vector<Config*> keep;
    std::vector<Config> path;  // by depth; the first is the configuration where it starts
  };

  absl::StatusOr<std::shared_ptr<const Mask>> MaskOf(Config* config);
  absl::Status AddGroup(size_t index, Config* config, Mask* mask);
  absl::StatusOr<std::shared_ptr<const Mask>> FrameMask(Automaton::Frame frame, Config* keep);

  // From walk->path[0] alone; they leave the path so.
  absl::Status AddAll(Walk* walk);
  // Adds the tokens of a part below a node, or all of them.
  absl::Status WalkPart(const Part& part, uint32_t from, Walk* walk);
  absl::Status WalkPlain(Walk* walk);
  bool MostAreLoops(Walk* walk);

  // The configurations after 0, 1, ... plain characters, as long as some are accepted, up to
  // kMostPlain of them.
  struct PlainRun {
    bool alike = true;    // there is one such configuration for all plain characters
    bool leaves = false;  // the frame may end after one of them
    std::vector<Config> configs;
  };
  PlainRun FindPlainRun(Config config, uint64_t* work);
  absl::Status AddPlain(const PlainRun& run, Walk* walk);

  // Puts the configuration after the byte, or kDead, at `depth` of the path; false: too ambiguous.
  bool Step(uint8_t byte, size_t depth, Walk* walk);
  void LimitMemory(Walk* walk, size_t depth);

  std::shared_ptr<const Mask> Find(uint64_t key);
  std::shared_ptr<const Mask> Keep(uint64_t key, Mask mask);
  void ShareBits(Mask* mask);
  void DropOldest();

  Automaton& automaton_;
  const TokenTrie& trie_;
  const std::vector<int32_t> ends_;
  const size_t state_bytes_, cache_bytes_;
  PlainSteps plain_steps_;
  uint64_t steps_ = 0;

  // By key: twice the number of a configuration, plus one if the mask is without `ends`.
  using Kept = std::list<std::pair<uint64_t, std::shared_ptr<const Mask>>>;
  uint64_t epoch_ = 0;
  Kept kept_;  // the most recently used one first
  std::unordered_map<uint64_t, Kept::iterator> places_;
  struct HashOfBits {
    size_t operator()(const std::shared_ptr<SharedBits>& shared) const { return shared->hash; }
  };
  struct SameBits {
    bool operator()(const std::shared_ptr<SharedBits>& a,
                    const std::shared_ptr<SharedBits>& b) const {
      return a == b || a->bits == b->bits;
    }
  };
  std::unordered_set<std::shared_ptr<SharedBits>, HashOfBits, SameBits> shared_;  // of kept_
  size_t kept_bytes_ = 0;                                                         // of both
};

// ResourceExhausted: a step led to Automaton::kTooMany.
absl::Status TooAmbiguous();

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_TOKEN_MASKS_H_
