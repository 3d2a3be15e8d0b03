// Kernels that only probe the CPU: on which target it runs them, how long its vectors are, and how
// fast it reads. Compiled for every CPU target that any kernel is compiled for.
#ifndef INLAY_OPS_CPU_CPU_PROBES_H_
#define INLAY_OPS_CPU_CPU_PROBES_H_

#include <cstddef>
#include <cstdint>

namespace inlay {

// Highway's bits of all CPU targets that are compiled in; better targets have lower bits.
int64_t CompiledTargetBits();

// The bit of the target that Highway dispatches this kernel to.
int64_t ProbeTargetBit();

// Bytes of the vectors that this kernel computes with: for SVE the CPU's.
size_t ProbeVectorBytes();

// The sum of all words, so that every byte is read and the compiler cannot omit a read. The words
// are `streams` equal pieces that are read side by side, 4 vectors of each in turn, and prefetched
// `ahead` bytes before they are needed (0: never). `words` is a multiple of what a round of all
// streams reads.
uint64_t ProbeSumOfWords(const uint64_t* data, size_t words, size_t streams, size_t ahead);

}  // namespace inlay

#endif  // INLAY_OPS_CPU_CPU_PROBES_H_
