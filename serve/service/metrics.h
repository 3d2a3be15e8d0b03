// The server's figures as Prometheus reads them.
#ifndef INLAY_SERVE_SERVICE_METRICS_H_
#define INLAY_SERVE_SERVICE_METRICS_H_

#include <string>

#include "serve/service/service_stats.h"

namespace inlay::serve {

// In the text format 0.0.4.
// https://prometheus.io/docs/instrumenting/exposition_formats/
std::string MetricsText(const ServiceStats& stats);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_METRICS_H_
