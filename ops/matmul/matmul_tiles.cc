#include "ops/matmul/matmul_tiles.h"

#include "ops/cpu/cpu_target.h"

namespace inlay {

TileKernels ChosenTileKernels() {
  TileKernels kernels = {.floats = plain::FloatTiles(),
                         .bf16 = plain::Bf16Tiles(),
                         .bytes = plain::ByteTiles(),
                         .nibbles = plain::NibbleTiles(),
                         .tables = plain::TableTiles()};
  switch (ChosenExtension()) {
    case Extension::kNone:
      kernels.unpack = UnpacksWeights();
      break;
    case Extension::kVnni:
      kernels.bytes = vnni::ByteTiles();
      kernels.nibbles = vnni::NibbleTiles();
      kernels.tables = vnni::TableTiles();
      break;
    case Extension::kAmx:
      kernels.use_amx = true;
      kernels.bf16 = amx::Bf16Tiles();
      kernels.bytes = amx::QuantizedTiles();
      kernels.nibbles = amx::QuantizedTiles();
      kernels.tables = amx::QuantizedTiles();
      break;
    case Extension::kDotprod:
      kernels.bytes = dotprod::ByteTiles();
      kernels.nibbles = dotprod::NibbleTiles();
      kernels.tables = dotprod::TableTiles();
      break;
    case Extension::kI8mm:
      kernels.bf16 = i8mm::Bf16Tiles();
      kernels.bytes = i8mm::ByteTiles();
      kernels.nibbles = i8mm::NibbleTiles();
      kernels.tables = i8mm::TableTiles();
      break;
  }
  return kernels;
}

}  // namespace inlay
