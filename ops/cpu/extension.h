// Extensions of CPU targets: instructions that Highway has no target for.
//
// A kernel that gains from an extension is compiled once more for the targets that have it: a
// second source defines INLAY_VNNI or the like and includes the first. This header, included
// before Highway's, defines the extension's name; ops/cpu/extension-inl.h, included after them,
// defines its instructions (those of AMX are in ops/cpu/amx_tiles.h). Which kernels a CPU runs is
// decided in ops/cpu/cpu_target.h.
#ifndef INLAY_OPS_CPU_EXTENSION_H_
#define INLAY_OPS_CPU_EXTENSION_H_

#include "hwy/detect_compiler_arch.h"

// Arm's extensions: whether the compiler may use their instructions everywhere, as with
// -march=native.
#if HWY_ARCH_ARM_A64 && defined(__ARM_FEATURE_DOTPROD)
#define INLAY_HAS_DOTPROD 1
#else
#define INLAY_HAS_DOTPROD 0
#endif
#if INLAY_HAS_DOTPROD && defined(__ARM_FEATURE_MATMUL_INT8) && \
    defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define INLAY_HAS_I8MM 1
#else
#define INLAY_HAS_I8MM 0
#endif
// Whether it may use them in functions with a target attribute (HWY_HAVE_RUNTIME_DISPATCH). g++ 12
// requires at least ARMv8.2 in such an attribute, and does not inline there what may use more; a
// build for anything above ARMv8.0, which LSE atomics show, may use more.
#if !HWY_ARCH_ARM_A64 || defined(HWY_COMPILE_ONLY_STATIC) || \
    (HWY_COMPILER_GCC_ACTUAL && defined(__ARM_FEATURE_ATOMICS))
#define INLAY_CAN_ADD_ARM 0
#else
#define INLAY_CAN_ADD_ARM HWY_HAVE_RUNTIME_DISPATCH
#endif

// The targets of Highway that each extension's kernels are compiled for. Arm's are for NEON, and
// CPUs with SVE run these, too: only vectors of a fixed size can be elements of arrays in
// registers.
#define INLAY_ARM_TARGETS(has) \
  ((has) ? HWY_NEON | HWY_NEON_WITHOUT_AES : INLAY_CAN_ADD_ARM ? HWY_NEON : 0)
#define INLAY_VNNI_TARGETS (HWY_AVX3 | HWY_AVX2)
#define INLAY_AMX_TARGETS HWY_AVX3_DL
#define INLAY_DOTPROD_TARGETS INLAY_ARM_TARGETS(INLAY_HAS_DOTPROD)
#define INLAY_I8MM_TARGETS INLAY_ARM_TARGETS(INLAY_HAS_I8MM)

// The targets whose kernels, without an extension, unpack weights, as
// ops/matmul/matmul_unpacked-inl.h does.
#define INLAY_UNPACKING_TARGETS (HWY_AVX2 | HWY_SSE4)

// The namespace of what the source exports, and its targets.
#if defined(INLAY_VNNI)
#define INLAY_EXTENSION vnni
#define INLAY_EXTENSION_TARGETS INLAY_VNNI_TARGETS
#elif defined(INLAY_AMX)
#define INLAY_EXTENSION amx
#define INLAY_EXTENSION_TARGETS INLAY_AMX_TARGETS
#elif defined(INLAY_DOTPROD)
#define INLAY_EXTENSION dotprod
#define INLAY_EXTENSION_TARGETS INLAY_DOTPROD_TARGETS
#elif defined(INLAY_I8MM)
#define INLAY_EXTENSION i8mm
#define INLAY_EXTENSION_TARGETS INLAY_I8MM_TARGETS
#else
#define INLAY_EXTENSION plain
#endif

// The value of HWY_DISABLED_TARGETS for a source that disables `targets` if compiled without an
// extension. Highway compiles every source for the baseline target, whatever is disabled.
#if defined(INLAY_EXTENSION_TARGETS)
#define INLAY_DISABLED_TARGETS(targets) \
  (~(INLAY_EXTENSION_TARGETS | HWY_SSE2 | HWY_NEON_WITHOUT_AES))
#else
#define INLAY_DISABLED_TARGETS(targets) (targets)
#endif

#endif  // INLAY_OPS_CPU_EXTENSION_H_
