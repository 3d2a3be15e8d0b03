// The matmul's loops for Intel AMX on bfloat16: any tokens by a range of tiles of packed weights.
#ifndef INLAY_OPS_MATMUL_MATMUL_AMX_BF16_H_
#define INLAY_OPS_MATMUL_MATMUL_AMX_BF16_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/cpu/amx_tiles.h"
#include "ops/matmul/matmul_task.h"
#include "ops/matmul/matmul_tiles.h"
#include "ops/matmul/operand.h"

namespace inlay {

// One AMX instruction multiplies kBf16Chain columns of 16 tokens with those of a tile, which lie in
// memory as it reads them (PackedFormat::kBF16), and adds the products to 16 x 16 totals. It adds
// as PairKernel does on AVX3, so the bits of the results are the same.
template <class Tiles>
class AmxBf16Kernel {
 public:
  // The tiles [begin, end) of the task for all tokens.
  static void Run(const MatMulTask& task, const Bf16Rows& x, size_t begin, size_t end) {
    AmxBf16Kernel kernel(task, x);
    for (size_t tile = begin; tile < end; tile += kTiles) {
      kernel.RunTiles(tile, std::min(tile + kTiles, end));
    }
    Tiles::Release();
  }

 private:
  // AMX registers: totals of two groups of tokens by two tiles, and their operands.
  static constexpr int kTotals = 0, kTokens = 4, kWeights = 6;
  // Columns and tiles whose weights stay in the second-level cache (1 MB) while all tokens are
  // multiplied by them.
  static constexpr size_t kColumns = 2048, kTiles = 16;
  static constexpr size_t kChainBytes = kBf16Chain * sizeof(Bf16);
  static constexpr size_t kWeightBytes = kTileRows * kChainBytes;  // of a tile's chain
  // Prefetch distance in bytes along a tile, for the first tokens. With it one token takes 0.8
  // times as long, six 0.9 times.
  static constexpr size_t kAhead = 4096;

  // The activations of up to two groups of tokens for some chains of columns.
  struct Inputs {
    const Bf16* tokens[2] = {};
    size_t stride = 0;  // bytes from token to token
    size_t step = 0;    // elements from chain to chain
    size_t chains = 0;
    // Rows that are multiplied after these, to be prefetched: each pair of tiles takes a share of
    // them. With it 512 tokens take 0.8 times as long.
    const Bf16* next = nullptr;
    size_t next_rows = 0;
  };

  AmxBf16Kernel(const MatMulTask& task, const Bf16Rows& x) : task_(task), x_(x) {}

  void RunTiles(size_t begin, size_t end) {
    const size_t cols = (task_.w->cols() + 1) / 2 * 2;
    const size_t whole = cols / kBf16Chain * kBf16Chain;
    for (size_t col = 0; col < cols;) {
      const size_t count = col < whole ? std::min(kColumns, whole - col) : cols - col;
      for (size_t token = 0; token < task_.y.rows; token += 2 * kAmxTokens) {
        const size_t tokens = std::min(2 * kAmxTokens, task_.y.rows - token);
        SetShapes(tokens, std::min(count, kBf16Chain));
        RunTokens(begin, end, col, count, token, tokens);
      }
      col += count;
    }
  }

  // The columns [col, col + count) for 2 * kAmxTokens tokens at most.
  void RunTokens(size_t begin, size_t end, size_t col, size_t count, size_t token, size_t tokens) {
    Bf16 copy[kColumns / kBf16Chain][2 * kAmxTokens][kBf16Chain];
    Inputs x;
    x.chains = (count + kBf16Chain - 1) / kBf16Chain;
    size_t next_rows = 0;
    if (task_.x_rows == nullptr) {
      x.stride = x_.stride * sizeof(Bf16);
      x.step = kBf16Chain;
      x.tokens[0] = x_.Row(token) + col;
      next_rows = std::min(2 * kAmxTokens, task_.y.rows - token - tokens);
    } else {
      // AMX reads rows that are equally far apart.
      const size_t bytes = std::min(count, kBf16Chain) * sizeof(Bf16);
      for (size_t t = 0; t < tokens; ++t) {
        const Bf16* row = x_.Row(task_.InputRow(token + t)) + col;
        for (size_t i = 0; i < x.chains; ++i) std::memcpy(copy[i][t], row + i * kBf16Chain, bytes);
      }
      x.stride = sizeof(copy[0][0]);
      x.step = sizeof(copy[0]) / sizeof(Bf16);
      x.tokens[0] = copy[0][0];
    }
    if (tokens > kAmxTokens) x.tokens[1] = x.tokens[0] + kAmxTokens * x.stride / sizeof(Bf16);
    const size_t pairs = (end - begin + 1) / 2;
    for (size_t pair = 0; pair < pairs; ++pair) {
      const size_t first = pair * next_rows / pairs;
      x.next_rows = (pair + 1) * next_rows / pairs - first;
      if (x.next_rows > 0) x.next = x_.Row(token + tokens + first) + col;
      const size_t tile = begin + 2 * pair;
      const bool one = tile + 1 == end;
      if (tokens > kAmxTokens) {
        one ? Add<2, 1>(tile, col, token, x) : Add<2, 2>(tile, col, token, x);
      } else {
        one ? Add<1, 1>(tile, col, token, x) : Add<1, 2>(tile, col, token, x);
      }
    }
  }

  // Adds the products of `groups` groups of tokens by `tiles` tiles to their results, which the
  // first columns start.
  template <int groups, int tiles>
  void Add(size_t tile, size_t col, size_t token, const Inputs& x) {
    const uint8_t* w0 = task_.w->tile(tile) + col * kTileRows * sizeof(Bf16);
    const uint8_t* w1 = tiles == 2 ? w0 + task_.w->tile_bytes() : w0;
    const auto each = [](const auto& call) {
      call.template operator()<0, 0>();
      if constexpr (tiles == 2) call.template operator()<0, 1>();
      if constexpr (groups == 2) call.template operator()<1, 0>();
      if constexpr (groups == 2 && tiles == 2) call.template operator()<1, 1>();
    };
    each([&]<int g, int t>() { Start<g, t>(tile + t, token, col == 0); });
    const Bf16 *x0 = x.tokens[0], *x1 = x.tokens[1];
    for (size_t i = 0; i < x.chains; ++i) {
      if (token == 0) {
        for (size_t b = 0; b < kWeightBytes; b += 64) {
          __builtin_prefetch(w0 + kAhead + b, 0, 3);
          if constexpr (tiles == 2) __builtin_prefetch(w1 + kAhead + b, 0, 3);
        }
      }
      Tiles::template Load<kWeights>(w0, kChainBytes);
      if constexpr (tiles == 2) Tiles::template Load<kWeights + 1>(w1, kChainBytes);
      Tiles::template Load<kTokens>(x0, x.stride);
      if constexpr (groups == 2) Tiles::template Load<kTokens + 1>(x1, x.stride);
      each([&]<int g, int t>() {
        Tiles::template AddProductsOfBf16<kTotals + 2 * g + t, kTokens + g, kWeights + t>();
      });
      for (size_t r = 0; r < x.next_rows; ++r) {
        __builtin_prefetch(x.next + r * x_.stride + i * kBf16Chain, 0, 2);
      }
      w0 += kWeightBytes;
      w1 += kWeightBytes;
      x0 += x.step;
      if constexpr (groups == 2) x1 += x.step;
    }
    each([&]<int g, int t>() { Finish<g, t>(tile + t, token); });
  }

  // Loads the totals of a group of tokens and a tile.
  template <int g, int t>
  void Start(size_t tile, size_t token, bool is_new) {
    constexpr int kRegister = kTotals + 2 * g + t;
    if (is_new) return Tiles::template Zero<kRegister>();
    const size_t first = token + g * kAmxTokens, row = tile * kTileRows;
    const size_t rows = task_.w->rows() - row;
    if (rows >= kTileRows) {
      Tiles::template Load<kRegister>(task_.y.Row(first) + row, YStride());
    } else {
      float part[kAmxTokens][kTileRows] = {};
      for (size_t c = 0; c < Tokens(first); ++c) {
        std::copy_n(task_.y.Row(first + c) + row, rows, part[c]);
      }
      Tiles::template Load<kRegister>(part, sizeof(part[0]));
    }
  }

  // Stores them.
  template <int g, int t>
  void Finish(size_t tile, size_t token) {
    constexpr int kRegister = kTotals + 2 * g + t;
    const size_t first = token + g * kAmxTokens, row = tile * kTileRows;
    const size_t rows = task_.w->rows() - row;
    if (rows >= kTileRows) {
      Tiles::template Store<kRegister>(task_.y.Row(first) + row, YStride());
    } else {
      float part[kAmxTokens][kTileRows];
      Tiles::template Store<kRegister>(part, sizeof(part[0]));
      for (size_t c = 0; c < Tokens(first); ++c) {
        std::copy_n(part[c], rows, task_.y.Row(first + c) + row);
      }
    }
  }

  size_t YStride() const { return task_.y.stride * sizeof(float); }
  // Of the group of tokens that starts with this one.
  size_t Tokens(size_t first) const { return std::min(kAmxTokens, task_.y.rows - first); }

  // Shapes the registers for so many tokens and columns of each product.
  void SetShapes(size_t tokens, size_t cols) {
    if (tokens == tokens_ && cols == cols_) return;
    tokens_ = tokens;
    cols_ = cols;
    AmxShapes shapes;
    const size_t of_group[] = {std::min(tokens, kAmxTokens), tokens - std::min(tokens, kAmxTokens)};
    for (int g = 0; g < 2; ++g) {
      if (of_group[g] == 0) continue;
      for (int t = 0; t < 2; ++t) shapes.Set(kTotals + 2 * g + t, of_group[g], 4 * kTileRows);
      shapes.Set(kTokens + g, of_group[g], cols * sizeof(Bf16));
    }
    for (int t = 0; t < 2; ++t) shapes.Set(kWeights + t, cols / 2, 4 * kTileRows);
    Tiles::Configure(shapes);
  }

  const MatMulTask& task_;
  const Bf16Rows& x_;
  size_t tokens_ = 0, cols_ = 0;  // of the shapes
};

}  // namespace inlay

#endif  // INLAY_OPS_MATMUL_MATMUL_AMX_BF16_H_
