// CPU targets that Highway could compile for and these kernels are not compiled for. The build
// includes this header before everything else in each source of ops (-include), as Highway reads
// the macros when it is included for the first time.
#ifndef INLAY_OPS_CPU_DISABLED_TARGETS_H_
#define INLAY_OPS_CPU_DISABLED_TARGETS_H_

// Highway leaves AVX3_DL out unless asked.
#define HWY_WANT_AVX3_DL

// No kernel gains anything from these. SSSE3: CPUs of 2006 to 2010, which run SSE2. AVX3_SPR: its
// bf16 products run at half the speed of float ones, so such CPUs run AVX3_DL. SVE_256 and
// SVE2_128: forms for vectors of one known size, which g++ does not keep in arrays either, so SVE
// and SVE2 do the same.
#define INLAY_UNUSED_TARGETS (HWY_SSSE3 | HWY_AVX3_SPR | HWY_SVE_256 | HWY_SVE2_128)

// AVX3_DL and AVX3_ZEN4 add products of bytes and of bfloat16 to AVX3. g++ compiles all other
// kernels to the same instructions, so only sources with such products are compiled for these
// targets: they define HWY_DISABLED_TARGETS anew. The others run AVX3 on such CPUs.
#define HWY_DISABLED_TARGETS (INLAY_UNUSED_TARGETS | HWY_AVX3_DL | HWY_AVX3_ZEN4)

#endif  // INLAY_OPS_CPU_DISABLED_TARGETS_H_
