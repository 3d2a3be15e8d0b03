// Which instruction set the kernels run on.
//
// A CPU target is one of Highway's, alone or with an extension: "AVX3", "AVX3_VNNI". Kernels that
// gain nothing from the extension run as on the target alone. Those that do are compiled for NEON
// even where "SVE2_I8MM" or the like is the target.
#ifndef INLAY_OPS_CPU_CPU_TARGET_H_
#define INLAY_OPS_CPU_CPU_TARGET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace inlay {

// Instructions that Highway has no target for; some kernels are compiled once more to use them.
enum class Extension : uint8_t {
  kNone,
  kVnni,     // products of bytes, four to a sum: AVX512_VNNI (Cascade Lake), AVX-VNNI (Alder Lake)
  kAmx,      // products of small matrices of bytes and bfloat16: AMX-INT8 and AMX-BF16 (Sapphire
             // Rapids)
  kDotprod,  // as kVnni on Arm: FEAT_DotProd (Neoverse N1)
  kI8mm,     // as kDotprod, with FEAT_I8MM and FEAT_BF16: products of matrices (Neoverse V1, V2 and
             // N2, Apple M2)
};

// Names of the CPU targets compiled in, best first.
std::vector<std::string> CompiledTargets();

// Names of the CPU targets compiled in that this CPU can run, best first ("AVX3_ZEN4", "AVX2",
// ...). Empty if the program was compiled for another CPU alone (INLAY_TARGETS=native).
std::vector<std::string> RunnableTargets();

// The name of the CPU target that the kernels use now, and its extension.
std::string ChosenTarget();
Extension ChosenExtension();

// Whether its kernels unpack the weights of quantized products with many tokens: those of AVX2 and
// SSE4 without an extension do.
bool UnpacksWeights();

// Identifies everything that decides the bits of results on the target in use: the name of the
// plainest target whose kernels compute the same ("AVX3" on AVX3_VNNI), and for SVE the bytes of a
// vector ("SVE/64").
std::string ChosenArithmetic();

// Makes all kernels use the named target from now on; an empty name returns to the best. False, and
// no change, if the name is not among RunnableTargets(). Not to be called while another thread runs
// kernels.
bool ForceTarget(std::string_view name);

}  // namespace inlay

#endif  // INLAY_OPS_CPU_CPU_TARGET_H_
