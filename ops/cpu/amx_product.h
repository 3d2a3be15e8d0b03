// Products of small matrices of bfloat16 by Intel AMX, whose operands may have two parts each.
#ifndef INLAY_OPS_CPU_AMX_PRODUCT_H_
#define INLAY_OPS_CPU_AMX_PRODUCT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/cpu/amx_tiles.h"

namespace inlay {

// Rows and columns of an AMX register of floats, and terms that one product adds to each of them.
inline constexpr size_t kAmxSide = 16;
inline constexpr size_t kAmxChain = 32;

// The operand whose rows are those of the product: parts[i][row * stride + term].
struct AmxLeft {
  const uint16_t* parts[2];
  size_t stride;
};

// The operand whose columns are those of the product, as AMX reads it: parts[i][tile * stride +
// (term / 2) * kAmxSide + column % kAmxSide] is a word of two terms of a column, the even term in
// its lower half, with kAmxSide columns to a tile.
struct AmxRight {
  const uint32_t* parts[2];
  size_t stride;
};

// sums[row * stride + column], of floats.
struct AmxSums {
  float* data;
  size_t stride;
};

// sums += left * right, where an operand is the sum of its one or two parts. Of two parts of both,
// the product of the second ones, which are the small ones, is left out. Terms are added in chains
// of kAmxChain, each as AmxTiles::AddProductsOfBf16 does: for each chain the small part of the left
// operand first, then that of the right one last. So the bits of a sum depend on its own row and
// column alone; and terms of +0 change none, unless a sum is subnormal or -0.
template <class Tiles, int kLeftParts, int kRightParts>
class AmxProduct {
 public:
  // To be called before Run, with Tiles::Release() after the last Run: `rows` is the number of rows
  // of a product, if it is below kAmxSide.
  static void Configure(size_t rows) {
    AmxShapes shapes;
    rows = std::min(rows, kAmxSide);
    for (int i = 0; i < 4; ++i) shapes.Set(kSums + i, rows, sizeof(float) * kAmxSide);
    for (int i = 0; i < 2; ++i) shapes.Set(kLeft + i, rows, sizeof(uint16_t) * kAmxChain);
    for (int i = 0; i < 2; ++i) shapes.Set(kRight + i, kAmxChain / 2, sizeof(float) * kAmxSide);
    Tiles::Configure(shapes);
  }

  // The product for one or two tiles of kAmxSide columns each. `rows` is that of Configure, or a
  // multiple of kAmxSide. Sums start at 0 if they are new, at what is there if not.
  static void Run(const AmxLeft& left, const AmxRight& right, size_t rows, size_t tiles,
                  size_t chains, const AmxSums& sums, bool are_new) {
    for (size_t row = 0; row < rows; row += 2 * kAmxSide) {
      const Block block = {left, right, chains, sums, row, are_new};
      if (row + kAmxSide < rows) {
        tiles == 2 ? Add<2, 2>(block) : Add<2, 1>(block);
      } else {
        tiles == 2 ? Add<1, 2>(block) : Add<1, 1>(block);
      }
    }
  }

 private:
  // AMX registers: sums of two groups of rows by two tiles, and operands.
  static constexpr int kSums = 0, kLeft = 4, kRight = 6;

  struct Block {
    const AmxLeft& left;
    const AmxRight& right;
    size_t chains;
    const AmxSums& sums;
    size_t row;  // the first
    bool are_new;

    template <int g, int t>
    float* Sums() const {
      return sums.data + (row + g * kAmxSide) * sums.stride + t * kAmxSide;
    }
    template <int r, int g>
    void LoadLeft(int part, size_t chain) const {
      const size_t from = (row + g * kAmxSide) * left.stride + chain * kAmxChain;
      Tiles::template Load<r>(left.parts[part] + from, left.stride * sizeof(uint16_t));
    }
    template <int r, int t>
    void LoadRight(int part, size_t chain) const {
      const size_t from = t * right.stride + chain * (kAmxChain / 2 * kAmxSide);
      Tiles::template Load<r>(right.parts[part] + from, kAmxSide * sizeof(uint32_t));
    }
  };

  template <int groups, int tiles>
  static void Add(const Block& block) {
    const auto each_group = [](const auto& call) {
      call.template operator()<0>();
      if constexpr (groups > 1) call.template operator()<1>();
    };
    const auto each_tile = [](const auto& call) {
      call.template operator()<0>();
      if constexpr (tiles > 1) call.template operator()<1>();
    };
    const auto each = [&](const auto& call) {
      each_tile([&]<int t>() { each_group([&]<int g>() { call.template operator()<g, t>(); }); });
    };
    const size_t sums_bytes = block.sums.stride * sizeof(float);
    each([&]<int g, int t>() {
      if (block.are_new) return Tiles::template Zero<kSums + groups * t + g>();
      Tiles::template Load<kSums + groups * t + g>(block.template Sums<g, t>(), sums_bytes);
    });
    for (size_t chain = 0; chain < block.chains; ++chain) {
      if constexpr (groups == 1) {
        block.template LoadLeft<kLeft, 0>(0, chain);
        if constexpr (kLeftParts == 2) block.template LoadLeft<kLeft + 1, 0>(1, chain);
        each_tile([&]<int t>() {
          constexpr int kOperand = kRight + t;
          block.template LoadRight<kOperand, t>(0, chain);
          if constexpr (kLeftParts == 2) {
            Tiles::template AddProductsOfBf16<kSums + t, kLeft + 1, kOperand>();
          }
          Tiles::template AddProductsOfBf16<kSums + t, kLeft, kOperand>();
          if constexpr (kRightParts == 2) {
            block.template LoadRight<kOperand, t>(1, chain);
            Tiles::template AddProductsOfBf16<kSums + t, kLeft, kOperand>();
          }
        });
      } else {
        const auto load_left = [&](int part) {
          each_group([&]<int g>() { block.template LoadLeft<kLeft + g, g>(part, chain); });
        };
        const auto load_right = [&](int part) {
          each_tile([&]<int t>() { block.template LoadRight<kRight + t, t>(part, chain); });
        };
        const auto multiply = [&] {
          each([&]<int g, int t>() {
            Tiles::template AddProductsOfBf16<kSums + groups * t + g, kLeft + g, kRight + t>();
          });
        };
        load_right(0);
        if constexpr (kLeftParts == 2) {
          load_left(1);
          multiply();
        }
        load_left(0);
        multiply();
        if constexpr (kRightParts == 2) {
          load_right(1);
          multiply();
        }
      }
    }
    each([&]<int g, int t>() {
      Tiles::template Store<kSums + groups * t + g>(block.template Sums<g, t>(), sums_bytes);
    });
  }
};

}  // namespace inlay

#endif  // INLAY_OPS_CPU_AMX_PRODUCT_H_
