// How many connections the process has file descriptors for.
#ifndef INLAY_SERVE_HTTP_DESCRIPTOR_LIMIT_H_
#define INLAY_SERVE_HTTP_DESCRIPTOR_LIMIT_H_

#include <cstddef>

namespace inlay::serve {

// Descriptors that connections leave to everything else: files of sessions and snapshots, Redis,
// logs, the listeners. Of a limit of less than twice as many they leave half.
inline constexpr size_t kOtherDescriptors = 64;

// Raises the process' soft limit of file descriptors, up to the hard one, so that `connections` and
// kOtherDescriptors may be open at once. The connections that there is room for then: at most
// `connections`, at least 1.
size_t MakeRoomForConnections(size_t connections);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_DESCRIPTOR_LIMIT_H_
