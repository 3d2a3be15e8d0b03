// Extensions of CPU targets: instructions that Highway has no target for.
//
// A kernel that gains from an extension is compiled once more for the targets that have it: a
// second source defines INLAY_VNNI or the like and includes the first. This header, which comes
// before Highway's, gives the extension's name; ops/extension-inl.h, which comes after them, its
// instructions (those of AMX stand in ops/amx_tiles.h). Which kernels a CPU runs is decided in
// ops/cpu_target.h.
#ifndef INLAY_OPS_EXTENSION_H_
#define INLAY_OPS_EXTENSION_H_

// The namespace of what the source exports, and the targets of Highway that it is compiled for.
#if defined(INLAY_VNNI)
#define INLAY_EXTENSION vnni
#define INLAY_EXTENSION_TARGETS (HWY_AVX3 | HWY_AVX2)
#elif defined(INLAY_AMX)
#define INLAY_EXTENSION amx
#define INLAY_EXTENSION_TARGETS HWY_AVX3_DL
#else
#define INLAY_EXTENSION plain
#endif

// What the source defines HWY_DISABLED_TARGETS as, where it disables `targets` without an
// extension. Highway compiles every source for the worst target that there can be, whatever is
// disabled.
#if defined(INLAY_EXTENSION_TARGETS)
#define INLAY_DISABLED_TARGETS(targets) \
  (~(INLAY_EXTENSION_TARGETS | HWY_SSE2 | HWY_NEON_WITHOUT_AES))
#else
#define INLAY_DISABLED_TARGETS(targets) (targets)
#endif

#endif  // INLAY_OPS_EXTENSION_H_
