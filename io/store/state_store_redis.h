// States on a Redis server.
#ifndef INLAY_IO_STORE_STATE_STORE_REDIS_H_
#define INLAY_IO_STORE_STATE_STORE_REDIS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/store/redis_options.h"
#include "io/store/state_store.h"

namespace inlay {

// A state is one hash under the key prefix + key: chunks with a checksum each, and a manifest that
// says how many. It is written under a temporary key that expires after an hour; the last check and
// the rename are one atomic step, so chunks never outlive their manifest, and of the writers of
// several processes that would replace one state with PutOver only the first does. If the state is
// replaced or deleted while it is read, the reader gets Aborted. Each Put, Get and Delete has a
// connection to itself while it lasts. Each Put begins RedisOptions::expiry anew, in the same step,
// and so does MarkUsed. List and Count read an index beside the states (see RedisIndexKey). All
// keys of a command are in one slot of a cluster, which refuses the index and is searched instead.
//
// A server that fails, sends wrong data or never answers causes an error after at most
// RedisOptions::timeout: Unavailable, DeadlineExceeded, or DataLoss for what cannot be a state. The
// server's own errors become Unauthenticated or PermissionDenied for the user or password,
// ResourceExhausted when its memory is full, FailedPrecondition when the key holds another type of
// value (which is neither read, replaced nor deleted), Unavailable when the server is read-only or
// cannot serve at the moment (see RedisConnection::Command), InvalidArgument for a database that it
// does not have, and Internal for any other error. The user needs the right to run scripts (EVAL).
//
// InvalidArgument for options that cannot work; Unimplemented when this program was built without
// hiredis.
absl::StatusOr<std::unique_ptr<StateStore>> OpenRedisStore(RedisOptions options);

// Whether the options' user has all rights that a store with these options needs, but those to its
// index, which it can do without. PermissionDenied, naming the command, when it lacks one: else the
// first state that is stored would show that. Or an error of RedisConnection. It tries the commands
// on keys that no state has, and leaves nothing behind.
absl::Status CheckRedisRights(const RedisOptions& options);

}  // namespace inlay

#endif  // INLAY_IO_STORE_STATE_STORE_REDIS_H_
