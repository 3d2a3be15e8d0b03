// Static against dynamic: the ops' inner loops with dimensions fixed at compile time beside the
// same code with dimensions of run time, on each of Highway's targets that this CPU runs, without
// extensions (ops/cpu/extension.h); prints a table in Markdown.

// What the ops are compiled for.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_UNUSED_TARGETS

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hwy/aligned_allocator.h"
#include "ops/attention/attention_types.h"
#include "ops/cpu/cpu_target.h"
#include "ops/matmul/operand.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/ssd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/static_bench.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/add_rows-inl.h"
#include "ops/attention/attention-inl.h"
#include "ops/conv-inl.h"
#include "ops/matmul/matmul_kernels-inl.h"
#include "ops/norm-inl.h"
#include "ops/rope-inl.h"

#ifndef INLAY_BENCH_STATIC_BENCH_CC_ONCE
#define INLAY_BENCH_STATIC_BENCH_CC_ONCE
namespace inlay {
namespace {

using Floats = hwy::AlignedVector<float>;

// What the kernels read and write, small enough for a core's caches, and aligned as the engine's
// memory is: an operand that straddles cache lines costs the faster form more.
struct Memory {
  Memory()
      : a(kFloats),
        b(kFloats),
        out(kFloats),
        halves(kFloats, 0x3F40),
        blocks(kFloats / kQuantBlock) {
    uint32_t state = 1;
    for (Floats* values : {&a, &b}) {
      for (float& v : *values) {
        state = state * 1664525u + 1013904223u;
        v = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
      }
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (size_t k = 0; k < kQuantBlock; ++k) {
        blocks[i].quants[k] = static_cast<int8_t>(100.0f * a[i * kQuantBlock + k]);
      }
      blocks[i].scale = b[i];
    }
  }

  static constexpr size_t kFloats = 64 << 10;
  Floats a, b, out;
  hwy::AlignedVector<uint16_t> halves;  // bfloat16; as quantized weights, scales and quants
  hwy::AlignedVector<QuantizedBlock> blocks;
};

// Both forms of an op at one shape.
struct Case {
  using Call = void (*)(Memory& memory, const size_t* dims, size_t calls);
  const char* op;
  std::vector<size_t> dims;
  Call fixed;    // at compile time; does not look at dims
  Call dynamic;  // at run time
};

}  // namespace
}  // namespace inlay
#endif  // INLAY_BENCH_STATIC_BENCH_CC_ONCE

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

// Each op is a type whose Call takes its dimensions as size_t or std::integral_constant.

// One KV block for as many queries as share its reads; dims: the head's.
template <class T>
struct AttentionBlock {
  template <class Dim>
  static HWY_NOINLINE void Call(Memory& m, Dim dim) {
    const AttentionParams params = {kQueries, 0.1f, 0, 0};
    const void* block = std::is_same_v<T, float> ? static_cast<const void*>(m.b.data())
                                                 : static_cast<const void*>(m.halves.data());
    const KeysOrValues<T> keys(block), values(keys.elements + kKvBlockRows * dim);
    const Partials partials = {m.out.data(), dim};
    Query queries[kQueries];
    for (size_t r = 0; r < kQueries; ++r) queries[r] = {m.a.data() + r * dim, partials[r]};
    AddBlock<kQueries>(params, queries, keys, values, dim, 0, kKvBlockRows, 0);
  }
};

// T slices of tiles of weights by C rows of activations; dims: columns.
template <class Kernel, WeightType type, size_t T, size_t C>
struct Product {
  template <class Cols>
  static HWY_NOINLINE void Call(Memory& m, Cols cols) {
    const PackedMatrix w = PackedMatrix::View(reinterpret_cast<const uint8_t*>(m.halves.data()),
                                              type, T * kTileRows, cols);
    const auto multiply = [&]<size_t... t>(std::index_sequence<t...>) HWY_ATTR {
      const size_t lanes = hn::Lanes(DRows()), per_tile = kTileRows / lanes;
      const typename Kernel::Slice slices[T] = {{w, t / per_tile, t % per_tile * lanes}...};
      decltype(Row(m, 0, cols)) rows[C];
      float* y[C];
      for (size_t c = 0; c < C; ++c) {
        rows[c] = Row(m, c, cols);
        y[c] = m.out.data() + c * T * kTileRows;
      }
      Kernel::template Run<T, C>(slices, rows, cols, Prefetch(), Outputs{y, T * kTileRows});
    };
    multiply(std::make_index_sequence<T>());
  }

  static auto Row(const Memory& m, size_t c, size_t cols) {
    if constexpr (std::is_same_v<typename Kernel::Activations, QuantizedRows>) {
      return m.blocks.data() + c * (cols / kQuantBlock);
    } else {
      return static_cast<const Bf16*>(m.halves.data() + c * cols);
    }
  }
};

// A head's state by C of kTokens tokens; dims: head dim, state dim.
template <size_t kTokens>
struct StateByC {
  template <class HeadDim, class StateDim>
  static HWY_NOINLINE void Call(Memory& m, HeadDim head_dim, StateDim state_dim) {
    SumOutput outputs[kTokens];
    const float *state = m.a.data(), *c = m.b.data();
    for (size_t t = 0; t < kTokens; ++t) {
      float* out = m.out.data() + t * head_dim;
      outputs[t] = {out, 0.5f, out};
    }
    AddRows<kTokens, LongRows::kVectors>(
        outputs, head_dim, state_dim, [&](size_t t, size_t n) { return c[t * state_dim + n]; },
        [&](size_t n) { return state + n * head_dim; });
  }
};

// 256 channels; dims: the convolution's width.
template <size_t kTokens>
struct Convolution {
  template <class Width>
  static HWY_NOINLINE void Call(Memory& m, Width width) {
    constexpr size_t kChannels = 256;
    const float* inputs[kTokens + 8];
    for (size_t i = 0; i < kTokens + width - 1; ++i) inputs[i] = m.a.data() + i * kChannels;
    Convolve<true>(inputs, m.b.data(), width, m.b.data() + 8 * kChannels,
                   FloatRows(m.out.data(), kTokens, kChannels));
  }
};

// dims: the row's elements.
struct Norm {
  template <class N>
  static HWY_NOINLINE void Call(Memory& m, N n) {
    NormalizeRow(m.a.data(), m.b.data(), 1e-6f, n, m.out.data());
  }
};

// A head; dims: half of its elements.
struct Rotation {
  template <class Half>
  static HWY_NOINLINE void Call(Memory& m, Half half) {
    Rotate(m.a.data(), m.b.data(), half, m.out.data());
  }
};

template <class Op, size_t... kDims>
void CallFixed(Memory& memory, const size_t*, size_t calls) {
  for (size_t i = 0; i < calls; ++i) Op::Call(memory, std::integral_constant<size_t, kDims>()...);
}

template <class Op, size_t... kAt>
void CallDynamicAt(Memory& memory, const size_t* dims, size_t calls, std::index_sequence<kAt...>) {
  for (size_t i = 0; i < calls; ++i) Op::Call(memory, dims[kAt]...);
}

template <class Op, size_t kCount>
void CallDynamic(Memory& memory, const size_t* dims, size_t calls) {
  CallDynamicAt<Op>(memory, dims, calls, std::make_index_sequence<kCount>());
}

template <class Op, size_t... kDims>
void Add(const char* op, std::vector<Case>& cases) {
  cases.push_back({op, {kDims...}, CallFixed<Op, kDims...>, CallDynamic<Op, sizeof...(kDims)>});
}

void AddCases(std::vector<Case>& cases) {
  using Q8 = QuantizedKernel<Bytes32>;
  using Q4 = QuantizedKernel<Nibbles32>;
  Add<Product<Q8, WeightType::kQ8_0, kManySlices, Q8::kCols>, 640>("matmul, Q8_0, a tile", cases);
  Add<Product<Q8, WeightType::kQ8_0, kManySlices, Q8::kCols>, 2048>("matmul, Q8_0, a tile", cases);
  Add<Product<Q4, WeightType::kQ4_0, kManySlices, Q4::kCols>, 640>("matmul, Q4_0, a tile", cases);
  Add<Product<Q4, WeightType::kQ4_0, kManySlices, Q4::kCols>, 2048>("matmul, Q4_0, a tile", cases);
  Add<Product<PairKernel, WeightType::kBF16, kManySlices, PairKernel::kCols>, 640>(
      "matmul, BF16, a tile", cases);
  Add<Product<PairKernel, WeightType::kBF16, kManySlices, PairKernel::kCols>, 2048>(
      "matmul, BF16, a tile", cases);
  Add<Product<Q4, WeightType::kQ4_0, 1, 1>, 640>("matmul, Q4_0, 1 token", cases);
  Add<Product<Q4, WeightType::kQ4_0, 1, 1>, 2048>("matmul, Q4_0, 1 token", cases);
  Add<AttentionBlock<hwy::bfloat16_t>, 64>("attention, 64 keys of bf16", cases);
  Add<AttentionBlock<hwy::bfloat16_t>, 128>("attention, 64 keys of bf16", cases);
  Add<AttentionBlock<hwy::bfloat16_t>, 256>("attention, 64 keys of bf16", cases);
  Add<AttentionBlock<float>, 64>("attention, 64 keys of f32", cases);
  Add<AttentionBlock<float>, 128>("attention, 64 keys of f32", cases);
  Add<AttentionBlock<float>, 256>("attention, 64 keys of f32", cases);
  Add<StateByC<1>, 32, 128>("ssd, state by C, 1 token", cases);
  Add<StateByC<1>, 64, 128>("ssd, state by C, 1 token", cases);
  Add<StateByC<LongRows::kOutputs>, 32, 128>("ssd, state by C, a tile of tokens", cases);
  Add<StateByC<LongRows::kOutputs>, 64, 128>("ssd, state by C, a tile of tokens", cases);
  Add<Convolution<1>, 4>("conv + SiLU, 1 token", cases);
  Add<Convolution<kStateChunk>, 4>("conv + SiLU, 32 tokens", cases);
  Add<Norm, 256>("norm", cases);
  Add<Norm, 640>("norm", cases);
  Add<Norm, 2048>("norm", cases);
  Add<Rotation, 32>("rope, half a head", cases);
  Add<Rotation, 64>("rope, half a head", cases);
  Add<Rotation, 128>("rope, half a head", cases);
}

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(AddCases);

using Clock = std::chrono::steady_clock;

double SecondsOf(Case::Call call, const Case& c, Memory& memory, size_t calls) {
  const Clock::time_point start = Clock::now();
  call(memory, c.dims.data(), calls);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Times {
  double fixed, dynamic;  // nanoseconds a call
};

// The best of many short turns, the forms in turn: what else runs on the machine disturbs both.
Times Time(const Case& c, Memory& memory) {
  constexpr double kTurn = 0.1e-3;
  constexpr int kTurns = 400;
  size_t calls = 1;
  while (SecondsOf(c.dynamic, c, memory, calls) < kTurn) calls *= 2;
  double fixed = std::numeric_limits<double>::infinity(), dynamic = fixed;
  for (int i = 0; i < kTurns; ++i) {
    fixed = std::min(fixed, SecondsOf(c.fixed, c, memory, calls));
    dynamic = std::min(dynamic, SecondsOf(c.dynamic, c, memory, calls));
  }
  const double each = 1e9 / static_cast<double>(calls);
  return {fixed * each, dynamic * each};
}

// What a call leaves behind, from zeros.
Floats ResultOf(Case::Call call, const Case& c, Memory& memory) {
  std::fill(memory.out.begin(), memory.out.end(), 0.0f);
  call(memory, c.dims.data(), 1);
  return memory.out;
}

std::string DimsText(const std::vector<size_t>& dims) {
  std::string text;
  for (size_t dim : dims) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text;
}

// The targets whose code this program has: kernels for an extension are other sources.
std::vector<std::string> MeasuredTargets() {
  std::vector<std::string> targets = RunnableTargets();
  std::erase_if(targets, [](const std::string& target) {
    ForceTarget(target);
    return ChosenExtension() != Extension::kNone;
  });
  return targets;
}

int Main(int argc, char** argv) {
  if (argc > 1) {
    std::fprintf(stderr, "static_bench: '%s' is refused: it takes no arguments\n", argv[1]);
    return 2;
  }
  const std::vector<std::string> targets = MeasuredTargets();
  if (targets.empty()) {
    std::fputs("static_bench: this program was compiled for other CPUs than this one\n", stderr);
    return 1;
  }
  Memory memory;
  std::vector<std::string> rows;
  std::string head = "| op | fixed | " + targets.front() + ", ns |";
  std::string line = "|---|---|---|";
  for (const std::string& target : targets) {
    ForceTarget(target);
    head += " " + target + " |";
    line += "---:|";
    std::vector<Case> cases;
    HWY_DYNAMIC_DISPATCH(AddCases)(cases);
    rows.resize(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      if (ResultOf(c.fixed, c, memory) != ResultOf(c.dynamic, c, memory)) {
        std::fprintf(stderr, "static_bench: %s %s on %s: the two forms differ\n", c.op,
                     DimsText(c.dims).c_str(), target.c_str());
        return 1;
      }
      const Times times = Time(c, memory);
      char text[200];
      if (target == targets.front()) {
        std::snprintf(text, sizeof(text), "| %s | %s | %.0f / %.0f |", c.op,
                      DimsText(c.dims).c_str(), times.dynamic, times.fixed);
        rows[i] = text;
      }
      std::snprintf(text, sizeof(text), " %.2f |", times.dynamic / times.fixed);
      rows[i] += text;
    }
  }
  std::printf("%s\n%s\n", head.c_str(), line.c_str());
  for (const std::string& row : rows) std::printf("%s\n", row.c_str());
  return 0;
}

}  // namespace
}  // namespace inlay

int main(int argc, char** argv) { return inlay::Main(argc, argv); }
#endif  // HWY_ONCE
