// One state on a Redis server: its manifest, its chunks and the scripts that change them.
#ifndef INLAY_IO_STORE_REDIS_STATE_H_
#define INLAY_IO_STORE_REDIS_STATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/store/redis_connection.h"
#include "io/store/redis_connections.h"
#include "io/store/redis_options.h"
#include "io/store/state_store.h"

namespace inlay {

// A state's manifest, stored as it is in memory and followed by its checksum.
struct RedisManifest {
  static constexpr uint64_t kMagic = 0x32306e6d79616c6e;  // "nlaymn02"
  // Large enough that the round trips of a chunk do not matter, small enough for a server's
  // buffers.
  static constexpr size_t kChunkBytes = size_t{1} << 20;
  // No manifest may name more than this: 65536 chunks.
  static constexpr uint64_t kMaxStateBytes = uint64_t{kChunkBytes} << 16;

  uint64_t magic = kMagic;
  // Random: tells the chunks of a state from those of the one it replaces; the state's tag.
  uint64_t generation = 0;
  uint64_t bytes = 0;

  uint64_t Chunks() const { return (bytes + kChunkBytes - 1) / kChunkBytes; }
  // Of a chunk's data.
  size_t ChunkSize(uint64_t chunk) const {
    return static_cast<size_t>(std::min<uint64_t>(kChunkBytes, bytes - chunk * kChunkBytes));
  }
};

// One state on the server, over one connection.
class RedisState {
 public:
  // A chunk, its checksum and what the protocol adds; it also bounds the memory that a server can
  // make this program use. A step of a listing, which looks at about 1000 keys of at most 100
  // characters, is below it.
  static constexpr size_t kMaxReply = RedisManifest::kChunkBytes + sizeof(uint64_t) + 4096;

  RedisState(RedisConnections::Lease connection, const RedisOptions& options,
             absl::string_view key);

  const std::string& key() const { return key_; }

  // FailedPrecondition when the state's key holds another type of value.
  absl::Status CheckType();

  absl::StatusOr<RedisManifest> GetManifest();

  absl::Status PutChunk(const RedisManifest& manifest, uint64_t chunk,
                        absl::Span<const uint8_t> data);
  absl::StatusOr<std::string> GetChunk(const RedisManifest& manifest, uint64_t chunk);

  // See StateStore::ReadBeginning.
  absl::StatusOr<StateBeginning> ReadBeginning(size_t most);

  // Makes the chunks that were put the state, which expires as the options say, in the place of the
  // one of this tag; Aborted when that is no longer there.
  absl::Status Publish(const RedisManifest& manifest, StateTag replaced);

  // The state, if there is one, expires as the options say, from now on. They must have an expiry:
  // by one of zero the server would delete the state.
  absl::Status BeginExpiry();

  // Deletes the chunks that were put, if the server still answers and there is memory to ask it;
  // else they expire.
  void Discard(const RedisManifest& manifest) noexcept;

  // See CheckRedisRights. No other state may have the key, which the commands write and delete.
  absl::Status CheckRights();

  absl::Status Delete();

 private:
  absl::Status CheckUnchanged(const RedisManifest& manifest);
  std::string UnfinishedKey(const RedisManifest& manifest) const;
  absl::Status PutField(const RedisManifest& manifest, absl::string_view field,
                        absl::string_view value);
  absl::StatusOr<RedisReply> EvalIndexed(absl::string_view script,
                                         const std::vector<std::string>& keys,
                                         const std::vector<std::string>& arguments);
  absl::Status OtherType(absl::string_view type) const;
  absl::Status ChunkLost(uint64_t chunk, bool is_there) const;
  absl::Status Unexpected(absl::string_view command) const;

  RedisConnections::Lease connection_;
  std::string key_;
  std::string server_key_;
  std::string index_;
  std::string expiry_;  // in milliseconds
};

}  // namespace inlay

#endif  // INLAY_IO_STORE_REDIS_STATE_H_
