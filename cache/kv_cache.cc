#include "cache/kv_cache.h"

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache/out_of_memory.h"

namespace inlay {
namespace {

constexpr absl::string_view kThis = "this conversation";

}  // namespace

absl::Status KVCache::CheckIdle(absl::string_view done) const {
  if (pool_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cache cannot be ", done, ": it was moved from"));
  }
  if (open_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the cache cannot be ", done, " while a transaction is open"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Transaction> KVCache::Begin(absl::Span<const int32_t> tokens) {
  if (absl::Status idle = CheckIdle("appended to"); !idle.ok()) return idle;
  if (tokens.empty() || tokens.size() > max_append()) {
    return absl::InvalidArgumentError(absl::StrCat("an append of ", tokens.size(),
                                                   " tokens is not between 1 and ", max_append()));
  }
  if (tokens.size() > max_length() - length()) {
    return absl::OutOfRangeError(absl::StrCat("the conversation has ", length(),
                                              " tokens and cannot take ", tokens.size(),
                                              " more: its limit is ", max_length()));
  }
  const absl::Status status = OrOutOfMemory(kThis, [&] {
    absl::Status prepared = PrepareLayers(tokens.size());
    if (prepared.ok()) tokens_.Append(tokens);
    return prepared;
  });
  if (!status.ok()) {
    AbortLayers();
    return status;
  }
  open_ = true;
  return Transaction(this);
}

absl::Status KVCache::Rewind(size_t position) {
  if (absl::Status idle = CheckIdle("rewound"); !idle.ok()) return idle;
  if (position > length()) {
    return absl::OutOfRangeError(absl::StrCat("cannot rewind to position ", position,
                                              ": the conversation has ", length(), " tokens"));
  }
  if (position == length()) return absl::OkStatus();
  if (position < RewindFloor()) {
    return absl::OutOfRangeError(absl::StrCat("cannot rewind to position ", position,
                                              ": what is kept of the ", length(),
                                              " tokens reaches back to ", RewindFloor()));
  }
  TruncateLayers(position);
  length_ = position;
  tokens_.Truncate(position);
  return absl::OkStatus();
}

CacheIdentity KVCache::Identity(uint64_t weights_hash) const {
  return {.config_name = config_name(),
          .kv_type = traits_.kv_type,
          .fingerprint = traits_.fingerprint,
          .weights_hash = weights_hash};
}

absl::Status KVCache::Save(uint64_t weights_hash, ByteSink& sink) const {
  if (absl::Status idle = CheckIdle("saved"); !idle.ok()) return idle;
  return OrOutOfMemory(kThis, [&] {
    SectionWriter writer(sink);
    absl::Status status = WriteHeader(Identity(weights_hash), length_, writer);
    if (status.ok()) status = writer.Append(tokens().data(), length_ * sizeof(int32_t));
    if (status.ok()) status = writer.EndSection();
    if (status.ok()) status = SaveLayers(writer);
    return status;
  });
}

absl::StatusOr<std::vector<int32_t>> KVCache::LoadTokens(SectionReader& reader,
                                                         size_t length) const {
  reader.BeginSection("list of tokens");
  // Before memory is allocated for them.
  if (reader.remaining() / sizeof(int32_t) < length) {
    return absl::OutOfRangeError(absl::StrCat("the saved conversation has ", length,
                                              " tokens, but only ", reader.remaining(),
                                              " bytes follow its header"));
  }
  std::vector<int32_t> tokens(length);
  absl::Status status = reader.Read(tokens.data(), length * sizeof(int32_t));
  if (status.ok()) status = reader.EndSection();
  if (!status.ok()) return status;
  for (int32_t token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= traits_.vocab_size) {
      return reader.Damaged(
          absl::StrCat("token ", token, " is not in the vocabulary of ", traits_.vocab_size));
    }
  }
  return tokens;
}

absl::Status KVCache::Load(uint64_t weights_hash, ByteSource& source) {
  if (absl::Status idle = CheckIdle("loaded"); !idle.ok()) return idle;
  return OrOutOfMemory(kThis, [&] { return LoadAll(weights_hash, source); });
}

absl::Status KVCache::LoadAll(uint64_t weights_hash, ByteSource& source) {
  SectionReader reader(source);
  absl::StatusOr<SavedHeader> header = ReadHeader(Identity(weights_hash), reader);
  if (!header.ok()) return header.status();
  if (header->length > max_length()) {
    return absl::OutOfRangeError(absl::StrCat("the saved conversation has ", header->length,
                                              " tokens; the limit here is ", max_length()));
  }
  absl::StatusOr<std::vector<int32_t>> tokens = LoadTokens(reader, header->length);
  if (!tokens.ok()) return tokens.status();

  const std::unique_ptr<KVCache> loaded = Fork();
  absl::Status status = loaded->LoadLayers(reader, header->length);
  if (!status.ok()) return status;
  if (reader.remaining() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.remaining(), " bytes follow the end of the saved conversation"));
  }
  loaded->length_ = header->length;
  loaded->tokens_ = TokenList(*std::move(tokens));
  return Restore(std::move(*loaded));
}

absl::Status KVCache::Restore(KVCache&& snapshot) {
  if (absl::Status idle = CheckIdle("restored"); !idle.ok()) return idle;
  if (absl::Status idle = snapshot.CheckIdle("a snapshot to restore"); !idle.ok()) return idle;
  if (snapshot.traits_.fingerprint != traits_.fingerprint) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a snapshot of config ", snapshot.config_name(), " with ", KvTypeName(snapshot.kv_type()),
        " rows cannot be restored into a cache of config ", config_name(), " with ",
        KvTypeName(kv_type()), " rows"));
  }
  if (snapshot.length() > max_length()) {
    return absl::OutOfRangeError(absl::StrCat("the snapshot has ", snapshot.length(),
                                              " tokens; the limit here is ", max_length()));
  }
  const size_t limit = max_length();
  TakeOver(std::move(snapshot));
  traits_.max_length = limit;
  return absl::OkStatus();
}

size_t KVCache::allocated_bytes() const {
  size_t bytes = 0;
  VisitBlocks([&](const void*, size_t block_bytes) { bytes += block_bytes; });
  return bytes;
}

void Transaction::Commit() {
  assert(cache_ != nullptr && "a transaction can be committed once");
  cache_->CommitLayers(cache_->tokens_.size());
  cache_->length_ = cache_->tokens_.size();
  cache_->open_ = false;
  cache_ = nullptr;
}

Transaction::~Transaction() {
  if (cache_ == nullptr) return;
  cache_->AbortLayers();
  cache_->tokens_.Truncate(cache_->length_);
  cache_->open_ = false;
}

}  // namespace inlay
