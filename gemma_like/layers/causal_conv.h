// The causal convolution of a mixer over a sequence whose last inputs are stored.
#ifndef INLAY_GEMMA_LIKE_LAYERS_CAUSAL_CONV_H_
#define INLAY_GEMMA_LIKE_LAYERS_CAUSAL_CONV_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "cache/input_window.h"
#include "gemma_like/layer_kind.h"
#include "ops/conv.h"
#include "ops/views.h"

namespace inlay {

// A convolution of kWidth tokens over at most kMostChannels channels; `segment` are the rows of one
// sequence.
template <size_t kMostChannels, size_t kWidth>
struct SegmentConv {
  static constexpr size_t kTail = kWidth - 1;

  // Computes y [end - begin, channels] for the segment's rows [begin, end) from their inputs `in`
  // [segment.rows, channels] and those of earlier tokens, which the window stores.
  void Forward(const CausalConv& conv, ConstFloatRows in, size_t begin, size_t end,
               FloatRows y) const {
    constexpr size_t kStep = 32;
    for (size_t row = begin; row < end; row += kStep) {
      const size_t n = std::min(kStep, end - row);
      std::array<const float*, kStep + kTail> inputs;
      for (size_t i = 0; i < n + kTail; ++i) inputs[i] = Input(in, row + i);
      CausalConv1d(conv, inputs.data(), y.Slice(row - begin, n));
    }
  }

  // Stores those inputs of the rows [begin, end) in the window that later tokens need.
  void Keep(ConstFloatRows in, size_t begin, size_t end) const {
    for (size_t row = begin; row < end; ++row) {
      float* kept = window.NewRow(segment.position + row);
      if (kept != nullptr) std::copy_n(in.Row(row), in.cols, kept);
    }
  }

  const SegmentRows& segment;
  const InputWindow& window;

 private:
  // The input of the token kTail before the segment's row `row`: one of its own rows, one from the
  // window, or, before the sequence, zeros.
  const float* Input(ConstFloatRows in, size_t row) const {
    // Not const, which would take tens of kB of each config's code.
    static float zeros[kMostChannels];
    if (row >= kTail) return in.Row(row - kTail);
    const size_t position = segment.position + row;
    return position < kTail ? zeros : window.Row(position - kTail);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_CAUSAL_CONV_H_
