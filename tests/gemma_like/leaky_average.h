// The leaky average: a small recurrent mixer that no family has. All of its halves are here,
// outside of the lists of kinds, which shows that a kind needs no place in this repository.
#ifndef INLAY_TESTS_GEMMA_LIKE_LEAKY_AVERAGE_H_
#define INLAY_TESTS_GEMMA_LIKE_LEAKY_AVERAGE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/cache_bytes.h"
#include "cache/chunk_log.h"
#include "cache/storage.h"
#include "configs/layer.h"
#include "gemma_like/layer_kind.h"
#include "ops/matmul/matmul.h"
#include "ops/row_ops.h"
#include "ops/state_chunk.h"

namespace inlay {

struct LeakyAverageShape {
  int channels = 0;

  // Its states are always floats.
  constexpr size_t StateBytes(StateType) const { return channels * sizeof(float); }
};

// y_t = O (m_t * silu(G x_t)) with m_t = a * m_{t-1} + V x_t and a decay a in (0, 1) per channel.
template <LeakyAverageShape kShape_>
struct LeakyAverage : MixerPart {
  static constexpr LeakyAverageShape kShape = kShape_;
  static constexpr std::string_view kName = "leaky average";

  static constexpr std::array<int, 1> Numbers() { return {kShape.channels}; }

  static constexpr bool Check() { return true; }

  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    v.Int("leaky.channels", kShape.channels);
  }
};

// The log of one chunk: V x of its tokens.
struct LeakyAverageLog {
  using Shape = LeakyAverageShape;
  static constexpr std::array<size_t, 1> Columns(const Shape& shape) {
    return {static_cast<size_t>(shape.channels)};
  }

  Shape shape;
  float* data = nullptr;

  FloatRows values() const { return {data, kStateChunk, Columns(shape)[0]}; }
};

template <LeakyAverageShape kShape>
struct MixerStorage<LeakyAverage<kShape>> {
  using Type = ChunkLog<LeakyAverageLog>;

  template <class Policy>
  static Type Make(RankShare) {
    return Type(kShape, StateType::kF32);
  }

  template <class Policy>
  static constexpr CacheBytes Bytes(RankShare) {
    return Type::Bytes(kShape, StateType::kF32);
  }

  template <class Policy>
  static constexpr size_t BytesRead(size_t length, RankShare) {
    return (1 + length % kStateChunk) * kShape.channels * sizeof(float);
  }
};

template <LeakyAverageShape kShape>
struct LayerKind<LeakyAverage<kShape>> : SharesNothing {
  using Storage = typename MixerStorage<LeakyAverage<kShape>>::Type;
  static constexpr size_t kChannels = kShape.channels;
  static constexpr size_t kChunk = 8;  // channels that a thread takes at once

  struct Weights {
    PackedMatrix value;        // [kChannels, model_dim], V
    PackedMatrix gate;         // [kChannels, model_dim], G
    std::vector<float> decay;  // [kChannels], a; files hold w with a = sigmoid(-w)
    PackedMatrix out;          // [model_dim, kChannels], O
  };

  template <class Binder>
  static void Bind(LayerBinder<Binder>& b, Weights& w) {
    w.value = b.Matrix("leaky_value.weight", kChannels, b.model_dim());
    w.gate = b.Matrix("leaky_gate.weight", kChannels, b.model_dim());
    // With the values of a time step's bias, decays are between 0.9 and 0.999: states matter.
    w.decay = b.Vector("leaky_decay", TensorUse::kTimeStepBias, kChannels);
    for (float& a : w.decay) a = 1.0f / (1.0f + std::exp(a));
    w.out = b.Matrix("leaky_out.weight", b.model_dim(), kChannels, TensorUse::kBranchEnd);
  }

  static OperandForms InputForms(const Weights& w) {
    return OperandForms::For({&w.value, &w.gate});
  }
  static void ListProducts(const Weights& w, Schedule& schedule) {
    schedule.Add({&w.value, &w.gate});
    schedule.Add({&w.out});
  }

  static void Forward(const Weights& w, const Shared&, const Batch<Storage>& batch,
                      const Operand& x, FloatRows y, Pass& pass) {
    Arena::Scope scope(pass.arena);
    const FloatRows values = pass.arena.Rows(x.rows(), kChannels);
    const FloatRows gate = pass.arena.Rows(y.rows, kChannels);
    const FloatRows mixed = pass.arena.Rows(y.rows, kChannels);
    const FloatRows average = pass.arena.Rows(1, kChannels);
    const MatMulTask projections[] = {{&w.value, values}, {&w.gate, gate, batch.out_rows}};
    pass.Multiply(projections, x);
    // Channels are independent: each thread takes some of them through all positions.
    pass.team.Run(kChannels, kChunk, [&](const Share& share) {
      const auto [begin, end, thread] = share;
      const auto of = [&share](FloatRows all) {
        return all.Columns(share.begin, share.end - share.begin);
      };
      for (const Segment<Storage>& segment : batch.segments) {
        Average(w.decay.data() + begin, segment, begin, of(values).Slice(segment.row, segment.rows),
                of(average).data, of(mixed).Slice(segment.out_row, segment.out_rows));
      }
    });
    if (y.rows == 0) return;
    const Operand gated =
        pass.MakeOperand(mixed, OperandForms::For({&w.out}), [&](size_t begin, size_t end) {
          const FloatRows outputs = mixed.Slice(begin, end - begin);
          SiluGate(gate.Slice(begin, end - begin), outputs, outputs);
        });
    pass.Multiply(w.out, gated, y);
  }

  static constexpr size_t ScratchFloats(const PassSize& size) {
    return 3 * Arena::Floats(size.rows, kChannels) + Arena::Floats(1, kChannels) +
           Pass::OperandFloats(size.rows, kChannels);
  }

  static TokenWork Work(const Weights& w, RankShare) {
    TokenWork work = WorkOfGathered({&w.value, &w.gate});
    work += WorkOfGathered({&w.out});
    return work;
  }

  static std::string Describe() { return absl::StrCat("leaky average: ", kChannels, " channels"); }

 private:
  // Of one segment, the channels from `first_channel` on: m_t of its outputs into `mixed`, from
  // `values` [segment.rows, channels]. m [channels] is scratch. What m_t is computed from, and in
  // which order, depends on t alone: the state at its chunk's start, then the chunk's values, those
  // of earlier appends from the log.
  static void Average(const float* decay, const Segment<Storage>& segment, size_t first_channel,
                      ConstFloatRows values, float* m, FloatRows mixed) {
    const size_t channels = values.cols;
    const auto add = [&](const float* v) {
      for (size_t c = 0; c < channels; ++c) m[c] = decay[c] * m[c] + v[c];
    };
    const Storage& past = *segment.storage;
    const auto kept = [&](size_t position) {
      return past.LogOf(position / kStateChunk).values().Row(position % kStateChunk) +
             first_channel;
    };
    const size_t chunk = segment.position / kStateChunk;
    if (const float* state = past.FloatState(chunk); state != nullptr) {
      std::copy_n(state + first_channel, channels, m);
    } else {
      std::fill_n(m, channels, 0.0f);
    }
    for (size_t p = chunk * kStateChunk; p < segment.position; ++p) add(kept(p));
    for (size_t row = 0; row < segment.rows; ++row) {
      const size_t position = segment.position + row;
      add(values.Row(row));
      std::copy_n(values.Row(row), channels, kept(position));
      if (position >= segment.OutPosition()) {
        std::copy_n(m, channels, mixed.Row(position - segment.OutPosition()));
      }
      if ((position + 1) % kStateChunk == 0) {
        std::copy_n(m, channels, past.FloatState((position + 1) / kStateChunk) + first_channel);
      }
    }
  }
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_LEAKY_AVERAGE_H_
