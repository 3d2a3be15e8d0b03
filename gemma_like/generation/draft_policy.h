// How many tokens a draft model should draft.
#ifndef INLAY_GEMMA_LIKE_GENERATION_DRAFT_POLICY_H_
#define INLAY_GEMMA_LIKE_GENERATION_DRAFT_POLICY_H_

#include <array>
#include <cstddef>
#include <vector>

namespace inlay {

// What drafting costs, in passes of the model that decodes without drafts.
struct DraftCosts {
  double pass;  // of the draft model, for one token
  double row;   // to check one more token in a pass
};

// Learns from what became of earlier drafts how often a token is accepted that the draft model
// finds as likely, and from that chooses how far to draft: as far as passes saved are expected to
// outweigh those of the draft model and the tokens checked in vain. Where they did not, it rests,
// for longer each time.
//
//   if (policy.Begin()) {
//     do p = <the draft model's probability of its next token>;
//     while (policy.Add(p) && <most are not reached> && policy.GoesOn());
//   }
//   <the model checks the drafted tokens>
//   policy.Learn(accepted);
class DraftPolicy {
 public:
  explicit DraftPolicy(const DraftCosts& costs) : costs_(costs) {}

  // From now on; drafts that were made keep theirs.
  void SetCosts(const DraftCosts& costs) { costs_ = costs; }

  // Begins a draft; false: rest, there is none for now.
  bool Begin();
  // Whether a token of this probability is worth checking; it then belongs to the draft. To be
  // called after each pass of the draft model.
  bool Add(double probability);
  // Whether it is worth another pass of the draft model to extend the draft.
  bool GoesOn() const;
  // What became of the draft, which may be empty: its first `accepted` tokens were accepted. A
  // draft of which nobody will know is not learned from.
  void Learn(size_t accepted);

 private:
  static constexpr size_t kBuckets = 16;
  struct Bucket {
    double tried = 0;
    double accepted = 0;
  };

  static size_t BucketOf(double probability);
  static void Age(Bucket& bucket, double divisor);
  // How likely a token of this bucket is accepted.
  double Acceptance(size_t bucket) const;

  DraftCosts costs_;
  std::array<Bucket, kBuckets> buckets_;
  Bucket all_;
  std::vector<size_t> draft_;  // the buckets of its tokens
  double reached_ = 1;         // how likely all of them are accepted
  double passes_ = 0;          // of the draft model, for this draft
  double balance_ = 0;         // passes saved less those spent, since the last rest
  size_t rest_ = 0;            // drafts not made yet
  size_t last_rest_ = 0;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_DRAFT_POLICY_H_
