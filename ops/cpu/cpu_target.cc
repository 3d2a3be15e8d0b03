#include "ops/cpu/cpu_target.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <utility>

#include "hwy/targets.h"
#include "ops/cpu/cpu_probes.h"
#include "ops/cpu/extension.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#elif HWY_ARCH_ARM_A64 && HWY_OS_LINUX
#include <sys/auxv.h>
#endif
#if HWY_ARCH_X86_64 && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace inlay {
namespace {

// An extension, its name, the Highway targets that its kernels are compiled for, and the Highway
// targets that become better with it.
struct ExtensionTargets {
  Extension extension;
  const char* suffix;
  int64_t compiled;
  int64_t bits;
};

// Of two extensions for the same target, the better one comes first.
constexpr ExtensionTargets kExtensions[] = {
    {Extension::kAmx, "_AMX", INLAY_AMX_TARGETS, INLAY_AMX_TARGETS},
    {Extension::kVnni, "_VNNI", INLAY_VNNI_TARGETS, INLAY_VNNI_TARGETS},
    {Extension::kI8mm, "_I8MM", INLAY_I8MM_TARGETS,
     INLAY_I8MM_TARGETS == 0 ? 0 : INLAY_I8MM_TARGETS | HWY_SVE2 | HWY_SVE | HWY_NEON_BF16},
    {Extension::kDotprod, "_DOTPROD", INLAY_DOTPROD_TARGETS, INLAY_DOTPROD_TARGETS},
};

// Null for kNone.
const ExtensionTargets* FindExtension(Extension extension) {
  const auto* found =
      std::find_if(std::begin(kExtensions), std::end(kExtensions),
                   [&](const ExtensionTargets& added) { return added.extension == extension; });
  return found == std::end(kExtensions) ? nullptr : found;
}

// One of Highway's targets, alone or with an extension.
struct CpuTarget {
  int64_t bit;
  Extension extension = Extension::kNone;

  std::string Name() const {
    const ExtensionTargets* added = FindExtension(extension);
    return hwy::TargetName(bit) + std::string(added == nullptr ? "" : added->suffix);
  }
};

#if HWY_ARCH_X86
// Whether this CPU has AMX for bytes and bfloat16, and the system lets this process use it.
bool HasAmx() {
#if HWY_ARCH_X86_64 && defined(__linux__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr uint32_t kAmx = 1u << 22 | 1u << 24 | 1u << 25;  // AMX-BF16, -TILE and -INT8
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  if ((edx & kAmx) != kAmx) return false;
  // Whether the system saves the registers' shapes (17) and contents (18).
  constexpr uint32_t kTileStates = 1u << 17 | 1u << 18;
  uint32_t states, high;
  asm volatile("xgetbv" : "=a"(states), "=d"(high) : "c"(0));
  if ((states & kTileStates) != kTileStates) return false;
  // Linux reserves room for the contents only on request, once for all threads.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

// Whether this CPU has the extension of a target that it runs.
bool HasExtension(const CpuTarget& target) {
#if HWY_ARCH_X86
  if (target.extension == Extension::kAmx) return HasAmx();
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (target.bit == HWY_AVX3) {
    constexpr uint32_t kAvx512Vnni = 1u << 11;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx & kAvx512Vnni) != 0;
  }
  constexpr uint32_t kAvxVnni = 1u << 4;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & kAvxVnni) != 0;
#elif HWY_ARCH_ARM_A64 && HWY_OS_LINUX
  constexpr uint64_t kDotprod = 1u << 20;                 // HWCAP_ASIMDDP
  constexpr uint64_t kI8mmAndBf16 = 1u << 13 | 1u << 14;  // HWCAP2_I8MM, HWCAP2_BF16
  const bool has_dotprod = (getauxval(AT_HWCAP) & kDotprod) != 0;
  if (target.extension == Extension::kDotprod) return has_dotprod;
  return has_dotprod && (getauxval(AT_HWCAP2) & kI8mmAndBf16) == kI8mmAndBf16;
#else
  (void)target;
  return false;
#endif
}

// The targets of these bits with all their extensions, best first.
std::vector<CpuTarget> WithExtensions(int64_t bits) {
  std::vector<CpuTarget> targets;
  // Highway gives better targets lower bits.
  for (int64_t rest = bits; rest != 0; rest &= rest - 1) {
    const int64_t bit = rest & -rest;
    for (const ExtensionTargets& added : kExtensions) {
      if ((bit & added.bits) != 0) targets.push_back({bit, added.extension});
    }
    targets.push_back({bit});
  }
  return targets;
}

// The compiled-in targets that this CPU has. Determined once, before the first mock by ForceTarget,
// because hwy::SupportedTargets reports the mock.
const std::vector<CpuTarget>& Runnable() {
  static const std::vector<CpuTarget> targets = [] {
    const int64_t supported = hwy::SupportedTargets();
    auto all = WithExtensions(supported & CompiledTargetBits());
    std::erase_if(all, [&](const CpuTarget& target) {
      const ExtensionTargets* added = FindExtension(target.extension);
      return added != nullptr && ((supported & added->compiled) == 0 || !HasExtension(target));
    });
    return all;
  }();
  return targets;
}

std::vector<std::string> Names(const std::vector<CpuTarget>& targets) {
  std::vector<std::string> names;
  for (const CpuTarget& target : targets) names.push_back(target.Name());
  return names;
}

std::atomic<Extension>& Chosen() {
  static std::atomic<Extension> extension =
      Runnable().empty() ? Extension::kNone : Runnable().front().extension;
  return extension;
}

}  // namespace

std::vector<std::string> CompiledTargets() { return Names(WithExtensions(CompiledTargetBits())); }

std::vector<std::string> RunnableTargets() { return Names(Runnable()); }

// Asks a kernel that is dispatched like all the others.
std::string ChosenTarget() { return CpuTarget{ProbeTargetBit(), ChosenExtension()}.Name(); }

std::string ChosenArithmetic() {
  // The first of each pair only has instructions that compute the same faster, such as exact sums
  // of bytes.
  static constexpr std::pair<std::string_view, std::string_view> kSameBits[] = {
      {"SSE4", "SSE2"},    {"AVX2_VNNI", "AVX2"},        {"AVX3_VNNI", "AVX3"},
      {"AVX3_DL", "AVX3"}, {"NEON_DOTPROD", "NEON"},     {"SVE2_I8MM", "SVE_I8MM"},
      {"SVE2", "SVE"},     {"NEON_WITHOUT_AES", "NEON"},
  };
  std::string target = ChosenTarget();
  for (const auto& [faster, plainest] : kSameBits) {
    if (target == faster) target = plainest;
  }
  // The order of additions depends on the length of a vector, which for SVE is the CPU's.
  if (target.starts_with("SVE")) target.append("/").append(std::to_string(ProbeVectorBytes()));
  return target;
}

Extension ChosenExtension() { return Chosen().load(std::memory_order_relaxed); }

bool UnpacksWeights() {
  return ChosenExtension() == Extension::kNone && (ProbeTargetBit() & INLAY_UNPACKING_TARGETS) != 0;
}

bool ForceTarget(std::string_view name) {
  const std::vector<CpuTarget>& runnable = Runnable();
  const auto forced = std::find_if(runnable.begin(), runnable.end(), [&](const CpuTarget& target) {
    return name.empty() || name == target.Name();
  });
  if (forced == runnable.end()) return false;
  // Includes the targets below it, for kernels that are not compiled for this one.
  int64_t bits = 0;
  for (auto target = forced; target != runnable.end(); ++target) bits |= target->bit;
  hwy::SetSupportedTargetsForTest(name.empty() ? 0 : bits);  // 0 ends the mock
  hwy::GetChosenTarget().Update(bits);
  Chosen() = forced->extension;
  return true;
}

}  // namespace inlay
