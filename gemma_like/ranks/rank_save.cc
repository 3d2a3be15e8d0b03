#include "gemma_like/ranks/rank_save.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "cache/serialize.h"

namespace inlay {
namespace {

constexpr auto kDeadline = Ranks::Deadline::kPassAtFirst;

// Parts of the same layer differ in their checksums, so that they cannot be taken for each other.
uint64_t SeedOf(uint64_t seed, size_t rank) { return seed + 1 + rank; }

class CountingSink final : public ByteSink {
 public:
  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    bytes_ += bytes.size();
    return absl::OkStatus();
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

absl::Status CheckLeft(uint64_t needed, uint64_t left) {
  if (needed <= left) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(needed, " bytes are needed but ", left, " are left"));
}

// The next bytes of a source, which has more.
class FirstOf final : public ByteSource {
 public:
  FirstOf(ByteSource& source, uint64_t bytes) : source_(source), remaining_(bytes) {}
  absl::Status Read(absl::Span<uint8_t> into) override {
    INLAY_RETURN_IF_ERROR(CheckLeft(into.size(), remaining_));
    INLAY_RETURN_IF_ERROR(source_.Read(into));
    remaining_ -= into.size();
    return absl::OkStatus();
  }
  uint64_t remaining() const override { return remaining_; }

 private:
  ByteSource& source_;
  uint64_t remaining_;
};

}  // namespace

// What rank r writes, at that rank.
class PartTransfer::PieceSink final : public ByteSink {
 public:
  explicit PieceSink(PartTransfer& transfer) : transfer_(transfer) {}

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), transfer_.piece_bytes() - filled_);
      std::memcpy(transfer_.piece_.data() + filled_, bytes.data(), n);
      filled_ += n;
      bytes.remove_prefix(n);
      if (filled_ == transfer_.piece_bytes()) Flush();
    }
    return absl::OkStatus();
  }

  void Flush() {
    if (filled_ > 0) transfer_.Gather(transfer_.ranks_.rank(), filled_);
    filled_ = 0;
  }

 private:
  PartTransfer& transfer_;
  size_t filled_ = 0;
};

// What rank r reads, at that rank.
class PartTransfer::PieceSource final : public ByteSource {
 public:
  PieceSource(PartTransfer& transfer, uint64_t bytes) : transfer_(transfer), remaining_(bytes) {}

  absl::Status Read(absl::Span<uint8_t> into) override {
    INLAY_RETURN_IF_ERROR(CheckLeft(into.size(), remaining()));
    while (!into.empty()) {
      if (at_ == filled_) Next();
      if (!is_read_) return absl::DataLossError("the first rank could not read them");
      const size_t n = std::min(into.size(), filled_ - at_);
      std::memcpy(into.data(), transfer_.piece_.data() + at_, n);
      at_ += n;
      into.remove_prefix(n);
    }
    return absl::OkStatus();
  }
  uint64_t remaining() const override { return remaining_ + filled_ - at_; }

  // Receives the pieces that were not asked for.
  void Drain() {
    while (remaining_ > 0) Next();
  }

 private:
  void Next() {
    filled_ = std::min<uint64_t>(remaining_, transfer_.piece_bytes());
    at_ = 0;
    remaining_ -= filled_;
    bool is_read = false;
    transfer_.Broadcast(filled_, is_read);
    is_read_ = is_read_ && is_read;
  }

  PartTransfer& transfer_;
  uint64_t remaining_;  // after the piece at hand
  size_t filled_ = 0, at_ = 0;
  bool is_read_ = true;
};

PartTransfer::PartTransfer(Ranks& ranks)
    : ranks_(ranks),
      piece_(ranks.piece_bytes() + 1),
      sizes_(ranks.count()),
      part_sizes_(ranks.count()),
      outcomes_(ranks.count()) {}

void PartTransfer::Gather(size_t r, size_t bytes) {
  std::fill(sizes_.begin(), sizes_.end(), 0);
  sizes_[r] = bytes;
  ranks_.GatherToFirst(sizes_, piece_.data(), kDeadline);
}

void PartTransfer::Broadcast(size_t bytes, bool& is_read) {
  piece_[bytes] = is_read ? 1 : 0;
  ranks_.Broadcast(absl::MakeSpan(piece_.data(), bytes + 1), kDeadline);
  is_read = piece_[bytes] != 0;
}

absl::Status PartTransfer::Save(const KVCache& cache, uint64_t seed, ByteSink* sink) {
  const size_t rank = ranks_.rank(), count = ranks_.count();
  CountingSink counter;
  cache.SavePart(0, counter).IgnoreError();  // there is none of this sink
  std::vector<uint64_t>& sizes = part_sizes_;
  sizes[rank] = counter.bytes();
  std::fill(sizes_.begin(), sizes_.end(), sizeof(uint64_t));
  ranks_.Gather(sizes_, reinterpret_cast<char*>(sizes.data()), kDeadline);

  absl::Status status;
  if (IsFirst()) {
    status = OrOutOfMemory("a saved conversation", [&]() -> absl::Status {
      SectionWriter writer(*sink, seed);
      INLAY_RETURN_IF_ERROR(writer.Append(sizes.data(), count * sizeof(uint64_t)));
      INLAY_RETURN_IF_ERROR(writer.EndSection());
      return cache.SavePart(SeedOf(seed, 0), *sink);
    });
  }
  for (size_t r = 1; r < count; ++r) {
    if (rank == r) {
      PieceSink pieces(*this);
      cache.SavePart(SeedOf(seed, r), pieces).IgnoreError();  // nor of this one
      pieces.Flush();
      continue;
    }
    for (uint64_t left = sizes[r]; left > 0;) {
      const size_t bytes = std::min<uint64_t>(left, piece_bytes());
      Gather(r, bytes);
      left -= bytes;
      if (!IsFirst() || !status.ok()) continue;
      status = OrOutOfMemory("a saved conversation",
                             [&] { return sink->Append(AsBytes(piece_.data(), bytes)); });
    }
  }
  return status;
}

absl::StatusOr<std::vector<uint64_t>> PartTransfer::ReadSizes(const Ranks& ranks, uint64_t seed,
                                                              ByteSource& source) {
  SectionReader reader(source, seed);
  reader.BeginSection("list of sizes of ranks' parts");
  std::vector<uint64_t> sizes(ranks.count());
  INLAY_RETURN_IF_ERROR(reader.Read(sizes.data(), sizes.size() * sizeof(uint64_t)));
  INLAY_RETURN_IF_ERROR(reader.EndSection());
  uint64_t left = reader.remaining();
  for (const uint64_t size : sizes) {
    if (size > left) {
      return absl::DataLossError(absl::StrCat("the saved conversation has parts of ",
                                              absl::StrJoin(sizes, ", "), " bytes, but only ",
                                              reader.remaining(), " bytes follow"));
    }
    left -= size;
  }
  return sizes;
}

absl::Status PartTransfer::Load(KVCache& cache, uint64_t seed, absl::Span<const int32_t> tokens,
                                absl::Span<const uint64_t> sizes, ByteSource* source) {
  const size_t rank = ranks_.rank();
  absl::Status status;
  if (IsFirst()) {
    FirstOf own(*source, sizes[0]);
    status = LoadOwn(cache, SeedOf(seed, 0), tokens, own);
  }
  for (size_t r = 1; r < ranks_.count(); ++r) {
    if (rank == r) {
      PieceSource pieces(*this, sizes[r]);
      status = LoadOwn(cache, SeedOf(seed, r), tokens, pieces);
      pieces.Drain();
      continue;
    }
    for (uint64_t left = sizes[r]; left > 0;) {
      const size_t bytes = std::min<uint64_t>(left, piece_bytes());
      left -= bytes;
      if (IsFirst() && status.ok()) {
        status = OrOutOfMemory("a saved conversation", [&] {
          return source->Read({reinterpret_cast<uint8_t*>(piece_.data()), bytes});
        });
      }
      bool is_read = status.ok();
      Broadcast(bytes, is_read);
    }
  }
  return Agree(status, cache);
}

absl::Status PartTransfer::LoadOwn(KVCache& cache, uint64_t seed, absl::Span<const int32_t> tokens,
                                   ByteSource& source) {
  return OrOutOfMemory("a saved conversation", [&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(
        cache.LoadPart(seed, std::vector<int32_t>(tokens.begin(), tokens.end()), source));
    if (source.remaining() == 0) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("the saved conversation is damaged: ", source.remaining(),
                     " bytes are left of the part of rank ", ranks_.rank()));
  });
}

absl::Status PartTransfer::Agree(const absl::Status& own, KVCache& cache) {
  Outcome& mine = outcomes_[ranks_.rank()];
  mine = {.code = own.code()};
  if (own.ok()) mine.rewind_floor = cache.RewindFloor();
  own.message().copy(mine.message.data(), mine.message.size() - 1);
  std::fill(sizes_.begin(), sizes_.end(), sizeof(Outcome));
  ranks_.Gather(sizes_, reinterpret_cast<char*>(outcomes_.data()), kDeadline);
  for (const Outcome& outcome : outcomes_) {
    if (outcome.code != absl::StatusCode::kOk)
      return absl::Status(outcome.code, outcome.message.data());
  }
  for (const Outcome& outcome : outcomes_) cache.RaiseRewindFloor(outcome.rewind_floor);
  return absl::OkStatus();
}

}  // namespace inlay
