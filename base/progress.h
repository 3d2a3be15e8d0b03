// How far a long work is, for whoever shows it.
#ifndef INLAY_BASE_PROGRESS_H_
#define INLAY_BASE_PROGRESS_H_

#include <cstdint>
#include <functional>

namespace inlay {

// Called now and then, on the thread that called the work, with what is done of the total; both are
// in the unit that the work names. May be null.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

}  // namespace inlay

#endif  // INLAY_BASE_PROGRESS_H_
