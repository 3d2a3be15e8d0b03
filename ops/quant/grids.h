// The grids of the IQ2 and IQ3 weight types: tables of the magnitudes of consecutive elements.
#ifndef INLAY_OPS_QUANT_GRIDS_H_
#define INLAY_OPS_QUANT_GRIDS_H_

#include <cstdint>

namespace inlay {

// An entry holds the levels of 8 elements in 2 bits each, or of 4 elements in 3 bits each, the
// first in the lowest bits; a level is the index of a magnitude.
extern const uint16_t kIq2XxsGrid[256];
extern const uint16_t kIq2XsGrid[512];
extern const uint16_t kIq2SGrid[1024];
extern const uint16_t kIq3XxsGrid[256];
extern const uint16_t kIq3SGrid[512];

// The values of a level with its sign in the bit above it. IQ2 has three magnitudes: its grids have
// no level 3. Its 8 values fill the table twice.
alignas(16) inline constexpr int8_t kIq2Values[16] = {8, 25, 43, 43, -8, -25, -43, -43,
                                                      8, 25, 43, 43, -8, -25, -43, -43};
alignas(16) inline constexpr int8_t kIq3XxsValues[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                                         -4, -12, -20, -28, -36, -44, -52, -62};
alignas(16) inline constexpr int8_t kIq3SValues[16] = {1,  3,  5,  7,  9,  11,  13,  15,
                                                       -1, -3, -5, -7, -9, -11, -13, -15};

}  // namespace inlay

#endif  // INLAY_OPS_QUANT_GRIDS_H_
