// States on a Redis server.
#ifndef INLAY_IO_STORE_STATE_STORE_REDIS_H_
#define INLAY_IO_STORE_STATE_STORE_REDIS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "io/store/redis_options.h"
#include "io/store/state_store.h"

namespace inlay {

// A state is one hash under the key prefix + key: chunks with a checksum each, and a manifest that
// says how many. It is written under a key of its own that expires after an hour, and renamed in
// one step with the last check, so chunks never outlive their manifest. A reader that is overtaken
// by a new state or a Delete gets DataLoss. Each Put, Get and Delete makes a connection of its own.
//
// A server that dies, lies or never answers costs an error after at most RedisOptions::timeout:
// Unavailable, DeadlineExceeded, or DataLoss for what cannot be a state. Else, by what the server
// says: Unauthenticated or PermissionDenied for the user or password, ResourceExhausted when its
// memory is full, FailedPrecondition when the key holds another type of value (which is neither
// read, replaced nor deleted) or the server only reads, and InvalidArgument for a database that it
// does not have; Internal for an error that it has no word for. The user needs the right to run
// scripts (EVAL).
//
// InvalidArgument for options that cannot work; Unimplemented when hiredis was not there when this
// program was built.
absl::StatusOr<std::unique_ptr<StateStore>> OpenRedisStore(RedisOptions options);

}  // namespace inlay

#endif  // INLAY_IO_STORE_STATE_STORE_REDIS_H_
