#include "ops/matmul_tiles.h"

#include "ops/cpu_target.h"

namespace inlay {

TileKernels ChosenTileKernels() {
  TileKernels kernels = {.floats = plain::FloatTiles(),
                         .bf16 = plain::Bf16Tiles(),
                         .bytes = plain::ByteTiles(),
                         .nibbles = plain::NibbleTiles()};
  switch (ChosenExtension()) {
    case Extension::kNone:
      break;
    case Extension::kVnni:
      kernels.bytes = vnni::ByteTiles();
      kernels.nibbles = vnni::NibbleTiles();
      break;
    case Extension::kAmx:
      kernels.bytes = amx::QuantizedTiles();
      kernels.nibbles = amx::QuantizedTiles();
      break;
  }
  return kernels;
}

}  // namespace inlay
