#include "cache/serialize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace inlay {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers and rows are saved as they lie");

constexpr std::array<char, 8> kMagic = {'i', 'n', 'l', 'a', 'y', 'k', 'v', '\n'};
constexpr uint32_t kVersion = 2;

absl::Span<const uint8_t> AsBytes(const void* data, size_t bytes) {
  return {static_cast<const uint8_t*>(data), bytes};
}

absl::Status OfAnother(absl::string_view what, absl::string_view saved, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("the saved conversation is of ", what, " ", saved, ", not ", wanted));
}

// The name as it stands in a header.
absl::string_view SavedName(absl::string_view name) { return name.substr(0, kSavedNameBytes); }

std::string HexText(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

absl::Status CheckIdentity(const CacheIdentity& mine, const SavedHeader& saved) {
  if (saved.config_name != SavedName(mine.config_name)) {
    return OfAnother("config", absl::CHexEscape(saved.config_name), mine.config_name);
  }
  if (saved.kv_type != mine.kv_type) {
    return OfAnother("rows of type", KvTypeName(saved.kv_type), KvTypeName(mine.kv_type));
  }
  if (saved.fingerprint != mine.fingerprint) {
    return OfAnother(absl::StrCat("a config ", mine.config_name, " with the fingerprint"),
                     HexText(saved.fingerprint), HexText(mine.fingerprint));
  }
  if (saved.weights_hash != mine.weights_hash) {
    return OfAnother("weights with the hash", HexText(saved.weights_hash),
                     HexText(mine.weights_hash));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kF16:
      return "f16";
    case KvType::kBF16:
      return "bf16";
    case KvType::kQ8:
      return "q8";
  }
  return "unknown";
}

absl::Status SectionWriter::Append(const void* data, size_t bytes) {
  hash_.Update(data, bytes);
  return sink_.Append(AsBytes(data, bytes));
}

absl::Status SectionWriter::EndSection() {
  const uint64_t digest = hash_.Digest();
  hash_ = Xxh64(digest);
  return sink_.Append(AsBytes(&digest, sizeof(digest)));
}

absl::Status SectionReader::Read(void* into, size_t bytes) {
  // Checked while it is still in the core's cache.
  constexpr size_t kPiece = 128 * 1024;
  auto* next = static_cast<uint8_t*>(into);
  while (bytes > 0) {
    const size_t n = std::min(bytes, kPiece);
    absl::Status status = source_.Read({next, n});
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("the saved conversation's ", section_,
                                                      " cannot be read: ", status.message()));
    }
    hash_.Update(next, n);
    next += n;
    bytes -= n;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SectionReader::ReadUint() {
  uint64_t value = 0;
  if (absl::Status status = Read(&value, sizeof(value)); !status.ok()) return status;
  return value;
}

absl::Status SectionReader::EndSection() {
  const uint64_t computed = hash_.Digest();
  absl::StatusOr<uint64_t> stored = ReadUint();
  if (!stored.ok()) return stored.status();
  if (*stored != computed) {
    return Damaged(absl::StrCat("the checksum is ", HexText(computed), ", not ", HexText(*stored)));
  }
  hash_ = Xxh64(computed);
  return absl::OkStatus();
}

absl::Status SectionReader::BeginLayer(int index) {
  BeginSection(absl::StrCat("layer ", index));
  absl::StatusOr<uint64_t> number = ReadUint();
  if (!number.ok()) return number.status();
  if (*number != static_cast<uint64_t>(index)) {
    return Damaged(absl::StrCat("the number of its section is ", *number));
  }
  return absl::OkStatus();
}

absl::Status SectionReader::ReadSize(uint64_t bytes) {
  absl::StatusOr<uint64_t> size = ReadUint();
  if (!size.ok()) return size.status();
  if (*size != bytes) return Damaged(absl::StrCat("it has ", *size, " bytes, not ", bytes));
  if (source_.remaining() < bytes) {
    return absl::OutOfRangeError(absl::StrCat("the saved conversation's ", section_, " has ", bytes,
                                              " bytes, but only ", source_.remaining(),
                                              " are left"));
  }
  return absl::OkStatus();
}

absl::Status SectionReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat("the saved conversation's ", section_, " is damaged: ", what));
}

absl::Status WriteHeader(const CacheIdentity& identity, uint64_t length, SectionWriter& writer) {
  // Collected, so that it is one piece for the sink.
  std::array<char, kSavedHeaderBytes - sizeof(uint64_t)> bytes{};
  char* next = bytes.data();
  const auto put = [&next](const void* data, size_t size) {
    std::memcpy(next, data, size);
    next += size;
  };
  const auto type = static_cast<uint32_t>(identity.kv_type);
  put(kMagic.data(), kMagic.size());
  put(&kVersion, sizeof(kVersion));
  put(&type, sizeof(type));
  put(&identity.fingerprint, sizeof(uint64_t));
  put(&identity.weights_hash, sizeof(uint64_t));
  put(&length, sizeof(length));
  const absl::string_view name = SavedName(identity.config_name);
  put(name.data(), name.size());
  if (absl::Status status = writer.Append(bytes.data(), bytes.size()); !status.ok()) return status;
  return writer.EndSection();
}

absl::StatusOr<SavedHeader> ReadHeader(const CacheIdentity& identity, SectionReader& reader) {
  reader.BeginSection("header");
  std::array<char, kSavedHeaderBytes - sizeof(uint64_t)> bytes;
  if (absl::Status status = reader.Read(bytes.data(), bytes.size()); !status.ok()) return status;
  const char* next = bytes.data();
  const auto get = [&next](void* into, size_t size) {
    std::memcpy(into, next, size);
    next += size;
  };
  std::array<char, kMagic.size()> magic;
  uint32_t version = 0;
  uint32_t type = 0;
  SavedHeader header;
  get(magic.data(), magic.size());
  get(&version, sizeof(version));
  get(&type, sizeof(type));
  get(&header.fingerprint, sizeof(uint64_t));
  get(&header.weights_hash, sizeof(uint64_t));
  get(&header.length, sizeof(uint64_t));
  header.config_name = std::string(next, std::find(next, next + kSavedNameBytes, '\0'));

  if (magic != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat("this is no saved conversation: it begins with '",
                     absl::CHexEscape(absl::string_view(magic.data(), magic.size())), "', not '",
                     absl::CHexEscape(absl::string_view(kMagic.data(), kMagic.size())), "'"));
  }
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the saved conversation has version ", version,
                                                   " of the format; this program reads ",
                                                   kVersion));
  }
  if (absl::Status status = reader.EndSection(); !status.ok()) return status;
  header.kv_type = static_cast<KvType>(type);
  if (absl::Status status = CheckIdentity(identity, header); !status.ok()) return status;
  return header;
}

}  // namespace inlay
