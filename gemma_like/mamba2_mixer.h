// The Mamba2 mixer of a layer: projections around the convolution and the chunked state space
// recurrence.
#ifndef INLAY_GEMMA_LIKE_MAMBA2_MIXER_H_
#define INLAY_GEMMA_LIKE_MAMBA2_MIXER_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "configs/layers.h"
#include "gemma_like/arena.h"
#include "gemma_like/forward_state.h"
#include "gemma_like/weights.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/ssd.h"
#include "ops/thread_pool.h"

namespace inlay {

template <ModelConfig Config, class Layer>
struct Mamba2Mixer {
  static constexpr SsdShape kShape = SsdShapeOf<Layer>();
  static constexpr size_t kInner = kShape.Inner();
  static constexpr size_t kBcDim = kShape.BcDim();
  static constexpr size_t kConvDim = kShape.ConvDim();
  static constexpr size_t kInDim = kInner + kConvDim + kShape.heads;  // z; x, B, C; dt
  static constexpr size_t kTail = kShape.conv_width - 1;

  // y = mixer(x) for all rows of the batch, each sequence with the `ordinal`-th storage of this
  // layer type in its cache.
  static void Forward(const Mamba2Weights& weights, int ordinal, ConstFloatRows x, FloatRows y,
                      const ForwardState<Config>& s) {
    Arena::Scope scope(s.arena);
    FloatRows in = s.arena.Rows(x.rows, kInDim);
    FloatRows mixed = s.arena.Rows(x.rows, kInner);
    s.input.Set(x);
    MatMul(weights.in, s.input, in, s.pool);
    for (const BatchPart<Config>& part : s.parts) {
      SsdSlots& slots = part.cache->template Storage<Layer>(ordinal);
      ForEachChunk(part, [&](size_t chunk, size_t first, size_t row, size_t rows) {
        MixChunk(weights, slots, chunk, first, in.Slice(row, rows), mixed.Slice(row, rows), s);
      });
    }
    ForRows(s.pool, x.rows, [&](size_t begin, size_t end) {
      const FloatRows rows = mixed.Slice(begin, end - begin);
      SiluGate(in.Slice(begin, end - begin).Columns(0, kInner), rows, rows);
      // Each group is normalised on its own.
      constexpr size_t kGroup = kInner / kShape.groups;
      for (size_t g = 0; g < kShape.groups; ++g) {
        const FloatRows group = rows.Columns(g * kGroup, kGroup);
        RmsNorm(group, weights.norm.data() + g * kGroup, Config::kNormEpsilon, group);
      }
    });
    s.input.Set(mixed);
    MatMul(weights.out, s.input, y, s.pool);
  }

  static constexpr size_t ScratchFloats(size_t rows) {
    return Arena::Floats(rows, kInDim) + Arena::Floats(rows, kInner) +
           Arena::Floats(kSsdChunk, kConvDim) + Arena::Floats(1, kConvDim);
  }

 private:
  // Calls f(chunk, first position within it, first row in the batch, rows) for the chunks that a
  // part touches.
  template <class F>
  static void ForEachChunk(const BatchPart<Config>& part, F f) {
    for (size_t done = 0; done < part.rows;) {
      const size_t position = part.position + done;
      const size_t first = position % kSsdChunk;
      const size_t rows = std::min(kSsdChunk - first, part.rows - done);
      f(position / kSsdChunk, first, part.row + done, rows);
      done += rows;
    }
  }

  static void MixChunk(const Mamba2Weights& weights, const SsdSlots& slots, size_t chunk,
                       size_t first, ConstFloatRows in, FloatRows mixed,
                       const ForwardState<Config>& s) {
    Arena::Scope scope(s.arena);
    const SsdLog log = slots.Log(chunk);
    const float* state = slots.State(chunk);
    CopyRows(in.Columns(kInner, kConvDim), log.raw().Slice(first, in.rows));

    // The convolution's inputs reach back before the chunk into the boundary's rows, or before the
    // text, into zeros.
    FloatRows zeros = s.arena.Rows(1, kConvDim);
    std::fill_n(zeros.data, kConvDim, 0.0f);
    const float* tail = slots.ConvTail(chunk);
    std::array<const float*, kSsdChunk + kTail> inputs;
    for (size_t i = 0; i < in.rows + kTail; ++i) {
      const size_t at = first + i;  // counted from the tail's first row
      inputs[i] = at >= kTail       ? log.raw().Row(at - kTail)
                  : tail == nullptr ? zeros.data
                                    : tail + at * kConvDim;
    }
    FloatRows conv = s.arena.Rows(in.rows, kConvDim);
    CausalConv1dSilu(inputs.data(), weights.conv.data(), kShape.conv_width,
                     weights.conv_bias.data(), conv, s.pool);
    CopyRows(conv.Columns(0, kInner), log.x().Slice(first, in.rows));
    CopyRows(conv.Columns(kInner, kBcDim), log.b().Slice(first, in.rows));
    SsdTimeSteps(in.Columns(kInner + kConvDim, kShape.heads), weights.dt_bias.data(),
                 weights.a.data(), first, log);
    SsdOutputs(log, state, conv.Columns(kInner + kBcDim, kBcDim), weights.d.data(), first, mixed,
               s.pool);

    if (first + in.rows == kSsdChunk) {
      SsdAdvance(log, state, slots.State(chunk + 1), s.pool);
      CopyRows(log.raw().Slice(kSsdChunk - kTail, kTail),
               FloatRows(slots.ConvTail(chunk + 1), kTail, kConvDim));
    }
  }

  static void CopyRows(ConstFloatRows from, FloatRows to) {
    for (size_t r = 0; r < from.rows; ++r) std::copy_n(from.Row(r), from.cols, to.Row(r));
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MAMBA2_MIXER_H_
