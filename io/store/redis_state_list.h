// Which states a Redis server has: an index of their keys, kept beside them.
#ifndef INLAY_IO_STORE_REDIS_STATE_LIST_H_
#define INLAY_IO_STORE_REDIS_STATE_LIST_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/store/redis_connection.h"
#include "io/store/redis_options.h"

namespace inlay {

// The field of a state's hash that makes it a state.
inline constexpr absl::string_view kManifestField = "manifest";

// The key of the index: a sorted set of the states' keys without the prefix, all with the score 0,
// so that they are in the order of their bytes. Whoever stores or deletes a state changes the index
// in the same step, if there is one; whoever stores one and cannot add it deletes the index. So it
// never lacks a state that a program of this version has stored, while a key in it may have no
// state any more: one that expired, for instance.
//
// Who lists or counts where there is no index makes one of what a search of the whole database
// finds. Until that has ended the index has not the member "~", and is not believed. It expires
// after an hour: what other programs, such as older versions of this one, have stored is found
// then.
std::string RedisIndexKey(const RedisOptions& options);

// StateStore::List and Count for these options. They search the database where there is no index
// and none can be made: in a cluster, whose scripts use the keys of one slot alone; or by a user
// without the rights.
absl::StatusOr<std::vector<std::string>> ListRedisStates(RedisConnection& connection,
                                                         const RedisOptions& options,
                                                         absl::string_view prefix);
absl::StatusOr<size_t> CountRedisStates(RedisConnection& connection, const RedisOptions& options,
                                        absl::string_view prefix);

}  // namespace inlay

#endif  // INLAY_IO_STORE_REDIS_STATE_LIST_H_
