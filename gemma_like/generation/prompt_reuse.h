// Which prefix cache a prompt reuses a prefix from and stores its snapshots in.
#ifndef INLAY_GEMMA_LIKE_GENERATION_PROMPT_REUSE_H_
#define INLAY_GEMMA_LIKE_GENERATION_PROMPT_REUSE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace inlay {

class KVCache;
class PrefixCache;

struct PromptReuse {
  PrefixCache* prefixes = nullptr;  // nullptr: the whole prompt is computed
  // A snapshot is stored after every `stride` tokens; 0: none of these.
  size_t stride = 0;
  // Lengths of the prompt, ascending, at which a snapshot is stored, too: other prompts are likely
  // to be the same up to there and to differ after it.
  std::vector<size_t> marks = {};
  // The one of these after which the prompt has a tail (PrefixCost); 0: it has none.
  size_t tail_mark = 0;
  // And at the end.
  bool at_end = true;
  // Only snapshots of the same owner are reused; 0 or more.
  int32_t owner = 0;
  // Told of the conversation at each of these places, whether or not `prefixes` had room for a
  // snapshot: others that it is offered to may have. It must not throw.
  std::function<void(const KVCache&)> at_snapshot = nullptr;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_PROMPT_REUSE_H_
