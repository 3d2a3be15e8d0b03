// The filters of lists, which the list of all filters includes.
#ifndef INLAY_IO_TEMPLATE_FILTERS_H_
#define INLAY_IO_TEMPLATE_FILTERS_H_

#include "absl/types/span.h"
#include "io/template/functions.h"

namespace inlay::jinja {

absl::Span<const Function> ItemFilters();

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_FILTERS_H_
