#include "serve/service/event_stream.h"

#include <exception>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/steady_time.h"

namespace inlay::serve {
namespace {

constexpr absl::string_view kEventStream = "text/event-stream";

}  // namespace

EventStream::EventStream() : last_written_(SteadyNow()) {}

void EventStream::Add(Reader reader) {
  readers_.reserve(readers_.size() + 1);
  reader.reply->StartStream(200, kEventStream);
  readers_.push_back(std::move(reader));
}

void EventStream::Start(const std::shared_ptr<HttpReply>& reply) {
  if (started_) return;
  Add({.reply = reply, .gone = nullptr});
  started_ = true;
}

void EventStream::Join(const std::shared_ptr<HttpReply>& reply, std::string bytes) {
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  Add({.reply = reply, .gone = gone});
  reply->Write(std::move(bytes));
  reply->OnGone([gone] { *gone = true; });
}

void EventStream::Write(const std::string& bytes) {
  if (bytes.empty()) return;
  last_written_ = SteadyNow();
  std::erase_if(readers_, [](const Reader& reader) { return reader.gone && *reader.gone; });
  for (const Reader& reader : readers_) reader.reply->Write(bytes);
}

void EventStream::Finish() {
  for (const Reader& reader : readers_) reader.reply->Finish();
  readers_.clear();
}

void EventStream::Fail(absl::FunctionRef<std::string()> event) noexcept {
  try {
    Write(event());
    Finish();
  } catch (const std::exception&) {
    for (const Reader& reader : readers_) reader.reply->FailWithoutMemory();
    readers_.clear();
  }
}

void SendEvents(HttpReply& reply, std::string bytes) {
  reply.StartStream(200, kEventStream);
  reply.Write(std::move(bytes));
  reply.Finish();
}

}  // namespace inlay::serve
