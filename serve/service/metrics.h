// The server's figures as Prometheus reads them.
#ifndef INLAY_SERVE_SERVICE_METRICS_H_
#define INLAY_SERVE_SERVICE_METRICS_H_

#include <cstddef>
#include <string>

#include "serve/scheduler/scheduler_stats.h"

namespace inlay::serve {

// In the text format 0.0.4. `connections`: open ones.
// https://prometheus.io/docs/instrumenting/exposition_formats/
std::string MetricsText(const SchedulerStats& stats, size_t connections);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_METRICS_H_
