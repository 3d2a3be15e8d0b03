// The Mamba2 mixer of a layer: projections around the convolution and the chunked state space
// recurrence.
#ifndef INLAY_GEMMA_LIKE_MAMBA2_MIXER_H_
#define INLAY_GEMMA_LIKE_MAMBA2_MIXER_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "cache/hybrid_cache.h"
#include "configs/layers.h"
#include "gemma_like/arena.h"
#include "gemma_like/forward_state.h"
#include "gemma_like/weights.h"
#include "ops/matmul.h"
#include "ops/row_ops.h"
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

  // y = mixer(x) for all rows of the batch, x being the input's, each sequence with the
  // `ordinal`-th storage of this layer type in its cache.
  static void Forward(const Mamba2Weights& weights, int ordinal, FloatRows y,
                      const ForwardState<Config>& s) {
    Arena::Scope scope(s.arena);
    FloatRows in = s.arena.Rows(y.rows, kInDim);
    FloatRows conv = s.arena.Rows(y.rows, kConvDim);
    FloatRows dt = s.arena.Rows(y.rows, kShape.heads);
    FloatRows mixed = s.arena.Rows(y.rows, kInner);
    MatMul(weights.in, s.input, in, s.pool);
    for (const BatchPart<Config>& part : s.parts) {
      const Append append(part, part.cache->template Storage<Layer>(ordinal));
      const FloatRows part_conv = conv.Slice(part.row, part.rows);
      const FloatRows part_dt = dt.Slice(part.row, part.rows);
      ForRows(s.pool, part.rows, [&](size_t begin, size_t end) {
        append.Convolve(weights, in.Slice(part.row, part.rows), begin, end, part_conv, part_dt);
      });
      SsdMix({.shape = kShape,
              .chunks = append.chunks.data(),
              .count = append.count,
              .conv = part_conv,
              .dt = part_dt,
              .a = weights.a.data(),
              .d = weights.d.data(),
              .y = mixed.Slice(part.row, part.rows)},
             s.pool);
      append.KeepTails(in.Slice(part.row, part.rows));
    }
    s.input.Announce(mixed, {&weights.out});
    ForRows(s.pool, y.rows, [&](size_t begin, size_t end) {
      const FloatRows rows = mixed.Slice(begin, end - begin);
      SiluGate(in.Slice(begin, end - begin).Columns(0, kInner), rows, rows);
      // Each group is normalised on its own.
      constexpr size_t kGroup = kInner / kShape.groups;
      for (size_t g = 0; g < kShape.groups; ++g) {
        const FloatRows group = rows.Columns(g * kGroup, kGroup);
        RmsNorm(group, weights.norm.data() + g * kGroup, Config::kNormEpsilon, group);
      }
      s.input.RoundRows(begin, end);
    });
    MatMul(weights.out, s.input, y, s.pool);
  }

  static constexpr size_t ScratchFloats(size_t rows) {
    return Arena::Floats(rows, kInDim) + Arena::Floats(rows, kConvDim) +
           Arena::Floats(rows, kShape.heads) + Arena::Floats(rows, kInner);
  }

 private:
  // The chunks that a part of the batch appends to, and what they keep. Rows of a part's `in` are
  // the outputs of the first projection.
  struct Append {
    Append(const BatchPart<Config>& part, const SsdSlots& slots)
        : slots(slots), position(part.position) {
      const size_t last = (position + part.rows - 1) / kSsdChunk;
      for (size_t row = 0; row < part.rows;) {
        const size_t chunk = (position + row) / kSsdChunk;
        SsdChunk& to = chunks[count++];
        to.first = (position + row) % kSsdChunk;
        to.row = row;
        to.rows = std::min(kSsdChunk - to.first, part.rows - row);
        // Two logs are kept, and later chunks may share memory with the others.
        to.keep = count == 1 || chunk + 1 >= last;
        if (to.keep) to.log = slots.Log(chunk);
        to.state = slots.State(chunk);
        if (to.first + to.rows == kSsdChunk) to.next = slots.State(chunk + 1);
        row += to.rows;
      }
    }

    // The convolution's input for the part's row `row`, which may be up to kTail before the first:
    // a row of `in`, of the first chunk's log, of the boundary before it or, before the text,
    // zeros.
    const float* Input(ConstFloatRows in, ptrdiff_t row) const {
      static constexpr float kZeros[kConvDim] = {};
      if (row >= 0) return in.Row(static_cast<size_t>(row)) + kInner;
      const ptrdiff_t at = static_cast<ptrdiff_t>(chunks[0].first) + row;
      if (at >= 0) return chunks[0].log.raw().Row(static_cast<size_t>(at));
      const float* tail = slots.ConvTail(position / kSsdChunk);
      return tail == nullptr ? kZeros : tail + (at + static_cast<ptrdiff_t>(kTail)) * kConvDim;
    }

    // The rows [begin, end): their convolution and time steps, also into the logs that are kept.
    void Convolve(const Mamba2Weights& weights, ConstFloatRows in, size_t begin, size_t end,
                  FloatRows conv, FloatRows dt) const {
      constexpr size_t kStep = kSsdChunk;
      for (size_t row = begin; row < end; row += kStep) {
        const size_t n = std::min(kStep, end - row);
        std::array<const float*, kStep + kTail> inputs;
        for (size_t i = 0; i < n + kTail; ++i) {
          inputs[i] = Input(in, static_cast<ptrdiff_t>(row + i) - static_cast<ptrdiff_t>(kTail));
        }
        CausalConv1dSilu(inputs.data(), weights.conv.data(), kShape.conv_width,
                         weights.conv_bias.data(), conv.Slice(row, n));
        SsdTimeSteps(in.Slice(row, n).Columns(kInner + kConvDim, kShape.heads),
                     weights.dt_bias.data(), dt.Slice(row, n));
      }
      for (size_t i = 0; i < count; ++i) {
        const SsdChunk& chunk = chunks[i];
        if (!chunk.keep) continue;
        const size_t last = std::min(end, chunk.row + chunk.rows);
        for (size_t row = std::max(begin, chunk.row); row < last; ++row) {
          const size_t at = chunk.first + row - chunk.row;
          std::copy_n(in.Row(row) + kInner, kConvDim, chunk.log.raw().Row(at));
          std::copy_n(conv.Row(row), kInner, chunk.log.x().Row(at));
          std::copy_n(conv.Row(row) + kInner, kBcDim, chunk.log.b().Row(at));
          std::copy_n(dt.Row(row), kShape.heads, chunk.log.dt().Row(at));
        }
      }
    }

    // The last inputs of the convolution before each chunk that begins.
    void KeepTails(ConstFloatRows in) const {
      for (size_t i = 0; i < count; ++i) {
        const SsdChunk& chunk = chunks[i];
        if (chunk.next == nullptr) continue;
        float* tail = slots.ConvTail((position + chunk.row) / kSsdChunk + 1);
        for (size_t k = 0; k < kTail; ++k) {
          const auto end = static_cast<ptrdiff_t>(chunk.row + chunk.rows);
          const float* from = Input(in, end - static_cast<ptrdiff_t>(kTail - k));
          std::copy_n(from, kConvDim, tail + k * kConvDim);
        }
      }
    }

    const SsdSlots& slots;
    size_t position;
    size_t count = 0;
    std::array<SsdChunk, F32Storage::kMaxAppend / kSsdChunk + 1> chunks;
  };
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MAMBA2_MIXER_H_
