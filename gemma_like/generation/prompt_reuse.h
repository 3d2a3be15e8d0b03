// Where the beginning of a prompt may come from, and snapshots of it go to.
#ifndef INLAY_GEMMA_LIKE_GENERATION_PROMPT_REUSE_H_
#define INLAY_GEMMA_LIKE_GENERATION_PROMPT_REUSE_H_

#include <cstddef>

namespace inlay {

class PrefixCache;

struct PromptReuse {
  PrefixCache* prefixes = nullptr;  // none: everything is computed
  size_t stride = 0;  // a snapshot after so many tokens each, and one at the end; 0: only that
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_PROMPT_REUSE_H_
