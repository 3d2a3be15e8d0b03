// The format of a saved conversation: a header, then checksummed sections.
#ifndef INLAY_CACHE_SERIALIZE_H_
#define INLAY_CACHE_SERIALIZE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/byte_stream.h"
#include "ops/attention.h"
#include "ops/xxh64.h"

namespace inlay {

// All numbers are little-endian, and a section follows the one before it without padding:
//
//   header   magic, version, and the fields of SavedHeader; checksum
//   tokens   int32 for each; checksum
//   layer 0  its number (uint64); for each of its storages from which position on it is kept, the
//            size of its rows in bytes (twice uint64), the rows; checksum
//   ...      one section for each layer of the model, in order
//
// A checksum is the XXH64 of its section, seeded with the checksum before it: so sections of
// different saves do not go together.

// What a cache must have in common with one saved by another process to take over its rows.
struct CacheIdentity {
  absl::string_view config_name;
  KvType kv_type = KvType::kF32;
  uint64_t fingerprint = 0;   // of the layers' shapes; see cache/fingerprint.h
  uint64_t weights_hash = 0;  // of the model that computed the rows
};

struct SavedHeader {
  std::string config_name;  // cut at kSavedNameBytes, for messages
  KvType kv_type = KvType::kF32;
  uint64_t fingerprint = 0;
  uint64_t weights_hash = 0;
  uint64_t length = 0;  // in tokens
};

inline constexpr size_t kSavedNameBytes = 48;
// Magic 8, version 4, type of rows 4, fingerprint, weights and length 8 each, checksum 8.
inline constexpr size_t kSavedHeaderBytes = 8 + 4 + 4 + 3 * 8 + kSavedNameBytes + 8;

// "f32", "f16", "bf16", "q8".
absl::string_view KvTypeName(KvType type);

// Writes sections and their checksums. Errors are those of the sink.
class SectionWriter {
 public:
  explicit SectionWriter(ByteSink& sink) : sink_(sink) {}

  absl::Status Append(const void* data, size_t bytes);
  absl::Status AppendUint(uint64_t value) { return Append(&value, sizeof(value)); }
  absl::Status EndSection();

 private:
  ByteSink& sink_;
  Xxh64 hash_;
};

// Reads sections. Every error names the section; DataLoss when a checksum is wrong.
class SectionReader {
 public:
  explicit SectionReader(ByteSource& source) : source_(source) {}

  // `name` stands for the section in messages.
  void BeginSection(std::string name) { section_ = std::move(name); }
  // Begins the section of a layer, whose number must come first.
  absl::Status BeginLayer(int index);
  absl::Status Read(void* into, size_t bytes);
  absl::StatusOr<uint64_t> ReadUint();
  absl::Status EndSection();

  // Reads the size of the rows that follow, which can only be `bytes`.
  absl::Status ReadSize(uint64_t bytes);

  // An error about the section's contents.
  absl::Status Damaged(absl::string_view what) const;
  uint64_t remaining() const { return source_.remaining(); }

 private:
  ByteSource& source_;
  Xxh64 hash_;
  std::string section_;
};

absl::Status WriteHeader(const CacheIdentity& identity, uint64_t length, SectionWriter& writer);

// Reads the header and holds it against the cache's identity. InvalidArgument when it is no saved
// conversation, of a version other than this one's, or of another config, type of rows or model;
// DataLoss when it is damaged.
absl::StatusOr<SavedHeader> ReadHeader(const CacheIdentity& identity, SectionReader& reader);

}  // namespace inlay

#endif  // INLAY_CACHE_SERIALIZE_H_
