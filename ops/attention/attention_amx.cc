#define INLAY_AMX
#include "ops/cpu/extension.h"
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_DISABLED_TARGETS(INLAY_UNUSED_TARGETS)

#include <cassert>

#include "ops/attention/attention_span.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_amx.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/attention/attention_amx-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

#if INLAY_IS_COMPILED
void ComputeSpan(const AttentionCall& call, const TokenRange& tokens, size_t kv_head, size_t span,
                 const Partials* partials) {
  SpanByAmx<AmxTiles>(call, tokens, kv_head, span, partials);
}
#else
void ComputeSpan(const AttentionCall&, const TokenRange&, size_t, size_t, const Partials*) {
  assert(false);
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay::INLAY_EXTENSION {
namespace {

HWY_EXPORT(ComputeSpan);

}  // namespace

ComputeSpanOf ComputeSpan() { return HWY_DYNAMIC_POINTER(ComputeSpan); }

}  // namespace inlay::INLAY_EXTENSION
#endif  // HWY_ONCE
