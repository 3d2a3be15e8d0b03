#include "gemma_like/session.h"

#include "cache/byte_stream.h"
#include "io/status_macros.h"

namespace inlay {
namespace {

class WriterSink final : public ByteSink {
 public:
  explicit WriterSink(StateWriter& writer) : writer_(writer) {}
  absl::Status Append(absl::Span<const uint8_t> bytes) override { return writer_.Append(bytes); }

 private:
  StateWriter& writer_;
};

class ReaderSource final : public ByteSource {
 public:
  explicit ReaderSource(StateReader& reader) : reader_(reader) {}
  absl::Status Read(absl::Span<uint8_t> into) override { return reader_.Read(into); }
  uint64_t remaining() const override { return reader_.remaining(); }

 private:
  StateReader& reader_;
};

}  // namespace

absl::Status SaveSession(const Engine& engine, const KVCache& cache, StateWriter& writer) {
  WriterSink sink(writer);
  INLAY_RETURN_IF_ERROR(cache.Save(engine.info().weights_hash, sink));
  return writer.Commit();
}

absl::Status LoadSession(const Engine& engine, StateReader& reader, KVCache& cache) {
  ReaderSource source(reader);
  return cache.Load(engine.info().weights_hash, source);
}

}  // namespace inlay
