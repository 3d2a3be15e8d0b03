// How much a model has to read and compute for a token, to compare speeds with the machine's
// limits.
#ifndef INLAY_GEMMA_LIKE_TOKEN_WORK_H_
#define INLAY_GEMMA_LIKE_TOKEN_WORK_H_

namespace inlay {

// Of one matrix or several: bytes of weights, and operations per token, a multiplication and an
// addition counting as two.
struct TokenWork {
  double bytes = 0;
  double ops = 0;

  TokenWork& operator+=(const TokenWork& other) {
    bytes += other.bytes;
    ops += other.ops;
    return *this;
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_TOKEN_WORK_H_
