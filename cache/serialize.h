// The format of a saved conversation: a header, then checksummed sections.
#ifndef INLAY_CACHE_SERIALIZE_H_
#define INLAY_CACHE_SERIALIZE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/byte_stream.h"
#include "base/xxh64.h"
#include "cache/model_identity.h"
#include "ops/attention/kv_type.h"

namespace inlay {

// All numbers are little-endian, and a section follows the one before it without padding:
//
//   header   magic, version, and the fields of SavedHeader; checksum
//   tokens   int32 for each; checksum
//   layer 0  its index (uint64); for each of its storages the first position kept, the size of its
//            rows in bytes (both uint64), the rows; checksum
//   ...      one section for each layer of the model, in order; none after a header with kNoRows
//
// Where several ranks have a part of each layer, what follows the tokens is theirs to write: see
// gemma_like/ranks/rank_save.h.
//
// A checksum is the XXH64 of its section, seeded with the previous section's checksum, so that a
// mix of sections from different saves is detected.

// What a cache must have in common with a saved one for the saved rows to be used.
struct CacheIdentity {
  absl::string_view config_name;
  KvType kv_type = KvType::kF32;
  uint64_t fingerprint = 0;  // of the layers' shapes; see cache/fingerprint.h
  const ModelIdentity& model;
};

// The version of the numerics in a header after which tokens follow and no layers.
inline constexpr uint32_t kNoRows = std::numeric_limits<uint32_t>::max();

// The version of the format that is written. Headers and tokens of every version since 1 are read.
inline constexpr uint32_t kSavedVersion = 3;

struct SavedHeader {
  uint32_t version = 0;
  std::string config_name;  // cut at kSavedNameBytes
  KvType kv_type = KvType::kF32;
  uint64_t fingerprint = 0;
  uint64_t length = 0;  // in tokens
  ModelIdentity model;  // before version 3 only the weights' hash
};

inline constexpr size_t kSavedNameBytes = 48;
inline constexpr size_t kSavedTargetBytes = 20;
// Magic 8, version 4, row type 4, fingerprint, weights hash and length 8 each, the config's name;
// since version 3 the numerics version 4 and the instruction set; checksum 8.
inline constexpr size_t kSavedHeaderBytes =
    8 + 4 + 4 + 3 * 8 + kSavedNameBytes + 4 + kSavedTargetBytes + 8;

// Writes sections and their checksums. Errors are those of the sink.
class SectionWriter {
 public:
  explicit SectionWriter(ByteSink& sink, uint64_t seed = 0) : sink_(sink), hash_(seed) {}

  absl::Status Append(const void* data, size_t bytes);
  absl::Status AppendUint(uint64_t value) { return Append(&value, sizeof(value)); }
  absl::Status EndSection();

  // Between sections: a seed for what others write next, which depends on all sections so far.
  uint64_t seed() const { return hash_.Digest(); }

 private:
  ByteSink& sink_;
  Xxh64 hash_;
};

// Reads sections. Every error names the section; DataLoss when a checksum is wrong.
class SectionReader {
 public:
  explicit SectionReader(ByteSource& source, uint64_t seed = 0) : source_(source), hash_(seed) {}

  // Messages call the section `name`.
  void BeginSection(std::string name) { section_ = std::move(name); }
  // Begins the section of a layer, which must start with this index.
  absl::Status BeginLayer(int index);
  absl::Status Read(void* into, size_t bytes);
  absl::StatusOr<uint64_t> ReadUint();
  absl::Status EndSection();

  // Reads the size of the rows that follow, which must be `bytes`.
  absl::Status ReadSize(uint64_t bytes);

  // An error about the section's contents.
  absl::Status Damaged(absl::string_view what) const;
  uint64_t remaining() const { return source_.remaining(); }
  // As SectionWriter::seed.
  uint64_t seed() const { return hash_.Digest(); }

 private:
  ByteSource& source_;
  Xxh64 hash_;
  std::string section_;
};

absl::Status WriteHeader(const CacheIdentity& identity, uint64_t length, SectionWriter& writer);

// InvalidArgument when it is no saved conversation or one of a version that this program does not
// know; DataLoss when it is damaged.
absl::StatusOr<SavedHeader> ReadHeader(SectionReader& reader);

// Whether both are of one config; only then do the saved tokens mean the same.
bool SameConfig(const CacheIdentity& mine, const SavedHeader& saved);

// Why a cache cannot use the saved rows, as a clause: "it was computed on AVX2, not AVX3". Empty
// when it can.
std::string Difference(const CacheIdentity& mine, const SavedHeader& saved);

}  // namespace inlay

#endif  // INLAY_CACHE_SERIALIZE_H_
