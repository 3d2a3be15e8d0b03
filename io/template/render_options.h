// How a template is rendered.
#ifndef INLAY_IO_TEMPLATE_RENDER_OPTIONS_H_
#define INLAY_IO_TEMPLATE_RENDER_OPTIONS_H_

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "io/template/limits.h"

namespace inlay::jinja {

struct RenderOptions {
  Limits limits;
  // What strftime_now tells.
  absl::Time now = absl::Now();
  absl::TimeZone time_zone = absl::LocalTimeZone();
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_RENDER_OPTIONS_H_
