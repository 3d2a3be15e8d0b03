// What drafts cost on this machine, in time.
#ifndef INLAY_GEMMA_LIKE_GENERATION_DRAFT_TIMES_H_
#define INLAY_GEMMA_LIKE_GENERATION_DRAFT_TIMES_H_

#include <cstddef>

#include "gemma_like/generation/draft_policy.h"

namespace inlay {

// Follows how long passes take, so that the costs of drafts become known: bytes tell little of
// models that the processor's caches hold.
class DraftTimes {
 public:
  // The model took so long for the logits of `rows` >= 1 tokens, from one draft to the next.
  void ModelPass(double seconds, size_t rows);
  // The draft model took so long for one token.
  void DraftPass(double seconds);

  // What is known, and `assumed` for the rest.
  DraftCosts CostsOr(const DraftCosts& assumed) const;

 private:
  // A mean of which late values count more, and none more than some times the mean: a pass may be
  // held up by whatever else runs.
  struct Mean {
    size_t count = 0;
    double value = 0;

    void Add(double sample);
    bool known() const;
  };

  Mean one_;    // seconds of the model for one token
  Mean row_;    // seconds more for each further one
  Mean draft_;  // seconds of the draft model
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_DRAFT_TIMES_H_
