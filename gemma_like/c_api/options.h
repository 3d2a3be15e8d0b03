// The options of the C API as those of the engine.
#ifndef INLAY_GEMMA_LIKE_C_API_OPTIONS_H_
#define INLAY_GEMMA_LIKE_C_API_OPTIONS_H_

#include "absl/status/statusor.h"
#include "gemma_like/c_api/handles.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/sampler.h"
#include "gemma_like/inlay_c.h"
#include "ops/attention/kv_type.h"

namespace inlay::c_api {

inlay_options DefaultOptions(const LoadedModel& model);

// What `options`, which may be null, say together with the defaults.
absl::StatusOr<inlay_options> WithDefaults(const inlay_options* options, const LoadedModel& model);

// InvalidArgument for biases of tokens that the model does not have; CheckSampling checks the rest.
absl::StatusOr<SamplingOptions> SamplingOf(const inlay_options& options, const LoadedModel& model);

// InvalidArgument for what cannot be read, ResourceExhausted for a shape that is too large.
absl::StatusOr<GenerateOptions> GenerateOptionsOf(const inlay_options& options, SharedModel& model);

// InvalidArgument for what is no inlay_row_type.
absl::StatusOr<KvType> RowTypeOf(int type);

}  // namespace inlay::c_api

#endif  // INLAY_GEMMA_LIKE_C_API_OPTIONS_H_
