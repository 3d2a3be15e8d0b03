// In the place of pull.cc where Inlay is built without downloads.
#include "gemma_like/c_api/call.h"
#include "gemma_like/inlay_c.h"

inlay_status inlay_pull(const char*, char*, size_t, size_t*) {
  return inlay::c_api::Call(
      [] { return absl::UnimplementedError("this library was built without downloads"); });
}
